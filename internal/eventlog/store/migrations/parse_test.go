package migrations

import (
	"strings"
	"testing"
)

// TestEveryStatementIsUnderstood: what is not stops those who write for as long as its tables are large, so no new
// migration may have any. It has to be put so that it does no harm when it is run again.
func TestEveryStatementIsUnderstood(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		for _, statement := range m.Statements {
			c := Parse(statement)
			if c.Kind == Other && m.Name != "0006_bytes.sql" || c.Kind == Insert && m.Version != 1 {
				t.Errorf("%s: %s", m.Name, statement)
			}
			if c.Kind != Other && c.Kind != Insert && c.Kind != SetRoom && !strings.Contains(c.Repeatable, " EXISTS ") {
				t.Errorf("%s: %s", m.Name, c.Repeatable)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Change{
		"-- why\nCREATE TABLE things (\n\tid TEXT PRIMARY KEY\n) /* KEYED */": {CreateTable, "things", "", "CREATE TABLE IF NOT EXISTS things (\n\tid TEXT PRIMARY KEY\n) /* KEYED */"},
		"ALTER TABLE things ADD COLUMN name TEXT NOT NULL DEFAULT ''":         {AddColumn, "things", "name", "ALTER TABLE things ADD COLUMN IF NOT EXISTS name TEXT NOT NULL DEFAULT ''"},
		"CREATE UNIQUE INDEX things_name ON things (name) WHERE name <> '';":  {CreateIndex, "things", "things_name", "CREATE UNIQUE INDEX IF NOT EXISTS things_name ON things (name) WHERE name <> ''"},
		"DROP INDEX things_name":                                                          {DropIndex, "", "things_name", "DROP INDEX IF EXISTS things_name"},
		"INSERT INTO things (id) VALUES (1)":                                              {Insert, "things", "", "INSERT INTO things (id) VALUES (1)"},
		"ALTER TABLE things SET (fillfactor = 80) /* POSTGRES */":                         {SetRoom, "things", "", "ALTER TABLE things SET (fillfactor = 80) /* POSTGRES */"},
		"UPDATE things SET name = ''":                                                     {Other, "", "", "UPDATE things SET name = ''"},
		"ALTER TABLE things ADD COLUMN one TEXT NOT NULL DEFAULT '', ADD COLUMN two TEXT": {Other, "", "", "ALTER TABLE things ADD COLUMN one TEXT NOT NULL DEFAULT '', ADD COLUMN two TEXT"},
		"ALTER TABLE things ALTER COLUMN name TYPE BYTEA":                                 {Other, "", "", "ALTER TABLE things ALTER COLUMN name TYPE BYTEA"},
	} {
		if got := Parse(text); got != want {
			t.Errorf("%q\n got %+v\nwant %+v", text, got, want)
		}
	}
}
