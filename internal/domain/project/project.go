// Package project holds the rules of projects: applications that belong together, the roles they understand, which
// organizations may use them, and who has which of the roles there.
//
// Roles are given in a place. In the project's own organization the place is the project itself; in another
// organization it is that organization's access to the project. An access begins when an owner there accepts a grant,
// and ends with the grant. All roles that were given in an access end with it, so no command has to search for them.
package project

import (
	"slices"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of a project, a grant or an access.
type State string

// The states. Projects and accesses are active until they are removed; a grant waits for the other organization first.
const (
	Pending State = "pending"
	Active  State = "active"
	Removed State = "removed"
)

// Bounds.
const (
	MaxRoles      = 100 // of a project
	MaxGroupRoles = 200 // groups with roles in one place
)

// Role is a role that the applications of a project understand.
type Role struct {
	Key         string `json:"key"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Epoch       int64  `json:"epoch"` // of this declaration: a role that was removed and comes again has another one
}

// GroupRoles are the roles that the members of a group have in a place.
type GroupRoles struct {
	Group string         `json:"group"`
	Roles []user.AppRole `json:"roles"`
}

// Project is the state of a project.
type Project struct {
	State      State        `json:"state"`
	Name       string       `json:"name,omitempty"`
	NameKey    string       `json:"nameKey,omitempty"`
	Roles      []Role       `json:"roles,omitempty"` // in the order in which they were declared
	Epoch      int64        `json:"epoch,omitempty"` // counts the declarations of roles
	GroupRoles []GroupRoles `json:"groupRoles,omitempty"`
	Empty      bool         `json:"empty,omitempty"` // removed, and so are its grants and accesses

	Metadata map[string]string `json:"metadata,omitempty"` // what programs keep about it
}

// Grant is the state of a grant: what the owner of a project lets another organization have. It belongs to the owner.
type Grant struct {
	State   State          `json:"state"`
	Project string         `json:"project,omitempty"`
	To      string         `json:"to,omitempty"`     // the organization
	Roles   []user.AppRole `json:"roles,omitempty"`  // those of the project that it may give
	Access  string         `json:"access,omitempty"` // once it is accepted
}

// GrantedRole is a role that an organization may give. It counts while the project has the role of the epoch Of.
type GrantedRole struct {
	Key   string `json:"key"`
	Epoch int64  `json:"epoch"` // of this entry
	Of    int64  `json:"of"`    // Role.Epoch
}

// Access is the state of the access that an organization has to a project of another one. It belongs to the
// organization that has it.
type Access struct {
	State      State         `json:"state"`
	Project    string        `json:"project,omitempty"`
	Owner      string        `json:"owner,omitempty"` // the organization of the project
	Grant      string        `json:"grant,omitempty"`
	Roles      []GrantedRole `json:"roles,omitempty"`
	Epoch      int64         `json:"epoch,omitempty"` // counts the entries
	GroupRoles []GroupRoles  `json:"groupRoles,omitempty"`
}

// Kind of projects.
var Kind = event.Define(event.Schema[Project]{
	Name: "project", Table: "projects", Prefix: "prj", Shape: 1,
	Facts: []event.Fact[Project]{Added{}, Renamed{}, RoleSet{}, RoleRemoved{}, GroupRolesSet{}, MetadataSet{},
		WasRemoved{}, Emptied{}},
	Columns: []string{event.State, "name"},
	Lookup: func(o *event.Object[Project]) []string {
		return []string{string(o.Data.State), event.LookupText(o.Data.NameKey)}
	},
	Groups: func(o *event.Object[Project]) []string {
		if o.Data.State == Removed && !o.Data.Empty {
			return []string{Removing}
		}
		return nil
	},
	Copy: func(p *Project) Project { return *p }, // lists and metadata are replaced, never altered
})

// GrantKind is the kind of grants.
var GrantKind = event.Define(event.Schema[Grant]{
	Name: "project_grant", Table: "project_grants", Prefix: "pgr", Shape: 1,
	Facts:   []event.Fact[Grant]{GrantAdded{}, GrantRolesSet{}, GrantAccepted{}, GrantRemoved{}},
	Columns: []string{event.State},
	Lookup:  func(o *event.Object[Grant]) []string { return []string{string(o.Data.State)} },
	Groups: func(o *event.Object[Grant]) []string {
		switch o.Data.State {
		case Removed:
			return nil
		case Pending:
			return []string{GrantsOf(o.Data.Project), GrantsTo(o.Data.To), GrantsWaitingFor(o.Data.To)}
		}
		return []string{GrantsOf(o.Data.Project), GrantsTo(o.Data.To)}
	},
	Claims: func(o *event.Object[Grant]) []event.Claim {
		if o.Data.State == Removed {
			return nil
		}
		return []event.Claim{GrantClaim(o.Data.Project, o.Data.To)}
	},
	Copy: func(g *Grant) Grant { return *g },
})

// AccessKind is the kind of accesses.
var AccessKind = event.Define(event.Schema[Access]{
	Name: "project_access", Table: "project_accesses", Prefix: "pac", Shape: 1,
	Facts:   []event.Fact[Access]{AccessAdded{}, AccessRolesSet{}, AccessGroupRolesSet{}, AccessRemoved{}},
	Columns: []string{event.State},
	Lookup:  func(o *event.Object[Access]) []string { return []string{string(o.Data.State)} },
	Claims: func(o *event.Object[Access]) []event.Claim {
		if o.Data.State == Removed {
			return nil
		}
		return []event.Claim{AccessClaim(o.Data.Project, o.Org)}
	},
	Copy: func(a *Access) Access { return *a },
})

// GrantsOf is the group of the grants of a project.
func GrantsOf(project string) string { return "grants_of/" + project }

// GrantsTo is the group of the grants to an organization.
func GrantsTo(org string) string { return "grants_to/" + org }

// GrantsWaitingFor is the group of the grants that an organization has neither accepted nor declined.
func GrantsWaitingFor(org string) string { return "grants_waiting/" + org }

// Removing is the group of the projects that are removed while grants of them are still left.
const Removing = "projects_removing"

// GrantClaim is the claim of the one grant of a project to an organization.
func GrantClaim(project, org string) event.Claim {
	return event.Claim{Space: "project_grant/" + project, Key: org}
}

// AccessClaim is the claim of the access that an organization has to a project of another one.
func AccessClaim(project, org string) event.Claim {
	return event.Claim{Space: "project_access/" + project, Key: org}
}

// setGroupRoles gives a list in which a group has these roles; none removes the group.
func setGroupRoles(all []GroupRoles, group string, roles []user.AppRole) []GroupRoles {
	all = slices.DeleteFunc(slices.Clone(all), func(r GroupRoles) bool { return r.Group == group })
	if len(roles) > 0 {
		all = append(all, GroupRoles{Group: group, Roles: roles})
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
