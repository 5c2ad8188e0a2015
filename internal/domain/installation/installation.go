// Package installation holds the state of the whole installation: its default organization, its owners and its policy.
// There is exactly one installation, which the first start makes.
package installation

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ID of the one installation.
const ID = "installation"

// Installation is its state.
type Installation struct {
	Standing
	DefaultOrg string   `json:"defaultOrg"`
	Owners     []string `json:"owners,omitempty"` // users with the role IAM_OWNER: never none

	Policy policy.Policy `json:"policy,omitzero"` // what counts in every organization
}

// Standing is the part of the installation's state that decides about credentials. Every request reads it.
type Standing struct {
	SecondFactorRequired bool `json:"secondFactorRequired,omitempty"`
}

// Kind of the object of this package.
var Kind = event.Define(event.Schema[Installation]{
	Name: "installation", Table: "installations", Prefix: "ins", Shape: 2,
	Facts:   []event.Fact[Installation]{Added{}, OwnerAdded{}, OwnerRemoved{}, MembersChanged{}, PolicySet{}},
	Token:   event.TokenInstallation,
	Only:    ID,
	Columns: []string{event.Standing},
	Lookup: func(o *event.Object[Installation]) []string {
		return []string{event.StandingOf(&o.Data.Standing)}
	},
})

// Ref points at the one installation.
var Ref = Kind.Ref(ID)

// Added records the first start.
type Added struct {
	DefaultOrg string `json:"defaultOrg"`
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "installation.added.v1" }

// Apply implements event.Fact.
func (e Added) Apply(i *Installation) { i.DefaultOrg = e.DefaultOrg }

// OwnerAdded records that a user became an owner of the installation.
type OwnerAdded struct {
	UserID string `json:"userId"`
}

// EventType implements event.Fact.
func (OwnerAdded) EventType() event.Type { return "installation.owner_added.v1" }

// Apply implements event.Fact.
func (e OwnerAdded) Apply(i *Installation) {
	if !slices.Contains(i.Owners, e.UserID) {
		i.Owners = append(i.Owners, e.UserID)
	}
}

// OwnerRemoved records that a user is no longer an owner of the installation.
type OwnerRemoved struct {
	UserID string `json:"userId"`
}

// EventType implements event.Fact.
func (OwnerRemoved) EventType() event.Type { return "installation.owner_removed.v1" }

// Apply implements event.Fact.
func (e OwnerRemoved) Apply(i *Installation) {
	i.Owners = slices.DeleteFunc(slices.Clone(i.Owners), func(id string) bool { return id == e.UserID })
}

// MembersChanged records that what a user holds in the installation changed, where the list of owners stays as it is.
// So every grant in the installation moves its sequence, and a decision can rest on nobody having been given more.
type MembersChanged struct {
	UserID string `json:"userId,omitempty"`
	Role   string `json:"role,omitempty"` // a custom role that has other permissions now, in place of a user
}

// EventType implements event.Fact.
func (MembersChanged) EventType() event.Type { return "installation.members_changed.v1" }

// Apply implements event.Fact.
func (MembersChanged) Apply(*Installation) {}

// Read reads the installation; nil before the first start.
func Read(ctx context.Context, r event.Reader) (*event.Object[Installation], error) {
	return Kind.Read(ctx, r, ID)
}
