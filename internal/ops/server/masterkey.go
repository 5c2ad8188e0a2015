package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
)

// masterKey finds the master key of the database. One that is in the directory may have been left there by a rotation
// that was cut off.
func (s *Server) masterKey(ctx context.Context, database string, filled bool) (secret.MasterKey, error) {
	if filled && s.config.MasterKey == "" && s.config.MasterKeyFile == "" {
		key, found, err := s.dir.SettleKey(func(key secret.MasterKey) (bool, error) {
			return store.Fits(ctx, database, key)
		})
		if found || err != nil {
			return key, err
		}
	}
	return s.dir.MasterKey(s.config.MasterKey, s.config.MasterKeyFile, !filled)
}

// Rotated says where the keys are after a rotation.
type Rotated struct {
	Key string // the file with the new one
	Old string // the file with the one before it; empty where that was given by the operator
}

// RotateMasterKey makes a new master key and binds the database to it. The key goes into a new file, or without a name
// for one takes the place of the one in the data directory. On the embedded database the server has to be stopped; on
// PostgreSQL nodes may run, but not the one whose directory the key is in when that is replaced.
func RotateMasterKey(ctx context.Context, c Config, log *slog.Logger, file string) (rotated Rotated, err error) {
	if file == "" && (c.MasterKey != "" || c.MasterKeyFile != "") {
		return rotated, errors.New("the master key is not in the data directory: name a file for the new key with --new-key-file")
	}
	if _, err := secret.ParseMasterKey([]byte(file)); err == nil {
		return rotated, errors.New("--new-key-file takes the name of a file, not a key: this command creates the key")
	}
	lock := c.Database == "" || file == ""
	err = maintain(ctx, c, log, false, lock, func(ctx context.Context, st *store.Store, _ secret.MasterKey) error {
		if file != "" {
			rotated.Key = file
			return rotateInto(ctx, st, file)
		}
		dir, err := datadir.Open(c.DataDir, false)
		if err != nil {
			return err
		}
		rotated.Key, rotated.Old = dir.KeyPaths()
		return rotateIn(ctx, st, dir)
	})
	return rotated, err
}

// rotateInto writes the new key into a file of the operator's choice.
func rotateInto(ctx context.Context, st *store.Store, file string) error {
	next, err := secret.CreateKeyFile(file)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: name a new file with --new-key-file", file)
	}
	if err != nil {
		return err
	}
	if err := st.RotateMasterKey(ctx, next); err != nil {
		// The database may have changed all the same. Without the new key everything would be lost then.
		return fmt.Errorf("the rotation failed, and the key in %s may be in use: start with the old key, and if that is refused, with this one: %w", file, err)
	}
	return nil
}

// rotateIn replaces the key in a directory. The next start puts right what is cut off here.
func rotateIn(ctx context.Context, st *store.Store, dir *datadir.Dir) error {
	next, err := dir.NewKey()
	if err != nil {
		return err
	}
	if err := st.RotateMasterKey(ctx, next); err != nil {
		return fmt.Errorf("the rotation failed: try again, or start the server, which uses the key in the directory that fits the database: %w", err)
	}
	return dir.AdoptNewKey()
}
