package org

import (
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MetadataSet records what became of the metadata of the organization.
type MetadataSet struct {
	metadata.Change
}

// EventType implements event.Fact.
func (MetadataSet) EventType() event.Type { return "org.metadata_set.v1" }

// Since implements event.Gated: a node that does not know it would lose the metadata when it changes the organization.
func (MetadataSet) Since() int { return 4 }

// Apply implements event.Fact.
func (e MetadataSet) Apply(o *Org) { o.Metadata = e.Change.Apply(o.Metadata) }
