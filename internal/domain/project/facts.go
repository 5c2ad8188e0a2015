package project

import (
	"slices"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Added records a new project.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "project.added.v1" }

// Apply implements event.Fact.
func (e Added) Apply(p *Project) { *p = Project{State: Active, Name: e.Name, NameKey: e.NameKey} }

// Renamed records another name.
type Renamed struct {
	Name    *string `json:"name,omitempty"`
	NameKey *string `json:"nameKey,omitempty"`
}

// EventType implements event.Fact.
func (Renamed) EventType() event.Type { return "project.renamed.v1" }

// Apply implements event.Fact.
func (e Renamed) Apply(p *Project) {
	event.Set(&p.Name, e.Name)
	event.Set(&p.NameKey, e.NameKey)
}

// RoleSet records a role that the project declares, or another name or description of one that it has.
type RoleSet struct {
	Key         string `json:"key"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// EventType implements event.Fact.
func (RoleSet) EventType() event.Type { return "project.role_set.v1" }

// Apply implements event.Fact.
func (e RoleSet) Apply(p *Project) {
	roles := slices.Clone(p.Roles)
	if i := slices.IndexFunc(roles, func(r Role) bool { return r.Key == e.Key }); i >= 0 {
		roles[i].Name, roles[i].Description = e.Name, e.Description
	} else {
		p.Epoch++
		roles = append(roles, Role{Key: e.Key, Name: e.Name, Description: e.Description, Epoch: p.Epoch})
	}
	p.Roles = roles
}

// RoleRemoved records that a role of the project was removed. Everybody who had the role loses it, also if a role with
// the same key is added later.
type RoleRemoved struct {
	Key string `json:"key"`
}

// EventType implements event.Fact.
func (RoleRemoved) EventType() event.Type { return "project.role_removed.v1" }

// Apply implements event.Fact.
func (e RoleRemoved) Apply(p *Project) {
	if p.Roles = slices.DeleteFunc(slices.Clone(p.Roles),
		func(r Role) bool { return r.Key == e.Key }); len(p.Roles) == 0 {
		p.Roles = nil
	}
}

// GroupRolesSet records which roles a group of the project's own organization gives from now on; none ends them.
type GroupRolesSet struct {
	Group string         `json:"group"`
	Roles []user.AppRole `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (GroupRolesSet) EventType() event.Type { return "project.group_roles_set.v1" }

// Apply implements event.Fact.
func (e GroupRolesSet) Apply(p *Project) {
	p.GroupRoles = setGroupRoles(p.GroupRoles, e.Group, e.Roles)
}

// WasRemoved records the end of the project, and with it of all that was given in it.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "project.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(p *Project) { *p = Project{State: Removed, Epoch: p.Epoch} }

// Emptied records that no grant and no access is left of a removed project.
type Emptied struct{}

// EventType implements event.Fact.
func (Emptied) EventType() event.Type { return "project.emptied.v1" }

// Apply implements event.Fact.
func (Emptied) Apply(p *Project) { p.Empty = true }

// GrantAdded records what another organization may have, once it accepts.
type GrantAdded struct {
	Project string         `json:"project"`
	To      string         `json:"to"`
	Roles   []user.AppRole `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (GrantAdded) EventType() event.Type { return "project_grant.added.v1" }

// Apply implements event.Fact.
func (e GrantAdded) Apply(g *Grant) {
	*g = Grant{State: Pending, Project: e.Project, To: e.To, Roles: e.Roles}
}

// GrantRolesSet records which roles the organization may give from now on.
type GrantRolesSet struct {
	Roles []user.AppRole `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (GrantRolesSet) EventType() event.Type { return "project_grant.roles_set.v1" }

// Apply implements event.Fact.
func (e GrantRolesSet) Apply(g *Grant) { g.Roles = e.Roles }

// GrantAccepted records that the organization has accepted.
type GrantAccepted struct {
	Access string `json:"access"`
}

// EventType implements event.Fact.
func (GrantAccepted) EventType() event.Type { return "project_grant.accepted.v1" }

// Since implements event.Gated: it lets people use applications of another organization.
func (GrantAccepted) Since() int { return 4 }

// Apply implements event.Fact.
func (e GrantAccepted) Apply(g *Grant) { g.State, g.Access = Active, e.Access }

// GrantRemoved records the end of the grant: it was withdrawn, declined or given back.
type GrantRemoved struct{}

// EventType implements event.Fact.
func (GrantRemoved) EventType() event.Type { return "project_grant.removed.v1" }

// Apply implements event.Fact.
func (GrantRemoved) Apply(g *Grant) { *g = Grant{State: Removed} }

// AccessAdded records that an organization may use a project of another one.
type AccessAdded struct {
	Project string         `json:"project"`
	Owner   string         `json:"owner"`
	Grant   string         `json:"grant"`
	Roles   []user.AppRole `json:"roles,omitempty"` // of the project
}

// EventType implements event.Fact.
func (AccessAdded) EventType() event.Type { return "project_access.added.v1" }

// Apply implements event.Fact.
func (e AccessAdded) Apply(a *Access) {
	*a = Access{State: Active, Project: e.Project, Owner: e.Owner, Grant: e.Grant}
	a.setRoles(e.Roles)
}

// AccessRolesSet records which roles of the project the organization may give from now on.
type AccessRolesSet struct {
	Roles []user.AppRole `json:"roles,omitempty"` // of the project
}

// EventType implements event.Fact.
func (AccessRolesSet) EventType() event.Type { return "project_access.roles_set.v1" }

// Apply implements event.Fact.
func (e AccessRolesSet) Apply(a *Access) { a.setRoles(e.Roles) }

// setRoles keeps the entries of roles that stay: what was given of them goes on.
func (a *Access) setRoles(of []user.AppRole) {
	var roles []GrantedRole
	for _, r := range of {
		i := slices.IndexFunc(a.Roles, func(g GrantedRole) bool { return g.Key == r.Key && g.Of == r.Epoch })
		if i >= 0 {
			roles = append(roles, a.Roles[i])
			continue
		}
		a.Epoch++
		roles = append(roles, GrantedRole{Key: r.Key, Epoch: a.Epoch, Of: r.Epoch})
	}
	a.Roles = roles
}

// AccessGroupRolesSet records which roles a group of the organization gives from now on; none ends them.
type AccessGroupRolesSet struct {
	Group string         `json:"group"`
	Roles []user.AppRole `json:"roles,omitempty"`
}

// EventType implements event.Fact.
func (AccessGroupRolesSet) EventType() event.Type { return "project_access.group_roles_set.v1" }

// Apply implements event.Fact.
func (e AccessGroupRolesSet) Apply(a *Access) {
	a.GroupRoles = setGroupRoles(a.GroupRoles, e.Group, e.Roles)
}

// AccessRemoved records the end of the access, and with it of all that was given in it.
type AccessRemoved struct{}

// EventType implements event.Fact.
func (AccessRemoved) EventType() event.Type { return "project_access.removed.v1" }

// Apply implements event.Fact.
func (AccessRemoved) Apply(a *Access) { *a = Access{State: Removed, Epoch: a.Epoch} }
