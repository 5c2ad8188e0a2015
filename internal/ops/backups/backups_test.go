package backups

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/test/testkit"
)

// world is a schedule whose backups are small files.
type world struct {
	Schedule
	clock *testkit.Clock
	log   testkit.Log
	fails error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clock: testkit.NewClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))}
	w.Schedule = Schedule{
		Directory: t.TempDir(),
		Every:     24 * time.Hour,
		Keep:      3,
		Clock:     w.clock.Now,
		Log:       slog.New(slog.NewTextHandler(&w.log, nil)),
		Make: func(_ context.Context, path string) error {
			if w.fails != nil {
				return w.fails
			}
			return os.WriteFile(path, []byte("a backup"), 0o600)
		},
	}
	testkit.Must(t, w.Open("org_1", prometheus.NewRegistry()))
	t.Cleanup(func() { w.Close() })
	return w
}

// value is what a metric says.
func value(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	testkit.Must(t, r.Register(c))
	all, err := r.Gather()
	testkit.Must(t, err)
	m := all[0].GetMetric()[0]
	return m.GetGauge().GetValue() + m.GetCounter().GetValue()
}

// names are the files of the directory but for the lock.
func (w *world) names(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(w.Directory)
	testkit.Must(t, err)
	for _, e := range entries {
		if e.Name() != lockFile {
			all = append(all, e.Name())
		}
	}
	return all
}

func (w *world) want(t *testing.T, names ...string) {
	t.Helper()
	if got := w.names(t); !slices.Equal(got, names) {
		t.Errorf("there are %q, want %q\n%s", got, names, w.log.String())
	}
}

func (w *world) put(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Must(t, os.WriteFile(filepath.Join(w.Directory, name), nil, 0o600))
	}
}

// after tends to the backups when some time has passed.
func (w *world) after(t *testing.T, d time.Duration) {
	t.Helper()
	w.clock.Advance(d)
	w.Tend(t.Context())
}

func TestABackupIsMadeInEveryIntervalAndTheOldestGo(t *testing.T) {
	w := newWorld(t)
	w.after(t, 0)
	w.want(t, "signet-20260701T120000Z.db")
	w.after(t, 23*time.Hour)
	w.want(t, "signet-20260701T120000Z.db")
	w.after(t, time.Hour)
	w.after(t, 24*time.Hour)
	w.after(t, 24*time.Hour)
	w.want(t, "signet-20260702T120000Z.db", "signet-20260703T120000Z.db", "signet-20260704T120000Z.db")
	if got := value(t, w.last); got != float64(w.clock.Now().Unix()) {
		t.Errorf("the metric says %v", got)
	}
}

func TestARestartDoesNotBeginTheIntervalAnew(t *testing.T) {
	w := newWorld(t)
	w.put(t, "signet-20260701T000000Z.db")
	again := &Schedule{Directory: w.Directory, Every: w.Every, Keep: w.Keep, Make: w.Make, Clock: w.Clock, Log: w.Log}
	testkit.Must(t, w.Close())
	testkit.Must(t, again.Open("org_1", prometheus.NewRegistry()))
	t.Cleanup(func() { again.Close() })
	if got := value(t, again.last); got != float64(w.clock.Now().Add(-12*time.Hour).Unix()) {
		t.Errorf("the metric says %v", got)
	}
	again.Tend(t.Context())
	w.want(t, "signet-20260701T000000Z.db")
	w.clock.Advance(12 * time.Hour)
	again.Tend(t.Context())
	w.want(t, "signet-20260701T000000Z.db", "signet-20260702T000000Z.db")
}

func TestOnlyOurOwnFilesAreDeleted(t *testing.T) {
	w := newWorld(t)
	w.Keep = 1
	others := []string{"notes.txt", "signet-2026-01-01.db", "signet-20260101T000000Z.db.gz",
		"signet-20269999T000000Z.db", "signet.db", "signet-20260101T000000Z.db.x.tmp", "old-signet-20260101T000000Z.db"}
	w.put(t, others...)
	w.put(t, "signet-20260101T000000Z.db", "signet-20260102T000000Z.db", "signet-20260102T000000Z.db.123.tmp",
		"signet-20260102T000000Z.db.123.tmp-journal")
	directory := filepath.Join(w.Directory, "signet-20260103T000000Z.db")
	testkit.Must(t, os.Mkdir(directory, 0o700))
	w.after(t, 0)
	want := append(slices.Clone(others), filepath.Base(directory), "signet-20260701T120000Z.db")
	slices.Sort(want)
	w.want(t, want...)
}

func TestAClockThatJumps(t *testing.T) {
	w := newWorld(t)
	w.after(t, 0)
	year := 365 * 24 * time.Hour
	w.after(t, 10*year) // forward
	w.after(t, -10*year+24*time.Hour)
	w.want(t, "signet-20260701T120000Z.db", "signet-20260702T120000Z.db", "signet-20360628T120000Z.db")
	w.after(t, 24*time.Hour) // the one from the future is the first to go
	w.want(t, "signet-20260701T120000Z.db", "signet-20260702T120000Z.db", "signet-20260703T120000Z.db")
	w.after(t, -10*year) // back: one is made, and one goes
	w.want(t, "signet-20160705T120000Z.db", "signet-20260702T120000Z.db", "signet-20260703T120000Z.db")
	w.after(t, 10*year)
	if got := w.names(t); !slices.Contains(got, "signet-20260703T120000Z.db") {
		t.Errorf("%q", got)
	}
}

func TestOldBackupsGoButForTheLast(t *testing.T) {
	w := newWorld(t)
	w.Keep, w.MaxAge = 10, 48*time.Hour
	w.put(t, "signet-20260601T000000Z.db", "signet-20260630T110000Z.db")
	w.after(t, 0)
	w.want(t, "signet-20260630T110000Z.db", "signet-20260701T120000Z.db")
	w.fails = errors.New("no")
	w.after(t, 1000*time.Hour) // however old: nothing new is there
	w.want(t, "signet-20260630T110000Z.db", "signet-20260701T120000Z.db")
	w.fails = nil
	w.after(t, time.Hour)
	w.want(t, "signet-20260812T050000Z.db")
}

func TestABackupThatFailsIsSaidAndTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.fails = errors.New("the disk is full")
	w.after(t, 0)
	w.after(t, 9*time.Minute) // not yet
	if got := value(t, w.failures); got != 1 || !w.Failing() || !w.log.Has("level=ERROR") ||
		!w.log.Has("the disk is full") || value(t, w.last) != 0 {
		t.Errorf("%v failures: %s", got, w.log.String())
	}
	w.after(t, time.Minute)
	if got := value(t, w.failures); got != 2 {
		t.Errorf("%v failures", got)
	}
	w.after(t, -time.Hour) // a clock that goes back does not hold it up
	if got := value(t, w.failures); got != 3 {
		t.Errorf("%v failures", got)
	}
	w.fails = nil
	w.after(t, 10*time.Minute)
	if w.want(t, "signet-20260701T112000Z.db"); w.Failing() {
		t.Error("it is still said to fail")
	}
	testkit.Must(t, os.RemoveAll(w.Directory))
	w.after(t, 24*time.Hour)
	if !w.Failing() {
		t.Error("a directory that is gone is not said")
	}
}

func TestABackupThatTheServersEndStopsIsNoFailure(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	w.Make = func(ctx context.Context, _ string) error { stop(); return ctx.Err() }
	w.Tend(ctx)
	if w.Failing() || w.log.String() != "" {
		t.Error(w.log.String())
	}
}

func TestADirectoryBelongsToOneInstallation(t *testing.T) {
	w := newWorld(t)
	second := &Schedule{Directory: w.Directory, Clock: w.Clock}
	if err := second.Open("org_1", prometheus.NewRegistry()); err == nil ||
		!strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("beside a server: %v", err)
	}
	testkit.Must(t, w.Close())
	if err := second.Open("org_2", prometheus.NewRegistry()); err == nil ||
		!strings.Contains(err.Error(), "another installation") {
		t.Errorf("after one of another installation: %v", err)
	}
	testkit.Must(t, second.Close())
	testkit.Must(t, second.Open("org_1", prometheus.NewRegistry()))
	second.Close()
}
