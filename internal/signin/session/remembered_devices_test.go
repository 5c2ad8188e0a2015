package session

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

const day = 24 * time.Hour

var (
	firefox = From{Peer: netip.MustParseAddr("192.0.2.1"),
		UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Rotate: true}
	newer = From{Peer: netip.MustParseAddr("198.51.100.7"),
		UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Gecko/20100101 Firefox/141.0", Rotate: true}
	safari = From{Peer: netip.MustParseAddr("192.0.2.1"),
		UserAgent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.0 Safari/605.1.15", Rotate: true}
)

// world has jo and kim, with a second factor each, in an installation that remembers devices for ten days.
type deviceWorld struct {
	Devices
	t     *testing.T
	store *eventtest.Store
}

func newDeviceWorld(t *testing.T) *deviceWorld {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, Kind)
	factors, err := factor.New(s.Master, "https://id.signet.test")
	must(t, err)
	w := &deviceWorld{t: t, store: s,
		Devices: Devices{&Sessions{Store: s, Factors: factors, Master: s.Master, Clock: s.Now, DefaultOrg: "org_a",
			Standings: &Standings{}}}}
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "a"})
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"},
		installation.PolicySet{Diff: policy.Policy{}.DiffTo(remember(10 * day))})
	for _, name := range []string{"jo", "kim"} {
		eventtest.Given(t, s, user.Kind, "usr_"+name, "org_a",
			[]event.Claim{user.NameClaim("org_a", syntax.NameKey(name))},
			user.HumanAdded{Personal: user.HumanFacts{UserName: name, UserNameKey: name,
				Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: "D"}}},
			user.PasswordSet{}, user.TOTPAdded{FactorID: "fac_" + name, Created: 1})
	}
	return w
}

func remember(life time.Duration) policy.Policy {
	return policy.Policy{Devices: policy.Devices{RememberDeviceSeconds: int64(life / time.Second)}}
}

func (w *deviceWorld) policy(everywhere, here policy.Policy) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, installation.Kind, installation.ID, "", nil,
		installation.PolicySet{Diff: eventtest.State(w.t, w.store, installation.Kind,
			installation.ID).Data.Policy.DiffTo(everywhere)})
	eventtest.Given(w.t, w.store, org.Kind, "org_a", "", nil,
		org.PolicySet{Diff: eventtest.State(w.t, w.store, org.Kind, "org_a").Data.Policy.DiffTo(here)})
}

// session opens one with a proof.
func (w *deviceWorld) session(userID string, proven bool) *access.Caller {
	w.t.Helper()
	token, hash := secret.NewToken(secret.Session)
	now := event.Micros(w.store.Now())
	data, err := json.Marshal(Proof{Methods: []Method{ByPassword}, SecondFactor: proven, At: now})
	must(w.t, err)
	u, o := eventtest.State(w.t, w.store, user.Kind, userID), eventtest.State(w.t, w.store, org.Kind, "org_a")
	w.store.GivenToken(event.Token{
		ID:       event.NewID("ses"),
		Hash:     hash,
		Kind:     string(secret.Session),
		UserID:   userID,
		Epoch:    u.Data.SessionEpoch,
		OrgEpoch: o.Data.Epoch,
		Created:  now,
		Expires:  now + time.Hour.Microseconds(),
		Data:     string(data),
	})
	return w.as(token)
}

func (w *deviceWorld) as(token string) *access.Caller {
	w.t.Helper()
	caller, err := w.Authenticate(w.t.Context(), token)
	must(w.t, err)
	return caller
}

// remembered is what a browser of somebody holds.
func (w *deviceWorld) remembered(userID string, there ...string) []string {
	w.t.Helper()
	tokens, err := w.Remember(w.t.Context(), w.session(userID, true), there, firefox)
	must(w.t, err)
	if len(tokens) == 0 {
		w.t.Fatal("it is not remembered")
	}
	return tokens
}

// recognized signs somebody in with a password, and tells whether no second factor is asked for.
func (w *deviceWorld) recognized(userID string, tokens []string, from From) bool {
	w.t.Helper()
	me := w.session(userID, false)
	if !me.MustProveSecondFactor {
		w.t.Fatal("nobody asks for a second factor")
	}
	out, ok, err := w.Recognize(w.t.Context(), me, tokens, from)
	must(w.t, err)
	if !ok {
		if now, err := w.Authenticate(w.t.Context(), out.Token); err == nil || out.Token != "" {
			w.t.Errorf("it is not recognized, and there is a token for %+v", now)
		}
		return false
	}
	if now := w.as(out.Token); now.MustProveSecondFactor || now.TokenID != me.TokenID {
		w.t.Errorf("it is recognized, and the session is %+v", now)
	}
	return true
}

func TestWhenARememberedDeviceCounts(t *testing.T) {
	jo := func(facts ...event.Fact[user.User]) func(*deviceWorld) {
		return func(w *deviceWorld) { eventtest.Given(w.t, w.store, user.Kind, "usr_jo", "", nil, facts...) }
	}
	nothing := func(*deviceWorld) {}
	for _, tt := range []struct {
		name    string
		happens func(*deviceWorld)
		who     string
		from    From
		bend    func(tokens []string) []string
		counts  bool
	}{
		{name: "at once", counts: true},
		{name: "a newer version from another place", from: newer, counts: true},
		{name: "another browser", from: safari},
		{name: "no browser at all", from: From{Rotate: true}},
		{name: "another person", who: "usr_kim"},
		{name: "among tokens of others",
			bend: func(t []string) []string { return []string{"", "x", "sgn_dev_x", t[0]} }, counts: true},
		{name: "no token", bend: func([]string) []string { return nil }},
		{name: "a part of it", bend: func(t []string) []string { return []string{t[0][:20]} }},
		{name: "just before it ends",
			happens: func(w *deviceWorld) { w.store.Advance(10*day - time.Second) }, counts: true},
		{name: "when it ends", happens: func(w *deviceWorld) { w.store.Advance(10 * day) }},
		{name: "a policy with a longer time",
			happens: func(w *deviceWorld) { w.policy(remember(90*day), policy.Policy{}); w.store.Advance(11 * day) }},
		{name: "a policy with a shorter time",
			happens: func(w *deviceWorld) { w.policy(remember(2*day), policy.Policy{}); w.store.Advance(2 * day) }},
		{name: "before that time is over", happens: func(w *deviceWorld) {
			w.policy(remember(2*day), policy.Policy{})
			w.store.Advance(2*day - time.Second)
		}, counts: true},
		{name: "a policy that remembers none",
			happens: func(w *deviceWorld) { w.policy(policy.Policy{}, policy.Policy{}) }},
		{name: "an organization with a shorter time",
			happens: func(w *deviceWorld) { w.policy(remember(10*day), remember(day)); w.store.Advance(day) }},
		{name: "an organization with a longer time",
			happens: func(w *deviceWorld) { w.policy(remember(day), remember(10*day)); w.store.Advance(day) }},
		{name: "an organization alone", happens: func(w *deviceWorld) { w.policy(policy.Policy{}, remember(10*day)) }},
		{name: "an organization that remembers none", happens: func(w *deviceWorld) {
			w.policy(remember(10*day), policy.Policy{Devices: policy.Devices{DevicesNotRemembered: true}})
		}},
		{name: "a password that was set", happens: jo(user.PasswordSet{})},
		{name: "a password that was changed", happens: jo(user.PasswordChanged{})},
		{name: "all sessions ended", happens: jo(user.SessionsEnded{})},
		{name: "deactivated and back", happens: jo(user.Deactivated{}, user.Reactivated{})},
		{name: "locked and back", happens: jo(user.WasLocked{}, user.Unlocked{})},
		{name: "the organization deactivated and back", happens: func(w *deviceWorld) {
			eventtest.Given(w.t, w.store, org.Kind, "org_a", "", nil, org.Deactivated{}, org.Reactivated{})
		}},
		{name: "a factor added", happens: jo(user.TOTPAdded{FactorID: "fac_new", Created: 2})},
		{name: "a factor replaced",
			happens: jo(user.FactorRemoved{FactorID: "fac_jo"}, user.TOTPAdded{FactorID: "fac_new", Created: 2})},
		{name: "recovery codes made", happens: jo(user.RecoveryCodesMade{Count: 10}), counts: true},
		{name: "ended by the person", happens: func(w *deviceWorld) {
			me := w.session("usr_jo", true)
			shown, _, err := w.List(w.t.Context(), Own(me), secret.Device, event.Cursor{}, 10)
			must(w.t, err)
			if len(shown) != 1 {
				w.t.Fatalf("listed %+v", shown)
			}
			must(w.t, w.EndDevice(w.t.Context(), Own(me), shown[0].ID))
			eventtest.As(w.t, w.EndDevice(w.t.Context(), Own(me), shown[0].ID), ErrDeviceNotFound)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newDeviceWorld(t)
			tokens := w.remembered("usr_jo")
			if tt.happens == nil {
				tt.happens = nothing
			}
			tt.happens(w)
			if tt.bend != nil {
				tokens = tt.bend(tokens)
			}
			if tt.from == (From{}) {
				tt.from = firefox
			}
			if tt.who == "" {
				tt.who = "usr_jo"
			}
			if got := w.recognized(tt.who, tokens, tt.from); got != tt.counts {
				t.Errorf("recognized: %t", got)
			}
		})
	}
}

// A session on a remembered device is not held up, and has proven one factor.
func TestARememberedDeviceProvesNothing(t *testing.T) {
	w := newDeviceWorld(t)
	tokens := w.remembered("usr_jo")
	mark := w.store.Mark()
	out, ok, err := w.Recognize(t.Context(), w.session("usr_jo", false), tokens, firefox)
	must(t, err)
	if !ok {
		t.Fatal("it is not recognized")
	}
	me := w.as(out.Token)
	proof, err := ProofOf(me.Session)
	must(t, err)
	if proof.SecondFactor || !slices.Equal(proof.Methods, []Method{ByPassword}) || Recent(me, w.store.Now()) {
		t.Errorf("the proof is %+v", proof)
	}
	if facts := w.store.Since(t, mark); len(facts) != 1 || facts[0].Type != (DeviceRecognized{}).EventType() {
		t.Errorf("recorded %+v", facts)
	}
	_, err = w.StartTOTP(t.Context(), me)
	eventtest.As(t, err, ErrNotRecent)
	_, err = w.MakeRecoveryCodes(t.Context(), me)
	eventtest.As(t, err, ErrNotRecent)
	_, err = w.RemoveFactor(t.Context(), me, event.IfMatch{}, "fac_jo")
	eventtest.As(t, err, ErrNotRecent)
	// Nor does it make another device known.
	more, err := w.Remember(t.Context(), me, nil, safari)
	must(t, err)
	if more != nil {
		t.Error("a remembered device has another one remembered")
	}
}

func TestWhoIsRemembered(t *testing.T) {
	for name, tt := range map[string]struct {
		happens func(w *deviceWorld)
		me      func(w *deviceWorld) *access.Caller
		err     error
		is      bool
	}{
		"after a second factor":     {is: true},
		"with the password alone":   {me: func(w *deviceWorld) *access.Caller { return w.session("usr_jo", false) }},
		"where the policy does not": {happens: func(w *deviceWorld) { w.policy(policy.Policy{}, policy.Policy{}) }},
		"with an old proof": {me: func(w *deviceWorld) *access.Caller {
			me := w.session("usr_jo", true)
			w.store.Advance(16 * time.Minute)
			return me
		}},
		"who has to change the password": {happens: func(w *deviceWorld) {
			eventtest.Given(w.t, w.store, user.Kind, "usr_jo", "", nil, user.PasswordSet{ChangeRequired: true})
		}},
		"who has no second factor": {happens: func(w *deviceWorld) {
			eventtest.Given(w.t, w.store, user.Kind, "usr_jo", "", nil, user.FactorRemoved{FactorID: "fac_jo"})
		}},
		"who came by a token": {me: func(w *deviceWorld) *access.Caller {
			token, hash := secret.NewToken(secret.PAT)
			w.store.GivenToken(event.Token{ID: "pat_1", Hash: hash, Kind: string(secret.PAT), UserID: "usr_jo",
				Epoch: 1, Expires: event.Micros(w.store.Now().Add(time.Hour))})
			return w.as(token)
		}, err: access.ErrUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeviceWorld(t)
			if tt.happens != nil {
				tt.happens(w)
			}
			me := w.session("usr_jo", true)
			if tt.me != nil {
				me = tt.me(w)
			}
			tokens, err := w.Remember(t.Context(), me, nil, firefox)
			if tt.err != nil {
				if err == nil {
					t.Error("it is remembered")
				}
				return
			}
			must(t, err)
			if (tokens != nil) != tt.is {
				t.Errorf("got %q", tokens)
			}
		})
	}
}

// A token of a device is worth nothing as a bearer token, and none of it is kept but its hash.
func TestATokenOfADeviceOpensNothing(t *testing.T) {
	w := newDeviceWorld(t)
	token := w.remembered("usr_jo")[0]
	_, err := w.Authenticate(t.Context(), token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	_, err = w.Session(t.Context(), token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	if w.store.Stored(t, token) {
		t.Error("the token is stored")
	}
}

// A browser holds one device for each person. Others of a person make room for new ones.
func TestDevicesAreBoundedInNumber(t *testing.T) {
	w := newDeviceWorld(t)
	kim := w.remembered("usr_kim")
	both := w.remembered("usr_jo", kim...)
	again := w.remembered("usr_jo", both...)
	if len(again) != 2 || again[1] != kim[0] || w.recognized("usr_jo", both[:1], firefox) ||
		!w.recognized("usr_jo", again, firefox) || !w.recognized("usr_kim", again, firefox) {
		t.Errorf("the browser holds %q", again)
	}
	for range MaxDevices + 3 {
		w.remembered("usr_jo")
	}
	kept, err := w.Store.TokensOf(t.Context(), "usr_jo", string(secret.Device), "", 100)
	must(t, err)
	if len(kept) != MaxDevices || w.recognized("usr_jo", again, firefox) || !w.recognized("usr_kim", again, firefox) {
		t.Errorf("%d are kept", len(kept))
	}
}

func TestOthersDevicesAreNotEnded(t *testing.T) {
	w := newDeviceWorld(t)
	w.remembered("usr_jo")
	kept, err := w.Store.TokensOf(t.Context(), "usr_jo", string(secret.Device), "", 1)
	must(t, err)
	eventtest.As(t, w.EndDevice(t.Context(), Own(w.session("usr_kim", true)), kept[0].ID), ErrDeviceNotFound)
	// What is a device is no session, and no token.
	mine := Own(w.session("usr_jo", true))
	eventtest.As(t, w.End(t.Context(), mine, kept[0].ID), ErrNotFound)
	eventtest.As(t, w.Revoke(t.Context(), mine, kept[0].ID), ErrTokenNotFound)
}

func TestADeviceThatEndsMeanwhileIsNotRecognized(t *testing.T) {
	w := newDeviceWorld(t)
	tokens := w.remembered("usr_jo")
	kept, err := w.Store.TokensOf(t.Context(), "usr_jo", string(secret.Device), "", 1)
	must(t, err)
	owner := w.session("usr_jo", true)
	var wait sync.WaitGroup
	wait.Go(func() { must(t, w.EndDevice(t.Context(), Own(owner), kept[0].ID)) })
	for range 8 {
		me := w.session("usr_jo", false)
		wait.Go(func() {
			if _, _, err := w.Recognize(t.Context(), me, tokens, firefox); err != nil &&
				!errors.Is(err, access.ErrUnauthenticated) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if w.recognized("usr_jo", tokens, firefox) {
		t.Error("it is recognized after its end")
	}
}

func TestListsShowDevicesThatCount(t *testing.T) {
	for name, happens := range map[string]event.Fact[user.User]{"": nil, "all sessions ended": user.SessionsEnded{},
		"a factor added": user.TOTPAdded{FactorID: "fac_new", Created: 2}} {
		w := newDeviceWorld(t)
		w.remembered("usr_jo")
		w.remembered("usr_kim")
		if happens != nil {
			eventtest.Given(t, w.store, user.Kind, "usr_jo", "", nil, happens)
		}
		shown, _, err := w.List(t.Context(), Own(w.session("usr_jo", true)), secret.Device, event.Cursor{}, 10)
		must(t, err)
		if (len(shown) == 1) != (happens == nil) || len(shown) > 1 {
			t.Errorf("%s: %+v", name, shown)
		}
		for _, d := range shown {
			if address, browser := d.OpenedFrom(); address != "192.0.2.1" || browser != "Firefox (Linux)" ||
				!d.Expires.Equal(w.store.Now().Add(10*day)) {
				t.Errorf("it is shown as %+v", d)
			}
		}
	}
}
