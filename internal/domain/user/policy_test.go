package user_test

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// strictPlace is place with a policy of the installation and one of the organization.
func strictPlace(t *testing.T, everywhere, here policy.Policy) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"},
		installation.PolicySet{Diff: policy.Policy{}.DiffTo(everywhere)})
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "A"},
		org.PolicySet{Diff: policy.Policy{}.DiffTo(here)})
	return s
}

func TestWhatThePolicySaysOfPasswordsHoldsOnEveryPath(t *testing.T) {
	for _, c := range []struct {
		name             string
		everywhere, here policy.Policy
		password         string
		taken            bool
	}{
		{"nothing is asked for", policy.Policy{}, policy.Policy{}, "x", true},
		{"too short for the installation", policy.Policy{PasswordMinLength: 8}, policy.Policy{}, "1234567", false},
		{"too short for the organization", policy.Policy{PasswordMinLength: 2}, policy.Policy{PasswordMinLength: 8},
			"1234567", false},
		{"long enough for both", policy.Policy{PasswordMinLength: 6}, policy.Policy{PasswordMinLength: 8},
			"12345678", true},
		{"the organization asks for less", policy.Policy{PasswordMinLength: 8}, policy.Policy{PasswordMinLength: 2},
			"1234567", false},
		{"common, for the installation", policy.Policy{CommonPasswordsRefused: true}, policy.Policy{},
			"Password1", false},
		{"common, for the organization", policy.Policy{}, policy.Policy{CommonPasswordsRefused: true},
			"Password1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := strictPlace(t, c.everywhere, c.here)
			must(t, human(t, s, "usr_a", "org_a", jo))
			before := s.Fingerprint()
			may := permit(t, "org_a", manager)
			_, setting := user.SetPassword(t.Context(), s, hasher, may, "usr_a", event.IfMatch{},
				user.NewPassword{Password: c.password})
			ann := jo
			ann.UserName = "ann"
			_, creating := user.CreateHuman{NewHuman: ann, Password: c.password}.Do(t.Context(), s, hasher,
				may, event.Once{})
			for _, err := range []error{setting, creating} {
				if c.taken {
					must(t, err)
				} else {
					eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "password")
				}
			}
			if !c.taken && s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
}

func TestWhoMayNotSetAPasswordIsToldSoBeforeThePolicyIsAsked(t *testing.T) {
	s := strictPlace(t, policy.Policy{PasswordMinLength: 8}, policy.Policy{})
	must(t, human(t, s, "usr_a", "org_a", jo))
	_, err := user.SetPassword(t.Context(), s, hasher, permit(t, "org_a", manager), "usr_x", event.IfMatch{},
		user.NewPassword{Password: "x"})
	eventtest.As(t, err, user.ErrNotFound)
	_, err = user.CreateHuman{NewHuman: jo, Password: "x"}.Do(t.Context(), s, hasher, access.Permit{}, event.Once{})
	eventtest.As(t, err, access.ErrDenied)
}

// A repetition gets the first answer, whatever is asked for by then; under another key the policy counts.
func TestAPolicyDoesNotReachBackToWhatWasCreated(t *testing.T) {
	s := strictPlace(t, policy.Policy{}, policy.Policy{})
	once := func(key string) event.Once {
		return event.Once{Key: key, Request: []byte("same"), Expires: event.Micros(s.Now().Add(time.Hour))}
	}
	create := user.CreateHuman{NewHuman: jo, Password: "short"}
	first, err := create.Do(t.Context(), s, hasher, permit(t, "org_a", manager), once("a"))
	must(t, err)
	eventtest.Given(t, s, installation.Kind, installation.ID, "", nil,
		installation.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{PasswordMinLength: 8})})
	again, err := create.Do(t.Context(), s, hasher, permit(t, "org_a", manager), once("a"))
	must(t, err)
	if again.ID != first.ID {
		t.Errorf("another one was created: %s", again.ID)
	}
	_, err = create.Do(t.Context(), s, hasher, permit(t, "org_a", manager), once("b"))
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "password")
}
