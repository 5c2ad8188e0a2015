package registration

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// given creates org_b, which is open to all.
func given(t *testing.T, s event.Store) {
	t.Helper()
	must(t, s.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{org.Kind.Ref("org_b")},
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Create(tx, "org_b", "org_b", org.Added{Name: "b"})
			if err != nil {
				return err
			}
			return o.Append(org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{Registering: policy.Registering{Registration: policy.ToAll}})})
		},
	}))
}

// 64 come with the same link at once, on two nodes: one becomes a user.
func TestOfManyWithOneLinkOneBecomesAUser(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := eventtest.NewNodes(db, kinds...)
		var box outbox
		var nodes []*Registrations
		stores := []*store.Store{n.Open(t)}
		if db.Engine == testdb.Postgres {
			stores = append(stores, n.Open(t))
		}
		given(t, stores[0])
		for _, s := range stores {
			nodes = append(nodes, New(sessionsOf(t, s, s.RootKey(), n.Clock), &box))
		}
		must(t, nodes[0].Start(t.Context(), start("org_b", "new@mail.test")))
		var sending sync.WaitGroup
		for _, node := range nodes { // both look at once
			sending.Go(func() { _ = node.SendWaiting(t.Context()) })
		}
		sending.Wait()
		link := box.one(t).link
		var became atomic.Int32
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				f := finish(link)
				if i%2 == 0 {
					f.UserName = fmt.Sprint("name", i)
				}
				switch _, err := nodes[i%len(nodes)].Finish(t.Context(), f); {
				case err == nil:
					became.Add(1)
				case !errors.Is(err, ErrNotFound):
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if became.Load() != 1 {
			t.Errorf("%d became users", became.Load())
		}
		users, _, err := user.Kind.List(t.Context(), stores[0], event.Query{Org: "org_b", Limit: 10})
		if must(t, err); len(users) != 1 {
			t.Errorf("there are %d users", len(users))
		}
	})
}

// TestScaleManyWhoNeverConfirmLeaveNothing: many people, each from a network of their own, start and never confirm.
// After the sweep nothing is left of them.
func TestScaleManyWhoNeverConfirmLeaveNothing(t *testing.T) {
	many := 2_000 // more than an organization takes in a minute, more than one sweep deletes at once
	if os.Getenv("SIGNET_SCALE") != "" {
		many = 10_000
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		clock := testkit.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
		n := eventtest.NewNodes(db, kinds...)
		s, _, err := store.Open(t.Context(),
			store.Options{Database: db.URL, Kinds: kinds, Master: n.Master, Clock: clock.Now,
				SweepInterval: 50 * time.Millisecond})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		given(t, s)
		events := func() int64 {
			at, err := s.Position(t.Context())
			must(t, err)
			return at
		}
		before := events()
		var box outbox
		sessions := sessionsOf(t, s, s.RootKey(), clock)
		sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: ratelimit.DefaultPerNetwork, Clock: clock.Now}
		r := New(sessions, &box)
		var all sync.WaitGroup
		slots := make(chan struct{}, 64)
		for i := range many {
			if i%perOrg == 0 {
				all.Wait()
				clock.Advance(time.Minute)
			}
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				from := start("org_b", fmt.Sprintf("new%d@mail%d.test", i, i%100))
				from.Peer = net4(i)
				if err := r.Start(t.Context(), from); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		must(t, r.SendWaiting(t.Context()))
		if len(box.sent) != many {
			t.Fatalf("%d mails", len(box.sent))
		}
		driver, dsn := "pgx", db.URL
		if db.Engine == testdb.SQLite {
			driver, dsn = "sqlite", "file:"+db.URL+"?_pragma=query_only(1)&_pragma=busy_timeout(10000)"
		}
		plain, err := sql.Open(driver, dsn)
		must(t, err)
		defer plain.Close()
		left := func() (rows int) {
			for _, table := range []event.SideTable{event.Flows, event.Deliveries, event.Throttle} {
				var found int
				must(t, plain.QueryRowContext(t.Context(), "SELECT count(*) FROM "+string(table)).Scan(&found))
				rows += found
			}
			return rows
		}
		if rows := left(); rows != 2*many { // what the link leads to, and the count of mails
			t.Errorf("%d rows", rows)
		}
		clock.Advance(25 * time.Hour)
		testkit.Await(t, "the sweep", func() bool { return left() == 0 })
		if events() != before {
			t.Errorf("%d events are left", events()-before)
		}
	})
}
