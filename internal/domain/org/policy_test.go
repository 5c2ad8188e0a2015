package org_test

import (
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// strict makes a policy a fact about what had none.
func strict(p policy.Policy) policy.Diff { return policy.Policy{}.DiffTo(p) }

func TestThePolicyOfAnOrganizationIsReplaced(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	eventtest.As(t, add(t, s, "org_a", "acme.test"), nil)
	permit, err := (&access.Caller{UserID: "usr_a",
		Memberships: access.Memberships{"org_a": {access.OrgOwner}}}).In("org_a", access.PolicyWrite)
	eventtest.As(t, err, nil)
	for _, step := range []struct {
		policy  policy.Policy
		payload string
	}{
		{policy.Policy{SecondFactorRequired: true, SessionIdleSeconds: 600},
			`{"secondFactorRequired":true,"sessionIdleSeconds":600}`},
		{policy.Policy{SessionIdleSeconds: 600}, `{"secondFactorRequired":false}`},
		{policy.Policy{}, `{"sessionIdleSeconds":0}`},
	} {
		mark := s.Mark()
		d, err := org.SetPolicy(t.Context(), s, permit, event.IfMatch{}, step.policy)
		eventtest.As(t, err, nil)
		s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.policy_set.v1", Payload: step.payload})
		o := eventtest.State(t, s, org.Kind, "org_a")
		if !reflect.DeepEqual(o.Data.Policy, step.policy) ||
			o.Data.Standing.SecondFactorRequired != step.policy.SecondFactorRequired || d != o.Details() {
			t.Errorf("set %+v", o)
		}
	}
	before := s.Fingerprint()
	_, err = org.SetPolicy(t.Context(), s, permit, event.IfMatch{Set: true, Sequence: 99},
		policy.Policy{PasswordMinLength: 8})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	// what is only tried
	now := event.IfMatch{Set: true, Sequence: eventtest.State(t, s, org.Kind, "org_a").Sequence}
	for _, match := range []event.IfMatch{{}, now} {
		eventtest.As(t, org.TryPolicy(t.Context(), s, permit, match, policy.Policy{PasswordMinLength: 8}), nil)
	}
	err = org.TryPolicy(t.Context(), s, permit, event.IfMatch{Set: true, Sequence: now.Sequence + 1},
		policy.Policy{PasswordMinLength: 8})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	err = org.TryPolicy(t.Context(), s, permit, event.IfMatch{},
		policy.Policy{Registering: policy.Registering{TermsURI: "http://acme.test"}})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "policy.termsUri")
	eventtest.As(t, org.TryPolicy(t.Context(), s, access.Permit{}, event.IfMatch{}, policy.Policy{}), org.ErrNotFound)
	_, err = org.SetPolicy(t.Context(), s, access.Permit{}, event.IfMatch{}, policy.Policy{PasswordMinLength: 8})
	eventtest.As(t, err, org.ErrNotFound)
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
	eventtest.Given(t, s, org.Kind, "org_a", "", nil,
		org.PolicySet{Diff: strict(policy.Policy{SecondFactorRequired: true})}, org.WasRemoved{})
	_, err = org.SetPolicy(t.Context(), s, permit, event.IfMatch{}, policy.Policy{PasswordMinLength: 8})
	eventtest.As(t, err, org.ErrNotFound)
}

func TestWhatCountsInAnOrganization(t *testing.T) {
	s := eventtest.New(t, org.Kind, installation.Kind)
	read := func(id string) policy.Policy {
		settings, err := org.Settings(t.Context(), s, id)
		eventtest.As(t, err, nil)
		return settings.Policy
	}
	byDefault := policy.Effective(policy.Policy{}, policy.Policy{}).Policy
	if got := read("org_a"); !reflect.DeepEqual(got, byDefault) {
		t.Errorf("before the first start: %+v", got)
	}
	eventtest.As(t, add(t, s, "org_a", "acme.test"), nil)
	eventtest.As(t, add(t, s, "org_b", "b.test"), nil)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"},
		installation.PolicySet{Diff: strict(policy.Policy{PasswordMinLength: 8, SessionSeconds: 3600})})
	eventtest.Given(t, s, org.Kind, "org_a", "", nil,
		org.PolicySet{Diff: strict(policy.Policy{PasswordMinLength: 6, SessionSeconds: 600})})
	for id, want := range map[string][2]int64{"org_a": {8, 600}, "org_b": {8, 3600}, "org_x": {8, 3600},
		"": {8, 3600}} {
		if got := read(id); got.PasswordMinLength != want[0] || got.SessionSeconds != want[1] {
			t.Errorf("in %q: %+v", id, got)
		}
	}
}
