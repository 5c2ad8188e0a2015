package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/signet-idm/signet/internal/base/disk"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/ops/verification"
)

// Progress is told how many bytes of about how many are done.
type Progress func(done, total int64)

// BackupReport says what is in a backup.
type BackupReport struct {
	Path     string
	Size     int64
	Events   int64
	Position int64
	// Unchecked is why not everything was checked that a restore checks; empty: all of it was.
	Unchecked string
}

// backupOptions are for a backup that the server makes beside its requests.
type backupOptions struct {
	master   *secret.MasterKey // nil: where the operator has it
	rest     func(context.Context) error
	strict   bool // what cannot be checked is no backup
	progress Progress
}

// Backup writes a copy of the embedded database into a new file, beside a server that may be running, and checks it as
// a restore would. The key is not in the copy; without it, only the file is checked, and the report says so. When it
// fails it leaves nothing behind.
func Backup(ctx context.Context, c Config, target string, progress Progress) (*BackupReport, error) {
	return backup(ctx, c, target, backupOptions{progress: progress})
}

func backup(ctx context.Context, c Config, target string, o backupOptions) (*BackupReport, error) {
	if c.Database != "" {
		return nil, errors.New("signet backup is for the embedded database: for PostgreSQL, use pg_dump with all tables, and keep a copy of the master key")
	}
	dir, err := datadir.Open(c.DataDir, false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	database, err := dir.Database()
	if err != nil {
		return nil, err
	}
	switch look, err := store.LookAt(ctx, store.Options{Database: database, ReadOnly: true}); {
	case err != nil:
		return nil, err
	case look.MovedTo != "":
		return nil, goneTo(look.MovedTo)
	case !look.Filled:
		return nil, errors.New("there is no installation here yet: create one with signet start")
	}
	if target, err = checkTarget(dir, target); err != nil {
		return nil, err
	}
	report := &BackupReport{Path: target}
	err = newFile(target, func(made string) error {
		total, err := engine.FileSize(ctx, database)
		if err != nil {
			return err
		}
		stop := background(func(ctx context.Context) { watchSize(ctx, made, total, o.progress) })
		err = engine.CopyFile(ctx, database, made)
		stop()
		if err != nil {
			return err
		}
		if err := engine.CheckFile(ctx, made, o.rest); err != nil {
			return err
		}
		if err := report.count(ctx, made); err != nil {
			return err
		}
		if err := report.check(ctx, c, dir, made, o); err != nil {
			return err
		}
		if o.strict && report.Unchecked != "" {
			return errors.New("it could not be checked: " + report.Unchecked)
		}
		return nil
	})
	if err != nil && ctx.Err() != nil {
		return nil, errors.New("the backup was stopped, and its file was removed")
	}
	if engine.IsDamage(err) {
		return nil, fmt.Errorf("no backup was made, because it could not be restored: %w: %s", err, engine.Mend)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the backup: %w", err)
	}
	return report, nil
}

// checkTarget finds what is wrong with the place of a backup before any work is done.
func checkTarget(dir *datadir.Dir, target string) (string, error) {
	abs, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	if err := outside(dir, filepath.Dir(abs)); err != nil {
		return "", err
	}
	if _, err := os.Lstat(abs); !errors.Is(err, fs.ErrNotExist) {
		return "", alreadyThere(abs)
	}
	return abs, nil
}

// outside finds out whether backups can be in a directory: it has to exist, and must not be lost with the data.
func outside(dir *datadir.Dir, parent string) error {
	if info, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return fmt.Errorf("the directory %s for the backup does not exist: create it first", parent)
	} else if err != nil {
		return fmt.Errorf("the directory for the backup: %w", err)
	}
	inside, err := dir.Contains(filepath.Join(parent, "backup"))
	if err != nil {
		return err
	}
	if inside {
		return errors.New("the backup must not be in the data directory, because both would be lost together: choose another place, preferably on another disk")
	}
	return nil
}

func alreadyThere(path string) error {
	return fmt.Errorf("%s already exists, and a backup never replaces a file: choose another name", path)
}

// newFile makes a file under a temporary name, for its owner alone, lets fill write it, and gives it its name when all
// of it is on the disk.
func newFile(path string, fill func(made string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	made := f.Name()
	defer func() {
		f.Close()
		for _, name := range []string{made, made + "-journal"} { // SQLite leaves its journal where the disk is full
			if removed := os.Remove(name); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
	}()
	if err := fill(made); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	// A second name, unlike a new one, never takes the place of a file. Not every file system knows that.
	if err := os.Link(made, path); errors.Is(err, fs.ErrExist) {
		return alreadyThere(path)
	} else if err != nil {
		if err := os.Rename(made, path); err != nil {
			return err
		}
	}
	return disk.SyncDirectory(filepath.Dir(path))
}

// watchSize tells how a file grows.
func watchSize(ctx context.Context, path string, total int64, progress Progress) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for more := true; more; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			more = false
		}
		if info, err := os.Stat(path); err == nil && progress != nil {
			progress(info.Size(), total)
		}
	}
}

// count looks into the copy: what it says is what is really there.
func (r *BackupReport) count(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	r.Size = info.Size()
	e, err := engine.Open(ctx, engine.Options{Database: path, ReadOnly: true})
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Query(ctx, "SELECT count(*), coalesce(max(position), 0) FROM events", nil,
		func(scan engine.Scanner) error {
			return scan(&r.Events, &r.Position)
		})
}

// check looks into the copy as a restore would, but writes nothing.
func (r *BackupReport) check(ctx context.Context, c Config, dir *datadir.Dir, path string, o backupOptions) error {
	master := o.master
	if master == nil {
		found, err := dir.MasterKey(c.MasterKey, c.MasterKeyFile, false)
		if err == nil {
			var fits bool
			if fits, err = store.Fits(ctx, path, found); err == nil && !fits {
				err = errors.New("the master key is not that of this database")
			}
		}
		if err != nil {
			r.Unchecked = err.Error()
			return nil
		}
		master = &found
	}
	st, _, err := store.Open(ctx,
		store.Options{Database: path, Kinds: model.Kinds, Master: *master, Log: slog.New(slog.DiscardHandler),
			ReadOnly: true})
	if err != nil {
		return err
	}
	defer st.Close()
	if plan, err := st.Plan(ctx); err != nil {
		return err
	} else if !plan.Empty() {
		r.Unchecked = "the data is of an older version: this program can check it only after an upgrade"
		return nil
	}
	verified := proof.Options{}
	read := func(int64) {}
	if o.rest != nil {
		verified.Pace, verified.Chains = o.rest, verification.Chains
		read = func(int64) { _ = o.rest(ctx) } // where ctx has ended, so does what reads
	}
	report, err := st.RebuildCheckTold(ctx, read)
	if err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return &engine.DamagedError{What: report.Differences[0]}
	}
	proven, err := st.Verify(ctx, verified)
	if err != nil {
		return err
	}
	if proven.Finding != nil {
		return fmt.Errorf("the log was changed, and a backup of it could not be restored: %s: see docs/operations/verify.md", proven.Finding)
	}
	return nil
}

// Restore makes a backup the database of a data directory that has none. It needs the master key that the installation
// had when the backup was made. Until everything is checked there is no database in the directory, and when it fails
// there is none, but a mark that keeps a start from making a new installation there.
func Restore(ctx context.Context, c Config, log *slog.Logger, file string,
	progress Progress) (report *store.RebuildReport, err error) {
	if c.Database != "" {
		return nil, errors.New("signet restore is for the embedded database: for PostgreSQL, use pg_restore or psql with an empty database, and start with the master key")
	}
	elsewhere := c.MasterKey != "" || c.MasterKeyFile != ""
	dir, err := datadir.Open(c.DataDir, false)
	if missing := errors.Is(err, fs.ErrNotExist); missing && !elsewhere {
		return nil, fmt.Errorf("a restore needs the master key of the installation: put it into %s, or give it with --master-key-file or SIGNET_MASTER_KEY",
			filepath.Join(c.DataDir, "master.key"))
	} else if err != nil && !missing {
		return nil, err
	}
	if dir != nil {
		defer func() { err = errors.Join(err, dir.Close()) }()
		if err := dir.Vacant(); err != nil {
			return nil, err
		}
	}
	master, err := keyOf(ctx, dir, c, file)
	if err != nil {
		return nil, err
	}
	if dir == nil {
		if dir, err = datadir.Open(c.DataDir, true); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	if err := dir.Lock(); err != nil {
		return nil, err
	}
	path, err := dir.Restoring()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && ctx.Err() != nil { // whatever it broke off, nothing was found wrong with the backup
			err = errors.New("the restore was stopped: run it again")
		}
		if err != nil {
			err = errors.Join(err, dir.GiveUpRestoring())
		}
	}()
	if err := copyFile(ctx, file, path, progress); err != nil {
		return nil, fmt.Errorf("copying the backup: %w", err)
	}
	if err := engine.CheckFile(ctx, path, nil); err != nil {
		return nil, fmt.Errorf("the backup is damaged, and nothing was restored: %w", err)
	}
	if report, err = checkAll(ctx, path, master, log, &Rehearsal{}); err != nil {
		return nil, err
	}
	return report, dir.AdoptRestored()
}

// keyOf finds the master key of a backup, and sees that it is a backup and that the key fits.
func keyOf(ctx context.Context, dir *datadir.Dir, c Config, file string) (secret.MasterKey, error) {
	var none secret.MasterKey
	info, err := os.Stat(file)
	if err != nil {
		return none, fmt.Errorf("the backup: %w", err)
	}
	if !info.Mode().IsRegular() {
		return none, fmt.Errorf("the backup %s is not a file", file)
	}
	switch err := engine.IsWhole(file); {
	case errors.Is(err, engine.ErrInWAL):
		return none, fmt.Errorf("%s is not a backup: %w: make one with signet backup", file, err)
	case errors.Is(err, engine.ErrNoDatabase):
		return none, fmt.Errorf("%s is not a backup: %w", file, err)
	case err != nil:
		return none, fmt.Errorf("the backup: %w", err)
	}
	filled, err := store.HasData(ctx, file)
	if err != nil {
		return none, fmt.Errorf("%s cannot be read as a backup: %w", file, err)
	}
	if !filled {
		return none, fmt.Errorf("%s is not a backup: it contains no installation", file)
	}
	master, err := dir.MasterKey(c.MasterKey, c.MasterKeyFile, false)
	if err != nil {
		return none, err
	}
	fits, err := store.Fits(ctx, file, master)
	if err != nil {
		return none, err
	}
	if !fits {
		return none, errors.New("the master key does not fit this backup: use the key that the installation had when the backup was made, even if it was rotated since")
	}
	return master, nil
}

// copyFile copies a file into a new one that only its owner can read.
func copyFile(ctx context.Context, from, to string, progress Progress) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	const step = 1 << 20
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(target, source, step)
		if done += n; progress != nil {
			progress(done, info.Size())
		}
		if errors.Is(err, io.EOF) {
			return target.Sync()
		}
		if err != nil {
			return err
		}
	}
}

// checkAll opens a restored database as a start would, which brings its schema up to date, and runs every check there
// is.
func checkAll(ctx context.Context, path string, master secret.MasterKey, log *slog.Logger,
	seen *Rehearsal) (report *store.RebuildReport, err error) {
	done := seen.step("open")
	st, _, err := store.Open(ctx, store.Options{Database: path, Kinds: model.Kinds, Master: master, Log: log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }() // which puts all of it into the one file
	done()
	done = seen.step("rebuild --check")
	if report, err = st.RebuildCheck(ctx); err != nil {
		return nil, err
	}
	seen.Objects = report.Objects
	if len(report.Differences) > 0 {
		return nil, fmt.Errorf("the backup is damaged, and nothing was restored: %s", report.Differences[0])
	}
	done()
	done = seen.step("verify")
	proven, err := st.Verify(ctx, proof.Options{})
	if err != nil {
		return nil, err
	}
	if proven.Finding != nil {
		return nil, fmt.Errorf("the log in the backup was changed, and nothing was restored: %s", proven.Finding)
	}
	done()
	seen.Unsealed, seen.Head = proven.Unsealed, proven.Head.String()
	return report, nil
}
