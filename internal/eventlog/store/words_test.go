package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/folding"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

type person struct {
	Name string `json:"name"`
}

type personNamed struct {
	Name string `json:"name"`
}

func (personNamed) EventType() event.Type { return "user.named.v1" }
func (f personNamed) Apply(p *person)     { p.Name = f.Name }

var people = event.Define(event.Schema[person]{
	Name:   "user",
	Table:  "users",
	Prefix: "usr",
	Shape:  1,
	Facts:  []event.Fact[person]{personNamed{}},
	Columns: []string{event.Standing, "verified_email", "email_word", "email_order", event.State, "type", "user_name",
		"name", "email"},
	Lookup: func(*event.Object[person]) []string { return make([]string, 9) },
	Words:  func(o *event.Object[person]) []string { return []string{o.Data.Name} },
})

func nameUser(t *testing.T, s *Store, n int, text string) {
	t.Helper()
	nameUserIn(t, s, "org_1", n, text)
}

func nameUserIn(t *testing.T, s *Store, org string, n int, text string) {
	t.Helper()
	id := fmt.Sprintf("usr_%03d", n)
	err := s.Do(t.Context(), event.Command{Write: []event.Ref{people.Ref(id)}, Decide: func(tx *event.Tx) error {
		o, err := people.Get(tx, id)
		if err != nil || o == nil {
			_, err = people.Create(tx, id, org, personNamed{text})
			return err
		}
		return o.Append(personNamed{text})
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func wantNamed(t *testing.T, s *Store, query string, want ...int) {
	t.Helper()
	words, _ := syntax.QueryWords(query)
	page, err := s.Search(t.Context(), event.Search{Kind: "user", Org: "org_1", Words: words, Limit: 1000})
	if err != nil || page.Next != nil {
		t.Fatal(page.Next, err)
	}
	var got, wanted []string
	for _, r := range page.Records {
		got = append(got, r.ID)
	}
	for _, n := range want {
		wanted = append(wanted, fmt.Sprintf("usr_%03d", n))
	}
	if slices.Sort(got); !slices.Equal(got, wanted) {
		t.Errorf("%q finds %q, not %q", query, got, wanted)
	}
}

func rowsOf(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	err := s.engine.Query(t.Context(), "SELECT count(*) FROM "+table, nil,
		func(scan engine.Scanner) error { return scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantRebuilt(t *testing.T, s *Store) {
	t.Helper()
	report, err := s.RebuildCheck(t.Context())
	if err != nil || len(report.Differences) > 0 {
		t.Errorf("%v, %v", report.Differences, err)
	}
}

// A database of the version before has words. Searches find by them while a node of that version is running, and by
// word_blocks from the moment on when it has all terms.
func TestWordsBecomeTerms(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		newer := Options{Database: db.URL, Kinds: []event.Definition{people}, Master: secret.NewMasterKey(),
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		older := newer
		older.FactVersion = event.WordBlocks - 1
		s := opened(t, older)
		const many = 40
		for n := range many {
			nameUser(t, s, n, fmt.Sprintf("Maria Smith%d", n))
		}
		// The version before wrote no terms, and what a node of this one had written is out of date.
		behind(t, s, "DELETE FROM word_blocks WHERE term = 'maria'")
		behind(t, s, "UPDATE word_blocks SET term = 'stale' WHERE term = '7'")
		var all []int
		for n := range many {
			all = append(all, n)
		}
		wantNamed(t, s, "maria smith", all...)
		wantNamed(t, s, "smith7", 7)
		wantNamed(t, s, "stale")
		wantRebuilt(t, s)
		beside := s
		if s.cache != nil { // one node has it
			s.Close()
			beside = nil
		}
		s = opened(t, newer)
		defer s.Close()
		if beside != nil { // nothing is changed while it is running
			nameUser(t, s, 7, "Anna Berg")
			nameUser(t, beside, 8, "Anna Berg")
			for _, node := range []*Store{s, beside} {
				wantNamed(t, node, "anna", 7, 8)
				wantNamed(t, node, "smith7")
			}
			if may, err := s.raiseFactVersion(t.Context(), event.WordBlocks); may || err != nil ||
				s.words.Load() != wordsInUse {
				t.Errorf("%v %v: it is built beside an older node", may, err)
			}
			beside.Close()
		} else {
			nameUser(t, s, 7, "Anna Berg")
			nameUser(t, s, 8, "Anna Berg")
		}
		// Others write meanwhile.
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for n := range 30 {
					nameUser(t, s, 100+w, fmt.Sprint("Busy ", w, " ", n))
				}
			})
		}
		testkit.Receive(t, s.indexing, "all terms are added")
		writers.Wait()
		if s.words.Load() != wordsGone || rowsOf(t, s, "words") != 0 {
			t.Errorf("%d: %d words are left", s.words.Load(), rowsOf(t, s, "words"))
		}
		wantNamed(t, s, "anna", 7, 8)
		wantNamed(t, s, "smith7")
		wantNamed(t, s, "smith9", 9)
		wantNamed(t, s, "maria smith", slices.Delete(slices.Clone(all), 7, 9)...)
		wantNamed(t, s, "busy 29", 100, 101, 102, 103)
		wantNamed(t, s, "stale")
		wantRebuilt(t, s)
		s.Close()
		if s, _, err := Open(t.Context(), older); err == nil {
			s.Close()
			t.Error("a node that looks for words can start")
		}
		s = opened(t, newer)
		defer s.Close()
		testkit.Receive(t, s.indexing, "all terms are added")
		wantNamed(t, s, "anna berg", 7, 8)
	})
}

// Whatever step was the last one, the next node goes on.
func TestTermsAreAddedInSteps(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		newer := Options{Database: db.URL, Kinds: []event.Definition{people}, Master: secret.NewMasterKey(),
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		older := newer
		older.FactVersion = event.WordBlocks - 1
		s := opened(t, older)
		for n := range 3 {
			nameUser(t, s, n, "Maria")
		}
		behind(t, s, "DELETE FROM word_blocks")
		err := s.engine.Transact(t.Context(), func(x engine.Executor) error {
			end, err := folding.LockHead(t.Context(), s.engine, x)
			if err != nil {
				return err
			}
			more, err := s.indexStep(t.Context(), x, end)
			if !more {
				t.Error("there was nothing to do")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		wantNamed(t, s, "maria", 0, 1, 2)
		nameUser(t, s, 1, "Anna")
		s.Close()
		s = opened(t, newer)
		testkit.Receive(t, s.indexing, "all terms are added")
		wantNamed(t, s, "maria", 0, 2)
		wantNamed(t, s, "anna", 1)
		wantRebuilt(t, s)
		s.Close()
	})
}

// A page token of a search by words is refused clearly once words are gone.
func TestCursorOfWords(t *testing.T) {
	s := opened(t, Options{Database: t.TempDir() + "/signet.db", Kinds: []event.Definition{people},
		Master: secret.NewMasterKey()})
	defer s.Close()
	for _, words := range [][]string{{"maria"}, {"maria", "smith"}} {
		_, err := s.Search(t.Context(),
			event.Search{Kind: "user", Words: words, Limit: 1,
				After: event.Cursor{Value: "maria.smith@example.com", ID: "usr_1"}})
		wantInvalidToken(t, err)
		_, err = s.Search(t.Context(),
			event.Search{Kind: "user", Words: words, Limit: 1, After: event.Cursor{Value: "other", ID: "7"}})
		wantInvalidToken(t, err)
	}
}

// In all organizations people come once each, however small the pages are: the numbers of several organizations stand
// in the same blocks.
func TestSearchInAllOrganizationsPageByPage(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := opened(t, Options{Database: db.URL, Kinds: []event.Definition{people}, Master: secret.NewMasterKey()})
		defer s.Close()
		const many = 300 // more than a block has
		var all []string
		for n := range many {
			nameUserIn(t, s, fmt.Sprint("org_", n%3), n, []string{"Maria Smith", "Mario Smith"}[n/7%2])
			all = append(all, fmt.Sprintf("usr_%03d", n))
		}
		for _, c := range []struct {
			words []string
			want  func(n int) bool
		}{
			{[]string{"mari"}, func(int) bool { return true }},
			{[]string{"smith"}, func(int) bool { return true }},
			{[]string{"maria"}, func(n int) bool { return n/7%2 == 0 }},
			{[]string{"mario", "smith"}, func(n int) bool { return n/7%2 == 1 }},
		} {
			for _, limit := range []int{1, 7, 50, many} {
				var got, want []string
				for n, id := range all {
					if c.want(n) {
						want = append(want, id)
					}
				}
				q := event.Search{Kind: "user", Words: c.words, Limit: limit}
				for more := true; more; {
					page, err := s.Search(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range page.Records {
						got = append(got, r.ID)
					}
					if more = page.Next != nil; more {
						q.After = *page.Next
					}
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%q, %d a page: %d users, not %d", c.words, limit, len(got), len(want))
				}
			}
		}
	})
}

func wantInvalidToken(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.InvalidArgument || len(e.Fields) != 1 ||
		e.Fields[0].Field != "pageToken" {
		t.Errorf("%v", err)
	}
}

// A batch that fails gives no number: what it created may be created again, elsewhere in the log.
func TestANumberOfABatchThatFailedDoesNotCount(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	s := opened(t, Options{Database: db.URL, Kinds: []event.Definition{people}, Master: secret.NewMasterKey()})
	nameUser(t, s, 0, "Maria")
	if _, err := s.engine.Begin(t.Context(),
		&engine.Needs{Write: map[event.Kind][]string{"user": {"usr_000"}}}); err != nil {
		t.Fatal(err)
	}
	err := s.engine.Commit(t.Context(), &event.Changes{
		Events: []event.Event{{ObjectID: "usr_009", Sequence: 1, Org: "org_1", Type: "user.named.v1",
			Payload: []byte(`{}`)}},
		Unindexed: []event.Term{{Term: "maria", ObjectID: "usr_009", Org: "org_1"}},
		Unmoved:   []event.Unmoved{{Ref: people.Ref("usr_000"), Sequence: 99}},
	})
	if err == nil {
		t.Fatal("it was committed")
	}
	s.engine.Rollback(t.Context())
	for n := range 3 {
		nameUser(t, s, n+1, "Maria")
	}
	nameUser(t, s, 9, "Maria")
	nameUser(t, s, 9, "Anna")
	wantNamed(t, s, "maria", 0, 1, 2, 3)
	wantNamed(t, s, "anna", 9)
}
