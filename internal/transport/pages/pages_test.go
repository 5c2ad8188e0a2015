package pages_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/pages/pagestest"
)

func newPages(t *testing.T, external string) *pages.Pages {
	t.Helper()
	u, err := url.Parse(external)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pages.New(pages.Config{ExternalURL: u, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func render(t *testing.T, p *pages.Pages, language string, s pagestest.Sample) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Language", language)
	p.Render(w, r, s.Status, s.View)
	if w.Code != s.Status {
		t.Fatalf("%s in %s: status %d: %s", s.Name, language, w.Code, w.Body)
	}
	return w
}

// odd marks a character that hides.
var odd = regexp.MustCompile(`<span class="odd"( title="U\+[0-9A-F]{4,6}")?>(␣|U\+[0-9A-F]{4,6})</span>`)

// shape is the page without its texts and what marks odd characters in them: elements and the names of their
// attributes.
func shape(t *testing.T, page string) (tags []string, addresses []string) {
	t.Helper()
	tokens := html.NewTokenizer(strings.NewReader(odd.ReplaceAllString(page, "")))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return tags, addresses
		}
		if kind == html.TextToken || kind == html.DoctypeToken {
			continue
		}
		token := tokens.Token()
		tag := kind.String() + " " + token.Data
		for _, a := range token.Attr {
			tag += " " + a.Key
			if slices.Contains([]string{"href", "src", "action", "formaction", "srcset", "content"}, a.Key) {
				addresses = append(addresses, a.Val)
			}
		}
		tags = append(tags, tag)
	}
}

func TestNoStringOfAViewChangesThePageAroundIt(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	const harmless = "Zaphod"
	for _, hostile := range []string{
		`"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, `javascript:alert(1)`, `JaVaScRiPt:alert(1)`,
		"` onmouseover=alert(1) x=`",
		`</title><script>`, `{{.}}`, `-->`, "\x00<svg/onload=alert(1)>", `data:text/html,<script>alert(1)</script>`,
		`" autofocus onfocus="alert(1)`,
		`{application}{name}`, `&lt;script&gt;`, `; script-src *`, "a\r\nSet-Cookie: b=c",
	} {
		calm, wild := pagestest.Filled(harmless), pagestest.Filled(hostile)
		for i := range wild {
			w := render(t, p, "en", wild[i])
			expected, _ := shape(t, render(t, p, "en", calm[i]).Body.String())
			got, addresses := shape(t, w.Body.String())
			if !slices.Equal(got, expected) {
				t.Errorf("%s: %q changes what the page consists of:\n%s", wild[i].Name, hostile, w.Body)
			}
			for _, a := range addresses {
				if u, err := url.Parse(strings.TrimPrefix(a, "0; url=")); err != nil ||
					slices.Contains([]string{"javascript", "vbscript"}, strings.ToLower(u.Scheme)) ||
					u.Scheme == "data" && !strings.HasPrefix(a, "data:image/png;base64,") {
					t.Errorf("%s: %q becomes the address %q", wild[i].Name, hostile, a)
				}
			}
			if csp := w.Header().Get("Content-Security-Policy"); strings.Contains(csp, "*") ||
				strings.Count(csp, "form-action") != 1 && !posts(wild[i]) || len(w.Header()["Set-Cookie"]) > 0 {
				t.Errorf("%s: %q changes the headers: %s", wild[i].Name, hostile, csp)
			}
		}
	}
}

// The test above proves little for a field that no page shows.
func TestPagesShowWhatTheyAreGiven(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	const name = "Zaphod"
	for _, s := range pagestest.Filled(name) {
		if _, failed := s.View.(pages.Failed); !failed && strings.Count(render(t, p, "en", s).Body.String(), name) < 2 {
			t.Errorf("%s does not show its strings", s.Name)
		}
	}
}

func TestNamesCannotTurnTheTextAroundThem(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	const backwards = "\u202egnihtemos"
	for _, s := range pagestest.Filled(backwards) {
		tokens := html.NewTokenizer(strings.NewReader(render(t, p, "en", s).Body.String()))
		element := ""
		for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
			token := tokens.Token()
			switch kind {
			case html.StartTagToken:
				element = token.Data
				for _, a := range token.Attr { // the value of a field is a box of its own
					if strings.Contains(a.Val, backwards) &&
						!slices.Contains([]string{"value", "href", "lang", "data-options", "data-signal",
							"data-keep"}, a.Key) {
						t.Errorf("%s: the attribute %s of <%s> has a name in it that is not set apart", s.Name,
							a.Key, element)
					}
				}
			case html.TextToken:
				if strings.Contains(token.Data, backwards) &&
					!slices.Contains([]string{"bdi", "code", "option"}, element) {
					t.Errorf("%s: a name stands in <%s> and is not set apart", s.Name, element)
				}
			}
		}
	}
}

// posts tells whether a page posts to an application.
func posts(s pagestest.Sample) bool {
	_, is := s.View.(pages.PostBack)
	return is
}

func TestThePageThatPostsToAnApplicationHoldsNothingElse(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	frame := pages.Frame{Organization: "Zaphod", Application: "Zaphod", RedirectURI: "https://zaphod.example",
		Session: "Zaphod", Language: "fr"}
	to, err := pages.Outward("https://app.example/cb?x=1")
	if err != nil {
		t.Fatal(err)
	}
	w := render(t, p, "en", pagestest.Sample{Status: 200,
		View: pages.NewPostBack(frame, to, url.Values{"state": {`"><b>`}, "code": {"c"}})})
	csp, page := w.Header().Get("Content-Security-Policy"), w.Body.String()
	// Browsers would hold form-action against the redirects of the application.
	if csp != "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; frame-ancestors 'none'; base-uri 'none'" {
		t.Errorf("the policy is %s", csp)
	}
	if got := w.Header().Get("Referrer-Policy"); got != "strict-origin" {
		t.Errorf("the address of the page goes to the application: %s", got)
	}
	if w.Header().Get("Content-Language") != "fr" || strings.Contains(strings.ToLower(page), "zaphod") {
		t.Errorf("it shows what a stranger has chosen:\n%s", page)
	}
	tags, addresses := shape(t, page)
	count := map[string]int{}
	for _, tag := range tags {
		name, _, _ := strings.Cut(strings.TrimPrefix(tag, "StartTag "), " ")
		count[name]++
	}
	if count["form"] != 1 || count["input"] != 2 || count["button"] != 1 || count["a"] != 0 || count["iframe"] != 0 ||
		count["b"] != 0 {
		t.Errorf("the page consists of %v:\n%s", count, page)
	}
	for _, want := range []string{`<form method="post" action="https://app.example/cb?x=1" data-onward>`,
		`<input type="hidden" name="code" value="c">`,
		`<input type="hidden" name="state" value="&#34;&gt;&lt;b&gt;">`} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s in\n%s", want, page)
		}
	}
	for _, a := range addresses {
		if strings.Contains(a, "://") && a != "https://app.example/cb?x=1" {
			t.Errorf("it leads to %s", a)
		}
	}
}

func TestEveryPageHasTheHeadersThatKeepBrowsersSafe(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	for _, s := range pagestest.Samples() {
		if posts(s) {
			continue // see above
		}
		w := render(t, p, "de-CH", s)
		for name, value := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Content-Language": "de",
			"Strict-Transport-Security": "max-age=31536000",
		} {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, not %q", s.Name, name, got, value)
			}
		}
		if !strings.Contains(w.Header().Get("Permissions-Policy"), "camera=()") {
			t.Errorf("%s: there is no Permissions-Policy", s.Name)
		}
		csp, page := w.Header().Get("Content-Security-Policy"), w.Body.String()
		for _, part := range []string{"default-src 'none'", "style-src 'self';", "img-src 'self' data:;",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy lacks %s: %s", s.Name, part, csp)
			}
		}
		if has := strings.Contains(page, "<script"); has != strings.Contains(csp, "script-src 'self'") {
			t.Errorf("%s: has a script: %t, but the policy is %s", s.Name, has, csp)
		}
		if strings.Contains(page, "<style") || strings.Contains(page, " style=") ||
			strings.Contains(page, "<script>") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: something is inline", s.Name)
		}
		if tags, _ := shape(t, page); slices.ContainsFunc(tags,
			func(tag string) bool { return strings.Contains(tag, " on") }) {
			t.Errorf("%s: an attribute is a script", s.Name)
		}
	}
	if h := render(t, newPages(t, "http://localhost:8080"), "en",
		pagestest.Samples()[0]).Header(); h.Get("Strict-Transport-Security") != "" {
		t.Error("over http there is no transport security to promise")
	}
}

func TestFormsMayLeadBackToTheApplicationOnly(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	for uri, allowed := range map[string]string{
		"":                                  "'self'",
		"https://app.example/cb?x=1":        "'self' https://app.example",
		"https://app.example:8443/cb":       "'self' https://app.example:8443",
		"http://127.0.0.1:5000/":            "'self' http://127.0.0.1:5000",
		"http://[::1]:5000/":                "'self' http:", // a policy cannot name such a host
		"com.example.app:/cb":               "'self' com.example.app:",
		"http://app.example/cb":             "'self'",
		"https://a;script-src/cb":           "'self'",
		"https://a,b/cb":                    "'self'",
		"https://*.example/cb":              "'self'",
		"javascript:alert(1)":               "'self'",
		"JavaScript:alert(1)":               "'self'",
		"data:text/html,x":                  "'self'",
		"https://user@app.example/cb":       "'self'",
		"//app.example/cb":                  "'self'",
		"https://app.example/ ; script-src": "'self'",
	} {
		w := render(t, p, "en",
			pagestest.Sample{Status: 200, View: pages.LoginName{Frame: pages.Frame{RedirectURI: uri}}})
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp,
			"form-action "+allowed+"; frame-ancestors") {
			t.Errorf("%q gives %s", uri, csp)
		}
	}
}

func TestLinksGoOnlyWhereTheyShould(t *testing.T) {
	for _, good := range []string{"https://app.example/a?b=c#d", "http://localhost:3000/", "http://127.0.0.1/",
		"http://[::1]/", "com.example.app:/back", "com.example.app://back"} {
		if l, err := pages.Outward(good); err != nil || l.IsNone() {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", "/path", "//host/", "http://app.example/", "javascript:alert(1)",
		"JAVASCRIPT:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)",
		"vbscript:x", "data:text/html,x", "file:///etc/passwd", "blob:x", "view-source:https://x", "https://",
		"https://user:pw@host/", "https:\\\\host", "about:blank",
		"intent://x", "ftp://host/", "ws://host/", "x:y", "myapp://back", "ssh://host/", "ms-msdt:/id",
		"search-ms:query=x", "x-apple.systempreferences:x", "\x01https://host/"} {
		if l, err := pages.Outward(bad); err == nil || !l.IsNone() {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, path := range []string{"/login", "login", "//evil.example/", "\\\\evil.example", "/\\evil.example",
		"https://evil.example", "javascript:alert(1)"} {
		u, err := url.Parse(pages.To(path, url.Values{"a": {"//b&c"}}).String())
		if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") ||
			u.Query().Get("a") != "//b&c" {
			t.Errorf("%q leads to %v (%v)", path, u, err)
		}
	}
}

func TestAssetsMayBeKeptForGood(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	page := render(t, p, "en",
		pagestest.Sample{Status: 200, View: pages.LoginName{Passkey: []byte("{}")}}).Body.String()
	_, addresses := shape(t, page)
	found := 0
	for _, a := range addresses {
		if !strings.HasPrefix(a, pages.AssetsPath) {
			continue
		}
		found++
		get := func(method, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			p.Assets().ServeHTTP(w, httptest.NewRequest(method, path, nil))
			return w
		}
		w := get("GET", a)
		if w.Code != 200 || w.Body.Len() == 0 ||
			w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", a, w.Code, w.Header())
		}
		if sum := sha256.Sum256(w.Body.Bytes()); !strings.Contains(a, "."+hex.EncodeToString(sum[:8])+".") {
			t.Errorf("%s keeps its name when its content changes", a)
		}
		packed := httptest.NewRecorder()
		asking := httptest.NewRequest("GET", a, nil)
		asking.Header.Set("Accept-Encoding", "gzip, br")
		p.Assets().ServeHTTP(packed, asking)
		if unpacked, err := gzip.NewReader(packed.Body); err != nil {
			t.Errorf("%s is not compressed: %v", a, err)
		} else if content, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(content, w.Body.Bytes()) ||
			packed.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Encoding") != "" ||
			packed.Header().Get("Vary") != "Accept-Encoding" || w.Header().Get("Vary") != "Accept-Encoding" ||
			packed.Header().Get("Content-Length") >= w.Header().Get("Content-Length") &&
				len(packed.Header().Get("Content-Length")) == len(w.Header().Get("Content-Length")) {
			t.Errorf("%s, compressed: %v %v", a, packed.Header(), err)
		}
		for extension, kind := range map[string]string{".css": "text/css; charset=utf-8",
			".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"} {
			if strings.HasSuffix(a, extension) && w.Header().Get("Content-Type") != kind {
				t.Errorf("%s is of type %s", a, w.Header().Get("Content-Type"))
			}
		}
		if w := get("HEAD", a); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d with %d bytes", a, w.Code, w.Body.Len())
		}
		if w := get("POST", a); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", a, w.Code)
		}
		if w := get("GET", a+"x"); w.Code != 404 || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("an asset that is not there: %d %v", w.Code, w.Header())
		}
	}
	if found < 3 {
		t.Errorf("only %d assets found in %s", found, page)
	}
}

func TestProblemsStandNextToTheirFieldsAndAtTheTop(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	page := render(t, p, "en", pagestest.Sample{
		Status: 400,
		View: pages.ChangePassword{Frame: pages.Frame{Problems: []pages.Problem{
			{Message: pages.Locked()}, {Field: pages.FieldNewPassword, Message: pages.PasswordTooShort(1)}}},
			Rules: pages.PasswordRules{Least: 1}},
	}).Body.String()
	for _, part := range []string{
		`role="alert"`, `<li>Your account is locked. Please contact your administrator.</li>`,
		`<a href="#newPassword">New password: Use at least 1 character.</a>`,
		`aria-invalid="true" aria-describedby="newPassword-rules newPassword-problem"`,
		`<p class="problem" role="alert" id="newPassword-problem">Use at least 1 character.</p>`,
		`<title>This did not work – `,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s:\n%s", part, page)
		}
	}
	if strings.Count(page, " autofocus") != 1 ||
		!strings.Contains(page, `autocomplete="new-password" required autofocus aria-invalid`) {
		t.Errorf("the first field that is wrong should have the cursor:\n%s", page)
	}
}

func TestTheOneThingThatIsWrongIsSaidOnce(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	for name, c := range map[string]struct {
		view    pages.View
		summary bool
	}{
		"one field": {pages.Password{Frame: pages.Frame{Problems: []pages.Problem{{Field: pages.FieldPassword,
			Message: pages.Required()}}}}, false},
		"no field": {pages.Password{Frame: pages.Frame{Problems: []pages.Problem{{Message: pages.Required()}}}}, true},
		"a field elsewhere": {pages.Password{Frame: pages.Frame{Problems: []pages.Problem{{Field: pages.FieldUserCode,
			Message: pages.Required()}}}}, true},
		"a field and another": {pages.Password{Frame: pages.Frame{Problems: []pages.Problem{{Field: pages.FieldPassword,
			Message: pages.Required()}, {Message: pages.Locked()}}}}, true},
	} {
		page := render(t, p, "en", pagestest.Sample{Status: 422, View: c.view}).Body.String()
		if got := strings.Contains(page, `class="notice wrong"`); got != c.summary ||
			!strings.Contains(page, "Please fill this in.") {
			t.Errorf("%s: said at the top: %t\n%s", name, got, page)
		}
	}
}

func TestNamesThatMisleadAreMarked(t *testing.T) {
	for name, want := range map[string]string{
		"Mara Lindqvist": "Mara Lindqvist",
		" bob ":          `<span class="odd" title="U+0020">␣</span>bob<span class="odd" title="U+0020">␣</span>`,
		"a  b":           `a<span class="odd" title="U+0020">␣</span><span class="odd" title="U+0020">␣</span>b`,
		"a\u00a0b":       `a<span class="odd" title="U+00A0">␣</span>b`,
		"\u202enimda":    `<span class="odd">U+202E</span>nimda`,
		"ad\u200bmin":    `ad<span class="odd">U+200B</span>min`,
		"a\u200dd":       `a<span class="odd">U+200D</span>d`,
		"\u3164":         `<span class="odd">U+3164</span>`,
		"نمی\u200cخواهم": "نمی\u200cخواهم",
		"👩\u200d🚀":       "👩\u200d🚀",
		"<b>":            "&lt;b&gt;",
		"مرح\u2067":      `مرح<span class="odd">U+2067</span>`,
		"line\nbreak":    `line<span class="odd" title="U+000A">␣</span>break`,
		"\U000e0041":     `<span class="odd">U+E0041</span>`,
	} {
		p := newPages(t, "https://id.example.org")
		page := render(t, p, "en", pagestest.Sample{Status: 200, View: pages.Password{LoginName: name}}).Body.String()
		if !strings.Contains(page, "<bdi>"+want+"</bdi>") {
			t.Errorf("%q is not shown as %s:\n%s", name, want, page)
		}
	}
}

func TestPasswordsAreNeverShownAgain(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	for _, s := range pagestest.Filled("sesame") {
		tokens := html.NewTokenizer(strings.NewReader(render(t, p, "en", s).Body.String()))
		for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
			token := tokens.Token()
			if token.Data == "input" && slices.Contains(token.Attr, html.Attribute{Key: "type", Val: "password"}) &&
				!slices.Contains(token.Attr, html.Attribute{Key: "value"}) {
				t.Errorf("%s fills in a password: %s", s.Name, token)
			}
		}
	}
}

func TestNoPageShowsAScopeOrAnIdentifier(t *testing.T) {
	p := newPages(t, "https://id.example.org")
	for _, language := range pages.Languages {
		for _, s := range pagestest.Samples() {
			if found := pagestest.Raw(render(t, p, language, s).Body.String()); found != nil {
				t.Errorf("%s in %s shows %q", s.Name, language, found)
			}
		}
	}
	for page, want := range map[string]string{
		`<p>use urn:signet:app:app_01:aud</p>`:                      "app_01 urn:signet:app:app_01:aud",
		`<li><code>email</code></li><p>Your email</p>`:              "email",
		`<p>see offline_access, signet.read and id.signet.com`:      "offline_access signet.read",
		`<button aria-label="Remove usr_1"></button>`:               "usr_1",
		`<input value="org_1"><input type="hidden" value="app_1">`:  "org_1",
		`<script>"app_1"</script><a href="/login/idp/idp_1">Go</a>`: "",
	} {
		if got := strings.Join(pagestest.Raw(page), " "); got != want {
			t.Errorf("%s: found %q, want %q", page, got, want)
		}
	}
}
