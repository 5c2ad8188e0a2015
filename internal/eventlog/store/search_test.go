package store

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/listing"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

func searchBeforeIsBounded(t *testing.T, s *Store) {
	// Nobody has both words, and many have one of them.
	q := event.Search{Kind: "user", Words: []string{"common", "w0"}, Limit: 10}
	for range 3 {
		found, next, err := listing.Before(t.Context(), s.engine, q, 40)
		if err != nil || len(found) > 0 {
			t.Fatalf("%v, %v", found, err)
		}
		if next == nil || *next == q.After {
			t.Fatalf("%v after %v: it does not go on behind what it has looked at", next, q.After)
		}
		q.After = *next
	}
	for range 2 { // with a larger number the rest comes at once, and that is the end where there are few
		if _, next, err := listing.Before(t.Context(), s.engine, q, 1_000_000); err != nil || next != nil {
			t.Fatalf("%v, %v", next, err)
		}
	}
}

func searchIsBounded(t *testing.T, s *Store) {
	looked := 0
	nobody := func(_ context.Context, numbers []int64) ([]listing.Found, error) {
		looked += len(numbers)
		return make([]listing.Found, len(numbers)), nil
	}
	for _, c := range []struct {
		words  []string
		bounds listing.Bounds
		pages  int // 0: many
	}{
		{[]string{"w"}, listing.Bounds{Looked: 40}, 0},
		{[]string{"common"}, listing.Bounds{Looked: 40}, 0},
		// both have more rows: it goes along one of them
		{[]string{"common", "x"}, listing.Bounds{First: 1, Rows: 1, Looked: 40}, 0},
		{[]string{"common", "x"}, listing.Bounds{First: 256, Rows: 100_000, Looked: 40}, 1}, // nobody has both
		// few candidates, and nothing else is read
		{[]string{"common", "w000001"}, listing.Bounds{First: 100, Looked: 40}, 1},
		{[]string{"common", "nobody"}, listing.Bounds{First: 1, Rows: 1, Looked: 40}, 1},
	} {
		for _, org := range []string{"", "org_1"} {
			search := listing.Search{DB: s.engine, Look: nobody, Bounds: c.bounds,
				Query: event.Search{Kind: "user", Org: org, Words: c.words, Limit: 10}}
			pages := 0
			for more := true; more && pages < 5; pages++ {
				looked = 0
				page, next, err := search.Run(t.Context())
				if err != nil || len(page) > 0 || looked > c.bounds.Looked {
					t.Fatalf("%q in %q: %v, %v; %d were looked at", c.words, org, page, err, looked)
				}
				if more = next != nil; more {
					if *next == search.Query.After {
						t.Fatalf("%q in %q does not go on behind %v", c.words, org, *next)
					}
					search.Query.After = *next
				}
			}
			if c.pages > 0 && pages != c.pages || c.pages == 0 && pages < 2 {
				t.Errorf("%q in %q: %d pages", c.words, org, pages)
			}
		}
	}
}

// countingRows counts the rows that a search takes.
type countingRows struct {
	listing.Database
	rows int
}

func (c *countingRows) Query(ctx context.Context, sql string, args []any, each func(engine.Scanner) error) error {
	return c.Database.Query(ctx, sql, args, func(scan engine.Scanner) error {
		c.rows++
		return each(scan)
	})
}

// One row of a term that everybody has is enough for a page, and no more are taken.
func searchOfAFrequentTermTakesFewRows(t *testing.T, s *Store) {
	found := func(_ context.Context, numbers []int64) ([]listing.Found, error) {
		all := make([]listing.Found, len(numbers))
		for i := range all {
			all[i] = listing.Found{Record: &event.Record{}, Terms: []string{"common"}}
		}
		return all, nil
	}
	db := &countingRows{Database: s.engine}
	search := listing.Search{DB: db, Look: found, Bounds: listing.UsualBounds,
		Query: event.Search{Kind: "user", Org: "org_1", Words: []string{"common"}, Limit: 50}}
	page, next, err := search.Run(t.Context())
	if err != nil || len(page) != 50 || next == nil {
		t.Fatalf("%d objects, next %v, %v", len(page), next, err)
	}
	if db.rows > 2 {
		t.Errorf("%d rows for one page", db.rows)
	}
}

// A query can be ended early wherever it is asked, and the next one begins anew.
func TestAQueryEndsEarly(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		twice := func(q engine.Querier) error {
			for range 2 {
				rows := 0
				err := q.Query(t.Context(), "SELECT version FROM schema_version ORDER BY version", nil,
					func(engine.Scanner) error {
						rows++
						return engine.ErrEnough
					})
				if err != nil || rows != 1 {
					t.Errorf("%T: %d rows, %v", q, rows, err)
				}
			}
			return nil
		}
		_ = twice(s.engine)
		inside := func(x engine.Executor) error { return twice(x) }
		for name, err := range map[string]error{
			"a transaction": s.engine.Transact(t.Context(), inside),
			"a snapshot":    s.engine.Snapshot(t.Context(), inside),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// That an index is used does not say how much of it is read: behind these words there are thousands of others.
func searchReadsItsPart(t *testing.T, s *Store) {
	read := func(text string, args []any) (pages int) {
		err := s.engine.Query(context.Background(), "EXPLAIN (ANALYZE, BUFFERS) "+text, args,
			func(scan engine.Scanner) error {
				var line string
				if err := scan(&line); err != nil {
					return err
				}
				if found := regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`).FindStringSubmatch(line); found != nil && pages == 0 {
					hit, _ := strconv.Atoi(found[1])
					missed, _ := strconv.Atoi(found[2])
					pages = hit + missed
				}
				return nil
			})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return pages
	}
	for _, org := range []string{"", "org_0", "org_1"} {
		text, args := listing.CountText(org, "nobody", 20_000)
		if pages := read(text, args); pages == 0 || pages > 20 {
			t.Errorf("counting in %q reads %d pages", org, pages)
		}
		text, args = listing.AlongText(event.Search{Org: org, Words: []string{"nobody", "common"}}, "nobody",
			event.Cursor{Value: "nobody"}, 2000)
		if pages := read(text, args); pages == 0 || pages > 20 {
			t.Errorf("searching in %q reads %d pages", org, pages)
		}
		number := int64(engine.EveryOrg)
		if org != "" {
			number = engine.OrgNumber(org)
		}
		for _, term := range []syntax.QueryTerm{{Text: "nobody"}, {Text: "nobody", Whole: true}, {Text: "w000005"},
			{Text: "common", Whole: true}} {
			text, args := listing.RowsText(number, term, listing.Row{Term: term.Text}, 10)
			if pages := read(text, args); pages == 0 || pages > 20 {
				t.Errorf("%v in %q reads %d pages", term, org, pages)
			}
		}
	}
}
