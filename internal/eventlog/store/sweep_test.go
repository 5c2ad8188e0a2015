package store

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// expiring is a database with rows and tokens that last for an hour, more than are deleted at once, and some that last
// longer.
type expiring struct {
	options Options
	late    atomic.Int64 // how far the clock is from when these were put
}

func newExpiring(t *testing.T, db testdb.Database) (*expiring, *Store) {
	t.Helper()
	e := &expiring{}
	e.options = Options{Database: db.URL, Master: secret.NewMasterKey(), Clock: func() time.Time {
		return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(e.late.Load()))
	}}
	s := e.open(t)
	err := s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
		hour := tx.Now() + time.Hour.Microseconds()
		for i := range 2*sweepRows + 100 {
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Throttle, Key: fmt.Sprint("k", i)}, Expires: hour})
		}
		for _, table := range event.SideTables {
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: table, Key: "soon"}, Expires: hour})
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: table, Key: "later"},
				Expires: hour + 100*time.Hour.Microseconds()})
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: table, Key: "never"}})
		}
		for i, expires := range []int64{0, hour, hour + 12*time.Hour.Microseconds()} {
			tx.PutToken(event.Token{ID: fmt.Sprint("tok_", i), Hash: append(make([]byte, 31), byte(i)), Kind: "session",
				Expires: expires})
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

func (e *expiring) open(t *testing.T) *Store {
	t.Helper()
	s, _, err := Open(t.Context(), e.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// rows tells how many rows each table has.
func rows(t *testing.T, s *Store) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, table := range []string{"throttle", "idempotency", "secrets", "keys", "tokens"} {
		err := s.engine.Query(t.Context(), "SELECT count(*) FROM "+table, nil, func(scan engine.Scanner) error {
			var n int
			err := scan(&n)
			all[table] = n
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Keys are not swept: they go with what they belong to.
var (
	allThere    = map[string]int{"throttle": 2*sweepRows + 103, "idempotency": 3, "secrets": 3, "keys": 3, "tokens": 3}
	afterAnHour = map[string]int{"throttle": 2, "idempotency": 2, "secrets": 2, "keys": 3, "tokens": 3}
	afterADay   = map[string]int{"throttle": 2, "idempotency": 2, "secrets": 2, "keys": 3, "tokens": 2}
)

// A node that has seen a counter does not take it for one that is there after the counter was deleted.
func TestACounterThatWasDeletedIsPutAgain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		e, s := newExpiring(t, db)
		key := event.RowKey{Table: event.Throttle, Key: "soon"}
		put := event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
			_, err := tx.Row(key)
			tx.PutRow(event.Row{RowKey: key, Value: []byte("again"), Expires: tx.Now() + time.Hour.Microseconds()})
			return err
		}}
		testkit.Must(t, s.Do(t.Context(), put))
		e.late.Store(int64(2 * time.Hour))
		testkit.Must(t, s.sweep(t.Context(), time.Minute))
		testkit.Must(t, s.Do(t.Context(), put))
		if got := rows(t, s)["throttle"]; got != afterAnHour["throttle"]+1 {
			t.Errorf("there are %d rows", got)
		}
	})
}

func TestWhatHasExpiredIsDeletedAndNothingElse(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		e, s := newExpiring(t, db)
		for _, c := range []struct {
			late time.Duration
			want map[string]int
		}{
			{0, allThere},
			{time.Hour, allThere},
			{time.Hour + time.Microsecond, afterAnHour},
			{25 * time.Hour, afterAnHour},
			{25*time.Hour + time.Microsecond, afterADay},
		} {
			e.late.Store(int64(c.late))
			if err := s.sweep(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if got := rows(t, s); !maps.Equal(got, c.want) {
				t.Errorf("after %s: %v", c.late, got)
			}
		}
		for id, there := range map[string]bool{"tok_0": true, "tok_1": false, "tok_2": true} {
			if got, err := s.TokenByID(t.Context(), id); err != nil || (got != nil) != there {
				t.Errorf("%s: %v, %v", id, got, err)
			}
		}
	})
}

// TestASweepLeavesTheRestToTheNextOne: where much has expired at once, that is no failure.
func TestASweepLeavesTheRestToTheNextOne(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		e, s := newExpiring(t, db)
		e.late.Store(int64(26 * time.Hour))
		if err := s.sweep(t.Context(), 0); err != nil || !maps.Equal(rows(t, s), allThere) {
			t.Errorf("a sweep without time: %v, %v", rows(t, s), err)
		}
		if err := s.sweep(t.Context(), time.Minute); err != nil || !maps.Equal(rows(t, s), afterADay) {
			t.Errorf("the next one: %v, %v", rows(t, s), err)
		}
	})
}

func TestANodeDeletesWhatHasExpiredByItselfUntilItIsClosed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		e, s := newExpiring(t, db)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		e.late.Store(int64(26 * time.Hour))
		e.options.SweepInterval = time.Millisecond
		s = e.open(t)
		testkit.Await(t, "it is deleted", func() bool { return maps.Equal(rows(t, s), afterADay) })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.sweeping:
		default:
			t.Error("it goes on after Close")
		}
	})
}

func TestNodesThatDeleteAtOnceLeaveEachOthersRowsAlone(t *testing.T) {
	e, s := newExpiring(t, testdb.New(t, testdb.Postgres))
	e.late.Store(int64(26 * time.Hour))
	nodes := []*Store{s, e.open(t), e.open(t)}
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() {
			if err := n.sweep(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	// A row that somebody holds is not waited for.
	err := s.engine.Transact(t.Context(), func(x engine.Executor) error {
		all.Wait()
		e.late.Store(int64(200 * time.Hour))
		err := x.Query(t.Context(), "SELECT 1 FROM throttle WHERE key = 'later' FOR UPDATE", nil,
			func(engine.Scanner) error { return nil })
		if err != nil {
			return err
		}
		return nodes[1].sweep(t.Context(), time.Minute)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := rows(t, s); got["throttle"] != 2 || got["idempotency"] != 1 || got["tokens"] != 1 {
		t.Errorf("%v", got)
	}
}
