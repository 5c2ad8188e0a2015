package program

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// rewritten lets SQLite, without Signet's file system, rewrite a database file.
func rewritten(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// TestAutoVacuumIsRefused: Signet's file system would destroy the pointer maps of such a database. So no command
// touches it, and each says how to get rid of auto_vacuum. What it says works.
func TestAutoVacuumIsRefused(t *testing.T) {
	s := embedded(t)
	s.start(t).stop(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s.run(t, "backup", backup).fine(t)
	for mode := 1; mode <= 2; mode++ {
		for _, file := range []string{s.path("signet.db"), backup} {
			rewritten(t, file, fmt.Sprintf("PRAGMA auto_vacuum = %d; VACUUM", mode))
		}
		says := "auto_vacuum is on in " + s.path("signet.db")
		restored, moved := s.vacant(t), s.vacant(t)
		writeFile(t, moved.path("signet.db"), string(readFile(t, s.path("signet.db"))), 0o600)
		if err := os.Remove(moved.path("master.key")); err != nil {
			t.Fatal(err)
		}
		source := newSite(t, testdb.New(t, testdb.SQLite))
		source.start(t).stop(t)
		refused := func(file, says string, command func() result) (said string) {
			t.Helper()
			before := readFile(t, file)
			r := command()
			r.refused(t, says)
			if !bytes.Equal(readFile(t, file), before) {
				t.Errorf("%s was written", file)
			}
			return r.stderr
		}
		said := refused(s.path("signet.db"), says, func() result {
			p := s.launch(t, nil)
			return result{p.exit(t), p.stdout.String(), p.stderr.String()}
		})
		for _, command := range [][]string{{"backup", backup + ".2"}, {"verify"}, {"rebuild"},
			{"move", "--to", filepath.Join(t.TempDir(), "new")}} {
			refused(s.path("signet.db"), says, func() result { return s.run(t, command...) })
		}
		refused(backup, "auto_vacuum is on in "+backup, func() result { return restored.run(t, "restore", backup) })
		refused(moved.path("signet.db"), "auto_vacuum is on in "+moved.path("signet.db"),
			func() result { return source.run(t, "move", "--to", moved.dir) })
		for dir, want := range map[string]string{restored.dir: "master.key", moved.dir: "lock signet.db"} {
			if got := strings.Join(databaseFiles(t, dir), " "); got != want {
				t.Errorf("%s holds %q, want %q", dir, got, want)
			}
		}

		_, remedy, _ := strings.Cut(said, "' '")
		remedy, _, _ = strings.Cut(remedy, "'")
		for _, file := range []string{s.path("signet.db"), backup} {
			rewritten(t, file, remedy)
		}
		s.start(t).stop(t)
		s.restored(t, backup).start(t)
	}
}

// databaseFiles lists a directory but for the files by which readers of SQLite agree on who reads.
func databaseFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !strings.HasSuffix(e.Name(), "-shm") && !strings.HasSuffix(e.Name(), "-wal") {
			names = append(names, e.Name())
		}
	}
	return names
}
