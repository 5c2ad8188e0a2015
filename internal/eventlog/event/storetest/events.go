package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testkit"
)

var eventChecks = []check{
	{name: "events are found by what they are about, in both orders, page by page", test: eventsFound},
	{name: "pages of events skip and repeat nothing while many write", test: eventsWhileWriting},
	{name: "whoever follows several objects misses nothing of them", test: eventsOfSeveral},
	{name: "a page of events looks at a bounded number of them", test: eventsBounded},
	{name: "times are found though clocks differ", test: eventsOfDifferentClocks},
}

// story fills a log with two organizations, their users and sign-ins, by two actors, over some hours.
func story(t *testing.T, e *env, n Node) {
	t.Helper()
	by := func(actor string, c event.Command) {
		t.Helper()
		c.Origin = event.Origin{Actor: actor, RequestID: "req_test"}
		if err := n.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	by("usr_1", addOrg("org_1", "first"))
	by("usr_1", addOrg("org_2", "second"))
	for i := range 6 {
		id := fmt.Sprintf("usr_%d", i)
		by("usr_1", addUser(id, id))
		by(id, event.Command{
			Write: []event.Ref{signIns.Ref(fmt.Sprintf("sgi_%d", i))},
			Read:  []event.Ref{users.Ref(id)},
			Decide: func(tx *event.Tx) error {
				_, err := signIns.CreateBeside(tx, fmt.Sprintf("sgi_%d", i), users.Ref(id), signedIn{})
				return err
			},
		})
	}
	for round := range 12 {
		e.clock.Advance(20 * time.Minute)
		for i := range 6 {
			by(fmt.Sprintf("usr_%d", (i+round)%3), count(fmt.Sprintf("usr_%d", i)))
		}
		by("usr_2", countOrg("org_1"))
		by("usr_1", countOrg("org_2"))
		by("usr_0", event.Command{Write: []event.Ref{signIns.Ref("sgi_0")}, Decide: func(tx *event.Tx) error {
			s, err := signIns.Get(tx, "sgi_0")
			if err != nil {
				return err
			}
			return s.Append(signedIn{})
		}})
	}
}

// listed follows the pages of a query to its end.
func listed(t *testing.T, n event.Reader, q event.EventQuery) (all []event.Event) {
	t.Helper()
	for pages := 0; ; pages++ {
		page, err := n.EventsWhere(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) > q.Limit {
			t.Fatalf("%d events on a page of %d", len(page.Events), q.Limit)
		}
		all = append(all, page.Events...)
		if page.Next == 0 {
			return all
		}
		if pages > 1000 {
			t.Fatalf("%+v has no end", q)
		}
		q.After = page.Next
	}
}

// sameEvents compares what was listed with what the whole log holds.
func sameEvents(t *testing.T, q event.EventQuery, log, got []event.Event) {
	t.Helper()
	var want []string
	for i := range log {
		if q.Matches(&log[i]) {
			want = append(want, fmt.Sprint(log[i].Position))
		}
	}
	if !q.OldestFirst {
		slices.Reverse(want)
	}
	var have []string
	for _, e := range got {
		have = append(have, fmt.Sprint(e.Position))
		if !slices.ContainsFunc(log,
			func(l event.Event) bool { return l.Position == e.Position && string(l.Hash()) == string(e.Hash()) }) {
			t.Errorf("%+v: %d is not as it is in the log", q, e.Position)
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("%+v\n got %v\nwant %v", q, have, want)
	}
}

func eventsFound(t *testing.T, e *env) {
	n := e.open(t)
	story(t, e, n)
	log := allEvents(t, n)
	middle, late := log[len(log)/2].Time, log[len(log)-10].Time
	found := 0
	for _, q := range []event.EventQuery{
		{},
		{Org: "org_1"}, {Org: "org_2"}, {Org: "org_none"}, {Org: "org_1\x00"}, {Org: "\xff"},
		{Actor: "usr_1"}, {Actor: "usr_none"}, {Org: "org_2", Actor: "usr_1"}, {Org: "org_1", Actor: "usr_2"},
		{Org: "org_2", Actor: "usr_2"},
		{Objects: []string{"usr_0"}}, {Objects: []string{"usr_0", "sgi_0", "con_0"}}, {Objects: []string{"usr_none"}},
		{Objects: []string{"usr_\x00"}},
		{Org: "org_1", Objects: []string{"usr_0", "sgi_0"}}, {Org: "org_2", Objects: []string{"usr_0", "sgi_0"}},
		{Org: "org_2", Objects: []string{"org_2", "usr_1"}},
		{Objects: []string{"usr_0", "usr_1", "sgi_0"}, Actor: "usr_1"},
		{Types: []event.Type{"user.counted.v1"}}, {Types: []event.Type{"user.counted.v1", "org.added.v1"}},
		{Types: []event.Type{"user.counted"}},
		{Kinds: []event.Kind{"user"}}, {Kinds: []event.Kind{"use"}}, {Kinds: []event.Kind{"org", "sign_in"}},
		{Kinds: []event.Kind{"org"}, Types: []event.Type{"user.added.v1"}},
		{Org: "org_1", Except: "org"}, {Except: "user"},
		{Org: "org_1", Kinds: []event.Kind{"sign_in"}, Except: "sign_in"},
		{From: middle}, {To: middle}, {From: middle, To: late}, {From: middle + 1, To: late + 1},
		{From: late, To: middle}, {From: 1, To: 2}, {From: log[0].Time},
		{Org: "org_2", From: middle, To: late}, {Actor: "usr_1", From: middle},
		{Objects: []string{"usr_0", "sgi_0"}, From: middle, To: late},
		{Org: "org_1", Actor: "usr_0", Kinds: []event.Kind{"user"}, From: middle},
	} {
		for _, q.OldestFirst = range []bool{true, false} {
			for _, q.Limit = range []int{1, 7, 500} {
				got := listed(t, n, q)
				found += len(got)
				sameEvents(t, q, log, got)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d events were found", found)
	}
}

func eventsWhileWriting(t *testing.T, e *env) {
	n := e.open(t)
	story(t, e, n)
	before := allEvents(t, n)
	var stop atomic.Bool
	var written atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			c := count("usr_0")
			c.Origin = origin
			if err := n.Do(context.Background(), c); err != nil {
				t.Error(err)
				return
			}
			written.Add(1)
		}
	}()
	for _, q := range []event.EventQuery{{}, {Org: "org_1"}, {Objects: []string{"usr_0", "sgi_0"}}, {Actor: "usr_0"},
		{Kinds: []event.Kind{"user", "sign_in"}}} {
		q.Limit = 5
		// The newest first: what is there is listed once; what comes meanwhile is in front of it.
		start := written.Load()
		testkit.Await(t, "somebody writes", func() bool { return written.Load() > start })
		got := listed(t, n, q)
		if len(got) > 0 {
			q := q
			sameEvents(t, q, allEvents(t, n)[:got[0].Position], got)
		}
	}
	stop.Store(true)
	testkit.Receive(t, done, "who writes has ended")
	// The oldest first: it comes to the end of what there is.
	log := allEvents(t, n)
	q := event.EventQuery{Org: "org_1", OldestFirst: true, Limit: 9}
	sameEvents(t, q, log, listed(t, n, q))
	if len(log) <= len(before) {
		t.Error("nobody has written")
	}
}

func eventsOfSeveral(t *testing.T, e *env) {
	const objects, changes = 6, 60
	n := e.open(t)
	var ids []string
	for i := range objects {
		ids = append(ids, fmt.Sprintf("usr_%d", i))
		must(t, n, addUser(ids[i], ids[i]))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		parallel(objects, func(i int) {
			for range changes {
				c := count(ids[i])
				c.Origin = origin
				if err := n.Do(context.Background(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}()
	q := event.EventQuery{Objects: ids, OldestFirst: true, Limit: 100}
	for q.After < objects*(changes+1) {
		page, err := n.EventsWhere(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range page.Events {
			if ev.Position != q.After+1 {
				t.Fatalf("position %d came after %d", ev.Position, q.After)
			}
			q.After = ev.Position
		}
		if t.Failed() {
			return
		}
	}
	testkit.Receive(t, done, "who writes has ended")
}

func eventsBounded(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "one"))
	must(t, n, addUser("usr_2", "two"))
	for range 25 {
		must(t, n, changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
			facts := make([]event.Fact[user], 100)
			for i := range facts {
				facts[i] = counted{By: 1}
			}
			return u.Append(facts...)
		}))
	}
	log := allEvents(t, n)
	for _, q := range []event.EventQuery{
		{Types: []event.Type{"user.added.v1"}},
		{Org: "org_1", Types: []event.Type{"user.added.v1"}},
		{Org: "org_1", Actor: event.System, Types: []event.Type{"user.added.v1"}},
		{Actor: event.System, Kinds: []event.Kind{"org"}},
		{Objects: []string{"usr_1", "usr_2"}, Types: []event.Type{"user.added.v1"}},
		{Objects: []string{"usr_1"}, Actor: "usr_9"},
		{Org: "org_1", Except: "user"},
	} {
		q.Limit = 50
		page, err := n.EventsWhere(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) > 1 || page.Next == 0 {
			t.Errorf("%+v: all %d events were looked at for one page", q, len(log))
		}
		for _, q.OldestFirst = range []bool{true, false} {
			sameEvents(t, q, log, listed(t, n, q))
		}
	}
	// What others have in one's own object is not even counted.
	page, err := n.EventsWhere(t.Context(), event.EventQuery{Org: "org_2", Objects: []string{"usr_1"}, Limit: 50})
	if err != nil || len(page.Events) > 0 || page.Next != 0 {
		t.Errorf("an object of another organization: %d events, next %d, %v", len(page.Events), page.Next, err)
	}
}

// eventsOfDifferentClocks has a clock that jumps back and forth by minutes, as those of several nodes do.
func eventsOfDifferentClocks(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 60 {
		e.clock.Advance([]time.Duration{9 * time.Minute, -6 * time.Minute, 10 * time.Minute}[i%3])
		must(t, n, addUser(fmt.Sprintf("usr_%02d", i), fmt.Sprint("name", i)))
	}
	log := allEvents(t, n)
	for i := range log {
		for _, q := range []event.EventQuery{{From: log[i].Time}, {To: log[i].Time},
			{Org: "org_1", From: log[i].Time - 1, To: log[i].Time + 1}} {
			q.Limit, q.OldestFirst = 20, i%2 == 0
			sameEvents(t, q, log, listed(t, n, q))
		}
	}
}
