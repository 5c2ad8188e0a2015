package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/signet-idm/signet/internal/base/disk"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// Rehearsal says what was seen of a backup that was restored for a trial.
type Rehearsal struct {
	File      string    `json:"file"`
	Size      int64     `json:"bytes"`
	OK        bool      `json:"ok"`
	Problem   string    `json:"problem,omitempty"` // why it is not fine
	Events    int64     `json:"events"`
	Objects   int       `json:"objects"`
	Position  int64     `json:"position"`           // of the last event
	LastEvent time.Time `json:"lastEvent,omitzero"` // when that was written
	Unsealed  int64     `json:"unsealed"`
	Head      string    `json:"head,omitempty"` // of the log, as signet verify --expect takes it
	Steps     []Step    `json:"steps"`
}

// Step is a part of a rehearsal.
type Step struct {
	Name   string  `json:"name"`
	Took   float64 `json:"seconds"`
	Failed bool    `json:"failed,omitempty"` // it did not come to its end
}

// step begins a part of a rehearsal. What it gives back ends it.
func (r *Rehearsal) step(name string) (done func()) {
	began, at := time.Now(), len(r.Steps)
	r.Steps = append(r.Steps, Step{Name: name, Failed: true})
	return func() { r.Steps[at] = Step{Name: name, Took: time.Since(began).Seconds()} }
}

// rehearsalNames is what directories of rehearsals are called.
const rehearsalNames = "signet-rehearsal-*"

// Room that a rehearsal needs: the copy, and as much again for a migration that rewrites every row.
const (
	roomFactor = 2
	roomBeside = 64 << 20
)

// Rehearse restores a backup into a temporary directory below parent (empty: where the system has its own), checks it
// there as a restore would, and removes it. It needs the master key that a restore needs. The data directory is left
// alone: a server may run on it. What was seen is told also where it fails.
func Rehearse(ctx context.Context, c Config, log *slog.Logger, file, parent string,
	progress Progress) (seen *Rehearsal, err error) {
	seen = &Rehearsal{File: file, Steps: []Step{}}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.New("the rehearsal was stopped, and its files were removed")
		}
		if seen.OK = err == nil; err != nil {
			seen.Problem = err.Error()
		}
	}()
	if c.Database != "" {
		return seen, errors.New("a rehearsal is for backups of the embedded database: for PostgreSQL, restore into another server and run signet verify and signet rebuild --check there, see docs/operations/backup.md")
	}
	done := seen.step("key")
	own, err := datadir.Open(c.DataDir, false)
	if missing := errors.Is(err, fs.ErrNotExist); missing && c.MasterKey == "" && c.MasterKeyFile == "" {
		return seen, errors.New("a rehearsal needs the master key of the installation: name its data directory with --data-dir, or give the key with --master-key-file or SIGNET_MASTER_KEY")
	} else if err != nil && !missing {
		return seen, err
	}
	master, err := keyOf(ctx, own, c, file)
	if err != nil {
		return seen, err
	}
	done()
	info, err := os.Stat(file)
	if err != nil {
		return seen, err
	}
	seen.Size = info.Size()
	if parent == "" {
		parent = os.TempDir()
	}
	removeLeftRehearsals(parent, log)
	if err := hasRoom(parent, seen.Size); err != nil {
		return seen, err
	}
	temporary, err := os.MkdirTemp(parent, rehearsalNames)
	if err != nil {
		return seen, fmt.Errorf("the place for the rehearsal: %w: name another one with --rehearse-directory", err)
	}
	defer func() {
		if removed := os.RemoveAll(temporary); removed != nil {
			err = errors.Join(err,
				fmt.Errorf("the rehearsal could not be removed, and personal data is left in it: %w", removed))
		}
	}()
	dir, err := datadir.Open(temporary, false)
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := dir.Lock(); err != nil {
		return seen, err
	}
	path, err := dir.Restoring()
	if err != nil {
		return seen, err
	}
	done = seen.step("copy")
	if err := copyFile(ctx, file, path, progress); err != nil {
		return seen, fmt.Errorf("copying the backup: %w", err)
	}
	done()
	done = seen.step("integrity")
	if err := engine.CheckFile(ctx, path, nil); err != nil {
		return seen, fmt.Errorf("the backup is damaged: %w", err)
	}
	done()
	if err := seen.lookInto(ctx, path); err != nil {
		return seen, err
	}
	_, err = checkAll(ctx, path, master, log, seen)
	return seen, err
}

// hasRoom refuses a directory that a backup of a size would fill.
func hasRoom(parent string, size int64) error {
	free, err := disk.Free(parent)
	if err != nil {
		return fmt.Errorf("the place for the rehearsal: %w: name another one with --rehearse-directory", err)
	}
	if need := uint64(size)*roomFactor + roomBeside; free < need {
		return fmt.Errorf("the rehearsal needs %d MiB in %s, but only %d MiB are free: name another place with --rehearse-directory", need>>20, parent, free>>20)
	}
	return nil
}

// removeLeftRehearsals removes what was killed. What is locked is in use.
func removeLeftRehearsals(parent string, log *slog.Logger) {
	left, _ := filepath.Glob(filepath.Join(parent, rehearsalNames))
	for _, path := range left {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		dir, err := datadir.Open(path, false)
		if err != nil || dir.Lock() != nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(path), dir.Close()); err != nil {
			log.Warn("what an earlier rehearsal has left could not be removed", "directory", path, "error", err)
		}
	}
}

// lookInto counts the events of a backup.
func (r *Rehearsal) lookInto(ctx context.Context, path string) error {
	e, err := engine.Open(ctx, engine.Options{Database: path, ReadOnly: true})
	if err != nil {
		return err
	}
	defer e.Close()
	err = e.Query(ctx, "SELECT count(*), coalesce(max(position), 0) FROM events", nil,
		func(scan engine.Scanner) error { return scan(&r.Events, &r.Position) })
	if err != nil {
		return err
	}
	return e.Query(ctx, "SELECT time FROM events WHERE position = ?", []any{r.Position},
		func(scan engine.Scanner) error {
			var micros int64
			err := scan(&micros)
			r.LastEvent = event.Time(micros).UTC()
			return err
		})
}
