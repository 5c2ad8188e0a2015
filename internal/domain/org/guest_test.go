package org_test

import (
	"errors"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

func TestWhatAnOrganizationAsksOfGuests(t *testing.T) {
	now := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	at := func(age time.Duration, factor bool) func() (access.Shown, error) {
		return func() (access.Shown, error) {
			return access.Shown{SecondFactor: factor, At: event.Micros(now.Add(-age))}, nil
		}
	}
	factor := policy.Policy{SecondFactorRequired: true}
	recent := policy.Policy{Guests: policy.Guests{GuestProofSeconds: 600}}
	guest := access.Memberships{"org_a": {access.OrgOwner}}
	for _, c := range []struct {
		name   string
		policy policy.Policy
		home   string
		holds  access.Memberships
		shown  func() (access.Shown, error)
		want   errs.Reason
	}{
		{"nothing is asked", policy.Policy{}, "org_b", guest, at(9*time.Hour, false), ""},
		{"a second factor that is missing", factor, "org_b", guest, at(0, false), access.SecondFactorRequired},
		{"a second factor", factor, "org_b", guest, at(9*time.Hour, true), ""},
		{"a proof that is old", recent, "org_b", guest, at(600*time.Second+time.Microsecond, true),
			access.RecentProofRequired},
		{"a proof that is just young enough", recent, "org_b", guest, at(600*time.Second, false), ""},
		{"a proof that nobody knows the age of", recent, "org_b", guest,
			func() (access.Shown, error) { return access.Shown{SecondFactor: true}, nil }, access.RecentProofRequired},
		{"nobody signed in for it", recent, "org_b", guest, nil, ""},
		{"at home", factor, "org_a", guest, at(9*time.Hour, false), ""},
		{"by a role in the installation", factor, "org_b", access.Memberships{access.Installation: {access.IAMOwner}},
			at(9*time.Hour, false), ""},
		{"by a role in the installation that has not this permission", factor, "org_b",
			access.Memberships{"org_a": {access.OrgOwner}, access.Installation: {access.IAMOrgManager}}, at(0, false),
			access.SecondFactorRequired},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &event.Object[org.Org]{ID: "org_a", Data: org.Org{Policy: c.policy}}
			err := org.Admits(o, &access.Caller{OrgID: c.home, Memberships: c.holds, Shown: c.shown},
				access.UserWrite, now)
			e, _ := errors.AsType[*errs.Error](err)
			if (err == nil) != (c.want == "") || e != nil && (e.Reason != c.want || e.Kind != errs.PermissionDenied) {
				t.Errorf("got %v", err)
			}
		})
	}
	broken := errors.New("broken")
	o := &event.Object[org.Org]{ID: "org_a", Data: org.Org{Policy: factor}}
	if err := org.Admits(o, &access.Caller{OrgID: "org_b", Memberships: guest,
		Shown: func() (access.Shown, error) { return access.Shown{}, broken }}, access.UserWrite,
		now); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
