package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// erase destroys a key.
func erase(s *Store, key string) error {
	return s.Do(context.Background(), event.Command{Decide: func(tx *event.Tx) error {
		tx.DropRow(event.RowKey{Table: event.Keys, Key: key})
		return nil
	}})
}

func put(t *testing.T, s *Store, key, value string) {
	t.Helper()
	err := s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
		tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Keys, Key: key}, Value: []byte(value)})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// inFiles tells whether something is in the files of an embedded database.
func inFiles(t *testing.T, path, text string) bool {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(text)) {
			return true
		}
	}
	return false
}

func TestWhatIsErasedIsOutOfTheFilesWhenThatIsAnswered(t *testing.T) {
	db := testdb.New(t, testdb.SQLite)
	s, _, err := Open(t.Context(), Options{Database: db.URL, Master: secret.NewMasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, value := range []string{"key1-of-somebody", "key2-of-somebody" + strings.Repeat("x", 10000)} {
		put(t, s, "key", value)
		if !inFiles(t, db.URL, value[:16]) {
			t.Fatal("the search finds nothing at all")
		}
		if err := erase(s, "key"); err != nil {
			t.Fatal(err)
		}
		if inFiles(t, db.URL, value[:16]) {
			t.Error("it is still there")
		}
	}
}

func TestAReaderHoldsAnErasureUpForAWhileOnly(t *testing.T) {
	db := testdb.New(t, testdb.SQLite)
	said := &testkit.Log{}
	s, _, err := Open(t.Context(), Options{
		Database: db.URL,
		Master:   secret.NewMasterKey(),
		Log:      slog.New(slog.NewTextHandler(said, nil)),
		scrub:    scrubTimes{patience: time.Millisecond, pause: time.Millisecond, interval: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "key", "key-of-somebody")
	reader, err := sql.Open("sqlite", "file:"+db.URL+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	tx, err := reader.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM keys").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if err := erase(s, "key"); err != nil {
		t.Fatal(err)
	}
	if !inFiles(t, db.URL, "key-of-somebody") {
		t.Fatal("the reader is in nobody's way")
	}
	testkit.Await(t, "the log says so",
		func() bool { return said.Has("a long-running reader keeps erased data in the write-ahead log") })
	put(t, s, "another", "value") // the writer goes on
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "it is gone by itself", func() bool { return !inFiles(t, db.URL, "key-of-somebody") })
	testkit.Await(t, "the log says so", func() bool { return said.Has("contains no erased data") })
}

// scrubFailing fails to scrub while it is told to.
type scrubFailing struct {
	engine.Engine
	fails atomic.Bool
}

func (f *scrubFailing) Scrub(ctx context.Context) (bool, error) {
	if f.fails.Load() {
		return false, errors.New("the disk is full")
	}
	return f.Engine.Scrub(ctx)
}

func TestADiskThatFailsHoldsNoErasureUp(t *testing.T) {
	db := testdb.New(t, testdb.SQLite)
	disk, said := &scrubFailing{}, &testkit.Log{}
	s, _, err := Open(t.Context(), Options{
		Database: db.URL,
		Master:   secret.NewMasterKey(),
		Log:      slog.New(slog.NewTextHandler(said, nil)),
		scrub:    scrubTimes{patience: time.Hour, interval: time.Millisecond},
		wrap: func(e engine.Engine) engine.Engine {
			disk.Engine = e
			return disk
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "key", "key-of-somebody")
	disk.fails.Store(true)
	if err := erase(s, "key"); err != nil {
		t.Fatal(err)
	}
	if !inFiles(t, db.URL, "key-of-somebody") || !said.Has("the disk is full") || said.Has("a long-running reader") {
		t.Error("the files are clean already, or the log does not say what is in the way")
	}
	disk.fails.Store(false)
	testkit.Await(t, "it is gone by itself", func() bool { return !inFiles(t, db.URL, "key-of-somebody") })
}

// scrubCounting counts how often the files are scrubbed.
type scrubCounting struct {
	engine.Engine
	scrubbed atomic.Int64
	gate     chan struct{} // nil: open
}

func (c *scrubCounting) Scrub(ctx context.Context) (bool, error) {
	if c.scrubbed.Add(1) > 1 && c.gate != nil {
		<-c.gate
	}
	return c.Engine.Scrub(ctx)
}

func TestOnlyErasuresScrubAndThoseThatComeTogetherShareIt(t *testing.T) {
	db := testdb.New(t, testdb.SQLite)
	count := &scrubCounting{gate: make(chan struct{})}
	options := Options{Database: db.URL, Master: secret.NewMasterKey(), wrap: func(e engine.Engine) engine.Engine {
		count.Engine = e
		return count
	}}
	s, _, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "it looks after what was left when it starts", func() bool { return count.scrubbed.Load() == 1 })
	const many = 50
	for i := range many {
		put(t, s, fmt.Sprint("key", i), "value")
	}
	if n := count.scrubbed.Load(); n != 1 {
		t.Errorf("scrubbed %d times for nothing", n)
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if err := erase(s, fmt.Sprint("key", i)); err != nil {
				t.Error(err)
			}
		})
	}
	testkit.Await(t, "the first is being seen to", func() bool { return count.scrubbed.Load() == 2 })
	put(t, s, "other", "value") // who erases nobody does not wait
	testkit.Await(t, "all wait for the files to be scrubbed", func() bool {
		left := 0
		err := s.engine.Query(t.Context(), "SELECT count(*) FROM keys WHERE key <> 'other'", nil,
			func(scan engine.Scanner) error { return scan(&left) })
		testkit.Must(t, err)
		return left == 0
	})
	close(count.gate)
	all.Wait()
	if n := count.scrubbed.Load(); n > 20 {
		t.Errorf("scrubbed %d times", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
