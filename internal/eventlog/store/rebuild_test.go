package store

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
)

// grouped is a thing that is in a group and has a name of its own.
var grouped = event.Define(event.Schema[newThing]{
	Name:   "sign_in",
	Table:  "sign_ins",
	Prefix: "x",
	Shape:  2,
	Facts:  []event.Fact[newThing]{newNamed{}},
	Claims: func(o *event.Object[newThing]) []event.Claim { return nameOf(o.Data.Name) },
	Groups: func(*event.Object[newThing]) []string { return []string{"all"} },
})

// SQLite keeps any value in any column. Bytes instead of the same text are found by nobody who looks for the text: a
// name could be taken twice, a member would be in no list.
func TestACheckFindsValuesOfAnotherType(t *testing.T) {
	options := Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{grouped},
		Master: secret.NewMasterKey()}
	s, _, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Do(t.Context(), name(grouped, "x_1", "one", newNamed{"one"}, nil)); err != nil {
		t.Fatal(err)
	}
	exec := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := s.engine.Transact(t.Context(),
				func(x engine.Executor) error { return x.Exec(t.Context(), statement) }); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	for _, c := range []struct{ change, back, says string }{
		{"UPDATE sign_ins SET org_id = CAST(org_id AS BLOB)", "UPDATE sign_ins SET org_id = CAST(org_id AS TEXT)",
			"x_1: its state does not match"},
		{"UPDATE sign_ins SET doc = CAST(doc AS BLOB)", "UPDATE sign_ins SET doc = CAST(doc AS TEXT)",
			"x_1: its state does not match"},
		{"UPDATE sign_ins SET changed = CAST(CAST(changed AS TEXT) AS BLOB)",
			"UPDATE sign_ins SET changed = CAST(changed AS INTEGER)", "x_1: its state does not match"},
		{"UPDATE sign_ins SET sequence = 'x'", "UPDATE sign_ins SET sequence = 1", "x_1: its state does not match"},
		{"UPDATE claims SET digest = CAST(digest AS TEXT)", "UPDATE claims SET digest = CAST(digest AS BLOB)",
			"x_1: its claims do not match"},
		{"UPDATE groupings SET name = CAST(name AS BLOB)", "UPDATE groupings SET name = CAST(name AS TEXT)",
			"x_1: its groups do not match"},
	} {
		exec(c.change)
		if r, err := s.RebuildCheck(t.Context()); err != nil || len(r.Differences) != 1 ||
			!strings.HasPrefix(r.Differences[0], c.says) {
			t.Errorf("%s: %v, %v", c.change, r.Differences, err)
		}
		exec(c.back)
	}
	if r, err := s.RebuildCheck(t.Context()); err != nil || len(r.Differences) > 0 {
		t.Errorf("put right again: %v, %v", r.Differences, err)
	}
}
