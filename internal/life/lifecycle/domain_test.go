package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// withPeople gives org_a so many people, a service user, somebody who is gone, and the domains a.test, b.test and, not
// verified, c.test.
func withPeople(t *testing.T, people int) *eventtest.Store {
	t.Helper()
	s := newInstallation(t)
	eventtest.Given(t, s, org.Kind, "org_a", "", []event.Claim{org.DomainClaim("a.test"), org.DomainClaim("b.test")},
		org.DomainAdded{Domain: "a.test", Verified: true, Primary: true},
		org.DomainAdded{Domain: "b.test", Verified: true}, org.DomainAdded{Domain: "c.test", Challenge: "x"})
	human := func(id, owner string, then ...event.Fact[user.User]) {
		facts := []event.Fact[user.User]{user.HumanAdded{Personal: user.HumanFacts{UserName: strings.ToUpper(id),
			UserNameKey: id}}}
		eventtest.Given(t, s, user.Kind, id, owner, []event.Claim{user.NameClaim(owner, id)}, append(facts, then...)...)
	}
	for i := range people {
		human(fmt.Sprintf("usr_%04d", i), "org_a")
	}
	human("usr_gone", "org_a", user.WasRemoved{})
	human("usr_elsewhere", "org_b")
	membertest.User(t, s, "usr_robot", "org_a", nil)
	return s
}

func TestRemovingADomainSaysWhoseLoginNamesEnd(t *testing.T) {
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	settings := access.Memberships{"org_a": {access.OrgSettingsManager}}
	for _, c := range []struct {
		name   string
		people int
		holds  access.Memberships
		domain string
		count  int
		named  int
	}{
		{"nobody's", 0, owner, "b.test", 0, 0},
		{"all of a few", 2, owner, "B.Test", 2, 2},
		{"the first of many", 21, owner, "b.test", 21, 20},
		{"of more than are counted", 1001, owner, "b.test", 1000, 20},
		{"to who may not read users, only how many", 2, settings, "b.test", 2, 0},
		{"to the owner of everything", 2, iam, "b.test", 2, 2},
		{"nobody's where it was not verified", 2, owner, "c.test", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := withPeople(t, c.people)
			caller := &access.Caller{UserID: "usr_me", Memberships: c.holds}
			permit, err := caller.In("org_a", access.DomainWrite)
			must(t, err)
			losing, d, err := lifecycle.RemoveDomain(t.Context(), s, permit, event.IfMatch{}, c.domain)
			must(t, err)
			if losing.People != c.count || len(losing.Names) != c.named {
				t.Errorf("%d people, of them %q", losing.People, losing.Names)
			}
			if c.named > 0 && losing.Names[1] != "USR_0001@b.test" {
				t.Errorf("got %q", losing.Names)
			}
			if o := eventtest.State(t, s, org.Kind, "org_a"); d != o.Details() ||
				slices.ContainsFunc(o.Data.Domains,
					func(d org.Domain) bool { return d.Name == strings.ToLower(c.domain) }) {
				t.Errorf("left are %v", o.Data.Domains)
			}
		})
	}
}

func TestARefusalToRemoveADomainSaysHowManyLoginNamesWouldEnd(t *testing.T) {
	manager := access.Memberships{access.Installation: {access.IAMOrgManager}}
	for people, want := range map[int]string{0: "can remove it", 1: "of 1 person would stop working",
		2: "of 2 people would stop working", 1001: "of 1000 or more people would stop working"} {
		s := withPeople(t, people)
		before := s.Fingerprint()
		_, _, err := lifecycle.RemoveDomain(t.Context(), s, in(t, "org_a", manager), event.IfMatch{}, "b.test")
		eventtest.Refused(t, err, errs.PermissionDenied, org.ReleaseDenied)
		if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "USR_") ||
			s.Fingerprint() != before {
			t.Errorf("got %s", text)
		}
	}
	for domain, refusal := range map[string]*errs.Error{"none.test": org.ErrDomainNotFound, "@": org.ErrDomainNotFound,
		"a.test": org.ErrDomainIsPrimary} {
		_, _, err := lifecycle.RemoveDomain(t.Context(), withPeople(t, 1), in(t, "org_a", iam), event.IfMatch{}, domain)
		eventtest.As(t, err, refusal)
	}
}
