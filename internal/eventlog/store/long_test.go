package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// Commands with many objects wait in a line of their own. Between two of them everybody has a turn who waits.
func TestOthersHaveTheirTurnBetweenLongCommands(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(),
			Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
				maxObjects: 1})
		testkit.Must(t, err)
		t.Cleanup(func() { s.Close() })
		running, resume := make(chan struct{}), make(chan struct{})
		var order []string // only the writer appends
		var all sync.WaitGroup
		do := func(c event.Command) {
			all.Go(func() {
				if err := s.Do(event.WritesMany(t.Context()), c); err != nil {
					t.Error(err)
				}
			})
		}
		named := func(what string, c event.Command) event.Command {
			decide := c.Decide
			c.Decide = func(tx *event.Tx) error {
				order = append(order, what)
				return decide(tx)
			}
			return c
		}
		long := event.Command{Write: []event.Ref{oldThings.Ref("x_1"), oldThings.Ref("x_2")},
			Decide: func(*event.Tx) error { return nil }}
		do(event.Command{Decide: func(*event.Tx) error { close(running); <-resume; return nil }})
		testkit.Receive(t, running, "the first command runs")
		for i := range 3 {
			do(named("long", long))
			do(named("short", oldName(fmt.Sprint("x_s", i), fmt.Sprint(i))))
		}
		testkit.Await(t, "all wait", func() bool { return len(s.queue) == 3 && len(s.long) == 3 })
		close(resume)
		all.Wait()
		if got := fmt.Sprint(order); got != "[long short short short long long]" {
			t.Errorf("they ran as %v", got)
		}
	})
}

func TestTurnsAfterALongCommand(t *testing.T) {
	for name, c := range map[string]struct {
		others time.Time
		took   time.Duration
		want   time.Duration
	}{
		// and not longer ago on a slow machine
		"others have just written": {time.Now().Add(time.Hour), 100 * time.Millisecond, 200 * time.Millisecond},
		"a very long one":          {time.Now().Add(time.Hour), time.Minute, mostTurn},
		"nobody else writes":       {time.Now().Add(-time.Hour), 100 * time.Millisecond, 0},
		"nobody ever has":          {time.Time{}, 100 * time.Millisecond, 0},
	} {
		line := turns{others: c.others}
		if got := line.ran(c.took); got != c.want || !line.owed {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The server's own upkeep is nobody whose turn it could be. What System does for somebody who waits, such as a sign-in,
// counts.
func TestUpkeepTakesNoTurns(t *testing.T) {
	nothing := event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(*event.Tx) error { return nil }}
	for name, c := range map[string]struct {
		run  func(*Store, context.Context) error
		want bool
	}{
		"upkeep": {func(s *Store, ctx context.Context) error {
			return s.Do(event.InBackground(ctx), nothing)
		}, false},
		"a look at the disk": {func(s *Store, ctx context.Context) error { return s.tryWrite(ctx) }, false},
		"a sign-in":          {func(s *Store, ctx context.Context) error { return s.Do(ctx, nothing) }, true},
		"a change by anybody": {func(s *Store, ctx context.Context) error {
			return s.Do(ctx, oldName("x_1", "A"))
		}, true},
	} {
		s, _, err := Open(t.Context(),
			Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{oldThings},
				Master: secret.NewMasterKey()})
		testkit.Must(t, err)
		testkit.Must(t, c.run(s, t.Context()))
		testkit.Must(t, s.Close()) // the writer has ended
		if got := !s.line.others.IsZero(); got != c.want {
			t.Errorf("%s: counts as others %v", name, got)
		}
	}
	var line turns
	began := time.Now()
	if line.ordinary([]*pending{{upkeep: true}, {}}, began); !line.others.Equal(began) {
		t.Error("upkeep hides who runs beside it")
	}
}

// An operation that writes many objects, although its definition does not say so, is seen in the log. It is not
// refused: whoever called it can do nothing about that.
func TestLongCommandsOfOthersAreSeen(t *testing.T) {
	var log testkit.Log
	s, _, err := Open(t.Context(),
		Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{oldThings},
			Master: secret.NewMasterKey(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close() })
	send := func(ctx context.Context, objects int) {
		t.Helper()
		c := event.Command{Decide: func(*event.Tx) error { return nil }}
		for i := range objects {
			c.Write = append(c.Write, oldThings.Ref(fmt.Sprint("x_", i)))
		}
		testkit.Must(t, s.Do(ctx, c))
	}
	send(t.Context(), event.MaxObjects)
	send(event.WritesMany(t.Context()), event.MaxObjects+1)
	if log.Has(Unmarked) {
		t.Error("they may")
	}
	if send(t.Context(), event.MaxObjects+1); !log.Has(Unmarked) {
		t.Error("nobody notices it")
	}
}
