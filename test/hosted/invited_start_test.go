package hosted

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
)

// Whoever accepts an invitation for an application is sent to where it has people begin to sign in, however they accept.
// One without such an address is named, and nothing leads there.
func TestWhoAcceptsAnInvitationIsSentToItsApplication(t *testing.T) {
	w := ledWorld(t)
	w.rules(opened(policy.ToAll))
	const at, welcome = "https://shop.test/start?from=signet", "https://shop.test/welcome"
	shop := w.application("Shop", func(s *app.Settings) { s.InitiateLoginURI = at })
	bare := w.application("Bare")
	invited := func(b *browser, appID, email, target string) *browser {
		in := map[string]any{"email": email, "appId": appID}
		if target != "" {
			in["targetLinkUri"] = target
		}
		w.api("POST", "/v1/orgs/"+w.org+"/invitations", in)
		b.get(w.link(email))
		return b
	}
	// sent is where a page of ours leads by itself, and by its button.
	sent := func(p *page) *url.URL {
		t.Helper()
		p.shows(200, "Shop")
		m := leadsOn.FindStringSubmatch(p.body)
		if m == nil || html.UnescapeString(m[1]) != p.next() {
			t.Fatalf("%s leads nowhere: %s", p.path, p.body)
		}
		u, err := url.Parse(p.next())
		must(t, err)
		return u
	}
	is := func(p *page, loginName, target string) {
		t.Helper()
		want := values("from", "signet", "iss", w.url, "login_hint", loginName)
		if target != "" {
			want.Set("target_link_uri", target)
		}
		u := sent(p)
		got := u.Query()
		if u.RawQuery = ""; u.String() != "https://shop.test/start" || got.Encode() != want.Encode() {
			t.Errorf("sent to %s with %v, want %v", u, got, want)
		}
	}
	home, err := org.Kind.Read(t.Context(), w.server.Store(), w.org)
	must(t, err)
	domain := home.Data.PrimaryDomain()

	b := invited(w.browser(), shop, "one@acme.test", welcome)
	is(b.get("/login/invitation?with=password").post(chosen("userName", "one")...), "one@"+domain, welcome)
	b.authorize(shop, "login_hint", "one@"+domain).tokens(shop) // with the session that there is

	ann := w.person(w.org, true)
	b = invited(w.signedIn(ann), shop, ann.email, "")
	p := b.get("/login/invitation?with=account").shows(200, ann.email)
	is(p.post("do", "allow", "id", p.hidden("id")), ann.name+"@"+domain, "")

	w.who = "new"
	b = invited(w.browser(), shop, "two@acme.test", welcome)
	form := w.opens(b.get("/login/invitation").press())
	is(form.post("firstName", "Jo", "lastName", "Doe", "userName", "two"), "two@"+domain, welcome)

	b = invited(w.browser(), bare, "three@acme.test", "")
	p = b.get("/login/invitation?with=password").post(chosen("userName", "three")...).shows(200, "You have joined",
		"You can sign in to <bdi>Bare</bdi> now")
	if strings.Contains(p.body, `class="button"`) || leadsOn.MatchString(p.body) {
		t.Errorf("something leads on from %s", p.body)
	}

	// Where it was moved to another origin since, the page is left out; where it is switched off, the account is next.
	moved := w.application("Moved", func(s *app.Settings) { s.InitiateLoginURI = "https://shop.test/start" })
	b = invited(w.browser(), moved, "four@acme.test", welcome)
	w.api("PATCH", "/v1/apps/"+moved, map[string]any{"initiateLoginUri": "https://other.test/start",
		"updateMask": "initiateLoginUri"})
	p = b.get("/login/invitation?with=password").post(chosen("userName", "four")...).shows(200, "Moved")
	if to := p.next(); !strings.HasPrefix(to, "https://other.test/start?") || strings.Contains(to, "target_link_uri") {
		t.Errorf("sent to %s", to)
	}
	b = invited(w.browser(), moved, "five@acme.test", "")
	w.api("POST", "/v1/apps/"+moved+"/_deactivate", map[string]any{})
	if p = b.get("/login/invitation?with=password").post(chosen("userName", "five")...); p.path != "/account" {
		t.Errorf("at %s", p.path)
	}
}
