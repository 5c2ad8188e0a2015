package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// gatedNamed is of a later version where it gives a role, and else as it has always been.
type gatedNamed struct {
	Name string `json:"name"`
}

func (gatedNamed) EventType() event.Type { return "sign_in.named.v1" }
func (f gatedNamed) Apply(s *oldThing)   { s.Name = f.Name }
func (f gatedNamed) Since() int          { return map[string]int{"role": 2, "another role": 3}[f.Name] }

var gatedThings = event.Define(event.Schema[oldThing]{Name: "sign_in", Table: "sign_ins", Prefix: "x", Shape: 1,
	Facts: []event.Fact[oldThing]{gatedNamed{}}})

func nameGated(id, to string) event.Command { return name(gatedThings, id, to, gatedNamed{to}, nil) }

// knowing opens nodes that know the facts of a version, on one database.
func knowing(t *testing.T, db testdb.Database) func(version int) (*Store, error) {
	master := secret.NewMasterKey()
	return func(version int) (*Store, error) {
		s, _, err := Open(t.Context(),
			Options{Database: db.URL, Kinds: []event.Definition{gatedThings}, Master: master, FactVersion: version,
				SweepInterval: time.Hour})
		if err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return s, err
	}
}

func wantOlderNodes(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.FailedPrecondition ||
		e.Reason != event.OlderNodes {
		t.Errorf("%v", err)
	}
}

func wantNode(t *testing.T, open func(int) (*Store, error), version int) *Store {
	t.Helper()
	s, err := open(version)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAGatedFactNeedsAProgramThatKnowsItForGood(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		open := knowing(t, db)
		s := wantNode(t, open, 1)
		wantOlderNodes(t, s.Do(t.Context(), nameGated("x_1", "role")))
		if err := s.Do(t.Context(), nameGated("x_1", "plain")); err != nil {
			t.Errorf("a fact that everybody knows: %v", err)
		}
		s.Close()
		s = wantNode(t, open, 2)
		s.Close()
		wantNode(t, open, 1).Close() // nothing has been recorded yet
		s = wantNode(t, open, 3)
		if err := s.Do(t.Context(), nameGated("x_1", "role")); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if _, err := open(1); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a node that does not know the facts: %v", err)
		}
		wantNode(t, open, 2).Close()
		for _, role := range []string{"another role", "role"} { // the lower version does not take back the higher one
			s = wantNode(t, open, 3)
			if err := s.Do(t.Context(), nameGated("x_1", role)); err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
		if _, err := open(2); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a node that does not know the last facts: %v", err)
		}
	})
}

func TestOneCommandMayHaveFactsOfSeveralVersions(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := wantNode(t, knowing(t, db), 3)
		ref := gatedThings.Ref("x_1")
		if err := s.Do(t.Context(), event.Command{Create: []event.Ref{ref}, Decide: func(tx *event.Tx) error {
			_, err := gatedThings.Create(tx, "x_1", "org_a", gatedNamed{"role"}, gatedNamed{"another role"})
			return err
		}}); err != nil {
			t.Errorf("the first such command on a new database: %v", err)
		}
	})
}

func TestAGatedFactWaitsForTheOldestNode(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	open := knowing(t, db)
	older, newer := wantNode(t, open, 1), wantNode(t, open, 2)
	wantNode(t, knowing(t, testdb.New(t, testdb.Postgres)), 1) // on another database: it does not count
	answers := batch(newer, nameGated("x_1", "role"), nameGated("x_2", "plain"))
	wantOlderNodes(t, answers[0])
	if answers[1] != nil {
		t.Errorf("a command beside it: %v", answers[1])
	}
	wantOlderNodes(t, newer.Do(t.Context(), nameGated("x_1", "role")))
	reader, _, err := Open(t.Context(),
		Options{Database: db.URL, Kinds: []event.Definition{gatedThings}, Master: older.given, FactVersion: 1,
			ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() // who only reads does not count
	older.Close()
	if err := newer.Do(t.Context(), nameGated("x_1", "role")); err != nil {
		t.Fatal(err)
	}
	if err := wantNode(t, open, 3).Do(t.Context(), nameGated("x_1", "role")); err != nil {
		t.Errorf("another node: %v", err)
	}
}

// A node of a version before there were versions of facts holds the lock of running nodes and no other.
func TestANodeWithoutAVersionIsTheOldest(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	newer := wantNode(t, knowing(t, db), 2)
	conn := connect(t, db)
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock_shared(7410250902)"); err != nil {
		t.Fatal(err)
	}
	wantOlderNodes(t, newer.Do(t.Context(), nameGated("x_1", "role")))
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	if err := newer.Do(t.Context(), nameGated("x_1", "role")); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, db testdb.Database) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// A node that has lost its connection is not seen. It takes its place again before long, also when nobody writes, and
// learns what has been recorded meanwhile.
func TestANodeThatWasCutOffJoinsAgain(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	open := knowing(t, db)
	older, newer := wantNode(t, open, 1), wantNode(t, open, 2)
	conn := connect(t, db)
	cut := func() {
		t.Helper()
		if _, err := conn.Exec(t.Context(),
			"SELECT pg_terminate_backend(pid, 10000) FROM (SELECT DISTINCT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database "+
				"WHERE l.locktype = 'advisory' AND d.datname = current_database()) nodes"); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	if err := older.engine.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOlderNodes(t, newer.Do(t.Context(), nameGated("x_1", "role")))
	cut()
	if err := newer.Do(t.Context(), nameGated("x_1", "role")); err != nil {
		t.Fatal(err)
	}
	if err := older.Do(t.Context(), nameGated("x_1", "plain")); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a node that does not know the facts any more: %v", err)
	}
}

// A connection that died while it lay in the pool is not noticed by a transaction that begins on it, just as a read
// does not notice.
func TestATransactionDoesNotBeginOnADeadConnection(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	e, err := engine.Open(t.Context(), engine.Options{Database: db.URL})
	testkit.Must(t, err)
	defer e.Close()
	conn := connect(t, db)
	one := func(x engine.Executor) error {
		return x.Query(t.Context(), "SELECT 1", nil, func(engine.Scanner) error { return nil })
	}
	for name, transact := range map[string]func(context.Context,
		func(engine.Executor) error) error{"one that writes": e.Transact, "a snapshot": e.Snapshot, "aside": e.Aside} {
		testkit.Must(t, e.Transact(t.Context(), one))
		_, err := conn.Exec(t.Context(),
			"SELECT pg_terminate_backend(pid, 180000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		testkit.Must(t, err)
		if err := transact(t.Context(), one); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNodesJoinAgainAtIntervals(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	s, _, err := Open(t.Context(),
		Options{Database: db.URL, Kinds: []event.Definition{gatedThings}, Master: secret.NewMasterKey(),
			SweepInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn := connect(t, db)
	holder := func() (pid int) {
		t.Helper()
		err := conn.QueryRow(t.Context(),
			"SELECT coalesce(max(l.pid), 0) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.objsubid = 2 AND d.datname = current_database()").Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	first := holder()
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend($1, 180000)", first); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "it joins again", func() bool { next := holder(); return next != 0 && next != first })
}

// Who raises the version waits for a node that is about to join, and sees it then.
func TestAVersionIsNotRaisedPastANodeThatIsJoining(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	newer := wantNode(t, knowing(t, testdb.Database{Engine: db.Engine, URL: db.Patient()}), 2)
	conn := connect(t, db) // an older node, one lock after the other
	exec := func(text string) {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec("SELECT pg_advisory_lock_shared(7410250903)")
	raised := make(chan bool, 1)
	go func() {
		done, err := newer.raiseFactVersion(t.Context(), 2)
		if err != nil {
			t.Error(err)
		}
		raised <- done
	}()
	testkit.Await(t, "it waits for the node", func() bool {
		var waiting int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "+
			"WHERE NOT l.granted AND d.datname = current_database()").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting > 0 || len(raised) > 0
	})
	exec("SELECT pg_advisory_lock_shared(7410250902), pg_advisory_lock_shared(741025090, 1)")
	exec("SELECT pg_advisory_unlock_shared(7410250903)")
	if testkit.Receive(t, raised, "it was raised or not") {
		t.Error("it was raised while an older node joined")
	}
	have, err := readMeta(t.Context(), newer.engine)
	if err != nil || string(have[engine.FactVersionRow]) == "2" {
		t.Errorf("the version is %s, %v", have[engine.FactVersionRow], err)
	}
}

// Who joins while the version is raised waits, and sees the new one.
func TestNobodyJoinsWhileTheVersionIsRaised(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	newer := wantNode(t, knowing(t, db), 2)
	conn := connect(t, db)
	joined := make(chan error, 1)
	err := newer.engine.Transact(t.Context(), func(x engine.Executor) error {
		if err := newer.engine.LockJoins(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if oldest, _, err := newer.engine.Nodes(t.Context(), x); err != nil || oldest != 2 {
			t.Fatalf("the oldest is %d, %v", oldest, err)
		}
		go func() {
			late, err := engine.Open(t.Context(), engine.Options{Database: db.URL, FactVersion: 1})
			if err == nil {
				defer late.Close()
				err = late.Join(t.Context())
			}
			joined <- err
		}()
		for waiting := 0; waiting == 0 && len(joined) == 0; {
			if err := conn.QueryRow(t.Context(),
				"SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT l.granted AND d.datname = current_database()").Scan(&waiting); err != nil {
				t.Fatal(err)
			}
		}
		return putMeta(t.Context(), x, engine.FactVersionRow, []byte("2"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, joined, "the late node has an answer"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("it joined: %v", err)
	}
}
