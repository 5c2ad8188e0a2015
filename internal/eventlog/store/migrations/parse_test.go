package migrations

import (
	"cmp"
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
			if c.Kind != Other && c.Kind != Insert && c.Kind != SetRoom && !strings.Contains(c.again, " EXISTS ") {
				t.Errorf("%s: %s", m.Name, c.again)
			}
			made := c.Columns()
			for _, column := range made {
				if column.Type != Text && column.Type != Integer && column.Type != Bytes {
					t.Errorf("%s: the column %s of %s is %s", m.Name, column.Name, c.Table, column.Type)
				}
			}
			one := len(made) == 1 && made[0].Name == c.Name
			if c.Kind == CreateTable && len(made) == 0 || c.Kind == AddColumn && !one {
				t.Errorf("%s: %s makes %+v", m.Name, statement, made)
			}
			// No engine gets a mark, or a type, that is left over.
			for _, d := range []Dialect{{Postgres: true}, {Types: map[string]string{Bytes: "BLOB"}}} {
				if left := c.In(d); strings.Contains(left, "/*") || !d.Postgres && strings.Contains(left, Bytes) {
					t.Errorf("%s: %s", m.Name, left)
				}
			}
		}
	}
}

func TestParse(t *testing.T) {
	type understood struct {
		kind        Kind
		table, name string
		again       string // where it is not the statement itself
		postgres    bool
	}
	for text, want := range map[string]understood{
		"-- why\nCREATE TABLE things (\n\tid TEXT\n) /* KEYED */": {kind: CreateTable, table: "things",
			again: "CREATE TABLE IF NOT EXISTS things (\n\tid TEXT\n) /* KEYED */"},
		"ALTER TABLE things ADD COLUMN name TEXT NOT NULL DEFAULT ''": {kind: AddColumn, table: "things", name: "name",
			again: "ALTER TABLE things ADD COLUMN IF NOT EXISTS name TEXT NOT NULL DEFAULT ''"},
		"CREATE UNIQUE INDEX things_name ON things (name) WHERE name <> '';": {
			kind: CreateIndex, table: "things", name: "things_name",
			again: "CREATE UNIQUE INDEX IF NOT EXISTS things_name ON things (name) WHERE name <> ''"},
		"DROP INDEX things_name": {kind: DropIndex, name: "things_name",
			again: "DROP INDEX IF EXISTS things_name"},
		"INSERT INTO things (id) VALUES (1)": {kind: Insert, table: "things"},
		"ALTER TABLE things SET (fillfactor = 80) /* POSTGRES */": {kind: SetRoom, table: "things", postgres: true,
			again: "ALTER TABLE things SET (fillfactor = 80)"},
		"-- why /* POSTGRES */\nUPDATE things SET name = ''": {again: "UPDATE things SET name = ''"},
		"/* POSTGRES */ DO $$ $$;": {again: "DO $$ $$",
			postgres: true},
		"ALTER TABLE things ADD COLUMN one TEXT NOT NULL DEFAULT '', ADD COLUMN two TEXT": {},
		"ALTER TABLE things ALTER COLUMN name TYPE BYTEA":                                 {},
	} {
		c := Parse(text)
		want.again = cmp.Or(want.again, text)
		if got := (understood{c.Kind, c.Table, c.Name, c.again, c.Postgres}); got != want {
			t.Errorf("%q\n got %+v\nwant %+v", text, got, want)
		}
	}
}

func TestEachEngineGetsItsOwnWords(t *testing.T) {
	one := Dialect{Types: map[string]string{Text: `TEXT COLLATE "C"`}, RowID: Integer, Postgres: true}
	other := Dialect{Types: map[string]string{Bytes: "BLOB"}, RowID: "INTEGER", Keyed: "WITHOUT ROWID"}
	for _, c := range []struct{ text, one, other string }{
		{"CREATE TABLE a (\n\tid   BIGINT PRIMARY KEY,\n\tname TEXT   NOT NULL, n BIGINT, b BYTEA\n)",
			"CREATE TABLE a (\n\tid   BIGINT PRIMARY KEY,\n\tname TEXT COLLATE \"C\"   NOT NULL, n BIGINT, b BYTEA\n)",
			"CREATE TABLE a (\n\tid   INTEGER PRIMARY KEY,\n\tname TEXT   NOT NULL, n BIGINT, b BLOB\n)"},
		{"CREATE TABLE a (n BIGINT NOT NULL, b BYTEA NOT NULL, PRIMARY KEY (n, b)) /* KEYED */",
			"CREATE TABLE a (n BIGINT NOT NULL, b BYTEA NOT NULL, PRIMARY KEY (n, b)) ",
			"CREATE TABLE a (n BIGINT NOT NULL, b BLOB NOT NULL, PRIMARY KEY (n, b)) WITHOUT ROWID"},
		// A value is no type, and neither is a name.
		{"CREATE TABLE a (text TEXT NOT NULL DEFAULT ', b BYTEA', bytea BIGINT)",
			"CREATE TABLE a (text TEXT COLLATE \"C\" NOT NULL DEFAULT ', b BYTEA', bytea BIGINT)",
			"CREATE TABLE a (text TEXT NOT NULL DEFAULT ', b BYTEA', bytea BIGINT)"},
		{"INSERT INTO a (name) VALUES ('A TEXT, b BYTEA')", "INSERT INTO a (name) VALUES ('A TEXT, b BYTEA')",
			"INSERT INTO a (name) VALUES ('A TEXT, b BYTEA')"},
		{"ALTER TABLE a SET (fillfactor = 80) /* POSTGRES */", "ALTER TABLE a SET (fillfactor = 80)", ""},
	} {
		if got := Parse(c.text).In(one); got != c.one {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.one)
		}
		if got := Parse(c.text).In(other); got != c.other {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.other)
		}
	}
	again := Parse("ALTER TABLE a ADD COLUMN b TEXT").Again(one)
	if again != `ALTER TABLE a ADD COLUMN IF NOT EXISTS b TEXT COLLATE "C"` {
		t.Errorf("%q", again)
	}
}
