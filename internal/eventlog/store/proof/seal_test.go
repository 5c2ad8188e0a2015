package proof_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestANodeSealsWhatItWritesByItselfAndTheRestWhenItStops(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		s, _ := w.open(t, atOnce)
		w.wantClean(t, 0, 0)
		fill(t, s, 30)
		testkit.Await(t, "it is sealed", func() bool { return w.verify(t, nil).Unsealed == 0 })
		s.Close()
		s, _ = w.open(t, never)
		fill(t, s, 1100) // a full checkpoint, and some more
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		w.wantClean(t, 1130, 0)
	})
}

// Else the embedded database would have to be asked for what is no longer in memory.
func TestABusyLogIsSealedBeforeTheInterval(t *testing.T) {
	s, _ := newDatabase(t, testdb.New(t, testdb.SQLite)).open(t, never)
	for i := range 13 { // what is sealed at once is not sealed twice: the rest has to be enough to be sealed as well
		testkit.Must(t, add(s, fmt.Sprint("sgi_", i), 500))
	}
	testkit.Await(t, "most of the log is sealed", func() bool {
		sealed, err := s.Sealed(t.Context())
		testkit.Must(t, err)
		return sealed >= 3000
	})
}

func TestWhatAKilledNodeLeftIsSealedByTheNext(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.unsealed(t, func(s *store.Store) { fill(t, s, 1020) })
		w.wantClean(t, 1020, 1020)
		_, log := w.open(t, never)
		testkit.Await(t, "it is sealed", func() bool { return w.verify(t, nil).Unsealed == 0 })
		w.wantClean(t, 1020, 0)
		if log.Has("sealing older events") {
			t.Error("it complains about what was written within a minute")
		}
	})
}

func TestALogOfErasedPersonsIsClean(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 100)
		w.exec(t, "DELETE FROM keys")
		w.wantClean(t, 100, 0)
	})
}

func TestALogIsCleanWhileOthersWriteToIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		s, _ := w.open(t, atOnce)
		fill(t, s, 1500)
		var stop atomic.Bool
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := 0; !stop.Load(); n++ {
					id := fmt.Sprint("usr_", i)
					if n%2 == 0 {
						id = fmt.Sprintf("sgi_new_%d_%d", i, n)
					}
					if err := add(s, id, 1+n%3); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 6 {
			if f := w.verify(t, nil).Finding; f != nil {
				t.Error(f)
			}
		}
		stop.Store(true)
		all.Wait()
	})
}

func TestNodesSealTogether(t *testing.T) {
	w := newDatabase(t, testdb.New(t, testdb.Postgres))
	var nodes []*store.Store
	var logs []*testkit.Log
	for range 3 {
		s, log := w.open(t, atOnce)
		nodes, logs = append(nodes, s), append(logs, log)
	}
	var all sync.WaitGroup
	for i, s := range nodes {
		all.Go(func() {
			for n := range 300 {
				if err := add(s, fmt.Sprintf("usr_%d_%d", i, n%10), 4); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil { // the last two at about the same time
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.wantClean(t, 3600, 0)
	for _, log := range logs {
		if log.Has("cannot be sealed") {
			t.Error(log.String())
		}
	}
}

// A node does not wait for one that is sealing, and comes back.
func TestANodeThatIsSealingIsLeftAlone(t *testing.T) {
	w := newDatabase(t, testdb.New(t, testdb.Postgres))
	w.unsealed(t, func(s *store.Store) { fill(t, s, 10) })
	tx, err := w.sql.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT 1 FROM checkpoints WHERE number = 0 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	other, log := w.open(t, atOnce)
	if err := add(other, "usr_9", 1); err != nil {
		t.Fatal(err)
	}
	w.wantClean(t, 11, 11)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "it comes back", func() bool { return w.verify(t, nil).Unsealed == 0 })
	if log.Has("cannot be sealed") {
		t.Error(log.String())
	}
}

// What somebody has changed must not be sealed as if it were right.
func TestASealerDoesNotSealOverWhatWasChanged(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		for _, c := range []struct {
			name, what string
			do         func(t *testing.T, w *database)
			restarted  bool // found by a node that has not seen what was there before
		}{
			{"the head is removed", "head of the checkpoints is missing",
				func(t *testing.T, w *database) { w.exec(t, "DELETE FROM checkpoints") }, true},
			{"the head is changed", "head of the checkpoints was changed",
				func(t *testing.T, w *database) { w.spoil(t, 0, "digest", 3) }, true},
			{"the head is put back", "went back from position 30 to 20",
				func(t *testing.T, w *database) { w.restore(t, "older", "checkpoints") }, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := newDatabase(t, testdb.New(t, db.Engine))
				w.sealed(t, 20)
				w.save(t, "older")
				s, log := w.open(t, 100*time.Millisecond)
				fill(t, s, 10)
				testkit.Await(t, "it is sealed", func() bool { return w.verify(t, nil).Unsealed == 0 })
				c.do(t, w)
				before := w.checkpoints(t)
				if err := add(s, "usr_0", 3); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if !log.Has(c.what) || w.checkpoints(t) != before {
					t.Errorf("%s\nbefore: %s\nafter: %s", log.String(), before, w.checkpoints(t))
				}
				if f := w.verify(t, nil).Finding; f == nil && c.restarted {
					t.Error("it is not found")
				}
				if s, log = w.open(t, never); c.restarted {
					if s.Close(); !log.Has(c.what) || w.checkpoints(t) != before {
						t.Errorf("after a restart: %s", log.String())
					}
				}
			})
		}
	})
}

func TestASealerDoesNotSealOverAGap(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		w.unsealed(t, func(s *store.Store) { fill(t, s, 10) })
		w.exec(t, "DELETE FROM events WHERE position = 25")
		before := w.checkpoints(t)
		s, log := w.open(t, never)
		if s.Close(); !log.Has("event 25 is missing") || w.checkpoints(t) != before {
			t.Error(log.String())
		}
	})
}

// checkpoints gives how far the log is sealed, as text.
func (w *database) checkpoints(t *testing.T) (all string) {
	t.Helper()
	rows, err := w.sql.Query("SELECT number, position, seal FROM checkpoints ORDER BY number")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var number, position int64
		var seal []byte
		if err := rows.Scan(&number, &position, &seal); err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%d %d %x; ", number, position, seal)
	}
	return all
}

// A database that lost its last events as a whole, such as after a failover, goes on, and says so.
func TestALogThatWentBackAsAWholeGoesOn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		w.save(t, "older")
		s, log := w.open(t, atOnce)
		if err := add(s, "usr_new", 10); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "it is sealed", func() bool { return w.verify(t, nil).Unsealed == 0 })
		w.restore(t, "older")
		if err := add(s, "sgi_other", 5); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "it is sealed", func() bool { return w.verify(t, nil).Unsealed == 0 })
		lost := s.Lost() // five of ten or more, as the sealer came to look: the test restores table by table
		if err := s.Close(); err != nil || lost < 5 || !log.Has("the log is behind what this node has seen of it") {
			t.Errorf("%v, %d lost: %s", err, lost, log.String())
		}
		w.wantClean(t, 25, 0)
	})
}

// remembering opens a node that remembers where the log ended when one was last closed.
func (w *database) remembering(t *testing.T, mark *proof.Mark) (*store.Store, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	var known *proof.Mark
	if mark.Position > 0 {
		known = &proof.Mark{Position: mark.Position, Digest: mark.Digest}
	}
	s, _, err := store.Open(t.Context(), store.Options{
		Database:     w.URL,
		Kinds:        kinds,
		Master:       w.master,
		Clock:        w.clock.Now,
		SealInterval: atOnce,
		Log:          slog.New(slog.NewTextHandler(log, nil)),
		Remembered:   known,
		Remember:     func(m proof.Mark) error { *mark = m; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, log
}

// What a database has lost while a node was away is noticed, too; also where so much was written since that the log is
// longer than before.
func TestANodeRemembersTheEndOfTheLog(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		for what, events := range map[string]int{"shorter": 5, "longer": 2500} {
			t.Run(what, func(t *testing.T) {
				w := newDatabase(t, testdb.New(t, db.Engine))
				w.sealed(t, 20)
				var mark proof.Mark
				s, _ := w.remembering(t, &mark)
				testkit.Must(t, s.Close())
				if mark.Position != 20 || mark != w.verify(t, nil).Head {
					t.Fatalf("it remembers %v", mark)
				}
				w.save(t, "older")
				s, log := w.remembering(t, &mark)
				testkit.Must(t, add(s, "usr_second", 10))
				testkit.Must(t, s.Close())
				if s.Lost() != 0 || mark.Position != 30 {
					t.Fatalf("%d lost, at %v: %s", s.Lost(), mark, log.String())
				}
				w.restore(t, "older")
				other, _ := w.open(t, never) // another node writes meanwhile
				for left := events; left > 0; left -= 500 {
					testkit.Must(t, add(other, "sgi_other", min(left, 500)))
				}
				testkit.Must(t, other.Close())
				s, log = w.remembering(t, &mark)
				testkit.Await(t, "it notices", func() bool { return s.Lost() > 0 })
				if !log.Has("the log is behind what this node has seen of it") || !log.Has("seen=30") {
					t.Error(log.String())
				}
				testkit.Must(t, s.Close())
				s, log = w.remembering(t, &mark)
				testkit.Must(t, add(s, "usr_second", 1))
				testkit.Must(t, s.Close())
				if s.Lost() != 0 {
					t.Errorf("it is said again: %s", log.String())
				}
				w.wantClean(t, int64(20+events+1), 0)
			})
		}
	})
}

// Another node may have sealed what was written after the log went back, before this one looks again.
func TestALogThatWasRewoundAndWrittenOnIsNoticed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		for _, more := range []int{15, 3000} { // in the same checkpoint, and far behind it
			w := newDatabase(t, testdb.New(t, db.Engine))
			w.sealed(t, 20)
			w.save(t, "older")
			e := w.engine(t)
			log := &testkit.Log{}
			s, _ := w.open(t, never)
			root := s.RootKey()
			testkit.Must(t, add(s, "usr_new", 10))
			testkit.Must(t, s.Close())
			watching := &proof.Sealer{Engine: e, Root: root, Log: slog.New(slog.NewTextHandler(log, nil))}
			seal := func() {
				if _, err := watching.Seal(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			seal()
			s, _ = w.open(t, never)
			testkit.Must(t, add(s, "usr_new", 1)) // as usual
			testkit.Must(t, s.Close())
			if seal(); watching.Lost() != 0 {
				t.Errorf("more events are taken for others: %s", log.String())
			}
			w.restore(t, "older")
			s, _ = w.open(t, never)
			for left := more; left > 0; left -= 500 {
				testkit.Must(t, add(s, "sgi_other", min(left, 500)))
			}
			testkit.Must(t, s.Close())
			if seal(); watching.Lost() != 1 {
				t.Errorf("%d more: %d lost: %s", more, watching.Lost(), log.String())
			}
		}
	})
}

func TestEventsThatWaitedLongAreSealedWithAWarning(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.unsealed(t, func(s *store.Store) {
			fill(t, s, 10)
			w.clock.Advance(61 * time.Second)
			fill(t, s, 1)
		})
		_, log := w.open(t, never)
		testkit.Await(t, "it warns", func() bool { return log.Has("sealing older events") && log.Has("from=1") })
	})
}

func (w *database) engine(t *testing.T) engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(),
		engine.Options{Database: w.URL, Kinds: kinds, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestVerifyScale measures a log of a million events.
func TestVerifyScale(t *testing.T) {
	events := 5_000
	if os.Getenv("SIGNET_SCALE") != "" {
		events = 1_000_000
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		s, _ := w.open(t, never)
		began := time.Now()
		const each = 50
		var next atomic.Int64
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for i := next.Add(1); i <= int64(events)/each; i = next.Add(1) {
					// Most events are of accounts with many, and one in fifty is of an object of its own.
					if err := add(s, fmt.Sprintf("usr_%d", i%2000), each-1); err != nil {
						t.Error(err)
					}
					if err := add(s, fmt.Sprintf("sgi_%d", i), 1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		figure := func(what string, began time.Time) {
			took := time.Since(began)
			t.Logf("%s: %d events in %s, %.0f/s", what, events, took.Round(time.Millisecond),
				float64(events)/took.Seconds())
		}
		figure("written", began)
		began = time.Now()
		testkit.Must(t, s.Close())
		figure("sealed, where the node had not done so", began)
		began = time.Now()
		w.wantClean(t, int64(events), 0)
		figure("verified", began)
	})
}

func FuzzMark(f *testing.F) {
	f.Add("1:" + fmt.Sprintf("%064x", 7))
	f.Add("0:" + fmt.Sprintf("%064x", 7))
	f.Add("9223372036854775807:" + fmt.Sprintf("%064X", 255))
	f.Add("+1:00")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var m proof.Mark
		if m.UnmarshalText([]byte(text)) != nil {
			return
		}
		var again proof.Mark
		if m.Position < 1 || again.UnmarshalText([]byte(m.String())) != nil || again != m {
			t.Errorf("%q becomes %s", text, m)
		}
	})
}

func TestMark(t *testing.T) {
	digest := fmt.Sprintf("%064x", 7)
	for text, ok := range map[string]bool{
		"1:" + digest: true, "9223372036854775807:" + digest: true,
		"": false, "1": false, "1:": false, ":" + digest: false, "0:" + digest: false, "01:" + digest: false,
		"-1:" + digest: false, "+1:" + digest: false,
		"9223372036854775808:" + digest: false, "1:" + digest[1:]: false, "1:" + digest + "0": false,
		"1:g" + digest[1:]: false, "1 " + digest: false, " 1:" + digest: false,
	} {
		var m proof.Mark
		if err := m.UnmarshalText([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Between the walk through the log and the look at the states others write.
func TestStatesAreThoseOfTheLogWhateverIsWrittenMeanwhile(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		s, _ := w.open(t, never)
		fill(t, s, 60)
		verify := func(meanwhile func()) *proof.Finding {
			t.Helper()
			r, err := s.Verify(t.Context(), proof.Options{Progress: func(what string, _ int64) *progress.Bar {
				if what == "objects" {
					meanwhile()
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			return r.Finding
		}
		write := func(id string) {
			if err := add(s, id, 2); err != nil {
				t.Fatal(err)
			}
		}
		if f := verify(func() { write("usr_0"); write("usr_new") }); f != nil {
			t.Error(f)
		}
		// A new object does not make up for one that is gone.
		f := verify(func() {
			w.exec(t, "DELETE FROM users WHERE id = 'usr_3'")
			write("usr_newer")
		})
		if f == nil || !strings.Contains(f.What, "1 objects of the table users have events but no state") {
			t.Errorf("%v", f)
		}
	})
}

// A database from before there was a root key gets the master key for one, and its log is sealed as it is. Whoever
// wants a changed log sealed would have it look like that.
func TestARemovedRootKeyIsNotReplaced(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		for _, statement := range []string{ // one after the other
			"UPDATE meta SET value = 'x' WHERE name = 'root_key'",
			"DELETE FROM meta WHERE name = 'root_key'",
			"DELETE FROM checkpoints",
		} {
			w.exec(t, statement)
			before := w.checkpoints(t)
			w.refused(t, "the root key of this database was removed or changed")
			if w.checkpoints(t) != before {
				t.Errorf("after %s it is sealed anew: %s", statement, w.checkpoints(t))
			}
		}
	})
}

func TestAVerificationThatIsStoppedFindsNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		s, _ := w.open(t, never)
		for _, part := range []string{"events", "objects"} {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := s.Verify(ctx, proof.Options{Progress: func(what string, _ int64) *progress.Bar {
				if what == part {
					cancel()
				}
				return nil
			}})
			if cancel(); !errors.Is(err, context.Canceled) || r.Finding != nil {
				t.Errorf("stopped before the %s: %v, %v", part, r.Finding, err)
			}
		}
	})
}
