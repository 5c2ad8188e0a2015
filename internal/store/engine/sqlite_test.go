package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/cache"
)

// Rows grow, shrink and move from page to page. What is deleted must not stay where it once was: see package scrubvfs, which
// SQLite needs for that.
func TestWhatIsDeletedIsInNoPageThatItWasEverIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signet.db")
	e, err := Open(t.Context(), Options{Database: path, Cache: cache.New(event.TokenKinds{}), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const people, step = 2000, 100
	names := make([]string, people)
	do := func(text string, args ...any) {
		t.Helper()
		if err := e.Transact(t.Context(), func(x Executor) error { return x.Exec(t.Context(), text, args...) }); err != nil {
			t.Fatal(err)
		}
	}
	each := func(write func(x Executor, i int) error) {
		t.Helper()
		for from := 0; from < people; from += step {
			err := e.Transact(t.Context(), func(x Executor) error {
				for i := from; i < from+step; i++ {
					if err := write(x, i); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx := context.Background()
	doc := func(i, round int) string { return names[i] + strings.Repeat("x", (i*7919+round*104729)%900) }
	do("CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID")
	do("CREATE INDEX people_name ON people (name, id)")
	each(func(x Executor, i int) error {
		names[i] = "name-" + rand.Text()
		return x.Exec(ctx, "INSERT INTO people (id, name, doc) VALUES (?, ?, ?)", fmt.Sprint("person-", i), names[i], doc(i, 0))
	})
	each(func(x Executor, i int) error {
		return x.Exec(ctx, "UPDATE people SET doc = ? WHERE id = ?", doc(i, 1), fmt.Sprint("person-", i))
	})
	each(func(x Executor, i int) error {
		if i%4 != 0 {
			return nil
		}
		return x.Exec(ctx, "UPDATE people SET name = '', doc = '' WHERE id = ?", fmt.Sprint("person-", i))
	})
	if done, err := e.Scrub(t.Context()); !done || err != nil {
		t.Fatal(done, err)
	}
	search := func(name string) {
		t.Helper()
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i := 0; i < people; i += 4 {
			if bytes.Contains(content, []byte(names[i])) {
				found++
			}
		}
		if found > 0 || !bytes.Contains(content, []byte(names[1])) {
			t.Errorf("%d of those who are gone are in %s", found, filepath.Base(name))
		}
	}
	search(path)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("the write-ahead log: %v, %v", info, err)
	}
	// The next one who writes to a page takes it from memory, where SQLite still has what it left there.
	each(func(x Executor, i int) error {
		if i%4 == 0 {
			return nil
		}
		return x.Exec(ctx, "UPDATE people SET doc = 'short' WHERE id = ?", fmt.Sprint("person-", i))
	})
	search(path + "-wal")
}

// Whatever the driver says then, whoever ended the context is told that it has ended.
func TestAnErrorAfterTheEndOfTheContextSaysSo(t *testing.T) {
	e, err := Open(t.Context(), Options{Database: filepath.Join(t.TempDir(), "signet.db"), Cache: cache.New(event.TokenKinds{}), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, transaction := range map[string]func(context.Context, func(Executor) error) error{"transact": e.Transact, "snapshot": e.Snapshot} {
		ctx, cancel := context.WithCancel(t.Context())
		closed := errors.New("the statement is closed")
		if err := transaction(ctx, func(Executor) error { return closed }); err != closed {
			t.Errorf("%s: %v", name, err)
		}
		err := transaction(ctx, func(Executor) error {
			cancel()
			return closed
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, closed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
