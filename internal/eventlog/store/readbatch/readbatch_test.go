package readbatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/test/testkit"
)

// desk answers questions when it is told to, and remembers them.
type desk struct {
	asked  chan []Question
	answer chan error
}

func newDesk() *desk { return &desk{asked: make(chan []Question), answer: make(chan error)} }

func (d *desk) ask(_ context.Context, questions []Question) error {
	d.asked <- questions
	if err := <-d.answer; err != nil {
		return err
	}
	for _, q := range questions {
		for _, arg := range q.Args {
			if err := q.Each(func(dest ...any) error { *dest[0].(*int) = arg.(int); return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// doubles finds twice the number for every number but zero.
func doubles(name string) func(keys []int, found map[int]string) []Question {
	return func(keys []int, found map[int]string) []Question {
		q := Question{SQL: name, Each: func(scan func(...any) error) error {
			var n int
			if err := scan(&n); err != nil {
				return err
			}
			found[n] = name + strconv.Itoa(2*n)
			return nil
		}}
		for _, k := range keys {
			if k != 0 {
				q.Args = append(q.Args, k)
			}
		}
		return []Question{q}
	}
}

func TestWhatWaitsIsAskedAtOnce(t *testing.T) {
	d, stopped := newDesk(), make(chan struct{})
	defer close(stopped)
	r := Start(stopped, d.ask)
	left, right := Add(r, doubles("left")), Add(r, doubles("right"))
	var all sync.WaitGroup
	get := func(l *Lookups[int, string], key int, want string) {
		all.Go(func() {
			if got, err := l.Get(t.Context(), key); got != want || err != nil {
				t.Errorf("%d: %q, %v; want %q", key, got, err, want)
			}
		})
	}
	get(left, 1, "left2")
	first := testkit.Receive(t, d.asked, "the first round trip") // whoever asks from now on waits for the next one
	if len(first) != 1 || len(first[0].Args) != 1 {
		t.Fatalf("the first question is %v", first)
	}
	for i := range Most + 3 {
		want := ""
		if i > 0 {
			want = "left" + strconv.Itoa(2*i)
		}
		get(left, i, want)
	}
	get(right, 7, "right14")
	untilWaiting(t, r, left, Most+3)
	untilWaiting(t, r, right, 1)
	d.answer <- nil
	second := testkit.Receive(t, d.asked, "the second round trip")
	if len(second) != 2 || second[0].SQL != "left" || second[1].SQL != "right" || len(second[1].Args) != 1 {
		t.Errorf("the second round trip asks %v", second)
	}
	d.answer <- nil
	third := testkit.Receive(t, d.asked, "the third round trip")
	if len(third) != 1 || len(second[0].Args)+len(third[0].Args) != Most+2 {
		t.Errorf("the third round trip asks %v", third)
	}
	d.answer <- nil
	all.Wait()
}

// untilWaiting returns when so many wait.
func untilWaiting(t *testing.T, r *Reader, l *Lookups[int, string], n int) {
	t.Helper()
	testkit.Await(t, fmt.Sprint(n, " wait"), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(l.waiting) == n
	})
}

func TestFailuresReachWhoeverAsked(t *testing.T) {
	d, stopped := newDesk(), make(chan struct{})
	l := Add(Start(stopped, d.ask), doubles("left"))
	got := make(chan error)
	get := func(ctx context.Context) {
		go func() {
			_, err := l.Get(ctx, 1)
			got <- err
		}()
	}
	away := errors.New("away")
	get(t.Context())
	testkit.Receive(t, d.asked, "a round trip")
	d.answer <- away
	if err := testkit.Receive(t, got, "an answer"); !errors.Is(err, away) {
		t.Errorf("a failed query: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	get(ctx)
	testkit.Receive(t, d.asked, "a round trip")
	cancel()
	if err := testkit.Receive(t, got, "an answer"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	d.answer <- nil
	get(t.Context())
	testkit.Receive(t, d.asked, "a round trip")
	close(stopped)
	if err := testkit.Receive(t, got, "an answer"); !errors.Is(err, ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
	d.answer <- nil
}

func TestWhatNobodyWaitsForComesWithTheNextRoundTrip(t *testing.T) {
	d, stopped := newDesk(), make(chan struct{})
	defer close(stopped)
	r := Start(stopped, d.ask)
	left, right := Add(r, doubles("left")), Add(r, doubles("right"))
	early := left.Ask(1)
	got := make(chan string)
	go func() {
		found, _ := right.Get(t.Context(), 2)
		got <- found
	}()
	if asked := testkit.Receive(t, d.asked, "a round trip"); len(asked) != 2 || asked[0].SQL != "left" ||
		asked[1].SQL != "right" {
		t.Errorf("the round trip asks %v", asked)
	}
	d.answer <- nil
	if found := testkit.Receive(t, got, "an answer"); found != "right4" {
		t.Errorf("waited for: %q", found)
	}
	if found, err := early.Get(t.Context()); found != "left2" || err != nil { // there is no other round trip
		t.Errorf("asked before: %q, %v", found, err)
	}
	for range Most { // who never waits does not fill the memory
		left.Ask(3)
	}
	if asked := testkit.Receive(t, d.asked, "a round trip"); len(asked[0].Args) != Most {
		t.Errorf("the round trip asks %v", asked)
	}
	d.answer <- nil
}

func TestAQuestionGoesAlongWithLookups(t *testing.T) {
	d, stopped := newDesk(), make(chan struct{})
	defer close(stopped)
	l := Add(Start(stopped, d.ask), doubles("left"))
	early := l.Ask(1)
	ask := func(sum *int) chan error {
		got := make(chan error)
		go func() {
			got <- l.Along(t.Context(), Question{
				SQL:  "alone",
				Args: []any{3, 4},
				Each: func(scan func(...any) error) error {
					var n int
					defer func() { *sum += n }()
					return scan(&n)
				},
			})
		}()
		return got
	}
	var sum int
	got := ask(&sum)
	if asked := testkit.Receive(t, d.asked, "a round trip"); len(asked) != 2 || asked[0].SQL != "alone" ||
		asked[1].SQL != "left" {
		t.Errorf("the round trip asks %v", asked)
	}
	d.answer <- nil
	if err := testkit.Receive(t, got, "an answer"); err != nil || sum != 7 {
		t.Errorf("the question is answered with %d, %v", sum, err)
	}
	if found, err := early.Get(t.Context()); found != "left2" || err != nil {
		t.Errorf("the lookup: %q, %v", found, err)
	}
	away := errors.New("away")
	got = ask(&sum)
	testkit.Receive(t, d.asked, "a round trip")
	d.answer <- away
	if err := testkit.Receive(t, got, "an answer"); !errors.Is(err, away) {
		t.Errorf("a failed query: %v", err)
	}
}

func TestRoundTripsAreTold(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	d := newDesk()
	r := Start(stop, d.ask)
	told := make(chan int, 1)
	r.OnRoundTrip = func(lookups int, took time.Duration) { told <- lookups }
	l, other := Add(r, doubles("a")), Add(r, doubles("b"))
	l.Ask(1)
	l.Ask(2)
	last := other.Ask(3)
	go func() {
		<-d.asked
		d.answer <- nil
	}()
	if _, err := last.Get(t.Context()); err != nil {
		t.Error(err)
	}
	if n := testkit.Receive(t, told, "the round trip is told"); n != 3 {
		t.Errorf("%d lookups, want 3", n)
	}
}

func TestNothingIsAskedForWhoHasLeft(t *testing.T) {
	d, stopped := newDesk(), make(chan struct{})
	defer close(stopped)
	r := Start(stopped, d.ask)
	l := Add(r, doubles("left"))
	first := make(chan error)
	go func() { _, err := l.Get(t.Context(), 1); first <- err }()
	testkit.Receive(t, d.asked, "a round trip")
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := l.Get(ctx, 2); left <- err }()
	untilWaiting(t, r, l, 1)
	cancel()
	if err := testkit.Receive(t, left, "who left has an answer"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	third := make(chan error)
	go func() { _, err := l.Get(t.Context(), 3); third <- err }()
	untilWaiting(t, r, l, 2)
	d.answer <- nil
	testkit.Receive(t, first, "the first has an answer")
	if asked := testkit.Receive(t, d.asked, "a round trip"); len(asked[0].Args) != 1 || asked[0].Args[0] != 3 {
		t.Errorf("asked was %v", asked[0].Args)
	}
	d.answer <- nil
	testkit.Receive(t, third, "the third has an answer")
}

func TestWhoseAnswerWouldComeTooLateIsToldAtOnce(t *testing.T) {
	d, stopped := newDesk(), make(chan struct{})
	defer close(stopped)
	r := Start(stopped, d.ask)
	l := Add(r, doubles("left"))
	r.pace.Moved(1, 24*time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range Most * r.readers { // nobody waits for these, so they stay
		l.reader.mu.Lock()
		l.waiting = append(l.waiting, &Asked[int, string]{reader: r, done: make(chan struct{})})
		l.reader.mu.Unlock()
	}
	if _, err := l.Ask(1).Get(ctx); !errors.Is(err, fairqueue.ErrBusy) || ctx.Err() != nil {
		t.Errorf("behind a full round trip: %v", err)
	}
}
