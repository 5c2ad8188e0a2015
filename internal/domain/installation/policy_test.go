package installation_test

import (
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func permit(t *testing.T, scope string) access.Permit {
	t.Helper()
	caller := &access.Caller{UserID: "usr_iam", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	p, err := caller.In(scope, access.PolicyWrite)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestThePolicyOfTheInstallationIsReplaced(t *testing.T) {
	s := eventtest.New(t, installation.Kind)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"})
	for _, step := range []struct {
		policy  policy.Policy
		payload string
	}{
		{policy.Policy{SecondFactorRequired: true, PasswordMinLength: 8},
			`{"secondFactorRequired":true,"passwordMinLength":8}`},
		{policy.Policy{SecondFactorRequired: true, SessionSeconds: 300},
			`{"passwordMinLength":0,"sessionSeconds":300}`},
		{policy.Policy{SecondFactorRequired: true, SessionSeconds: 300}, `{}`},
		{policy.Policy{}, `{"secondFactorRequired":false,"sessionSeconds":0}`},
	} {
		mark := s.Mark()
		d, err := installation.SetPolicy(t.Context(), s, permit(t, access.Installation), event.IfMatch{}, step.policy)
		if err != nil {
			t.Fatal(err)
		}
		s.Then(t, mark, eventtest.Fact{Object: installation.ID, Type: "installation.policy_set.v1",
			Payload: step.payload})
		i, err := installation.Get(t.Context(), s, permit(t, access.Installation))
		if err != nil || !reflect.DeepEqual(i.Data.Policy, step.policy) || d != i.Details() {
			t.Errorf("set %+v, %v", i, err)
		}
		if i.Data.Standing.SecondFactorRequired != step.policy.SecondFactorRequired {
			t.Error("requests are not told about the second factor")
		}
		if read, err := installation.ReadPolicy(t.Context(), s); err != nil || !reflect.DeepEqual(read, step.policy) {
			t.Errorf("read %+v, %v", read, err)
		}
	}
}

func TestThePolicyOfTheInstallationIsSetByItsOwners(t *testing.T) {
	s := eventtest.New(t, installation.Kind)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"})
	before := s.Fingerprint()
	for name, p := range map[string]access.Permit{"in an organization": permit(t, "org_a"), "no permit": {}} {
		_, err := installation.SetPolicy(t.Context(), s, p, event.IfMatch{}, policy.Policy{PasswordMinLength: 8})
		eventtest.As(t, err, access.ErrDenied)
		if i, err := installation.Get(t.Context(), s, p); i != nil {
			t.Errorf("%s: it is read", name)
		} else {
			eventtest.As(t, err, access.ErrDenied)
		}
	}
	_, err := installation.SetPolicy(t.Context(), s, permit(t, access.Installation),
		event.IfMatch{Set: true, Sequence: 7}, policy.Policy{PasswordMinLength: 8})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
}

func TestBeforeTheFirstStartThereIsNoPolicy(t *testing.T) {
	s := eventtest.New(t, installation.Kind)
	if p, err := installation.ReadPolicy(t.Context(), s); !reflect.DeepEqual(p, policy.Policy{}) || err != nil {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := installation.Get(t.Context(), s, permit(t, access.Installation)); err == nil {
		t.Error("it is read")
	}
	if _, err := installation.SetPolicy(t.Context(), s, permit(t, access.Installation), event.IfMatch{},
		policy.Policy{PasswordMinLength: 8}); err == nil {
		t.Error("it is set")
	}
}
