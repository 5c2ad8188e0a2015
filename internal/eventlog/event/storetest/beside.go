package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

var besideChecks = []check{
	{name: "rows are put, changed and dropped with the command", test: rowLife},
	{name: "a row past its expiry counts as absent and can be put again", test: rowExpiry},
	{name: "who proves to be somebody comes with the organization and the secret of this moment",
		test: clientCredentials},
	{name: "deliveries are read in the order of their keys", test: rowsInOrder},
	{name: "what cannot be stored keeps nobody else from an answer", test: unstorable},
}

// rowsInOrder: in the order of bytes, whatever the database thinks of upper case and punctuation.
func rowsInOrder(t *testing.T, e *env) {
	n := e.open(t)
	for _, key := range []string{"a/o/b", "a/o/B", "a/o/_", "a/o/b-c", "a/o/bc", "a/o", "a/o/", "a/o0",
		"b/o/a", "a/h"} {
		must(t, n, event.Command{Decide: func(tx *event.Tx) error {
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Deliveries, Key: key},
				Value: []byte("value of " + key), Expires: 0})
			return nil
		}})
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"a/o/", "", 10, "[a/o/ a/o/B a/o/_ a/o/b a/o/b-c a/o/bc]"},
		{"a/o/", "a/o/_", 2, "[a/o/b a/o/b-c]"},
		{"a/o/", "a/o/bc", 2, "[]"},
		{"b", "", 10, "[b/o/a]"},
		{"c", "", 10, "[]"},
		{"", "a/o0", 10, "[b/o/a]"},
	} {
		rows, err := n.RowsOf(t.Context(), event.Deliveries, c.prefix, c.after, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range rows {
			if got = append(got, r.Key); string(r.Value) != "value of "+r.Key || r.Table != event.Deliveries {
				t.Errorf("%+v", r)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%q behind %q: %v, want %s", c.prefix, c.after, got, c.want)
		}
	}
	if _, err := n.RowsOf(t.Context(), event.Followers, "", "", 1); err == nil {
		t.Error("a table without an order is read in order")
	}
}

func rowLife(t *testing.T, e *env) {
	n := e.open(t)
	for _, table := range event.SideTables {
		key := event.RowKey{Table: table, Key: "k"}
		want := func(value string, there bool) {
			t.Helper()
			row, err := n.Row(t.Context(), key)
			if err != nil || (row != nil) != there || there && (string(row.Value) != value || row.RowKey != key) {
				t.Errorf("%s: %+v, %v; want %q", table, row, err, value)
			}
		}
		put := func(value []byte) event.Command {
			return event.Command{Decide: func(tx *event.Tx) error {
				tx.PutRow(event.Row{RowKey: key, Value: value})
				return nil
			}}
		}
		see := func(value string, there bool, then func(tx *event.Tx)) event.Command {
			return event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
				row, err := tx.Row(key)
				if err != nil {
					return err
				}
				if (row != nil) != there || there && string(row.Value) != value {
					return errors.New("it sees something else")
				}
				then(tx)
				return nil
			}}
		}
		putSeen := func(value string) func(tx *event.Tx) {
			return func(tx *event.Tx) { tx.PutRow(event.Row{RowKey: key, Value: []byte(value)}) }
		}
		drop := func(tx *event.Tx) { tx.DropRow(key) }
		nothing := func(*event.Tx) {}

		want("", false)
		must(t, n, put([]byte("one"))) // without having looked
		want("one", true)
		must(t, n, put([]byte("two")))
		want("two", true)
		must(t, n, see("two", true, putSeen("three")))
		want("three", true)
		must(t, n, see("three", true, drop))
		want("", false)
		must(t, n, see("", false, putSeen("four")))
		want("four", true)
		must(t, n, put(nil))
		want("", true)
		must(t, n, event.Command{Decide: func(tx *event.Tx) error { drop(tx); return nil }})
		want("", false)
		for i, err := range Together(t, n, see("", false, putSeen("a")), see("a", true, drop),
			see("", false, putSeen("b")), see("b", true, nothing)) {
			if err != nil {
				t.Errorf("%s, command %d: %v", table, i, err)
			}
		}
		want("b", true)
	}
}

func rowExpiry(t *testing.T, e *env) {
	n := e.open(t)
	key := event.RowKey{Table: event.Throttle, Key: "k"}
	put := func(value string, found *bool) event.Command {
		return event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
			row, err := tx.Row(key)
			*found = row != nil
			tx.PutRow(event.Row{RowKey: key, Value: []byte(value), Expires: tx.Now() + time.Minute.Microseconds()})
			return err
		}}
	}
	var found bool
	must(t, n, put("one", &found))
	e.clock.Advance(59 * time.Second)
	if row, err := n.Row(t.Context(), key); err != nil || row == nil {
		t.Fatalf("before its time: %v, %v", row, err)
	}
	e.clock.Advance(time.Second)
	if row, err := n.Row(t.Context(), key); err != nil || row != nil {
		t.Fatalf("past its time: %v, %v", row, err)
	}
	if must(t, n, put("two", &found)); found {
		t.Error("a command sees an expired row")
	}
	if row, err := n.Row(t.Context(), key); err != nil || row == nil || string(row.Value) != "two" {
		t.Errorf("put again: %v, %v", row, err)
	}
	if must(t, n, put("three", &found)); !found {
		t.Error("a command does not see the row that was put again")
	}
}

// clientCredentials looks at every change of a user, the organization and the secret, from another node where there can
// be one: nothing of it may be remembered.
func clientCredentials(t *testing.T, e *env) {
	n := e.open(t)
	other := n
	if e.db.Engine == testdb.Postgres {
		other = e.open(t)
	}
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, addUser("usr_2", "bob"))
	secret := func(value string, life time.Duration) event.Command {
		return event.Command{Decide: func(tx *event.Tx) error {
			row := event.Row{RowKey: event.SecretOf("usr_1"), Value: []byte(value)}
			if life > 0 {
				row.Expires = tx.Now() + life.Microseconds()
			}
			if tx.PutRow(row); value == "" {
				tx.DropRow(row.RowKey)
			}
			return nil
		}}
	}
	see := func(user, org uint64, value string) {
		t.Helper()
		for range 3 {
			p, err := other.ClientCredential(t.Context(), users.Ref("usr_1"))
			if err != nil || p == nil || p.Object.Sequence != user || p.Org.ID != "org_1" || p.Org.Sequence != org ||
				(p.Secret != nil) != (value != "") || p.Secret != nil && string(p.Secret.Value) != value {
				t.Fatalf("got %+v, %v; want the user at %d, the organization at %d and %q", p, err, user, org, value)
			}
			if u, err := users.Open(p.Object); err != nil || u.Data.Name == "" || u.Data.Count != int(user-1) {
				t.Fatalf("the user is %+v, %v", u, err)
			}
		}
	}
	see(1, 2, "")
	must(t, n, secret("one", 0))
	see(1, 2, "one")
	must(t, n, secret("two", 0))
	see(1, 2, "two")
	must(t, n, count("usr_1"))
	see(2, 2, "two")
	must(t, n, countOrg("org_1"))
	see(2, 3, "two")
	must(t, n, secret("", 0))
	see(2, 3, "")
	must(t, n, secret("three", time.Minute))
	see(2, 3, "three")
	e.clock.Advance(time.Minute)
	see(2, 3, "")
	if p, err := other.ClientCredential(t.Context(), users.Ref("usr_2")); err != nil || p == nil || p.Secret != nil ||
		p.Object.ID != "usr_2" {
		t.Errorf("another one: %+v, %v", p, err)
	}
	if p, err := other.ClientCredential(t.Context(), users.Ref("usr_3")); p != nil || err != nil {
		t.Errorf("nobody: %+v, %v", p, err)
	}
}

func unstorable(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	var asking sync.WaitGroup
	for range 100 {
		asking.Go(func() {
			for _, id := range []string{"usr_1", "usr_\x00", "usr_\xff", "usr_" + strings.Repeat("x", event.MaxID)} {
				r, err := n.Record(t.Context(), users.Ref(id))
				if err != nil || (r != nil) != (id == "usr_1") {
					t.Errorf("Record %q: %v, %v", id, r, err)
				}
				p, err := n.ClientCredential(t.Context(), users.Ref(id))
				if err != nil || (p != nil) != (id == "usr_1") {
					t.Errorf("ClientCredential %q: %v, %v", id, p, err)
				}
			}
		})
	}
	asking.Wait()
}
