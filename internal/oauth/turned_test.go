package oauth

import (
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
)

// An application that others have more of since: codes, tokens and consents with scopes of the API end, all others go
// on.
func TestATurnedApplicationLosesWhatPeopleGaveItOfTheAPI(t *testing.T) {
	for _, client := range []string{"app_spa", "app_jwt", "app_asks"} {
		t.Run(client, func(t *testing.T) {
			w := newWorld(t)
			w.change(client, app.APIAccessSet{Scopes: []string{"signet.read", "signet.write"}})
			in := w.signIn("usr_a")
			agreed := func(scopes ...string) []string {
				if client == "app_asks" {
					return scopes
				}
				return nil
			}
			code := func(scopes string, agreed []string) string {
				to, err := w.Approve(t.Context(), w.begin(ask(client, scopes)), browser, in, agreed)
				must(t, err)
				return parameters(t, to.Address).Get("code")
			}
			tokens := func(scopes string, agreed []string) *Tokens {
				made, err := w.exchange(client, code(scopes, agreed))
				must(t, err)
				return made
			}
			api, plain := tokens("openid offline_access signet.read",
				agreed("openid", "offline_access", "signet.read")),
				tokens("openid offline_access", agreed("openid", "offline_access"))
			onTheWay := code("openid signet.read", nil)
			need := func(in *session.Bearer, scopes string) Need {
				p, err := w.Pending(t.Context(), w.begin(ask(client, scopes)), browser)
				must(t, err)
				unmet, err := w.Needs(t.Context(), p, in)
				must(t, err)
				return unmet.Need()
			}
			if !w.counts(api.Access) || need(in, "openid signet.read") != NeedsNothing {
				t.Fatal("what was given does not count")
			}

			w.change(client, app.APIConsentsEnded{})

			if w.counts(api.Access) || !w.counts(plain.Access) {
				t.Errorf("with the API %t, without %t", w.counts(api.Access), w.counts(plain.Access))
			}
			_, err := w.Refresh(t.Context(), w.client(client), api.Refresh, nil)
			wants(t, err, ErrInvalidGrant)
			// the scopes of the API are still to be had by it
			_, err = w.Refresh(t.Context(), w.client(client), api.Refresh, []string{"openid"})
			wants(t, err, ErrInvalidGrant)
			if _, err = w.Refresh(t.Context(), w.client(client), plain.Refresh, nil); err != nil {
				t.Errorf("a refresh token without the API: %v", err)
			}
			_, err = w.exchange(client, onTheWay)
			wants(t, err, ErrInvalidGrant)
			if need(in, "openid offline_access") != NeedsNothing {
				t.Error("people are asked about what they gave before")
			}
			if got := need(in, "openid signet.read"); got != NeedsConsent {
				t.Fatalf("nobody is asked again: %q", got)
			}
			_, err = w.Approve(t.Context(), w.begin(ask(client, "openid signet.read")), browser, in, nil)
			wants(t, err, ErrConsentRequired)
			list, err := w.Consents(t.Context(), in.Caller)
			must(t, err)
			for _, c := range list {
				if hasAPI(c.Scopes) {
					t.Errorf("listed %q", c.Scopes)
				}
			}

			again := tokens("openid signet.read", []string{"openid", "signet.read"})
			if !w.counts(again.Access) || need(in, "openid signet.read") != NeedsNothing ||
				need(in, "openid offline_access") != NeedsNothing {
				t.Error("what was given again does not count")
			}
			w.change(client, app.APIConsentsEnded{})
			if w.counts(again.Access) || need(in, "openid signet.read") != NeedsConsent {
				t.Error("it counts after the next change")
			}
		})
	}
}

// Scopes that somebody did not agree to again do not come back with those that they did.
func TestConsentToOneScopeOfTheAPIRenewsNoOther(t *testing.T) {
	w := newWorld(t)
	w.change("app_asks", app.APIAccessSet{Scopes: []string{"signet.read", "signet.write"}})
	in := w.signIn("usr_a")
	approve := func(scopes string, agreed ...string) {
		_, err := w.Approve(t.Context(), w.begin(ask("app_asks", scopes)), browser, in, agreed)
		must(t, err)
	}
	approve("openid signet.read signet.write", "openid", "signet.read", "signet.write")
	w.change("app_asks", app.APIConsentsEnded{})
	approve("openid signet.read", "openid", "signet.read")
	given := eventtest.State(t, w.store, Kind, IDFor("usr_a")).Data.Apps["app_asks"]
	if !given.covers([]string{"openid", "signet.read"}, 1) || given.covers([]string{"signet.write"}, 1) {
		t.Errorf("given %+v", given)
	}
}

// Somebody who agreed to other scopes and used those of the API without being asked is asked after a change, too.
func TestSomebodyWhoWasNeverAskedAboutTheAPIIsAskedAfterAChange(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	_, err := w.Approve(t.Context(), w.begin(ask("app_spa", "openid email")), browser, in, []string{"openid", "email"})
	must(t, err)
	w.change("app_spa", app.APIAccessSet{Scopes: []string{"signet.read"}})
	w.change("app_spa", app.APIConsentsEnded{})
	_, err = w.Approve(t.Context(), w.begin(ask("app_spa", "openid signet.read")), browser, in, nil)
	must(t, err)
	given := eventtest.State(t, w.store, Kind, IDFor("usr_a")).Data.Apps["app_spa"]
	if !given.covers([]string{"openid", "email"}, 1) || given.covers([]string{"signet.read"}, 1) {
		t.Errorf("given %+v", given)
	}
	w.change("app_spa", app.APIConsentsEnded{})
	_, err = w.Approve(t.Context(), w.begin(ask("app_spa", "openid signet.read")), browser, in, nil)
	wants(t, err, ErrConsentRequired)
}
