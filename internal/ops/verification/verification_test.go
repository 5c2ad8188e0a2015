package verification

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// node is a server's store with its schedule.
type node struct {
	*Schedule
	st      *store.Store
	log     testkit.Log
	metrics *prometheus.Registry
}

func newNode(t *testing.T, db testdb.Database, key secret.MasterKey, clock *testkit.Clock) *node {
	t.Helper()
	n := &node{metrics: prometheus.NewRegistry()}
	st, created, err := store.Open(t.Context(),
		store.Options{Database: db.URL, Kinds: model.Kinds, Master: key, Clock: clock.Now,
			Log: slog.New(slog.NewTextHandler(&n.log, nil))})
	testkit.Must(t, err)
	t.Cleanup(func() { st.Close() })
	if created {
		_, err := setup.Setup{Store: st, Hasher: secret.NewCheapHasher(), DomainSuffix: "localhost"}.First(t.Context(),
			func(setup.FirstAdmin) error { return nil })
		testkit.Must(t, err)
	}
	n.st, n.Schedule = st, New(st, st.Verify, st.CheckFile, 24*time.Hour, slog.New(slog.NewTextHandler(&n.log, nil)))
	n.clock = clock.Now
	testkit.Must(t, n.Register(n.metrics))
	return n
}

func (n *node) metric(t *testing.T, name string) float64 {
	t.Helper()
	all, err := n.metrics.Gather()
	testkit.Must(t, err)
	for _, m := range all {
		if m.GetName() == "signet_verification_"+name {
			return m.GetMetric()[0].GetGauge().GetValue() + m.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

func TestTheLogIsVerifiedByOneNodeInEveryInterval(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		clock, key := testkit.NewClock(time.Now()), secret.NewMasterKey()
		nodes := []*node{newNode(t, db, key, clock)}
		if db.Engine == testdb.Postgres {
			nodes = append(nodes, newNode(t, db, key, clock))
		}
		runs := 0
		for _, n := range nodes {
			n.verify = func(ctx context.Context, o proof.Options) (*proof.Report, error) {
				runs++
				for _, other := range nodes { // nobody begins meanwhile
					if other != n {
						other.Tend(ctx)
					}
				}
				return n.st.Verify(ctx, o)
			}
		}
		tend := func(after time.Duration, want int) {
			t.Helper()
			clock.Advance(after)
			for _, n := range nodes {
				n.Tend(t.Context())
			}
			if runs != want {
				t.Errorf("%d runs, want %d: %s", runs, want, nodes[0].log.String())
			}
		}
		tend(0, 0)
		tend(23*time.Hour, 0)
		tend(time.Hour, 1)
		ended := clock.Now()
		tend(23*time.Hour, 1)
		tend(time.Hour, 2)
		tend(-1000*time.Hour, 3) // a clock that goes back far
		position, err := nodes[0].st.Position(t.Context())
		testkit.Must(t, err)
		for _, n := range nodes {
			n.Tend(t.Context())
			if got := n.metric(t,
				"position"); got != float64(position) || n.metric(t, "last_success_timestamp_seconds") == 0 ||
				n.metric(t, "failures_total") != 0 || n.Detail() != "" {
				t.Errorf("at %v of %d, %q: %s", got, position, n.Detail(), n.log.String())
			}
		}
		if !nodes[0].log.Has("the log was verified") && !nodes[len(nodes)-1].log.Has("the log was verified") ||
			ended.IsZero() {
			t.Error("nobody says so")
		}
	})
}

func TestAChangedLogIsSaidLoudlyAndByEveryNode(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		clock, key := testkit.NewClock(time.Now()), secret.NewMasterKey()
		n := newNode(t, db, key, clock)
		n.Tend(t.Context())
		e, err := engine.Open(t.Context(), engine.Options{Database: db.URL})
		testkit.Must(t, err)
		defer e.Close()
		testkit.Must(t, e.Transact(t.Context(), func(x engine.Executor) error {
			return x.Exec(t.Context(), "UPDATE events SET actor = 'somebody' WHERE position = 2")
		}))
		clock.Advance(24 * time.Hour)
		n.Tend(t.Context())
		if !n.log.Has("level=ERROR") || !n.log.Has("THE LOG WAS CHANGED") || n.metric(t, "log_changed") != 1 ||
			n.metric(t, "failures_total") != 1 || n.metric(t, "last_success_timestamp_seconds") != 0 {
			t.Error(n.log.String())
		}
		if got := n.Detail(); !strings.Contains(got, "the log was changed") {
			t.Errorf("the detail: %q", got)
		}
		if db.Engine == testdb.Postgres {
			other := newNode(t, db, key, clock)
			other.Tend(t.Context())
			if other.Detail() == "" || other.metric(t, "log_changed") != 1 {
				t.Error("another node does not know")
			}
		}
	})
}

func TestARunWithoutAResultIsTriedAgain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		clock := testkit.NewClock(time.Now())
		n := newNode(t, db, secret.NewMasterKey(), clock)
		n.Tend(t.Context())
		runs := 0
		n.verify = func(context.Context, proof.Options) (*proof.Report, error) {
			runs++
			return nil, errors.New("the database is away")
		}
		clock.Advance(24 * time.Hour)
		n.Tend(t.Context())
		clock.Advance(9 * time.Minute)
		n.Tend(t.Context())
		clock.Advance(time.Minute)
		if n.Tend(t.Context()); runs != 2 || n.metric(t, "failures_total") != 2 || !n.log.Has("the database is away") ||
			n.Detail() != "" {
			t.Errorf("%d runs: %s", runs, n.log.String())
		}
		clock.Advance(30 * time.Hour)
		if n.Tend(t.Context()); n.Detail() != "the log was never verified" {
			t.Errorf("the detail: %q", n.Detail())
		}
		// A server that stops gives the lease back, and blames nobody.
		ctx, stop := context.WithCancel(t.Context())
		n.verify = func(ctx context.Context, o proof.Options) (*proof.Report, error) {
			stop()
			return n.st.Verify(ctx, o)
		}
		clock.Advance(time.Hour)
		n.Tend(ctx)
		if until, err := (&notify.Lease{Store: n.st, Row: leaseRow, Node: "another"}).Peek(t.Context(),
			event.Micros(clock.Now())); until != 0 || err != nil || n.metric(t, "failures_total") != 3 {
			t.Errorf("the lease is held until %d, %v", until, err)
		}
	})
}

// It works a quarter of the time at most.
func TestItRestsInProportionToItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Schedule{}
		pace, began := s.pace(nil), time.Now()
		for range 5 {
			<-time.After(time.Second) // the work
			testkit.Must(t, pace(t.Context()))
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("5 s of work took %s", took)
		}
	})
}

// Whoever has lost the lease stops.
func TestALostLeaseEndsTheRun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		clock := testkit.NewClock(time.Now())
		n := newNode(t, db, secret.NewMasterKey(), clock)
		n.Tend(t.Context())
		progress, err := n.lease.Acquire(t.Context())
		testkit.Must(t, err)
		clock.Advance(life)
		if other, err := (&notify.Lease{Store: n.st, Row: leaseRow, Node: "another",
			Life: life}).Acquire(t.Context()); err != nil || other == nil {
			t.Fatal(other, err)
		}
		if kept, err := n.lease.Renew(t.Context(), *progress, nil); kept != nil || err != nil {
			t.Errorf("%v, %v", kept, err)
		}
	})
}
