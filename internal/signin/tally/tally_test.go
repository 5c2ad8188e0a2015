package tally_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/tally"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const slow errs.Reason = "TOO_FAST"

var (
	wrong     = errs.New(errs.Unauthenticated, "WRONG", "wrong")
	denied    = errs.New(errs.PermissionDenied, "DENIED", "denied")
	throttled = errs.New(errs.ResourceExhausted, slow, "slow down")
)

// oneDay is a clock on which no day ends in the middle of a test.
func oneDay() time.Time { return time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC) }

// read gives the numbers of days, the oldest first, without days on which nothing happened.
func read(t *testing.T, c *tally.Tally, scope string, days int) (text string) {
	t.Helper()
	all, err := c.Read(t.Context(), scope, days)
	testkit.Must(t, err)
	if len(all) != days {
		t.Errorf("%d days, want %d", len(all), days)
	}
	for _, d := range all {
		if len(d.Day) > 0 {
			text += fmt.Sprint(d.Date.Format(time.DateOnly), " ", d.Day, "; ")
		}
	}
	return text
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestWhatCountsAsWhat(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a success", nil, "map[pwd:{1 0 0}]"},
		{"a wrong password", wrong, "map[pwd:{0 1 0}]"},
		{"a way that is not allowed", denied, "map[pwd:{0 1 0}]"},
		{"throttled", throttled, "map[pwd:{0 0 1}]"},
		{"too much else", errs.New(errs.ResourceExhausted, "OTHER", "other"), ""},
		{"no verdict", errs.New(errs.Unavailable, "AWAY", "away"), ""},
		{"the caller is gone", context.Canceled, ""},
		{"what has to be linked first", errs.New(errs.FailedPrecondition, "NOT_LINKED", "link it"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, org.Kind)
			counts := tally.New(s, func() time.Time { return time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC) }, slow)
			counts.Outcome("org_a", tally.Password, c.err)
			want := c.want
			if want != "" {
				want = "2026-03-01 " + want + "; "
			}
			same(t, "the organization", read(t, counts, "org_a", 1), want)
			same(t, "the installation", read(t, counts, access.Installation, 1), want)
			same(t, "another organization", read(t, counts, "org_b", 1), "")
		})
	}
	var nobody *tally.Tally
	nobody.Outcome("org_a", tally.Password, nil)
	nobody.Failed("org_a", tally.Provider)
}

func TestCountsAreSharedByNodesAndSurviveARestart(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := eventtest.NewNodes(db, org.Kind)
		s := w.Open(t)
		clock := w.Clock
		clock.Advance(time.Date(2030, 11, 30, 12, 0, 0, 0, time.UTC).Sub(clock.Now()))
		nodes := []*tally.Tally{tally.New(s, clock.Now, slow), tally.New(s, clock.Now, slow)}
		if db.Engine == testdb.Postgres {
			nodes[1] = tally.New(w.Open(t), clock.Now, slow)
		}
		const each = 200
		var all sync.WaitGroup
		for _, n := range nodes {
			for i := range 4 {
				all.Go(func() {
					for range each {
						n.Outcome("org_a", tally.Password, nil)
						n.Outcome(fmt.Sprint("org_", i), tally.Passkey, wrong)
						n.Failed("", tally.Provider)
						if i == 0 {
							if err := n.Flush(t.Context()); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
		}
		all.Wait()
		testkit.Must(t, nodes[0].Flush(t.Context()))
		testkit.Must(t, nodes[1].Flush(t.Context()))
		anew := tally.New(s, clock.Now, slow)
		same(t, "the organization", read(t, anew, "org_a", 30), fmt.Sprintf("2030-11-30 map[pwd:{%d 0 0}]; ", 8*each))
		same(t, "another", read(t, anew, "org_3", 90), fmt.Sprintf("2030-11-30 map[hwk:{0 %d 0}]; ", 2*each))
		same(t, "the installation", read(t, anew, access.Installation, 1),
			fmt.Sprintf("2030-11-30 map[fed:{0 %[1]d 0} hwk:{0 %[1]d 0} pwd:{%[1]d 0 0}]; ", 8*each))

		// The next day is in another month.
		clock.Advance(24 * time.Hour)
		anew.Outcome("org_a", tally.Password, throttled)
		same(t, "both days", read(t, anew, "org_a", 90),
			fmt.Sprintf("2030-11-30 map[pwd:{%d 0 0}]; 2030-12-01 map[pwd:{0 0 1}]; ", 8*each))
		same(t, "one day", read(t, anew, "org_a", 1), "2030-12-01 map[pwd:{0 0 1}]; ")
	})
}

func TestOldCountsExpireWhenNobodyAsksForThemAnyMore(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	clock := testkit.NewClock(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	counts := tally.New(s, clock.Now, slow)
	counts.Outcome("org_a", tally.Password, nil)
	testkit.Must(t, counts.Flush(t.Context()))
	for _, scope := range []string{"org_a", access.Installation} {
		row, err := s.Row(t.Context(), event.RowKey{Table: event.Throttle, Key: "sign_ins/" + scope + "/2026-02"})
		testkit.Must(t, err)
		last := time.Date(2026, 2, 28, 23, 59, 59, 0, time.UTC).Add(tally.MostDays * 24 * time.Hour)
		if expires := event.Time(row.Expires); expires.Before(last) || expires.After(last.Add(48*time.Hour)) {
			t.Errorf("%s expires %v", scope, expires)
		}
	}
}

// away is a store that refuses to change anything.
type away struct {
	event.Store
	is bool
}

func (s *away) Do(ctx context.Context, c event.Command) error {
	if s.is {
		return errors.New("away")
	}
	return s.Store.Do(ctx, c)
}

func TestWhatCannotBeStoredIsStoredLater(t *testing.T) {
	s := &away{Store: eventtest.New(t, org.Kind), is: true}
	counts := tally.New(s, oneDay, slow)
	counts.Outcome("org_a", tally.Password, nil)
	if err := counts.Flush(t.Context()); err == nil {
		t.Error("it says that it is stored")
	}
	counts.Outcome("org_a", tally.Password, wrong)
	s.is = false
	same(t, "both", read(t, counts, "org_a", 2), "2026-02-01 map[pwd:{1 1 0}]; ")
}

func TestTheMemoryIsBounded(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	counts := tally.New(s, oneDay, slow)
	for i := range 10_050 {
		counts.Failed(fmt.Sprint("org_", i), tally.Password)
	}
	same(t, "the last one", read(t, counts, "org_10049", 1), "")
	same(t, "the first one", read(t, counts, "org_0", 1), "2026-02-01 map[pwd:{0 1 0}]; ")
	same(t, "the installation", read(t, counts, access.Installation, 1), "2026-02-01 map[pwd:{0 10050 0}]; ")
}

func TestANodeThatStopsStoresWhatItHasCounted(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	counts := tally.New(s, oneDay, slow)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		counts.Run(ctx, slog.New(slog.DiscardHandler))
	}()
	counts.Outcome("org_a", tally.Password, nil)
	stop()
	testkit.Receive(t, done, "it has stopped")
	same(t, "after it", read(t, tally.New(s, oneDay, slow), "org_a", 1), "2026-02-01 map[pwd:{1 0 0}]; ")
}

func TestTheTotalsGoOnWhenCountsAreStored(t *testing.T) {
	counts := tally.New(eventtest.New(t, org.Kind), time.Now, slow)
	for range 2 {
		counts.Outcome("org_a", tally.Password, nil)
		counts.Outcome("", tally.Password, wrong)
		counts.Outcome("org_b", tally.Password, throttled)
		counts.Failed("org_b", tally.Provider)
		testkit.Must(t, counts.Flush(t.Context()))
	}
	for way, want := range map[tally.Way]tally.Counts{tally.Password: {Successes: 2, Failures: 2, Throttled: 2},
		tally.Provider: {Failures: 2}, tally.Passkey: {}} {
		if got := counts.Total(way); got != want {
			t.Errorf("%s: %+v, want %+v", way, got, want)
		}
	}
}
