package migrations

import (
	"regexp"
	"strings"
)

// Kind is what a statement does to the schema.
type Kind int

// The kinds. Other is for what takes as long as its tables are large, and stops those who write meanwhile.
const (
	Other Kind = iota
	CreateTable
	AddColumn
	CreateIndex
	DropIndex
	Insert
	SetRoom // how much of a page new rows leave free; rows that are there stay where they are
)

// Change is a statement, understood.
type Change struct {
	Kind     Kind
	Table    string // empty for DropIndex and Other
	Name     string // of the index or column
	Postgres bool   // it is for PostgreSQL alone

	text, again string // as in the file, without comments; and in words that do nothing where it was run before
}

// Column is one that a statement makes.
type Column struct {
	Name, Type string
	Key        bool // it is the primary key by itself

	from, to int // where the type is in the text
}

// Marks in the files for what SQL of both engines has no word for.
const (
	postgresMark = "/* POSTGRES */" // the statement is for PostgreSQL alone
	keyedMark    = "/* KEYED */"    // the table is stored in its primary key; at its end
)

var forms = []struct {
	kind        Kind
	form        *regexp.Regexp // its groups are the table, and the name
	name, table int
	plain, with string // how to make it repeatable
}{
	{CreateTable, regexp.MustCompile(`^CREATE TABLE (\w+) \(`), 0, 1, "CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "},
	{AddColumn, regexp.MustCompile(`^ALTER TABLE (\w+) ADD COLUMN (\w+) [^,]*$`), 2, 1, " ADD COLUMN ",
		" ADD COLUMN IF NOT EXISTS "},
	{CreateIndex, regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+) `), 1, 2, " INDEX ",
		" INDEX IF NOT EXISTS "},
	{DropIndex, regexp.MustCompile(`^DROP INDEX (\w+)$`), 1, 0, "DROP INDEX ", "DROP INDEX IF EXISTS "},
	{Insert, regexp.MustCompile(`^INSERT INTO (\w+) `), 0, 1, "", ""},
	{SetRoom, regexp.MustCompile(`^ALTER TABLE (\w+) SET \(fillfactor = \d+\)`), 0, 1, "", ""},
}

// Parse understands a statement of All.
func Parse(statement string) Change {
	var lines []string
	for line := range strings.Lines(statement) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			lines = append(lines, line)
		}
	}
	text := strings.TrimSuffix(strings.TrimSpace(strings.Join(lines, "")), ";")
	c := Change{Postgres: strings.HasPrefix(text, postgresMark) || strings.HasSuffix(text, postgresMark)}
	if c.Postgres {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, postgresMark), postgresMark))
	}
	c.text, c.again = text, text
	for _, f := range forms {
		found := f.form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		c.Kind, c.again = f.kind, strings.Replace(text, f.plain, f.with, 1)
		if f.table > 0 {
			c.Table = found[f.table]
		}
		if f.name > 0 {
			c.Name = found[f.name]
		}
		break
	}
	return c
}

var (
	quoted  = regexp.MustCompile(`'[^']*'`)
	columns = regexp.MustCompile(`(?:[(,]|ADD COLUMN(?: IF NOT EXISTS)?)\s*(\w+)\s+(\w+)(\s+PRIMARY KEY)?`)
)

// Columns are those that the statement makes, in their order.
func (c Change) Columns() []Column { return columnsOf(c.Kind, c.text) }

func columnsOf(kind Kind, text string) (all []Column) {
	if kind != CreateTable && kind != AddColumn {
		return nil
	}
	// What is in quotes is a value.
	plain := quoted.ReplaceAllStringFunc(text, func(value string) string { return strings.Repeat("'", len(value)) })
	for _, at := range columns.FindAllStringSubmatchIndex(plain, -1) {
		if name := text[at[2]:at[3]]; name != "PRIMARY" { // KEY (…)
			all = append(all, Column{Name: name, Type: text[at[4]:at[5]], Key: at[6] >= 0, from: at[4], to: at[5]})
		}
	}
	return all
}
