package store

import (
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const twins = "twin@example.org"

// addTwin adds a person with the same verified e-mail address as others.
func addTwin(t *testing.T, s *Store, id string) {
	t.Helper()
	testkit.Must(t, s.Do(t.Context(), event.Command{
		Create: []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim("org_1", id)},
		Decide: func(tx *event.Tx) error {
			_, err := user.Kind.Create(tx, id, "org_1", user.HumanAdded{
				EmailVerified: true,
				Verification:  user.Said(tx, true, user.VerifiedByOwner),
				Personal: user.HumanFacts{UserName: id, UserNameKey: id,
					Profile: user.Profile{FirstName: "A", LastName: "B", DisplayName: "A B"}, NameKey: "a b",
					Email: twins, EmailKey: twins},
			})
			return err
		},
	}))
}

// wantTwins checks that they are found by their address in this order, in their organization and everywhere.
func wantTwins(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	found, err := s.RecordsWhere(t.Context(), "user", "org_1", user.VerifiedEmail, user.EmailDigest(twins),
		user.FirstByEmail, len(ids))
	testkit.Must(t, err)
	var got []string
	for _, r := range found {
		got = append(got, r.ID)
		if u, err := user.Kind.Open(r); err != nil || u.Data.Human.Email.Key != twins || u.Data.UserNameKey != r.ID ||
			u.Data.Human.Profile.DisplayName != "A B" {
			t.Errorf("%+v, %v", u, err)
		}
	}
	first, err := s.Find(t.Context(), []event.Lookup{
		{Kind: "user", Anywhere: true, Column: user.EmailWord, By: user.FirstByEmail,
			Values: user.TrustedWords(twins, "org_1", "")},
		{Kind: "user", Org: "org_1", Column: user.VerifiedEmail, By: user.FirstByEmail,
			Values: []string{user.EmailDigest(twins)}},
	})
	if err != nil || first[0] != ids[0] || first[1] != ids[0] || fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("found %v, and %q first, %v", got, first, err)
	}
	if one, err := s.RecordsWhere(t.Context(), "user", "org_1", user.VerifiedEmail, user.EmailDigest(twins),
		user.FirstByEmail, 1); err != nil || len(one) != 1 || one[0].ID != ids[0] {
		t.Errorf("the first of them: %v, %v", one, err)
	}
}

// twinShapes gives the shapes of them in the order of identifiers, and the lengths of what they are found by.
func twinShapes(t *testing.T, s *Store) (all string) {
	t.Helper()
	testkit.Must(t, s.engine.Query(t.Context(),
		"SELECT shape, length(verified_email), length(email_word) FROM users ORDER BY id", nil,
		func(scan engine.Scanner) error {
			var shape, verified, word int64
			err := scan(&shape, &verified, &word)
			all += fmt.Sprint(shape, "/", verified, "/", word, " ")
			return err
		}))
	return all
}

// TestUsersAreShortWhenTheLastOlderNodeIsGone: a node of the version before would find nobody by a short digest, and no
// key in a short document.
func TestUsersAreShortWhenTheLastOlderNodeIsGone(t *testing.T) {
	options := Options{Database: testdb.New(t, testdb.Postgres).URL, Kinds: model.Kinds, Master: secret.NewMasterKey(),
		FactVersion: 4}
	older, _, err := Open(t.Context(), options)
	testkit.Must(t, err)
	defer older.Close()
	addTwin(t, older, "usr_1")
	options.FactVersion = 0
	newer, _, err := Open(t.Context(), options)
	testkit.Must(t, err)
	defer newer.Close()
	addTwin(t, newer, "usr_2")
	wantTwins(t, older, "usr_1", "usr_2")
	wantTwins(t, newer, "usr_1", "usr_2")
	if got := twinShapes(t, newer); got != "7/64/64 7/64/64 " {
		t.Errorf("beside an older node: %s", got)
	}
	clean := func() {
		t.Helper()
		if report, err := newer.RebuildCheck(t.Context()); err != nil || len(report.Differences) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
	}
	clean()
	testkit.Must(t, older.Close())
	testkit.Await(t, "all users are short", func() bool { return twinShapes(t, newer) == "8/22/22 8/22/22 " })
	addTwin(t, newer, "usr_3")
	wantTwins(t, newer, "usr_1", "usr_2", "usr_3")
	clean()
	options.FactVersion = 4
	if again, _, err := Open(t.Context(), options); err == nil {
		again.Close()
		t.Error("an older node starts, and would find nobody")
	}
}

// Until all users are short, both kinds are found together, the first of all first.
func TestShortUsersAreFoundTogetherWithOthers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()})
		testkit.Must(t, err)
		defer s.Close()
		for i := range 4 {
			addTwin(t, s, fmt.Sprint("usr_", i))
		}
		if got := twinShapes(t, s); got != "8/22/22 8/22/22 8/22/22 8/22/22 " {
			t.Errorf("alone: %s", got)
		}
		for i := 1; i < 4; i += 2 { // as they were before
			testkit.Must(t, s.engine.Transact(t.Context(), func(x engine.Executor) error {
				before := s.folder()
				before.FactVersion = 4
				return before.Replace(t.Context(), x, user.Kind, []string{fmt.Sprint("usr_", i)}, 1)
			}))
		}
		if got := twinShapes(t, s); got != "8/22/22 7/64/64 8/22/22 7/64/64 " {
			t.Errorf("mixed: %s", got)
		}
		if s.cache == nil { // on the embedded database nobody else can have written them, and a start comes before
			wantTwins(t, s, "usr_0", "usr_1", "usr_2", "usr_3")
		}
		if report, err := s.RebuildCheck(t.Context()); err != nil || len(report.Differences) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
		s.Close()
		again, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: model.Kinds, Master: s.given})
		testkit.Must(t, err)
		defer again.Close()
		testkit.Await(t, "a start makes all of them short",
			func() bool { return twinShapes(t, again) == "8/22/22 8/22/22 8/22/22 8/22/22 " })
		wantTwins(t, again, "usr_0", "usr_1", "usr_2", "usr_3")
		if forms := again.forms(user.Kind, user.VerifiedEmail,
			user.EmailDigest(twins)); len(forms) != map[bool]int{true: 1, false: 2}[again.cache != nil] ||
			len(forms[len(forms)-1]) != 22 {
			t.Errorf("it is looked for by %v", forms)
		}
	})
}
