package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/test/testkit"
)

// Rows grow, shrink and move from page to page. What is deleted must not stay where it once was: see package scrubvfs,
// which SQLite needs for that.
func TestWhatIsDeletedIsInNoPageThatItWasEverIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signet.db")
	e, err := Open(t.Context(),
		Options{Database: path, Cache: cache.New(event.TokenKinds{}), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const people, step = 2000, 100
	names := make([]string, people)
	do := func(text string, args ...any) {
		t.Helper()
		if err := e.Transact(t.Context(),
			func(x Executor) error { return x.Exec(t.Context(), text, args...) }); err != nil {
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
		return x.Exec(ctx, "INSERT INTO people (id, name, doc) VALUES (?, ?, ?)", fmt.Sprint("person-", i),
			names[i], doc(i, 0))
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
	e, err := Open(t.Context(),
		Options{Database: filepath.Join(t.TempDir(), "signet.db"), Cache: cache.New(event.TokenKinds{}),
			Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, transaction := range map[string]func(context.Context, func(Executor) error) error{"transact": e.Transact,
		"snapshot": e.Snapshot} {
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

// SQLite plans for the value of a limit, and would prepare each of these statements again for every use.
func TestAStatementWithALimitIsPreparedOnce(t *testing.T) {
	opened, err := Open(t.Context(),
		Options{Database: filepath.Join(t.TempDir(), "signet.db"), Cache: cache.New(event.TokenKinds{}),
			Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	e := opened.(*sqliteEngine)
	e.readers.SetMaxOpenConns(1)
	if err := e.Exec(t.Context(), "CREATE TABLE people (id TEXT PRIMARY KEY) WITHOUT ROWID"); err != nil {
		t.Fatal(err)
	}
	if err := e.Exec(t.Context(), "INSERT INTO people (id) VALUES ('a'), ('b'), ('c')"); err != nil {
		t.Fatal(err)
	}
	const text = "SELECT id FROM people WHERE id > ? ORDER BY id LIMIT ?"
	for limit := range int64(4) {
		found := int64(0)
		err := e.Query(t.Context(), text, []any{"", limit}, func(Scanner) error { found++; return nil })
		if err != nil || found != limit {
			t.Errorf("with a limit of %d: %d, %v", limit, found, err)
		}
		if err := e.Exec(t.Context(),
			"DELETE FROM people WHERE id IN (SELECT id FROM people WHERE id > 'z' ORDER BY id LIMIT ?)",
			limit); err != nil {
			t.Fatal(err)
		}
	}
	tls := libc.NewTLS()
	defer tls.Close()
	limited := 0
	again := func(driverConn any) error {
		db := uintptr(reflect.ValueOf(driverConn).Elem().FieldByName("db").Uint())
		for st := sqlite3.Xsqlite3_next_stmt(tls, db, 0); st != 0; st = sqlite3.Xsqlite3_next_stmt(tls, db, st) {
			text := libc.GoString(sqlite3.Xsqlite3_sql(tls, st))
			if strings.Contains(text, "LIMIT") {
				limited++
			}
			if n := sqlite3.Xsqlite3_stmt_status(tls, st, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0); n > 0 {
				t.Errorf("prepared %d more times: %s", n, text)
			}
		}
		return nil
	}
	reader, err := e.readers.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := errors.Join(reader.Raw(again), again(e.conn)); err != nil || limited != 2 {
		t.Errorf("looked at %d statements, %v", limited, err)
	}
}

// SQLite rolls a transaction back by itself where the disk fails. That is nothing to warn about, but anything else is.
func TestARollbackThatSQLiteHasDoneIsNoFailure(t *testing.T) {
	said := &testkit.Log{}
	opened, err := Open(t.Context(), Options{Database: filepath.Join(t.TempDir(), "signet.db"),
		Cache: cache.New(event.TokenKinds{}), Log: slog.New(slog.NewTextHandler(said, nil))})
	testkit.Must(t, err)
	defer opened.Close()
	e := opened.(*sqliteEngine)
	_, err = e.Begin(t.Context(), &Needs{})
	testkit.Must(t, err)
	testkit.Must(t, e.Exec(t.Context(), "ROLLBACK")) // as SQLite does
	e.Rollback(t.Context())
	if said.String() != "" {
		t.Error(said)
	}
	_, err = e.Begin(t.Context(), &Needs{}) // the connection is free, and so is the writer
	testkit.Must(t, err)
	e.Rollback(t.Context())
	if said.String() != "" {
		t.Error(said)
	}
	if wasRolledBack(io.ErrUnexpectedEOF) {
		t.Error("every error of ROLLBACK is taken for that")
	}
}

// A rebuild that somebody stops ends in the middle of a statement, and the writer goes on.
func TestATransactionEndsWithItsContext(t *testing.T) {
	opened, err := Open(t.Context(),
		Options{Database: filepath.Join(t.TempDir(), "signet.db"), Cache: cache.New(event.TokenKinds{}),
			Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	defer opened.Close()
	e := opened.(*sqliteEngine)
	testkit.Must(t, e.Transact(t.Context(),
		func(x Executor) error { return x.Exec(t.Context(), "CREATE TABLE numbers (n INTEGER)") }))
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
	for name, statement := range map[string]string{"reading": endless + "SELECT count(*) FROM n",
		"writing": endless + "INSERT INTO numbers SELECT i % 2 FROM n LIMIT 1000000000"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := e.Transact(ctx, func(x Executor) error {
				if err := x.Exec(ctx, "INSERT INTO numbers VALUES (1)"); err != nil {
					return err
				}
				go cancel()
				return x.Exec(ctx, statement)
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := e.Transact(ctx, func(Executor) error { return nil }); !errors.Is(err, context.Canceled) {
				t.Errorf("a transaction without a context to run in: %v", err)
			}
			rows := -1
			testkit.Must(t, e.Transact(t.Context(), func(x Executor) error {
				return x.Query(t.Context(), "SELECT count(*) FROM numbers", nil,
					func(scan Scanner) error { return scan(&rows) })
			}))
			if rows != 0 {
				t.Errorf("%d rows are left", rows)
			}
		})
	}
}

// A fault in what runs in a transaction is a fault of one request: the writer goes on.
func TestATransactionIsRolledBackWhereItPanics(t *testing.T) {
	said := &testkit.Log{}
	opened, err := Open(t.Context(), Options{Database: filepath.Join(t.TempDir(), "signet.db"),
		Cache: cache.New(event.TokenKinds{}), Log: slog.New(slog.NewTextHandler(said, nil))})
	testkit.Must(t, err)
	defer opened.Close()
	do := func(statement string) error {
		return opened.Transact(t.Context(), func(x Executor) error { return x.Exec(t.Context(), statement) })
	}
	testkit.Must(t, do("CREATE TABLE numbers (n INTEGER)"))
	testkit.Must(t, do("INSERT INTO numbers VALUES (1)"))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nobody learns of the fault")
			}
		}()
		_ = opened.Transact(t.Context(), func(x Executor) error {
			testkit.Must(t, x.Exec(t.Context(), "INSERT INTO numbers VALUES (2)"))
			return x.Query(t.Context(), "SELECT n FROM numbers", nil, func(Scanner) error { panic("a fault") })
		})
	}()
	testkit.Must(t, do("INSERT INTO numbers VALUES (4)"))
	sum := 0
	testkit.Must(t, opened.Query(t.Context(), "SELECT sum(n) FROM numbers", nil,
		func(scan Scanner) error { return scan(&sum) }))
	if sum != 5 || said.String() != "" {
		t.Errorf("%d is stored, and the log says %q", sum, said)
	}
}
