package user

import (
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Bounds of what a user is in and has: they keep the state small that every change of the user writes. They count for
// each organization by itself, so that none uses up what another one may give. How many organizations a user is in is
// for the user to say.
const (
	MaxGroups   = 200 // groups of one organization
	MaxAppRoles = 200 // projects with roles in one organization
)

// groupVersion is the version of facts from which on nodes know groups, guests and roles of applications.
const groupVersion = 4

// InGroup is a group that a user is in, with the roles of Signet's own API that it gives. They are recorded with every
// member when the group's roles change: so nobody has to look for them, and whatever asks what a user holds finds them.
type InGroup struct {
	ID    string        `json:"id"`
	Roles []access.Role `json:"roles,omitempty"`
}

// AppRoles are the roles of one project that somebody has in one organization.
type AppRoles struct {
	Place   string    `json:"place"` // the project, or the access that the organization has to it: what they end with
	Project string    `json:"project"`
	Org     string    `json:"org"` // where they were given
	Roles   []AppRole `json:"roles"`
}

// AppRole is a role of an application. It counts only while its place has the role of this epoch: one that was taken
// back and comes again is another one.
type AppRole struct {
	Key   string `json:"key"`
	Epoch int64  `json:"epoch"`
}

// Direct are the roles that the user has without groups.
func (u *User) Direct() access.Memberships {
	if u.Given != nil {
		return u.Given
	}
	return u.Memberships
}

// In tells whether the user is in a group of an organization.
func (u *User) In(org, group string) bool {
	return slices.ContainsFunc(u.Groups[org], func(g InGroup) bool { return g.ID == group })
}

// Without are the roles that the user has in an organization without one of its groups, as far as they are given
// directly or by others.
func (u *User) Without(org, group string) []access.Role { return u.Counting(org, u.given(org, group)) }

// given are the roles that the user was given in an organization, directly and by groups other than one, whether or not
// they count.
func (u *User) given(org, but string) []access.Role {
	roles := slices.Clone(u.Direct()[org])
	for _, g := range u.Groups[org] {
		if g.ID != but {
			roles = append(roles, g.Roles...)
		}
	}
	return roles
}

// IsGuest tells whether the user is in an organization without belonging to it.
func IsGuest(u *event.Object[User], org string) bool {
	_, in := u.Data.Memberships[org]
	return in && u.Org != org && org != access.Installation
}

// settle works out what the user holds in all: what was given directly and what groups give, and of this in other
// organizations what the user has accepted.
func (u *User) settle(direct access.Memberships) {
	held, differs := maps.Clone(direct), false
	for org, in := range u.Groups {
		for _, g := range in {
			if len(g.Roles) > 0 {
				held, differs = held.With(org, slices.Concat(held[org], g.Roles)), true
			}
		}
	}
	for org, roles := range held {
		if counting := u.Counting(org, roles); !slices.Equal(counting, roles) {
			held[org], differs = counting, true
		}
	}
	if u.Memberships, u.Given = held, nil; differs {
		if u.Given = direct; direct == nil {
			u.Given = access.Memberships{}
		}
	}
}

// withGroups gives the user other groups in an organization.
func (u *User) withGroups(org string, groups []InGroup) {
	direct, all := u.Direct(), maps.Clone(u.Groups)
	if delete(all, org); len(groups) > 0 {
		if all == nil {
			all = map[string][]InGroup{}
		}
		all[org] = groups
	}
	if len(all) == 0 {
		all = nil
	}
	u.Groups = all
	u.settle(direct)
}

// GroupJoined records that the user is in a group from now on, with the roles that it gives at this moment.
type GroupJoined struct {
	Org   string        `json:"org"`
	Group string        `json:"group"`
	Roles []access.Role `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (GroupJoined) EventType() event.Type { return "user.group_joined.v1" }

// Since implements event.Gated.
func (GroupJoined) Since() int { return groupVersion }

// Apply implements event.Fact.
func (e GroupJoined) Apply(u *User) {
	groups := slices.DeleteFunc(slices.Clone(u.Groups[e.Org]), func(g InGroup) bool { return g.ID == e.Group })
	u.withGroups(e.Org, append(groups, InGroup{ID: e.Group, Roles: e.Roles}))
}

// GroupLeft records that the user is in a group no longer.
type GroupLeft struct {
	Org   string `json:"org"`
	Group string `json:"group"`
}

// EventType implements event.Fact.
func (GroupLeft) EventType() event.Type { return "user.group_left.v1" }

// Since implements event.Gated.
func (GroupLeft) Since() int { return groupVersion }

// Apply implements event.Fact.
func (e GroupLeft) Apply(u *User) {
	u.withGroups(e.Org, slices.DeleteFunc(slices.Clone(u.Groups[e.Org]),
		func(g InGroup) bool { return g.ID == e.Group }))
}

// GroupRolesSet records which roles a group gives the user from now on.
type GroupRolesSet struct {
	// of the group; since fact version 5 empty but for guests: the user knows it, and there are as many of these as the
	// group has members
	Org   string        `json:"org,omitempty"`
	Group string        `json:"group"`
	Roles []access.Role `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (GroupRolesSet) EventType() event.Type { return "user.group_roles_set.v1" }

// Since implements event.Gated.
func (e GroupRolesSet) Since() int {
	if e.Org == "" {
		return 5
	}
	return groupVersion
}

// Apply implements event.Fact.
func (e GroupRolesSet) Apply(u *User) {
	org := e.Org
	if org == "" {
		org = u.orgOf(e.Group)
	}
	groups := slices.Clone(u.Groups[org])
	for i, g := range groups {
		if g.ID == e.Group {
			groups[i].Roles = e.Roles
		}
	}
	u.withGroups(org, groups)
}

// orgOf is the organization of a group that the user is in.
func (u *User) orgOf(group string) string {
	for org := range u.Groups {
		if u.In(org, group) {
			return org
		}
	}
	return ""
}

// OrgLeft records that a guest is in an organization no longer: membership, groups and roles of applications there are
// gone.
type OrgLeft struct {
	Org string `json:"org"`
}

// EventType implements event.Fact.
func (OrgLeft) EventType() event.Type { return "user.org_left.v1" }

// Since implements event.Gated.
func (OrgLeft) Since() int { return groupVersion }

// Apply implements event.Fact.
func (e OrgLeft) Apply(u *User) {
	direct := u.Direct().With(e.Org, nil)
	u.withGroups(e.Org, nil)
	u.forgetAcceptance(e.Org)
	u.settle(direct)
	u.AppRoles = slices.DeleteFunc(slices.Clone(u.AppRoles), func(r AppRoles) bool { return r.Org == e.Org })
	if len(u.AppRoles) == 0 {
		u.AppRoles = nil
	}
}

// AppRolesSet records which roles of a project the user has in an organization from now on, without those that groups
// give; none ends them.
type AppRolesSet struct {
	Place   string    `json:"place"`
	Project string    `json:"project"`
	Org     string    `json:"org"`
	Roles   []AppRole `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (AppRolesSet) EventType() event.Type { return "user.app_roles_set.v1" }

// Since implements event.Gated.
func (AppRolesSet) Since() int { return groupVersion }

// Apply implements event.Fact.
func (e AppRolesSet) Apply(u *User) { u.AppRoles = SetAppRoles(u.AppRoles, AppRoles(e)) }

// SetAppRoles gives the list with the roles of one place replaced; none removes the place.
func SetAppRoles(all []AppRoles, next AppRoles) []AppRoles {
	all = slices.Clone(all)
	i := slices.IndexFunc(all, func(r AppRoles) bool { return r.Place == next.Place })
	switch {
	case i >= 0 && len(next.Roles) > 0:
		all[i] = next
	case i >= 0:
		all = slices.Delete(all, i, i+1)
	case len(next.Roles) > 0:
		all = append(all, next)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
