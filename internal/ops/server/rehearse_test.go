package server

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
)

func TestABackupIsRehearsedBesideTheServer(t *testing.T) {
	c, s, _ := furnished(t)
	backup, place := backedUp(t, c), t.TempDir()
	// What a rehearsal that was killed has left goes; one that is running stays, and so does a file that is called
	// alike.
	left, running := filepath.Join(place, "signet-rehearsal-1"), filepath.Join(place, "signet-rehearsal-2")
	for _, path := range []string{left, running} {
		must(t, os.Mkdir(path, 0o700))
		must(t, os.WriteFile(filepath.Join(path, "signet.db.restoring"), []byte("people"), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(place, "signet-rehearsal-3"), nil, 0o600))
	other, err := datadir.Open(running, false)
	must(t, err)
	must(t, other.Lock())
	defer other.Close()

	seen, err := Rehearse(t.Context(), c, quiet, backup, place, nil)
	must(t, err)
	if got := strings.Join(entries(place), " "); got != "signet-rehearsal-2 signet-rehearsal-3" {
		t.Errorf("left behind: %s", got)
	}
	if !seen.OK || seen.Problem != "" || seen.Events == 0 || seen.Events != seen.Position || seen.Objects == 0 ||
		time.Since(seen.LastEvent) > time.Hour || seen.Size == 0 {
		t.Errorf("%+v", seen)
	}
	var names []string
	for _, step := range seen.Steps {
		if names = append(names, step.Name); step.Failed || step.Took <= 0 {
			t.Errorf("%+v", step)
		}
	}
	if got := strings.Join(names, ", "); got != "key, copy, integrity, open, rebuild --check, verify" {
		t.Errorf("it did: %s", got)
	}
	var mark proof.Mark
	must(t, mark.UnmarshalText([]byte(seen.Head)))
	must(t, Maintain(t.Context(), c, quiet, true, func(ctx context.Context, st *store.Store) error {
		report, err := st.Verify(ctx, proof.Options{Expect: &mark})
		if err == nil && report.Finding != nil {
			t.Errorf("the head is another one: %s", report.Finding)
		}
		return err
	}))
	must(t, s.Store().Ping(t.Context()))
}

func TestWhatARehearsalFinds(t *testing.T) {
	c, _, _ := furnished(t)
	backup, place := backedUp(t, c), t.TempDir()
	text, err := os.ReadFile(backup)
	must(t, err)
	changed := filepath.Join(t.TempDir(), "changed")
	must(t, os.WriteFile(changed,
		bytes.ReplaceAll(text, []byte(`"name":"Default"`), []byte(`"name":"Defaulx"`)), 0o600))
	huge := filepath.Join(t.TempDir(), "huge")
	must(t, os.WriteFile(huge, text, 0o600))
	must(t, os.Truncate(huge, 8<<40)) // without blocks on the disk
	other := c
	other.MasterKeyFile = filepath.Join(t.TempDir(), "other.key")
	must(t, os.WriteFile(other.MasterKeyFile, secret.NewMasterKey().Text(), 0o600))
	elsewhere, absent := c, c
	elsewhere.Database = "postgres://signet:opensesame@db.example.org/signet"
	absent.DataDir = filepath.Join(t.TempDir(), "none")
	for _, w := range []struct {
		name, file, says, step string
		c                      Config
	}{
		{"a changed history", changed, "nothing was restored", "rebuild --check", c},
		{"a damaged file", misindexed(t, text), "damaged", "integrity", c},
		{"another key", backup, "the master key does not fit this backup", "key", other},
		{"no key", backup, "a rehearsal needs the master key", "key", absent},
		{"no room", huge, "MiB are free", "", c},
		{"PostgreSQL", backup, "signet verify and signet rebuild --check", "", elsewhere},
	} {
		t.Run(w.name, func(t *testing.T) {
			seen, err := Rehearse(t.Context(), w.c, quiet, w.file, place, nil)
			if err == nil || !strings.Contains(err.Error(), w.says) || seen.OK || seen.Problem != err.Error() {
				t.Errorf("%+v, %v", seen, err)
			}
			if n := len(seen.Steps); w.step != "" &&
				(n == 0 || seen.Steps[n-1].Name != w.step || !seen.Steps[n-1].Failed) {
				t.Errorf("it failed in %+v", seen.Steps)
			}
			if got := entries(place); len(got) > 0 {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

func TestARehearsalThatIsStoppedLeavesNothing(t *testing.T) {
	c, _, _ := furnished(t)
	ctx, stop := context.WithCancel(t.Context())
	place := t.TempDir()
	seen, err := Rehearse(ctx, c, quiet, backedUp(t, c), place, func(done, total int64) {
		if len(entries(place)) != 1 {
			t.Error("it is elsewhere")
		}
		if done == total {
			stop()
		}
	})
	if err == nil || err.Error() != "the rehearsal was stopped, and its files were removed" || seen.OK {
		t.Errorf("it says: %v", err)
	}
	if got := entries(place); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}
