// Package role holds custom roles: named sets of permissions that an organization, or the installation, makes for
// itself.
//
// The role itself says what it is called and what it allows from now on. What its holders may do stands with each of
// them, as access.Custom (docs/decisions/0079): so a change of the permissions is a command that writes all holders
// (package customrole).
package role

import (
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of a custom role.
type State string

// ACTIVE -> REMOVED.
const (
	Active  State = "active"
	Removed State = "removed"
)

// Bounds.
const (
	Max        = 50   // roles of one scope
	MaxHolders = 1000 // of one role: a change of its permissions writes all of them in one command
)

// version is the version of facts from which on nodes know custom roles.
const version = 6

// Role is the state of a custom role. It belongs to an organization, or to access.Installation.
type Role struct {
	State       State               `json:"state"`
	Name        string              `json:"name,omitempty"`
	NameKey     string              `json:"nameKey,omitempty"`
	Description string              `json:"description,omitempty"`
	Permissions []access.Permission `json:"permissions,omitempty"` // sorted

	Place int `json:"place,omitempty"` // among the roles of its scope, from 1: there are Max of them
	// counted as the role is given; those who lose it count until somebody counts again
	Holders int64 `json:"holders,omitempty"`
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Role]{
	Name: "role", Table: "custom_roles", Prefix: access.CustomPrefix, Shape: 1,
	Facts:   []event.Fact[Role]{Added{}, Changed{}, PermissionsSet{}, HoldersCounted{}, WasRemoved{}},
	Columns: []string{event.State},
	Lookup:  func(o *event.Object[Role]) []string { return []string{string(o.Data.State)} },
	Claims: func(o *event.Object[Role]) []event.Claim {
		if o.Data.State == Removed {
			return nil
		}
		return []event.Claim{NameClaim(o.Org, o.Data.NameKey), placeClaim(o.Org, o.Data.Place)}
	},
	Copy: func(r *Role) Role { return *r }, // permissions are replaced, never altered
})

// NameClaim is the claim of the role with this name (in its comparison form) in a scope.
func NameClaim(scope, nameKey string) event.Claim {
	return event.Claim{Space: "role_name/" + scope, Key: nameKey}
}

// Added records a new role.
type Added struct {
	Name        string              `json:"name"`
	NameKey     string              `json:"nameKey"`
	Description string              `json:"description,omitempty"`
	Permissions []access.Permission `json:"permissions"`
	Place       int                 `json:"place"`
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "role.added.v1" }

// Since implements event.Gated: for a node of before, whoever holds the role holds nothing. Whatever else is recorded
// of a custom role comes after this.
func (Added) Since() int { return version }

// Apply implements event.Fact.
func (e Added) Apply(r *Role) {
	*r = Role{State: Active, Name: e.Name, NameKey: e.NameKey, Description: e.Description, Permissions: e.Permissions,
		Place: e.Place}
}

// Changed records another name or description.
type Changed struct {
	Name        *string `json:"name,omitempty"`
	NameKey     *string `json:"nameKey,omitempty"`
	Description *string `json:"description,omitempty"`
}

// EventType implements event.Fact.
func (Changed) EventType() event.Type { return "role.changed.v1" }

// Apply implements event.Fact.
func (e Changed) Apply(r *Role) {
	event.Set(&r.Name, e.Name)
	event.Set(&r.NameKey, e.NameKey)
	event.Set(&r.Description, e.Description)
}

// PermissionsSet records which permissions the role has from now on, and how many hold it: each of them has an event
// of its own.
type PermissionsSet struct {
	Permissions []access.Permission `json:"permissions"`
	Holders     int64               `json:"holders,omitempty"`
}

// EventType implements event.Fact.
func (PermissionsSet) EventType() event.Type { return "role.permissions_set.v1" }

// Apply implements event.Fact.
func (e PermissionsSet) Apply(r *Role) { r.Permissions, r.Holders = e.Permissions, e.Holders }

// HoldersCounted records how many hold the role at most. Whoever gives the role changes it so: a command that changes
// its permissions knows by that whether it has listed all holders.
type HoldersCounted struct {
	Holders int64 `json:"holders"`
}

// EventType implements event.Fact.
func (HoldersCounted) EventType() event.Type { return "role.holders_counted.v1" }

// Apply implements event.Fact.
func (e HoldersCounted) Apply(r *Role) { r.Holders = e.Holders }

// WasRemoved records the end of the role. Its name becomes free; its identifier is never used again.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "role.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(r *Role) { *r = Role{State: Removed} }

// Now is a role as it is given at this moment.
func Now(o *event.Object[Role]) access.Role { return access.Custom(o.ID, o.Data.Permissions) }
