package program

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestAFollowerSeesEachPositionOnceScale: two nodes write, a transaction commits late, one of the nodes is killed, and
// whoever follows the log sees each position once and in order, and in the end all that was acknowledged.
func TestAFollowerSeesEachPositionOnceScale(t *testing.T) {
	t.Parallel()
	const writers = 48
	events := int64(scaled(4_000, 100_000))
	db := testdb.New(t, testdb.Postgres)
	db.URL = db.Patient() // a late transaction waits for a lock until the test has seen enough
	s := newSite(t, db)
	first := s.start(t)
	second := newSite(t, s.Database).start(t, "--master-key-file", s.path("master.key"))
	nodes := []*client{newClient(t, first, s.admin(t).Token), newClient(t, second, s.admin(t).Token)}
	var paths []string
	for i := range writers {
		made := nodes[i%2].want(t, 200, "POST", "/v1/idps/jwt", newProvider(fmt.Sprint("Written by ", i)))
		paths = append(paths, at[string](t, made, "idpId"))
	}
	f := s.follow(t)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var dead atomic.Bool
	var acknowledged sync.Map // which event, by object and sequence
	var writing sync.WaitGroup
	for i, id := range paths {
		writing.Go(func() {
			node := i % 2
			for n := 0; ctx.Err() == nil; n++ {
				status, answer, err := nodes[node].do(ctx, "PUT", "/v1/idps/"+id,
					object{"name": fmt.Sprintf("Writer %d, value %d", i, n)})
				switch {
				case err == nil && status == 200:
					acknowledged.Store(id+"."+at[string](t, answer, "details", "sequence"), true)
				case ctx.Err() != nil:
				case node == 1 && dead.Load():
					node = 0
				case status != 409 && status != 503 && status != 504: // the head of the log is held for a while
					t.Errorf("writer %d: %d %v %v", i, status, answer, err)
					return
				}
			}
		})
	}
	began := time.Now()
	f.await(t, events/4)
	s.commitLate(t, f, nodes[0])
	f.await(t, events/2)
	dead.Store(true)
	second.kill(t)
	f.await(t, events)
	took := time.Since(began)
	stop()
	writing.Wait()

	last, err := f.log.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.await(t, last)
	f.stop(t)
	count := 0
	acknowledged.Range(func(id, _ any) bool {
		count++
		if _, seen := f.seen.Load(id); !seen {
			t.Errorf("%s was acknowledged, and the follower has not seen it", id)
		}
		return !t.Failed()
	})
	if count == 0 {
		t.Error("nothing was acknowledged")
	}
	t.Logf("%d events in %v, %.0f/s, %d acknowledged, %d looks", last, took.Round(time.Millisecond),
		float64(events)/took.Seconds(), count, f.looks.Load())
	first.stop(t)
	runLong(t, s.args("rebuild", "--check")...).fine(t)
}

// follower reads a log as it is written.
type follower struct {
	log      *store.Store
	position atomic.Int64
	looks    atomic.Int64
	seen     sync.Map
	stopping chan struct{}
	stopped  chan struct{}
	problem  error
}

func (s *site) follow(t *testing.T) *follower {
	t.Helper()
	master, err := secret.ParseMasterKey(readFile(t, s.path("master.key")))
	if err != nil {
		t.Fatal(err)
	}
	st, _, err := store.Open(t.Context(),
		store.Options{Database: s.URL, Kinds: model.Kinds, Master: master, ReadOnly: true,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	f := &follower{log: st, stopping: make(chan struct{}), stopped: make(chan struct{})}
	go f.run()
	return f
}

func (f *follower) run() {
	defer close(f.stopped)
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-f.stopping:
			return
		case <-pace.C:
		}
		at := f.position.Load()
		events, err := f.log.Events(context.Background(), at, 500)
		if err != nil {
			f.problem = err
			return
		}
		for i := range events {
			e := &events[i]
			if e.Position != at+1 {
				f.problem = fmt.Errorf("position %d came after %d", e.Position, at)
				return
			}
			at = e.Position
			f.seen.Store(e.ObjectID+"."+strconv.FormatUint(e.Sequence, 10), true)
		}
		f.position.Store(at)
		f.looks.Add(1)
	}
}

// await waits until the follower has come so far.
func (f *follower) await(t *testing.T, position int64) {
	t.Helper()
	f.until(t, func() bool { return f.position.Load() >= position })
}

func (f *follower) until(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for before, end := int64(-1), time.Now(); !holds(); <-tick.C {
		if now := f.position.Load(); now != before {
			before, end = now, time.Now().Add(patience)
		}
		select {
		case <-f.stopped:
			t.Fatalf("the follower stopped at %d: %v", f.position.Load(), f.problem)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("the log stands still at %d", f.position.Load())
		}
	}
}

func (f *follower) stop(t *testing.T) {
	t.Helper()
	close(f.stopping)
	testkit.Receive(t, f.stopped, "the follower has stopped")
	if f.problem != nil {
		t.Fatal(f.problem)
	}
}

// commitLate lets a transaction of a node stand still in the moment between taking its position and its commit, until
// the follower has looked many times. Nothing that comes behind it may be seen meanwhile.
func (s *site) commitLate(t *testing.T, f *follower, node *client) {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$`)
	exec(`CREATE TRIGGER late BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.type LIKE 'app.%') EXECUTE FUNCTION wait()`)
	exec("SELECT pg_advisory_lock(4711)")
	done := make(chan error, 1)
	go func() {
		status, answer, err := node.do(context.Background(), "POST", "/v1/apps",
			object{"name": "Late", "type": "APPLICATION_TYPE_NATIVE", "grantTypes": []string{"GRANT_TYPE_DEVICE_CODE"}})
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %v", status, answer)
		}
		done <- err
	}()
	f.until(t, func() bool {
		waiting := 0
		if err := db.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting > 0
	})
	looks := f.looks.Load()
	f.until(t, func() bool { return f.looks.Load() > looks+1 })
	held := f.position.Load()
	f.until(t, func() bool { return f.looks.Load() > looks+50 })
	if now := f.position.Load(); now != held {
		t.Errorf("the log went on from %d to %d while a transaction before it had not committed", held, now)
	}
	exec("SELECT pg_advisory_unlock(4711)")
	if err := testkit.Receive(t, done, "the late transaction is answered"); err != nil {
		t.Errorf("the transaction that was late: %v", err)
	}
}
