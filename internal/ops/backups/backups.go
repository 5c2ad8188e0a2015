// Package backups makes backups of the embedded database at intervals, and deletes the oldest of them. It knows their
// directory and their file names; the function Make of its caller writes a backup.
//
// The names of the files are all that is remembered, so a restart does not begin the interval anew. The clock may jump:
// a backup whose name is in the future does not count as a recent one, and is the first to be deleted.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/base/disk"
)

// Bounds and defaults of the settings.
const (
	DefaultEvery = 24 * time.Hour
	DefaultKeep  = 7
	MinEvery     = time.Minute
	MaxEvery     = 366 * 24 * time.Hour
	MaxKeep      = 10_000

	look  = time.Minute      // between two looks at the clock
	retry = 10 * time.Minute // after a backup that failed
)

// The names of our files. Only these are ever deleted.
const layout = "20060102T150405Z"

var (
	named     = regexp.MustCompile(`^signet-(\d{8}T\d{6}Z)\.db$`)
	temporary = regexp.MustCompile(`^signet-\d{8}T\d{6}Z\.db\.\d+\.tmp(-journal)?$`)
)

// lockFile keeps two servers from one directory. It holds the name of the installation that the backups are of.
const lockFile = "signet-backups.lock"

// Backup is a file in the directory.
type Backup struct {
	Path string
	Made time.Time // in UTC, as its name says
}

// List gives the backups in a directory, in the order of their names.
func List(directory string) ([]Backup, error) {
	entries, err := os.ReadDir(directory) // in that order
	if err != nil {
		return nil, err
	}
	var all []Backup
	for _, e := range entries {
		match := named.FindStringSubmatch(e.Name())
		if match == nil || !e.Type().IsRegular() {
			continue
		}
		if made, err := time.Parse(layout, match[1]); err == nil {
			all = append(all, Backup{Path: filepath.Join(directory, e.Name()), Made: made})
		}
	}
	return all, nil
}

// Newest gives the last backup that was made before a time; nil where there is none.
func Newest(directory string, before time.Time) (*Backup, error) {
	all, err := List(directory)
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].Made.After(before) {
			return &all[i], err
		}
	}
	return nil, err
}

// Schedule makes backups until its Run ends. There is one for a directory.
type Schedule struct {
	Directory string
	Every     time.Duration
	Keep      int           // how many backups there are at most
	MaxAge    time.Duration // older ones are deleted, but for the last; 0: only Keep counts
	Make      func(ctx context.Context, path string) error
	Clock     func() time.Time
	Log       *slog.Logger

	lock     *os.File
	tried    time.Time // when one failed last; zero: the last one did not
	problem  atomic.Bool
	last     prometheus.Gauge
	failures prometheus.Counter
}

// Open locks the directory for the backups of one installation, and registers the metrics. Close it in the end. Errors:
// where the directory is missing, in use, or has the backups of another installation.
func (s *Schedule) Open(installation string, metrics prometheus.Registerer) error {
	s.last = prometheus.NewGauge(prometheus.GaugeOpts{Name: "signet_backup_last_success_timestamp_seconds",
		Help: "When the newest scheduled backup was made, in seconds since 1970; 0: there is none."})
	s.failures = prometheus.NewCounter(prometheus.CounterOpts{Name: "signet_backup_failures_total",
		Help: "Scheduled backups that failed since the server was started."})
	if err := s.acquire(installation); err != nil {
		return err
	}
	newest, err := Newest(s.Directory, s.Clock())
	if err == nil && newest != nil {
		s.last.Set(float64(newest.Made.Unix()))
	}
	for _, m := range []prometheus.Collector{s.last, s.failures} {
		err = errors.Join(err, metrics.Register(m))
	}
	return err
}

// acquire locks the directory.
func (s *Schedule) acquire(installation string) (err error) {
	path := filepath.Join(s.Directory, lockFile)
	s.lock, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = disk.Lock(s.lock)
	}
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("--backup-directory %s is in use by another server: every server needs its own", s.Directory)
	}
	if err != nil {
		return fmt.Errorf("--backup-directory %s: the user that runs signet must be able to write to it: %w",
			s.Directory, err)
	}
	text, err := os.ReadFile(path)
	owner := strings.TrimSpace(string(text))
	if err == nil && owner != installation && owner != "" {
		return fmt.Errorf("--backup-directory %s has the backups of another installation, which would be deleted in time: use another directory, or remove %s if they are not needed", s.Directory, path)
	}
	if err == nil && owner == "" {
		_, err = s.lock.WriteAt([]byte(installation+"\n"), 0)
	}
	return err
}

// Close gives the directory back.
func (s *Schedule) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// Failing tells whether the last backup failed.
func (s *Schedule) Failing() bool { return s.problem.Load() }

// Run makes backups until ctx ends. One that is being written then is given up.
func (s *Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for ctx.Err() == nil {
		s.Tend(ctx)
		select {
		case <-ticker.C: // the clock may have jumped, or the machine slept: nobody knows when the next one is due
		case <-ctx.Done():
		}
	}
}

// Tend makes a backup if one is due. Run calls it, one at a time.
func (s *Schedule) Tend(ctx context.Context) {
	now := s.Clock()
	due, err := s.due(now)
	if err == nil && !due {
		return
	}
	if since := now.Sub(s.tried); !s.tried.IsZero() && since >= 0 && since < min(retry, s.Every) {
		return
	}
	path := filepath.Join(s.Directory, "signet-"+now.UTC().Format(layout)+".db")
	if err == nil {
		err = s.makeOne(ctx, path)
	}
	if ctx.Err() != nil {
		return // the server stops: the next start makes it
	}
	if err != nil {
		s.tried = now
		s.problem.Store(true)
		s.failures.Inc()
		s.Log.Error("the scheduled backup failed: it is tried again", "error", err, "in", min(retry, s.Every).String())
		return
	}
	s.tried = time.Time{}
	s.problem.Store(false)
	s.last.Set(float64(now.Unix()))
	if err := s.thin(now, path); err != nil {
		s.Log.Warn("deleting old backups failed: it is tried again after the next backup", "error", err)
	}
}

// due tells whether no backup was made within the interval.
func (s *Schedule) due(now time.Time) (bool, error) {
	newest, err := Newest(s.Directory, now)
	return newest == nil || now.Sub(newest.Made) >= s.Every, err
}

// makeOne writes one backup. What a killed server has left of another one makes room for it.
func (s *Schedule) makeOne(ctx context.Context, path string) error {
	entries, err := os.ReadDir(s.Directory)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if temporary.MatchString(e.Name()) && e.Type().IsRegular() {
			if err := remove(filepath.Join(s.Directory, e.Name())); err != nil {
				return err
			}
		}
	}
	return s.Make(ctx, path)
}

// thin deletes the backups that are too many or too old. made is the one that was just written, and stays.
func (s *Schedule) thin(now time.Time, made string) error {
	all, err := List(s.Directory)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(b Backup) bool { return b.Path == made })
	future := func(b Backup) int {
		if b.Made.After(now) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b Backup) int { return future(a) - future(b) })
	for i, b := range all {
		if tooMany := len(all)-i > s.Keep-1; tooMany || s.MaxAge > 0 && now.Sub(b.Made) > s.MaxAge {
			err = errors.Join(err, remove(b.Path))
		}
	}
	return err
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
