package user

import (
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// HoldersOf is the group of the users who were given a custom role, directly or by a group, whether or not it counts
// already.
func HoldersOf(role string) string { return "role_holders/" + role }

// customRoles are the identifiers of the custom roles that the user was given anywhere, each once.
func (u *User) customRoles() (ids []string) {
	add := func(roles []access.Role) {
		for _, r := range roles {
			if r.IsCustom() && !slices.Contains(ids, r.Name()) {
				ids = append(ids, r.Name())
			}
		}
	}
	for _, roles := range u.Direct() {
		add(roles)
	}
	for _, in := range u.Groups {
		for _, g := range in {
			add(g.Roles)
		}
	}
	return ids
}

// HasRole tells whether the user was given a role of this name in a scope, directly or by a group.
func (u *User) HasRole(scope, name string) bool {
	_, has := access.Named(u.given(scope, ""), name)
	return has
}

// customVersion is the version of facts from which on nodes know custom roles.
const customVersion = 6

// CustomRoleChanged records that a custom role that the user was given, directly or by groups, has other permissions
// from now on; none end it.
type CustomRoleChanged struct {
	Scope string      `json:"scope"`
	Role  access.Role `json:"role"`
	Stays bool        `json:"stays,omitempty"` // also without roles: a guest
}

// EventType implements event.Fact.
func (CustomRoleChanged) EventType() event.Type { return "user.custom_role_changed.v1" }

// Since implements event.Gated.
func (CustomRoleChanged) Since() int { return customVersion }

// Apply implements event.Fact.
func (e CustomRoleChanged) Apply(u *User) {
	direct := u.Direct()
	if roles, changed := access.Replaced(direct[e.Scope], e.Role); changed {
		direct = direct.With(e.Scope, roles)
		if e.Stays && len(roles) == 0 {
			direct[e.Scope] = []access.Role{}
		}
	}
	groups := slices.Clone(u.Groups[e.Scope])
	for i, g := range groups {
		groups[i].Roles, _ = access.Replaced(g.Roles, e.Role)
	}
	u.withGroups(e.Scope, groups)
	u.settle(direct)
}
