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
	Kind       Kind
	Table      string // empty for DropIndex and Other
	Name       string // of the index or column
	Repeatable string // the statement in words that do nothing where it was run before
}

var forms = []struct {
	kind        Kind
	form        *regexp.Regexp // its groups are the table, and the name
	name, table int
	plain, with string // how to make it repeatable
}{
	{CreateTable, regexp.MustCompile(`^CREATE TABLE (\w+) \(`), 0, 1, "CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "},
	{AddColumn, regexp.MustCompile(`^ALTER TABLE (\w+) ADD COLUMN (\w+) [^,]*$`), 2, 1, " ADD COLUMN ", " ADD COLUMN IF NOT EXISTS "},
	{CreateIndex, regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+) `), 1, 2, " INDEX ", " INDEX IF NOT EXISTS "},
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
	for _, f := range forms {
		found := f.form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		c := Change{Kind: f.kind, Repeatable: strings.Replace(text, f.plain, f.with, 1)}
		if f.table > 0 {
			c.Table = found[f.table]
		}
		if f.name > 0 {
			c.Name = found[f.name]
		}
		return c
	}
	return Change{Kind: Other, Repeatable: text}
}
