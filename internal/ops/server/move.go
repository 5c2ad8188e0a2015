package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
)

// Move carries the installation of a stopped server to another database: to is a postgres:// address or a data
// directory. What was there stays as it is.
func Move(ctx context.Context, c Config, log *slog.Logger, to string, show store.Show) (moved *store.Moved, err error) {
	if strings.Contains(to, "://") && !store.IsPostgres(to) {
		// it may hold a password
		return nil, errors.New("--to must be a URL such as postgres://user@host:5432/name, or a directory")
	}
	err = Maintain(ctx, c, log, false, func(ctx context.Context, st *store.Store) error {
		if store.IsPostgres(to) {
			if err := vacant(ctx, to); err != nil {
				return err
			}
			moved, err = st.MoveTo(ctx, to, show)
			return err
		}
		dir, err := datadir.Open(to, true)
		if err != nil {
			return err
		}
		defer dir.Close()
		if !dir.Is(c.DataDir) { // or it is locked already
			if err := dir.Lock(); err != nil {
				return err
			}
		}
		database, err := dir.Database()
		if err != nil {
			return err
		}
		if err := dir.Mend(ctx); err != nil {
			return err
		}
		if err := vacant(ctx, database); err != nil {
			return err
		}
		if err := dir.KeepMasterKey(st.MasterKey()); err != nil {
			return err
		}
		moved, err = st.MoveTo(ctx, database, show)
		return err
	})
	return moved, err
}

// vacant tells an operator at once that there is an installation in the way. What an unfinished move has left is not.
func vacant(ctx context.Context, database string) error {
	filled, err := store.TargetHasData(ctx, database)
	switch {
	case errors.Is(err, store.ErrHalfMoved):
		return nil
	case err != nil:
		return fmt.Errorf("reading the target: %w", err)
	case filled:
		return store.ErrNotEmpty
	}
	return nil
}
