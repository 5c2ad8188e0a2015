package store

import "context"

// BeforeLists opens a database with the schema of the version before lists.
func BeforeLists(ctx context.Context, o Options) (*Store, error) {
	o.schema = 2
	s, _, err := Open(ctx, o)
	return s, err
}

// Queued is how many commands wait for the writer.
func (s *Store) Queued() int { return len(s.queue) }
