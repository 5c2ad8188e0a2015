package store

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.Position(ctx)
	return err
}

// Ready tells within a second whether requests can be served, writes included. Errors: an *errs.Error that says in
// words why not.
func (s *Store) Ready(ctx context.Context) error { return s.ready.Check(ctx) }

// tryWrite writes a row that nobody needs, of a few pages: a full disk may have room for less. Each node has its own,
// or a node that hangs with its locks would make all others seem to hang.
func (s *Store) tryWrite(ctx context.Context) error {
	return s.Do(event.InBackground(ctx), event.Command{Decide: func(tx *event.Tx) error {
		tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Throttle, Key: s.name}, Value: make([]byte, 16<<10),
			Expires: event.Micros(s.clock().Add(time.Minute))})
		return nil
	}})
}
