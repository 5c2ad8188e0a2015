package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testkit"
)

var rebuildChecks = []check{
	{name: "a rebuild gives the same bytes after any work", test: rebuildAfterWork},
	{name: "damage to the state is found and repaired", test: damage},
	{name: "a broken history is found", test: brokenHistory},
	{name: "a check goes on behind a history that cannot be folded", test: checkGoesOn},
	{name: "a check misses events that are gone without a trace", test: lostEvents},
	{name: "the state survives the destruction of a person's key", test: destroyedKey},
	{name: "a raised shape folds the stored objects anew", test: raisedShape},
	{name: "a raised shape does not lose what another node is writing", test: raisedShapeBeside, nodes: true},
	{name: "nodes that raise a shape at once do not disturb each other", test: raisedShapeTogether, nodes: true},
}

// work does all sorts of things at random, from several goroutines.
func work(t *testing.T, n Node) {
	t.Helper()
	const workers, steps = 8, 30
	parallel(workers, func(w int) {
		random := rand.New(rand.NewPCG(uint64(w), 42))
		for step := range steps {
			id := fmt.Sprint("usr_", random.IntN(12))
			name := fmt.Sprint("name", random.IntN(15))
			var c event.Command
			switch random.IntN(9) {
			case 0, 1:
				c = addUser(id, name)
			case 2:
				c = count(id)
			case 3:
				c = rename(id, name)
			case 4:
				c = remove(id)
			case 5:
				c = addOrg(fmt.Sprint("org_", random.IntN(8)), name, name+".example")
			case 6:
				c = setDomains(map[string][]string{fmt.Sprint("org_", random.IntN(8)): {name + ".example",
					name + ".test"}})
			case 7:
				c = tag(id, fmt.Sprint("t", random.IntN(3)), fmt.Sprint("u", random.IntN(3)))
			case 8:
				sign := fmt.Sprintf("sgi_%d_%d", w, step)
				c = event.Command{
					Write: []event.Ref{signIns.Ref(sign)},
					Read:  []event.Ref{users.Ref(id)},
					Decide: func(tx *event.Tx) error {
						fact := signedIn{}
						fact.Personal.Address = "2001:db8::1"
						_, err := signIns.CreateBeside(tx, sign, users.Ref(id), fact)
						return err
					},
				}
			}
			// Much of it refuses: taken names, objects that are there already or are not. That is part of the work.
			if err := n.Do(context.Background(), c); err != nil &&
				(errs.KindOf(err) == errs.Unavailable || errs.KindOf(err) == errs.Aborted) {
				t.Error(err)
			}
		}
	})
	// Whatever chance did, these are there.
	must(t, n, addUser("usr_a", "fixed a"))
	must(t, n, addUser("usr_b", "fixed b"))
	must(t, n, addOrg("org_a", "fixed", "fixed.example"))
	must(t, n, tag("usr_a", "red", "blue"))
	must(t, n, tag("usr_b", "red"))
}

func rebuildAfterWork(t *testing.T, e *env) {
	n := e.open(t)
	work(t, n)
	verify(t, n)
	before := e.dumpState(t)
	if err := n.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := e.dumpState(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	must(t, n, count("usr_a"))
	verify(t, n)
}

func damage(t *testing.T, e *env) {
	n := e.open(t)
	work(t, n)
	before := e.dumpState(t)
	digest := "decode('00', 'hex')"
	if e.db.Engine == "sqlite" {
		digest = "x'00'"
	}
	for _, d := range []struct{ name, statement string }{
		{"a changed document", `UPDATE users SET doc = '{"name":"mallory"}' WHERE id = 'usr_a'`},
		{"a changed column", `UPDATE users SET verified_email = 'x' WHERE id = 'usr_a'`},
		{"a changed sequence", `UPDATE orgs SET sequence = sequence + 1 WHERE id = 'org_a'`},
		{"a changed owner", `UPDATE users SET org_id = 'org_x' WHERE id = 'usr_b'`},
		{"a missing state", `DELETE FROM users WHERE id = 'usr_a'`},
		{"an extra state", `INSERT INTO orgs (id, org_id, sequence, created, changed, hash, key_id, shape, doc, standing)
			SELECT 'org_extra', org_id, sequence, created, changed, hash, key_id, shape, doc, standing FROM orgs WHERE id = 'org_a'`},
		{"a claim of somebody else", `UPDATE claims SET object_id = 'usr_b' WHERE object_id = 'usr_a'`},
		{"another claim", `UPDATE claims SET digest = ` + digest + ` WHERE object_id = 'org_a'`},
		{"a missing claim", `DELETE FROM claims WHERE object_id = 'usr_a'`},
		{"an extra claim", `INSERT INTO claims (digest, object_id) VALUES (` + digest + `, 'nobody')`},
		{"another column to list by", `UPDATE users SET user_name = 'x' WHERE id = 'usr_a'`},
		{"a missing group", `DELETE FROM groupings WHERE object_id = 'usr_a' AND name = 'red'`},
		{"an extra group", `INSERT INTO groupings (name, object_id) VALUES ('green', 'usr_a')`},
		{"a group of somebody else",
			`UPDATE groupings SET object_id = 'usr_b' WHERE object_id = 'usr_a' AND name = 'blue'`},
		{"a group of nobody", `INSERT INTO groupings (name, object_id) VALUES ('red', 'nobody')`},
		{"no groups at all", `DELETE FROM groupings`},
		{"a missing term", `DELETE FROM word_blocks WHERE term = 'fixed'`},
		{"an extra term", `INSERT INTO word_blocks (org, term, block, m0, m1, m2, m3) VALUES (0, 'extra', 0, 2, 0, 0, 0)`},
		{"a term without anybody",
			`INSERT INTO word_blocks (org, term, block, m0, m1, m2, m3) VALUES (0, 'extra', 0, 0, 0, 0, 0)`},
		{"a term in another organization", `UPDATE word_blocks SET org = 7 WHERE org <> 0`},
		{"a term of somebody else", `UPDATE word_blocks SET m0 = m1, m1 = m2, m2 = m3, m3 = m0`},
		{"no terms at all", `DELETE FROM word_blocks`},
		{"no state at all", `DELETE FROM users`},
	} {
		t.Run(d.name, func(t *testing.T) {
			e.tamper(t, d.statement)
			differences, err := n.RebuildCheck(t.Context())
			if err != nil || len(differences) == 0 {
				t.Errorf("not found: %q, %v", differences, err)
			}
			if err := n.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after := e.dumpState(t); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
	verify(t, n)
}

func brokenHistory(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, count("usr_1"))
	must(t, n, count("usr_1"))
	before := e.dumpState(t)
	for _, d := range []struct{ name, damage, undo string }{
		{"in the middle", `UPDATE events SET payload = '{"by":7}' WHERE sequence = 2`,
			`UPDATE events SET payload = '{"by":1}' WHERE sequence = 2`},
		{"at the end", `UPDATE events SET actor = 'mallory' WHERE sequence = 3`,
			`UPDATE events SET actor = 'system' WHERE sequence = 3`},
		{"by a gap", `UPDATE events SET sequence = 4 WHERE sequence = 3`,
			`UPDATE events SET sequence = 3 WHERE sequence = 4`},
	} {
		t.Run(d.name, func(t *testing.T) {
			e.tamper(t, d.damage)
			if differences, err := n.RebuildCheck(t.Context()); err == nil && len(differences) == 0 {
				t.Error("not found")
			}
			e.tamper(t, d.undo)
			verify(t, n)
		})
	}
	// A rebuild over a broken history changes nothing.
	e.tamper(t, `UPDATE events SET payload = '{"by":7}' WHERE sequence = 2`)
	if err := n.Rebuild(t.Context()); err == nil {
		t.Error("it rebuilds a broken history")
	}
	if e.dumpState(t) != before {
		t.Error("a failed rebuild has changed the state")
	}
}

func checkGoesOn(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 6 {
		must(t, n, addUser(fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
		must(t, n, count(fmt.Sprint("usr_", i)))
		must(t, n, count(fmt.Sprint("usr_", i)))
	}
	for _, damage := range []string{
		// the chain breaks behind it
		`UPDATE events SET payload = '{"by":7}' WHERE sequence = 2 AND object_id = 'usr_0'`,
		`UPDATE events SET type = 'user.abducted.v1' WHERE sequence = 3 AND object_id = 'usr_1'`, // an unknown fact
		`UPDATE events SET type = 'alien.landed.v1' WHERE sequence = 1 AND object_id = 'usr_2'`,  // an unknown kind
		`UPDATE events SET payload = 'no JSON' WHERE sequence = 3 AND object_id = 'usr_3'`,
		`UPDATE users SET doc = '{}' WHERE id = 'usr_5'`,
	} {
		e.tamper(t, damage)
	}
	differences, err := n.RebuildCheck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 2, 3, 5} {
		found := 0
		for _, d := range differences {
			if strings.HasPrefix(d, fmt.Sprintf("usr_%d: ", i)) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("usr_%d is named %d times", i, found)
		}
	}
	// Nothing else follows: the states and claims of these are not counted as superfluous. (But for the state of usr_2,
	// whose history names another kind.)
	if len(differences) != 6 || !strings.HasPrefix(differences[5], "users: 1 ") {
		t.Errorf("%q", differences)
	}
	if err := n.Rebuild(t.Context()); err == nil {
		t.Error("it rebuilds a history that it cannot fold")
	}
}

func lostEvents(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addOrg("org_2", "second"))
	must(t, n, addOrg("org_3", "third"))
	for _, d := range []struct{ name, damage, undo string }{
		{"the head is behind", `UPDATE log_head SET position = 5`, `UPDATE log_head SET position = 6`},
		{"the head is ahead", `UPDATE log_head SET position = 7`, `UPDATE log_head SET position = 6`},
		{"a hole", `UPDATE events SET position = 9 WHERE position = 3`,
			`UPDATE events SET position = 3 WHERE position = 9`},
	} {
		t.Run(d.name, func(t *testing.T) {
			e.tamper(t, d.damage)
			if differences, err := n.RebuildCheck(t.Context()); err != nil || len(differences) != 1 {
				t.Errorf("%q, %v", differences, err)
			}
			e.tamper(t, d.undo)
			verify(t, n)
		})
	}
	// A whole object, with its state.
	for _, id := range []string{"org_2", "org_3"} {
		e.tamper(t, `DELETE FROM events WHERE object_id = '`+id+`'`)
		e.tamper(t, `DELETE FROM orgs WHERE id = '`+id+`'`)
		if differences, err := n.RebuildCheck(t.Context()); err != nil || len(differences) != 1 {
			t.Errorf("without %s: %q, %v", id, differences, err)
		}
	}
}

// destroyedKey erases a removed person: the log keeps its events and its chain, and folds to the same state.
func destroyedKey(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, addUser("usr_2", "bob"))
	must(t, n, signInFrom("usr_1", "192.0.2.1"))
	must(t, n, signInFrom("usr_2", "192.0.2.2"))
	rec, err := n.Record(t.Context(), users.Ref("usr_1"))
	if err != nil {
		t.Fatal(err)
	}
	refused := erase("usr_1")
	decide := refused.Decide
	refused.Decide = func(tx *event.Tx) error { return errors.Join(decide(tx), errRefused) }
	// In one batch, too: what is sealed before it goes with it, and nothing is sealed after it, neither of the person
	// nor of what stands beside.
	answers := Together(t, n, refused, rename("usr_1", "countess"), signInFrom("usr_1", "192.0.2.3"), erase("usr_1"),
		rename("usr_1", "again"), signInFrom("usr_1", "192.0.2.4"), rename("usr_2", "rob"))
	for i, want := range []bool{false, true, true, true, false, false, true} {
		if (answers[i] == nil) != want {
			t.Errorf("command %d: %v", i, answers[i])
		}
	}
	// What stands beside may have been left out, and is still in memory.
	must(t, n, addUser("usr_3", "eve"))
	must(t, n, signInFrom("usr_3", "192.0.2.6"))
	must(t, n, changeUser("usr_3",
		func(_ *event.Tx, u *event.Object[user]) error { return errors.Join(u.Erase(), u.Append(removed{})) }))
	if err := do(t, n, signInFrom("usr_3", "192.0.2.7")); err == nil {
		t.Error("something personal was sealed beside somebody who is erased, with a key that is remembered")
	}
	must(t, n, event.Command{Write: []event.Ref{signIns.Ref("sgi_3")}, Decide: func(tx *event.Tx) error {
		s, err := signIns.Get(tx, "sgi_3")
		if err != nil {
			return err
		}
		return s.Append(forgotten{})
	}})
	if err := do(t, n, signInFrom("usr_1", "192.0.2.5")); err == nil {
		t.Error("something personal was sealed beside somebody who is erased")
	}
	if row, err := n.Row(t.Context(), event.RowKey{Table: event.Keys, Key: rec.KeyID}); row != nil || err != nil {
		t.Fatalf("the key is there: %v, %v", row, err)
	}
	if err := do(t, n, rename("usr_1", "again")); err == nil {
		t.Error("something personal was sealed with a key that has just been destroyed")
	}
	verify(t, n)
	before := e.dumpState(t)
	if err := n.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := e.dumpState(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if err := do(t, n, rename("usr_1", "again")); err == nil {
		t.Error("something personal was sealed with a destroyed key")
	}
	must(t, n, count("usr_2"))
}

// newOrg is org one version later: it also knows how often its domains were set, claims its name, and is in a group.
type newOrg struct {
	Name    string   `json:"name"`
	Domains []string `json:"domains,omitempty"`
	Changes int      `json:"changes"`
}

var newOrgs = event.Define(event.Schema[newOrg]{
	Name: "org", Table: "orgs", Prefix: "org", Shape: 2, Token: event.TokenOrg,
	Facts:   []event.Fact[newOrg]{newOrgAdded{}, newDomainsSet{}},
	Columns: []string{event.Standing, event.State, "name"},
	Lookup: func(o *event.Object[newOrg]) []string {
		return []string{event.StandingOf(o.Data.Name), "active", "new " + o.Data.Name}
	},
	Groups: func(o *event.Object[newOrg]) []string { return []string{fmt.Sprint("changes/", o.Data.Changes)} },
	Claims: func(o *event.Object[newOrg]) []event.Claim {
		return append(domainClaims(o.Data.Domains), event.Claim{Space: "org_name", Key: o.Data.Name})
	},
})

type newOrgAdded orgAdded

func (newOrgAdded) EventType() event.Type { return "org.added.v1" }
func (f newOrgAdded) Apply(o *newOrg)     { o.Name = f.Name }

type newDomainsSet domainsSet

func (newDomainsSet) EventType() event.Type { return "org.domains_set.v1" }
func (f newDomainsSet) Apply(o *newOrg)     { o.Domains, o.Changes = f.Domains, o.Changes+1 }

// fillOldShape stores more objects than fit into one step of folding anew.
func fillOldShape(t *testing.T, e *env) (count int) {
	t.Helper()
	count = 201
	n := e.open(t)
	parallel(count, func(i int) {
		id := fmt.Sprintf("org_%03d", i)
		if err := n.Do(context.Background(), addOrg(id, id, id+".example")); err != nil {
			t.Error(err)
		}
	})
	must(t, n, setDomains(map[string][]string{"org_000": {"zero.example"}}))
	must(t, n, addUser("usr_1", "ada"))
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return count
}

func (e *env) newOptions() Options {
	o := e.options()
	o.Kinds = []event.Definition{newOrgs, users, signIns}
	return o
}

func checkNewShape(t *testing.T, n Node, count int) {
	t.Helper()
	for _, i := range []int{0, 1, 99, 100, count - 1} {
		id := fmt.Sprintf("org_%03d", i)
		o, err := newOrgs.Read(t.Context(), n, id)
		if err != nil || o == nil {
			t.Fatalf("%s: %v, %v", id, o, err)
		}
		changes := 1
		if i == 0 {
			changes = 2
		}
		if o.Data.Changes != changes || o.Data.Name != id {
			t.Errorf("%s: %+v", id, o.Data)
		}
		if got := holder(t, n, event.Claim{Space: "org_name", Key: id}); got != id {
			t.Errorf("the name of %s is held by %q", id, got)
		}
	}
	for _, q := range []event.Query{{Group: "changes/1"}, {By: "name", Prefix: "new org_"}} {
		q.Kind, q.Limit = "org", 2*count
		page, err := n.List(t.Context(), q)
		if want := count - len(q.Group)/9; err != nil || len(page.Records) != want { // one has changed twice
			t.Errorf("%+v: %d objects, want %d, %v", q, len(page.Records), want, err)
		}
	}
	verify(t, n)
}

func raisedShape(t *testing.T, e *env) {
	count := fillOldShape(t, e)
	userBefore := e.dump(t, "users")
	n := e.openWith(t, e.newOptions())
	checkNewShape(t, n, count)
	if e.dump(t, "users") != userBefore {
		t.Error("objects of another kind were changed")
	}
	before := e.dumpState(t)
	if err := n.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.dumpState(t) != before {
		t.Error("folding anew gave other bytes than a rebuild")
	}
}

// awaitNewShape waits for what nodes do in the background.
func (e *env) awaitNewShape(t *testing.T) {
	t.Helper()
	db := e.sql(t)
	defer db.Close()
	testkit.Await(t, "every object has its new shape", func() bool {
		var n int
		if err := db.QueryRowContext(t.Context(),
			fmt.Sprint("SELECT count(*) FROM orgs WHERE shape < ", newOrgs.Shape())).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// raisedShapeBeside: the newer node does not wait for the older one, and leaves alone what that one has locked.
func raisedShapeBeside(t *testing.T, e *env) {
	fillOldShape(t, e)
	old := e.open(t)
	p := newPause()
	c := setDomains(map[string][]string{"org_001": {"one.example"}})
	decide := c.Decide
	c.Decide = func(tx *event.Tx) error {
		p.here()
		return decide(tx)
	}
	var node Node
	err := meanwhile(t, old, p, c, func() { node = e.openWith(t, e.newOptions()) })
	if err != nil {
		t.Error(err)
	}
	e.awaitNewShape(t)
	o, err := newOrgs.Read(t.Context(), node, "org_001")
	if err != nil || o.Sequence != 3 || o.Data.Changes != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if got := holder(t, node, domain("one.example")); got != "org_001" {
		t.Errorf("the new domain is held by %q", got)
	}
	verify(t, node)
}

func raisedShapeTogether(t *testing.T, e *env) {
	count := fillOldShape(t, e)
	nodes := make([]Node, 3)
	parallel(len(nodes), func(i int) {
		node, _, err := e.subject.Open(t.Context(), e.newOptions())
		if err != nil {
			t.Error(err)
			return
		}
		nodes[i] = node
	})
	for _, node := range nodes {
		if node != nil {
			defer node.Close()
		}
	}
	if t.Failed() {
		return
	}
	e.awaitNewShape(t)
	checkNewShape(t, nodes[1], count)
}
