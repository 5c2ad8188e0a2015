package server

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/ops/backups"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// leaf gives a leaf page of an index of a database that nobody uses: where it begins in the file, and its bytes.
func leaf(t *testing.T, path, index string) (at int64, page []byte) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	var number, size int64
	must(t, db.QueryRow("PRAGMA page_size").Scan(&size))
	must(t, db.QueryRow("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno LIMIT 1",
		index).Scan(&number))
	file, err := os.ReadFile(path)
	must(t, err)
	at = (number - 1) * size
	return at, file[at : at+size]
}

var letters = regexp.MustCompile("[A-Za-z0-9]{4,}")

// spoil changes letters in a leaf page of an index.
func spoil(t *testing.T, path, index string) {
	t.Helper()
	at, page := leaf(t, path, index)
	found := letters.FindAllIndex(page, -1)
	if len(found) == 0 {
		t.Fatalf("there are no letters in %s", index)
	}
	last := found[len(found)-1]
	word := bytes.Clone(page[last[0]:last[1]])
	for i := range word {
		word[i] ^= 1
	}
	overwrite(t, path, at+int64(last[0]), word)
}

func overwrite(t *testing.T, path string, at int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(with, at)
	must(t, err)
	must(t, f.Close())
}

// A damaged index is found by everything that says whether the data is sound, and a rebuild mends it.
func TestADamagedIndexIsFoundAndMended(t *testing.T) {
	for _, index := range []string{"users_name", "users_email_order", "users_user_name", "events_org",
		"events_object", "tokens_id"} {
		t.Run(index, func(t *testing.T) {
			c, s, _ := furnished(t)
			must(t, s.Close())
			path := filepath.Join(c.DataDir, "signet.db")
			spoil(t, path, index)

			place := t.TempDir()
			_, err := Backup(t.Context(), c, filepath.Join(place, "backup.db"), nil)
			if err == nil || !strings.Contains(err.Error(), "signet rebuild") ||
				!strings.Contains(err.Error(), "could not be restored") {
				t.Errorf("a backup: %v", err)
			}
			if left := entries(place); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			must(t, Maintain(t.Context(), c, quiet, true, func(ctx context.Context, st *store.Store) error {
				for name, rest := range map[string]func(context.Context) error{"in one go": nil,
					"with rests": engine.Resting()} {
					if err := st.CheckFile(ctx, rest); !engine.IsDamage(err) || !strings.Contains(err.Error(), index) {
						t.Errorf("%s: %v", name, err)
					}
				}
				return nil
			}))
			must(t, Maintain(t.Context(), c, quiet, false, func(ctx context.Context, st *store.Store) error {
				_, err := st.Rebuild(ctx)
				return err
			}))
			backup := backedUp(t, c)
			seen, err := Rehearse(t.Context(), c, quiet, backup, t.TempDir(), nil)
			must(t, err)
			if !seen.OK {
				t.Errorf("%+v", seen)
			}
			opened(t, c).Close()
		})
	}
}

// Whatever changes a single bit of the database: a backup of it that counts as checked can be restored.
func TestWhatIsCalledCheckedCanBeRestored(t *testing.T) {
	c, s, _ := furnished(t)
	must(t, s.Close())
	sound, err := os.ReadFile(filepath.Join(c.DataDir, "signet.db"))
	must(t, err)
	flips := 40
	if os.Getenv("SIGNET_SCALE") != "" {
		flips = 1000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice, refused := rand.New(rand.NewPCG(seed, 1)), 0
	place := t.TempDir()
	for i := range flips {
		bit := dice.IntN(len(sound) * 8)
		damaged := bytes.Clone(sound)
		damaged[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(filepath.Join(c.DataDir, "signet.db"), damaged, 0o600))
		backup := filepath.Join(place, fmt.Sprint(i, ".db"))
		report, err := Backup(t.Context(), c, backup, nil)
		if err != nil || report.Unchecked != "" {
			refused++
			continue
		}
		if _, err := Rehearse(t.Context(), c, quiet, backup, place, nil); err != nil {
			t.Errorf("bit %d of seed %d: the backup is called checked, but: %v", bit, seed, err)
		}
		must(t, os.Remove(backup))
	}
	t.Logf("%d of %d were refused", refused, flips)
}

// A scheduled backup of a damaged database fails, says so everywhere, and leaves the sound one there.
func TestADamagedDatabaseKeepsItsSoundBackup(t *testing.T) {
	c := home(t, testdb.New(t, testdb.SQLite))
	c.BackupDirectory, c.BackupKeep, c.BackupEvery = t.TempDir(), 1, time.Hour
	made := func() (paths []string) {
		all, err := backups.List(c.BackupDirectory)
		must(t, err)
		for _, b := range all {
			paths = append(paths, b.Path)
		}
		return paths
	}
	s := opened(t, c)
	s.furnish(t, s.FirstAdmin.Token)
	testkit.Await(t, "there is a backup", func() bool { return len(made()) == 1 })
	must(t, s.Close())
	first := made()[0]
	spoil(t, filepath.Join(c.DataDir, "signet.db"), "users_name")

	c.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
	log := &testkit.Log{}
	s, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	testkit.Await(t, "it is said", func() bool {
		return log.Has("the scheduled backup failed") && log.Has("users_name") && log.Has("signet rebuild")
	})
	testkit.Await(t, "the metric says so", func() bool { return metric(t, s, "signet_backup_failures_total") > 0 })
	if got := made(); len(got) != 1 || got[0] != first || s.details()["backup"] == "" {
		t.Errorf("there are %q, and the details are %v", got, s.details())
	}
	must(t, s.Close())
	_, err = Rehearse(t.Context(), c, quiet, first, t.TempDir(), nil)
	must(t, err)

	must(t, Maintain(t.Context(), c, quiet, false, func(ctx context.Context, st *store.Store) error {
		_, err := st.Rebuild(ctx)
		return err
	}))
	s = opened(t, c)
	testkit.Await(t, "there is a new backup", func() bool { got := made(); return len(got) == 1 && got[0] != first })
	testkit.Await(t, "nothing is wrong any more", func() bool { return s.details()["backup"] == "" })
}

// Without the master key only the file is checked, and the report says so: such a backup is still better than none.
func TestABackupWithoutTheKeyIsNotCalledChecked(t *testing.T) {
	c, _, _ := furnished(t)
	key := filepath.Join(c.DataDir, "master.key")
	must(t, os.Rename(key, key+".away"))
	report, err := Backup(t.Context(), c, filepath.Join(t.TempDir(), "backup.db"), nil)
	if err != nil || report.Unchecked == "" {
		t.Errorf("%+v, %v", report, err)
	}
}
