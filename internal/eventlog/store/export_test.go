package store

import (
	"context"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// BeforeLists opens a database with the schema of the version before lists.
func BeforeLists(ctx context.Context, o Options) (*Store, error) {
	o.schema, o.FactVersion = 2, event.WordBlocks-1
	s, _, err := Open(ctx, o)
	return s, err
}

// Queued is how many commands wait for the writer.
func (s *Store) Queued() int { return len(s.queue) }
