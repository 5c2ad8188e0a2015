// Package listtest checks that every implementation of event.Store keeps its promises about lists: of objects, of
// groups that objects are in by their state, and of tokens. It is part of the conformance suite, beside package
// storetest.
//
// Its objects are small stand-ins in the real tables: one fact sets all of their state.
package listtest

import (
	"context"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/storetest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// Subject is what the suite tests.
type Subject struct {
	// Open opens a node.
	Open func(ctx context.Context, o storetest.Options) (storetest.Node, error)
	// OpenBefore opens a node on a database in which there are no lists yet.
	OpenBefore func(ctx context.Context, o storetest.Options) (storetest.Node, error)
}

type check struct {
	name  string
	test  func(t *testing.T, e *env)
	nodes bool // needs several nodes on one database: PostgreSQL
}

// Run runs the suite on every engine.
func Run(t *testing.T, subject Subject) {
	for _, checks := range [][]check{listChecks, groupChecks, searchChecks} {
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				engines := testdb.Engines
				if c.nodes {
					engines = []string{testdb.Postgres} // the embedded database has one node
				}
				testdb.On(t, engines, func(t *testing.T, db testdb.Database) {
					t.Parallel() // the engines beside each other; the checks still one after the other
					c.test(t, &env{subject: subject, db: db, master: secret.NewMasterKey(),
						clock: storetest.NewClock()})
				})
			})
		}
	}
}

// env is one fresh database and what belongs to it.
type env struct {
	subject Subject
	db      testdb.Database
	master  secret.MasterKey
	clock   *testkit.Clock
}

// open opens a node that is closed with the test.
func (e *env) open(t *testing.T) storetest.Node {
	t.Helper()
	return e.openWith(t, e.subject.Open, orgs, users, signIns)
}

func (e *env) openWith(t *testing.T, open func(context.Context, storetest.Options) (storetest.Node, error),
	kinds ...event.Definition) storetest.Node {
	t.Helper()
	n, err := open(t.Context(),
		storetest.Options{Database: e.db.URL, Kinds: kinds, Master: e.master, Clock: e.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return n
}

// thing is the state of all objects.
type thing struct {
	Name    string   `json:"name"`
	Tags    []string `json:"tags,omitempty"`
	Counted bool     `json:"counted,omitempty"`
	Removed bool     `json:"removed,omitempty"`
}

// columns are the values of state, type, user_name, name and email.
func (s *thing) columns() []string {
	state, kind := "active", "new"
	if s.Removed {
		state = event.Removed
	}
	if s.Counted {
		kind = "counted"
	}
	name := event.LookupText(s.Name)
	return []string{state, kind, name, "the " + name, name + "@mail"}
}

type (
	userSet   thing
	orgSet    thing
	signInSet thing
)

func (userSet) EventType() event.Type   { return "user.set.v1" }
func (f userSet) Apply(s *thing)        { *s = thing(f) }
func (orgSet) EventType() event.Type    { return "org.set.v1" }
func (f orgSet) Apply(s *thing)         { *s = thing(f) }
func (signInSet) EventType() event.Type { return "sign_in.set.v1" }
func (f signInSet) Apply(s *thing)      { *s = thing(f) }

var (
	users = event.Define(event.Schema[thing]{
		Name:    "user",
		Table:   "users",
		Prefix:  "usr",
		Shape:   2,
		Facts:   []event.Fact[thing]{userSet{}},
		Columns: []string{event.Standing, "verified_email", event.State, "type", "user_name", "name", "email"},
		Lookup:  func(o *event.Object[thing]) []string { return append([]string{"", ""}, o.Data.columns()...) },
		Groups:  func(o *event.Object[thing]) []string { return o.Data.Tags },
		Words:   func(o *event.Object[thing]) []string { return []string{o.Data.Name} },
	})
	// oldUsers are users as the version before lists had them.
	oldUsers = event.Define(event.Schema[thing]{
		Name:    "user",
		Table:   "users",
		Prefix:  "usr",
		Shape:   1,
		Facts:   []event.Fact[thing]{userSet{}},
		Columns: []string{event.Standing, "verified_email"},
		Lookup:  func(*event.Object[thing]) []string { return []string{"", ""} },
	})
	orgs = event.Define(event.Schema[thing]{
		Name:    "org",
		Table:   "orgs",
		Prefix:  "org",
		Shape:   2,
		Facts:   []event.Fact[thing]{orgSet{}},
		Columns: []string{event.Standing, event.State, "name"},
		Lookup:  func(o *event.Object[thing]) []string { return []string{"", o.Data.columns()[0], o.Data.Name} },
	})
	// signIns cannot be listed.
	signIns = event.Define(event.Schema[thing]{Name: "sign_in", Table: "sign_ins", Prefix: "sgi", Shape: 1,
		Facts: []event.Fact[thing]{signInSet{}}})
)

// must runs a command that has to succeed.
func must(t *testing.T, n storetest.Node, c event.Command) {
	t.Helper()
	if err := n.Do(t.Context(), c); err != nil {
		t.Fatalf("the command failed: %v", err)
	}
}

// add makes users of an organization, all in one command.
func add(org string, all map[string]thing) event.Command {
	var c event.Command
	for id := range all {
		c.Write = append(c.Write, users.Ref(id))
	}
	c.Decide = func(tx *event.Tx) error {
		for id, s := range all {
			if _, err := users.Create(tx, id, org, userSet(s)); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// addUser makes one in org_1.
func addUser(id, name string) event.Command { return addUserTo("org_1", id, name) }

func addUserTo(org, id, name string) event.Command {
	return add(org, map[string]thing{id: {Name: name}})
}

func addOrg(id, name string) event.Command {
	return event.Command{Write: []event.Ref{orgs.Ref(id)}, Decide: func(tx *event.Tx) error {
		_, err := orgs.Create(tx, id, id, orgSet{Name: name})
		return err
	}}
}

// change changes the state of a user, in as many steps as there are functions.
func change(id string, steps ...func(s *thing)) event.Command {
	return event.Command{Write: []event.Ref{users.Ref(id)}, Decide: func(tx *event.Tx) error {
		u, err := users.Get(tx, id)
		if err != nil {
			return err
		}
		for _, step := range steps {
			s := u.Data
			step(&s)
			if err := u.Append(userSet(s)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func rename(id, name string) event.Command { return change(id, func(s *thing) { s.Name = name }) }
func count(id string) event.Command        { return change(id, func(s *thing) { s.Counted = true }) }
func remove(id string) event.Command       { return change(id, func(s *thing) { *s = thing{Removed: true} }) }

// tag puts a user into groups, and out of all others.
func tag(id string, tags ...string) event.Command { return change(id, tagging(tags...)) }

func tagging(tags ...string) func(s *thing) { return func(s *thing) { s.Tags = tags } }

// verify checks that the state is what the log folds to.
func verify(t *testing.T, n storetest.Node) {
	t.Helper()
	if differences, err := n.RebuildCheck(t.Context()); err != nil || len(differences) > 0 {
		t.Errorf("%q, %v", differences, err)
	}
}
