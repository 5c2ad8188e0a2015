package store

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
)

// sealedSchema is the first version of the schema with a root key and checkpoints.
const sealedSchema = 5

func (s *Store) seals() bool { return s.schema == 0 || s.schema >= sealedSchema }

// sealAll seals the log until the store closes.
func (s *Store) sealAll(interval time.Duration) {
	defer close(s.sealing)
	if s.seals() {
		s.sealer.Run(interval, &s.written, s.stopping, s.stopped)
	}
}

// Sealed is the position up to which the log is sealed. It is what the database says: only Verify tells whether that is
// true.
func (s *Store) Sealed(ctx context.Context) (position int64, err error) {
	if !s.seals() {
		return 0, nil
	}
	if position, err = proof.Sealed(ctx, s.engine); err != nil {
		return 0, engine.Away(ctx, err)
	}
	return position, nil
}

// Lost is how many events at least that this node had seen the database has lost.
func (s *Store) Lost() int64 { return s.sealer.Lost() }

// Verify walks the whole log and tells whether it is as it was written. It changes nothing and may run beside a server.
func (s *Store) Verify(ctx context.Context, o proof.Options) (*proof.Report, error) {
	return proof.Verify(ctx, s.engine, s.root, s.kinds, o)
}
