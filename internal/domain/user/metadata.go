package user

import (
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MetadataSet records what became of the metadata of the user.
type MetadataSet struct {
	Personal metadata.Change `json:"-"`
}

// EventType implements event.Fact.
func (MetadataSet) EventType() event.Type { return "user.metadata_set.v1" }

// Since implements event.Gated: a node that does not know it would lose the metadata when it changes the user.
func (MetadataSet) Since() int { return 4 }

// Apply implements event.Fact.
func (e MetadataSet) Apply(u *User) { u.Metadata = e.Personal.Apply(u.Metadata) }
