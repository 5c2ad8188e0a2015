package store

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
)

// TestARebuildIsAlone: on PostgreSQL a rebuild and nodes that run keep each other out, also after a node's connection
// was cut and made anew.
func TestARebuildIsAlone(t *testing.T) {
	ctx := t.Context()
	db := testdb.New(t, testdb.Postgres)
	master := secret.NewMasterKey()
	node := func() *Store {
		t.Helper()
		s, _, err := Open(ctx, Options{Database: db.URL, Master: master})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	running, operator := node(), node()
	if _, err := operator.Rebuild(ctx); !errors.Is(err, ErrInUse) {
		t.Fatalf("beside a node: %v", err)
	}

	conn, err := pgx.Connect(ctx, db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx,
		"SELECT pg_terminate_backend(l.pid, 10000) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND d.datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{operator, running} { // both notice, and take the lock anew before they write
		s.run([]*pending{{done: make(chan error, 1)}}, 1, false)
	}
	if _, err := operator.Rebuild(ctx); !errors.Is(err, ErrInUse) {
		t.Fatalf("beside a node that had to connect again: %v", err)
	}

	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Rebuild(ctx); err != nil {
		t.Fatalf("alone: %v", err)
	}
	err = operator.engine.Alone(ctx, func(engine.Executor) error {
		late, err := engine.Open(ctx, engine.Options{Database: db.URL})
		if err != nil {
			return err
		}
		defer late.Close()
		if err := late.Join(ctx); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a node may join a rebuild: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	node()
	if _, err := operator.Rebuild(ctx); !errors.Is(err, ErrInUse) {
		t.Fatalf("beside a new node: %v", err)
	}
}

// Moves, rebuilds and checks take as long as the data is large, whatever a database or a role allows to requests.
func TestWorkOnEverythingHasNoTimeLimit(t *testing.T) {
	address := testdb.New(t, testdb.Postgres).URL
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	limits := []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}
	for _, limit := range limits {
		if _, err := conn.Exec(t.Context(),
			"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "+limit+
				" = ''20s''', current_database()); END $$"); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.Open(t.Context(), engine.Options{Database: address})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, transaction := range map[string]func(context.Context, func(engine.Executor) error) error{"alone": e.Alone,
		"snapshot": e.Snapshot} {
		err := transaction(t.Context(), func(x engine.Executor) error {
			for _, limit := range limits {
				var value string
				if err := x.Query(t.Context(), "SELECT current_setting(?)", []any{limit},
					func(scan engine.Scanner) error { return scan(&value) }); err != nil {
					return err
				}
				if value != "0" {
					t.Errorf("%s: %s is %s", name, limit, value)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
