package server

import (
	"context"
	"errors"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/store"
)

const (
	waitPause = 500 * time.Millisecond // between two tries to reach a database that is away
	waitSays  = 5 * time.Second        // between two lines in the log about that
	maxWait   = 24 * time.Hour
)

// lookAt looks at the database. A start waits for one that is away: machines and containers come up in any order. What
// waiting does not help, such as a wrong password, is said at once.
func (s *Server) lookAt(ctx context.Context, options store.Options, starting bool) (*store.Look, error) {
	end := time.Now()
	if starting {
		end = end.Add(s.config.DatabaseWait)
	}
	for said := (time.Time{}); ; {
		look, err := store.LookAt(ctx, options)
		if !errors.Is(err, store.ErrAway) || !time.Now().Before(end) {
			return look, err
		}
		if time.Since(said) >= waitSays {
			said = time.Now()
			s.log.Warn("waiting for the database (--database-wait)", "error", err, "left",
				time.Until(end).Round(time.Second).String())
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}
