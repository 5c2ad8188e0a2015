package pages_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/transport/pages"
)

func TestOnlyOurOwnPagesMaySendForms(t *testing.T) {
	const ours = "https://id.example.org"
	p := newPages(t, ours)
	for _, c := range []struct {
		about, method string
		site, origin  []string
		let           bool
	}{
		{"a link from anywhere", "GET", []string{"cross-site"}, nil, true},
		{"a look at the headers", "HEAD", nil, nil, true},
		{"our form", "POST", []string{"same-origin"}, []string{ours}, true},
		{"our form in a browser that leaves the origin out", "POST", []string{"same-origin"}, nil, true},
		{"our form in an old browser", "POST", nil, []string{ours}, true},
		{"a form that was sent again by the person", "POST", []string{"none"}, []string{ours}, true},
		{"a form of another site", "POST", []string{"cross-site"}, []string{"https://evil.example"}, false},
		{"a form of a neighbour", "POST", []string{"same-site"}, []string{"https://other.example.org"}, false},
		{"a form of another site that claims our origin", "POST", []string{"cross-site"}, []string{ours}, false},
		{"a form of a neighbour that claims our origin", "POST", []string{"same-site"}, []string{ours}, false},
		{"a form of a hidden page", "POST", nil, []string{"null"}, false},
		{"something that says nothing", "POST", nil, nil, false},
		{"something that says none and nothing else", "POST", []string{"none"}, nil, false},
		{"a name of somebody else that leads here", "POST", []string{"same-origin"},
			[]string{"https://evil.example"}, false},
		{"our origin without its transport", "POST", nil, []string{"http://id.example.org"}, false},
		{"our origin with a port", "POST", nil, []string{ours + ":8443"}, false},
		{"two answers", "POST", []string{"same-origin", "cross-site"}, nil, false},
		{"none and something else", "POST", []string{"none", "cross-site"}, []string{ours}, false},
		{"two origins", "POST", []string{"same-origin"}, []string{ours, "https://evil.example"}, false},
		{"another case", "POST", []string{"Same-Origin"}, nil, false},
		{"another method", "DELETE", []string{"cross-site"}, nil, false},
		{"a method nobody knows", "BREW", nil, nil, false},
		{"a preflight", "OPTIONS", []string{"cross-site"}, []string{"https://evil.example"}, false},
	} {
		let := false
		guarded := p.SameOrigin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { let = true }))
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, "/login", nil)
		r.Header["Sec-Fetch-Site"], r.Header["Origin"] = c.site, c.origin
		w.Header().Set("X-Request-Id", "req_1")
		guarded.ServeHTTP(w, r)
		if let != c.let {
			t.Errorf("%s: let through: %t", c.about, let)
		}
		if page := w.Body.String(); !c.let &&
			(w.Code != 403 || !strings.Contains(page, "This form was sent from another site") ||
				!strings.Contains(page, "req_1")) {
			t.Errorf("%s: %d without help: %s", c.about, w.Code, page)
		}
	}
}

func TestFormsAreText(t *testing.T) {
	for name, c := range map[string]struct {
		form url.Values
		text bool
	}{
		"nothing":                  {nil, true},
		"words":                    {url.Values{"a": {"ü \u202e\n", ""}}, true},
		"a NUL":                    {url.Values{"a": {"b", "c\x00"}}, false},
		"not UTF-8":                {url.Values{"a": {"\xff"}}, false},
		"a name that is not UTF-8": {url.Values{"\xff": {"a"}}, false},
	} {
		if got := pages.Readable(c.form); got != c.text {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCookiesStayWithThisHost(t *testing.T) {
	for _, external := range []*http.Cookie{pages.Cookie("session", "value", time.Hour),
		pages.ForgetCookie("session")} {
		said := external.String()
		for _, part := range []string{"__Host-session=", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax"} {
			if !strings.Contains(said, part) {
				t.Errorf("%s lacks %s", said, part)
			}
		}
		if strings.Contains(said, "Domain") {
			t.Errorf("%s goes to other hosts, too", said)
		}
	}
	if c := pages.ForgetCookie("session").String(); !strings.Contains(c, "Max-Age=0") {
		t.Errorf("%s does not end", c)
	}
	if c := pages.Cookie("session", "value", 0).String(); strings.Contains(c, "Max-Age") {
		t.Errorf("%s outlives the browser", c)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(&http.Cookie{Name: "session", Value: "of somebody else"})
	if got := pages.CookieValue(r, "session"); got != "" {
		t.Errorf("a cookie that any host can set is read: %q", got)
	}
	r.AddCookie(pages.Cookie("session", "value", time.Hour))
	if got := pages.CookieValue(r, "session"); got != "value" {
		t.Errorf("the cookie has the value %q", got)
	}
}
