package store

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// Rows that have expired count as absent wherever they are read. Every node deletes them now and then, so that
// the tables do not grow for ever.

const (
	sweepInterval = time.Minute
	sweepRows     = 200         // at most so many in one transaction: on SQLite the writer waits for it
	sweepPause    = 3           // times as long as a transaction took, before the next one: the writer's time
	sweepTime     = time.Minute // for one sweep; what is left is there for the next one
	rejoinTime    = 5 * time.Second
)

// swept are the tables with rows that expire, and for how long these are kept beyond that. Tokens are kept for a while:
// a node whose clock runs ahead must not end a session.
var swept = []struct {
	table, key string
	keep       time.Duration
}{
	{string(event.Throttle), "key", 0},
	{string(event.Idempotency), "key", 0},
	{string(event.Flows), "key", 0},
	{string(event.Secrets), "key", 0}, // codes, which expire; what does not is kept
	{"tokens", "hash", 24 * time.Hour},
}

// sweepAll deletes what has expired, at intervals, until the store closes.
func (s *Store) sweepAll(interval time.Duration) {
	defer close(s.sweeping)
	ctx := s.background
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.rejoin()
		if err := s.sweep(ctx, sweepTime); err != nil && ctx.Err() == nil {
			s.log.Warn("deleting expired rows failed", "error", err)
		}
	}
}

// rejoin makes a node known again that has lost its connection: who only reads would not notice. The writer waits
// meanwhile, so it gives up soon. It is not cut off when the store closes, or the connection would be, too, and keep
// its locks for a moment.
func (s *Store) rejoin() {
	ctx, cancel := context.WithTimeout(context.Background(), rejoinTime)
	defer cancel()
	if err := s.engine.Join(ctx); err != nil {
		s.log.Warn("this node may not be known to others: connecting again", "error", err)
	}
}

// sweep deletes what has expired, but begins nothing more when so much time is over. A database that hangs for longer
// still is not waited for.
func (s *Store) sweep(ctx context.Context, enough time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, enough+time.Minute)
	defer cancel()
	start, now := time.Now(), s.clock()
	for _, t := range swept {
		before := event.Micros(now.Add(-t.keep))
		expired := " FROM " + t.table + " WHERE expires > 0 AND expires < ? "
		// Mostly there is nothing: a look at the index finds that out without a transaction that writes.
		found := 0
		err := s.engine.Query(ctx, "SELECT 1"+expired+"LIMIT 1", []any{before}, func(engine.Scanner) error {
			found = sweepRows
			return nil
		})
		// What another node is deleting, or is about to put anew, is left to it.
		text := "DELETE FROM " + t.table + " WHERE " + t.key + " IN (SELECT " + t.key + expired +
			"ORDER BY expires LIMIT ?" + s.engine.SkipLocked() + ") RETURNING 1"
		for err == nil && found == sweepRows {
			if time.Since(start) > enough {
				return nil
			}
			found = 0
			began := time.Now()
			err = s.engine.Transact(ctx, func(x engine.Executor) error {
				return x.Query(ctx, text, []any{before, int64(sweepRows)}, func(engine.Scanner) error {
					found++
					return nil
				})
			})
			select {
			case <-time.After(sweepPause * time.Since(began)):
			case <-ctx.Done():
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
