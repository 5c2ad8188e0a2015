package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/model"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/store"
	"github.com/signet-idm/signet/internal/testdb"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is set by the test, and the same for all nodes.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is one database with as many nodes as a test wants.
type world struct {
	db     testdb.Database
	master secret.MasterKey
	clock  clock
	log    lines
}

// lines is what was logged.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.all.String(), text)
}

func newWorld(db testdb.Database) *world {
	return &world{db: db, master: secret.NewMasterKey(), clock: clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}
}

func (w *world) open(t *testing.T) *store.Store {
	t.Helper()
	s, _, err := store.Open(t.Context(), store.Options{Database: w.db.URL, Kinds: model.Kinds, Master: w.master, Clock: w.clock.read})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func (w *world) runner(s event.Log, f ...Follower) *Runner {
	return &Runner{Store: s, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Clock: w.clock.read, Followers: f}
}

// happen records an event that followers wait for (a new organization), and one that they do not (its new name).
func happen(t *testing.T, s event.Store, name string) {
	t.Helper()
	id, again := org.Kind.NewID(), name+" again"
	must(t, s.Do(t.Context(), event.Command{Origin: event.Origin{Actor: event.System}, Write: []event.Ref{org.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		_, err := org.Kind.Create(tx, id, id, org.Added{Name: name}, org.Renamed{Name: &again})
		return err
	}}))
}

// seen collects the names of what was handled, and fails as it is told.
type seen struct {
	mu    sync.Mutex
	names []string
	fail  map[string]int // so often; the name
	came  chan string
}

func newSeen() *seen { return &seen{fail: map[string]int{}, came: make(chan string, 100)} }

func (s *seen) follower() Follower {
	return Follower{Name: "test", Types: []event.Type{org.Added{}.EventType()}, Handle: func(_ context.Context, e *event.Event) error {
		var fact org.Added
		if err := json.Unmarshal(e.Payload, &fact); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fail[fact.Name] > 0 {
			s.fail[fact.Name]--
			if fact.Name == "panics" {
				panic("at once")
			}
			return errors.New("not now")
		}
		s.names = append(s.names, fact.Name)
		s.came <- fact.Name
		return nil
	}}
}

func (s *seen) was(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.names, want) {
		t.Errorf("handled %q, want %q", s.names, want)
	}
}

func (s *seen) next(t *testing.T) string {
	t.Helper()
	select {
	case name := <-s.came:
		return name
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was handled")
		return ""
	}
}

func stored(t *testing.T, s event.Store) progress {
	t.Helper()
	row, err := s.Row(t.Context(), rowOf("test"))
	must(t, err)
	var p progress
	must(t, json.Unmarshal(row.Value, &p))
	return p
}

func TestAFollowerBeginsWhereTheLogEndsWhenItIsFirstSeenAndGoesOnWhereItWas(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		happen(t, s, "before")
		saw := newSeen()
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		happen(t, s, "first")
		must(t, r.Begin(t.Context())) // a later start: known already
		happen(t, s, "second")
		first := r.worker(r.Followers[0])
		must(t, first.work(t.Context()))
		saw.was(t, "first", "second")
		first.release(t.Context())
		happen(t, s, "third")
		must(t, r.worker(r.Followers[0]).work(t.Context()))
		saw.was(t, "first", "second", "third")
	})
}

func TestWhatFailsIsPutAsideTriedAgainAndGivenUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		saw := newSeen()
		saw.fail["twice"], saw.fail["panics"], saw.fail["never"] = 2, 1, 1000
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		for _, name := range []string{"twice", "never", "panics", "good"} {
			happen(t, s, name)
		}
		worker := r.worker(r.Followers[0])
		work := func() {
			t.Helper()
			must(t, worker.work(t.Context()))
		}
		work()
		saw.was(t, "good") // the others are not held up
		if p := stored(t, s); len(p.Held) != 3 || p.Held[0].Tries != 1 {
			t.Errorf("held: %+v", p)
		}
		work()
		saw.was(t, "good") // it is not time yet
		w.clock.advance(firstPause)
		work()
		saw.was(t, "good", "panics")
		w.clock.advance(firstPause) // the second pause is longer
		work()
		saw.was(t, "good", "panics")
		w.clock.advance(firstPause)
		work()
		saw.was(t, "good", "panics", "twice")
		for range minTries {
			w.clock.advance(maxPause)
			work()
		}
		if p := stored(t, s); len(p.Held) != 0 {
			t.Errorf("still held: %+v", p)
		}
		if tried := 1000 - saw.fail["never"]; tried != minTries {
			t.Errorf("tried %d times", tried)
		}
		if !w.log.has("given up") {
			t.Error("nobody is told that it was given up")
		}
		// A node that comes later has nothing to do.
		worker.release(t.Context())
		must(t, r.worker(r.Followers[0]).work(t.Context()))
		saw.was(t, "good", "panics", "twice")
	})
}

func TestAFollowerThatHoldsTooMuchWaits(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		saw := newSeen()
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		worker := r.worker(r.Followers[0])
		must(t, worker.work(t.Context()))
		full := slices.Repeat([]held{{Position: 1, Next: event.Micros(w.clock.read().Add(time.Hour))}}, maxHeld)
		worker.state.Held = full
		happen(t, s, "later")
		must(t, worker.work(t.Context()))
		saw.was(t)
		worker.state.Held = full[1:]
		must(t, worker.work(t.Context()))
		saw.was(t, "later")
	})
}

func TestAForgetfulFollowerGivesUpTheOldestInstead(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		saw := newSeen()
		saw.fail["later"] = 1
		follower := saw.follower()
		follower.Forgetful = true
		r := w.runner(s, follower)
		must(t, r.Begin(t.Context()))
		worker := r.worker(follower)
		must(t, worker.work(t.Context()))
		for i := range maxHeld {
			worker.state.Held = append(worker.state.Held, held{Position: int64(i + 1), Next: event.Micros(w.clock.read().Add(time.Hour))})
		}
		happen(t, s, "later")
		happen(t, s, "last")
		must(t, worker.work(t.Context()))
		saw.was(t, "last")
		p := stored(t, s)
		if len(p.Held) != maxHeld || p.Held[0].Position != 2 || p.Held[maxHeld-1].Tries != 1 || !w.log.has("given up") {
			t.Errorf("held are %d, from %+v to %+v", len(p.Held), p.Held[0], p.Held[len(p.Held)-1])
		}
	})
}

// TestHowLongAnEventIsTried: as long as somebody may still want it, but what the other side refuses for good only a few times.
func TestHowLongAnEventIsTried(t *testing.T) {
	const patience = 7 * 24 * time.Hour
	away := errors.New("away")
	for _, c := range []struct {
		name   string
		failed error
		tries  int
		age    time.Duration
		enough bool
	}{
		{"a few tries", away, minTries - 1, 2 * patience, false},
		{"many tries of what is wanted still", away, 1000, patience, false},
		{"it is too late", away, minTries, patience + time.Second, true},
		{"refused for now", &Refusal{Cause: away}, minTries, patience, false},
		{"refused for good", &Refusal{Cause: away, ForGood: true}, minTries, time.Minute, true},
		{"refused for good at first", &Refusal{Cause: away, ForGood: true}, minTries - 1, time.Minute, false},
	} {
		w := newWorld(testdb.Database{})
		worker := w.runner(nil).worker(Follower{Patience: patience})
		e := &event.Event{Time: event.Micros(w.clock.read().Add(-c.age))}
		if enough := worker.enough(e, c.tries, c.failed); enough != c.enough {
			t.Errorf("%s: enough is %t", c.name, enough)
		}
		if pause := time.Duration(worker.again(e, c.tries, c.failed).Next-worker.now()) * time.Microsecond; pause < firstPause || pause > maxPause {
			t.Errorf("%s: the next pause takes %v", c.name, pause)
		}
	}
}

// TestWhoseEventsAreRefusedHoldsNobodyElseUp: where too much is put aside, what was refused goes, and first that of whoever has the most. What
// failed because the other side is away stays, and the follower waits.
func TestWhoseEventsAreRefusedHoldsNobodyElseUp(t *testing.T) {
	for _, c := range []struct {
		name      string
		forgetful bool
		refused   int // the newest of what is held
		theirs    int // the newest of what is held, of one organization
		givenUp   int // the position, counted from the newest; 0: nothing is
	}{
		{"nothing was refused", false, 0, maxHeld - 1, 0},
		{"one organization has all that was refused", false, 3, 3, 3},
		{"many organizations", false, 5, 1, 5},
		{"one among many has two", false, 5, 2, 2},
		{"the most was not refused", false, 2, 5, 2},
		{"forgetful", true, 0, 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
				w := newWorld(db)
				s := w.open(t)
				saw := newSeen()
				saw.fail["fails"] = 1
				follower := saw.follower()
				follower.Forgetful = c.forgetful
				r := w.runner(s, follower)
				must(t, r.Begin(t.Context()))
				worker := r.worker(follower)
				must(t, worker.work(t.Context()))
				most := maxHeld - 1
				if c.forgetful {
					most = maxHeld
				}
				for i := range most {
					h := held{Position: int64(i + 1), Org: fmt.Sprint("org_", i), Next: event.Micros(w.clock.read().Add(time.Hour)), Refused: i >= most-c.refused}
					if i >= most-c.theirs {
						h.Org = "org_a"
					}
					worker.state.Held = append(worker.state.Held, h)
				}
				before := slices.Clone(worker.state.Held)
				happen(t, s, "fails")
				happen(t, s, "last")
				must(t, worker.work(t.Context()))
				if goesOn := c.givenUp > 0; slices.Contains(saw.names, "last") != goesOn || w.log.has("given up") != goesOn {
					t.Errorf("handled %q; the log says that something was given up: %t", saw.names, w.log.has("given up"))
				}
				var gone []int
				for i, h := range before {
					if !slices.Contains(worker.state.Held, h) {
						gone = append(gone, most-i)
					}
				}
				if c.givenUp == 0 && gone != nil || c.givenUp > 0 && !slices.Equal(gone, []int{c.givenUp}) {
					t.Errorf("given up are %v, counted from the newest", gone)
				}
			})
		})
	}
}

func TestOneNodeWorksAtATimeAndAnotherGoesOnWhenItIsKilled(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		one, two := w.open(t), w.open(t)
		saw := newSeen()
		r1, r2 := w.runner(one, saw.follower()), w.runner(two, saw.follower())
		must(t, r1.Begin(t.Context()))
		must(t, r2.Begin(t.Context()))
		killed, other := r1.worker(r1.Followers[0]), r2.worker(r2.Followers[0])
		happen(t, two, "a")
		must(t, killed.work(t.Context()))
		must(t, other.work(t.Context()))
		saw.was(t, "a")
		happen(t, two, "b") // the first node is dead by now
		must(t, other.work(t.Context()))
		saw.was(t, "a")
		w.clock.advance(leaseLife)
		must(t, other.work(t.Context()))
		saw.was(t, "a", "b")
		// The dead one comes back to life, and finds that it is no longer its turn.
		happen(t, one, "c")
		must(t, killed.work(t.Context()))
		saw.was(t, "a", "b")
		if killed.holds {
			t.Error("the node still believes that it is its turn")
		}
		must(t, other.work(t.Context()))
		saw.was(t, "a", "b", "c")
	})
}

// The database went away when it had taken the turn and before it could say so.
func TestANodeThatDidNotHearThatItIsItsTurnDoesNotWaitForItself(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		saw := newSeen()
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		worker := r.worker(r.Followers[0])
		_, err := worker.turn.Take(t.Context())
		must(t, err)
		happen(t, s, "a")
		must(t, worker.work(t.Context()))
		saw.was(t, "a")
	})
}

func TestTheLeaseIsRenewedBeforeWorkThatMayTakeLong(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		var left time.Duration
		f := Follower{Name: "test", Types: []event.Type{org.Added{}.EventType()}, Handle: func(ctx context.Context, _ *event.Event) error {
			p := stored(t, s)
			left = event.Time(p.Until).Sub(w.clock.read())
			if _, bounded := ctx.Deadline(); !bounded {
				return errors.New("there is no time limit")
			}
			w.clock.advance(handleTime - time.Second) // it takes almost all of its time
			return nil
		}}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		worker := r.worker(f)
		for i := range 5 {
			happen(t, s, fmt.Sprint(i))
			w.clock.advance(leaseLife - handleTime + 2*time.Second) // not yet enough to renew it for its own sake
			must(t, worker.work(t.Context()))
			if left < handleTime {
				t.Errorf("only %v of the lease are left for work of %v", left, handleTime)
			}
		}
		if len(stored(t, s).Held) != 0 {
			t.Error("the work failed")
		}
	})
}

// Two nodes at work: each event is handled once, in order, whichever node wrote it; the one that goes on does so at once.
func TestTwoNodesHandleEachEventOnce(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		one, two := w.open(t), w.open(t)
		saw := newSeen()
		stop := make([]func(), 2)
		for i, s := range []event.Log{one, two} {
			r := w.runner(s, saw.follower())
			must(t, r.Begin(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.Run(ctx)
			}()
			stop[i] = sync.OnceFunc(func() { cancel(); <-done })
			defer stop[i]()
		}
		var want []string
		for i := range 20 {
			name := fmt.Sprint(i)
			want = append(want, name)
			happen(t, []event.Store{one, two}[i%2], name)
		}
		for range want {
			saw.next(t)
		}
		saw.was(t, want...)
		stop[0]()
		happen(t, two, "after a stop")
		if got := saw.next(t); got != "after a stop" {
			t.Errorf("got %s", got)
		}
		stop[1]()
		saw.was(t, append(want, "after a stop")...)
		if p := stored(t, one); p.Node != "" {
			t.Error("the lease was not given back")
		}
	})
}

func TestEventsThatMeanNothingToAFollowerCostItNoWrites(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		f := newSeen().follower()
		f.Types = []event.Type{"org.never.v1"}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		worker := r.worker(f)
		must(t, worker.work(t.Context()))
		before := stored(t, s)
		for i := range page { // two events each: more than one page
			happen(t, s, fmt.Sprint(i))
		}
		must(t, worker.work(t.Context()))
		if after := stored(t, s); after.Position != before.Position || after.Until != before.Until {
			t.Errorf("written: %+v, %+v", before, after)
		}
		if worker.scanned != 2*page {
			t.Errorf("read up to %d", worker.scanned)
		}
		for i := range lag / 2 {
			happen(t, s, fmt.Sprint("more", i))
		}
		must(t, worker.work(t.Context()))
		if after := stored(t, s); after.Position < lag {
			t.Errorf("a start would read everything again: %+v", after)
		}
	})
}

func TestWhatWasDoneIsNotedAlsoWhenTheNodeStopsRightThen(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		ctx, stop := context.WithCancel(t.Context())
		handled := 0
		f := Follower{Name: "test", Types: []event.Type{org.Added{}.EventType()}, Handle: func(ctx context.Context, _ *event.Event) error {
			handled++
			stop()
			return ctx.Err() // what is on its way may come to its end
		}}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		happen(t, s, "a")
		r.Run(ctx)
		must(t, r.worker(f).work(t.Context()))
		if handled != 1 {
			t.Errorf("handled %d times", handled)
		}
	})
}

func TestANodeThatStopsDoesNotWaitForLong(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newWorld(db)
		s := w.open(t)
		ctx, stop := context.WithCancel(t.Context())
		handled := 0
		f := Follower{Name: "test", Types: []event.Type{org.Added{}.EventType()}, Handle: func(ctx context.Context, _ *event.Event) error {
			if handled++; handled > 1 {
				return nil
			}
			stop()
			<-ctx.Done()
			return ctx.Err()
		}}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		happen(t, s, "a")
		began := time.Now()
		r.Run(ctx)
		if took := time.Since(began); took > handleTime/2 {
			t.Errorf("it took %v", took)
		}
		must(t, r.worker(f).work(t.Context())) // nobody knows what came of it, so it is tried again
		if handled != 2 {
			t.Errorf("handled %d times", handled)
		}
	})
}
