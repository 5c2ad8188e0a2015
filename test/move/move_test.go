// Package move holds what signet move promises of databases, whatever is in them: nothing is left out, nothing is half.
package move

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // to look at the tables without the store
	_ "modernc.org/sqlite"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// silent shows nobody how far a move has come.
func silent(string, int64) *progress.Bar { return nil }

// place is a database with its key.
type place struct {
	testdb.Database
	master secret.MasterKey
}

// open opens the place; it is closed with the test at the latest.
func (p place) open(t *testing.T) *store.Store {
	t.Helper()
	st, _, err := store.Open(t.Context(),
		store.Options{Database: p.URL, SealInterval: time.Hour, Kinds: model.Kinds, Master: p.master,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func (p place) sql(t *testing.T) *sql.DB {
	t.Helper()
	driver, address := "pgx", p.URL
	if p.Engine == testdb.SQLite {
		driver, address = "sqlite", "file:"+p.URL+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (p place) exec(t *testing.T, statements ...string) {
	t.Helper()
	db := p.sql(t)
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// content is every row of every table as text.
func (p place) content(t *testing.T) []string {
	t.Helper()
	db := p.sql(t)
	defer db.Close()
	list := "SELECT name FROM sqlite_schema WHERE type = 'table'"
	if p.Engine == testdb.Postgres {
		list = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	var tables []string
	rows, err := db.QueryContext(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		tables = append(tables, "")
		if err := rows.Scan(&tables[len(tables)-1]); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for _, table := range tables {
		all = append(all, "table "+table)
		query := "SELECT * FROM " + table
		if table == "meta" {
			query += " WHERE name <> 'moved_to'" // about the one database
		}
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range dest {
			dest[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				t.Fatal(err)
			}
			line := table
			for i, v := range values {
				if b, ok := v.([]byte); ok {
					v = hex.EncodeToString(b)
				}
				line += fmt.Sprintf(" %s=%v", columns[i], v)
			}
			all = append(all, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}

// crowd writes users and changes of them into a log.
func crowd(t *testing.T, st *store.Store, from, users, changes int) {
	t.Helper()
	var all sync.WaitGroup
	for i := from; i < from+users; i++ {
		all.Go(func() {
			id, org, name := fmt.Sprintf("usr_%06d", i), fmt.Sprintf("org_%d", i%3), fmt.Sprintf("Grüße %06d", i)
			err := st.Do(context.Background(), event.Command{
				Origin: event.Origin{Actor: event.System, RequestID: "req_test"},
				Write:  []event.Ref{user.Kind.Ref(id)},
				Claims: []event.Claim{user.NameClaim(org, syntax.NameKey(name))},
				Decide: func(tx *event.Tx) error {
					u, err := user.AddHuman(tx, id, org, &user.NewHuman{
						UserName:      name,
						Email:         fmt.Sprintf("u%d@example.org", i),
						EmailVerified: i%2 == 0,
						Profile:       user.Profile{FirstName: "Ж", LastName: "𝔏", DisplayName: name},
					})
					for c := range changes {
						if err == nil {
							nick := fmt.Sprint("nick ", c)
							err = u.Append(user.ProfileChanged{Personal: user.ProfileFacts{NickName: &nick}})
						}
					}
					if i%5 == 0 && err == nil {
						tx.PutRow(event.Row{RowKey: event.SecretOf(id), Value: []byte{0, 255, byte(i)}})
						tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Followers, Key: id}, Value: []byte{}})
					}
					return err
				},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// peopled opens the place with users in it, as a server leaves it that was stopped in order: all of its log is sealed.
func (p place) peopled(t *testing.T, users, changes int) *store.Store {
	t.Helper()
	st := p.open(t)
	crowd(t, st, 0, users, changes)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return p.open(t)
}

// ways runs a test for every way a move can go.
func ways(t *testing.T, test func(t *testing.T, from, to place)) {
	for _, way := range [][2]string{{testdb.SQLite, testdb.Postgres}, {testdb.Postgres, testdb.SQLite}} {
		t.Run("from "+way[0]+" to "+way[1], func(t *testing.T) {
			t.Parallel()
			master := secret.NewMasterKey()
			test(t, place{testdb.New(t, way[0]), master}, place{testdb.New(t, way[1]), master})
		})
	}
}

func wantSame(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%d rows and tables, want %d; the first that differs is\n%s\nand should be\n%s", len(got),
				len(want), got[i], want[i])
		}
	}
	t.Fatalf("%d rows and tables, want %d", len(got), len(want))
}

func TestAMoveCarriesEverythingAndBack(t *testing.T) {
	ways(t, func(t *testing.T, from, to place) {
		source := from.peopled(t, 60, 3)
		before := from.content(t)
		moved, err := source.MoveTo(t.Context(), to.URL, silent)
		if err != nil {
			t.Fatal(err)
		}
		if moved.Events != 240 || moved.Objects != 60 {
			t.Errorf("%+v", moved)
		}
		wantSame(t, from.content(t), before)
		wantSame(t, to.content(t), before)

		// The log goes on where it was.
		target := to.open(t)
		crowd(t, target, 60, 5, 1)
		if position, err := target.Position(t.Context()); position != 250 || err != nil {
			t.Errorf("the log is at %d, %v", position, err)
		}
		if report, err := target.RebuildCheck(t.Context()); err != nil || len(report.Differences) > 0 {
			t.Errorf("%v, %v", report.Differences, err)
		}
		back := place{testdb.New(t, from.Engine), from.master}
		if _, err := target.MoveTo(t.Context(), back.URL, silent); err != nil {
			t.Fatal(err)
		}
		wantSame(t, back.content(t), to.content(t))
		back.open(t)
		wantSame(t, schema(t, back), schema(t, from))
		wantSame(t, schema(t, to), schema(t, place{fresh(t, to), to.master}))
	})
}

// fresh is a database that was never moved into.
func fresh(t *testing.T, like place) testdb.Database {
	t.Helper()
	db := testdb.New(t, like.Engine)
	place{db, like.master}.open(t)
	return db
}

// schema is every column and index as text.
func schema(t *testing.T, p place) (all []string) {
	t.Helper()
	db := p.sql(t)
	defer db.Close()
	list := "SELECT coalesce(sql, '') FROM sqlite_schema"
	if p.Engine == testdb.Postgres {
		list = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() UNION ALL " +
			"SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) FROM information_schema.columns WHERE table_schema = current_schema()"
	}
	rows, err := db.QueryContext(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		all = append(all, "")
		if err := rows.Scan(&all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %q", all)
	}
	slices.Sort(all)
	return all
}

func TestAMoveIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, from, to place)
		is      error
		says    string
	}{
		{name: "when the target holds an installation", is: store.ErrNotEmpty,
			prepare: func(t *testing.T, _, to place) {
				st := to.open(t)
				crowd(t, st, 0, 1, 0)
				st.Close()
			}},
		{name: "when the target was started on and holds no event yet", is: store.ErrNotEmpty,
			prepare: func(t *testing.T, _, to place) { to.open(t).Close() }},
		{name: "when the target has lost its key", is: store.ErrNotEmpty,
			prepare: func(t *testing.T, _, to place) {
				st := to.open(t)
				crowd(t, st, 0, 1, 0)
				st.Close()
				to.exec(t, "DELETE FROM meta")
			}},
		{
			name:    "when there is a table that the target would not have",
			says:    "the table notes does not belong to Signet",
			prepare: func(t *testing.T, from, _ place) { from.exec(t, "CREATE TABLE notes (id TEXT PRIMARY KEY)") },
		},
		{
			name:    "when there is a column that the target would not have",
			says:    "the column note of the table claims is different in the target",
			prepare: func(t *testing.T, from, _ place) { from.exec(t, "ALTER TABLE claims ADD COLUMN note TEXT") },
		},
		{
			name: "when there is a type that only one engine knows",
			says: "the column weight of the table users has the type ",
			prepare: func(t *testing.T, from, _ place) {
				from.exec(t, "ALTER TABLE users ADD COLUMN weight DOUBLE PRECISION")
			},
		},
		{name: "when the data is of a newer program", says: "use the newest program for both",
			prepare: func(t *testing.T, from, _ place) {
				from.exec(t, "INSERT INTO schema_version (version, name) SELECT max(version) + 1, 'later' FROM schema_version")
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways(t, func(t *testing.T, from, to place) {
				source := from.peopled(t, 2, 0)
				c.prepare(t, from, to)
				before, there := from.content(t), to.content(t)
				_, err := source.MoveTo(t.Context(), to.URL, silent)
				if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
				wantSame(t, from.content(t), before)
				wantSame(t, to.content(t), there)
				if _, err := store.HasData(t.Context(), to.URL); err != nil {
					t.Errorf("the target is marked: %v", err)
				}
			})
		})
	}
}

// TestAMoveNamesWhatCannotBeKept: SQLite takes anything for text, PostgreSQL does not.
func TestAMoveNamesWhatCannotBeKept(t *testing.T) {
	master := secret.NewMasterKey()
	for _, c := range []struct{ name, statement, says string }{
		{"a NUL character", "UPDATE events SET actor = 'a' || char(0) || 'b' WHERE position = 2",
			"reading events: the column actor of the row with position 2 contains a NUL character"},
		{"broken text", "UPDATE groupings SET object_id = CAST(x'ff41' AS TEXT)",
			`reading groupings: the column object_id of the row with name "group", object_id "\xffA" is not valid UTF-8`},
		{"bytes for text", "UPDATE users SET doc = x'00' WHERE id = 'usr_000001'",
			`reading users: the column doc of the row with id "usr_000001" is not text but bytes`},
		{"text for bytes", "UPDATE claims SET digest = 'abc' WHERE object_id = 'usr_000001'",
			`reading claims: the column digest of the row with digest "abc" is text`},
		{"a number for text", "UPDATE secrets SET value = 5",
			`reading secrets: the column value of the row with key "usr_000000/secret" is a number`},
		{"a fraction for a number", "UPDATE users SET created = 1.5 WHERE id = 'usr_000001'",
			`reading users: the column created of the row with id "usr_000001" is a float64`},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := place{testdb.New(t, testdb.SQLite), master}, place{testdb.New(t, testdb.Postgres), master}
			source := from.peopled(t, 2, 0)
			from.exec(t, "INSERT INTO groupings (name, object_id) VALUES ('group', 'usr_000001')", c.statement)
			if _, err := source.MoveTo(t.Context(), to.URL, silent); err == nil ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if _, err := store.HasData(t.Context(), to.URL); !errors.Is(err, store.ErrHalfMoved) {
				t.Errorf("the target: %v", err)
			}
		})
	}
}

// TestAMoveThatIsCutOffStartsAnew: half an installation is nobody's, and in nobody's way.
func TestAMoveThatIsCutOffStartsAnew(t *testing.T) {
	ways(t, func(t *testing.T, from, to place) {
		source := from.peopled(t, 40, 2)
		before := from.content(t)
		// PostgreSQL notices a connection that was cut off some time later, and keeps its locks until then.
		move := func(ctx context.Context, report func(string, int64) *progress.Bar) (err error) {
			testkit.Await(t, "the move before is over", func() bool {
				_, err = source.MoveTo(ctx, to.URL, report)
				return err == nil || !strings.Contains(err.Error(), "is being moved")
			})
			return err
		}
		for _, part := range []string{"rows carried", "rows compared", "events folded"} {
			ctx, cancel := context.WithCancel(t.Context())
			err := move(ctx, func(what string, _ int64) *progress.Bar {
				if what == part {
					cancel()
				}
				return nil
			})
			cancel()
			if err == nil || !strings.Contains(err.Error(), "it starts over") {
				t.Errorf("cut off before %s: %v", part, err)
			}
			refused(t, to)
			wantSame(t, from.content(t), before)
		}
		from.exec(t, "UPDATE users SET sequence = 1 WHERE id = 'usr_000039'")
		if err := move(t.Context(), silent); err == nil ||
			!strings.Contains(err.Error(),
				"the state does not match the log (run signet rebuild --check): usr_000039") {
			t.Errorf("a state that is not what the log says: %v", err)
		}
		refused(t, to)
		if _, err := source.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := source.MoveTo(t.Context(), to.URL, silent); err != nil {
			t.Fatal(err)
		}
		wantSame(t, to.content(t), before)
		wantSame(t, schema(t, to), schema(t, place{fresh(t, to), to.master}))
	})
}

// refused checks that nobody takes half a database for one.
func refused(t *testing.T, p place) {
	t.Helper()
	if _, err := store.HasData(t.Context(), p.URL); !errors.Is(err, store.ErrHalfMoved) {
		t.Errorf("looking at half a database: %v", err)
	}
	for _, readOnly := range []bool{false, true} {
		st, _, err := store.Open(t.Context(),
			store.Options{Database: p.URL, Kinds: model.Kinds, Master: p.master, ReadOnly: readOnly})
		if !errors.Is(err, store.ErrHalfMoved) {
			t.Errorf("opening half a database: %v", err)
		}
		if err == nil {
			st.Close()
		}
	}
}

// TestAMoveThatBreaksInTheMidst leaves some rows of a table behind, for the embedded database is filled in many
// transactions.
func TestAMoveThatBreaksInTheMidst(t *testing.T) {
	master := secret.NewMasterKey()
	from, to := place{testdb.New(t, testdb.SQLite), master}, place{testdb.New(t, testdb.SQLite), master}
	source := from.peopled(t, 30, 400)
	before := from.content(t)
	from.exec(t, "UPDATE events SET request_id = request_id || char(0) WHERE position = 11000")
	if _, err := source.MoveTo(t.Context(), to.URL, silent); err == nil {
		t.Fatal("it did not break")
	}
	left := 0
	for _, line := range to.content(t) {
		if strings.HasPrefix(line, "events ") {
			left++
		}
	}
	if left == 0 || left >= 11_000 {
		t.Errorf("%d events are left: this test does not break what it should", left)
	}
	refused(t, to)
	from.exec(t, "UPDATE events SET request_id = 'req_test' WHERE position = 11000")
	if _, err := source.MoveTo(t.Context(), to.URL, silent); err != nil {
		t.Fatal(err)
	}
	wantSame(t, to.content(t), before)
	wantSame(t, schema(t, to), schema(t, from))
}

func TestAMoveIsAlone(t *testing.T) {
	master := secret.NewMasterKey()
	from, to := place{testdb.New(t, testdb.Postgres), master}, place{testdb.New(t, testdb.Postgres), master}
	source := from.peopled(t, 5, 0)
	node := from.open(t)
	if _, err := source.MoveTo(t.Context(), to.URL, silent); !errors.Is(err, store.ErrInUse) {
		t.Fatalf("beside a node: %v", err)
	}
	node.Close()

	other := place{testdb.New(t, testdb.SQLite), master}.open(t)
	crowd(t, other, 100, 5, 0)
	for _, part := range []string{"rows carried", "rows compared", "events folded"} {
		_, err := source.MoveTo(t.Context(), to.URL, func(what string, _ int64) *progress.Bar {
			if what == part {
				if _, err := other.MoveTo(t.Context(), to.URL, silent); !errors.Is(err, store.ErrInUse) {
					t.Errorf("a second move into the same database, before %s: %v", part, err)
				}
				if part != "rows carried" { // a node may wait for what the filling has locked
					refused(t, to)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		to.exec(t, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
	}
}

// TestAMoveLooksAtWhatHasArrived: what the target has made of the rows is compared with what was sent.
func TestAMoveLooksAtWhatHasArrived(t *testing.T) {
	for _, c := range []struct{ name, part, statement, says string }{
		{"a row is missing", "rows compared", "DELETE FROM secrets WHERE key = 'usr_000005/secret'",
			"the table secrets was not copied correctly: 3 rows of 4"},
		{"a row is one too many", "rows compared",
			"INSERT INTO groupings (name, object_id) VALUES ('more', 'usr_000001')",
			"the table groupings was not copied correctly"},
		{"a byte is another", "rows compared", "UPDATE keys SET expires = 7 WHERE key = (SELECT min(key) FROM keys)",
			"the table keys was not copied correctly: 20 rows of 20"},
		{"the mark is another's", "events folded", "UPDATE meta SET value = '' WHERE name = 'moving'",
			"another move into the same database has started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways(t, func(t *testing.T, from, to place) {
				source := from.peopled(t, 20, 0)
				_, err := source.MoveTo(t.Context(), to.URL, func(what string, _ int64) *progress.Bar {
					if what == c.part {
						to.exec(t, c.statement)
					}
					return nil
				})
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
				refused(t, to)
			})
		})
	}
}

// TestAMoveCarriesOneMoment: what is deleted or written beside it, such as what has expired, is as it was when the move
// began.
func TestAMoveCarriesOneMoment(t *testing.T) {
	master := secret.NewMasterKey()
	from, to := place{testdb.New(t, testdb.Postgres), master}, place{testdb.New(t, testdb.SQLite), master}
	source := from.peopled(t, 20, 0)
	before := from.content(t)
	_, err := source.MoveTo(t.Context(), to.URL, func(what string, _ int64) *progress.Bar {
		if what == "rows carried" {
			from.exec(t, "DELETE FROM secrets WHERE key = 'usr_000005/secret'",
				"INSERT INTO throttle (key, value, expires) VALUES ('new', '', 0)")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, to.content(t), before)
}
