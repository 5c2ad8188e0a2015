package notify

import (
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

	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// nodes share a database of organizations.
type nodes struct{ *eventtest.Nodes }

func newNodes(db testdb.Database) *nodes { return &nodes{eventtest.NewNodes(db, org.Kind)} }

func (w *nodes) runner(s event.Log, f ...Follower) *Runner {
	return &Runner{Store: s, Log: slog.New(slog.NewTextHandler(&w.Log, nil)), Clock: w.Clock.Now, Followers: f}
}

// happen records an event that followers wait for (a new organization), and one that they do not (its new name).
func happen(t *testing.T, s event.Store, name string) {
	t.Helper()
	id, again := org.Kind.NewID(), name+" again"
	must(t, s.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{org.Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			_, err := org.Kind.Create(tx, id, id, org.Added{Name: name}, org.Renamed{Name: &again})
			return err
		},
	}))
}

// work lets a worker do all there is to do.
func work(t *testing.T, w *Worker) {
	t.Helper()
	for {
		must(t, w.work(t.Context()))
		if w.queue == nil || w.queue.survey(0).sending == 0 {
			return
		}
		r := testkit.Receive(t, w.results, "what was begun is done")
		w.settle(&r)
	}
}

// park adds to what is parked for a worker, until in an hour.
func (w *nodes) park(to *Worker, all ...Retry) {
	for _, r := range all {
		r.Next = event.Micros(w.Clock.Now().Add(time.Hour))
		to.queue.lanes[keyOf(r.Position)] = lane{parked: &Parked{Retry: r}}
	}
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
	return Follower{
		Name:  "test",
		Types: []event.Type{org.Added{}.EventType()},
		Handle: func(_ context.Context, e *event.Event) error {
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
		},
	}
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
	case <-time.After(testkit.Patience):
		t.Fatal("nothing was handled")
		return ""
	}
}

func stored(t *testing.T, s event.Store) Progress {
	t.Helper()
	row, err := s.Row(t.Context(), rowOf("test"))
	must(t, err)
	var p Progress
	must(t, json.Unmarshal(row.Value, &p))
	return p
}

func TestAFollowerBeginsWhereTheLogEndsWhenItIsFirstSeenAndGoesOnWhereItWas(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		happen(t, s, "before")
		saw := newSeen()
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		happen(t, s, "first")
		must(t, r.Begin(t.Context())) // a later start: known already
		happen(t, s, "second")
		first := r.worker(r.Followers[0])
		work(t, first)
		saw.was(t, "first", "second")
		first.stop()
		happen(t, s, "third")
		work(t, r.worker(r.Followers[0]))
		saw.was(t, "first", "second", "third")
	})
}

func TestWhatFailsIsParkedTriedAgainAndGivenUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		saw := newSeen()
		saw.fail["twice"], saw.fail["panics"], saw.fail["never"] = 2, 1, 1000
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		for _, name := range []string{"twice", "never", "panics", "good"} {
			happen(t, s, name)
		}
		worker := r.worker(r.Followers[0])
		work(t, worker)
		saw.was(t, "good") // the others are not held up
		if p := stored(t, s); len(p.Parked) != 3 || p.Parked[0].Tries != 1 {
			t.Errorf("parked: %+v", p)
		}
		work(t, worker)
		saw.was(t, "good") // it is not time yet
		w.Clock.Advance(firstPause)
		work(t, worker)
		saw.was(t, "good", "panics")
		w.Clock.Advance(firstPause) // the second pause is longer
		work(t, worker)
		saw.was(t, "good", "panics")
		w.Clock.Advance(firstPause)
		work(t, worker)
		saw.was(t, "good", "panics", "twice")
		for range minTries {
			w.Clock.Advance(maxPause)
			work(t, worker)
		}
		if p := stored(t, s); len(p.Parked) != 0 {
			t.Errorf("still parked: %+v", p)
		}
		if tried := 1000 - saw.fail["never"]; tried != minTries {
			t.Errorf("tried %d times", tried)
		}
		if !w.Log.Has("an event was dropped") {
			t.Error("nobody is told that it was dropped")
		}
		// A node that comes later has nothing to do.
		worker.stop()
		work(t, r.worker(r.Followers[0]))
		saw.was(t, "good", "panics", "twice")
	})
}

func TestAFollowerWithTooMuchParkedWaits(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		saw := newSeen()
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		worker := r.worker(r.Followers[0])
		work(t, worker)
		for i := range MaxParked {
			w.park(worker, Retry{Position: int64(-i), Tries: 1})
		}
		happen(t, s, "later")
		work(t, worker)
		saw.was(t)
		worker.queue.Drop(keyOf(0))
		work(t, worker)
		saw.was(t, "later")
	})
}

func TestAForgetfulFollowerGivesUpTheOldestInstead(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		saw := newSeen()
		saw.fail["later"] = 1
		follower := saw.follower()
		follower.Forgetful = true
		r := w.runner(s, follower)
		must(t, r.Begin(t.Context()))
		worker := r.worker(follower)
		work(t, worker)
		for i := range MaxParked {
			w.park(worker, Retry{Position: int64(i - MaxParked), Tries: 1})
		}
		happen(t, s, "later")
		happen(t, s, "last")
		work(t, worker)
		saw.was(t, "last")
		p := stored(t, s)
		if len(p.Parked) != MaxParked || p.Parked[0].Position != 1-MaxParked || p.Parked[MaxParked-1].Position < 0 ||
			!w.Log.Has("an event was dropped") {
			t.Errorf("parked are %d, from %+v to %+v", len(p.Parked), p.Parked[0], p.Parked[len(p.Parked)-1])
		}
	})
}

func TestWhatWasSentAtLastIsNotParkedInTheRow(t *testing.T) {
	q := queueAt(with("1", lane{parked: &Parked{Sequence: 2}}),
		with("3", lane{parked: &Parked{Retry: Retry{Position: 3, Tries: 1}}}))
	var p Progress
	if rows, err := (&follower{}).Save(&p, q); err != nil || rows != nil || len(p.Parked) != 1 ||
		p.Parked[0].Position != 3 {
		t.Errorf("%+v, %v, %v", p, rows, err)
	}
}

// TestHowLongAnEventIsTried: as long as somebody may still want it, but what the other side refuses for good only a few
// times.
func TestHowLongAnEventIsTried(t *testing.T) {
	const patience = 7 * 24 * time.Hour
	away := Outcome{Problem: "away"}
	for _, c := range []struct {
		name   string
		failed Outcome
		tries  int
		age    time.Duration
		enough bool
	}{
		{"a few tries", away, minTries - 1, 2 * patience, false},
		{"many tries of what is wanted still", away, 1000, patience, false},
		{"it is too late", away, minTries, patience + time.Second, true},
		{"refused for now", Outcome{Problem: "away", Refused: true}, minTries, patience, false},
		{"refused for good", Outcome{Problem: "away", Refused: true, ForGood: true}, minTries, time.Minute, true},
		{"refused for good at first", Outcome{Problem: "away", Refused: true, ForGood: true}, minTries - 1,
			time.Minute, false},
	} {
		w := newNodes(testdb.Database{})
		r := &Result{Event: event.Event{Time: event.Micros(w.Clock.Now().Add(-c.age))}, Outcome: c.failed}
		pause, again := (&follower{Follower: Follower{Patience: patience}}).retry(&Parked{Retry: Retry{Tries: c.tries}},
			r, event.Micros(w.Clock.Now()))
		if again == c.enough {
			t.Errorf("%s: enough is %t", c.name, !again)
		}
		if pause < firstPause || pause > maxPause {
			t.Errorf("%s: the next pause takes %v", c.name, pause)
		}
	}
}

// TestWhoseEventsAreRefusedHoldsNobodyElseUp: where too much is parked, what was refused goes, and first that of
// whoever has the most. What failed because the other side is away stays, and the follower waits.
func TestWhoseEventsAreRefusedHoldsNobodyElseUp(t *testing.T) {
	for _, c := range []struct {
		name      string
		forgetful bool
		refused   int // the newest of what is parked
		theirs    int // the newest of what is parked, of one organization
		givenUp   int // the position, counted from the newest; 0: nothing is
	}{
		{"nothing was refused", false, 0, MaxParked - 1, 0},
		{"one organization has all that was refused", false, 3, 3, 3},
		{"many organizations", false, 5, 1, 5},
		{"one among many has two", false, 5, 2, 2},
		{"the most was not refused", false, 2, 5, 2},
		{"forgetful", true, 0, 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
				w := newNodes(db)
				s := w.Open(t)
				saw := newSeen()
				saw.fail["fails"] = 1
				follower := saw.follower()
				follower.Forgetful = c.forgetful
				r := w.runner(s, follower)
				must(t, r.Begin(t.Context()))
				worker := r.worker(follower)
				work(t, worker)
				most := MaxParked - 1
				if c.forgetful {
					most = MaxParked
				}
				for i := range most {
					p := Retry{Position: int64(i - most), Org: fmt.Sprint("org_", i), Tries: 1,
						Refused: i >= most-c.refused}
					if i >= most-c.theirs {
						p.Org = "org_a"
					}
					w.park(worker, p)
				}
				happen(t, s, "fails")
				happen(t, s, "last")
				work(t, worker)
				if goesOn := c.givenUp > 0; slices.Contains(saw.names, "last") != goesOn ||
					w.Log.Has("an event was dropped") != goesOn {
					t.Errorf("handled %q; the log says that something was given up: %t", saw.names,
						w.Log.Has("an event was dropped"))
				}
				var gone []int
				for i := range most {
					if worker.queue.Parked()[keyOf(int64(i-most))] == nil {
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
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		one := w.Open(t)
		two := one // there is one node on SQLite, but its workers know nothing of each other
		if strings.HasPrefix(db.URL, "postgres") {
			two = w.Open(t)
		}
		saw := newSeen()
		r1, r2 := w.runner(one, saw.follower()), w.runner(two, saw.follower())
		must(t, r1.Begin(t.Context()))
		must(t, r2.Begin(t.Context()))
		killed, other := r1.worker(r1.Followers[0]), r2.worker(r2.Followers[0])
		happen(t, two, "a")
		work(t, killed)
		work(t, other)
		saw.was(t, "a")
		happen(t, two, "b") // the first node is dead by now
		work(t, other)
		saw.was(t, "a")
		w.Clock.Advance(leaseLife)
		work(t, other)
		saw.was(t, "a", "b")
		// The dead one comes back to life, and finds that it has lost its lease.
		happen(t, one, "c")
		work(t, killed)
		saw.was(t, "a", "b")
		if killed.queue != nil {
			t.Error("the node still believes that it holds the lease")
		}
		work(t, other)
		saw.was(t, "a", "b", "c")
	})
}

// The database went away when it had written the lease and before it could say so.
func TestANodeThatDidNotHearThatItHasTheLeaseDoesNotWaitForItself(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		saw := newSeen()
		r := w.runner(s, saw.follower())
		must(t, r.Begin(t.Context()))
		worker := r.worker(r.Followers[0])
		_, err := worker.Lease.Acquire(t.Context())
		must(t, err)
		happen(t, s, "a")
		work(t, worker)
		saw.was(t, "a")
	})
}

func TestTheLeaseIsRenewedBeforeWorkThatMayTakeLong(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		var left time.Duration
		f := Follower{
			Name:  "test",
			Types: []event.Type{org.Added{}.EventType()},
			Handle: func(ctx context.Context, _ *event.Event) error {
				p := stored(t, s)
				left = event.Time(p.Until).Sub(w.Clock.Now())
				if _, bounded := ctx.Deadline(); !bounded {
					return errors.New("there is no time limit")
				}
				w.Clock.Advance(handleTime - time.Second) // it takes almost all of its time
				return nil
			},
		}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		worker := r.worker(f)
		for i := range 5 {
			happen(t, s, fmt.Sprint(i))
			w.Clock.Advance(leaseLife - handleTime + 2*time.Second) // not yet enough to renew it for its own sake
			work(t, worker)
			if left < handleTime {
				t.Errorf("only %v of the lease are left for work of %v", left, handleTime)
			}
		}
		if len(stored(t, s).Parked) != 0 {
			t.Error("the work failed")
		}
	})
}

// Two nodes at work: each event is handled once, in order, whichever node wrote it; the one that goes on does so at
// once.
func TestTwoNodesHandleEachEventOnce(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		one, two := w.Open(t), w.Open(t)
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
			stop[i] = sync.OnceFunc(func() { cancel(); testkit.Receive(t, done, "the runner has stopped") })
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
		w := newNodes(db)
		s := w.Open(t)
		f := newSeen().follower()
		f.Types = []event.Type{"org.never.v1"}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		worker := r.worker(f)
		work(t, worker)
		before := stored(t, s)
		for i := range Page { // two events each: more than one page
			happen(t, s, fmt.Sprint(i))
		}
		work(t, worker)
		if after := stored(t, s); after.Position != before.Position || after.Until != before.Until {
			t.Errorf("written: %+v, %+v", before, after)
		}
		if worker.queue.scanned != 2*Page {
			t.Errorf("read up to %d", worker.queue.scanned)
		}
		for i := range lag / 2 {
			happen(t, s, fmt.Sprint("more", i))
		}
		work(t, worker)
		if after := stored(t, s); after.Position < lag {
			t.Errorf("a start would read everything again: %+v", after)
		}
	})
}

func TestWhatWasDoneIsNotedAlsoWhenTheNodeStopsRightThen(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		ctx, stop := context.WithCancel(t.Context())
		handled := 0
		f := Follower{
			Name:  "test",
			Types: []event.Type{org.Added{}.EventType()},
			Handle: func(ctx context.Context, _ *event.Event) error {
				handled++
				stop()
				return ctx.Err() // what is on its way may come to its end
			},
		}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		happen(t, s, "a")
		r.Run(ctx)
		work(t, r.worker(f))
		if handled != 1 {
			t.Errorf("handled %d times", handled)
		}
	})
}

func TestANodeThatStopsDoesNotWaitForLong(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		ctx, stop := context.WithCancel(t.Context())
		handled := 0
		f := Follower{
			Name:  "test",
			Types: []event.Type{org.Added{}.EventType()},
			Handle: func(ctx context.Context, _ *event.Event) error {
				if handled++; handled > 1 {
					return nil
				}
				stop()
				<-ctx.Done()
				if !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("the node waits until the event has had all its time: %v", ctx.Err())
				}
				return ctx.Err()
			},
		}
		r := w.runner(s, f)
		must(t, r.Begin(t.Context()))
		happen(t, s, "a")
		r.Run(ctx)
		work(t, r.worker(f)) // nobody knows what came of it, so it is tried again
		if handled != 2 {
			t.Errorf("handled %d times", handled)
		}
	})
}

func TestTheLastFailureIsKeptForWhoeverLooks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s, seen := w.Open(t), newSeen()
		begun, err := Read(t.Context(), s, "test")
		must(t, err)
		if begun.Position != 0 || begun.Failure != nil {
			t.Errorf("before it has begun: %+v", begun)
		}
		r := w.runner(s, seen.follower())
		must(t, r.Begin(t.Context()))
		seen.fail["a"] = 1
		happen(t, s, "a")
		work(t, r.worker(r.Followers[0]))
		failed, err := Read(t.Context(), s, "test")
		must(t, err)
		want := Failure{At: event.Micros(w.Clock.Now()), Problem: "not now"}
		if len(failed.Parked) != 1 || failed.Failure == nil || *failed.Failure != want {
			t.Fatalf("%+v, want %+v", failed, want)
		}
		// Another node goes on, and the event arrives.
		w.Clock.Advance(time.Hour)
		happen(t, s, "b")
		work(t, r.worker(r.Followers[0]))
		after, err := Read(t.Context(), s, "test")
		must(t, err)
		if len(after.Parked) != 0 || after.Failure == nil || *after.Failure != want {
			t.Errorf("%+v, want %+v", after, want)
		}
	})
}
