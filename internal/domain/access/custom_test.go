package access_test

import (
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
)

func TestACustomRoleBringsWhatStandsBesideIt(t *testing.T) {
	role := access.Custom("role_1", []access.Permission{access.UserWrite, access.UserRead, access.SigningRead, access.UserRead})
	if role != "role_1:signing.read,user.read,user.write" || role.Name() != "role_1" {
		t.Errorf("%q is called %q", role, role.Name())
	}
	for _, c := range []struct {
		name  string
		holds access.Memberships
		p     access.Permission
		scope string
		want  bool
	}{
		{"in its organization", access.Memberships{"org_a": {role}}, access.UserRead, "org_a", true},
		{"in another one", access.Memberships{"org_a": {role}}, access.UserRead, "org_b", false},
		{"in the installation", access.Memberships{"org_a": {role}}, access.UserRead, access.Installation, false},
		{"what it has not", access.Memberships{"org_a": {role}}, access.OrgRead, "org_a", false},
		{"a part of a name", access.Memberships{"org_a": {role}}, "user", "org_a", false},
		{"no name", access.Memberships{"org_a": {access.Custom("role_1", nil)}}, "", "org_a", false},
		{"what only the installation has, in an organization", access.Memberships{"org_a": {role}}, access.SigningRead,
			"org_a", false},
		{"everywhere, in an organization", access.Memberships{access.Installation: {role}}, access.UserRead, "org_a", true},
		{"everywhere", access.Memberships{access.Installation: {role}}, access.SigningRead, access.Installation, true},
		{"an identifier alone", access.Memberships{"org_a": {"role_1"}}, access.UserRead, "org_a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.holds.Hold(c.p, c.scope); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCustomRolesCoverByTheirPermissions(t *testing.T) {
	of := func(roles ...access.Role) access.Memberships { return access.Memberships{"org_a": roles} }
	reads := access.Custom("role_1", []access.Permission{access.UserRead})
	writes := access.Custom("role_1", []access.Permission{access.UserRead, access.UserWrite})
	all := access.Custom("role_2", access.PermissionsOf("org_a", []access.Role{access.OrgOwner}))
	for _, c := range []struct {
		name      string
		who, whom access.Memberships
		want      bool
	}{
		{"the same", of(reads), of(reads), true},
		{"the role as it was", of(writes), of(reads), true},
		{"the role as it is now", of(reads), of(writes), false},
		{"a fixed role", of(access.OrgUserManager), of(writes), true},
		{"a fixed role with more", of(writes), of(access.OrgUserManager), false},
		{"all that an owner has", of(all), of(access.OrgOwner), true},
		{"in another organization", access.Memberships{"org_b": {all}}, of(reads), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.who.Cover(c.whom); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if got := access.RolesFrom(access.PermissionsOf("", []access.Role{all})); !slices.Equal(got, access.RolesOf("")) {
		t.Errorf("an owner's permissions are worth %v", got)
	}
	if got := access.RolesFrom([]access.Permission{access.UserRead}); got != nil {
		t.Errorf("one permission is worth %v", got)
	}
}
