package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

var batchChecks = []check{
	{name: "a command that refuses among many refuses alone", test: refusesAlone},
	{name: "later commands of a batch see what earlier ones did", test: seesEarlier},
	{name: "one batch writes, reads and checks several kinds", test: severalKinds},
	{name: "a panic while deciding fails that command alone", test: panics},
	{name: "a command that decides nothing writes nothing", test: decidesNothing},
	{name: "what a command did not declare is an error, whatever else is in its batch", test: undeclared},
	{name: "an object is created once", test: createdOnce},
	{name: "a batch of more bytes than fit is split", test: splitBatch},
	{name: "a command that the database refuses fails alone", test: refusedByDatabase},
}

var errRefused = errs.New(errs.FailedPrecondition, "REFUSED", "no")

func refuse(id string) event.Command {
	return changeUser(id, func(_ *event.Tx, u *event.Object[user]) error {
		// It has appended, taken a name and put a row before it refuses: nothing of that may stay.
		return errors.Join(u.Append(counted{By: 1000}), errRefused)
	})
}

func refusesAlone(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	var commands []event.Command
	for i := range 30 {
		c := count("usr_1")
		if i%10 == 5 {
			c = refuse("usr_1")
			decide := c.Decide
			c.Decide = func(tx *event.Tx) error {
				tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Secrets, Key: "refused"}})
				return decide(tx)
			}
		}
		commands = append(commands, c)
	}
	for i, err := range Together(t, n, commands...) {
		if i%10 == 5 {
			if !errors.Is(err, errRefused) {
				t.Errorf("command %d: %v, want its own refusal", i, err)
			}
		} else if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if u := getUser(t, n, "usr_1"); u.Data.Count != 27 || u.Sequence != 28 {
		t.Errorf("the user is at count %d, sequence %d", u.Data.Count, u.Sequence)
	}
	if row, err := n.Row(t.Context(), event.RowKey{Table: event.Secrets, Key: "refused"}); row != nil || err != nil {
		t.Errorf("a refused command left a row: %v, %v", row, err)
	}
	verify(t, n)
}

func seesEarlier(t *testing.T, e *env) {
	n := e.open(t)
	var saw []int
	look := changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
		saw = append(saw, u.Data.Count)
		return u.Append(counted{By: 1})
	})
	key := event.RowKey{Table: event.Throttle, Key: "k"}
	var rows []string
	putRow := event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
		row, err := tx.Row(key)
		if err != nil {
			return err
		}
		value := "+"
		if row != nil {
			value = string(row.Value) + "+"
		}
		rows = append(rows, value)
		tx.PutRow(event.Row{RowKey: key, Value: []byte(value)})
		return nil
	}}
	answers := Together(t, n,
		addUser("usr_1", "ada"), look, look, putRow, look, putRow,
		rename("usr_1", "grace"),
		addUser("usr_2", "ada"),   // free again
		addUser("usr_3", "grace")) // taken by now
	for i, err := range answers[:8] {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	wantKind(t, answers[8], errs.AlreadyExists)
	if got := fmt.Sprint(saw, rows); got != "[0 1 2] [+ ++]" {
		t.Errorf("they saw %s", got)
	}
	if a, b := holder(t, n, userName("org_1", "ada")),
		holder(t, n, userName("org_1", "grace")); a != "usr_2" || b != "usr_1" {
		t.Errorf("ada is %s, grace is %s", a, b)
	}
	verify(t, n)
}

func severalKinds(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 4 {
		must(t, n, addOrg(fmt.Sprint("org_", i), "name", fmt.Sprintf("d%d.example", i)))
		must(t, n, addUser(fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
	}
	var commands []event.Command
	for i := range 4 {
		read := event.Command{
			Write:  []event.Ref{users.Ref(fmt.Sprint("usr_new", i))},
			Claims: []event.Claim{userName("org_1", fmt.Sprint("new", i))},
			Read: []event.Ref{orgs.Ref("org_0"), users.Ref("usr_3"), signIns.Ref("sgi_none"),
				orgs.Ref(fmt.Sprint("org_", i))},
			Decide: func(tx *event.Tx) error {
				for _, id := range []string{"org_0", fmt.Sprint("org_", i)} {
					if o, err := orgs.Get(tx, id); o == nil || err != nil {
						return fmt.Errorf("%s: %v, %w", id, o, err)
					}
				}
				if u, err := users.Get(tx, "usr_3"); u == nil || err != nil {
					return fmt.Errorf("usr_3: %v, %w", u, err)
				}
				if s, err := signIns.Get(tx, "sgi_none"); s != nil || err != nil {
					return fmt.Errorf("sgi_none: %v, %w", s, err)
				}
				_, err := users.Create(tx, fmt.Sprint("usr_new", i), "org_1",
					userAdded{Personal: person{Name: fmt.Sprint("new", i)}})
				return err
			},
		}
		commands = append(commands, read, count(fmt.Sprint("usr_", i)), countOrg(fmt.Sprint("org_", (i+1)%4)),
			addOrg(fmt.Sprint("org_new", i), "new"),
			setDomains(map[string][]string{fmt.Sprint("org_", i): {fmt.Sprintf("e%d.example", i)}}))
	}
	for i, err := range Together(t, n, commands...) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	verify(t, n)
}

func panics(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	answers := Together(t, n,
		count("usr_1"),
		changeUser("usr_1", func(_ *event.Tx, u *event.Object[user]) error {
			if err := u.Append(counted{By: 1000}); err != nil {
				return err
			}
			panic("out of order")
		}),
		count("usr_1"),
		count("usr_none"), // a nil object
		event.Command{})   // no Decide at all
	for i, fails := range []bool{false, true, false, true, true} {
		if (answers[i] != nil) != fails {
			t.Errorf("command %d: %v", i, answers[i])
		}
	}
	if errs.KindOf(answers[1]) != errs.Internal || !strings.Contains(answers[1].Error(), "out of order") {
		t.Errorf("the panic became %v", answers[1])
	}
	must(t, n, count("usr_1"))
	if u := getUser(t, n, "usr_1"); u.Data.Count != 3 {
		t.Errorf("count %d", u.Data.Count)
	}
	verify(t, n)
}

func decidesNothing(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, changeUser("usr_1", func(*event.Tx, *event.Object[user]) error { return nil }))
	must(t, n, changeUser("usr_none", func(_ *event.Tx, u *event.Object[user]) error {
		if u != nil {
			return errors.New("found what is not there")
		}
		return nil
	}))
	if len(allEvents(t, n)) != 1 {
		t.Error("there are events of nothing")
	}
	verify(t, n)
}

func undeclared(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, addOrg("org_1", "first", "first.example"))
	row := event.RowKey{Table: event.Secrets, Key: "k"}
	// Each of these uses what only the first command has declared.
	declares := event.Command{
		Write: []event.Ref{users.Ref("usr_1"), users.Ref("usr_2")}, Read: []event.Ref{orgs.Ref("org_1")},
		Claims: []event.Claim{domain("first.example"), userName("org_1", "bob"), userName("org_1", "ada")},
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			tx.PutRow(event.Row{RowKey: row, Value: []byte("v")})
			_, err := tx.Row(row)
			return err
		},
	}
	bad := map[string]event.Command{
		"an object": {Decide: func(tx *event.Tx) error {
			_, err := users.Get(tx, "usr_1")
			return err
		}},
		"a new object": {Claims: []event.Claim{userName("org_1", "bob")}, Decide: func(tx *event.Tx) error {
			_, err := users.Create(tx, "usr_2", "org_1", userAdded{Personal: person{Name: "bob"}})
			return err
		}},
		"writing what was declared for reading": {
			Read: []event.Ref{users.Ref("usr_1")},
			Decide: func(tx *event.Tx) error {
				u, err := users.Get(tx, "usr_1")
				if err != nil {
					return err
				}
				return u.Append(counted{By: 1})
			},
		},
		"creating what was declared for reading": {
			Read: []event.Ref{orgs.Ref("org_2")},
			Decide: func(tx *event.Tx) error {
				_, err := orgs.Create(tx, "org_2", "org_2", orgAdded{})
				return err
			},
		},
		"a claim": {Decide: func(tx *event.Tx) error {
			_, err := tx.Holder(domain("first.example"))
			return err
		}},
		"a name that is taken": func() event.Command {
			c := addUser("usr_2", "bob")
			c.Claims = nil
			return c
		}(),
		"a row": {Decide: func(tx *event.Tx) error {
			_, err := tx.Row(row)
			return err
		}},
	}
	for what, c := range bad {
		if err := do(t, n, c); err == nil || errs.KindOf(err) != errs.Internal {
			t.Errorf("alone, undeclared %s: %v, want an internal error", what, err)
		}
		answers := Together(t, n, declares, c)
		if answers[0] != nil {
			t.Errorf("the declaring command: %v", answers[0])
		}
		if answers[1] == nil || errs.KindOf(answers[1]) != errs.Internal {
			t.Errorf("in a batch, undeclared %s: %v, want an internal error", what, answers[1])
		}
	}
	for what, c := range map[string]event.Command{
		"kind":  {Write: []event.Ref{{Kind: "nonsense", ID: "x"}}, Decide: func(*event.Tx) error { return nil }},
		"read":  {Read: []event.Ref{{Kind: "nonsense", ID: "x"}}, Decide: func(*event.Tx) error { return nil }},
		"table": {Rows: []event.RowKey{{Table: "events", Key: "x"}}, Decide: func(*event.Tx) error { return nil }},
	} {
		if err := do(t, n, c); err == nil {
			t.Errorf("an unknown %s is no error", what)
		}
	}
	if len(allEvents(t, n)) != 3 {
		t.Error("one of them wrote an event")
	}
	verify(t, n)
}

func createdOnce(t *testing.T, e *env) {
	n := e.open(t)
	answers := Together(t, n, addUser("usr_1", "ada"), addUser("usr_1", "bob"))
	if answers[0] != nil || answers[1] == nil {
		t.Errorf("in one batch: %v", answers)
	}
	if err := do(t, n, addUser("usr_1", "bob")); err == nil {
		t.Error("it could be created once more")
	}
	if u := getUser(t, n, "usr_1"); u.Data.Name != "ada" || u.Sequence != 1 {
		t.Errorf("%+v", u)
	}
	if got := holder(t, n, userName("org_1", "bob")); got != "" {
		t.Errorf("the name of the failed one is held by %q", got)
	}
	verify(t, n)
}

func splitBatch(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	value := make([]byte, 3<<20)
	batches := map[int64]int{}
	var commands []event.Command
	for range 5 {
		commands = append(commands, changeUser("usr_1", func(tx *event.Tx, u *event.Object[user]) error {
			batches[tx.Now()]++
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Secrets, Key: fmt.Sprint(u.Sequence)}, Value: value})
			return u.Append(counted{By: 1})
		}))
	}
	for i, err := range Together(t, n, commands...) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	for _, size := range batches {
		if size > 3 {
			t.Errorf("%d commands of 3 MiB were in one batch", size)
		}
	}
	if u := getUser(t, n, "usr_1"); u.Data.Count != 5 {
		t.Errorf("count %d", u.Data.Count)
	}
	verify(t, n)
}

// refusedByDatabase has a command in the batch that only the database can refuse: a second token with the same id.
func refusedByDatabase(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "ada"))
	token := func(hash string) event.Command {
		c := count("usr_1")
		decide := c.Decide
		c.Decide = func(tx *event.Tx) error {
			tx.PutToken(event.Token{ID: "tok_1", Hash: hashOf(hash), Kind: "session", UserID: "usr_1"})
			return decide(tx)
		}
		return c
	}
	answers := Together(t, n, count("usr_1"), count("usr_1"), token("a"), count("usr_1"), token("b"), count("usr_1"),
		count("usr_1"))
	for i, err := range answers {
		if (err != nil) != (i == 4) {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if u := getUser(t, n, "usr_1"); u.Data.Count != 6 {
		t.Errorf("count %d", u.Data.Count)
	}
	if b, err := n.TokenByID(context.Background(), "tok_1"); err != nil || b == nil ||
		string(b.Hash) != string(hashOf("a")) {
		t.Errorf("%+v, %v", b, err)
	}
	verify(t, n)
}
