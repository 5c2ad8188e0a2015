package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

var logChecks = []check{
	{name: "a read right after a write sees it", test: readAfterWrite},
	{name: "a read on another node right after a write sees it", test: readAfterWriteElsewhere, nodes: true},
	{name: "reads find nothing without an error", test: nothingFound},
	{name: "objects are found by their lookup column", test: lookup},
	{name: "an object is found in several ways at once, the first of those with one of several values",
		test: firstOfAll},
	{name: "the events of one object are read from any of them on", test: eventsOfOne},
	{name: "an object counts its events from one and remembers when it began", test: sequenceAndTimes},
	{name: "a clock that is set back does not turn history around", test: clockSetBack},
	{name: "a follower sees every position once and in order while many write", test: follower},
	{name: "a follower of two nodes sees every position once and in order", test: followerOfTwo, nodes: true},
	{name: "a follower is woken by what its node writes into the log", test: woken},
	{name: "personal data is sealed in the log and opens with its key alone", test: sealed},
	{name: "a companion shares the key of its person", test: companion},
	{name: "a fact is folded as it is stored", test: foldedAsStored},
	{name: "very long values work", test: longValues},
}

func readAfterWrite(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first", "first.example"))
	must(t, n, addUser("usr_1", "ada"))
	for i := range 50 {
		must(t, n, count("usr_1"))
		u := getUser(t, n, "usr_1")
		if u.Data.Count != i+1 || u.Sequence != uint64(i)+2 {
			t.Fatalf("after %d changes the user is at count %d, sequence %d", i+1, u.Data.Count, u.Sequence)
		}
	}
	if got := holder(t, n, domain("first.example")); got != "org_1" {
		t.Errorf("the domain is held by %q", got)
	}
	verify(t, n)
}

func readAfterWriteElsewhere(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_1", "ada"))
	for i := range 30 {
		writer, reader := a, b
		if i%2 == 1 {
			writer, reader = b, a
		}
		must(t, writer, count("usr_1"))
		if u := getUser(t, reader, "usr_1"); u.Data.Count != i+1 {
			t.Fatalf("after %d changes the other node sees %d", i+1, u.Data.Count)
		}
	}
	verify(t, b)
}

func nothingFound(t *testing.T, e *env) {
	n, ctx := e.open(t), t.Context()
	for _, none := range []string{"usr_none", "usr_\x00", "usr_\xff"} {
		if r, err := n.Record(ctx, users.Ref(none)); r != nil || err != nil {
			t.Errorf("Record %q: %v, %v", none, r, err)
		}
		if r, err := n.Row(ctx, event.RowKey{Table: event.Secrets, Key: none}); r != nil || err != nil {
			t.Errorf("Row %q: %v, %v", none, r, err)
		}
		if tok, err := n.TokenByID(ctx, none); tok != nil || err != nil {
			t.Errorf("TokenByID %q: %v, %v", none, tok, err)
		}
	}
	if r, err := n.RecordsWhere(ctx, "user", "org_1", "verified_email", "x", "email_order",
		10); r != nil || err != nil {
		t.Errorf("RecordsWhere: %v, %v", r, err)
	}
	if id, err := n.Holder(ctx, domain("none.example")); id != "" || err != nil {
		t.Errorf("Holder: %v, %v", id, err)
	}
	if b, err := n.TokenContext(ctx, []byte("none")); b != nil || err != nil {
		t.Errorf("Bearer: %v, %v", b, err)
	}
	if events, err := n.Events(ctx, 0, 10); events != nil || err != nil {
		t.Errorf("Events: %v, %v", events, err)
	}
	verify(t, n)
	if _, err := n.Record(ctx, event.Ref{Kind: "nonsense", ID: "x"}); err == nil {
		t.Error("reading an unknown kind is no error")
	}
	for _, columns := range [][2]string{{"doc", "email_order"}, {"verified_email", "doc"}} {
		if _, err := n.RecordsWhere(ctx, "user", "org_1", columns[0], "x", columns[1], 10); err == nil {
			t.Errorf("looking up by %s in the order of %s is no error", columns[0], columns[1])
		}
		if _, err := n.Find(ctx,
			[]event.Lookup{{Kind: "user", Column: columns[0], By: columns[1], Values: []string{"x"}}}); err == nil {
			t.Errorf("looking for the first by %s in the order of %s is no error", columns[0], columns[1])
		}
	}
	if _, err := n.Row(ctx, event.RowKey{Table: "events", Key: "x"}); err == nil {
		t.Error("reading an unknown table is no error")
	}
}

func lookup(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 5 {
		id := fmt.Sprintf("usr_%d", i)
		must(t, n, event.Command{
			Write: []event.Ref{users.Ref(id)}, Claims: []event.Claim{userName("org_1", id)},
			Decide: func(tx *event.Tx) error {
				_, err := users.Create(tx, id, "org_1",
					userAdded{Personal: person{Name: id, Email: "same@example.org"}})
				return err
			},
		})
	}
	find := func(org string, limit int) (ids []string) {
		found, err := n.RecordsWhere(t.Context(), "user", org, "verified_email", emailDigest("same@example.org"),
			"email_order", limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := fmt.Sprint(find("org_1", 3)); got != "[usr_0 usr_1 usr_2]" {
		t.Errorf("found %s", got)
	}
	if got := find("org_2", 3); got != nil {
		t.Errorf("found %s in another organization", got)
	}
	must(t, n, remove("usr_0"))
	if got := fmt.Sprint(find("org_1", 2)); got != "[usr_1 usr_2]" {
		t.Errorf("after a removal found %s", got)
	}
	for _, id := range []string{"usr_1", "usr_1", "usr_3"} {
		must(t, n, count(id))
	}
	if got := fmt.Sprint(find("org_1", 10)); got != "[usr_2 usr_4 usr_3 usr_1]" {
		t.Errorf("in the order of another column and of identifiers found %s", got)
	}
}

func firstOfAll(t *testing.T, e *env) {
	n := e.open(t)
	add := func(id, org, email string, counts int) {
		must(t, n, event.Command{
			Write:  []event.Ref{users.Ref(id)},
			Claims: []event.Claim{userName(org, id)},
			Decide: func(tx *event.Tx) error {
				_, err := users.Create(tx, id, org, userAdded{Personal: person{Name: id, Email: email}})
				return err
			},
		})
		for range counts {
			must(t, n, count(id))
		}
	}
	add("usr_1", "org_1", "a", 2)
	add("usr_2", "org_2", "a", 1)
	add("usr_3", "org_3", "b", 0)
	add("usr_4", "org_4", "b", 0)
	add("usr_5", "org_5", "c", 3)
	first := func(org string, emails ...string) event.Lookup {
		l := event.Lookup{Kind: "user", Org: org, Anywhere: org == "*", Column: "verified_email", By: "email_order"}
		for _, email := range emails {
			l.Values = append(l.Values, emailDigest(email))
		}
		return l
	}
	all := []struct {
		way  event.Lookup
		want string
	}{
		{first("*", "a"), "usr_2"},
		{first("*", "b"), "usr_3"},
		{first("*", "c", "nobody"), "usr_5"},
		{first("*", "c", "a", "b"), "usr_3"},
		{first("*", "c", "a", "a"), "usr_2"},
		{first("*", "nobody"), ""},
		{first("*"), ""},
		{first("", "a"), ""},
		{event.Lookup{Claim: userName("org_4", "usr_4")}, "usr_4"},
		{event.Lookup{Claim: userName("org_4", "usr_3")}, ""},
		{first("org_1", "a"), "usr_1"},
		{first("org_1", "b", "c"), ""},
		{first("org_\x00", "a"), ""},
		{event.Lookup{Kind: "user", Anywhere: true, Column: "verified_email", By: "email_order",
			Values: []string{"\x00"}}, ""},
		{event.Lookup{Kind: "user", Anywhere: true, Column: "type", By: "email_order", Values: []string{""}}, ""},
	}
	var together []event.Lookup
	var want []string
	for _, one := range all {
		if found, err := n.Find(t.Context(), []event.Lookup{one.way}); err != nil || len(found) != 1 ||
			found[0] != one.want {
			t.Errorf("%v: found %q, %v", one.way, found, err)
		}
		together, want = append(together, one.way), append(want, one.want)
	}
	if found, err := n.Find(t.Context(), together); err != nil || !slices.Equal(found, want) {
		t.Errorf("together: found %q, want %q, %v", found, want, err)
	}
	if found, err := n.Find(t.Context(), nil); err != nil || len(found) != 0 {
		t.Errorf("in no way: found %q, %v", found, err)
	}
}

func eventsOfOne(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, addUser("usr_2", "bob"))
	for range 4 {
		must(t, n, count("usr_1"))
		must(t, n, count("usr_2"))
	}
	for _, c := range []struct {
		id    string
		from  uint64
		limit int
		want  string
	}{
		{"usr_1", 0, 10, "[1 2 3 4 5]"},
		{"usr_1", 2, 2, "[2 3]"},
		{"usr_2", 5, 10, "[5]"},
		{"usr_2", 6, 10, "[]"},
		{"usr_2", 1 << 63, 10, "[]"},
		{"usr_", 0, 10, "[]"},
		{"usr_\x00", 0, 10, "[]"},
	} {
		events, err := n.EventsOf(t.Context(), c.id, c.from, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := []uint64{}
		for _, ev := range events {
			if got = append(got, ev.Sequence); ev.ObjectID != c.id {
				t.Errorf("%q from %d: an event of %s", c.id, c.from, ev.ObjectID)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%q from %d: %v, want %s", c.id, c.from, got, c.want)
		}
	}
}

func sequenceAndTimes(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	created := getUser(t, n, "usr_1")
	must(t, n, changeUser("usr_1", func(tx *event.Tx, u *event.Object[user]) error {
		if u.Sequence != 1 {
			return fmt.Errorf("at sequence %d before", u.Sequence)
		}
		if err := u.Append(counted{By: 1}, counted{By: 2}); err != nil {
			return err
		}
		if u.Sequence != 3 || u.Data.Count != 3 {
			return fmt.Errorf("at sequence %d, count %d after", u.Sequence, u.Data.Count)
		}
		if event.Micros(u.Changed) != tx.Now() {
			return errors.New("not changed at the time of the batch")
		}
		return nil
	}))
	u := getUser(t, n, "usr_1")
	if u.Sequence != 3 || !u.Created.Equal(created.Created) || !u.Changed.After(created.Changed) || u.Org != "org_1" {
		t.Errorf("%+v after %+v", u.Details(), created.Details())
	}
	for _, ev := range allEvents(t, n) {
		if ev.Origin != origin || ev.Org != "org_1" || ev.ObjectID != "usr_1" {
			t.Errorf("%+v", ev)
		}
	}
	verify(t, n)
}

func clockSetBack(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	before := getUser(t, n, "usr_1").Changed
	e.clock.Advance(-1e12)
	must(t, n, count("usr_1"))
	if u := getUser(t, n, "usr_1"); u.Changed.Before(before) {
		t.Errorf("changed at %v, before that at %v", u.Changed, before)
	}
	verify(t, n)
}

func follower(t *testing.T, e *env) { follow(t, e.open(t)) }

func followerOfTwo(t *testing.T, e *env) { follow(t, e.open(t), e.open(t)) }

// follow polls the first node's log while many write through all of them.
func follow(t *testing.T, nodes ...Node) {
	const writers, changes = 24, 15
	for i := range writers {
		must(t, nodes[0], addUser(fmt.Sprintf("usr_%02d", i), fmt.Sprint("name", i)))
	}
	var following sync.WaitGroup
	var problem error
	following.Go(func() {
		var position int64
		for position < writers+2*writers*changes {
			events, err := nodes[0].Events(context.Background(), position, 100)
			if err != nil {
				problem = err
				return
			}
			for _, ev := range events {
				if ev.Position != position+1 {
					problem = fmt.Errorf("position %d came after %d", ev.Position, position)
					return
				}
				position = ev.Position
			}
		}
	})
	parallel(writers, func(i int) {
		for range changes {
			c := changeUser(fmt.Sprintf("usr_%02d", i), func(_ *event.Tx, u *event.Object[user]) error {
				return u.Append(counted{By: 1}, counted{By: 1})
			})
			if err := nodes[i%len(nodes)].Do(context.Background(), c); err != nil {
				t.Error(err)
			}
		}
	})
	if t.Failed() {
		t.FailNow() // the follower waits for events that never come; the test is over anyway
	}
	following.Wait()
	if problem != nil {
		t.Fatal(problem)
	}
	verify(t, nodes[0])
}

func woken(t *testing.T, e *env) {
	n := e.open(t)
	position := func(want int64) {
		t.Helper()
		if got, err := n.Position(t.Context()); got != want || err != nil {
			t.Errorf("the log ends at %d, %v; want %d", got, err, want)
		}
	}
	position(0)
	first, second := n.Written(), n.Written()
	must(t, n, event.Command{Decide: func(tx *event.Tx) error { // beside the log
		tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Followers, Key: "test"}})
		return nil
	}})
	select {
	case <-first:
		t.Error("woken for nothing")
	default:
	}
	must(t, n, addUser("usr_1", "ada"))
	position(1)
	for _, written := range []<-chan struct{}{first, second} {
		select {
		case <-written:
		default:
			t.Error("the event is answered, but nobody is woken")
		}
	}
	select {
	case <-n.Written():
		t.Error("woken by what was there before")
	default:
	}
}

func sealed(t *testing.T, e *env) {
	n := e.open(t)
	names := []string{"Theodora Unmistakable", "Bartholomew Conspicuous"}
	must(t, n, addUser("usr_1", names[0]))
	must(t, n, addUser("usr_2", names[1]))
	must(t, n, rename("usr_1", "Theodora Renamed"))
	must(t, n, count("usr_1"))

	stored := e.dump(t, "events", "claims", "keys")
	for _, secret := range []string{"Theodora", "Bartholomew", "Unmistakable", "Conspicuous", "Renamed",
		"@example.org"} {
		if strings.Contains(stored, secret) || strings.Contains(stored, fmt.Sprintf("%x", secret)) {
			t.Errorf("%q is in the log in clear", secret)
		}
	}

	events := allEvents(t, n)
	if events[3].Sealed != nil {
		t.Error("a fact without a personal part has something sealed")
	}
	open := func(ev event.Event, keyID string) ([]byte, error) {
		row, err := n.Row(t.Context(), event.RowKey{Table: event.Keys, Key: keyID})
		if err != nil || row == nil {
			t.Fatalf("no key %s: %v", keyID, err)
		}
		key, err := n.RootKey().UnwrapDataKey(row.Value, keyID)
		if err != nil {
			t.Fatal(err)
		}
		return key.Open(ev.Sealed, binary.BigEndian.AppendUint64([]byte(ev.ObjectID), ev.Sequence))
	}
	if plain, err := open(events[0], events[0].KeyID); err != nil || !bytes.Contains(plain, []byte(names[0])) {
		t.Errorf("opened %q, %v", plain, err)
	}
	if events[0].KeyID == events[1].KeyID || events[0].KeyID != events[2].KeyID {
		t.Errorf("keys: %s, %s, %s; want one a person", events[0].KeyID, events[1].KeyID, events[2].KeyID)
	}
	if _, err := open(events[0], events[1].KeyID); err == nil {
		t.Error("the key of another person opens it")
	}
	moved := events[0]
	moved.Sequence = 2
	if _, err := open(moved, moved.KeyID); err == nil {
		t.Error("it opens in another place of the log")
	}
	verify(t, n)
}

func companion(t *testing.T, e *env) {
	n := e.open(t)
	sign := func(id, userID string, create bool) event.Command {
		return event.Command{
			Write: []event.Ref{signIns.Ref(id)}, Read: []event.Ref{users.Ref(userID)},
			Decide: func(tx *event.Tx) error {
				fact := signedIn{}
				fact.Personal.Address = "192.0.2.77"
				if create {
					_, err := signIns.CreateBeside(tx, id, users.Ref(userID), fact)
					return err
				}
				s, err := signIns.Get(tx, id)
				if err != nil {
					return err
				}
				return s.Append(fact)
			},
		}
	}
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, sign("sgi_1", "usr_1", true))
	must(t, n, sign("sgi_1", "usr_1", false))
	events := allEvents(t, n)
	if len(events) != 3 || events[1].KeyID != events[0].KeyID || events[2].KeyID != events[0].KeyID ||
		events[1].Org != "org_1" {
		t.Fatalf("%+v", events)
	}
	if s, err := signIns.Read(t.Context(), n, "sgi_1"); err != nil ||
		s.Data != (signIn{Address: "192.0.2.77", Count: 2}) {
		t.Errorf("%+v, %v", s, err)
	}
	if u := getUser(t, n, "usr_1"); u.Sequence != 1 {
		t.Errorf("the user itself moved to %d", u.Sequence)
	}
	if err := do(t, n, sign("sgi_2", "usr_none", true)); err == nil {
		t.Error("an object can stand beside nothing")
	}
	verify(t, n)
}

// foldedAsStored gives a fact that JSON does not keep as it is: an empty list is left out and reads as none.
func foldedAsStored(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, changeUser("usr_1",
		func(_ *event.Tx, u *event.Object[user]) error { return u.Append(tagged{Tags: []string{}}) }))
	verify(t, n)
	must(t, n, changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
		return u.Append(tagged{Tags: []string{"broken \xff text"}}, renamed{Personal: person{Name: "ada"}})
	}))
	verify(t, n)
}

func longValues(t *testing.T, e *env) {
	n := e.open(t)
	email := strings.Repeat("a", 1<<20-12) + "@example.org"
	must(t, n, event.Command{
		Write: []event.Ref{users.Ref("usr_1")}, Claims: []event.Claim{userName("org_1", "ada")},
		Decide: func(tx *event.Tx) error {
			_, err := users.Create(tx, "usr_1", "org_1", userAdded{Personal: person{Name: "ada", Email: email}})
			return err
		},
	})
	if u := getUser(t, n, "usr_1"); u.Data.Email != email {
		t.Errorf("an e-mail address of %d bytes came back with %d", len(email), len(u.Data.Email))
	}
	// Under NFKC this one character becomes eighteen; names are at most 200 characters before that.
	long := strings.Repeat("\uFDFA", 200)
	must(t, n, addOrg("org_1", long, long, long+"x"))
	must(t, n, rename("usr_1", long))
	if got := holder(t, n, domain(long)); got != "org_1" {
		t.Errorf("the long domain is held by %q", got)
	}
	if got := holder(t, n, userName("org_1", long)); got != "usr_1" {
		t.Errorf("the long name is held by %q", got)
	}
	verify(t, n)
}
