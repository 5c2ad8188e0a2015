package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
)

// tries starts a trial and opens it in the browser.
func (w *world) tries(in *session.Bearer, a request.Ask) string {
	w.t.Helper()
	caller := *in.Caller
	caller.Memberships = access.Memberships{"org_a": {access.OrgOwner}}
	permit, err := caller.In("org_a", access.AppWrite)
	must(w.t, err)
	t, err := w.StartTrial(w.t.Context(), permit, &caller, a, true)
	must(w.t, err)
	if t.ID == "" {
		w.t.Fatalf("refused: %+v", t.Refusal)
	}
	must(w.t, w.Trials().Open(w.t.Context(), t.ID, browser, func(id string) bool { return id == in.Token.ID }))
	return t.ID
}

// Whatever the pages do, the command that approves looks again whose trial it is, and in which browser.
func TestATrialIsApprovedForItsPersonOnly(t *testing.T) {
	w := newWorld(t)
	eventtest.Given(t, w.store, user.Kind, "usr_c", "org_a", []event.Claim{user.NameClaim("org_a", "kim")},
		user.HumanAdded{Personal: user.HumanFacts{UserName: "kim", UserNameKey: "kim"}})
	a, b := w.signIn("usr_a"), w.signIn("usr_c")
	id := w.tries(a, request.Ask{ClientID: "app_spa", Scope: "openid"})
	_, err := w.Approve(t.Context(), id, browser, b, []string{"openid"})
	wants(t, err, ErrRequestNotFound)
	_, err = w.Approve(t.Context(), id, "another browser", a, nil)
	wants(t, err, ErrRequestNotFound)
	_, err = w.Refuse(t.Context(), id, "another browser", ErrAccessDenied)
	wants(t, err, ErrRequestNotFound)
	_, err = w.Pending(t.Context(), id, "another browser")
	wants(t, err, ErrRequestNotFound)
	to, err := w.Approve(t.Context(), id, browser, a, nil)
	if must(t, err); to.Address != "/console/apps/app_spa/try?trial="+id {
		t.Errorf("sent to %s", to)
	}
	for name, again := range map[string]func() error{
		"shown":    func() error { _, err := w.Pending(t.Context(), id, browser); return err },
		"approved": func() error { _, err := w.Approve(t.Context(), id, browser, a, nil); return err },
		"refused":  func() error { _, err := w.Refuse(t.Context(), id, browser, ErrAccessDenied); return err },
	} {
		if err := again(); !errors.Is(err, ErrRequestNotFound) {
			t.Errorf("%s a second time: %v", name, err)
		}
	}
	_, _, err = w.FinishTrial(t.Context(), b.Caller, id)
	wants(t, err, trial.ErrNotFound)
}

func TestATrialIsFinishedOnceAndExpires(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	id := w.tries(in, request.Ask{ClientID: "app_spa", Scope: "openid"})
	_, err := w.Approve(t.Context(), id, browser, in, nil)
	must(t, err)
	var done sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		done.Go(func() { _, _, errs[i] = w.FinishTrial(t.Context(), in.Caller, id) })
	}
	done.Wait()
	finished := 0
	for _, err := range errs {
		if err == nil {
			finished++
		} else if !errors.Is(err, trial.ErrNotFound) {
			t.Error(err)
		}
	}
	if finished != 1 {
		t.Errorf("finished %d times", finished)
	}
	id = w.tries(in, request.Ask{ClientID: "app_spa", Scope: "openid"})
	w.store.Advance(trial.Life + time.Second)
	_, err = w.Pending(t.Context(), id, browser)
	wants(t, err, ErrRequestNotFound)
	_, err = w.GetTrial(t.Context(), in.Caller, id)
	wants(t, err, trial.ErrNotFound)
}

// The reason that is given is the one that decides.
func TestWhyARequestNeedsWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		client string
		who    string
		ask    request.Ask
		since  func(w *world)
		need   Need
		why    string
	}{
		{client: "app_spa", who: "usr_a", need: NeedsNothing, why: "nothing_missing"},
		{client: "app_spa", who: "usr_a", ask: request.Ask{Prompt: "login"},
			since: func(w *world) { w.store.Advance(time.Second) }, need: NeedsSignIn, why: "prompt:login"},
		{client: "app_spa", who: "usr_a", ask: request.Ask{MaxAge: "60"},
			since: func(w *world) { w.store.Advance(time.Hour) }, need: NeedsSignIn, why: "max_age:60"},
		{client: "app_spa", who: "usr_a",
			ask:  request.Ask{Claims: `{"id_token":{"acr":{"essential":true,"value":"` + claimset.MultiFactor + `"}}}`},
			need: NeedsFactor, why: "acr_claim"},
		{client: "app_spa", who: "usr_a", ask: request.Ask{Claims: `{"id_token":{"sub":{"value":"usr_b"}}}`},
			need: NeedsOtherPerson, why: "id_token"},
		{client: "app_spa", who: "usr_a", ask: request.Ask{Scope: "openid urn:signet:org:id:org_b"},
			need: NeedsOtherAccount, why: "other_organization:org_b"},
		{client: "app_spa", who: "usr_a", ask: request.Ask{Prompt: "consent"}, need: NeedsConsent,
			why: "prompt:consent"},
		{client: "app_asks", who: "usr_a", need: NeedsConsent, why: "setting:consentRequired"},
		{client: "app_all", who: "usr_a", need: NeedsConsent, why: "application_of_other_organization"},
		{client: "app_spa", who: "usr_a", ask: request.Ask{Scope: "openid signet.passwords"}, since: func(w *world) {
			w.change("app_spa", app.APIAccessSet{Scopes: []string{"signet.passwords"}})
		}, need: NeedsConsent, why: "scope:signet.passwords"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			w := newWorld(t)
			in := w.signIn(tt.who)
			if tt.since != nil {
				tt.since(w)
			}
			a := ask(tt.client, "openid")
			if tt.ask.Scope != "" {
				a.Scope = tt.ask.Scope
			}
			a.Prompt, a.MaxAge, a.Claims = tt.ask.Prompt, tt.ask.MaxAge, tt.ask.Claims
			p, err := w.Pending(t.Context(), w.begin(a), browser)
			must(t, err)
			unmet, err := w.Needs(t.Context(), p, in)
			must(t, err)
			need, why := unmet.Need(), p.Why(unmet)
			if got := strings.TrimSuffix(string(why.Because)+":"+why.Detail, ":"); need != tt.need || got != tt.why {
				t.Errorf("it needs %q because of %s", need, got)
			}
			if text := why.Message(); text == "" || strings.Contains(text, "%") ||
				why.Detail != "" && why.Because != trial.OtherOrg && !strings.Contains(text, why.Detail) {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// A condition that is not met never passes: it needs something, it refuses, and a trial says why.
func TestEveryConditionNeedsSomething(t *testing.T) {
	age := int64(60)
	r := &Request{MaxAge: &age, Org: "org_b", Scopes: []string{"signet.passwords"}}
	for u := NothingUnmet + 1; u <= UnmetConsentChanged; u++ {
		if u.Need() == NeedsNothing || refusals[u.Need()] == nil || r.Why(u).Because == trial.NothingMissing {
			t.Errorf("%d needs %q, because of %v", u, u.Need(), r.Why(u))
		}
	}
	if NothingUnmet.Need() != NeedsNothing || refusals[NeedsNothing] != nil {
		t.Error("a request that lacks nothing is refused")
	}
}

// Claims that are left out of a token say why, also those about roles.
func TestWhyClaimsAreLeftOut(t *testing.T) {
	held := project.Held{Roles: map[string][]string{"o": {"admin"}}, Groups: map[string][]string{},
		Metadata: map[string]string{"k": "v"}}
	large := project.Held{Roles: map[string][]string{"o": {strings.Repeat("k", claimset.MaxToken)}}}
	for name, tt := range map[string]struct {
		add  func(claimset.Set)
		want []string
	}{
		"nothing is switched on": {func(s claimset.Set) { claimset.AddRolesToToken(s, project.Held{}, claimset.Mapped{}) },
			[]string{claimset.Roles + " setting", claimset.Groups + " setting", claimset.Metadata + " setting"}},
		"all is switched on": {func(s claimset.Set) { claimset.AddRolesToToken(s, held, claimset.Mapped{}) }, nil},
		"it is too large": {func(s claimset.Set) { claimset.AddRolesToToken(s, large, claimset.Mapped{}) },
			[]string{claimset.Roles + " size"}},
		"others read it": {func(s claimset.Set) {
			claimset.AddRolesToToken(s, project.Held{}, claimset.Mapped{})
			claimset.WithholdRoles(s, held, project.Held{})
		}, []string{claimset.Roles + " audience", claimset.Groups + " audience", claimset.Metadata + " audience"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := claimset.New(true)
			tt.add(s)
			var got []string
			for claim, why := range s.Missing() {
				got = append(got, fmt.Sprint(claim, " ", why.Lack))
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("missing are %q", got)
			}
			plain := claimset.New(false)
			tt.add(plain)
			if len(plain.Values) != len(s.Values) || plain.Missing() != nil {
				t.Errorf("without reasons there are %v, with them %v", plain.Values, s.Values)
			}
		})
	}
}
