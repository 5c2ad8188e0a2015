package hosted

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

// A real sign-in links somebody by the address, and keeps those whose link has to be confirmed. A trial does neither.
func TestATrialLinksNobody(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		config := w.portal.Config("Corp", "")
		config["linkByEmail"] = true
		corp := w.api("POST", "/v1/idps/jwt", config)["idpId"].(string)
		jo := w.owner(w.org)
		const domain, address = "corp.test", "jo@corp.test"
		w.do(event.Command{
			Write:  []event.Ref{org.Kind.Ref(w.org)},
			Claims: []event.Claim{org.DomainClaim(domain), org.ProvenClaim(domain)},
			Decide: func(tx *event.Tx) error {
				o, err := org.Kind.Get(tx, w.org)
				if err != nil {
					return err
				}
				return o.Append(org.DomainAdded{Domain: domain}, org.DomainVerified{Domain: domain, Proven: true})
			},
		})
		w.happens(jo.id, user.EmailChanged{Verified: new(true),
			Verification: &user.Verification{By: user.VerifiedByOwner, At: 1},
			Personal:     user.EmailFacts{Email: new(address), EmailKey: new(address)}})
		linked := func() int {
			t.Helper()
			u, err := user.Kind.Read(t.Context(), w.server.Store(), jo.id)
			must(t, err)
			return len(u.Data.Human.Links)
		}
		// through comes back from the provider with jo's address.
		through := func(b *browser, query url.Values) *page {
			t.Helper()
			state := w.sent(b.get("/login/idp/" + corp + "?" + query.Encode()).press())
			return b.send(http.MethodGet, callbackOf(corp, state), nil, "Authorization",
				"Bearer "+w.portal.Token(corp, "boss", map[string]any{"email": address}))
		}
		tries := func(t *testing.T) {
			t.Helper()
			b := w.signedIn(jo)
			tr, had := b.try(w.shop, "prompt", "login"), linked()
			tr.get(tr.address).shows(200, "Password")
			before := w.positions()
			tr.arrived(through(b, url.Values{"request": {tr.id}, "other": {"1"}}).follow())
			if r := tr.finish(); r.Answer != nil || r.Trial.Refusal.Error != "trial_new_account" {
				t.Errorf("got %s", r.text)
			}
			if linked() != had || w.positions() != before {
				t.Errorf("there were %d links, and now %d; %d events were recorded", had, linked(),
					w.positions()-before)
			}
		}
		t.Run("by the address", tries)
		through(w.browser(), url.Values{"to": {"/account"}}).follow().shows(200)
		if linked() != 1 {
			t.Fatal("a real sign-in links nobody")
		}
		w.happens(jo.id, user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwner}})
		w.do(event.Command{Write: []event.Ref{idp.Kind.Ref(corp)}, Decide: func(tx *event.Tx) error {
			p, err := idp.Kind.Get(tx, corp)
			if err != nil {
				return err
			}
			return p.Append(idp.Vouched{By: "usr_admin", Roles: access.Memberships{w.org: {access.OrgOwner}}})
		}})
		t.Run("whose link has to be confirmed", tries)
		t.Run("who came before", func(t *testing.T) {
			b := w.signedIn(jo)
			held, err := url.Parse(through(b, url.Values{"to": {"/account"}, "other": {"1"}}).header.Get("Location"))
			must(t, err)
			arrival := held.Query().Get("arrival")
			if arrival == "" {
				t.Fatalf("nobody has to confirm anything: %s", held)
			}
			tr := b.try(w.shop, "prompt", "login")
			tr.get(tr.address).shows(200, "Password")
			b.get("/login?"+url.Values{"request": {tr.id}, "arrival": {arrival}}.Encode()).shows(400, "expired")
			b.get("/login?" + held.Query().Encode()).shows(200)
		})
		t.Run("who wants to", func(t *testing.T) {
			b := w.signedIn(jo)
			tr := b.try(w.shop, "prompt", "login")
			in, err := url.Parse(tr.get(tr.address).shows(200, "Password").path)
			must(t, err)
			query := in.Query()
			query.Set("link", "1")
			if back := through(b, query); strings.Contains(back.header.Get("Location"), "arrival=") {
				t.Errorf("got %d %s", back.status, back.header.Get("Location"))
			}
		})
	})
}

func TestATrialLeadsToNoRegistration(t *testing.T) {
	w := withMail(t)
	w.rules(opened(policy.ToAll))
	shop, jo := w.application("Shop"), w.owner(w.org)
	b := w.signedIn(jo)
	tr := b.try(shop, "prompt", "create")
	tr.arrived(tr.get(tr.address))
	r := tr.finish()
	if r.Answer == nil || len(r.Trial.Request.Findings) != 1 || r.Trial.Request.Findings[0].Code != "no_registration" {
		t.Errorf("got %s", r.text)
	}
	tr = b.try(shop, "prompt", "login")
	p := b.get(tr.get(tr.address).path + "&other=1&account=").shows(200)
	if strings.Contains(p.body, "/login/register") {
		t.Error("an account is offered")
	}
	if p := b.get("/login/register?request="+tr.id).shows(200,
		"Create your account"); strings.Contains(p.body, "Shop") ||
		strings.Contains(html.UnescapeString(p.body), tr.id) {
		t.Errorf("the page is about the trial: %s", p.body)
	}
}

// What a browser asks for is kept only if it is there.
func TestATrialKeepsNoProviderThatIsNotThere(t *testing.T) {
	w := open(t, server.Config{})
	shop, jo := w.application("Shop"), w.owner(w.org)
	b := w.signedIn(jo)
	tr := b.try(shop, "prompt", "login")
	tr.get(tr.address).shows(200, "Password")
	long := strings.Repeat("x", 5000)
	b.get("/login/idp/" + long + "?request=" + tr.id).shows(404)
	if got := tr.fetch("/v1/sign_in_trials/"+tr.id, tr.token()).shows(200,
		"SIGN_IN_TRIAL_STATE_RUNNING"); strings.Contains(got.body, long) {
		t.Error("it is kept")
	}
}
