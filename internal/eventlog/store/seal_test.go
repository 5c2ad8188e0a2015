package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestADatabaseFromBeforeThereWereCheckpointsGetsThem(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
			SealInterval: time.Hour}
		with := func(o Options, f func(s *Store)) {
			t.Helper()
			s, _, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			f(s)
		}
		verify := func() (report *proof.Report) {
			t.Helper()
			o := options
			o.ReadOnly = true
			with(o, func(s *Store) {
				var err error
				if report, err = s.Verify(t.Context(), proof.Options{}); err != nil {
					t.Fatal(err)
				}
			})
			return report
		}
		old := options
		old.schema = sealedSchema - 1
		with(old, func(s *Store) {
			for i := range 25 {
				nameOften(t, s, fmt.Sprint("x_", i))
			}
		})
		if f := verify().Finding; f == nil || !strings.Contains(f.What, "start this version of the server once") {
			t.Errorf("before the upgrade: %v", f)
		}
		with(options, func(s *Store) {})
		if r := verify(); r.Finding != nil || r.Events != 2500 || r.Unsealed != 0 || r.Checkpoints != 3 {
			t.Errorf("%+v", r)
		}
		// That happens once: whoever removes the checkpoints does not get new ones.
		with(options, func(s *Store) {
			if err := s.engine.Transact(t.Context(),
				func(x engine.Executor) error { return x.Exec(t.Context(), "DELETE FROM checkpoints") }); err != nil {
				t.Fatal(err)
			}
		})
		with(options, func(s *Store) {})
		if f := verify().Finding; f == nil || !strings.Contains(f.What, "head of the checkpoints was removed") {
			t.Errorf("without checkpoints: %v", f)
		}
	})
}

// The embedded database lives on what it has in memory: sealing leaves that alone, and lets the writer write meanwhile.
func TestSealingDoesNotGetInTheWay(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(),
			Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
				SealInterval: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Do(t.Context(), oldName("x_1", "one")); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "the log is sealed", func() bool {
			r, err := s.Verify(t.Context(), proof.Options{})
			if err != nil || r.Finding != nil {
				t.Fatal(r, err)
			}
			return r.Unsealed == 0
		})
		if s.cache != nil && s.cache.Record(oldThings.Ref("x_1")) == nil {
			t.Error("the record is not in memory any more")
		}
		err = s.engine.Aside(t.Context(), func(x engine.Executor) error {
			if err := x.Query(t.Context(), "SELECT position FROM checkpoints WHERE number = 0", nil,
				func(engine.Scanner) error { return nil }); err != nil {
				return err
			}
			return s.Do(t.Context(), oldName("x_2", "two"))
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestANodeThatIsCutOffWhileItSealsLosesItsLocks(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Options{Database: testdb.New(t, testdb.Postgres).URL})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var limit string
	err = e.Aside(t.Context(), func(x engine.Executor) error {
		return x.Query(t.Context(), "SELECT current_setting('idle_in_transaction_session_timeout')", nil,
			func(scan engine.Scanner) error { return scan(&limit) })
	})
	if err != nil || limit != "10s" {
		t.Errorf("%q, %v", limit, err)
	}
}

func TestWhatIsWrittenAsideIsWrittenWholeOrNotAtAll(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(),
			Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
				SealInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.engine.Aside(t.Context(), func(x engine.Executor) error {
			if err := x.Exec(t.Context(), "INSERT INTO meta (name, value) VALUES (?, ?)", "a",
				[]byte("a")); err != nil {
				return err
			}
			return x.Exec(t.Context(), "INSERT INTO meta (name, value) VALUES (?, ?)", "a", []byte("again"))
		})
		if err == nil {
			t.Error("a name was taken twice")
		}
		err = s.engine.Query(t.Context(), "SELECT value FROM meta WHERE name = 'a'", nil, func(engine.Scanner) error {
			t.Error("half of it was written")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := s.Do(t.Context(), oldName("x_1", "one")); err != nil {
			t.Errorf("the writer cannot go on: %v", err)
		}
	})
}
