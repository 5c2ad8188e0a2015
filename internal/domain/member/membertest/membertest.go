// Package membertest gives tests an installation with organizations, and users who hold roles in it.
package membertest

import (
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// Given records an installation with the owner usr_root in the default organization org_d, and the organizations org_a
// and org_b.
func Given(t testing.TB, s event.Store) {
	t.Helper()
	for _, id := range []string{"org_d", "org_a", "org_b"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_d", nil, installation.Added{DefaultOrg: "org_d"})
	Owner(t, s, "usr_root", "org_d")
}

// User puts a service user who holds roles into an organization.
func User(t testing.TB, s event.Store, id, org string, holds access.Memberships, then ...event.Fact[user.User]) {
	t.Helper()
	facts := []event.Fact[user.User]{user.ServiceAdded{Personal: user.ServiceFacts{UserName: id,
		UserNameKey: id, Name: id}}}
	for scope, roles := range holds {
		facts = append(facts, user.MembershipSet{Scope: scope, Roles: roles})
	}
	eventtest.Given(t, s, user.Kind, id, org, []event.Claim{user.NameClaim(org, id)}, append(facts, then...)...)
}

// Owner puts one more owner of the installation into an organization.
func Owner(t testing.TB, s event.Store, id, org string) {
	t.Helper()
	User(t, s, id, org, access.Memberships{access.Installation: {access.IAMOwner}})
	eventtest.Given(t, s, installation.Kind, installation.ID, "", nil, installation.OwnerAdded{UserID: id})
}
