package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

var claimChecks = []check{
	{name: "of many who want one name exactly one gets it", test: oneWinner},
	{name: "of many on two nodes who want one name exactly one gets it", test: oneWinnerOfTwo, nodes: true},
	{name: "a name lost to another node while deciding is refused", test: nameLostMeanwhile, nodes: true},
	{name: "a released name is free again", test: releasedName},
	{name: "who has looked for a name sees who has it next", test: nameAfterName},
	{name: "objects can exchange names in one command", test: exchangedNames},
	{name: "a name goes back and forth within a batch", test: backAndForth},
	{name: "an object keeps a name it holds without declaring it", test: keptName},
	{name: "a command cannot give one name to two objects", test: twiceInOneCommand},
}

// nameAfterName looks at each moment twice: what a node remembers of the first time must not outlive it.
func nameAfterName(t *testing.T, e *env) {
	n := e.open(t)
	holds := func(want string) {
		t.Helper()
		for range 2 {
			found, err := n.Find(t.Context(),
				[]event.Lookup{{Claim: userName("org_1", "other")}, {Claim: userName("org_1", "ada")}})
			if err != nil || found[0] != "" || found[1] != want {
				t.Errorf("found %q, want %q, %v", found, want, err)
			}
			if got := holder(t, n, userName("org_1", "ada")); got != want {
				t.Errorf("held by %q, not %q", got, want)
			}
		}
	}
	holds("")
	must(t, n, addUser("usr_a", "ada"))
	holds("usr_a")
	must(t, n, rename("usr_a", "eve"))
	holds("")
	must(t, n, addUser("usr_b", "ada"))
	holds("usr_b")
	must(t, n, remove("usr_b"))
	holds("")
}

func oneWinner(t *testing.T, e *env) { raceForName(t, e.open(t)) }

func oneWinnerOfTwo(t *testing.T, e *env) { raceForName(t, e.open(t), e.open(t)) }

func raceForName(t *testing.T, nodes ...Node) {
	for round := range 3 {
		name := fmt.Sprint("wanted", round)
		var won atomic.Pointer[string]
		var wins atomic.Int32
		parallel(64, func(i int) {
			id := fmt.Sprintf("usr_%d_%02d", round, i)
			err := nodes[i%len(nodes)].Do(context.Background(), addUser(id, name))
			switch {
			case err == nil:
				wins.Add(1)
				won.Store(&id)
			case errs.KindOf(err) != errs.AlreadyExists:
				t.Error(err)
			}
		})
		if wins.Load() != 1 {
			t.Fatalf("%d of them got the name", wins.Load())
		}
		if got := holder(t, nodes[0], userName("org_1", name)); got != *won.Load() {
			t.Errorf("%s got the name, %s holds it", *won.Load(), got)
		}
	}
	verify(t, nodes[0])
}

func nameLostMeanwhile(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	p := newPause()
	c := addUser("usr_a", "ada")
	decide, runs := c.Decide, 0
	c.Decide = func(tx *event.Tx) error {
		runs++
		p.here()
		return decide(tx)
	}
	wantKind(t, meanwhile(t, a, p, c, func() { must(t, b, addUser("usr_b", "ada")) }), errs.AlreadyExists)
	if runs != 2 {
		t.Errorf("it decided %d times, want twice", runs)
	}
	if got := holder(t, a, userName("org_1", "ada")); got != "usr_b" {
		t.Errorf("held by %q", got)
	}
	if r, err := a.Record(t.Context(), users.Ref("usr_a")); r != nil || err != nil {
		t.Errorf("the loser is there: %v, %v", r, err)
	}
	verify(t, a)
}

func releasedName(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	wantKind(t, do(t, n, addUser("usr_2", "ada")), errs.AlreadyExists)
	must(t, n, remove("usr_1")) // does not say which name it gives up
	if got := holder(t, n, userName("org_1", "ada")); got != "" {
		t.Fatalf("a removed user still holds its name: %q", got)
	}
	must(t, n, addUser("usr_2", "ada"))
	must(t, n, rename("usr_2", "grace"))
	must(t, n, addUser("usr_3", "ada"))
	must(t, n, addOrg("org_1", "first", "a.example", "b.example"))
	must(t, n, setDomains(map[string][]string{"org_1": {"b.example", "c.example"}}))
	for name, want := range map[string]string{"a.example": "", "b.example": "org_1", "c.example": "org_1"} {
		if got := holder(t, n, domain(name)); got != want {
			t.Errorf("%s is held by %q, want %q", name, got, want)
		}
	}
	verify(t, n)
}

func exchangedNames(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first", "a.example", "x.example"))
	must(t, n, addOrg("org_2", "second", "b.example"))
	wantKind(t, do(t, n, setDomains(map[string][]string{"org_1": {"b.example"}})), errs.AlreadyExists)
	must(t, n, setDomains(map[string][]string{"org_1": {"b.example", "x.example"}, "org_2": {"a.example"}}))
	must(t, n, setDomains(map[string][]string{"org_1": {"a.example"}, "org_2": {"x.example", "b.example"}}))
	for name, want := range map[string]string{"a.example": "org_1", "b.example": "org_2", "x.example": "org_2"} {
		if got := holder(t, n, domain(name)); got != want {
			t.Errorf("%s is held by %q, want %q", name, got, want)
		}
	}
	verify(t, n)
}

func backAndForth(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first", "a.example"))
	must(t, n, addOrg("org_2", "second"))
	give := func(to, from string) event.Command {
		return setDomains(map[string][]string{to: {"a.example"}, from: nil})
	}
	drop := setDomains(map[string][]string{"org_1": nil})
	take := setDomains(map[string][]string{"org_1": {"a.example"}})
	for i, err := range Together(t, n, give("org_2", "org_1"), give("org_1", "org_2"), drop, take, drop, take) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if got := holder(t, n, domain("a.example")); got != "org_1" {
		t.Errorf("held by %q", got)
	}
	for i, err := range Together(t, n, drop, take, drop) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if got := holder(t, n, domain("a.example")); got != "" {
		t.Errorf("held by %q", got)
	}
	verify(t, n)
}

func keptName(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first", "a.example"))
	must(t, n, countOrg("org_1"))
	c := setDomains(map[string][]string{"org_1": {"a.example"}})
	c.Claims = nil
	must(t, n, c)
	if got := holder(t, n, domain("a.example")); got != "org_1" {
		t.Errorf("held by %q", got)
	}
	verify(t, n)
}

func twiceInOneCommand(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addOrg("org_2", "second"))
	wantKind(t, do(t, n, setDomains(map[string][]string{"org_1": {"a.example"}, "org_2": {"a.example"}})),
		errs.AlreadyExists)
	if got := holder(t, n, domain("a.example")); got != "" {
		t.Errorf("held by %q", got)
	}
	verify(t, n)
}
