package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
)

// Table is a table as the database itself describes it.
type Table struct {
	Name    string
	Columns []Column
	Key     []string // the columns of its primary key, in their order
}

// Column is one of a table's.
type Column struct {
	Name string
	Type string // one of the three that there are in both engines, or what the database calls it
	Null bool
}

// The types of columns, by the names that the migrations give them.
const (
	Text    = migrations.Text
	Integer = migrations.Integer
	Bytes   = migrations.Bytes
)

// Rows are the rows of a table, one after the other. What one holds may be overwritten by the next.
type Rows = iter.Seq2[[]any, error]

// describe reads tables, columns, types, whether they may be NULL, and their number in the primary key, as text asks
// for them. types are the engine's own words.
func describe(ctx context.Context, x Executor, text string, types map[string]string) ([]Table, error) {
	var tables []Table
	err := x.Query(ctx, text, nil, func(scan Scanner) error {
		var table string
		var c Column
		var filled, ordinal int64
		if err := scan(&table, &c.Name, &c.Type, &filled, &ordinal); err != nil {
			return err
		}
		if len(tables) == 0 || tables[len(tables)-1].Name != table {
			tables = append(tables, Table{Name: table})
		}
		t := &tables[len(tables)-1]
		if known, ok := types[c.Type]; ok {
			c.Type = known
		}
		c.Null = filled == 0 && ordinal == 0
		t.Columns = append(t.Columns, c)
		if ordinal > 0 {
			for int64(len(t.Key)) < ordinal {
				t.Key = append(t.Key, "")
			}
			t.Key[ordinal-1] = c.Name
		}
		return nil
	})
	return tables, err
}

// ColumnNames are those of a table, for a statement.
func (t Table) ColumnNames() string { return strings.Join(t.names(), ", ") }

func (t Table) names() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// errEnough ends a query whose reader has seen enough.
var errEnough = errors.New("enough")

// ReadTable gives all rows of a table in the order of its primary key, with int64, string, []byte or nil for values. A
// value that is not of its column's type, or that not every engine can keep, is an error.
func ReadTable(ctx context.Context, x Executor, t Table) Rows {
	return func(yield func([]any, error) bool) {
		row, dest := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range row {
			dest[i] = &row[i]
		}
		text := "SELECT " + t.ColumnNames() + " FROM " + t.Name
		if len(t.Key) > 0 {
			text += " ORDER BY " + strings.Join(t.Key, ", ")
		}
		err := x.Query(ctx, text, nil, func(scan Scanner) error {
			if err := scan(dest...); err != nil {
				return err
			}
			if err := t.check(row); err != nil {
				return err
			}
			if !yield(row, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("reading %s: %w", t.Name, err))
		}
	}
}

// check sees whether every value is of its column's type. SQLite itself does not.
func (t Table) check(row []any) error {
	for i, c := range t.Columns {
		wrong := ""
		switch v := row[i].(type) {
		case nil:
			if !c.Null {
				wrong = "is missing"
			}
		case int64:
			if c.Type != Integer {
				wrong = "is a number"
			}
		case string:
			switch {
			case c.Type != Text:
				wrong = "is text"
			case strings.IndexByte(v, 0) >= 0:
				wrong = "contains a NUL character"
			case !utf8.ValidString(v):
				wrong = "is not valid UTF-8"
			}
		case []byte:
			if c.Type != Bytes {
				wrong = "is not text but bytes"
			}
			if v == nil {
				row[i] = []byte{} // nil would be NULL
			}
		default:
			wrong = fmt.Sprintf("is a %T", v)
		}
		if wrong != "" {
			return fmt.Errorf("the column %s of the row with %s %s, so it cannot be stored: correct it first", c.Name,
				t.keyOf(row), wrong)
		}
	}
	return nil
}

// keyOf says which row it is.
func (t Table) keyOf(row []any) string {
	var parts []string
	for i, c := range t.Columns {
		for _, k := range t.Key {
			if k != c.Name {
				continue
			}
			switch v := row[i].(type) {
			case string:
				parts = append(parts, c.Name+" "+strconv.Quote(v))
			case []byte:
				parts = append(parts, c.Name+" "+hex.EncodeToString(v))
			default:
				parts = append(parts, fmt.Sprint(c.Name, " ", v))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// index is one that was taken away while its table is filled.
type index struct{ name, definition string }

// withoutIndexes lets fill run while the tables have no indexes but their primary keys, and makes them again: once over
// all rows instead of at every row. text asks for names and definitions.
func withoutIndexes(ctx context.Context, x func(func(Executor) error) error, text string, tables []Table,
	indexing func(int64) func(), fill func() error) error {
	of := map[string]bool{}
	for _, t := range tables {
		of[t.Name] = true
	}
	var indexes []index
	err := x(func(x Executor) error {
		err := x.Query(ctx, text, nil, func(scan Scanner) error {
			var table string
			var i index
			err := scan(&table, &i.name, &i.definition)
			if of[table] {
				indexes = append(indexes, i)
			}
			return err
		})
		for _, i := range indexes {
			if err == nil {
				err = x.Exec(ctx, "DROP INDEX "+i.name)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	made := indexing(int64(len(indexes)))
	for _, i := range indexes {
		if err := x(func(x Executor) error { return x.Exec(ctx, i.definition) }); err != nil {
			return fmt.Errorf("making the index %s: %w", i.name, err)
		}
		made()
	}
	return nil
}
