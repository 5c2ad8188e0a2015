package session

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/event/eventtest"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/policy"
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
			eventtest.Given(t, a.Store, org.Kind, "org_def", "", nil, org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SignIn: policy.SignIn{SignInMethods: tt.ways}})})
			in := signIn(t, a.sessions)
			begun := a.Now()
			for _, step := range tt.steps {
				a.Advance(time.Minute)
				step(t, a, as(t, a.sessions, in.Token))
			}
			proof, err := ProofOf(as(t, a.sessions, in.Token).Session)
			must(t, err)
			first, second := proof.Proven(true)
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
