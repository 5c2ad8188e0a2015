package server

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
)

// furnished makes an installation with something in it, and leaves it running.
func furnished(t *testing.T) (Config, *Server, *belongings) {
	t.Helper()
	c := home(t, testdb.New(t, testdb.SQLite))
	s := opened(t, c)
	return c, s, s.furnish(t, s.FirstAdmin.Token)
}

func backedUp(t *testing.T, c Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	if _, err := Backup(t.Context(), c, path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// entries are all files of a directory; none where there is no directory.
func entries(dir string) (names []string) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func TestABackupBesideARunningServerHoldsEverything(t *testing.T) {
	c, s, had := furnished(t)
	target := filepath.Join(t.TempDir(), "backup.db")
	var last int64
	report, err := Backup(t.Context(), c, target, func(done, total int64) {
		if done < last || total == 0 {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last = done
	})
	must(t, err)
	position, err := s.Store().Position(t.Context())
	must(t, err)
	if report.Path != target || report.Position < position-5 || report.Events != report.Position ||
		report.Size != last {
		t.Errorf("%+v at %d, shown %d", report, position, last)
	}
	if info, err := os.Stat(target); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if got := entries(filepath.Dir(target)); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	text, err := os.ReadFile(target)
	must(t, err)
	key, err := os.ReadFile(filepath.Join(c.DataDir, "master.key"))
	must(t, err)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(key)))
	must(t, err)
	if bytes.Contains(text, bytes.TrimSpace(key)) || bytes.Contains(text, raw) {
		t.Error("the key is in the backup")
	}

	to := Config{Data: Data{DataDir: filepath.Join(t.TempDir(), "new", "data"),
		MasterKeyFile: filepath.Join(c.DataDir, "master.key")}, Listen: "localhost:0"}
	checked, err := Restore(t.Context(), to, quiet, target, nil)
	must(t, err)
	if int64(checked.Events) != report.Events {
		t.Errorf("%+v", checked)
	}
	if got := entries(to.DataDir); strings.Join(got, " ") != "lock signet.db" {
		t.Errorf("the directory holds %q", got)
	}
	if info, err := os.Stat(filepath.Join(to.DataDir, "signet.db")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the database: %v, %v", info, err)
	}
	restored := opened(t, to)
	had.stillWorks(t, restored)
	if restored.FirstAdmin != nil {
		t.Error("another first administrator")
	}
	if _, err := Restore(t.Context(), to, quiet, target, nil); err == nil ||
		!strings.Contains(err.Error(), "there is already a database") {
		t.Errorf("restored over an installation: %v", err)
	}
}

func TestWhereABackupDoesNotGo(t *testing.T) {
	c, _, _ := furnished(t)
	place := t.TempDir()
	there := filepath.Join(place, "there")
	must(t, os.WriteFile(there, []byte("something else"), 0o600))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(c.DataDir, link))
	must(t, os.Mkdir(filepath.Join(c.DataDir, "below"), 0o700))
	elsewhere, empty := c, c
	elsewhere.Database = "postgres://signet:opensesame@db.example.org/signet"
	empty.DataDir = t.TempDir()
	for _, w := range []struct {
		name   string
		c      Config
		target string
		says   string
	}{
		{"over another file", c, there, "already exists"},
		{"into the data directory", c, filepath.Join(c.DataDir, "backup.db"), "in the data directory"},
		{"through a link into the data directory", c, filepath.Join(link, "backup.db"), "in the data directory"},
		{"deep in the data directory", c, filepath.Join(c.DataDir, "below", "backup.db"), "in the data directory"},
		{"into no directory", c, filepath.Join(place, "missing", "backup.db"), "create it first"},
		{"below a file", c, filepath.Join(there, "backup.db"), "directory"},
		{"of PostgreSQL", elsewhere, filepath.Join(place, "new"), "use pg_dump"},
		{"of nothing", empty, filepath.Join(place, "new"), "there is no installation here yet"},
	} {
		_, err := Backup(t.Context(), w.c, w.target, nil)
		if err == nil || !strings.Contains(err.Error(), w.says) || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%s: %v", w.name, err)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Backup(stopped, c, filepath.Join(place, "new"), nil); err == nil {
		t.Error("a backup that was stopped is one")
	}
	if got := entries(place); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "something else" {
		t.Errorf("the other file holds %q, %v", text, err)
	}
}

// TestWhatIsNotRestored: wherever it fails there is no database afterwards, and nothing that a start would take for
// one.
func TestWhatIsNotRestored(t *testing.T) {
	c, s, _ := furnished(t)
	key, other := filepath.Join(c.DataDir, "master.key"), filepath.Join(t.TempDir(), "other.key")
	backup := backedUp(t, c)
	must(t, os.WriteFile(other, secret.NewMasterKey().Text(), 0o600))
	text, err := os.ReadFile(backup)
	must(t, err)
	file := func(name string, text []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	damaged := bytes.Clone(text)
	// the head of a page
	copy(damaged[bytes.Index(text, []byte(`"name":"Default"`))/4096*4096:], bytes.Repeat([]byte{0xff}, 100))
	// A history that was changed: the file is whole, the log is not.
	id := []byte(s.FirstAdmin.OrgID)
	changed := bytes.ReplaceAll(text, []byte(`"name":"Default"`), []byte(`"name":"Defaulx"`))
	if bytes.Equal(changed, text) || !bytes.Contains(text, id) {
		t.Fatal("this changes nothing")
	}
	live := filepath.Join(c.DataDir, "signet.db")
	for _, w := range []struct {
		name, file, key, says string
	}{
		{"with another key", backup, other, "the master key does not fit this backup"},
		{"without a key", backup, "", "a restore needs the master key of the installation"},
		{"with a key that is not there", backup, other + "x", "no such file"},
		{"what is not there", backup + "x", key, "no such file"},
		{"a directory", filepath.Dir(backup), key, "is not a file"},
		{"text", file("text", []byte("hello")), key, "it is not a database file"},
		{"nothing", file("empty", nil), key, "it is not a database file"},
		{"a database in use", live, key, "make one with signet backup"},
		{"half a backup", file("half", text[:len(text)/2]), key, "malformed"},
		{"a damaged one", file("damaged", damaged), key, "damaged"},
		{"one with an index that is not the table's", misindexed(t, text), key, "damaged"},
		{"one whose history was changed", file("changed", changed), key, "nothing was restored"},
	} {
		t.Run(w.name, func(t *testing.T) {
			to := Config{Data: Data{DataDir: filepath.Join(t.TempDir(), "data"), MasterKeyFile: w.key},
				Listen: "localhost:0"}
			if _, err := Restore(t.Context(), to, quiet, w.file, nil); err == nil ||
				!strings.Contains(err.Error(), w.says) {
				t.Errorf("%v", err)
			}
			for _, name := range entries(to.DataDir) {
				// the mark
				if info, err := os.Stat(filepath.Join(to.DataDir, name)); name != "lock" &&
					(err != nil || name != "signet.db.restoring" || info.Size() > 0) {
					t.Errorf("%s is left", name)
				}
			}
			if w.key == other || w.key == "" {
				if _, err := os.Stat(to.DataDir); err == nil {
					t.Error("a directory was made before the key was known to fit")
				}
			}
		})
	}
	to := Config{Data: Data{DataDir: filepath.Join(t.TempDir(), "data"),
		Database: "postgres://signet:opensesame@db.example.org/signet", MasterKeyFile: key}}
	if _, err := Restore(t.Context(), to, quiet, backup, nil); err == nil ||
		!strings.Contains(err.Error(), "pg_restore") || strings.Contains(err.Error(), "opensesame") {
		t.Errorf("into PostgreSQL: %v", err)
	}
	// What SQLite would take for a part of the database is in the way, too.
	for _, name := range []string{"signet.db", "signet.db-wal", "signet.db-journal"} {
		to := Config{Data: Data{DataDir: t.TempDir(), MasterKeyFile: key}}
		must(t, os.WriteFile(filepath.Join(to.DataDir, name), nil, 0o600))
		if _, err := Restore(t.Context(), to, quiet, backup, nil); err == nil ||
			!strings.Contains(err.Error(), "there is already a database") {
			t.Errorf("beside %s: %v", name, err)
		}
	}
}

// misindexed takes rows out of a table behind the back of one of its indexes: no query of a check would notice.
func misindexed(t *testing.T, backup []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "misindexed")
	must(t, os.WriteFile(path, backup, 0o600))
	const name = "tokens_listed"
	var root int
	var text string
	for _, step := range []func(db *sql.DB) error{
		func(db *sql.DB) error {
			err := db.QueryRow("SELECT rootpage, sql FROM sqlite_master WHERE name = ?", name).Scan(&root, &text)
			if err == nil {
				_, err = db.Exec("DELETE FROM sqlite_master WHERE name = ?", name)
			}
			return err
		},
		func(db *sql.DB) error {
			_, err := db.Exec("DELETE FROM tokens")
			return err
		},
		func(db *sql.DB) error {
			_, err := db.Exec("INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('index', ?, 'tokens', ?, ?)", name, root, text)
			return err
		},
	} {
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=writable_schema(1)")
		must(t, err)
		must(t, errors.Join(step(db), db.Close()))
	}
	return path
}

func TestARestoreThatIsStoppedBlamesNobody(t *testing.T) {
	c, _, _ := furnished(t)
	ctx, stop := context.WithCancel(t.Context())
	to := Config{Data: Data{DataDir: t.TempDir(), MasterKeyFile: filepath.Join(c.DataDir, "master.key")}}
	_, err := Restore(ctx, to, quiet, backedUp(t, c), func(done, total int64) {
		if done == total {
			stop()
		}
	})
	if err == nil || err.Error() != "the restore was stopped: run it again" {
		t.Errorf("it says: %v", err)
	}
	if got := entries(to.DataDir); strings.Join(got, " ") != "lock signet.db.restoring" {
		t.Errorf("left behind: %q", got)
	}
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("the disk is full")
	err := newFile(filepath.Join(dir, "backup.db"), func(made string) error {
		must(t, os.WriteFile(made+"-journal", nil, 0o600)) // as SQLite does then
		return full
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
	if got := entries(dir); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}

// onceThere is a context that ends when a file is there.
type onceThere struct {
	context.Context
	path string
}

func (c onceThere) Err() error {
	if _, err := os.Stat(c.path); err == nil {
		return context.Canceled
	}
	return nil
}

func TestABackupThatIsThereIsNotSaidToBeStopped(t *testing.T) {
	c, _, _ := furnished(t)
	target := filepath.Join(t.TempDir(), "backup.db")
	if _, err := Backup(onceThere{context.Background(), target}, c, target, nil); err != nil {
		t.Error(err)
	}
}

func TestARestoreThatWasCutOffIsNoInstallation(t *testing.T) {
	c, _, had := furnished(t)
	backup := backedUp(t, c)
	to := Config{Data: Data{DataDir: t.TempDir()}, Listen: "localhost:0"}
	key, err := os.ReadFile(filepath.Join(c.DataDir, "master.key"))
	must(t, err)
	text, err := os.ReadFile(backup)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(to.DataDir, "master.key"), key, 0o600))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, os.WriteFile(filepath.Join(to.DataDir, "signet.db.restoring"+suffix), text[:5000], 0o600))
	}
	if _, err := Open(t.Context(), to, quiet); err == nil ||
		!strings.Contains(err.Error(), "run signet restore again") {
		t.Errorf("a start: %v", err)
	}
	if err := Maintain(t.Context(), to, quiet, true,
		func(context.Context, *store.Store) error { return nil }); err == nil {
		t.Error("a check finds an installation")
	}
	_, err = Restore(t.Context(), to, quiet, backup, nil)
	must(t, err)
	had.stillWorks(t, opened(t, to))
}
