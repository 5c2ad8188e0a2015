package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
)

// Two versions of one kind: the newer one also counts, and claims the name.
type (
	oldThing struct {
		Name string `json:"name"`
	}
	newThing struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	oldNamed struct {
		Name string `json:"name"`
	}
	newNamed oldNamed
)

func (oldNamed) EventType() event.Type { return "sign_in.named.v1" }
func (f oldNamed) Apply(s *oldThing)   { s.Name = f.Name }
func (newNamed) EventType() event.Type { return "sign_in.named.v1" }
func (f newNamed) Apply(s *newThing)   { s.Name, s.Count = f.Name, s.Count+1 }
func nameOf(name string) []event.Claim { return []event.Claim{{Space: "thing", Key: name}} }
func claimed(t *testing.T, s *Store, name string) string {
	t.Helper()
	id, err := s.Holder(t.Context(), nameOf(name)[0])
	if err != nil {
		t.Fatal(err)
	}
	return id
}

var (
	oldThings = event.Define(event.Schema[oldThing]{Name: "sign_in", Table: "sign_ins", Prefix: "x", Shape: 1,
		Facts: []event.Fact[oldThing]{oldNamed{}}})
	newThings = event.Define(event.Schema[newThing]{
		Name:   "sign_in",
		Table:  "sign_ins",
		Prefix: "x",
		Shape:  2,
		Facts:  []event.Fact[newThing]{newNamed{}},
		Claims: func(o *event.Object[newThing]) []event.Claim { return nameOf(o.Data.Name) },
	})
)

// name makes a command that gives a thing a name, and makes it if there is none. saw gets its state before that.
func name[S any](kind *event.Objects[S], id, name string, fact event.Fact[S], saw *S) event.Command {
	return event.Command{Write: []event.Ref{kind.Ref(id)}, Claims: nameOf(name), Decide: func(tx *event.Tx) error {
		o, err := kind.Get(tx, id)
		switch {
		case err != nil:
			return err
		case o == nil:
			_, err := kind.Create(tx, id, "org_1", fact)
			return err
		}
		if saw != nil {
			*saw = o.Data
		}
		return o.Append(fact)
	}}
}

func oldName(id, to string) event.Command { return name(oldThings, id, to, oldNamed{to}, nil) }

func newName(id, to string, saw *newThing) event.Command {
	return name(newThings, id, to, newNamed{to}, saw)
}

// versions opens stores of either version on one database.
func versions(t *testing.T, db testdb.Database) func(kind event.Definition) *Store {
	master := secret.NewMasterKey()
	return func(kind event.Definition) *Store {
		t.Helper()
		s, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: []event.Definition{kind}, Master: master})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// batch runs commands as one batch and gives their answers.
func batch(s *Store, commands ...event.Command) []error {
	all := make([]*pending, len(commands))
	for i, c := range commands {
		all[i] = &pending{command: c, done: make(chan error, 1)}
	}
	for rest := all; len(rest) > 0; {
		rest = s.run(rest, 1, false)
	}
	answers := make([]error, len(all))
	for i, p := range all {
		answers[i] = <-p.done
	}
	return answers
}

func wantUpgrade(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind != errs.Unavailable || e.Reason != event.NodeOutdated || e.RetryAfter != time.Second ||
		!strings.Contains(e.Message, "upgrade this node") {
		t.Errorf("%v", err)
	}
}

func TestAnObjectOfANewerShapeCanBeReadAndNotChanged(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		open := versions(t, db)
		newer := open(newThings)
		if err := newer.Do(t.Context(), newName("x_1", "one", nil)); err != nil {
			t.Fatal(err)
		}
		newer.Close()
		s := open(oldThings)
		before, err := s.Record(t.Context(), oldThings.Ref("x_1"))
		if err != nil {
			t.Fatal(err)
		}
		if o, err := oldThings.Read(t.Context(), s, "x_1"); err != nil || o.Data.Name != "one" {
			t.Errorf("reading: %+v, %v", o, err)
		}
		read := event.Command{Read: []event.Ref{oldThings.Ref("x_1")}, Decide: func(tx *event.Tx) error {
			o, err := oldThings.Get(tx, "x_1")
			if err == nil && o.Data.Name != "one" {
				err = errors.New("it sees " + o.Data.Name)
			}
			return err
		}}
		answers := batch(s, oldName("x_1", "other"), read, oldName("x_2", "two"), oldName("x_1", "another"))
		wantUpgrade(t, answers[0])
		wantUpgrade(t, answers[3])
		if answers[1] != nil || answers[2] != nil {
			t.Errorf("reading: %v; another object: %v", answers[1], answers[2])
		}
		after, err := s.Record(t.Context(), oldThings.Ref("x_1"))
		if err != nil || !after.Equal(before) || claimed(t, s, "one") != "x_1" {
			t.Errorf("%+v, %v", after, err)
		}
	})
}

func TestNodesOfTwoVersionsDoNotUndoEachOthersWork(t *testing.T) {
	open := versions(t, testdb.New(t, testdb.Postgres))
	older, newer := open(oldThings), open(newThings)
	must := func(answers ...error) {
		t.Helper()
		if err := errors.Join(answers...); err != nil {
			t.Fatal(err)
		}
	}
	must(batch(older, oldName("x_1", "one"), oldName("x_1", "two"), oldName("x_2", "second"),
		oldName("x_3", "third"))...)
	var saw newThing
	must(batch(newer, newName("x_2", "zwei", nil), newName("x_1", "three", &saw), newName("x_9", "nine", nil))...)
	if saw.Count != 2 || claimed(t, newer, "three") != "x_1" || claimed(t, newer, "two") != "" {
		t.Errorf("the newer node decided on %+v", saw)
	}
	wantUpgrade(t, older.Do(t.Context(), oldName("x_1", "four")))
	must(newer.Do(t.Context(), newName("x_1", "five", &saw)))
	if saw.Count != 3 {
		t.Errorf("the newer node decided on %+v", saw)
	}
	// Whoever only reads it decides on the new shape, too.
	must(newer.Do(t.Context(), event.Command{Read: []event.Ref{newThings.Ref("x_3")}, Decide: func(tx *event.Tx) error {
		o, err := newThings.Get(tx, "x_3")
		saw = o.Data
		return err
	}}))
	if saw.Count != 1 || claimed(t, newer, "third") != "x_3" {
		t.Errorf("the newer node decided on %+v", saw)
	}
	if report, err := newer.RebuildCheck(t.Context()); err != nil || len(report.Differences) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestAnObjectThatCannotBeFoldedAnewFailsItsOwnCommands(t *testing.T) {
	ctx := context.Background()
	open := versions(t, testdb.New(t, testdb.Postgres))
	older, newer := open(oldThings), open(newThings)
	for _, err := range batch(older, oldName("x_1", "one"), oldName("x_2", "two"), oldName("x_3", "three")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	err := older.engine.Transact(ctx, func(x engine.Executor) error {
		if err := x.Exec(ctx, "UPDATE events SET type = 'sign_in.unknown.v9' WHERE object_id = 'x_1'"); err != nil {
			return err
		}
		return x.Exec(ctx, "DELETE FROM events WHERE object_id = 'x_3'")
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := batch(newer, newName("x_1", "eins", nil), newName("x_2", "zwei", nil), newName("x_3", "drei", nil))
	if answers[0] == nil || answers[1] != nil || answers[2] == nil {
		t.Errorf("%v", answers)
	}
}
