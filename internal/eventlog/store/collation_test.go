package store

import (
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
)

// The tests' own PostgreSQL sorts by the rules of a language.
func TestPostgresComparesTextsByBytes(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	master := secret.NewMasterKey()
	open := func(schema int) *Store {
		t.Helper()
		s, _, err := Open(t.Context(), Options{Database: db.URL, Master: master, schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	others := func(s *Store) (columns []string) {
		t.Helper()
		err := s.engine.Query(t.Context(), "SELECT table_name || '.' || column_name FROM information_schema.columns "+
			"WHERE table_schema = current_schema() AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' ORDER BY 1", nil, func(scan engine.Scanner) error {
			columns = append(columns, "")
			return scan(&columns[len(columns)-1])
		})
		if err != nil {
			t.Fatal(err)
		}
		return columns
	}
	s := open(5)
	if found := others(s); len(found) != 1 || found[0] != "schema_version.name" {
		t.Errorf("tables are made with other columns: %v", found)
	}
	// Like a database of before.
	for _, text := range []string{
		`ALTER TABLE users ALTER COLUMN id TYPE text COLLATE "default", ALTER COLUMN org_id TYPE text COLLATE "default"`,
		`ALTER TABLE events ALTER COLUMN object_id TYPE text COLLATE "default"`,
	} {
		if err := s.engine.Transact(t.Context(),
			func(x engine.Executor) error { return x.Exec(t.Context(), text) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(0)
	defer s.Close()
	if found := others(s); len(found) > 0 {
		t.Errorf("after an upgrade there are other columns: %v", found)
	}
}
