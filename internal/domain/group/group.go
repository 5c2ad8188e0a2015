// Package group holds the rules of groups: users of an organization and its guests who get roles together.
//
// The membership of a user in a group is a fact about the user, like other memberships (docs/decisions/0001). The roles
// of Signet's own API that a group gives are recorded with each of its members (docs/decisions/0039). The roles of
// applications are looked up through the project.
package group

import (
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of a group.
type State string

// ACTIVE -> REMOVED.
const (
	Active  State = "active"
	Removed State = "removed"
)

// groupVersion is the version of facts from which on nodes know groups.
const groupVersion = 4

// MaxRoleMembers is how many members a group can have that gives roles of Signet's own API: a change of these roles
// changes all of them in one command.
const MaxRoleMembers = 1000

// Group is the state of a group.
type Group struct {
	State       State  `json:"state"`
	Name        string `json:"name,omitempty"`
	NameKey     string `json:"nameKey,omitempty"`
	Description string `json:"description,omitempty"`

	Roles []access.Role `json:"roles,omitempty"` // of Signet's own API, in the group's organization
	// counted while it gives such roles; those removed meanwhile count until somebody counts again
	Members int64 `json:"members,omitempty"`
	Counted bool  `json:"counted,omitempty"` // also counted without roles: they are about to be given

	AppRoles []user.AppRoles `json:"appRoles,omitempty"` // roles in applications, the oldest first
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Group]{
	Name: "group", Table: "org_groups", Prefix: "grp", Shape: 1,
	Facts: []event.Fact[Group]{Added{}, Changed{}, RolesSet{}, MemberAdded{}, MemberRemoved{}, MembersCounted{},
		AppRolesSet{}, WasRemoved{}},
	Columns: []string{event.State, "name"},
	Lookup: func(o *event.Object[Group]) []string {
		return []string{string(o.Data.State), event.LookupText(o.Data.NameKey)}
	},
	Claims: func(o *event.Object[Group]) []event.Claim {
		if o.Data.State == Removed {
			return nil
		}
		return []event.Claim{NameClaim(o.Org, o.Data.NameKey)}
	},
	Groups: func(o *event.Object[Group]) (groups []string) {
		for _, r := range o.Data.Roles {
			if r.IsCustom() {
				groups = append(groups, GivingRole(r.Name()))
			}
		}
		return groups
	},
	Copy: func(g *Group) Group { // lists are replaced, never altered
		return *g
	},
})

// GivingRole is the group of the groups that give a custom role.
func GivingRole(role string) string { return "groups_giving/" + role }

// NameClaim is the claim of the group with this name (in its comparison form) in an organization.
func NameClaim(org, nameKey string) event.Claim {
	return event.Claim{Space: "group_name/" + org, Key: nameKey}
}

// Added records a new group.
type Added struct {
	Name        string `json:"name"`
	NameKey     string `json:"nameKey"`
	Description string `json:"description,omitempty"`
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "group.added.v1" }

// Since implements event.Gated: a node of before would leave the groups of a removed organization behind.
func (Added) Since() int { return groupVersion }

// Apply implements event.Fact.
func (e Added) Apply(g *Group) {
	*g = Group{State: Active, Name: e.Name, NameKey: e.NameKey, Description: e.Description}
}

// Changed records another name or description.
type Changed struct {
	Name        *string `json:"name,omitempty"`
	NameKey     *string `json:"nameKey,omitempty"`
	Description *string `json:"description,omitempty"`
}

// EventType implements event.Fact.
func (Changed) EventType() event.Type { return "group.changed.v1" }

// Apply implements event.Fact.
func (e Changed) Apply(g *Group) {
	event.Set(&g.Name, e.Name)
	event.Set(&g.NameKey, e.NameKey)
	event.Set(&g.Description, e.Description)
}

// RolesSet records which roles of Signet's own API the group gives from now on, and to how many members.
type RolesSet struct {
	Roles   []access.Role `json:"roles,omitempty"`
	Members int64         `json:"members,omitempty"`
}

// EventType implements event.Fact.
func (RolesSet) EventType() event.Type { return "group.roles_set.v1" }

// Since implements event.Gated: nodes of before do not know all roles.
func (e RolesSet) Since() int { return access.RolesSince(e.Roles) }

// Apply implements event.Fact.
func (e RolesSet) Apply(g *Group) { g.Roles, g.Members, g.Counted = e.Roles, e.Members, false }

// MemberAdded records who joined a group that gives roles of Signet's own API.
type MemberAdded struct {
	UserID string `json:"userId"`
}

// EventType implements event.Fact.
func (MemberAdded) EventType() event.Type { return "group.member_added.v1" }

// Apply implements event.Fact.
func (MemberAdded) Apply(g *Group) { g.Members++ }

// MemberRemoved records who left a group that gives roles of Signet's own API.
type MemberRemoved struct {
	UserID string `json:"userId"`
}

// EventType implements event.Fact.
func (MemberRemoved) EventType() event.Type { return "group.member_removed.v1" }

// Apply implements event.Fact.
func (MemberRemoved) Apply(g *Group) { g.Members = max(g.Members-1, 0) }

// MembersCounted records how many members the group really has. From then on every user who joins or leaves changes the
// group, so that a command that gives the group roles knows all of its members.
type MembersCounted struct {
	Members int64 `json:"members"`
}

// EventType implements event.Fact.
func (MembersCounted) EventType() event.Type { return "group.members_counted.v1" }

// Apply implements event.Fact.
func (e MembersCounted) Apply(g *Group) { g.Members, g.Counted = e.Members, len(g.Roles) == 0 }

// AppRolesSet records which roles of a project the group's members have through it from now on; none ends them. The
// place knows it, too.
type AppRolesSet struct {
	Place   string         `json:"place"`
	Project string         `json:"project"`
	Org     string         `json:"org"`
	Roles   []user.AppRole `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (AppRolesSet) EventType() event.Type { return "group.app_roles_set.v1" }

// Apply implements event.Fact.
func (e AppRolesSet) Apply(g *Group) { g.AppRoles = user.SetAppRoles(g.AppRoles, user.AppRoles(e)) }

// WasRemoved records the end of the group. Its name becomes free.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "group.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(g *Group) { *g = Group{State: Removed} }

// counts tells whether the group knows who joins and leaves.
func (g *Group) counts() bool { return len(g.Roles) > 0 || g.Counted }

// Counts tells whether everybody who joins or leaves has to move the group.
func (g *Group) Counts() bool { return g.counts() }

// HasAppRoles tells whether the group gives roles in applications.
func (g *Group) HasAppRoles() bool {
	return slices.ContainsFunc(g.AppRoles, func(r user.AppRoles) bool { return len(r.Roles) > 0 })
}
