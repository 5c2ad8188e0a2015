package migrations

import "strings"

// The types of columns in the migrations.
const (
	Text    = "TEXT"
	Integer = "BIGINT"
	Bytes   = "BYTEA"
)

// Dialect is how an engine writes what a migration says.
type Dialect struct {
	Types    map[string]string // of columns, by the type in the migration; a type that is missing stays
	RowID    string            // the type of a BIGINT that is the primary key by itself
	Keyed    string            // what ends a table that is stored in its primary key
	Postgres bool              // the engine runs what is for PostgreSQL alone
}

// In gives the statement for an engine; empty if it is for the other engine.
func (c Change) In(d Dialect) string { return d.write(c, c.text) }

// Again is In for a statement that may have been run before: then it does nothing.
func (c Change) Again(d Dialect) string { return d.write(c, c.again) }

// write replaces the types of columns and the mark at the end of a table. Everything else is the same on both engines,
// and stays as it is: SQLite keeps the text of a table, with its white space.
func (d Dialect) write(c Change, text string) string {
	if c.Postgres && !d.Postgres {
		return ""
	}
	var b strings.Builder
	at := 0
	for _, column := range columnsOf(c.Kind, text) {
		its := column.Type
		if other, ok := d.Types[its]; ok {
			its = other
		}
		if column.Key && column.Type == Integer {
			its = d.RowID
		}
		b.WriteString(text[at:column.from] + its)
		at = column.to
	}
	rest, keyed := strings.CutSuffix(text[at:], keyedMark)
	b.WriteString(rest)
	if keyed {
		b.WriteString(d.Keyed)
	}
	return b.String()
}
