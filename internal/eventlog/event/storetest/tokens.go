package storetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

var tokenChecks = []check{
	{name: "tokens are put, advanced and dropped", test: tokenLife},
	{name: "tokens are extended, and dropped by family and by application", test: tokenFamilies},
	{name: "a token gets another hash and other data, and is found by them alone", test: tokenUpdate},
	{name: "a command reads the tokens it declared, as the commands before have left them", test: tokensRead},
	{name: "a token that an application was given comes with its session", test: clientBearer},
	{name: "a token comes with the provider that it or its session came through", test: throughProvider},
	{name: "a token that was dropped does not come back", test: droppedToken},
	{name: "a bearer comes with the user and the organization", test: bearer},
	{name: "bearers that are asked for together each get their own", test: manyBearers},
}

func token(id string) event.Token {
	return event.Token{ID: id, Hash: hashOf(id), Kind: "session", UserID: "usr_1", Epoch: 3, OrgEpoch: 4,
		Created: 5, Expires: 6}
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
		if got.Kind != "session" || got.UserID != "usr_1" || got.Epoch != epoch || got.OrgEpoch != 4 ||
			got.Created != 5 || got.Expires != 6 {
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
			b, err := n.TokenContext(t.Context(), hashOf(id))
			byID, also := n.TokenByID(t.Context(), id)
			if err != nil || also != nil || (b != nil) != slices.Contains(ids, id) ||
				(byID != nil) != slices.Contains(ids, id) {
				t.Errorf("%s: %v, %v, %v, %v", id, b, err, byID, also)
			}
		}
	}
	there("tok_alone", "tok_a1", "tok_a2", "tok_a3", "tok_b")
	if got, err := n.TokenByID(t.Context(), "tok_a3"); err != nil || got.Client != "app_a" || got.Family != "fam_2" ||
		got.Data != `{"of":"fam_2"}` || got.Session != "" {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, n, tokens(func(tx *event.Tx) { tx.DropFamily("fam_1"); tx.DropFamily("") }))
	there("tok_alone", "tok_a3", "tok_b")

	// One that is put before the family is dropped goes with it, one that is put after it stays, in one command and in
	// a batch.
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

	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(of("tok_a1", "app_a", "fam_1"))
		tx.DropUser("usr_2")
		tx.DropUser("")
	}))
	there("tok_alone", "tok_a1", "tok_b")
	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(of("tok_a2", "app_a", "fam_1")); tx.DropUser("usr_1") }))
	there()
	must(t, n, tokens(func(tx *event.Tx) {
		tx.PutToken(token("tok_alone"))
		tx.PutToken(of("tok_b", "app_b", "fam_3"))
	}))

	must(t, n, tokens(func(tx *event.Tx) { tx.ExtendToken("tok_b", 90); tx.ExtendToken("tok_a1", 90) }))
	must(t, n, tokens(func(tx *event.Tx) { tx.ExtendToken("tok_b", 80) })) // never back
	there("tok_alone", "tok_b")
	if b, err := n.TokenContext(t.Context(), hashOf("tok_b")); err != nil || b.Token.Expires != 90 {
		t.Errorf("%+v, %v", b, err)
	}
}

// tokenUpdate holds for a store that has the token in memory, too: it is asked for before.
func tokenUpdate(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(token("tok_1")); tx.PutToken(token("tok_2")) }))
	found := func(hash string) string {
		t.Helper()
		b, err := n.TokenContext(t.Context(), hashOf(hash))
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			return ""
		}
		return b.Token.ID + " " + b.Token.Data
	}
	if found("tok_1") != "tok_1 " || found("tok_2") != "tok_2 " {
		t.Fatal("they are not there")
	}
	update := tokens(func(tx *event.Tx) { tx.UpdateToken("tok_1", hashOf("new"), "data") })
	for range 2 { // the second time from memory, where there is one
		must(t, n, update)
		if found("tok_1") != "" || found("new") != "tok_1 data" || found("tok_2") != "tok_2 " {
			t.Errorf("found %q, %q, %q", found("tok_1"), found("new"), found("tok_2"))
		}
	}
	must(t, n, tokens(func(tx *event.Tx) { tx.UpdateToken("tok_1", hashOf("new"), "other data") }))
	if found("new") != "tok_1 other data" {
		t.Errorf("with the same hash: %q", found("new"))
	}
	if got, err := n.TokenByID(t.Context(), "tok_1"); err != nil || got.Epoch != 3 || got.Expires != 6 {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, n, tokens(func(tx *event.Tx) { tx.DropToken("tok_1") }))
	must(t, n, update)
	if found("new") != "" {
		t.Error("one that was dropped is back")
	}
}

func tokensRead(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	see := func(want string, then func(tx *event.Tx)) event.Command {
		c := event.Command{Tokens: []string{"tok_1", "tok_\x00", "tok_none"}}
		c.Decide = func(tx *event.Tx) error {
			for _, id := range c.Tokens {
				token, err := tx.Token(id)
				if err != nil {
					return err
				}
				got := ""
				if token != nil {
					got = fmt.Sprint(token.ID, " ", token.Epoch, " ", token.Expires, " ",
						string(token.Hash) == string(hashOf("new")), token.Data)
				}
				if id == "tok_1" && got != want || id != "tok_1" && got != "" {
					return fmt.Errorf("it sees %q, want %q", got, want)
				}
			}
			then(tx)
			return nil
		}
		return c
	}
	of := func(client, family string) func(tx *event.Tx) {
		return func(tx *event.Tx) {
			put := token("tok_1")
			put.Client, put.Family = client, family
			tx.PutToken(put)
		}
	}
	const fresh = "tok_1 3 6 false"
	steps := []event.Command{
		see("", of("", "")),
		see(fresh, func(tx *event.Tx) {
			tx.AdvanceToken("tok_1", 3, 9)
			tx.AdvanceToken("tok_1", 2, 7)
			tx.AdvanceToken("tok_2", 9, 10)
		}),
		see("tok_1 9 6 false",
			func(tx *event.Tx) { tx.ExtendToken("tok_1", 8); tx.ExtendToken("tok_1", 7); tx.ExtendToken("tok_2", 9) }),
		see("tok_1 9 8 false", func(tx *event.Tx) {
			tx.UpdateToken("tok_1", hashOf("new"), " data")
			tx.UpdateToken("tok_2", hashOf("x"), "")
		}),
		see("tok_1 9 8 true data",
			func(tx *event.Tx) { tx.DropToken("tok_2"); tx.DropFamily("fam_2"); tx.DropUser("usr_2") }),
		see("tok_1 9 8 true data", func(tx *event.Tx) { tx.DropToken("tok_1") }),
		see("", of("", "fam_1")),
		see(fresh, func(tx *event.Tx) { tx.DropFamily("fam_1") }),
		see("", of("app_1", "")),
		see(fresh, func(tx *event.Tx) { tx.DropClient("usr_1", "app_1") }),
		see("", of("", "")),
		see(fresh, func(tx *event.Tx) { tx.DropUser("usr_1") }),
		see("", func(*event.Tx) {}),
	}
	for i, c := range steps {
		if err := do(t, n, c); err != nil {
			t.Errorf("alone, command %d: %v", i, err)
		}
	}
	for i, err := range Together(t, n, steps...) {
		if err != nil {
			t.Errorf("together, command %d: %v", i, err)
		}
	}
	for i, drop := range []func(tx *event.Tx){
		func(tx *event.Tx) { tx.DropFamily("fam_1") }, func(tx *event.Tx) { tx.DropClient("usr_1", "app_1") },
		func(tx *event.Tx) { tx.DropUser("usr_1") },
	} {
		must(t, n, tokens(of("app_1", "fam_1"))) // before the batch
		for _, err := range Together(t, n, see(fresh, drop), see("", func(*event.Tx) {})) {
			if err != nil {
				t.Errorf("dropped with others, %d: %v", i, err)
			}
		}
	}
	must(t, n, see("", func(tx *event.Tx) { // a command sees what it did itself
		of("", "")(tx)
		if token, err := tx.Token("tok_1"); err != nil || token == nil {
			t.Errorf("%v, %v", token, err)
		}
		tx.DropToken("tok_1")
		if token, err := tx.Token("tok_1"); err != nil || token != nil {
			t.Errorf("%v, %v", token, err)
		}
	}))
	for _, err := range Together(t, n, see("", of("", "")), tokens(func(tx *event.Tx) {
		if _, err := tx.Token("tok_1"); err == nil {
			t.Error("a token that only another command of the batch declared can be read")
		}
	})) {
		if err != nil {
			t.Error(err)
		}
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
		b, err := n.AppTokenContext(t.Context(), derived.Hash)
		if err != nil || b == nil || b.Session == nil {
			t.Fatalf("%+v, %v", b, err)
		}
		if b.Token.Data != derived.Data || b.Session.ID != "tok_s" || b.Session.Data != session.Data ||
			b.Session.Epoch != 3 || b.Session.Expires != 6 || b.ClientStanding != "" {
			t.Errorf("%+v with %+v", b, b.Session)
		}
		b, err = n.AppTokenContext(t.Context(), hashOf("tok_alone"))
		if err != nil || b == nil || b.Session != nil {
			t.Errorf("%+v, %v", b, err)
		}
	}
	must(t, n, tokens(func(tx *event.Tx) { tx.DropToken("tok_s") }))
	b, err := n.AppTokenContext(t.Context(), derived.Hash)
	if err != nil || b == nil || b.Session != nil {
		t.Errorf("after the session has ended: %+v, %v", b, err)
	}
}

func throughProvider(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addOrg("org_1", "first"))
	must(t, n, addUser("usr_1", "ada"))
	count := func(id string) event.Command {
		return event.Command{Write: []event.Ref{providers.Ref(id)}, Decide: func(tx *event.Tx) error {
			p, err := providers.Get(tx, id)
			if err != nil {
				return err
			}
			if p == nil {
				_, err = providers.Create(tx, id, "org_1", providerCounted{})
				return err
			}
			return p.Append(providerCounted{})
		}}
	}
	must(t, n, count("idp_1"))
	must(t, n, count("idp_2"))
	must(t, n, count("idp_2"))
	put := func(id, session, provider string) {
		put := token(id)
		put.Session, put.Provider = session, provider
		must(t, n, tokens(func(tx *event.Tx) { tx.PutToken(put) }))
	}
	put("tok_plain", "", "")
	put("tok_session", "", "idp_1")
	put("tok_offline", "", "idp_2")
	put("tok_derived", "tok_session", "")
	put("tok_both", "tok_session", "idp_2")
	put("tok_unknown", "", "idp_x")
	put("tok_ended", "tok_x", "idp_1")
	for _, change := range []func(){
		func() {},
		func() {}, // from memory, where there is one
		func() { must(t, n, count("idp_1")) },
		func() {
			must(t, n, tokens(func(tx *event.Tx) { tx.UpdateToken("tok_session", hashOf("tok_session"), "{}") }))
		},
	} {
		change()
		standing := "1"
		if p, err := providers.Read(t.Context(), n, "idp_1"); err != nil || p.Data.Count == 2 {
			standing = "2"
		}
		for _, c := range []struct {
			id, provider, alone, given string // what TokenContext and AppTokenContext say
		}{
			{"tok_plain", "", "", ""},
			{"tok_session", "idp_1", standing, standing},
			{"tok_offline", "idp_2", "2", "2"},
			{"tok_both", "idp_2", "2", "2"},
			{"tok_unknown", "idp_x", "", ""},
			{"tok_ended", "idp_1", standing, standing},
		} {
			b, err := n.TokenContext(t.Context(), hashOf(c.id))
			if err != nil || b == nil || b.Token.Provider != c.provider || b.ProviderStanding != c.alone {
				t.Errorf("%s: %+v, %v", c.id, b, err)
			}
			b, err = n.AppTokenContext(t.Context(), hashOf(c.id))
			if err != nil || b == nil || b.Token.Provider != c.provider || b.ProviderStanding != c.given {
				t.Errorf("%s given to an application: %+v, %v", c.id, b, err)
			}
		}
		b, err := n.AppTokenContext(t.Context(), hashOf("tok_derived"))
		if err != nil || b == nil || b.Token.Provider != "" || b.Session.Provider != "idp_1" ||
			b.ProviderStanding != standing {
			t.Errorf("of a session: %+v, %v", b, err)
		}
		got, err := n.TokenByID(t.Context(), "tok_session")
		if err != nil || got.Provider != "idp_1" {
			t.Errorf("%+v, %v", got, err)
		}
		seen := tokens(func(tx *event.Tx) {
			if got, err := tx.Token("tok_session"); err != nil || got == nil || got.Provider != "idp_1" {
				t.Errorf("a command sees %+v, %v", got, err)
			}
		})
		seen.Tokens = []string{"tok_session"}
		must(t, n, seen)
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
	if b, err := n.TokenContext(t.Context(), token("tok_1").Hash); b != nil || err != nil {
		t.Errorf("without an organization: %v, %v", b, err)
	}
	must(t, n, addOrg("org_1", "first"))
	must(t, n, count("usr_1"))
	b, err := n.TokenContext(t.Context(), token("tok_1").Hash)
	if err != nil || b == nil {
		t.Fatalf("%v, %v", b, err)
	}
	if b.UserID != "usr_1" || b.OrgID != "org_1" || b.UserStanding != "1" || b.OrgStanding != `"first"` {
		t.Errorf("user %s: %s, organization %s: %s", b.UserID, b.UserStanding, b.OrgID, b.OrgStanding)
	}
	if b.Token.ID != "tok_1" || b.Token.UserID != "usr_1" || b.Token.Kind != "session" || b.Token.Epoch != 3 ||
		b.Token.OrgEpoch != 4 || b.Token.Expires != 6 {
		t.Errorf("token %+v", b.Token)
	}
	if b, err := n.TokenContext(t.Context(), hashOf("tok_")); b != nil || err != nil {
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
				b, err := n.TokenContext(t.Context(), hashOf(id))
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
	if b, err := n.TokenContext(t.Context(), hashOf("tok_0")); b != nil || err != nil {
		t.Errorf("dropped: %v, %v", b, err)
	}
}
