package session

import (
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// A session knows of both factors when each was proven last, whichever comes first.
func TestASessionKnowsWhenEachFactorWasProven(t *testing.T) {
	password := func(t *testing.T, a *armed, me *access.Caller) {
		_, err := a.sessions.Reauthenticate(t.Context(), me, right, fromHome)
		must(t, err)
	}
	code := func(t *testing.T, a *armed, me *access.Caller) {
		_, err := a.sessions.Prove(t.Context(), me, a.code(), fromHome)
		must(t, err)
	}
	passkey := func(t *testing.T, a *armed, me *access.Caller) {
		_, err := a.sessions.Prove(t.Context(), me, a.assertion(t, me), fromHome)
		must(t, err)
	}
	unverified := func(t *testing.T, a *armed, me *access.Caller) {
		a.device.Unverified = true
		passkey(t, a, me)
	}
	type step = func(t *testing.T, a *armed, me *access.Caller)
	for _, tt := range []struct {
		name          string
		ways          []policy.Way
		steps         []step // one a minute, after the password at 0
		first, second int64  // in minutes; -1: not proven
	}{
		{"the password alone", nil, nil, 0, -1},
		{"the password twice", nil, []step{password}, 1, -1},
		{"a code", nil, []step{code}, 0, 1},
		{"two codes", nil, []step{code, code}, 0, 2},
		{"a code and the password", nil, []step{code, password}, 2, 1},
		{"a code and the password twice", nil, []step{code, password, password}, 3, 1},
		{"a code, the password and a code", nil, []step{code, password, code}, 2, 3},
		{"the password and two codes", nil, []step{password, code, code}, 1, 3},
		{"a passkey that is both", nil, []step{passkey}, 1, 1},
		{"a passkey that is both, and a code", nil, []step{passkey, code}, 1, 2},
		{"a code and a passkey that is both", nil, []step{code, passkey}, 2, 2},
		{"a passkey that did not make sure who uses it", nil, []step{unverified}, 0, 1},
		{"a passkey where it is no way in", []policy.Way{policy.WithPassword}, []step{passkey}, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := arm(t)
			eventtest.Given(t, a.Store, org.Kind, "org_def", "", nil,
				org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SignIn: policy.SignIn{SignInMethods: tt.ways}})})
			in := signIn(t, a.sessions)
			begun := a.Now()
			for _, step := range tt.steps {
				a.Advance(time.Minute)
				step(t, a, as(t, a.sessions, in.Token))
			}
			proof, err := ProofOf(as(t, a.sessions, in.Token).Session)
			must(t, err)
			first, second := proof.Known().Proven(true)
			since := func(at int64) int64 {
				if at == 0 {
					return -1
				}
				return int64(event.Time(at).Sub(begun) / time.Minute)
			}
			if since(first) != tt.first || since(second) != tt.second {
				t.Errorf("the first at %d, the second at %d: %+v", since(first), since(second), proof)
			}
		})
	}
}

// Of a session that came through a provider nothing is known to be fresher than the provider says.
func TestAProofIsAsFreshAsIsKnown(t *testing.T) {
	const opened, said, later, factor = 1000, 400, 2000, 1500 // moments
	up := func(said int64, fresh bool) *Upstream { return &Upstream{Provider: "idp_1", Said: said, Fresh: fresh} }
	for _, tt := range []struct {
		name     string
		proof    Proof
		enrolled bool
		want     Known
		at, last int64
	}{
		{"a password", Proof{Methods: []Method{ByPassword}, At: opened}, false, Known{First: opened}, opened, opened},
		{"a password and a code",
			Proof{Methods: []Method{ByPassword, ByTOTP}, At: factor, FirstAt: opened, SecondFactor: true}, true,
			Known{First: opened, Second: factor, Factor: true}, factor, factor},
		{"a password, of somebody who did not prove the second factor",
			Proof{Methods: []Method{ByPassword}, At: opened}, true, Known{First: opened}, opened, opened},
		{"a password on a remembered device", Proof{Methods: []Method{ByPassword}, At: opened, Device: "dev_1"}, true,
			Known{First: opened, device: true}, opened, 0},
		{"a passkey alone", Proof{Methods: []Method{ByPasskey}, At: opened, SecondFactor: true}, true,
			Known{First: opened, Second: opened, Factor: true}, opened, opened},
		{"a provider that does not say when", Proof{Methods: []Method{ByProvider}, At: opened, Upstream: up(0, false)},
			false, Known{}, 0, 0},
		{"a provider that says when", Proof{Methods: []Method{ByProvider}, At: opened, Upstream: up(said, false)},
			false, Known{First: said}, said, said},
		{"a provider that says when, of two factors",
			Proof{Methods: []Method{ByProvider}, At: opened, SecondFactor: true, Upstream: up(said, false)}, true,
			Known{First: said, Second: said, Factor: true}, said, said},
		{"a provider that does not say when, of two factors",
			Proof{Methods: []Method{ByProvider}, At: opened, SecondFactor: true, Upstream: up(0, false)}, true,
			Known{Factor: true}, 0, 0},
		{"a provider on a remembered device",
			Proof{Methods: []Method{ByProvider}, At: opened, Device: "dev_1", Upstream: up(said, false)}, true,
			Known{First: said, device: true}, said, 0},
		{"a provider, and a code here",
			Proof{Methods: []Method{ByProvider, ByTOTP}, At: factor, FirstAt: opened, SecondFactor: true,
				Upstream: up(0, false)}, true, Known{First: factor, Second: factor, Factor: true}, factor, factor},
		{"a provider, and a password here",
			Proof{Methods: []Method{ByProvider, ByPassword}, At: later, Upstream: up(0, true)}, false,
			Known{First: later}, later, later},
		{"a provider, and a password here, of the version before",
			Proof{Methods: []Method{ByProvider, ByPassword}, At: later, Upstream: up(0, false)}, false,
			Known{First: later}, later, later},
		{"a provider that asked again", Proof{Methods: []Method{ByProvider}, At: later, Upstream: up(0, true)}, false,
			Known{First: later}, later, later},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.proof.Known()
			if got != tt.want || got.At() != tt.at || got.Last(tt.enrolled) != tt.last {
				t.Errorf("it is %+v, at %d, last %d", got, got.At(), got.Last(tt.enrolled))
			}
		})
	}
	// Whatever is proven here is known from then on.
	p := Proof{Methods: []Method{ByProvider}, At: opened, Upstream: up(said, false)}
	before := p.Upstream
	p.first(later)
	if k := p.Known(); k.First != later || before.Said != said {
		t.Errorf("it is %+v, and was %+v", k, before)
	}
}

// Who holds a passkey that was removed is told so. Everybody else gets the one answer of all sign-ins that fail: not
// even somebody who knows the passkey's identifier and its owner learns whether it counts, or ever did.
func TestOnlyWhoHoldsAPasskeyLearnsThatItWasRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		bend func(t *testing.T, a *armed, forged *factortest.Passkey)
		want *errs.Error
	}{
		"its owner": {func(*testing.T, *armed, *factortest.Passkey) {}, ErrPasskeyRemoved},
		"somebody who knows its identifier and owner": {func(_ *testing.T, a *armed, forged *factortest.Passkey) {
			forged.ID, forged.Handle = a.device.Passkeys[0].ID, a.device.Passkeys[0].Handle
			a.device.Passkeys = []*factortest.Passkey{forged}
		}, errPasskeyFailed},
		"somebody with a passkey of their own": {func(_ *testing.T, a *armed, forged *factortest.Passkey) {
			forged.Handle = a.device.Passkeys[0].Handle
			a.device.Passkeys = []*factortest.Passkey{forged}
		}, errPasskeyFailed},
		"its owner as somebody else": {func(_ *testing.T, a *armed, _ *factortest.Passkey) {
			a.device.Passkeys[0].Handle = []byte("usr_kim")
		}, errPasskeyFailed},
		"its owner without proving to be": {func(_ *testing.T, a *armed, _ *factortest.Passkey) {
			a.device.Unverified = true
		}, errPasskeyFailed},
		"its owner on another site": {func(_ *testing.T, a *armed, _ *factortest.Passkey) {
			a.device.Origin = "https://evil.test"
		}, errPasskeyFailed},
		"its owner, who was erased": {func(t *testing.T, a *armed, _ *factortest.Passkey) {
			eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.WasRemoved{})
		}, errPasskeyFailed},
	} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			person(t, a.Store, "usr_kim", "org_def", "kim", "")
			_, err := factor.RemoveFor(t.Context(), a.Store, manager(t, "org_def"), "usr_jo", event.IfMatch{},
				eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Human.Factors[1].ID)
			must(t, err)
			other := &factortest.Authenticator{Origin: externalURL}
			options, err := a.sessions.StartPasskey(t.Context(), as(t, a.sessions, a.first.Token))
			must(t, err)
			_, err = other.Create(options)
			must(t, err)
			tt.bend(t, a, other.Passkeys[0])
			_, err = a.signInByPasskey(t, nil)
			eventtest.As(t, err, tt.want)
		})
	}
	// Forging fails in the same way while the passkey counts.
	a := arm(t)
	other := &factortest.Authenticator{Origin: externalURL}
	options, err := a.sessions.StartPasskey(t.Context(), as(t, a.sessions, a.first.Token))
	must(t, err)
	_, err = other.Create(options)
	must(t, err)
	other.Passkeys[0].ID, other.Passkeys[0].Handle = a.device.Passkeys[0].ID, a.device.Passkeys[0].Handle
	a.device.Passkeys = other.Passkeys
	_, err = a.signInByPasskey(t, nil)
	eventtest.As(t, err, errPasskeyFailed)
}

func TestASecondFactorIsRenamed(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, a.first.Token)
	id := eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Human.Factors[1].ID
	_, err := a.sessions.RenameFactor(t.Context(), me, event.IfMatch{}, id, "My telephone")
	must(t, err)
	if factors := eventtest.State(t, a.Store, user.Kind,
		"usr_jo").Data.Human.Factors; factors[1].Name != "My telephone" || factors[0].Name != "phone" {
		t.Errorf("they are called %+v", factors)
	}
	_, err = a.sessions.RenameFactor(t.Context(), me, event.IfMatch{}, "fac_x", "x")
	eventtest.As(t, err, factor.ErrNotFound)
	_, err = a.sessions.RenameFactor(t.Context(), me, event.IfMatch{Set: true, Sequence: 1}, id, "x")
	if err == nil {
		t.Error("a change meanwhile is overwritten")
	}
	for _, wrong := range []string{"", string(slices.Repeat([]byte("x"), 201))} {
		if _, err := a.sessions.RenameFactor(t.Context(), me, event.IfMatch{}, id, wrong); err == nil {
			t.Errorf("%q is a name", wrong)
		}
	}
	_, err = a.sessions.RenameFactor(t.Context(), as(t, a.sessions, signIn(t, a.sessions).Token),
		event.IfMatch{}, id, "x")
	eventtest.As(t, err, access.ErrSecondFactor)
	a.Advance(16 * time.Minute)
	_, err = a.sessions.RenameFactor(t.Context(), me, event.IfMatch{}, id, "x")
	eventtest.As(t, err, ErrNotRecent)
}
