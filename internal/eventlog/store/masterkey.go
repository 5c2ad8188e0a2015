package store

import (
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
)

// ErrWrongKey says that the database belongs to another master key.
var ErrWrongKey = errors.New("the master key does not fit this database: give the right one with --master-key-file or SIGNET_MASTER_KEY; " +
	"after a rotation, use the new one")

// errRootKey says that the database was tampered with, or is damaged.
var errRootKey = errors.New("the root key of this database was removed or changed (row root_key of table meta), and nothing can be read without it: " +
	"restore it from a backup")

// Names of rows in meta.
const (
	keyCheck = "master_key_check" // tells whether a master key is the right one
	rootKey  = "root_key"         // the key that everything is kept and counted with, wrapped by the master key
)

// Look is a first look at a database, before its key is known. Close it, unless a store was opened with it.
type Look struct {
	Filled  bool   // it holds an installation already
	MovedTo string // where a move has carried that, without credentials; empty: it is still here

	engine engine.Engine // that the store goes on with; nil: it opens the database itself
	file   bool          // the file of the embedded database is one that can be used
}

// LookAt looks at the database that a store is going to be opened on, and changes nothing. The connections to
// PostgreSQL that it makes stay for the store: making them is most of what a start takes.
func LookAt(ctx context.Context, o Options) (*Look, error) {
	if !engine.IsPostgres(o.Database) {
		have, err := storedMeta(ctx, engine.Options{Database: o.Database})
		return &Look{Filled: have[keyCheck] != nil, MovedTo: string(have[movedTo]),
			file: err == nil && have != nil}, err
	}
	e, err := engine.Open(ctx,
		engine.Options{Database: o.Database, Kinds: o.Kinds, Log: o.Log, ReadOnly: o.ReadOnly,
			FactVersion: o.FactVersion})
	if err != nil {
		return nil, err
	}
	have, err := metaIn(ctx, e)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &Look{Filled: have[keyCheck] != nil, MovedTo: string(have[movedTo]), engine: e}, nil
}

// Close ends a look that led to no store.
func (l *Look) Close() error {
	if l == nil || l.engine == nil {
		return nil
	}
	e := l.engine
	l.engine = nil
	return e.Close()
}

// HasData tells whether a database holds an installation already, without a key and without changing anything.
func HasData(ctx context.Context, database string) (bool, error) {
	have, err := storedMeta(ctx, engine.Options{Database: database})
	return have[keyCheck] != nil, err
}

// flagOfTarget names the database that a move leads to.
const flagOfTarget = "--to"

// TargetHasData is HasData of the database that a move leads to.
func TargetHasData(ctx context.Context, database string) (bool, error) {
	have, err := storedMeta(ctx, engine.Options{Database: database, Flag: flagOfTarget})
	return have[keyCheck] != nil, err
}

// Fits tells whether a master key is the one of a database, without changing anything.
func Fits(ctx context.Context, database string, key secret.MasterKey) (bool, error) {
	have, err := storedMeta(ctx, engine.Options{Database: database})
	return err == nil && constantTimeEqual(have[keyCheck], key.CheckValue()), err
}

// storedMeta gives what a database says about itself; nothing where it holds nothing.
func storedMeta(ctx context.Context, o engine.Options) (map[string][]byte, error) {
	if !engine.IsPostgres(o.Database) && !fileExists(o.Database) {
		return nil, nil
	}
	o.ReadOnly = true
	e, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return metaIn(ctx, e)
}

// metaIn is storedMeta in a database that is open.
func metaIn(ctx context.Context, e engine.Engine) (map[string][]byte, error) {
	have, err := readMeta(ctx, e)
	if err != nil && e.IsMissingTable(err) {
		return nil, nil
	}
	if err == nil && have[moving] != nil {
		err = ErrHalfMoved
	}
	return have, err
}

// bindMasterKey finds the root key. A database that is new is bound to the master key it is first opened with.
func (s *Store) bindMasterKey(ctx context.Context, readOnly bool) (created bool, err error) {
	want := s.given.CheckValue()
	// A database that is bound stays so, and that is what nearly every start finds: it needs no lock.
	if have, err := readMeta(ctx, s.engine); err == nil && have[moving] == nil && have[rootKey] != nil &&
		constantTimeEqual(have[keyCheck], want) {
		if s.root, err = s.given.UnwrapKey(have[rootKey]); err != nil {
			return false, errRootKey
		}
		return false, nil
	}
	err = s.engine.Transact(ctx, func(x engine.Executor) error {
		if !readOnly {
			// Two nodes that start on an empty database with different keys: the first wins, the other one stops.
			if err := s.engine.LockSchema(ctx, x); err != nil {
				return err
			}
		}
		have, err := readMeta(ctx, x)
		switch {
		case err != nil && !(readOnly && s.engine.IsMissingTable(err)):
			return err
		case have[moving] != nil:
			return ErrHalfMoved
		case have[keyCheck] == nil && readOnly:
			return errors.New("the database is empty")
		case have[keyCheck] == nil:
			created = true
			if !s.seals() {
				s.root = s.given
				return putMeta(ctx, x, keyCheck, want)
			}
			return s.bindRoot(ctx, x, secret.NewMasterKey())
		case !constantTimeEqual(have[keyCheck], want):
			return ErrWrongKey
		case have[rootKey] == nil: // from before there was one
			if err := s.keptByMaster(ctx, x); err != nil {
				return err
			}
			if readOnly || !s.seals() {
				s.root = s.given
				return nil
			}
			return s.bindRoot(ctx, x, s.given)
		}
		if s.root, err = s.given.UnwrapKey(have[rootKey]); err != nil {
			return errRootKey
		}
		return nil
	})
	return created, err
}

// keptByMaster tells whether the master key is what a database without a root key is kept with. Where it is not, there
// was a root key: with another in its place nothing could be read, and the log would be sealed as it is now.
func (s *Store) keptByMaster(ctx context.Context, x engine.Executor) error {
	return x.Query(ctx, "SELECT key, value FROM keys ORDER BY key LIMIT 1", nil, func(scan engine.Scanner) error {
		var id string
		var wrapped []byte
		if err := scan(&id, &wrapped); err != nil {
			return err
		}
		if _, err := s.given.UnwrapDataKey(wrapped, id); err != nil {
			return errRootKey
		}
		return nil
	})
}

// bindRoot gives a database its root key. From then on its log is sealed: the first checkpoint is written with the key,
// once and for all.
func (s *Store) bindRoot(ctx context.Context, x engine.Executor, root secret.MasterKey) error {
	s.root = root
	if err := putKeys(ctx, x, s.given, root); err != nil {
		return err
	}
	return proof.Begin(ctx, x, root)
}

// reader is the part of an engine, and of a transaction, that reads.
type reader interface {
	Query(ctx context.Context, sql string, args []any, each func(engine.Scanner) error) error
}

func readMeta(ctx context.Context, x reader) (map[string][]byte, error) {
	have := map[string][]byte{}
	err := x.Query(ctx, "SELECT name, value FROM meta", nil, func(scan engine.Scanner) error {
		var name string
		var value []byte
		err := scan(&name, &value)
		have[name] = value
		return err
	})
	return have, err
}

// putKeys binds the database to a master key, which keeps the root key from then on.
func putKeys(ctx context.Context, x engine.Executor, master, root secret.MasterKey) error {
	if err := putMeta(ctx, x, keyCheck, master.CheckValue()); err != nil {
		return err
	}
	return putMeta(ctx, x, rootKey, master.WrapKey(root))
}

func putMeta(ctx context.Context, x engine.Executor, name string, value []byte) error {
	return x.Exec(ctx, "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

// RootKey is what everything in the database is kept and counted with. The master key may change; this one stays.
func (s *Store) RootKey() secret.MasterKey { return s.root }

// RotateMasterKey binds the database to another master key. The root key stays, so nodes that are running go on; one
// that starts needs the new key. When it fails, the outcome may be unknown: Fits tells. Errors: ErrWrongKey when
// another rotation came first.
func (s *Store) RotateMasterKey(ctx context.Context, next secret.MasterKey) error {
	err := s.engine.Transact(ctx, func(x engine.Executor) error {
		if err := s.engine.LockSchema(ctx, x); err != nil {
			return err
		}
		have, err := readMeta(ctx, x)
		if err != nil {
			return err
		}
		if !constantTimeEqual(have[keyCheck], s.given.CheckValue()) {
			return ErrWrongKey
		}
		return putKeys(ctx, x, next, s.root)
	})
	if err == nil {
		s.given = next
	}
	return err
}
