package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/folding"
	"github.com/signet-idm/signet/internal/eventlog/store/listing"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// plan asks the database how it would answer a statement. PostgreSQL, which goes by what things cost, is told that
// sorting and reading everything is expensive: what matters is that it need not do so.
func plan(t *testing.T, s *Store, text string, args []any) string {
	t.Helper()
	var lines []string
	err := s.engine.Snapshot(t.Context(), func(x engine.Executor) error {
		explain, scanned := "EXPLAIN QUERY PLAN ", func(detail *string) []any {
			return []any{new(int), new(int), new(int), detail}
		}
		if s.cache == nil {
			explain, scanned = "EXPLAIN ", func(detail *string) []any { return []any{detail} }
			for _, setting := range []string{"enable_sort", "enable_seqscan", "enable_bitmapscan"} {
				if err := x.Exec(t.Context(), "SET LOCAL "+setting+" = off"); err != nil {
					return err
				}
			}
		}
		return x.Query(t.Context(), explain+text, args, func(scan engine.Scanner) error {
			lines = append(lines, "")
			return scan(scanned(&lines[len(lines)-1])...)
		})
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Join(lines, "\n")
}

// fill puts many rows into the tables, in the way of no command: only how they are found matters here.
func fill(t *testing.T, s *Store) {
	t.Helper()
	// PostgreSQL plans by how many there are; each statement is a moment's work, also on a busy machine
	all, portion := 40_000, 4_000
	numbers := "generate_series(FIRST, LAST) AS n(i)"
	digits := "lpad(i::text, 6, '0')"
	empty, bytes := "decode('', 'hex')", "BYTEA"
	if s.cache != nil {
		all, portion = 400, 400
		numbers = "(WITH RECURSIVE n(i) AS (SELECT FIRST UNION ALL SELECT i + 1 FROM n WHERE i < LAST) SELECT i FROM n)"
		digits = "printf('%06d', i)"
		empty, bytes = "x''", "BLOB"
	}
	common := "i, i, i, " + empty + ", '', 2, '{}'"
	columns := "id, org_id, sequence, created, changed, hash, key_id, shape, doc"
	statements := []string{
		"INSERT INTO users (" + columns +
			", standing, verified_email, email_word, email_order, state, type, user_name, name, email) SELECT 'usr_' || " + digits + ", 'org_' || (i % 4), " + common +
			", '', CASE WHEN i < 20000 THEN 'twin' ELSE 'd' || " + digits +
			" END, CASE WHEN i < 20000 THEN 'twin' ELSE 'd' || " + digits + " END, " + digits +
			", CASE WHEN i % 50 = 0 THEN 'removed' WHEN i % 20 = 1 THEN 'locked' ELSE 'active' END, CASE WHEN i % 50 = 0 THEN '' WHEN i % 9 = 0 THEN 'service' ELSE 'human' END, " +
			"'u' || " + digits + ", 'n' || " + digits + ", 'e' || " + digits + " FROM " + numbers,
		"INSERT INTO orgs (" + columns + ", standing, state, name) SELECT 'org_' || " + digits + ", 'org_' || " +
			digits + ", " + common +
			", '', CASE WHEN i % 50 = 0 THEN 'removed' WHEN i % 20 = 1 THEN 'inactive' ELSE 'active' END, 'n' || " +
			digits + " FROM " + numbers,
		"INSERT INTO idps (" + columns + ", state, type, name) SELECT 'idp_' || " + digits +
			", 'org_' || (i % 4), " + common +
			", 'active', 'jwt', 'n' || " + digits + " FROM " + numbers,
		"INSERT INTO apps (" + columns + ", standing, state, type, name) SELECT 'app_' || " + digits +
			", 'org_' || (i % 4), " + common + ", '', CASE WHEN i % 50 = 0 THEN 'removed' ELSE 'active' END, 'web', 'n' || " +
			digits + " FROM " + numbers,
		"INSERT INTO org_groups (" + columns + ", state, name) SELECT 'grp_' || " + digits + ", 'org_' || (i % 4), " +
			common + ", CASE WHEN i % 50 = 0 THEN 'removed' ELSE 'active' END, 'n' || " + digits + " FROM " + numbers,
		"INSERT INTO invitations (" + columns + ", state, email) SELECT 'inv_' || " + digits + ", 'org_' || (i % 4), " +
			common + ", CASE WHEN i % 7 = 0 THEN 'pending' ELSE 'accepted' END, '' FROM " + numbers,
		"INSERT INTO groupings (name, object_id) SELECT 'members/org_' || (i % 4), 'usr_' || " + digits +
			" FROM " + numbers,
		"INSERT INTO words (object_id, word, org_id) SELECT 'usr_' || " + digits +
			", CASE WHEN i % 3 = 0 THEN 'common' ELSE 'w' || " + digits + " END, 'org_' || (i % 4) FROM " + numbers,
		"INSERT INTO tokens (hash, id, kind, name, user_id, epoch, org_epoch, created, expires) " +
			"SELECT CAST('h' || " + digits + " AS " + bytes + "), 'pat_' || " + digits +
			", CASE WHEN i % 2 = 0 THEN 'pat' ELSE 'ses' END, '', 'usr_' || i % 100, 1, 1, 1, 9000000000000000 FROM " + numbers,
		// One organization and one actor were busy long ago, and are not any more: statistics mislead about them.
		"INSERT INTO events (position, object_id, sequence, org_id, type, payload, key_id, actor, request_id, time) SELECT i + 1, 'usr_' || (i % 10), i / 10 + 1, " +
			"CASE WHEN i < 20000 THEN 'org_0' ELSE 'org_' || (i % 3 + 1) END, CASE WHEN i % 2 = 0 THEN 'user.added.v1' ELSE 'org.added.v1' END, '{}', '', " +
			"CASE WHEN i < 20000 THEN 'usr_0' ELSE 'usr_' || (i % 3 + 1) END, '', i * 1000 FROM " + numbers,
	}
	for org := range 4 {
		number, its := engine.OrgNumber(fmt.Sprint("org_", org)), fmt.Sprintf(" WHERE i %% 4 = %d", org)
		for i, term := range []string{"'common'", "'x' || (i % 3)", "'w' || " + digits} {
			statements = append(statements,
				fmt.Sprintf("INSERT INTO word_blocks (org, term, block, m0, m1, m2, m3) SELECT DISTINCT CAST(%d AS BIGINT), %s, i / 8, %d, 0, 0, 0 FROM %s%s", number, term, []int{-2, 1, 3}[i], numbers, its))
		}
	}
	err := s.engine.Transact(t.Context(), func(x engine.Executor) error {
		for _, statement := range statements {
			for first := 0; first < all; first += portion {
				its := strings.NewReplacer("FIRST", strconv.Itoa(first), "LAST",
					strconv.Itoa(first+portion-1)).Replace(statement)
				if err := x.Exec(t.Context(), its); err != nil {
					return fmt.Errorf("%s: %w", its, err)
				}
			}
		}
		if s.cache == nil {
			return x.Exec(t.Context(), "ANALYZE") // as the server does by itself after so many rows
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestManyRows(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fill(t, s) // once: it takes longer than all that looks at them
		t.Run("lists are answered by an index", func(t *testing.T) { listsUseIndexes(t, s) })
		t.Run("objects are counted over an index alone", func(t *testing.T) { countsReadIndexesAlone(t, s) })
		t.Run("a search looks at a bounded number for one page", func(t *testing.T) { searchIsBounded(t, s) })
		t.Run("a search of a frequent term takes few rows",
			func(t *testing.T) { searchOfAFrequentTermTakesFewRows(t, s) })
		t.Run("a search by words looks at a bounded number for one page",
			func(t *testing.T) { searchBeforeIsBounded(t, s) })
		if db.Engine == testdb.Postgres { // which tells how much it has read
			t.Run("a search reads only its part of the index", func(t *testing.T) { searchReadsItsPart(t, s) })
		}
	})
}

// countsReadIndexesAlone counts everything that is counted anywhere: a kind whose index lacks a column would have every
// object read.
func countsReadIndexesAlone(t *testing.T, s *Store) {
	all := map[string]event.Counted{
		"users_listed_state":      {Kind: "user"},
		"users_services":          user.Services(),
		"apps_listed_state":       {Kind: "app"},
		"org_groups_listed_state": {Kind: "group"},
		"idps_listed_state":       {Kind: "idp"},
		"invitations_pending":     invitation.Open(),
	}
	var questions []event.Counted
	var want []int64
	for index, c := range all {
		c.Org = "org_1"
		questions = append(questions, c)
		text, args, err := listing.CountObjectsText(s.byName, []event.Counted{c})
		if err != nil {
			t.Fatal(err)
		}
		steps := plan(t, s, text, args)
		only := "USING COVERING INDEX " + index + " "
		if s.cache == nil {
			only = "Index Only Scan using " + index + " "
		}
		if !strings.Contains(steps, only) {
			t.Errorf("without %s: %s\n%s", only, text, steps)
		}
		// the same without an index
		each := "SELECT count(CASE WHEN org_id || '' = 'org_1' AND state || '' <> 'removed' AND " +
			cmp.Or(c.Column, "org_id") + " || '' = '" + cmp.Or(c.Value, "org_1") + "' THEN 1 END) FROM "
		var n int64
		err = s.engine.Query(t.Context(), each+s.byName[c.Kind].Table(), nil,
			func(scan engine.Scanner) error { return scan(&n) })
		if err != nil || n == 0 {
			t.Fatalf("%d of %s, %v", n, index, err)
		}
		want = append(want, n)
	}
	if got, err := s.Count(t.Context(), questions); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v: got %d, want %d, %v", questions, got, want, err)
	}
}

func listsUseIndexes(t *testing.T, s *Store) {
	good := func(index, text string, args []any) {
		t.Helper()
		steps := plan(t, s, text, args)
		if !strings.Contains(steps, index) {
			t.Errorf("without %s: %s\n%s", index, text, steps)
		}
		for _, bad := range []string{"Seq Scan", "SCAN s\n", "SCAN w\n", "SCAN d\n", "SCAN words\n",
			"SCAN word_blocks\n", "SCAN g\n", "SCAN t\n", "SCAN users\n", "SCAN events\n", "SCAN orgs\n", "SCAN idps\n",
			"Sort", "TEMP B-TREE"} {
			if strings.Contains(steps+"\n", bad) {
				t.Errorf("%s\n%s", text, steps)
			}
		}
	}
	some := map[string]string{event.State: "active"}
	few := map[string]string{event.State: "locked", "type": "service"}
	for _, q := range []event.Query{
		{Kind: "user", Org: "org_1"},
		{Kind: "user", Org: "org_1", Where: some},
		{Kind: "user", Org: "org_1", Where: few},
		{Kind: "user", Org: "org_1", By: "user_name"},
		{Kind: "user", Org: "org_1", By: "user_name", Prefix: "u01"},
		{Kind: "user", Org: "org_1", By: "user_name", Prefix: "u01", Where: few},
		{Kind: "user", Org: "org_1", By: "name", Prefix: "n01", Where: some},
		{Kind: "user", Org: "org_1", By: "email", Prefix: "e01"},
		{Kind: "user", Group: "members/org_1"},
		{Kind: "idp", Org: "org_1"},
		{Kind: "idp", Org: "org_1", By: "name", Prefix: "n0"},
		{Kind: "idp", Org: "org_1", By: "name", Prefix: "n0", Where: map[string]string{"type": "oidc"}},
		{Kind: "org"},
		{Kind: "org", Where: map[string]string{event.State: "inactive"}},
		{Kind: "org", By: "name"},
		{Kind: "org", By: "name", Prefix: "n01"},
	} {
		q.Limit = 50
		for _, after := range []string{"", "011111"} {
			if after != "" {
				q.After = event.Cursor{Value: cmp.Or(q.By, "x")[:1] + after,
					ID: map[event.Kind]string{"user": "usr_", "org": "org_", "idp": "idp_"}[q.Kind] + after}
			}
			l, err := listing.New(s.byName[q.Kind], q)
			if err != nil {
				t.Fatal(err)
			}
			index := s.byName[q.Kind].Table() + "_" + cmp.Or(q.By, "listed")
			if q.Group != "" || s.cache == nil {
				index = "" // by the primary key, or whatever is cheaper
			}
			good(index, l.Farthest(), l.Args(maxLooked-1))
			var last *event.Cursor
			err = s.engine.Query(t.Context(), l.Farthest(), l.Args(maxLooked-1), func(scan engine.Scanner) error {
				last = &event.Cursor{}
				return scan(&last.Value, &last.ID)
			})
			if err != nil {
				t.Fatal(err)
			}
			l.UpTo(last)
			l.Where()
			if q.Where["type"] == "service" && q.By == "" && s.cache != nil {
				index = "users_services" // SQLite looks at the values, and these have an index of their own
			}
			good(index, l.Text(engine.AllColumns(s.byName[q.Kind])), l.Args(51))
		}
	}
	for _, l := range []struct {
		line  line
		index string
	}{
		{line{[]string{"position"}, nil, 1, 39000}, "events_pkey"},
		{line{[]string{"org_id", "position"}, []any{"org_0"}, 1, 39000}, "events_org"},
		{line{[]string{"object_id", "sequence"}, []any{"usr_1"}, 1, 3000}, "events_object"},
	} {
		if s.cache != nil && l.index == "events_pkey" {
			l.index = "INTEGER PRIMARY KEY"
		}
		for _, oldest := range []bool{true, false} {
			q := &event.EventQuery{OldestFirst: oldest, Types: []event.Type{"org.added.v1"}, From: 5, To: 1e9}
			good(l.index+" ", l.line.farthestText(q), append(l.line.bounds(), int64(maxLooked-1)))
			chosen, values := choice(q)
			good(l.index+" ", l.line.text(q, chosen), append(append(l.line.bounds(), values...), int64(51)))
			good(l.index+" ", l.line.text(q, ""), append(l.line.bounds(), int64(51)))
		}
	}
	good("users_email_order", recordsWhereText(s.byName["user"], "verified_email", "email_order"),
		[]any{"org_1", "twin", int64(1)})
	inOrg := event.Lookup{Kind: "user", Org: "org_1", Column: "verified_email", By: "email_order",
		Values: []string{"twin"}}
	anywhere := event.Lookup{Kind: "user", Anywhere: true, Column: "email_word", By: "email_order",
		Values: []string{"twin", "nobody", "d000001"}}
	for index, ways := range map[string][]event.Lookup{"users_email_order": {inOrg}, "users_email_word": {anywhere},
		"users_email_order ": {inOrg, anywhere}} {
		var q finding
		for i, w := range ways {
			q.holder(i, [32]byte{})
			if err := q.first(s.byName[w.Kind], i, w, s.forms); err != nil {
				t.Fatal(err)
			}
		}
		good(strings.TrimSpace(index), q.text.String(), q.args)
	}
	for org, index := range map[string]string{"org_1": "words_org", "": "words_all"} {
		q := event.Search{Org: org, Words: []string{"common", "w01", "w02"}}
		for _, after := range []event.Cursor{{Value: "w01"}, {Value: "w012345", ID: "usr_012345"}} {
			text, args := listing.AlongText(q, "w01", after, 50)
			good(index, text, args)
		}
		text, args := listing.CountText(org, "common", 500)
		good(index, text, args)
	}
	// of one term both are as good
	blocks := map[int64]string{engine.EveryOrg: "word_blocks_term", engine.OrgNumber("org_1"): "word_blocks_"}
	if s.cache != nil {
		blocks[engine.OrgNumber("org_1")] = "word_blocks USING PRIMARY KEY"
	}
	for org, index := range blocks {
		for _, term := range []syntax.QueryTerm{{Text: "common"}, {Text: "w0", Whole: true}} {
			text, args := listing.RowsText(org, term, listing.Row{Org: org, Term: "common", Block: 3}, 50)
			good(index, text, args)
		}
	}
	good("", timeAtText, []any{int64(20000)})
	good("events_object", lastOfText, []any{"usr_1"})
	good("events_object", positionOfText, []any{"usr_1", int64(2000)})
	good("tokens_listed", tokensOfText, []any{"usr_1", "pat", "", int64(1), int64(50)})
	for _, k := range s.kinds {
		if k.Shape() == 1 { // there is none of an older shape, and nobody looks
			continue
		}
		good(fmt.Sprint(k.Table(), "_below_", migrations.Below(k.Table())), folding.OutdatedText(k),
			[]any{int64(1), "", int64(1)})
	}
}
