package engine

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever is erased after a restore has to be gone, too: so a copy holds everything once, where it belongs, and nothing
// in parts of pages that are not in use.
func TestACopyHoldsNothingTwice(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
	e, err := Open(t.Context(), Options{Database: from})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	names := make([]string, 1000)
	err = e.Transact(t.Context(), func(x Executor) error {
		err := errors.Join(
			x.Exec(t.Context(),
				"CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID"),
			x.Exec(t.Context(), "CREATE INDEX people_name ON people (name, id)"))
		for i := range names {
			names[i] = rand.Text()
			err = errors.Join(err,
				x.Exec(t.Context(), "INSERT INTO people (id, name, doc) VALUES (?, ?, ?)", rand.Text(), names[i],
					strings.Repeat("x", i*7919%900)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := CopyFile(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for _, name := range names {
		if bytes.Count(content, []byte(name)) != 2 { // in the table and in the index
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d are there more or less often than they should", wrong, len(names))
	}
}
