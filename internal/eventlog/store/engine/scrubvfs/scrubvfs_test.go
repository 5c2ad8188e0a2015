package scrubvfs

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// crowded fills a database in a way that moves rows between pages all the time, and takes some of them away again. It
// gives what must be gone and what must be there.
func crowded(t *testing.T, address string) (gone, kept []string) {
	db, err := sql.Open("sqlite", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	do := func(text string, args ...any) {
		t.Helper()
		if _, err := db.Exec(text, args...); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID")
	do("CREATE INDEX people_name ON people (name, id)")
	do("CREATE TABLE log (position INTEGER PRIMARY KEY, text TEXT NOT NULL)")
	const people = 2000
	do("BEGIN")
	names := make([]string, people)
	doc := func(i, round int) string { return names[i] + strings.Repeat("x", (i*7919+round*104729)%900) }
	for i := range people {
		names[i] = "name-" + rand.Text()
		do("INSERT INTO people (id, name, doc) VALUES (?, ?, ?)", fmt.Sprint("person-", i), names[i], doc(i, 0))
		if i%100 == 0 {
			do("INSERT INTO log (text) VALUES (?)", strings.Repeat(names[i], 1000)) // over many pages
		}
	}
	for i := range people {
		do("UPDATE people SET doc = ? WHERE id = ?", doc(i, 1), fmt.Sprint("person-", i))
	}
	for i := range people {
		if i%4 != 0 {
			kept = append(kept, names[i])
			continue
		}
		do("UPDATE people SET name = '', doc = '' WHERE id = ?", fmt.Sprint("person-", i))
		gone = append(gone, names[i])
	}
	do("DELETE FROM log")
	do("COMMIT")
	do("PRAGMA wal_checkpoint(TRUNCATE)")
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatal(verdict, err)
	}
	for _, name := range kept {
		var doc string
		if err := db.QueryRow("SELECT doc FROM people WHERE name = ?", name).Scan(&doc); err != nil ||
			!strings.HasPrefix(doc, name) {
			t.Fatal(doc, err)
		}
	}
	return gone, kept
}

func TestWhatWasDeletedIsNowhereInTheFile(t *testing.T) {
	name, err := VFS()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, vfs string
		clean     bool
	}{{"with it", name, true}, {"without it", "", false}} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "people.db")
			address := "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=secure_delete(1)"
			if c.vfs != "" {
				address += "&vfs=" + c.vfs
			}
			gone, kept := crowded(t, address)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, name := range gone {
				if bytes.Contains(file, []byte(name)) {
					found++
				}
			}
			if clean := found == 0; clean != c.clean {
				t.Errorf("%d of %d deleted names are in the file", found, len(gone))
			}
			if !bytes.Contains(file, []byte(kept[0])) {
				t.Error("the search finds nothing at all")
			}
		})
	}
}

func TestTheMiddleOfAPage(t *testing.T) {
	page := func(at int, kind byte, cells, content uint16) []byte {
		p := make([]byte, 4096)
		copy(p[at:], []byte{kind, 0, 0, byte(cells >> 8), byte(cells), byte(content >> 8), byte(content)})
		return p
	}
	for _, c := range []struct {
		name     string
		page     []byte
		offset   int64
		from, to int
	}{
		{"a leaf of an index", page(0, leafIndex, 3, 4000), 4096, 14, 4000},
		{"a leaf of a table", page(0, leafTable, 0, 4096), 4096, 8, 4096},
		{"an inner page of an index", page(0, innerIndex, 300, 1000), 8192, 612, 1000},
		{"an inner page of a table", page(0, innerTable, 1, 700), 8192, 14, 700},
		{"the first page", page(100, leafTable, 2, 3000), 0, 112, 3000},
		{"a full page", page(0, leafIndex, 10, 28), 4096, 28, 28},
		{"the middle of a long value", page(0, 0, 3, 4000), 4096, 0, 0},
		{"a long value in a large database", page(0, 1, 3, 4000), 4096, 0, 0},
		{"a broken page", page(0, leafIndex, 3, 5000), 4096, 0, 0},
		{"something shorter", page(0, leafIndex, 3, 400)[:100], 4096, 0, 0},
		{"something that is no page", page(0, leafIndex, 3, 400)[:1000], 1000, 0, 0},
		{"something between pages", page(0, leafIndex, 3, 400), 24, 0, 0},
	} {
		if from, to := middle(c.page, c.offset); from != c.from || to != c.to {
			t.Errorf("%s: from %d to %d", c.name, from, to)
		}
	}
	largest := make([]byte, 1<<16) // where nothing is used, the content begins at 65536, which is written as 0
	largest[0] = leafTable
	if from, to := middle(largest, 1<<16); from != 8 || to != 1<<16 {
		t.Error(from, to)
	}
}
