package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestACircuit(t *testing.T) {
	type step struct {
		at    time.Duration
		enter bool    // else a call ends
		may   bool    // what Enter says
		ends  Outcome // what Leave is told
	}
	in := func(at time.Duration, may bool) step { return step{at: at, enter: true, may: may} }
	out := func(at time.Duration, o Outcome) step { return step{at: at, ends: o} }
	five := []step{out(0, Failed), out(0, Failed), out(0, Failed), out(0, Failed), out(0, Failed)}
	with := func(more ...step) []step { return append(append([]step{}, five...), more...) }
	for name, steps := range map[string][]step{
		"new":           {in(0, true)},
		"four failures": append(append([]step{}, five[1:]...), in(0, true)),
		"five failures": with(in(0, false), in(rest-1, false)),
		"a success in between": append(append([]step{}, five[1:]...), out(0, Worked),
			out(0, Failed), in(0, true)),
		"what nobody knows counts nothing": append(append([]step{}, five[1:]...), out(0, Unknown),
			out(0, Unknown), in(0, true)),
		"after a rest one tries": with(in(rest, true), in(rest, false), in(rest*2, false)),
		"the try works":          with(in(rest, true), out(rest, Worked), in(rest, true), in(rest, true)),
		"the try fails": with(in(rest, true), out(rest, Failed), in(rest, false),
			in(2*rest-1, false), in(2*rest, true), in(2*rest, false)),
		"who tried has left":                with(in(rest, true), out(rest, Unknown), in(rest, true), in(rest, false)),
		"older calls do not make it longer": with(out(rest-1, Failed), in(rest, true)),
		"an older call that works ends it":  with(out(1, Worked), in(1, true)),
	} {
		t.Run(name, func(t *testing.T) {
			var c Circuit
			for i, s := range steps {
				if !s.enter {
					c.Leave(start.Add(s.at), s.ends)
				} else if got := c.Enter(start.Add(s.at)); got != s.may {
					t.Errorf("step %d: a call may be made: %t", i+1, got)
				}
			}
		})
	}
}

func TestEachServerHasItsOwnCircuit(t *testing.T) {
	b := New(func() time.Time { return start })
	broken := errors.New("broken")
	call := func(id string, o Outcome, err error) error {
		return b.Do(t.Context(), id, func() (Outcome, error) { return o, err })
	}
	for range tolerated {
		if err := call("a", Failed, broken); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if err := call("a", Worked, nil); !errors.Is(err, ErrOpen) {
		t.Errorf("got %v", err)
	}
	if err := call("b", Worked, nil); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAServerHasAFewCallsAtATime(t *testing.T) {
	b := New(func() time.Time { return start })
	hold := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	running := 0
	for range 3 * atOnce {
		all.Go(func() {
			_ = b.Do(t.Context(), "a", func() (Outcome, error) {
				mu.Lock()
				if running++; running > atOnce {
					t.Errorf("%d calls at a time", running)
				}
				mu.Unlock()
				<-hold
				mu.Lock()
				defer mu.Unlock()
				running--
				return Worked, nil
			})
		})
	}
	testkit.Await(t, "calls", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return running == atOnce
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := b.Do(gone, "a", func() (Outcome, error) { return Worked, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(hold)
	all.Wait()
}

func TestOnlySoManyServersAreRemembered(t *testing.T) {
	clock := testkit.NewClock(start)
	clock.Step = time.Millisecond
	b := New(clock.Now)
	hold, held := make(chan struct{}), make(chan struct{})
	var one sync.WaitGroup
	one.Go(func() {
		_ = b.Do(t.Context(), "in use", func() (Outcome, error) {
			close(held)
			<-hold
			return Worked, nil
		})
	})
	testkit.Receive(t, held, "the server is in use")
	for i := range maxKept + 10 {
		_ = b.Do(t.Context(), fmt.Sprint(i), func() (Outcome, error) { return Worked, nil })
	}
	if len(b.kept) != maxKept || b.kept["in use"] == nil || b.kept["0"] != nil {
		t.Errorf("%d are remembered", len(b.kept))
	}
	close(hold)
	one.Wait()
}
