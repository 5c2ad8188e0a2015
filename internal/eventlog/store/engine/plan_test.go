package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestPlansOfSmallTablesSuitLargeOnes: PostgreSQL keeps a plan that it has made while there were few rows. It must not
// read the whole table, or a whole index, for the few rows that are looked for.
func TestPlansOfSmallTablesSuitLargeOnes(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		opened, err := Open(t.Context(), Options{Database: db.URL})
		testkit.Must(t, err)
		defer opened.Close()
		testkit.Must(t, opened.Join(t.Context()))
		e := opened.(*pgEngine)
		readers, err := e.pool.Acquire(t.Context())
		testkit.Must(t, err)
		defer readers.Release()
		for who, conn := range map[string]*pgx.Conn{"writer": e.conn, "readers": readers.Conn()} {
			_, err := conn.Exec(t.Context(), "CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL); "+
				"INSERT INTO people SELECT 'usr_' || n, repeat('x', 300) FROM generate_series(1, 64) n; ANALYZE people; "+
				"PREPARE rename(text[], text[]) AS UPDATE people p SET name = v.name FROM unnest($1, $2) v(id, name) WHERE p.id = v.id",
				pgx.QueryExecModeSimpleProtocol)
			testkit.Must(t, err)
			rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE rename('{usr_1}', '{Jo}')",
				pgx.QueryExecModeSimpleProtocol)
			testkit.Must(t, err)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			testkit.Must(t, err)
			if !slices.ContainsFunc(plan,
				func(line string) bool { return strings.Contains(line, "Index Cond: (id = v.id)") }) {
				t.Errorf("%s:\n%s", who, strings.Join(plan, "\n"))
			}
			_, err = conn.Exec(t.Context(), "DROP TABLE people")
			testkit.Must(t, err)
		}
	})
}
