package session

import (
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// only lets people of the default organization sign in in these ways.
func only(t *testing.T, s *eventtest.Store, ways ...policy.Way) {
	t.Helper()
	eventtest.Given(t, s, org.Kind, "org_def", "", nil,
		org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SignIn: policy.SignIn{SignInMethods: ways}})})
}

func TestAnOrganizationSaysHowItsPeopleSignIn(t *testing.T) {
	owner := user.MembershipSet{Scope: "org_def", Roles: []access.Role{access.OrgOwner}}
	other := func(facts ...event.Fact[user.User]) func(*testing.T, *eventtest.Store) {
		return func(t *testing.T, s *eventtest.Store) {
			person(t, s, "usr_other", "org_def", "other", "")
			eventtest.Given(t, s, user.Kind, "usr_other", "", []event.Claim{user.LinkClaim("idp_a", "i", "o")},
				append(facts, event.Fact[user.User](owner))...)
		}
	}
	linked := user.LinkAdded{LinkID: "lnk_o", Provider: "idp_a", Personal: user.LinkFacts{Issuer: "i", Subject: "o"}}
	for _, c := range []struct {
		name   string
		ways   []policy.Way
		facts  []event.Fact[user.User] // about jo
		given  func(*testing.T, *eventtest.Store)
		enters bool
	}{
		{"in any way", nil, nil, nil, true},
		{"with a password", []policy.Way{policy.WithPassword}, nil, nil, true},
		{"not with a password", []policy.Way{policy.WithProvider, policy.WithPasskey}, nil, nil, false},
		{"the only owner keeps the password", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{owner}, nil, true},
		{"an owner of another organization does not", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{user.MembershipSet{Scope: "org_b", Roles: owner.Roles}}, nil, false},
		{"who manages users does not", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{user.MembershipSet{Scope: "org_def",
				Roles: []access.Role{access.OrgUserManager}}}, nil, false},
		{"the only owner with a passkey does not, where those are allowed", []policy.Way{policy.WithPasskey},
			[]event.Fact[user.User]{owner, user.PasskeyAdded{FactorID: "fac_1"}}, nil, false},
		{"the only owner with a passkey does, where those are not allowed", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{owner, user.PasskeyAdded{FactorID: "fac_1"}}, nil, true},
		{"one of several owners, while another is linked, does not", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{owner}, other(linked), false},
		{"one of several owners, none of whom is linked", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{owner}, other(), true},
		{"one of several owners, while the link of another is suspended", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{owner}, func(t *testing.T, s *eventtest.Store) {
				other(linked)(t, s)
				eventtest.Given(t, s, idp.Kind, "idp_a", "", nil, idp.Vouched{By: "x"})
			}, true},
		{"one of several owners, while another one who is linked is locked", []policy.Way{policy.WithProvider},
			[]event.Fact[user.User]{owner}, other(linked, user.WasLocked{}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			eventtest.Given(t, s, idp.Kind, "idp_a", "org_def", nil, idp.JWTAdded{General: idp.General{Name: "a"}},
				idp.Vouched{By: "x", Roles: access.Memberships{access.Installation: {access.IAMOwner}}})
			before := signIn(t, sessions)
			caller, err := sessions.Authenticate(t.Context(), before.Token)
			must(t, err)
			if len(c.facts) > 0 {
				eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, c.facts...)
			}
			if c.given != nil {
				c.given(t, s)
			}
			if c.ways != nil {
				only(t, s, c.ways...)
			}
			var refusal, again *errs.Error
			if !c.enters {
				refusal, again = ErrSignInFailed, ErrMethodNotAllowed
			}
			_, err = sessions.SignIn(t.Context(), try("jo", right, home))
			eventtest.As(t, err, refusal)
			caller.User = nil
			_, err = sessions.Reauthenticate(t.Context(), caller, right, From{})
			eventtest.As(t, err, again)
			// The mail that is asked for has a code only where the password is of use.
			mark := s.Mark()
			must(t, sessions.RequestReset(t.Context(), ResetRequest{LoginName: "jo", Peer: home}))
			must(t, sessions.AnswerWaitingResets(t.Context()))
			asked := requested
			if !c.enters {
				asked.Payload = `{"noPassword":true}`
			}
			asked.Personal = `{"address":"192.0.2.1"}`
			s.Then(t, mark, asked)
			d, err := user.ResetCode(t.Context(), s, s.Master, "usr_jo")
			must(t, err)
			_, err = sessions.Reset(t.Context(),
				Reset{UserID: "usr_jo", Code: d.Text, Password: "another-Pass-7", Peer: home})
			if (err == nil) != c.enters {
				t.Errorf("the password is reset: %v", err)
			}
		})
	}
}
