package proof_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/storetest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// account and visit are small stand-ins in real tables. Accounts have personal data.
type (
	account struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	named struct {
		Note     string `json:"note"`
		Personal struct {
			Name string `json:"name"`
		} `json:"-"`
	}
	visit struct {
		Count int `json:"count"`
	}
	visited struct {
		Page string `json:"page"`
	}
)

func (named) EventType() event.Type   { return "user.named.v1" }
func (f named) Apply(a *account)      { a.Name, a.Count = f.Personal.Name, a.Count+1 }
func (visited) EventType() event.Type { return "sign_in.visited.v1" }
func (visited) Apply(v *visit)        { v.Count++ }

var (
	accounts = event.Define(event.Schema[account]{
		Name:    "user",
		Table:   "users",
		Prefix:  "usr",
		Shape:   1,
		Facts:   []event.Fact[account]{named{}},
		Columns: []string{event.Standing, "verified_email"},
		Lookup:  func(*event.Object[account]) []string { return []string{"{}", ""} },
	})
	visits = event.Define(event.Schema[visit]{Name: "sign_in", Table: "sign_ins", Prefix: "sgi", Shape: 1,
		Facts: []event.Fact[visit]{visited{}}})
	kinds = []event.Definition{accounts, visits}
)

// database is one with its key and its clock.
type database struct {
	testdb.Database
	master secret.MasterKey
	clock  *testkit.Clock
	sql    *sql.DB // behind the store's back
}

func newDatabase(t *testing.T, db testdb.Database) *database {
	t.Helper()
	w := &database{Database: db, master: secret.NewMasterKey(), clock: storetest.NewClock()}
	driver, address := "pgx", db.URL
	if db.Engine == testdb.SQLite {
		driver, address = "sqlite", "file:"+db.URL+"?_pragma=busy_timeout(10000)"
	}
	var err error
	if w.sql, err = sql.Open(driver, address); err != nil {
		t.Fatal(err)
	}
	w.sql.SetMaxOpenConns(1)
	t.Cleanup(func() { w.sql.Close() })
	return w
}

const (
	never  = 24 * time.Hour // sealed at the start and at the end only
	atOnce = time.Millisecond
)

// open starts a node, and gives what it logs.
func (w *database) open(t *testing.T, sealing time.Duration) (*store.Store, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	s, _, err := store.Open(t.Context(), store.Options{
		Database:     w.URL,
		Kinds:        kinds,
		Master:       w.master,
		Clock:        w.clock.Now,
		SealInterval: sealing,
		Log:          slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, log
}

// add gives an object some more events, and makes it if there is none.
func add(s *store.Store, id string, n int) error {
	c := event.Command{Origin: event.Origin{Actor: "usr_actor", RequestID: "req_1"}}
	if strings.HasPrefix(id, "usr_") {
		c.Write = []event.Ref{accounts.Ref(id)}
		c.Decide = func(tx *event.Tx) error {
			return extend(tx, accounts, id, n, func(i int) event.Fact[account] {
				f := named{Note: fmt.Sprint("note ", i)}
				f.Personal.Name = fmt.Sprint("Ada the ", i)
				return f
			})
		}
	} else {
		c.Write = []event.Ref{visits.Ref(id)}
		c.Decide = func(tx *event.Tx) error {
			return extend(tx, visits, id, n, func(i int) event.Fact[visit] { return visited{fmt.Sprint("page ", i)} })
		}
	}
	return s.Do(context.Background(), c)
}

func extend[S any](tx *event.Tx, kind *event.Objects[S], id string, n int, fact func(i int) event.Fact[S]) error {
	o, err := kind.Get(tx, id)
	for i := 0; i < n && err == nil; i++ {
		if o == nil {
			o, err = kind.Create(tx, id, "org_1", fact(i))
		} else {
			err = o.Append(fact(i))
		}
	}
	return err
}

// fill writes events of several objects, mixed.
func fill(t *testing.T, s *store.Store, events int) {
	t.Helper()
	for i := 0; events > 0; i++ {
		id := fmt.Sprint("usr_", i%7)
		if i%3 == 2 {
			id = fmt.Sprint("sgi_", i)
		}
		n := min(events, i%5+1)
		if err := add(s, id, n); err != nil {
			t.Fatal(err)
		}
		events -= n
	}
}

// sealed fills a log and closes it, and gives its events.
func (w *database) sealed(t *testing.T, n int) []event.Event {
	t.Helper()
	s, _ := w.open(t, never)
	fill(t, s, n)
	events, err := s.Events(t.Context(), 0, n+1)
	if err != nil || len(events) != n {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return events
}

// refused checks that the database is not opened, for the reason that the error says.
func (w *database) refused(t *testing.T, says string) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		s, _, err := store.Open(t.Context(),
			store.Options{Database: w.URL, Kinds: kinds, Master: w.master, Clock: w.clock.Now, ReadOnly: readOnly})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("opened, read-only %v: %v", readOnly, err)
		}
	}
}

// unsealed has a node write something, and leaves the database as if it had been killed before it sealed any of that.
func (w *database) unsealed(t *testing.T, write func(s *store.Store)) {
	t.Helper()
	s, _ := w.open(t, never)
	w.exec(t, "CREATE TABLE before_checkpoints AS SELECT * FROM checkpoints")
	write(s)
	s.Close()
	w.restore(t, "before", "checkpoints")
	if _, err := w.sql.Exec("DROP TABLE before_checkpoints"); err != nil {
		t.Fatal(err)
	}
}

// verify runs beside whatever else is open.
func (w *database) verify(t *testing.T, expect *proof.Mark) *proof.Report {
	t.Helper()
	s, _, err := store.Open(t.Context(), store.Options{Database: w.URL, Kinds: kinds, Master: w.master, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Verify(t.Context(), proof.Options{Expect: expect})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (w *database) wantClean(t *testing.T, events, unsealed int64) *proof.Report {
	t.Helper()
	r := w.verify(t, nil)
	if r.Finding != nil {
		t.Fatal(r.Finding)
	}
	if r.Events != events || r.Unsealed != unsealed || r.Checkpoints != (events-unsealed)/1000+1 ||
		r.Head.Position != events {
		t.Fatalf("%+v, want %d events, %d of them not sealed", r, events, unsealed)
	}
	return r
}

// exec changes the database behind everybody's back.
func (w *database) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if w.Engine == testdb.Postgres {
		for i := 1; strings.Contains(statement, "?"); i++ {
			statement = strings.Replace(statement, "?", fmt.Sprint("$", i), 1)
		}
	}
	result, err := w.sql.ExecContext(t.Context(), statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, _ := result.RowsAffected(); n == 0 && !strings.HasPrefix(statement, "CREATE") {
		t.Fatalf("%s: nothing changed", statement)
	}
}

var tables = []string{"events", "log_head", "users", "sign_ins", "checkpoints"}

// save keeps all tables of the log under a name; restore brings them back.
func (w *database) save(t *testing.T, name string) {
	t.Helper()
	for _, table := range tables {
		w.exec(t, "CREATE TABLE "+name+"_"+table+" AS SELECT * FROM "+table)
	}
}

func (w *database) restore(t *testing.T, name string, which ...string) {
	t.Helper()
	if which == nil {
		which = tables
	}
	for _, table := range which {
		if _, err := w.sql.ExecContext(t.Context(), "DELETE FROM "+table); err != nil {
			t.Fatal(err)
		}
		w.exec(t, "INSERT INTO "+table+" SELECT * FROM "+name+"_"+table)
	}
}
