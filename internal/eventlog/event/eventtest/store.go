// Package eventtest tests the rules of an object: given facts, when an operation runs, then facts or a refusal.
//
//	s := eventtest.New(t, org.Kind, user.Kind)
//	eventtest.Given(t, s, user.Kind, "usr_a", "org_a", claims, user.HumanAdded{…})
//	mark := s.Mark()
//	_, err := user.ReplaceProfile(ctx, s, caller, match, profile)
//	s.Then(t, mark, eventtest.Fact{…})
//
// The store is the real one, on the embedded database, with a clock that the test sets. When a test ends, the log is
// folded again and has to give the same state.
package eventtest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testkit"
)

// Start is the time on the clock of a new store.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// Store is an event.Store of a test. Safe for concurrent use.
type Store struct {
	*store.Store
	*testkit.Clock
	Master secret.MasterKey

	path string
}

var _ event.Log = (*Store)(nil)

// New makes an empty store for objects of these kinds.
func New(t testing.TB, kinds ...event.Definition) *Store {
	t.Helper()
	s := &Store{Clock: testkit.NewClock(Start), path: filepath.Join(directory(t), "signet.db")}
	made, err := empty()
	if err == nil {
		err = os.WriteFile(s.path, made.file, 0o600)
	}
	if err == nil {
		s.Store, err = open(s.path, store.Options{Kinds: kinds, Master: made.key, Clock: s.Now})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Master = s.RootKey()
	t.Cleanup(func() {
		if report, err := s.RebuildCheck(context.Background()); err != nil || len(report.Differences) > 0 {
			t.Errorf("the log does not fold to the state: %v, %v", report, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// empty is a database without content. Making it takes longer than most tests: they begin with copies of one.
var empty = sync.OnceValues(func() (made struct {
	file []byte
	key  secret.MasterKey
}, err error) {
	dir, err := os.MkdirTemp("", "signet-test-")
	if err != nil {
		return made, err
	}
	defer os.RemoveAll(dir)
	made.key = secret.NewMasterKey()
	path := filepath.Join(dir, "signet.db")
	s, err := open(path, store.Options{Master: made.key})
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		made.file, err = os.ReadFile(path)
	}
	return made, err
})

// open opens a database in which nothing happens by itself.
func open(path string, o store.Options) (*store.Store, error) {
	o.Database, o.Log, o.SweepInterval, o.SealInterval = path, slog.New(slog.DiscardHandler), 24*time.Hour, 24*time.Hour
	s, _, err := store.Open(context.Background(), o)
	return s, err
}

// directory is in memory where the system has such a place: what a test writes need not outlive a power cut.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "signet-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
