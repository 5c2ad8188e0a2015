package oauth

import (
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
)

var (
	marked   = app.FirstPartySet{Marked: true, By: "usr_iam", At: 1}
	unmarked = app.FirstPartySet{By: "usr_iam", At: 2}
)

// own is vendor, in which app_spa and its API app_web are the operator's own. app_jwt is not. app_all is, but belongs to
// somebody else.
func ownWorld(t *testing.T, s app.RoleSettings) *world {
	t.Helper()
	w := vendor(t, s)
	w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
	for _, id := range []string{"app_spa", "app_web", "app_all"} {
		w.change(id, marked)
	}
	w.change("app_all", app.AudienceApproved{ClientID: "app_spa", ClientOrg: "org_a", At: 1})
	return w
}

// approves lets an application have what it asks of somebody who is not asked, and gives the tokens.
func (w *world) approves(a request.Ask, userID string) (*Tokens, error) {
	w.t.Helper()
	to, err := w.Approve(w.t.Context(), w.begin(a), browser, w.signIn(userID), nil)
	if err != nil {
		return nil, err
	}
	return w.exchange(a.ClientID, parameters(w.t, to.Address).Get("code"))
}

func TestPeopleAreNotAskedWhatIsUsualForTheOperatorsOwnApplication(t *testing.T) {
	const all = "openid profile email phone offline_access urn:signet:org urn:signet:org:id:org_b"
	aud := func(id string) string { return "openid offline_access " + audience + id + ":aud" }
	for name, c := range map[string]struct {
		scopes string
		roles  app.RoleSettings
		prompt string
		change func(*world)
		asks   bool
		person string
	}{
		"all that is usual":       {scopes: all},
		"nothing":                 {},
		"a domain":                {scopes: "openid offline_access urn:signet:org:domain:b.test"},
		"roles and groups":        {scopes: "openid offline_access", roles: app.RoleSettings{Roles: true, Groups: true}},
		"metadata":                {scopes: "openid", roles: app.RoleSettings{Metadata: []string{"plan"}}, asks: true},
		"roles in Signet":         {scopes: "openid " + claimset.RolesScope, asks: true},
		"the general API":         {scopes: "openid signet.self", asks: true},
		"more of the API":         {scopes: "openid signet.passwords", asks: true},
		"an audience, marked too": {scopes: aud("app_web")},
		"itself":                  {scopes: aud("app_spa")},
		"another audience":        {scopes: aud("app_jwt"), asks: true},
		"one of somebody else":    {scopes: aud("app_all"), asks: true},
		"that wants it":           {scopes: all, prompt: "consent", asks: true},
		"that is set to ask": {scopes: all, asks: true,
			change: func(w *world) { w.change("app_spa", app.SettingsChanged{ConsentRequired: new(true)}) }},
		"that is set to ask, about more": {scopes: all, asks: true,
			change: func(w *world) {
				w.change("app_spa", app.SettingsChanged{ConsentRequired: new(true)})
				w.agreed("app_spa", "usr_b", "openid")
			}},
		"whose mark was taken away": {scopes: all, asks: true,
			change: func(w *world) { w.change("app_spa", unmarked) }},
		"whose audience lost its mark": {scopes: aud("app_web"), asks: true,
			change: func(w *world) { w.change("app_web", unmarked) }},
		"its own people about the API": {scopes: "openid offline_access signet.passwords", person: "usr_a", asks: true},
		"its own people":               {scopes: "openid offline_access signet.self", person: "usr_a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ownWorld(t, c.roles)
			w.change("app_spa", app.APIAccessSet{Scopes: []string{"signet.passwords", "signet.self"}})
			if c.change != nil {
				c.change(w)
			}
			person := c.person
			if person == "" {
				person = "usr_b"
			}
			a := ask("app_spa", c.scopes)
			a.Prompt = c.prompt
			p, err := w.Pending(t.Context(), w.begin(a), browser)
			must(t, err)
			unmet, err := w.Needs(t.Context(), p, w.signIn(person))
			must(t, err)
			if (unmet.Need() == NeedsConsent) != c.asks || !c.asks && unmet != NothingUnmet {
				t.Errorf("it needs %q", unmet.Need())
			}
			made, err := w.approves(a, person)
			if c.asks {
				wants(t, err, ErrConsentRequired)
				made = w.agreed("app_spa", person, c.scopes)
			} else {
				must(t, err)
			}
			if strings.Contains(c.scopes, "offline_access") {
				if _, err = w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil); err != nil {
					t.Errorf("refreshed: %v", err)
				}
			}
		})
	}
}

func TestWhatNobodyWasAskedAboutEndsWithTheMark(t *testing.T) {
	for name, c := range map[string]struct{ scopes, loses string }{
		"of the application": {"openid email offline_access", "app_spa"},
		"of its audience":    {"openid offline_access " + audience + "app_web:aud", "app_web"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ownWorld(t, app.RoleSettings{})
			made, err := w.approves(ask("app_spa", c.scopes), "usr_b")
			must(t, err)
			to, err := w.Approve(t.Context(), w.begin(ask("app_spa", c.scopes)), browser, w.signIn("usr_b"), nil)
			must(t, err)
			if !w.counts(made.Access) {
				t.Fatal("the token does not count")
			}

			w.change(c.loses, unmarked)

			if w.counts(made.Access) != (c.loses != "app_spa") {
				t.Error("the access token counts on, or an application without a change lost it")
			}
			_, err = w.exchange("app_spa", parameters(t, to.Address).Get("code"))
			wants(t, err, ErrInvalidGrant)
			_, err = w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
			wants(t, err, ErrInvalidGrant)
			_, err = w.approves(ask("app_spa", c.scopes), "usr_b")
			wants(t, err, ErrConsentRequired)
		})
	}
}

func TestADeviceAsksForTheOperatorsOwnApplicationToo(t *testing.T) {
	w := ownWorld(t, app.RoleSettings{})
	w.change("app_tv", marked)
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), []string{"openid"})
	must(t, err)
	p, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	in := w.signIn("usr_b")
	wants(t, w.ApproveDevice(t.Context(), p, in, nil), ErrConsentRequired)
	must(t, w.ApproveDevice(t.Context(), p, in, p.Asks()))
	_, err = w.DeviceTokens(t.Context(), w.client("app_tv"), d.DeviceCode)
	must(t, err)
}

// The account page lists what the operator's own application sees, whether people were asked about it or not. Only what
// they were asked about is a consent.
func TestWhatTheOperatorsOwnApplicationSeesIsListed(t *testing.T) {
	w := ownWorld(t, app.RoleSettings{Roles: true})
	w.change("app_spa", app.APIAccessSet{Scopes: []string{"signet.self"}})
	in := w.signIn("usr_b")
	sees := func(want ...string) {
		t.Helper()
		list, err := w.Consents(t.Context(), in.Caller)
		must(t, err)
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(list[0].Scopes)); len(list) != 1 || !list[0].FirstParty ||
			!slices.Equal(got, want) {
			t.Errorf("listed %+v, want %q", list, want)
		}
	}
	unasked := func(scopes string) {
		t.Helper()
		_, err := w.approves(ask("app_spa", scopes), "usr_b")
		must(t, err)
	}
	unasked("openid email")
	sees("openid", "email", claimset.Roles)
	w.agreed("app_spa", "usr_b", "openid signet.self")
	sees("openid", "email", claimset.Roles, "signet.self")
	unasked("openid phone")
	sees("openid", "email", "phone", claimset.Roles, "signet.self")
	mark := w.store.Mark()
	unasked("openid phone email")
	unasked("openid signet.self email") // the API was agreed to, the rest is usual
	if news := w.store.Since(t, mark); slices.ContainsFunc(news, func(f eventtest.Fact) bool { return f.Type == "consent.given.v1" }) {
		t.Errorf("recorded again: %+v", news)
	}
	w.agreed("app_spa", "usr_b", "openid phone")
	sees("openid", "email", "phone", claimset.Roles, "signet.self")

	given := eventtest.State(t, w.store, Kind, IDFor("usr_b")).Data.Apps["app_spa"]
	if given.covers([]string{"email"}, 0) || !given.covers([]string{"openid", "phone", "signet.self"}, 0) {
		t.Errorf("agreed to %q", given.Scopes)
	}
	w.change("app_spa", unmarked)
	_, err := w.approves(ask("app_spa", "openid email"), "usr_b")
	wants(t, err, ErrConsentRequired)
}

// A node of the version before would forget what nobody was asked about, and ask, or let others change the application.
func TestTheMarkWaitsForEveryNode(t *testing.T) {
	const since = 6
	if (Given{Scopes: []string{"openid"}}).Since() != 0 || (Given{Seen: []string{"openid"}}).Since() != since ||
		marked.Since() != since || unmarked.Since() != since || event.FactVersion < since {
		t.Error("it waits without need, or not at all")
	}
}
