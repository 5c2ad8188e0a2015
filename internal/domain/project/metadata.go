package project

import (
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MetadataSet records what became of the metadata of the project.
type MetadataSet struct {
	metadata.Change
}

// EventType implements event.Fact.
func (MetadataSet) EventType() event.Type { return "project.metadata_set.v1" }

// Since implements event.Gated: a node that does not know it would lose the metadata when it changes the project.
func (MetadataSet) Since() int { return 4 }

// Apply implements event.Fact.
func (e MetadataSet) Apply(p *Project) { p.Metadata = e.Change.Apply(p.Metadata) }
