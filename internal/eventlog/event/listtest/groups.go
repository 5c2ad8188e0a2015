package listtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/storetest"
)

var groupChecks = []check{
	{name: "objects join and leave groups with their state", test: groupLife},
	{name: "the last command of a batch decides who is in a group", test: groupBatch},
	{name: "a group is listed in pages, whatever the organization", test: groupPages},
	{name: "nodes see each other's groups", test: groupNodes, nodes: true},
	{name: "a user's tokens are listed by kind while they count", test: tokenLists},
}

func wantGroup(t *testing.T, n storetest.Node, tag string, want ...string) {
	t.Helper()
	wantList(t, n, event.Query{Kind: "user", Group: tag}, want...)
}

func groupLife(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, addUser("usr_2", "bob"))
	wantGroup(t, n, "red")
	must(t, n, tag("usr_1", "red", "blue"))
	must(t, n, tag("usr_2", "red"))
	wantGroup(t, n, "red", "usr_1", "usr_2")
	wantGroup(t, n, "blue", "usr_1")
	must(t, n, tag("usr_1", "blue", "green"))
	wantGroup(t, n, "red", "usr_2")
	wantGroup(t, n, "blue", "usr_1")
	wantGroup(t, n, "green", "usr_1")
	must(t, n, count("usr_1")) // what does not touch them leaves them
	wantGroup(t, n, "blue", "usr_1")
	// Within one command, what counts is how it ends.
	must(t, n, change("usr_1", tagging("red"), tagging(), tagging("blue", "yellow")))
	wantGroup(t, n, "red", "usr_2")
	wantGroup(t, n, "blue", "usr_1")
	wantGroup(t, n, "yellow", "usr_1")
	wantGroup(t, n, "green")
	// A refusal changes nothing.
	refused := tag("usr_1", "red")
	decide := refused.Decide
	refused.Decide = func(tx *event.Tx) error { return errors.Join(decide(tx), errors.New("no")) }
	if err := n.Do(t.Context(), refused); err == nil {
		t.Error("it was not refused")
	}
	wantGroup(t, n, "red", "usr_2")
	wantGroup(t, n, "blue", "usr_1")
	must(t, n, remove("usr_1"))
	wantGroup(t, n, "blue")
	wantGroup(t, n, "yellow")
	// An object can be made with groups.
	must(t, n, add("org_1", map[string]thing{"usr_3": {Tags: []string{"red"}}}))
	wantGroup(t, n, "red", "usr_2", "usr_3")
	verify(t, n)
}

func groupBatch(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 4 {
		must(t, n, addUser(fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
	}
	must(t, n, tag("usr_1", "red"))
	must(t, n, tag("usr_2", "red"))
	for i, err := range storetest.Together(t, n,
		tag("usr_0", "red"), tag("usr_0"), // joins and leaves
		tag("usr_1"), tag("usr_1", "red"), // leaves and joins again
		tag("usr_2", "blue"), tag("usr_2", "green"),
		tag("usr_3", "red"), tag("usr_3", "red"), count("usr_3"),
	) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	wantGroup(t, n, "red", "usr_1", "usr_3")
	wantGroup(t, n, "blue")
	wantGroup(t, n, "green", "usr_2")
	verify(t, n)
	if err := n.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantGroup(t, n, "red", "usr_1", "usr_3")
	wantGroup(t, n, "blue")
	wantGroup(t, n, "green", "usr_2")
}

func groupPages(t *testing.T, e *env) {
	n := e.open(t)
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("usr_%02d", i)
		must(t, n, addUserTo(fmt.Sprint("org_", i%2), id, fmt.Sprint("name", 30-i)))
		if i%5 != 0 {
			must(t, n, tag(id, "red"))
			want = append(want, id)
		} else {
			must(t, n, tag(id, "redder"))
		}
	}
	wantGroup(t, n, "red", want...)
	wantGroup(t, n, "redd")
	// Those who join and leave meanwhile move nobody else.
	q := event.Query{Kind: "user", Group: "red", Limit: 5}
	var got []string
	for page := 0; ; page++ {
		p, err := n.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ids(p.Records)...)
		if p.Next == nil {
			break
		}
		q.After = *p.Next
		if page == 1 {
			must(t, n, tag("usr_00", "red"))
			must(t, n, tag(got[0]))
			must(t, n, tag("usr_20", "red"))
		}
	}
	if with := slices.Sorted(slices.Values(append(want, "usr_20"))); !slices.Equal(got, with) {
		t.Errorf("got %q, want %q", got, with)
	}
}

func groupNodes(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_1", "ada"))
	must(t, a, tag("usr_1", "red"))
	wantGroup(t, b, "red", "usr_1")
	must(t, b, tag("usr_1", "blue"))
	wantGroup(t, a, "red")
	wantGroup(t, a, "blue", "usr_1")
	// Both change groups of one object at once: they end as its state says.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 5 {
				if err := []storetest.Node{a, b}[i%2].Do(t.Context(),
					tag("usr_1", fmt.Sprint("t", (i+j)%3), fmt.Sprint("u", j%2))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	verify(t, a)
}

func tokenLists(t *testing.T, e *env) {
	n := e.open(t)
	put := func(id, kind, userID string, life time.Duration) {
		t.Helper()
		hash := sha256.Sum256([]byte(id))
		must(t, n, event.Command{Decide: func(tx *event.Tx) error {
			tx.PutToken(event.Token{
				ID:       id,
				Hash:     hash[:],
				Kind:     kind,
				Name:     "for " + id,
				UserID:   userID,
				Epoch:    1,
				OrgEpoch: 2,
				Created:  tx.Now(),
				Expires:  tx.Now() + life.Microseconds(),
			})
			return nil
		}})
	}
	for _, id := range []string{"pat_3", "pat_1", "pat_5", "pat_2"} {
		put(id, "pat", "usr_1", time.Hour)
	}
	put("pat_4", "pat", "usr_1", time.Minute)
	put("ses_1", "ses", "usr_1", time.Hour)
	put("pat_9", "pat", "usr_2", time.Hour)
	list := func(userID, kind, after string, limit int) (found []string) {
		t.Helper()
		tokens, err := n.TokensOf(t.Context(), userID, kind, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			found = append(found, token.ID)
			hash := sha256.Sum256([]byte(token.ID))
			if token.Name != "for "+token.ID || token.UserID != userID || token.Kind != kind || token.Epoch != 1 ||
				token.OrgEpoch != 2 || string(token.Hash) != string(hash[:]) {
				t.Errorf("%+v", token)
			}
			single, err := n.TokenByID(t.Context(), token.ID)
			if err != nil || single == nil || single.Name != token.Name {
				t.Errorf("%+v, %v", single, err)
			}
		}
		return found
	}
	want := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want(list("usr_1", "pat", "", 10), "pat_1", "pat_2", "pat_3", "pat_4", "pat_5")
	want(list("usr_1", "pat", "", 2), "pat_1", "pat_2")
	want(list("usr_1", "pat", "pat_2", 2), "pat_3", "pat_4")
	want(list("usr_1", "pat", "pat_5", 2))
	want(list("usr_1", "ses", "", 10), "ses_1")
	want(list("usr_2", "pat", "", 10), "pat_9")
	want(list("usr_3", "pat", "", 10))
	want(list("usr_1", "", "", 10))
	must(t, n, event.Command{Decide: func(tx *event.Tx) error {
		tx.DropToken("pat_3")
		return nil
	}})
	e.clock.Advance(2 * time.Minute) // over is over, whether or not somebody has swept it away
	want(list("usr_1", "pat", "", 10), "pat_1", "pat_2", "pat_5")
}
