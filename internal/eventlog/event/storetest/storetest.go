// Package storetest checks that every implementation of event.Store keeps the same promises, on every engine it runs
// on.
//
// The suite works from outside: through the store itself, through a second node on the same database where the engine
// allows it, and through a plain SQL connection to look at what is stored or to damage it. Where the order of things
// matters, commands wait for each other inside Decide; nothing waits for time to pass.
//
// Its objects (see kinds.go) are small stand-ins in the real tables. Most batches hold several kinds at once, so that
// statements made per kind (the arrays PostgreSQL writes states with, its check of objects only read) meet more than
// one of them.
package storetest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the plain connection to PostgreSQL
	_ "modernc.org/sqlite"             // and to SQLite

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// Node is one open store.
type Node interface {
	event.Log
	// Close answers what is queued, then stops.
	Close() error
	// RootKey is what the keys of personal data are wrapped with.
	RootKey() secret.MasterKey
	// Queued is how many commands wait for the writer.
	Queued() int
	// RebuildCheck tells where the stored state differs from what the log folds to.
	RebuildCheck(ctx context.Context) (differences []string, err error)
	// Rebuild makes the state anew from the log.
	Rebuild(ctx context.Context) error
}

// Options of one node.
type Options struct {
	Database string
	Kinds    []event.Definition
	Master   secret.MasterKey
	Clock    func() time.Time
	ReadOnly bool
}

// Subject is what the suite tests.
type Subject struct {
	// Open opens a node; created tells that the database was empty before.
	Open func(ctx context.Context, o Options) (node Node, created bool, err error)
	// HasData tells whether there is an installation in a database, without a key.
	HasData func(ctx context.Context, database string) (bool, error)
	// ErrWrongKey is how Open refuses a key that is not the database's.
	ErrWrongKey error
	// Pooled says that a pooler stands in front of the database, which keeps connections for others.
	Pooled bool
}

type check struct {
	name  string
	test  func(t *testing.T, e *env)
	nodes bool // needs several nodes on one database: PostgreSQL
	alone bool // counts what the whole process has, so nothing may run beside it
}

// Run runs the suite on every engine.
func Run(t *testing.T, subject Subject) {
	for _, checks := range [][]check{logChecks, eventChecks, batchChecks, claimChecks, raceChecks, besideChecks,
		tokenChecks, lifeChecks, rebuildChecks} {
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				engines := testdb.Engines
				if c.nodes {
					engines = []string{testdb.Postgres} // the embedded database has one node
				}
				testdb.On(t, engines, func(t *testing.T, db testdb.Database) {
					if !c.alone {
						t.Parallel() // the engines beside each other; the checks still one after the other
					}
					c.test(t, &env{subject: subject, db: db, address: db.Patient(), master: secret.NewMasterKey(),
						clock: NewClock()})
				})
			})
		}
	}
}

// env is one fresh database and what belongs to it.
type env struct {
	subject Subject
	db      testdb.Database
	address string // of the database, for nodes
	master  secret.MasterKey
	clock   *testkit.Clock
}

// NewClock makes a clock that moves a microsecond with each look at it. A store looks once a batch, so commands of one
// batch share a time.
func NewClock() *testkit.Clock {
	clock := testkit.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	clock.Step = time.Microsecond
	return clock
}

func (e *env) options() Options {
	return Options{Database: e.address, Kinds: kinds, Master: e.master, Clock: e.clock.Now}
}

// open opens a node that is closed with the test.
func (e *env) open(t *testing.T) Node {
	t.Helper()
	return e.openWith(t, e.options())
}

func (e *env) openWith(t *testing.T, o Options) Node {
	t.Helper()
	node, _, err := e.subject.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return node
}

// sql is a plain connection to the database.
func (e *env) sql(t *testing.T) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", e.db.URL
	if e.db.Engine == testdb.SQLite {
		driver, dsn = "sqlite", "file:"+e.db.URL+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// tamper changes what is stored behind the store's back.
func (e *env) tamper(t *testing.T, statement string) {
	t.Helper()
	db := e.sql(t)
	defer db.Close()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, _ := result.RowsAffected(); n == 0 {
		t.Fatalf("%s: nothing changed", statement)
	}
}

// dump reads whole tables as text, for comparison to the byte.
func (e *env) dump(t *testing.T, tables ...string) string {
	t.Helper()
	db := e.sql(t)
	defer db.Close()
	var out []string
	for _, table := range tables {
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			var line strings.Builder
			line.WriteString(table)
			for i := range values {
				v := *values[i].(*any)
				if s, ok := v.(string); ok {
					v = []byte(s)
				}
				fmt.Fprintf(&line, " %s=%q", columns[i], v)
			}
			out = append(out, line.String())
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// dumpState reads everything that a rebuild makes.
func (e *env) dumpState(t *testing.T) string {
	t.Helper()
	return e.dump(t, "orgs", "users", "sign_ins", "claims", "groupings", "word_blocks")
}

var origin = event.Origin{Actor: event.System, RequestID: "req_test"}

// must runs a command that has to succeed.
func must(t *testing.T, n Node, c event.Command) {
	t.Helper()
	if err := do(t, n, c); err != nil {
		t.Fatalf("the command failed: %v", err)
	}
}

func do(t *testing.T, n Node, c event.Command) error {
	t.Helper()
	c.Origin = origin
	return n.Do(t.Context(), c)
}

// wantKind checks the kind of a refusal.
func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != kind {
		t.Fatalf("got %v, want an error of kind %d", err, kind)
	}
}

// hold keeps a node's writer busy until the returned function is called, so that commands queue up behind it.
func hold(t *testing.T, n Node) (release func()) {
	t.Helper()
	running, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- n.Do(context.Background(), event.Command{Decide: func(*event.Tx) error {
			close(running)
			<-free
			return nil
		}})
	}()
	testkit.Receive(t, running, "the writer is busy")
	release = sync.OnceFunc(func() {
		close(free)
		if err := testkit.Receive(t, done, "the holding command is answered"); err != nil {
			t.Errorf("the holding command failed: %v", err)
		}
	})
	t.Cleanup(release) // a test that fails in between must be able to close its node
	return release
}

// Together hands commands to a node in this order and as one batch, and gives their answers.
func Together(t *testing.T, n Node, commands ...event.Command) []error {
	t.Helper()
	release := hold(t, n)
	answers := make([]error, len(commands))
	var all sync.WaitGroup
	for i, c := range commands {
		c.Origin = origin
		all.Go(func() { answers[i] = n.Do(context.Background(), c) })
		testkit.Await(t, "the command is queued", func() bool { return n.Queued() == i+1 })
	}
	release()
	all.Wait()
	return answers
}

// parallel runs f in n goroutines at once and waits for all of them.
func parallel(n int, f func(i int)) {
	var ready, all sync.WaitGroup
	ready.Add(n)
	for i := range n {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	all.Wait()
}

// pause is a place inside Decide where a command waits, the first time it comes by.
type pause struct {
	reached chan struct{}
	resume  chan struct{}
	once    sync.Once
}

func newPause() *pause { return &pause{reached: make(chan struct{}), resume: make(chan struct{})} }

func (p *pause) here() {
	p.once.Do(func() {
		close(p.reached)
		<-p.resume
	})
}

// meanwhile starts a command, lets act run while that command waits at the pause, and gives the command's answer.
func meanwhile(t *testing.T, n Node, p *pause, c event.Command, act func()) error {
	t.Helper()
	c.Origin = origin
	done := make(chan error, 1)
	go func() { done <- n.Do(context.Background(), c) }()
	select {
	case <-p.reached:
	case err := <-done:
		t.Fatalf("the command did not get to its pause: %v", err)
	}
	resume := sync.OnceFunc(func() { close(p.resume) })
	defer resume() // also when act ends the test
	act()
	resume()
	return testkit.Receive(t, done, "the command is answered")
}

// allEvents reads the whole log.
func allEvents(t *testing.T, n Node) []event.Event {
	t.Helper()
	var all []event.Event
	for {
		page, err := n.Events(t.Context(), int64(len(all)), 700)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) == 0 {
			return all
		}
	}
}

// verify checks everything that holds of a log and its state at any time.
func verify(t *testing.T, n Node) {
	t.Helper()
	last := map[string]*event.Event{}
	for i, e := range allEvents(t, n) {
		if e.Position != int64(i)+1 {
			t.Fatalf("event %d is at position %d", i+1, e.Position)
		}
		var hash []byte
		var sequence uint64
		if before := last[e.ObjectID]; before != nil {
			hash, sequence = before.Hash(), before.Sequence
			if e.Time < before.Time {
				t.Errorf("event %d is older than the one before it", e.Position)
			}
		}
		if e.Sequence != sequence+1 {
			t.Fatalf("%s: sequence %d follows %d", e.ObjectID, e.Sequence, sequence)
		}
		if string(e.PrevHash) != string(hash) {
			t.Fatalf("%s: the chain is broken at %d", e.ObjectID, e.Sequence)
		}
		last[e.ObjectID] = &e
	}
	for id, e := range last {
		rec, err := n.Record(t.Context(), event.Ref{Kind: e.Type.Kind(), ID: id})
		if err != nil || rec == nil {
			t.Fatalf("%s has events and no state: %v", id, err)
		}
		if rec.Sequence != e.Sequence || string(rec.Hash) != string(e.Hash()) || len(rec.Hash) != sha256.Size ||
			rec.Changed != e.Time {
			t.Errorf("%s: its state is at %d, its log at %d", id, rec.Sequence, e.Sequence)
		}
	}
	differences, err := n.RebuildCheck(t.Context())
	if err != nil || len(differences) > 0 {
		t.Errorf("the state is not what the log folds to: %q, %v", differences, err)
	}
}
