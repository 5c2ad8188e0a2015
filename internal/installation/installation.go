// Package installation holds what is true of the whole installation: which organization is the default one, and who
// owns the installation. There is exactly one, made by the first start.
package installation

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/event"
)

// ID of the one installation.
const ID = "installation"

// Installation is its state.
type Installation struct {
	DefaultOrg string   `json:"defaultOrg"`
	Owners     []string `json:"owners,omitempty"` // users with the role IAM_OWNER: never none
}

// Kind of the object of this package.
var Kind = event.Define(event.Schema[Installation]{
	Name: "installation", Table: "installations", Prefix: "ins", Shape: 1,
	Facts: []event.Fact[Installation]{Added{}, OwnerAdded{}},
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

// Read reads the installation; nil before the first start.
func Read(ctx context.Context, r event.Reader) (*event.Object[Installation], error) {
	return Kind.Read(ctx, r, ID)
}
