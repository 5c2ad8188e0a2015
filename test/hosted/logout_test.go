package hosted

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
)

// logoutURL is where an application sends people to sign out.
func logoutURL(pairs ...string) string { return "/oauth/logout?" + values(pairs...).Encode() }

func TestAnApplicationAsksForASignOut(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	b := w.signedIn(jo)
	tokens := b.authorize(shop).tokens(shop)
	p := b.get(logoutURL("client_id", shop, "post_logout_redirect_uri", farewell, "state", "st 1")).shows(200,
		"Sign out?", "Shop", jo.name)
	if !w.counts(tokens["access_token"]) {
		t.Fatal("nobody was asked")
	}
	p.post("do", "").shows(200, "Sign out?")
	p = p.post("do", "end", "id", p.hidden("id")).shows(200, "One moment")
	if p.arrival(farewell).Get("state") != "st 1" {
		t.Errorf("sent to %s", p.next())
	}
	if w.counts(tokens["access_token"]) || b.jar["__Host-signet"] != "" {
		t.Error("the session goes on")
	}
	b.get(p.path).shows(200, "You are signed out") // the wish is used up
	b.authorize(shop).shows(200, "loginName")
	if got := b.get(logoutURL("client_id", shop, "post_logout_redirect_uri", farewell)); got.path != farewell {
		t.Errorf("nobody is signed in, and it goes to %s", got.path)
	}
}

func TestAnApplicationThatMeansThisSessionSignsOutAtOnce(t *testing.T) {
	w := open(t, server.Config{})
	jo, ann, shop := w.person(w.org, true), w.person(w.org, true), w.application("Shop")
	b := w.signedIn(ann, jo)
	tokens := b.authorize(shop, "prompt", "select_account").post("id", ids(t, b)[jo.name]).tokens(shop)
	hint := tokens["id_token"].(string)
	out := logoutURL("id_token_hint", hint, "post_logout_redirect_uri", farewell, "state", "st")

	// In another browser it means nobody who is there, and the person is asked.
	other := w.signedIn(ann)
	other.get(out).shows(200, "Sign out?", ann.name)
	// Where the same person is signed in by another session, the person is asked about that.
	again := w.signedIn(jo, ann)
	again.get(out).shows(200, "Sign out?", jo.name)
	// What only looks does nothing.
	wish := b.send(http.MethodGet, out, nil).header.Get("Location")
	b.send(http.MethodHead, strings.TrimPrefix(wish, w.url), nil).shows(200)
	if !w.counts(tokens["access_token"]) {
		t.Fatal("somebody was signed out who was not meant")
	}

	if got := b.get(out); got.path != farewell+"?state=st" {
		t.Fatalf("got %s %s", got.path, got.body)
	}
	if w.counts(tokens["access_token"]) {
		t.Error("the session goes on")
	}
	b.get("/device").shows(200, ann.name) // the other account stays
}

// ids gives the sessions of the accounts of a browser by their names.
func ids(t *testing.T, b *browser) map[string]string {
	t.Helper()
	found := map[string]string{}
	p := b.get("/login?to=/device").shows(200, `name="id"`)
	for _, part := range strings.Split(p.body, `<button name="id" value="`)[1:] {
		id, rest, _ := strings.Cut(part, `"`)
		_, rest, _ = strings.Cut(rest, `<bdi class="detail">`)
		name, _, _ := strings.Cut(rest, "@")
		found[name] = id
	}
	return found
}

func TestSigningOutFromOurOwnPages(t *testing.T) {
	w := open(t, server.Config{})
	jo, ann := w.person(w.org, true), w.person(w.org, true)
	b := w.signedIn(jo, ann)
	p := b.get("/logout").shows(200, "Sign out?", ann.name, "all accounts")
	p.post("do", "end", "id", "ses_somebodyelse").shows(200, "You are signed out") // of nothing
	b.get("/device").shows(200, ann.name)
	p = p.post("do", "end", "id", p.hidden("id")).shows(200, "You are signed out")
	if p.next() != "/login" {
		t.Errorf("it goes on to %s", p.next())
	}
	if p := b.get("/logout").shows(200, "Sign out?", jo.name); strings.Contains(p.body, "all accounts") {
		t.Error("there is only one")
	}
	b.get("/login?other=1&to=/device").signIn(ann.email, password).shows(200)
	b.get("/logout").post("do", "endAll").shows(200, "You are signed out")
	b.get("/logout").shows(200, "You are signed out")
	b.get("/device").shows(200, "loginName")
	if b.jar["__Host-signet"] != "" {
		t.Error("the cookie is still there")
	}
}

func TestSignOutsOfOthersAreNobodysBusiness(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	mine, theirs := w.signedIn(jo), w.browser()
	wish := theirs.send(http.MethodGet, logoutURL("client_id", shop, "post_logout_redirect_uri", farewell),
		nil).header.Get("Location")
	p := mine.get(strings.TrimPrefix(wish, w.url)).shows(200, "Sign out?")
	if strings.Contains(p.body, "Shop") {
		t.Error("a wish that was made in another browser counts")
	}
	p.post("do", "end", "id", p.hidden("id")).shows(200, "You are signed out")
}

func TestNobodyIsSentElsewhere(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	b := w.signedIn(jo)
	token := b.authorize(shop).tokens(shop)["id_token"].(string)
	evil := []string{"https://evil.test/", "https://evil.test/account", "//evil.test/account", "//evil.test",
		`/\evil.test`, "https://shop.test/bye/../x", farewell + "?x=1", farewell + "/",
		"https://shop.test.evil.test/bye",
		"javascript:alert(1)", "http://shop.test/bye", " " + farewell}
	for _, to := range evil {
		for _, out := range []string{logoutURL("client_id", shop, "post_logout_redirect_uri", to),
			logoutURL("id_token_hint", token, "post_logout_redirect_uri", to),
			logoutURL("post_logout_redirect_uri", to)} {
			if got := b.get(out); got.status != 400 || got.header.Get("Location") != "" {
				t.Errorf("%s: got %d %s", to, got.status, got.header.Get("Location"))
			}
		}
		for _, path := range []string{"/login?to=", "/logout?to=", "/logout?post_logout_redirect_uri=", "/device?to=",
			"/verify?to=", "/forgot?to=", "/reset?to=", "/logout?request="} {
			got := b.get(path + url.QueryEscape(to))
			if strings.Contains(got.path, "evil.test") && !strings.HasPrefix(got.path, "/") ||
				strings.Contains(got.body, "evil.test") {
				t.Errorf("%s%s: got %s %s", path, to, got.path, got.body)
			}
		}
	}
	if strings.Contains(b.get("/device?user_code="+url.QueryEscape(`"><script>`)).body, "<script>") {
		t.Error("a code is a script")
	}
}

var forms = map[string]url.Values{
	"/login":               values("loginName", "x"),
	"/forgot":              values("loginName", "x"),
	"/reset?user=usr_a":    values("newPassword", otherWord, "repeatPassword", otherWord),
	"/verify?user=usr_a":   values("code", "AAAAAAAA"),
	"/device":              values("userCode", "BBBB-BBBB", "do", "allow"),
	"/logout":              values("do", "endAll"),
	"/logout?request=some": values("do", "endAll"),
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	w := withMail(t)
	b := w.signedIn(w.person(w.org, true))
	for path, form := range forms {
		for _, headers := range [][]string{
			{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"}, {"Origin", "null", "Sec-Fetch-Site", ""},
			{"Origin", "", "Sec-Fetch-Site", ""},
			{"Origin", "https://evil.test", "Sec-Fetch-Site", "same-origin"},
			{"Origin", "", "Sec-Fetch-Site", "same-site"},
		} {
			b.send(http.MethodPost, path, form, headers...).shows(403, "This form was sent from another site")
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if got := b.send(method, path, nil, "Sec-Fetch-Site",
				"same-origin"); got.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, got.status)
			}
		}
	}
	b.get("/device").shows(200, "Connect a device") // still signed in
}

func TestHeadersAboutTheHostSelectNothing(t *testing.T) {
	w := withMail(t)
	jo, shop := w.person(w.org, true), w.application("Shop")
	lies := []string{"Host", "evil.test", "X-Forwarded-Host", "evil.test", "Forwarded", "host=evil.test;proto=https",
		"X-Forwarded-Proto", "https", "X-Original-Host", "evil.test"}
	b := w.browser()
	b.send(http.MethodPost, "/forgot", values("loginName", jo.email), lies...).shows(200)
	link := w.link(jo.email) // finds the address that the server was given
	in := w.signedIn(jo)
	token := in.authorize(shop).tokens(shop)["id_token"].(string)
	for _, path := range []string{link, "/login", "/forgot", "/reset?user=" + jo.id, "/verify", "/device",
		"/device?user_code=BBBB-BBBB", "/logout", "/account",
		logoutURL("client_id", shop, "post_logout_redirect_uri", farewell),
		logoutURL("id_token_hint", token, "post_logout_redirect_uri", farewell)} {
		for _, who := range []*browser{w.browser(), b, in} {
			got := who.send(http.MethodGet, path, nil, lies...)
			if strings.Contains(got.header.Get("Location"), "evil.test") || strings.Contains(got.body, "evil.test") {
				t.Errorf("%s: got %s %s", path, got.header.Get("Location"), got.body)
			}
		}
	}
}
