package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/ops/backups"
	"github.com/signet-idm/signet/internal/ops/verification"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestSettingsOfScheduledBackups(t *testing.T) {
	day := 24 * time.Hour
	for _, w := range []struct {
		c    Config
		says string
	}{
		{Config{BackupDirectory: "b"}, ""},
		{Config{BackupDirectory: "b", BackupEvery: time.Minute, BackupKeep: 1, BackupMaxAge: time.Minute}, ""},
		{Config{BackupEvery: day}, "need --backup-directory"},
		{Config{BackupKeep: 1}, "need --backup-directory"},
		{Config{BackupMaxAge: day}, "need --backup-directory"},
		{Config{Data: Data{Database: "postgres://signet:opensesame@db/signet"}, BackupDirectory: "b"}, "pg_basebackup"},
		{Config{BackupDirectory: "b", BackupEvery: time.Second}, "--backup-every must be between"},
		{Config{BackupDirectory: "b", BackupEvery: 400 * day}, "--backup-every must be between"},
		{Config{BackupDirectory: "b", BackupKeep: -1}, "--backup-keep must be between"},
		{Config{BackupDirectory: "b", BackupMaxAge: time.Hour}, "must not be shorter than --backup-every"},
	} {
		w.c.Listen, w.c.DataDir = "localhost:8080", "data"
		s, err := w.c.settle()
		if (err == nil) != (w.says == "") ||
			err != nil && (!strings.Contains(err.Error(), w.says) || strings.Contains(err.Error(), "opensesame")) {
			t.Errorf("%+v: %v", w.c, err)
		}
		if err == nil && (s.BackupEvery == 0 || s.BackupKeep == 0) {
			t.Errorf("%+v has no defaults", s.Config)
		}
	}
}

func TestAServerBacksItselfUp(t *testing.T) {
	c := home(t, testdb.New(t, testdb.SQLite))
	c.BackupDirectory = filepath.Join(c.DataDir, "backups")
	testkit.Must(t, os.MkdirAll(c.BackupDirectory, 0o700))
	if _, err := Open(t.Context(), c, quiet); err == nil ||
		!strings.Contains(err.Error(), "must not be in the data directory") {
		t.Fatalf("in the data directory: %v", err)
	}
	c.BackupDirectory = filepath.Join(t.TempDir(), "backups")
	if _, err := Open(t.Context(), c, quiet); err == nil || !strings.Contains(err.Error(), "create it first") {
		t.Fatalf("in no directory: %v", err)
	}
	if got := entries(c.DataDir); strings.Join(got, " ") != "backups lock" {
		t.Errorf("an installation was made: %q", got)
	}
	testkit.Must(t, os.Mkdir(c.BackupDirectory, 0o700))
	s := opened(t, c)
	var made []backups.Backup
	testkit.Await(t, "there is a backup", func() bool {
		var err error
		made, err = backups.List(c.BackupDirectory)
		return err == nil && len(made) == 1
	})
	if info, err := os.Stat(made[0].Path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	to := Config{Data: Data{DataDir: filepath.Join(t.TempDir(), "data"),
		MasterKeyFile: filepath.Join(c.DataDir, "master.key")}}
	if _, err := Restore(t.Context(), to, quiet, made[0].Path, nil); err != nil {
		t.Error(err)
	}
	testkit.Await(t, "the metric says so",
		func() bool { return metric(t, s, "signet_backup_last_success_timestamp_seconds") > 0 })
	if last, failed := metric(t, s, "signet_backup_last_success_timestamp_seconds"),
		metric(t, s, "signet_backup_failures_total"); last != float64(made[0].Made.Unix()) || failed != 0 {
		t.Errorf("the metrics say %v, and %v failures", last, failed)
	}
	testkit.Must(t, s.Close())
	opened(t, c).Close()
	if again, err := backups.List(c.BackupDirectory); err != nil || len(again) != 1 {
		t.Errorf("after a restart: %v, %v", again, err)
	}
}

func TestAServerVerifiesItsLog(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		c := home(t, db)
		c.VerifyEvery = time.Second
		if _, err := c.settle(); err == nil || !strings.Contains(err.Error(), "--verify-every must be between") {
			t.Errorf("a second: %v", err)
		}
		c.VerifyEvery = time.Hour
		s := opened(t, c)
		if s.verification.Tend(t.Context()); metric(t, s, "signet_verification_log_changed") != 0 ||
			s.details()["verification"] != "" {
			t.Errorf("%v", s.details())
		}
		if got, err := verification.Read(t.Context(), s.store); err != nil || got == nil || got.Since == 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// metric is what the server says about itself; -1: nothing.
func metric(t *testing.T, s *Server, name string) float64 {
	t.Helper()
	all, err := s.metrics.Gather()
	testkit.Must(t, err)
	for _, m := range all {
		if m.GetName() == name {
			return m.GetMetric()[0].GetGauge().GetValue() + m.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

// A disk that is full is survived: the server says so, nothing half is left, and it goes on by itself when there is
// room.
func TestAFullDiskForBackups(t *testing.T) {
	small := smallDisk(t)
	c := home(t, testdb.New(t, testdb.SQLite))
	c.BackupDirectory = small
	log := &testkit.Log{}
	s, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(log, nil)))
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close() })
	testkit.Await(t, "it is said", func() bool { return log.Has("the scheduled backup failed") })
	if s.details()["backup"] == "" {
		t.Errorf("%v: %s", s.details(), log.String())
	}
	if got := entries(small); strings.Join(got, " ") != "signet-backups.lock" {
		t.Errorf("left behind: %q", got)
	}
	s.furnish(t, s.FirstAdmin.Token) // it serves
}

// smallDisk is a directory with room for less than a database.
func smallDisk(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root can make a small disk")
	}
	path := t.TempDir()
	if err := mountSmall(path); err != nil {
		t.Skip("no small disk can be made here: ", err)
	}
	t.Cleanup(func() { testkit.Must(t, unmountSmall(path)) })
	return path
}
