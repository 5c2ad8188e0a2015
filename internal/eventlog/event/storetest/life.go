package storetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var lifeChecks = []check{
	{name: "a caller whose time is over before the start costs nothing", test: overBefore},
	{name: "a caller who gives up in the queue is not run", test: overInQueue},
	{name: "a caller who gives up while it runs finds the command whole", test: overWhileRunning},
	{name: "closing answers what is queued", test: closeAnswersQueue},
	{name: "closing in the middle of much work leaves nobody without an answer", test: closeAmidWork},
	{name: "closing leaves no goroutine and no connection behind", test: nothingLeftBehind, alone: true},
	{name: "what was written is there after opening again", test: openAgain},
	{name: "another master key is refused", test: wrongKey},
	{name: "of two nodes with different keys on an empty database one is refused", test: twoKeys},
	{name: "nodes that start at once on an empty database find it whole", test: startTogether, nodes: true},
	{name: "a database without an installation has no data", test: hasData},
	{name: "a node for reading reads and does not write", test: readOnly},
	{name: "a lost connection costs at most what was in flight", test: lostConnection, nodes: true},
}

func overBefore(t *testing.T, e *env) {
	n := e.open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantKind(t, n.Do(ctx, event.Command{Decide: func(*event.Tx) error {
		t.Error("it was run")
		return nil
	}}), errs.Cancelled)
	must(t, n, addUser("usr_1", "ada")) // comes after it in the queue, if it was there
	if _, err := n.Record(ctx, users.Ref("usr_1")); err != nil && errs.KindOf(err) != errs.Cancelled {
		t.Errorf("reading for a caller who is gone: %v", err)
	}
}

func overInQueue(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	release := hold(t, n)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- n.Do(ctx, changeUser("usr_1", func(*event.Tx, *event.Object[user]) error {
			t.Error("it was run")
			return nil
		}))
	}()
	testkit.Await(t, "the command is queued", func() bool { return n.Queued() == 1 })
	cancel()
	wantKind(t, testkit.Receive(t, done, "who gave up has an answer"), errs.Cancelled)
	release()
	must(t, n, count("usr_1")) // behind it
	verify(t, n)
}

func overWhileRunning(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	ctx, cancel := context.WithCancel(context.Background())
	running, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- n.Do(ctx, changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
			close(running)
			<-resume
			return u.Append(counted{By: 1}, counted{By: 1})
		}))
	}()
	testkit.Receive(t, running, "the command runs")
	cancel()
	wantKind(t, testkit.Receive(t, done, "who gave up has an answer"), errs.Cancelled)
	close(resume)
	must(t, n, changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
		if u.Data.Count != 0 && u.Data.Count != 2 {
			return errors.New("it is half done")
		}
		return nil
	}))
	verify(t, n)
}

func closeAnswersQueue(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	release := hold(t, n)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			if err := n.Do(context.Background(), count("usr_1")); err != nil {
				t.Errorf("queued command %d: %v", i, err)
			}
		})
	}
	testkit.Await(t, "the commands are queued", func() bool { return n.Queued() == 5 })
	closed := make(chan error, 1)
	go func() { closed <- n.Close() }()
	release()
	all.Wait()
	if err := testkit.Receive(t, closed, "the node is closed"); err != nil {
		t.Fatal(err)
	}
	wantKind(t, do(t, n, count("usr_1")), errs.Unavailable)
	again := e.open(t)
	if u := getUser(t, again, "usr_1"); u.Data.Count != 5 {
		t.Errorf("count %d", u.Data.Count)
	}
	verify(t, again)
}

func closeAmidWork(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	var done atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for {
				err := n.Do(context.Background(), count("usr_1"))
				if err != nil {
					if errs.KindOf(err) != errs.Unavailable {
						t.Error(err)
					}
					return
				}
				done.Add(1)
			}
		})
	}
	testkit.Await(t, "there is much work", func() bool { return done.Load() > 50 })
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	again := e.open(t)
	if u := getUser(t, again, "usr_1"); int64(u.Data.Count) != done.Load() {
		t.Errorf("%d commands were told they are done, the count is %d", done.Load(), u.Data.Count)
	}
	verify(t, again)
}

func nothingLeftBehind(t *testing.T, e *env) {
	before := runtime.NumGoroutine()
	node, _, err := e.subject.Open(t.Context(), e.options())
	if err != nil {
		t.Fatal(err)
	}
	must(t, node, addUser("usr_1", "ada"))
	parallel(16, func(i int) {
		if err := node.Do(context.Background(), count("usr_1")); err != nil {
			t.Error(err)
		}
		getUser(t, node, "usr_1")
	})
	if err := do(t, node, refuse("usr_1")); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	verify(t, node)
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
	if e.db.Engine == testdb.Postgres {
		testkit.Await(t, "the connections are gone", func() bool { return e.subject.Pooled || len(e.backends(t)) == 0 })
	} else if left, _ := filepath.Glob(e.db.URL + "-*"); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}

// backends are the process ids of PostgreSQL that serve others on this database.
func (e *env) backends(t *testing.T) (pids []int) {
	t.Helper()
	db := e.sql(t)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(),
		"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func openAgain(t *testing.T, e *env) {
	node, created, err := e.subject.Open(t.Context(), e.options())
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	must(t, node, addUser("usr_1", "ada"))
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	if err := node.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	node, created, err = e.subject.Open(t.Context(), e.options())
	if err != nil || created {
		t.Fatalf("created again: %v, %v", created, err)
	}
	defer node.Close()
	must(t, node, count("usr_1"))
	if u := getUser(t, node, "usr_1"); u.Data.Count != 1 || u.Data.Name != "ada" {
		t.Errorf("%+v", u.Data)
	}
	verify(t, node)
}

func wrongKey(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	o := e.options()
	o.Master = secret.NewMasterKey()
	for _, o.ReadOnly = range []bool{false, true} {
		if node, _, err := e.subject.Open(t.Context(), o); !errors.Is(err, e.subject.ErrWrongKey) {
			t.Errorf("read-only %v: opened %v, %v", o.ReadOnly, node, err)
		}
	}
	verify(t, e.open(t))
}

func twoKeys(t *testing.T, e *env) {
	nodes, refusals := make([]Node, 2), make([]error, 2)
	var turn sync.Mutex
	parallel(2, func(i int) {
		if e.db.Engine == testdb.SQLite { // one process at a time; a lock file beside the database sees to that
			turn.Lock()
			defer turn.Unlock()
		}
		o := e.options()
		o.Master = secret.NewMasterKey()
		nodes[i], _, refusals[i] = e.subject.Open(t.Context(), o)
	})
	opened := 0
	for i, err := range refusals {
		if err == nil {
			opened++
			must(t, nodes[i], addUser("usr_1", "ada"))
			verify(t, nodes[i])
			nodes[i].Close()
		} else if !errors.Is(err, e.subject.ErrWrongKey) {
			t.Errorf("refused with %v", err)
		}
	}
	if opened != 1 {
		t.Errorf("%d of two opened", opened)
	}
}

func startTogether(t *testing.T, e *env) {
	nodes := make([]Node, 6)
	var created atomic.Int32
	parallel(len(nodes), func(i int) {
		node, first, err := e.subject.Open(t.Context(), e.options())
		if err != nil {
			t.Error(err)
			return
		}
		if nodes[i] = node; first {
			created.Add(1)
		}
	})
	for i, node := range nodes {
		if node != nil {
			defer node.Close()
			must(t, node, addUser(users.NewID(), "name"+string(rune('a'+i))))
		}
	}
	if created.Load() != 1 {
		t.Errorf("%d of them were told the database was empty", created.Load())
	}
	verify(t, nodes[0])
}

func hasData(t *testing.T, e *env) {
	want := func(want bool) {
		t.Helper()
		if got, err := e.subject.HasData(t.Context(), e.db.URL); err != nil || got != want {
			t.Errorf("has data: %v, %v; want %v", got, err, want)
		}
	}
	want(false)
	if e.db.Engine == testdb.SQLite {
		if _, err := os.Stat(e.db.URL); !errors.Is(err, os.ErrNotExist) {
			t.Error("looking has made the file")
		}
		if err := os.WriteFile(e.db.URL, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want(false)
	}
	o := e.options()
	o.ReadOnly = true
	if node, _, err := e.subject.Open(t.Context(), o); err == nil {
		node.Close()
		t.Error("an empty database opens for reading")
	}
	n := e.open(t)
	want(true) // beside a running server
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	want(true)
}

func readOnly(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	o := e.options()
	o.ReadOnly = true
	reader := e.openWith(t, o)
	must(t, n, count("usr_1"))
	if u := getUser(t, reader, "usr_1"); u.Data.Count != 1 {
		t.Errorf("count %d", u.Data.Count)
	}
	verify(t, reader)
	if err := do(t, reader, count("usr_1")); err == nil {
		t.Error("it writes")
	}
	if err := reader.Rebuild(t.Context()); err == nil {
		t.Error("it rebuilds")
	}
	must(t, n, count("usr_1"))
	verify(t, n)
}

// lostConnection ends the node's connections from outside, as a restarted server or a firewall would.
func lostConnection(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	kill := func() {
		t.Helper()
		pids := e.backends(t)
		if len(pids) == 0 {
			t.Fatal("there is no connection to lose")
		}
		e.tamper(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		testkit.Await(t, "the connections are gone", func() bool {
			for _, pid := range e.backends(t) {
				for _, killed := range pids {
					if pid == killed {
						return false
					}
				}
			}
			return true
		})
	}
	for range 3 {
		kill() // nothing was in flight: nobody notices
		must(t, n, count("usr_1"))
		getUser(t, n, "usr_1")
	}
	p := newPause()
	c := changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
		p.here()
		return u.Append(counted{By: 1})
	})
	wantKind(t, meanwhile(t, n, p, c, kill), errs.Unavailable)
	must(t, n, count("usr_1"))
	if u := getUser(t, n, "usr_1"); u.Data.Count != 4 {
		t.Errorf("count %d", u.Data.Count)
	}
	// With commands queued behind the one whose connection is lost.
	release := hold(t, n)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := n.Do(context.Background(), count("usr_1")); err != nil {
				t.Error(err)
			}
		})
	}
	testkit.Await(t, "the commands are queued", func() bool { return n.Queued() == 3 })
	kill()
	release() // it had nothing to write, so nothing was lost
	all.Wait()
	verify(t, n)
}
