package datadir

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if _, err := Open(path, false); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := Open("", true); err == nil || !strings.Contains(err.Error(), "--data-dir is empty") {
		t.Errorf("a directory without a name: %v", err)
	}
	open(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	write(t, filepath.Join(path, "file"), "")
	if _, err := Open(filepath.Join(path, "file"), false); err == nil ||
		!strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("a file: %v", err)
	}
}

func TestLock(t *testing.T) {
	path := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	first := open(t, path)
	if err := first.Lock(); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{path, link} {
		if err := open(t, same).Lock(); !errors.Is(err, ErrInUse) {
			t.Errorf("a second lock: %v", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, link).Lock(); err != nil {
		t.Errorf("after the first is closed: %v", err)
	}
}

func TestDatabase(t *testing.T) {
	d := open(t, t.TempDir())
	path, err := d.Database()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "other.db")
	write(t, elsewhere, "")
	for name, make := range map[string]func(from, to string) error{
		"a symbolic link":            os.Symlink,
		"a hard link":                os.Link,
		"a link that leads nowhere":  func(_, to string) error { return os.Symlink("nowhere", to) },
		"something that is no file":  func(_, to string) error { return os.Mkdir(to, 0o700) },
		"a link to itself, for ever": func(_, to string) error { return os.Symlink(filepath.Base(to), to) },
	} {
		if err := make(elsewhere, path); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Database(); err == nil || !strings.Contains(err.Error(), "not a link") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, "")
	if _, err := d.Database(); err != nil {
		t.Errorf("a file of its own: %v", err)
	}
}

// TestMend makes a database as a crash leaves it that comes before the write-ahead log: half a transaction in the file,
// the other half in a journal.
func TestMend(t *testing.T) {
	ctx := context.Background()
	must := func(_ sql.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	alive, crashed := open(t, t.TempDir()), open(t, t.TempDir())
	if err := crashed.Mend(ctx); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	from, err := alive.Database()
	if err != nil {
		t.Fatal(err)
	}
	to, err := crashed.Database()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	must(db.ExecContext(ctx, "PRAGMA cache_size = 1"))
	must(db.ExecContext(ctx, "CREATE TABLE t (v TEXT)"))
	must(db.ExecContext(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO t SELECT hex(randomblob(500)) FROM n"))
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	must(tx.ExecContext(ctx, "UPDATE t SET v = ''")) // more than the cache holds
	for _, suffix := range []string{"", "-journal"} {
		text, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to+suffix, string(text))
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	count := func() (n int, err error) {
		db, err := sql.Open("sqlite", "file:"+to+"?mode=ro")
		if err != nil {
			return 0, err
		}
		defer db.Close()
		return n, db.QueryRowContext(ctx, "SELECT count(*) FROM t WHERE v <> ''").Scan(&n)
	}
	if _, err := count(); err == nil {
		t.Fatal("the journal is not in the way: this test shows nothing")
	}
	for round := range 2 {
		if err := crashed.Whole(); (err == nil) != (round > 0) {
			t.Errorf("before Mend number %d: %v", round+1, err)
		}
		if err := crashed.Mend(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := count(); err != nil || n != 100 {
			t.Errorf("%d rows are as they were: %v", n, err)
		}
	}
}

func TestMasterKey(t *testing.T) {
	d := open(t, t.TempDir())
	key := string(secret.NewMasterKey().Text())
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, key)
	for name, c := range map[string]struct {
		text, file string
		create     bool
		says       string
	}{
		"both":                 {key, file, false, "both set"},
		"a malformed text":     {key[1:], "", false, "SIGNET_MASTER_KEY: the master key must be"},
		"a key as file name":   {"", key, false, "the name of a file, not the key"},
		"a file that is gone":  {"", file + "x", true, "no such file"},
		"none in the database": {"", "", false, "its master key is not in"},
	} {
		_, err := d.MasterKey(c.text, c.file, c.create)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), key[1:]) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for name, read := range map[string]func() (secret.MasterKey, error){
		"text":                     func() (secret.MasterKey, error) { return d.MasterKey(key, "", false) },
		"file":                     func() (secret.MasterKey, error) { return d.MasterKey("", file, false) },
		"text without a directory": func() (secret.MasterKey, error) { return (*Dir)(nil).MasterKey(key, "", false) },
		"file without a directory": func() (secret.MasterKey, error) { return (*Dir)(nil).MasterKey("", file, false) },
	} {
		if got, err := read(); err != nil || string(got.Text()) != key {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := names(t, d.path); len(got) != 0 {
		t.Errorf("the directory holds %v", got)
	}
	write(t, filepath.Join(d.path, "master.key.tmp"), "") // of a start that was cut off
	made, err := d.MasterKey("", "", true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.MasterKey("", "", false)
	if err != nil || !bytes.Equal(made.Text(), again.Text()) {
		t.Errorf("the key that was made is not the one that is read: %v", err)
	}
	if got := names(t, d.path); !slices.Equal(got, []string{"master.key"}) {
		t.Errorf("the directory holds %v", got)
	}
}

func TestFirstAdmin(t *testing.T) {
	d := open(t, t.TempDir())
	path := d.FirstAdminPath("")
	if path != filepath.Join(d.path, "first-admin.json") || !filepath.IsAbs(d.FirstAdminPath("elsewhere.json")) {
		t.Errorf("%s, %s", path, d.FirstAdminPath("elsewhere.json"))
	}
	won := FirstAdmin{URL: "u", OrgID: "org_won", UserID: "i", LoginName: "l", Password: "p",
		ServiceUserID: "s", Token: "t"}
	lost := FirstAdmin{OrgID: "org_lost"}
	for _, f := range []FirstAdmin{lost, won} {
		if err := PrepareFirstAdmin(path, f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file has its name too early")
	}
	for range 2 { // a start on existing data, too
		if err := PublishFirstAdmin(path, "org_won"); err != nil {
			t.Fatal(err)
		}
		if got := names(t, d.path); !slices.Equal(got, []string{"first-admin.json"}) {
			t.Errorf("the directory holds %v", got)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got FirstAdmin
	if err := json.Unmarshal(text, &got); err != nil || got != won {
		t.Errorf("the file holds %s: %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
	for _, bad := range []string{d.path, filepath.Join(d.path, "missing", "file")} {
		if err := PrepareFirstAdmin(bad, won); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
		if err := PublishFirstAdmin(bad, "org_won"); err != nil {
			t.Errorf("%s, where there is nothing to publish: %v", bad, err)
		}
	}
}

func TestAKeyThatIsBroughtAlong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	key := secret.NewMasterKey()
	for range 2 { // the second time it is there
		if err := d.KeepMasterKey(key); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(path, "master.key")
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := d.KeepMasterKey(secret.NewMasterKey()); err == nil ||
		!strings.Contains(err.Error(), "a different master key than that of the data") {
		t.Errorf("another key: %v", err)
	}
	if got, err := d.MasterKey("", "", false); err != nil || string(got.Text()) != string(key.Text()) {
		t.Errorf("the key is another one: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if !d.Is(link) || d.Is(t.TempDir()) || d.Is(filepath.Join(path, "none")) {
		t.Error("it does not know itself")
	}
}

// BenchmarkKeepLogEnd is what a batch of commands costs more because the end of the log is written down.
func BenchmarkKeepLogEnd(b *testing.B) {
	d, err := Open(b.TempDir(), false)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	keep, err := d.OpenLogEnd()
	if err != nil {
		b.Fatal(err)
	}
	position := int64(0)
	for b.Loop() {
		position++
		if err := keep(position); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheEndOfTheLogIsRead(t *testing.T) {
	d, err := Open(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if end, err := d.LogEnd(); end != 0 || err != nil {
		t.Errorf("before: %d, %v", end, err)
	}
	keep, err := d.OpenLogEnd()
	if err != nil {
		t.Fatal(err)
	}
	for _, position := range []int64{7, 1 << 40, 12} { // also where the log went back
		if err := keep(position); err != nil {
			t.Fatal(err)
		}
		if end, err := d.LogEnd(); end != position || err != nil {
			t.Errorf("%d, %v", end, err)
		}
	}
	if err := d.ForgetLog(); err != nil {
		t.Fatal(err)
	}
	if end, err := d.LogEnd(); end != 0 || err != nil {
		t.Errorf("afterwards: %d, %v", end, err)
	}
}
