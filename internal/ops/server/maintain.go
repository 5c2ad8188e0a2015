package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
)

// ErrNoInstallation says that the database is empty.
var ErrNoInstallation = errors.New("there is no installation here yet: create one with signet start")

// Migrate does what the start of a new version does to the data first, and no more; work comes after it. On PostgreSQL
// nodes of the version before may run meanwhile.
func Migrate(ctx context.Context, c Config, log *slog.Logger,
	work func(ctx context.Context, st *store.Store) error) error {
	return maintain(ctx, c, log, false, c.Database == "",
		func(ctx context.Context, st *store.Store, _ secret.MasterKey) error { return work(ctx, st) })
}

// Maintain opens the data of a stopped server for a command, locking the directory unless readOnly. On PostgreSQL with
// a master key from elsewhere it works without a directory: an operator may be on another machine.
func Maintain(ctx context.Context, c Config, log *slog.Logger, readOnly bool,
	work func(ctx context.Context, st *store.Store) error) error {
	return maintain(ctx, c, log, readOnly, !readOnly,
		func(ctx context.Context, st *store.Store, _ secret.MasterKey) error { return work(ctx, st) })
}

// MaintainKeys gives a command the signing keys. On PostgreSQL servers may run meanwhile; the embedded database has
// room for one process that writes.
func MaintainKeys(ctx context.Context, c Config, log *slog.Logger, readOnly bool,
	work func(ctx context.Context, keys *signing.Keys) error) error {
	return maintain(ctx, c, log, readOnly, !readOnly && c.Database == "",
		func(ctx context.Context, st *store.Store, master secret.MasterKey) error {
			return work(ctx, signing.New(st, master, time.Now))
		})
}

func maintain(ctx context.Context, c Config, log *slog.Logger, readOnly, lock bool,
	work func(ctx context.Context, st *store.Store, master secret.MasterKey) error) (err error) {
	if err := c.checkDatabase(); err != nil {
		return err
	}
	s := &Server{base: base{config: &settled{Config: c}, log: log}}
	s.dir, err = datadir.Open(c.DataDir, false)
	switch absent := errors.Is(err, fs.ErrNotExist) && c.Database != ""; {
	case absent && c.MasterKey == "" && c.MasterKeyFile == "":
		return fmt.Errorf("give the master key with --master-key-file or SIGNET_MASTER_KEY, or the directory that holds it with --data-dir: %w", err)
	case err != nil && !absent:
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if lock && s.dir != nil {
		if err := s.dir.Lock(); err != nil {
			return err
		}
	}
	master, err := s.openStore(ctx, false, readOnly)
	if err != nil {
		return err
	}
	return work(ctx, s.store, master)
}
