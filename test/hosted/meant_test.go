package hosted

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
)

// subject is whom the ID token beside others is about.
func subject(t *testing.T, tokens map[string]any) string {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens["id_token"].(string), ".")[1])
	must(t, err)
	var claims struct{ Sub string }
	must(t, json.Unmarshal(payload, &claims))
	return claims.Sub
}

func TestOnlyThePersonThatAnApplicationMeansGetsThrough(t *testing.T) {
	w := open(t, server.Config{})
	jo, ann, shop := w.person(w.org, true), w.person(w.org, true), w.application("Shop")
	here, there := w.signedIn(jo), w.signedIn(ann)
	hint := here.authorize(shop).tokens(shop)["id_token"].(string)
	meant := func(b *browser, more ...string) *page {
		return b.authorize(shop, append(more, "id_token_hint", hint)...)
	}
	refused := func(p *page, what string) {
		t.Helper()
		if got := p.arrival(callback); got.Get("error") != "login_required" {
			t.Errorf("%s: got %v", what, got)
		}
	}
	both := w.signedIn(jo, ann)
	if got := subject(t, meant(both).tokens(shop)); got != jo.id {
		t.Errorf("of two accounts, %s was taken", got)
	}
	if got := subject(t, meant(both, "prompt", "none").tokens(shop)); got != jo.id {
		t.Errorf("of two accounts, %s was taken without asking", got)
	}
	refused(meant(there, "prompt", "none"), "silently, with somebody else there")
	refused(meant(w.browser(), "prompt", "none"), "silently, with nobody there")
	refused(meant(there).shows(200, "loginName").signIn(ann.name, password), "somebody else who signs in")
	if got := subject(t, meant(there).signIn(jo.name, password).tokens(shop)); got != jo.id {
		t.Errorf("after a sign-in, %s was taken", got)
	}
	// What cannot be read says nothing, but nobody gets through by it unasked.
	other := w.application("Other")
	refused(here.authorize(other, "id_token_hint", hint, "prompt", "none"), "an ID token of another application")
	refused(here.authorize(shop, "id_token_hint", "nonsense", "prompt", "none"), "no ID token at all")
	here.authorize(shop, "id_token_hint", "nonsense").tokens(shop)
}

func TestASignInThatHasToBeNewIsAskedForOnce(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	b := w.signedIn(jo)
	b.authorize(shop, "max_age", "0").shows(200, "Confirm it’s you").post("password", password).tokens(shop)
	w.browser().authorize(shop, "max_age", "0").signIn(jo.name, password).tokens(shop)
	if got := b.authorize(shop, "max_age", "0", "prompt",
		"none").arrival(callback); got.Get("error") != "login_required" {
		t.Errorf("got %v", got)
	}
}

func TestAnApplicationThatAsksForNothingIsAllowedToo(t *testing.T) {
	w := open(t, server.Config{})
	shop := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	b := w.signedIn(w.person(w.org, true))
	b.authorize(shop, "scope", "").post("do", "allow").tokens(shop)
	b.authorize(shop, "scope", "", "prompt", "none").tokens(shop) // it was asked for once
}

func TestPeopleReadTheNameOfTheApplicationThatATokenIsFor(t *testing.T) {
	w := open(t, server.Config{})
	shop, stock := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true }), w.application("Stock API")
	scope := "openid urn:signet:org:id:" + w.org + " urn:signet:app:" + stock + ":aud"
	const words = "use <bdi>Stock API</bdi> on your behalf"
	b := w.signedIn(w.person(w.org, true))
	p := b.authorize(shop, "scope", scope).shows(200, words, "see which organization you belong to")
	p.post("do", "allow").tokens(shop)
	b.get("/account/applications").shows(200, words)
	b.get("/device").post("userCode", w.gadget(shop, scope).user).shows(200, words)
	// Who gave access to something that has gone is told so.
	for _, id := range []string{stock, shop} {
		w.do(event.Command{Write: []event.Ref{app.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
			a, err := app.Kind.Get(tx, id)
			if err != nil {
				return err
			}
			return a.Append(app.WasRemoved{})
		}})
	}
	b.get("/account/applications").shows(200, "An application that no longer exists",
		"use an application that no longer exists")
}

func TestTheOperatorsOwnApplicationAsksNobodyWhatIsUsual(t *testing.T) {
	w := open(t, server.Config{})
	customer, domain := w.organization()
	jo := w.person(customer, true)
	shop, stock := w.application("Shop", func(s *app.Settings) { s.AllOrganizations = true }), w.application("Stock API")
	w.marks(shop, true)
	w.marks(stock, true)
	b := w.browser()
	b.get("/login?other=1&to=/device").signIn(jo.name+"@"+domain, password).shows(200, "Connect a device")
	scope := "openid email offline_access urn:signet:app:" + stock + ":aud"
	b.authorize(shop, "scope", scope).tokens(shop)
	b.authorize(shop, "scope", scope, "prompt", "none").tokens(shop)
	b.get("/account/applications").shows(200, "Shop", "operator of this service", "see your e‑mail address",
		"use <bdi>Stock API</bdi> on your behalf")
	const question = "Allow access?"
	b.authorize(shop, "scope", scope, "prompt", "consent").shows(200, question, "belongs to another organization")
	b.authorize(shop, "scope", scope+" urn:signet:roles").shows(200, question)
	b.get("/device").post("userCode", w.gadget(shop, scope).user).shows(200, "Is this your device?", "Shop")

	w.marks(shop, false)
	b.authorize(shop, "scope", scope).shows(200, question)
}

// marks marks an application as the operator's own, or takes the mark away.
func (w *world) marks(id string, marked bool) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{app.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		a, err := app.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		return a.Append(app.FirstPartySet{Marked: marked, By: "usr_operator", At: tx.Now()})
	}})
}
