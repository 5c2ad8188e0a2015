package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"
)

func (e *pgEngine) Tables(ctx context.Context, x Executor) ([]Table, error) {
	return describe(ctx, x, `SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::int::bigint,
		coalesce(array_position(string_to_array(i.indkey::text, ' '), a.attnum::text), 0)::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') ORDER BY c.relname, a.attnum`,
		map[string]string{"text": Text, "bigint": Integer, "bytea": Bytes})
}

const pgIndexes = `SELECT t.relname::text, i.relname::text, pg_get_indexdef(x.indexrelid)
	FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
	WHERE n.nspname = current_schema() AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = x.indexrelid) ORDER BY i.relname`

// Fill is one transaction: where it fails, the tables are as empty as they were.
func (e *pgEngine) Fill(ctx context.Context, tables []Table, rows func(Table) Rows, indexing func(int64) func()) error {
	return e.Alone(ctx, func(x Executor) error {
		same := func(f func(Executor) error) error { return f(x) }
		err := withoutIndexes(ctx, same, pgIndexes, tables, indexing, func() error {
			for _, t := range tables {
				next, stop := iter.Pull2(rows(t))
				source := &copySource{next: next}
				_, err := x.(pgTx).tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.names(), source)
				stop()
				if source.err != nil {
					return source.err // PostgreSQL only repeats it
				}
				if err != nil {
					return fmt.Errorf("filling %s: %w", t.Name, err)
				}
			}
			return nil
		})
		for _, t := range tables {
			if err == nil {
				err = x.Exec(ctx, "ANALYZE "+t.Name) // or the first queries are planned for empty tables
			}
		}
		return err
	})
}

// copySource hands rows to COPY.
type copySource struct {
	next func() ([]any, error, bool)
	row  []any
	err  error
}

func (s *copySource) Next() bool {
	var more bool
	s.row, s.err, more = s.next()
	return more && s.err == nil
}

func (s *copySource) Values() ([]any, error) { return s.row, nil }
func (s *copySource) Err() error             { return s.err }

func (e *sqliteEngine) Tables(ctx context.Context, x Executor) ([]Table, error) {
	return describe(ctx, x, `SELECT t.name, c.name, c.type, c."notnull", c.pk FROM sqlite_schema t, pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY t.name, c.cid`,
		map[string]string{"INTEGER": Integer, "BLOB": Bytes})
}

const sqliteIndexes = "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"

// How much is written at once: rows in a transaction, values in a statement.
const (
	fillRows   = 10_000
	fillValues = 600
)

// Fill is many transactions, or the write-ahead log would grow as large as the database: where it fails, some of the
// rows are there, and some indexes are not.
func (e *sqliteEngine) Fill(ctx context.Context, tables []Table, rows func(Table) Rows,
	indexing func(int64) func()) error {
	each := func(f func(Executor) error) error { return e.Transact(ctx, f) }
	return withoutIndexes(ctx, each, sqliteIndexes, tables, indexing, func() error {
		for _, t := range tables {
			next, stop := iter.Pull2(rows(t))
			err := e.fill(ctx, t, next)
			stop()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *sqliteEngine) fill(ctx context.Context, t Table, next func() ([]any, error, bool)) error {
	width := len(t.Columns)
	together := max(1, fillValues/width)
	one := "(" + Placeholders(width) + ")"
	insert := func(n int) string {
		return "INSERT INTO " + t.Name + " (" + t.ColumnNames() + ") VALUES " +
			strings.TrimSuffix(strings.Repeat(one+", ", n), ", ")
	}
	many := insert(together)
	values := make([]any, 0, together*width)
	var unread error
	for more := true; more; {
		err := e.Transact(ctx, func(x Executor) error {
			for range fillRows / together {
				values = values[:0]
				for more && len(values) < cap(values) {
					var row []any
					if row, unread, more = next(); unread != nil {
						return unread
					}
					values = append(values, row...)
				}
				text := many
				if n := len(values) / width; n == 0 {
					return nil
				} else if n < together {
					text = insert(n)
				}
				if err := x.Exec(ctx, text, values...); err != nil {
					return err
				}
			}
			return nil
		})
		if unread != nil {
			return unread
		}
		if err != nil {
			return fmt.Errorf("filling %s: %w", t.Name, err)
		}
	}
	return nil
}
