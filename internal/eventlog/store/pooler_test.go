package store

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// Behind PgBouncer in transaction mode nothing of a session can be relied on, and everything that nodes promise each
// other holds.
func TestNodesBehindAPooler(t *testing.T) {
	ctx := t.Context()
	db := testdb.New(t, testdb.Postgres)
	pooled := testdb.Pooled(t, db)
	_, _, err := Open(ctx, Options{Database: strings.Replace(pooled.URL, "&pooler=transaction", "", 1),
		Master: secret.NewMasterKey()})
	if err == nil || !strings.Contains(err.Error(), "add pooler=transaction to --database") {
		t.Errorf("an address that does not say so: %v", err)
	}
	master := secret.NewMasterKey()
	node := func(version int, address string) (*Store, error) {
		s, _, err := Open(ctx,
			Options{Database: address, Kinds: []event.Definition{gatedThings}, Master: master, FactVersion: version})
		if err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return s, err
	}
	old, err := node(1, pooled.URL)
	testkit.Must(t, err)
	operator, err := node(2, pooled.URL)
	testkit.Must(t, err)

	t.Run("many write and read at once", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				s := []*Store{old, operator}[i%2]
				id := "x_" + strconv.Itoa(i)
				if err := s.Do(ctx, nameGated(id, "plain")); err != nil {
					t.Error(err)
				}
				if r, err := s.Record(ctx, gatedThings.Ref(id)); r == nil || err != nil {
					t.Errorf("%v, %v", r, err)
				}
			})
		}
		all.Wait()
	})
	t.Run("a node that only waits keeps nobody from cleaning up, and no index from being built", func(t *testing.T) {
		// What a node does in the background has a snapshot, too, for a moment.
		testkit.Await(t, "transactions are open, and none has a snapshot", func() bool {
			var open, snapshots int
			testkit.Must(t, operator.engine.Query(ctx,
				"SELECT count(*), count(backend_xmin) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'", nil,
				func(scan engine.Scanner) error { return scan(&open, &snapshots) }))
			return open >= 2 && snapshots == 0
		})
	})
	t.Run("a node that only waits is known", func(t *testing.T) {
		wantOlderNodes(t, operator.Do(ctx, nameGated("x_new", "role")))
		if _, err := operator.Rebuild(ctx); !errors.Is(err, ErrInUse) {
			t.Errorf("a rebuild beside it: %v", err)
		}
	})
	t.Run("no batch runs beside a rebuild", func(t *testing.T) {
		testkit.Must(t, old.Close())
		late, err := node(2, db.URL) // directly, as one without a pooler
		testkit.Must(t, err)
		if _, err := operator.Rebuild(ctx); !errors.Is(err, ErrInUse) {
			t.Errorf("beside a node without a pooler: %v", err)
		}
		testkit.Must(t, late.Close())
		if _, err := operator.Rebuild(ctx); err != nil {
			t.Fatalf("alone: %v", err)
		}
		// It has left nothing to nodes that look for words. Those of this test know even less, and look for nothing.
		testkit.Must(t, operator.engine.Transact(ctx,
			func(x engine.Executor) error { return putMeta(ctx, x, engine.FactVersionRow, []byte("1")) }))
		testkit.Must(t, operator.engine.Alone(ctx, func(engine.Executor) error {
			if _, err := node(2, pooled.URL); errs.KindOf(err) != errs.Unavailable {
				t.Errorf("a node joins: %v", err)
			}
			return nil
		}))
	})
	t.Run("facts that a node does not know keep it from writing", func(t *testing.T) {
		again, err := node(1, pooled.URL)
		testkit.Must(t, err)
		testkit.Must(t, operator.engine.Transact(ctx,
			func(x engine.Executor) error { return putMeta(ctx, x, engine.FactVersionRow, []byte("2")) }))
		if err := again.Do(ctx, nameGated("x_1", "plain")); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("it writes: %v", err)
		}
		testkit.Must(t, operator.Do(ctx, nameGated("x_new", "role")))
	})
	report, err := operator.RebuildCheck(ctx)
	testkit.Must(t, err)
	if len(report.Differences) > 0 {
		t.Error(report.Differences)
	}
}

// Every batch takes its locks for itself: a node whose own transaction was ended writes nothing beside a rebuild.
func TestABatchBehindAPoolerIsNeverBesideARebuild(t *testing.T) {
	ctx := t.Context()
	db := testdb.New(t, testdb.Postgres)
	master := secret.NewMasterKey()
	s, _, err := Open(ctx, Options{Database: testdb.Pooled(t, db).URL, Kinds: []event.Definition{gatedThings},
		Master: master})
	testkit.Must(t, err)
	defer s.Close()
	direct, err := engine.Open(ctx, engine.Options{Database: db.URL})
	testkit.Must(t, err)
	defer direct.Close()
	// As if the pooler had been restarted: nobody knows the node, and it has not noticed.
	testkit.Must(t, direct.Transact(ctx, func(x engine.Executor) error {
		return x.Query(ctx, "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())", nil,
			func(engine.Scanner) error { return nil })
	}))
	testkit.Must(t, direct.Alone(ctx, func(engine.Executor) error {
		if err := s.Do(ctx, nameGated("x_1", "plain")); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("it writes: %v", err)
		}
		return nil
	}))
	for tries := 0; s.Do(ctx, nameGated("x_1", "plain")) != nil; tries++ {
		if tries == 100 {
			t.Fatal("it does not write afterwards")
		}
	}
}
