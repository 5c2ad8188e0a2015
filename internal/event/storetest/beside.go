package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/testdb"
)

var besideChecks = []check{
	{name: "rows are put, changed and dropped with the command", test: rowLife},
	{name: "a row past its expiry counts as absent and can be put again", test: rowExpiry},
	{name: "who proves to be somebody comes with the organization and the secret of this moment", test: provers},
	{name: "deliveries are read in the order of their keys", test: rowsInOrder},
	{name: "what cannot be stored keeps nobody else from an answer", test: unstorable},
	{name: "tokens are put, advanced and dropped", test: tokenLife},
	{name: "tokens are extended, and dropped by family and by application", test: tokenFamilies},
	{name: "a token that an application was given comes with its session", test: clientBearer},
	{name: "a token that was dropped does not come back", test: droppedToken},
	{name: "a bearer comes with the user and the organization", test: bearer},
	{name: "bearers that are asked for together each get their own", test: manyBearers},
}

// rowsInOrder: in the order of bytes, whatever the database thinks of upper case and punctuation.
func rowsInOrder(t *testing.T, e *env) {
	n := e.open(t)
	for _, key := range []string{"a/o/b", "a/o/B", "a/o/_", "a/o/b-c", "a/o/bc", "a/o", "a/o/", "a/o0", "b/o/a", "a/h"} {
		must(t, n, event.Command{Decide: func(tx *event.Tx) error {
			tx.PutRow(event.Row{RowKey: event.RowKey{Shelf: event.Deliveries, Key: key}, Value: []byte("value of " + key), Expires: 0})
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
			if got = append(got, r.Key); string(r.Value) != "value of "+r.Key || r.Shelf != event.Deliveries {
				t.Errorf("%+v", r)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%q behind %q: %v, want %s", c.prefix, c.after, got, c.want)
		}
	}
	if _, err := n.RowsOf(t.Context(), event.Followers, "", "", 1); err == nil {
		t.Error("a shelf without an order is read in order")
	}
}

func rowLife(t *testing.T, e *env) {
	n := e.open(t)
	for _, shelf := range event.Shelves {
		key := event.RowKey{Shelf: shelf, Key: "k"}
		want := func(value string, there bool) {
			t.Helper()
			row, err := n.Row(t.Context(), key)
			if err != nil || (row != nil) != there || there && (string(row.Value) != value || row.RowKey != key) {
				t.Errorf("%s: %+v, %v; want %q", shelf, row, err, value)
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
		for i, err := range Together(t, n, see("", false, putSeen("a")), see("a", true, drop), see("", false, putSeen("b")), see("b", true, nothing)) {
			if err != nil {
				t.Errorf("%s, command %d: %v", shelf, i, err)
			}
		}
		want("b", true)
	}
}

func rowExpiry(t *testing.T, e *env) {
	n := e.open(t)
	key := event.RowKey{Shelf: event.Throttle, Key: "k"}
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
	e.advance(59 * time.Second)
	if row, err := n.Row(t.Context(), key); err != nil || row == nil {
		t.Fatalf("before its time: %v, %v", row, err)
	}
	e.advance(time.Second)
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

// provers looks at every change of a user, the organization and the secret, from another node where there can be one: nothing of
// it may be remembered.
func provers(t *testing.T, e *env) {
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
			p, err := other.Prover(t.Context(), users.Ref("usr_1"))
			if err != nil || p == nil || p.Object.Sequence != user || p.Org.ID != "org_1" || p.Org.Sequence != org ||
				(p.Secret != nil) != (value != "") || p.Secret != nil && string(p.Secret.Value) != value {
				t.Fatalf("got %+v, %v; want the user at %d, the organization at %d and %q", p, err, user, org, value)
			}
			if u, err := users.Open(p.Object); err != nil || u.State.Name == "" || u.State.Count != int(user-1) {
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
	e.advance(time.Minute)
	see(2, 3, "")
	if p, err := other.Prover(t.Context(), users.Ref("usr_2")); err != nil || p == nil || p.Secret != nil || p.Object.ID != "usr_2" {
		t.Errorf("another one: %+v, %v", p, err)
	}
	if p, err := other.Prover(t.Context(), users.Ref("usr_3")); p != nil || err != nil {
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
				p, err := n.Prover(t.Context(), users.Ref(id))
				if err != nil || (p != nil) != (id == "usr_1") {
					t.Errorf("Prover %q: %v, %v", id, p, err)
				}
			}
		})
	}
	asking.Wait()
}

func token(id string) event.Token {
	return event.Token{ID: id, Hash: hashOf(id), Kind: "session", UserID: "usr_1", Epoch: 3, OrgEpoch: 4, Created: 5, Expires: 6}
}

func tokens(act func(tx *event.Tx)) event.Command {
	return event.Command{Decide: func(tx *event.Tx) error { act(tx); return nil }}
}

func tokenLife(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(token("tok_2"))
		tx.PutToken(token("tok_1"))
	}))
	want := func(id string, epoch int64) {
		t.Helper()
		got, err := n.TokenByID(t.Context(), id)
		if err != nil || got == nil {
			t.Fatalf("%s: %v, %v", id, got, err)
		}
		expected := token(id)
		if string(got.Hash) != string(expected.Hash) {
			t.Errorf("%s: hash %q", id, got.Hash)
		}
		if got.Kind != "session" || got.UserID != "usr_1" || got.Epoch != epoch || got.OrgEpoch != 4 || got.Created != 5 || got.Expires != 6 {
			t.Errorf("%s: %+v", id, got)
		}
	}
	want("tok_1", 3)
	must(t, n, tokens(func(tx *event.Tx) { tx.AdvanceToken("tok_1", 3, 9) }))
	want("tok_1", 9)
	must(t, n, tokens(func(tx *event.Tx) { tx.AdvanceToken("tok_1", 8, 10) })) // it died with an epoch before
	want("tok_1", 9)
	want("tok_2", 3)
	must(t, n, tokens(func(tx *event.Tx) { tx.DropToken("tok_1") }))
	if got, err := n.TokenByID(t.Context(), "tok_1"); got != nil || err != nil {
		t.Errorf("dropped: %v, %v", got, err)
	}
	// In one command, in the order given.
	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(token("tok_1"))
		tx.AdvanceToken("tok_1", 3, 7)
		tx.DropToken("tok_2")
		tx.PutToken(token("tok_2"))
	}))
	want("tok_1", 7)
	want("tok_2", 3)
}

// tokenFamilies holds for a store that has the tokens in memory, too: each is asked for before.
func tokenFamilies(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	of := func(id, client, family string) event.Token {
		tok := token(id)
		tok.Client, tok.Family, tok.Data = client, family, `{"of":"`+family+`"}`
		return tok
	}
	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(token("tok_alone"))
		tx.PutToken(of("tok_a1", "app_a", "fam_1"))
		tx.PutToken(of("tok_a2", "app_a", "fam_1"))
		tx.PutToken(of("tok_a3", "app_a", "fam_2"))
		tx.PutToken(of("tok_b", "app_b", "fam_3"))
	}))
	there := func(ids ...string) {
		t.Helper()
		for _, id := range []string{"tok_alone", "tok_a1", "tok_a2", "tok_a3", "tok_b", "tok_a4"} {
			b, err := n.Bearer(t.Context(), hashOf(id))
			byID, also := n.TokenByID(t.Context(), id)
			if err != nil || also != nil || (b != nil) != slices.Contains(ids, id) || (byID != nil) != slices.Contains(ids, id) {
				t.Errorf("%s: %v, %v, %v, %v", id, b, err, byID, also)
			}
		}
	}
	there("tok_alone", "tok_a1", "tok_a2", "tok_a3", "tok_b")
	if got, err := n.TokenByID(t.Context(), "tok_a3"); err != nil || got.Client != "app_a" || got.Family != "fam_2" || got.Data != `{"of":"fam_2"}` || got.Session != "" {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, n, tokens(func(tx *event.Tx) { tx.DropFamily("fam_1"); tx.DropFamily("") }))
	there("tok_alone", "tok_a3", "tok_b")

	// One that is put before the family is dropped goes with it, one that is put after it stays, in one command and in a batch.
	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(of("tok_a1", "app_a", "fam_1"))
		tx.DropFamily("fam_1")
		tx.PutToken(of("tok_a2", "app_a", "fam_1"))
	}))
	there("tok_alone", "tok_a2", "tok_a3", "tok_b")
	for i, err := range Together(t, n, tokens(func(tx *event.Tx) { tx.PutToken(of("tok_a4", "app_a", "fam_4")) }),
		tokens(func(tx *event.Tx) { tx.DropFamily("fam_4") })) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	there("tok_alone", "tok_a2", "tok_a3", "tok_b")
	must(t, n, tokens(func(tx *event.Tx) { tx.DropClient("usr_2", "app_a"); tx.DropClient("usr_1", "") }))
	there("tok_alone", "tok_a2", "tok_a3", "tok_b")
	must(t, n, tokens(func(tx *event.Tx) { tx.DropClient("usr_1", "app_a") }))
	there("tok_alone", "tok_b")

	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(of("tok_a1", "app_a", "fam_1")); tx.DropUser("usr_2"); tx.DropUser("") }))
	there("tok_alone", "tok_a1", "tok_b")
	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(of("tok_a2", "app_a", "fam_1")); tx.DropUser("usr_1") }))
	there()
	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(token("tok_alone")); tx.PutToken(of("tok_b", "app_b", "fam_3")) }))

	must(t, n, tokens(func(tx *event.Tx) { tx.ExtendToken("tok_b", 90); tx.ExtendToken("tok_a1", 90) }))
	must(t, n, tokens(func(tx *event.Tx) { tx.ExtendToken("tok_b", 80) })) // never back
	there("tok_alone", "tok_b")
	if b, err := n.Bearer(t.Context(), hashOf("tok_b")); err != nil || b.Token.Expires != 90 {
		t.Errorf("%+v, %v", b, err)
	}
}

func clientBearer(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	derived := token("tok_d")
	derived.Session, derived.Data = "tok_s", `{"some":1}`
	session := token("tok_s")
	session.Data = `{"proof":1}`
	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(session)
		tx.PutToken(derived)
		tx.PutToken(token("tok_alone"))
	}))
	for range 2 { // the second time from memory, where there is one
		b, err := n.ClientBearer(t.Context(), derived.Hash)
		if err != nil || b == nil || b.Session == nil {
			t.Fatalf("%+v, %v", b, err)
		}
		if b.Token.Data != derived.Data || b.Session.ID != "tok_s" || b.Session.Data != session.Data || b.Session.Epoch != 3 || b.Session.Expires != 6 || b.ClientStanding != "" {
			t.Errorf("%+v with %+v", b, b.Session)
		}
		b, err = n.ClientBearer(t.Context(), hashOf("tok_alone"))
		if err != nil || b == nil || b.Session != nil {
			t.Errorf("%+v, %v", b, err)
		}
	}
	must(t, n, tokens(func(tx *event.Tx) { tx.DropToken("tok_s") }))
	b, err := n.ClientBearer(t.Context(), derived.Hash)
	if err != nil || b == nil || b.Session != nil {
		t.Errorf("after the session has ended: %+v, %v", b, err)
	}
}

func droppedToken(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(token("tok_1")) }))
	drop := tokens(func(tx *event.Tx) { tx.DropToken("tok_1") })
	advance := tokens(func(tx *event.Tx) { tx.AdvanceToken("tok_1", 3, 9) })
	for i, err := range Together(t, n, drop, advance) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	must(t, n, advance)
	if got, err := n.TokenByID(t.Context(), "tok_1"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func bearer(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(token("tok_1")) }))
	if b, err := n.Bearer(t.Context(), token("tok_1").Hash); b != nil || err != nil {
		t.Errorf("without an organization: %v, %v", b, err)
	}
	must(t, n, addOrg("org_1", "first"))
	must(t, n, count("usr_1"))
	b, err := n.Bearer(t.Context(), token("tok_1").Hash)
	if err != nil || b == nil {
		t.Fatalf("%v, %v", b, err)
	}
	if b.UserID != "usr_1" || b.OrgID != "org_1" || b.UserStanding != "1" || b.OrgStanding != `"first"` {
		t.Errorf("user %s: %s, organization %s: %s", b.UserID, b.UserStanding, b.OrgID, b.OrgStanding)
	}
	if b.Token.ID != "tok_1" || b.Token.UserID != "usr_1" || b.Token.Kind != "session" || b.Token.Epoch != 3 || b.Token.OrgEpoch != 4 || b.Token.Expires != 6 {
		t.Errorf("token %+v", b.Token)
	}
	if b, err := n.Bearer(t.Context(), hashOf("tok_")); b != nil || err != nil {
		t.Errorf("another hash: %v, %v", b, err)
	}
}

func hashOf(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:]
}

// manyBearers asks for many tokens at once, known and unknown ones, so that lookups are answered together.
func manyBearers(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	const known = 40
	must(t, n, tokens(func(tx *event.Tx) {
		for i := range known {
			tx.PutToken(token(fmt.Sprint("tok_", i)))
		}
	}))
	var asking sync.WaitGroup
	for i := range 4 * known {
		asking.Go(func() {
			for range 5 {
				id := fmt.Sprint("tok_", i)
				b, err := n.Bearer(t.Context(), hashOf(id))
				switch {
				case err != nil:
					t.Error(err)
				case (b != nil) != (i < known) || b != nil && b.Token.ID != id:
					t.Errorf("%s: %+v", id, b)
				}
			}
		})
	}
	asking.Wait()
	must(t, n, tokens(func(tx *event.Tx) { tx.DropToken("tok_0") }))
	if b, err := n.Bearer(t.Context(), hashOf("tok_0")); b != nil || err != nil {
		t.Errorf("dropped: %v, %v", b, err)
	}
}
