package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testkit"
)

var raceChecks = []check{
	{name: "no update of one object is lost among many", test: noLostUpdate},
	{name: "no update of one object is lost among many on two nodes", test: noLostUpdateOfTwo, nodes: true},
	{name: "many commands over several objects in any order never end in a deadlock", test: noDeadlock},
	{name: "many commands over several objects on two nodes never end in a deadlock",
		test: noDeadlockOfTwo, nodes: true},
	{name: "many commands that follow crossing references end after a few runs", test: crossingReferences},
	{name: "many commands that follow crossing references on two nodes end after a few runs, without a deadlock",
		test: crossingReferencesOfTwo, nodes: true},
	{name: "who changes an object that another node is changing waits and decides once",
		test: waitsForObject, nodes: true},
	{name: "who changes a row that another node is changing waits and decides once", test: waitsForRow, nodes: true},
	{name: "who decides on a token that another node is changing waits and sees what came of it",
		test: waitsForToken, nodes: true},
	{name: "what is only read is as new as the token that was waited for", test: readAsNewAsToken, nodes: true},
	{name: "who decides on an object that another node changes meanwhile decides again", test: readMoved, nodes: true},
	{name: "who decides on an absent object that another node creates meanwhile decides again",
		test: absentReadAppeared, nodes: true},
	{name: "who finds nothing to change where another node creates it meanwhile decides again",
		test: absentWriteAppeared, nodes: true},
	{name: "who goes by what its node remembers decides again where another node has changed it",
		test: rememberedMoved, nodes: true},
	{name: "who goes by what its node remembers decides again where the database was put back",
		test: rememberedPutBack, nodes: true},
	{name: "who goes by what its node remembers decides again where a newer node has folded it anew",
		test: rememberedReshaped, nodes: true},
	{name: "who has only shown an object can record something personal of it", test: rememberedToBeShown, nodes: true},
	{name: "who writes only rows on the strength of an object decides again when it moves",
		test: rowsOnMovedObject, nodes: true},
	{name: "who creates an object that another node creates meanwhile decides again",
		test: createdMeanwhile, nodes: true},
	{name: "who inserts a row that another node inserts meanwhile decides again",
		test: rowInsertedMeanwhile, nodes: true},
	{name: "a lock that somebody keeps fails the commands that need it and no others", test: keptLock, nodes: true},
	{name: "two that decide on each other's object cannot both be right", test: writeSkew, nodes: true},
}

func noLostUpdate(t *testing.T, e *env) { countAll(t, e.open(t)) }

func noLostUpdateOfTwo(t *testing.T, e *env) { countAll(t, e.open(t), e.open(t)) }

func countAll(t *testing.T, nodes ...Node) {
	must(t, nodes[0], addUser("usr_1", "ada"))
	var done atomic.Int64
	parallel(32, func(i int) {
		for range 10 {
			if err := nodes[i%len(nodes)].Do(context.Background(), count("usr_1")); err != nil {
				t.Error(err)
			} else {
				done.Add(1)
			}
		}
	})
	if u := getUser(t, nodes[0], "usr_1"); int64(u.Data.Count) != done.Load() || u.Sequence != uint64(done.Load())+1 {
		t.Errorf("%d commands succeeded, the count is %d, the sequence %d", done.Load(), u.Data.Count, u.Sequence)
	}
	verify(t, nodes[0])
}

func noDeadlock(t *testing.T, e *env) { tangle(t, e.open(t)) }

func noDeadlockOfTwo(t *testing.T, e *env) { tangle(t, e.open(t), e.open(t)) }

// tangle lets commands declare the same few objects, rows and tokens in different orders.
func tangle(t *testing.T, nodes ...Node) {
	const objects = 5
	for i := range objects {
		must(t, nodes[0], addUser(fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
		must(t, nodes[0], addOrg(fmt.Sprint("org_", i), "name"))
		must(t, nodes[0], event.Command{Decide: func(tx *event.Tx) error {
			tx.PutToken(event.Token{ID: fmt.Sprint("tok_", i), Hash: hashOf(fmt.Sprint("tok_", i)), Kind: "session"})
			return nil
		}})
	}
	var done atomic.Int64
	parallel(24, func(i int) {
		for j := range 8 {
			first, second := (i+j)%objects, (i*3+j*2+1)%objects
			c := event.Command{
				Tokens: []string{fmt.Sprint("tok_", second), fmt.Sprint("tok_", first)},
				Write: []event.Ref{users.Ref(fmt.Sprint("usr_", first)), orgs.Ref(fmt.Sprint("org_", second)),
					users.Ref(fmt.Sprint("usr_", second))},
				Rows: []event.RowKey{{Table: event.Throttle, Key: fmt.Sprint("r", second)},
					{Table: event.Throttle, Key: fmt.Sprint("r", first)},
					{Table: event.Secrets, Key: fmt.Sprint("s", first)}},
			}
			c.Decide = func(tx *event.Tx) error {
				u, err := users.Get(tx, fmt.Sprint("usr_", first))
				if err != nil {
					return err
				}
				if err := u.Append(counted{By: 1}); err != nil {
					return err
				}
				o, err := orgs.Get(tx, fmt.Sprint("org_", second))
				if err != nil {
					return err
				}
				for _, key := range c.Rows {
					tx.PutRow(event.Row{RowKey: key, Value: []byte("v")})
				}
				tx.AdvanceToken(fmt.Sprint("tok_", second), int64(j), int64(j)+1)
				tx.AdvanceToken(fmt.Sprint("tok_", first), int64(j), int64(j)+1)
				return o.Append(orgCounted{})
			}
			if err := nodes[i%len(nodes)].Do(context.Background(), c); err != nil {
				t.Error(err)
			} else {
				done.Add(1)
			}
		}
	})
	sum := 0
	for i := range objects {
		sum += getUser(t, nodes[0], fmt.Sprint("usr_", i)).Data.Count
	}
	if int64(sum) != done.Load() {
		t.Errorf("%d commands succeeded, the counts add up to %d", done.Load(), sum)
	}
	verify(t, nodes[0])
}

func crossingReferences(t *testing.T, e *env) { cross(t, e.open(t)) }

func crossingReferencesOfTwo(t *testing.T, e *env) {
	cross(t, e.open(t), e.open(t))
	db := e.sql(t)
	defer db.Close()
	var deadlocks int
	if err := db.QueryRowContext(t.Context(),
		"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil ||
		deadlocks > 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}

// cross lets commands change an object that names another one by its count, which they follow to a third one: half of
// them read those, and the others change them. What one of them follows, another one is about to change.
func cross(t *testing.T, nodes ...Node) {
	const objects, callers, each = 6, 64, 4
	for i := range objects {
		must(t, nodes[0], addUser(fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
	}
	var written, runs atomic.Int64
	parallel(callers, func(i int) {
		for j := range each {
			changesAll := (i+j)%2 == 0
			first := fmt.Sprint("usr_", (i+j)%objects)
			follow := users.Follow
			if changesAll {
				follow = users.FollowToWrite
			}
			err := event.Do(context.Background(), nodes[i%len(nodes)], event.Command{
				Write: []event.Ref{users.Ref(first)},
				Decide: func(tx *event.Tx) error {
					runs.Add(1)
					u, err := users.Get(tx, first)
					for n := 1; err == nil; n++ {
						if n == 1 || changesAll {
							err = u.Append(counted{By: 1})
						}
						if n == 3 || err != nil {
							break
						}
						u, err = follow(tx, fmt.Sprint("usr_", (i+u.Data.Count)%objects))
					}
					return err
				},
			})
			switch {
			case err != nil:
				t.Error(err)
			case changesAll:
				written.Add(3)
			default:
				written.Add(1)
			}
		}
	})
	sum := 0
	for i := range objects {
		sum += getUser(t, nodes[0], fmt.Sprint("usr_", i)).Data.Count
	}
	if int64(sum) != written.Load() {
		t.Errorf("%d changes succeeded, the counts add up to %d", written.Load(), sum)
	}
	t.Logf("%d commands took %d runs", callers*each, runs.Load())
	verify(t, nodes[0])
}

// waiting waits until somebody on the database waits for a lock.
func (e *env) waiting(t *testing.T) {
	t.Helper()
	db := e.sql(t)
	defer db.Close()
	testkit.Await(t, "somebody waits for a lock", func() bool {
		var n int
		err := db.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// oneWaits runs two commands on two nodes, the second while the first is still deciding.
func oneWaits(t *testing.T, e *env, a, b Node, p *pause, first, second event.Command) {
	t.Helper()
	done := make(chan error, 1)
	err := meanwhile(t, a, p, first, func() {
		go func() { done <- b.Do(context.Background(), second) }()
		e.waiting(t)
	})
	if err != nil {
		t.Error(err)
	}
	if err := testkit.Receive(t, done, "the second command is answered"); err != nil {
		t.Error(err)
	}
}

func waitsForObject(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_1", "ada"))
	p := newPause()
	var saw []int
	change := func(p *pause) event.Command {
		c := changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
			saw = append(saw, u.Data.Count)
			if p != nil {
				p.here()
			}
			return u.Append(counted{By: 1})
		})
		// or a node may go by what it remembers, and lock nothing
		c.Rows = []event.RowKey{{Table: event.Throttle, Key: "k"}}
		return c
	}
	oneWaits(t, e, a, b, p, change(p), change(nil))
	wantDecisions(t, saw, 0, 1)
	verify(t, a)
}

func waitsForRow(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	key := event.RowKey{Table: event.Throttle, Key: "k"}
	p := newPause()
	var saw []int
	change := func(p *pause) event.Command {
		return event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
			row, err := tx.Row(key)
			if err != nil {
				return err
			}
			n := 0
			if row != nil {
				n = len(row.Value)
			}
			saw = append(saw, n)
			if p != nil {
				p.here()
			}
			tx.PutRow(event.Row{RowKey: key, Value: make([]byte, n+1)})
			return nil
		}}
	}
	must(t, a, change(nil))
	oneWaits(t, e, a, b, p, change(p), change(nil))
	wantDecisions(t, saw, 0, 1, 2)
	if row, err := a.Row(t.Context(), key); err != nil || len(row.Value) != 3 {
		t.Errorf("%v, %v", row, err)
	}
}

func waitsForToken(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	for name, c := range map[string]struct {
		act  func(tx *event.Tx)
		want string
	}{
		"advance": {func(tx *event.Tx) { tx.AdvanceToken("tok_1", 3, 9) }, "9"},
		"update":  {func(tx *event.Tx) { tx.UpdateToken("tok_1", hashOf("new"), " data") }, "3 data"},
		"drop":    {func(tx *event.Tx) { tx.DropToken("tok_1") }, ""},
	} {
		must(t, a, tokens(func(tx *event.Tx) { tx.DropToken("tok_1"); tx.PutToken(token("tok_1")) }))
		p := newPause()
		var saw []string
		change := func(p *pause) event.Command {
			return event.Command{Tokens: []string{"tok_1"}, Decide: func(tx *event.Tx) error {
				token, err := tx.Token("tok_1")
				if err != nil {
					return err
				}
				if saw = append(saw, ""); token != nil {
					saw[len(saw)-1] = fmt.Sprint(token.Epoch, token.Data)
				}
				if p != nil {
					p.here()
					c.act(tx)
				}
				return nil
			}}
		}
		oneWaits(t, e, a, b, p, change(p), change(nil))
		if !slices.Equal(saw, []string{"3", c.want}) {
			t.Errorf("%s: they saw %q", name, saw)
		}
	}
}

// readAsNewAsToken has a command that changes a user and a token together. Who refuses because the two do not go
// together would be wrong, and a refusal is not checked once more before it is answered.
func readAsNewAsToken(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_1", "ada"))
	must(t, a, tokens(func(tx *event.Tx) { tx.PutToken(token("tok_1")) }))
	p := newPause()
	first := changeUser("usr_1", func(tx *event.Tx, u *event.Object[user]) error {
		if _, err := tx.Token("tok_1"); err != nil {
			return err
		}
		p.here()
		tx.AdvanceToken("tok_1", 3, 4)
		return u.Append(counted{By: 1})
	})
	first.Tokens = []string{"tok_1"}
	second := event.Command{
		Read:   []event.Ref{users.Ref("usr_1")},
		Tokens: []string{"tok_1"},
		Decide: func(tx *event.Tx) error {
			u, err := users.Get(tx, "usr_1")
			if err != nil {
				return err
			}
			token, err := tx.Token("tok_1")
			if err != nil {
				return err
			}
			if u.Data.Count != 1 || token.Epoch != 4 {
				return fmt.Errorf("it sees the user at %d and the token at %d", u.Data.Count, token.Epoch)
			}
			return nil
		},
	}
	oneWaits(t, e, a, b, p, first, second)
}

// decideOn makes a command that notes how far the object it reads has come, waits at the pause, and then changes
// another object with what it knew.
func decideOn(p *pause, saw *[]int, read, write string) event.Command {
	return event.Command{
		Write: []event.Ref{users.Ref(write)}, Read: []event.Ref{users.Ref(read)},
		Decide: func(tx *event.Tx) error {
			known := -1
			r, err := users.Get(tx, read)
			if err != nil {
				return err
			}
			if r != nil {
				known = r.Data.Count
			}
			*saw = append(*saw, known)
			p.here()
			w, err := users.Get(tx, write)
			if err != nil {
				return err
			}
			return w.Append(counted{By: known})
		},
	}
}

func wantDecisions(t *testing.T, saw []int, want ...int) {
	t.Helper()
	if !slices.Equal(saw, want) {
		t.Errorf("it decided on %v, want %v", saw, want)
	}
}

func readMoved(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_r", "read"))
	must(t, a, addUser("usr_w", "written"))
	p, saw := newPause(), []int(nil)
	if err := meanwhile(t, a, p, decideOn(p, &saw, "usr_r", "usr_w"),
		func() { must(t, b, count("usr_r")) }); err != nil {
		t.Fatal(err)
	}
	wantDecisions(t, saw, 0, 1)
	if u := getUser(t, b, "usr_w"); u.Data.Count != 1 || u.Sequence != 2 {
		t.Errorf("count %d at %d", u.Data.Count, u.Sequence)
	}
	// Nothing moves: no second decision.
	p, saw = newPause(), nil
	if err := meanwhile(t, a, p, decideOn(p, &saw, "usr_r", "usr_w"), func() {}); err != nil {
		t.Fatal(err)
	}
	wantDecisions(t, saw, 1)
	verify(t, a)
}

func absentReadAppeared(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_w", "written"))
	p, saw := newPause(), []int(nil)
	if err := meanwhile(t, a, p, decideOn(p, &saw, "usr_r", "usr_w"),
		func() { must(t, b, addUser("usr_r", "read")) }); err != nil {
		t.Fatal(err)
	}
	wantDecisions(t, saw, -1, 0)
	verify(t, a)
}

func absentWriteAppeared(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_w", "written"))
	p, saw := newPause(), []int(nil)
	c := decideOn(p, &saw, "usr_r", "usr_w")
	c.Write, c.Read = append(c.Write, c.Read...), nil
	if err := meanwhile(t, a, p, c, func() { must(t, b, addUser("usr_r", "read")) }); err != nil {
		t.Fatal(err)
	}
	wantDecisions(t, saw, -1, 0)
	verify(t, a)
}

var errNotNow = errors.New("not at this count")

// What a command does with an object whose count it has seen.
var answersToACount = map[string]func(u *event.Object[user]) error{
	"changes it":   func(u *event.Object[user]) error { return u.Append(counted{By: 1}) },
	"refuses":      func(*event.Object[user]) error { return errNotNow },
	"does nothing": func(*event.Object[user]) error { return nil },
}

// rememberedMoved has a node commit, so that it goes by what it remembers for a moment, while another node changes that.
func rememberedMoved(t *testing.T, e *env) {
	other := e.open(t)
	must(t, other, addUser("usr_r", "read"))
	must(t, other, addUser("usr_w", "written"))
	for name, answer := range answersToACount {
		for _, answered := range []string{"usr_r", "usr_w"} { // the object that moves, or one that does not
			n := e.open(t) // one that has just lost a race asks
			must(t, n, count("usr_w"))
			must(t, n, count("usr_r"))
			must(t, other, count("usr_r"))
			want := getUser(t, other, "usr_r").Data.Count
			var saw []int
			c := event.Command{
				Write: []event.Ref{users.Ref("usr_r"), users.Ref("usr_w")},
				Decide: func(tx *event.Tx) error {
					u, err := users.Get(tx, "usr_r")
					if err != nil {
						return err
					}
					saw = append(saw, u.Data.Count)
					if u, err = users.Get(tx, answered); err != nil {
						return err
					}
					return answer(u)
				},
			}
			if answered == "usr_w" {
				c.Read, c.Write = c.Write[:1], c.Write[1:]
			}
			if err := do(t, n, c); err != nil && !errors.Is(err, errNotNow) {
				t.Fatal(err)
			}
			if last := saw[len(saw)-1]; last != want {
				t.Errorf("who %s (%s) decided on %v, and the count is %d", name, answered, saw, want)
			}
		}
	}
	verify(t, other)
}

// rememberedPutBack gives an object another history at the same sequence, as a database does that was put back.
func rememberedPutBack(t *testing.T, e *env) {
	must(t, e.open(t), addUser("usr_1", "ada"))
	for name, answer := range answersToACount {
		n := e.open(t)
		must(t, n, count("usr_1"))
		was := getUser(t, n, "usr_1").Data.Count
		e.tamper(t, fmt.Sprintf(`UPDATE users SET doc = replace(doc, '"count":%d', '"count":%d'), hash = sha256(hash) WHERE id = 'usr_1'`, was, was+100))
		var saw []int
		err := do(t, n, changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
			saw = append(saw, u.Data.Count)
			return answer(u)
		}))
		if err != nil && !errors.Is(err, errNotNow) {
			t.Fatal(err)
		}
		if last := saw[len(saw)-1]; last != was+100 {
			t.Errorf("who %s decided on %v, and the count is %d", name, saw, was+100)
		}
	}
}

// rememberedReshaped has a newer node fold an object into its own shape, which this node does not know.
func rememberedReshaped(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, count("usr_1"))
	e.tamper(t, "UPDATE users SET shape = 100")
	if refused, is := errors.AsType[*errs.Error](do(t, n, count("usr_1"))); !is ||
		refused.Reason != event.NodeOutdated {
		t.Errorf("%v", refused)
	}
}

// rememberedToBeShown: what is read to be shown comes without the key of what is personal. A node that goes by what it
// remembers has to ask for it.
func rememberedToBeShown(t *testing.T, e *env) {
	other := e.open(t)
	must(t, other, addUser("usr_1", "ada"))
	must(t, other, addUser("usr_2", "bea"))
	n := e.open(t)
	must(t, n, count("usr_2")) // from now on it goes by what it remembers
	for name, shown := range map[string]func(){
		"read": func() { getUser(t, n, "usr_1") },
		"listed": func() {
			_, err := n.List(t.Context(), event.Query{Kind: "user", Org: "org_1", Limit: 10})
			testkit.Must(t, err)
		},
		"changed without anything personal after it was read": func() {
			getUser(t, n, "usr_1")
			must(t, n, count("usr_1"))
		},
	} {
		must(t, other, count("usr_1"))
		shown()
		for range 2 {
			err := do(t, n, changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
				return u.Append(renamed{Personal: person{Name: "ada"}})
			}))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	verify(t, n)
}

func rowsOnMovedObject(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	must(t, a, addUser("usr_r", "read"))
	p, saw := newPause(), []int(nil)
	c := event.Command{Read: []event.Ref{users.Ref("usr_r")}, Decide: func(tx *event.Tx) error {
		u, err := users.Get(tx, "usr_r")
		if err != nil {
			return err
		}
		saw = append(saw, u.Data.Count)
		p.here()
		tx.PutToken(event.Token{ID: "tok_1", Hash: hashOf("tok_1"), UserID: "usr_r", Epoch: int64(u.Data.Count)})
		return nil
	}}
	if err := meanwhile(t, a, p, c, func() { must(t, b, count("usr_r")) }); err != nil {
		t.Fatal(err)
	}
	wantDecisions(t, saw, 0, 1)
	if tok, err := b.TokenByID(t.Context(), "tok_1"); err != nil || tok.Epoch != 1 {
		t.Errorf("%+v, %v", tok, err)
	}
	verify(t, a)
}

func createdMeanwhile(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	p, runs := newPause(), 0
	c := addUser("usr_1", "ada")
	decide := c.Decide
	c.Decide = func(tx *event.Tx) error {
		runs++
		p.here()
		if u, err := users.Get(tx, "usr_1"); u != nil || err != nil {
			return errors.Join(errRefused, err)
		}
		return decide(tx)
	}
	err := meanwhile(t, a, p, c, func() { must(t, b, addUser("usr_1", "bob")) })
	if !errors.Is(err, errRefused) || runs != 2 {
		t.Errorf("after %d decisions: %v", runs, err)
	}
	if u := getUser(t, a, "usr_1"); u.Data.Name != "bob" {
		t.Errorf("%+v", u.Data)
	}
	verify(t, a)
}

func rowInsertedMeanwhile(t *testing.T, e *env) {
	a, b := e.open(t), e.open(t)
	key := event.RowKey{Table: event.Idempotency, Key: "k"}
	once := func(p *pause, answer string, got *[]string) event.Command {
		return event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
			row, err := tx.Row(key)
			if err != nil {
				return err
			}
			if row != nil {
				*got = append(*got, string(row.Value))
				return nil
			}
			*got = append(*got, "")
			p.here()
			tx.PutRow(event.Row{RowKey: key, Value: []byte(answer)})
			return nil
		}}
	}
	var gotA, gotB []string
	p, none := newPause(), newPause()
	close(none.resume)
	err := meanwhile(t, a, p, once(p, "a", &gotA), func() { must(t, b, once(none, "b", &gotB)) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gotA, []string{"", "b"}) || !slices.Equal(gotB, []string{""}) {
		t.Errorf("a found %q, b found %q", gotA, gotB)
	}
	verify(t, a)
}

// writeSkew has two nodes each read what the other writes, many times. One of the two must have seen the other.
func writeSkew(t *testing.T, e *env) {
	nodes := []Node{e.open(t), e.open(t)}
	for round := range 20 {
		ids := []string{fmt.Sprintf("usr_%d_a", round), fmt.Sprintf("usr_%d_b", round)}
		for _, id := range ids {
			must(t, nodes[0], addUser(id, id))
		}
		// Each leaves only if the other is still there: the last one has to stay.
		parallel(2, func(i int) {
			c := event.Command{
				Write: []event.Ref{users.Ref(ids[i])}, Read: []event.Ref{users.Ref(ids[1-i])},
				Decide: func(tx *event.Tx) error {
					other, err := users.Get(tx, ids[1-i])
					if err != nil {
						return err
					}
					if other.Data.Removed {
						return errRefused
					}
					own, err := users.Get(tx, ids[i])
					if err != nil {
						return err
					}
					return own.Append(removed{})
				},
			}
			if err := nodes[i].Do(context.Background(), c); err != nil && !errors.Is(err, errRefused) &&
				errs.KindOf(err) != errs.Aborted {
				t.Error(err)
			}
		})
		if getUser(t, nodes[0], ids[0]).Data.Removed && getUser(t, nodes[0], ids[1]).Data.Removed {
			t.Fatal("both left, each on the strength of the other")
		}
	}
	verify(t, nodes[0])
}

// keptLock has somebody lock a user and do nothing more, as a node does that was stopped in the middle.
func keptLock(t *testing.T, e *env) {
	e.address = e.db.URL
	n := e.open(t)
	const others = 9
	commands := []event.Command{count("usr_0")}
	must(t, n, addUser("usr_0", "name0"))
	for i := range others {
		id := fmt.Sprint("usr_", i+1)
		must(t, n, addUser(id, fmt.Sprint("name", i+1)))
		commands = append(commands, count(id))
	}
	stopped, err := e.sql(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Rollback()
	if _, err := stopped.ExecContext(t.Context(),
		"SELECT id FROM users WHERE id = 'usr_0' FOR NO KEY UPDATE"); err != nil {
		t.Fatal(err)
	}
	for i, err := range Together(t, n, commands...) {
		if i == 0 {
			wantKind(t, err, errs.Aborted)
		} else if err != nil {
			t.Errorf("usr_%d: %v", i, err)
		}
	}
	wantKind(t, do(t, n, count("usr_0")), errs.Aborted) // also without company
	if err := stopped.Rollback(); err != nil {
		t.Fatal(err)
	}
	must(t, n, count("usr_0"))
	for i := range others + 1 {
		if u := getUser(t, n, fmt.Sprint("usr_", i)); u.Data.Count != 1 {
			t.Errorf("%s was counted %d times", u.ID, u.Data.Count)
		}
	}
	verify(t, n)
}
