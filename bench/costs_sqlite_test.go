package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/signet-idm/signet/internal/eventlog/store/engine/scrubvfs"
	"github.com/signet-idm/signet/test/testkit"
)

// sqliteCounter counts what the connections to one database file do, without the server's help: SQLite itself tells of
// every statement that begins and of every row before it changes.
type sqliteCounter struct {
	file string

	mu         sync.Mutex
	statements map[string]int64
	changes    []change
}

// change is one of a row.
type change struct {
	table    string
	old, new []any // nil: there was none, there is none any more
}

// counting is who wants to know about connections that are opened now. SQLite has such hooks for the whole process.
var counting struct {
	sync.Mutex
	*sqliteCounter
	once sync.Once
}

// countSQLite counts from now on on every connection to a file that is opened until the test ends.
func countSQLite(t *testing.T, file string) *sqliteCounter {
	c := &sqliteCounter{file: file, statements: map[string]int64{}}
	counting.Lock()
	counting.sqliteCounter = c
	counting.Unlock()
	t.Cleanup(func() {
		counting.Lock()
		counting.sqliteCounter = nil
		counting.Unlock()
	})
	counting.once.Do(func() {
		tls := libc.NewTLS()
		defer tls.Close()
		opened := func(tls *libc.TLS, db, _, _ uintptr) int32 {
			counting.Lock()
			c := counting.sqliteCounter
			counting.Unlock()
			if c == nil || !serves(tls, db, c.file) {
				return sqlite3.SQLITE_OK
			}
			begins := func(_ *libc.TLS, _ uint32, _, _, text uintptr) int32 { return c.begins(libc.GoString(text)) }
			sqlite3.Xsqlite3_preupdate_hook(tls, db, address(c.changed), 0)
			return sqlite3.Xsqlite3_trace_v2(tls, db, sqlite3.SQLITE_TRACE_STMT, address(begins), 0)
		}
		if rc := sqlite3.Xsqlite3_auto_extension(tls, address(opened)); rc != sqlite3.SQLITE_OK {
			t.Errorf("SQLite does not tell of connections: %d", rc)
		}
	})
	return c
}

// serves tells whether a connection is one of the server's to a file: the test's own have no file system of the server.
func serves(tls *libc.TLS, db uintptr, file string) bool {
	main, err := libc.CString("main")
	if err != nil {
		return false
	}
	defer libc.Xfree(tls, main)
	found := tls.Alloc(8)
	defer tls.Free(8)
	rc := sqlite3.Xsqlite3_file_control(tls, db, main, sqlite3.SQLITE_FCNTL_VFS_POINTER, found)
	name, err := scrubvfs.VFS()
	return err == nil && rc == sqlite3.SQLITE_OK &&
		libc.GoString(at[sqlite3.Tsqlite3_vfs](*at[uintptr](found)).FzName) == name &&
		libc.GoString(sqlite3.Xsqlite3_db_filename(tls, db, main)) == file
}

// address is that of a function for SQLite, and at is what lies at an address of SQLite's memory. Package scrubvfs,
// which pins the driver's version, has the casts explained.
func address[F any](f F) uintptr {
	keep.Lock()
	keep.all = append(keep.all, f)
	keep.Unlock()
	return *(*uintptr)(unsafe.Pointer(&f))
}

func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// keep holds the functions that SQLite has the addresses of.
var keep struct {
	sync.Mutex
	all []any
}

func (c *sqliteCounter) begins(text string) int32 {
	c.mu.Lock()
	c.statements[text]++
	c.mu.Unlock()
	return 0
}

// changed is told of a row before it changes.
func (c *sqliteCounter) changed(tls *libc.TLS, _, db uintptr, op int32, _, table uintptr, _, _ int64) {
	row := func(value func(tls *libc.TLS, db uintptr, i int32, found uintptr) int32) (row []any) {
		found := tls.Alloc(8)
		defer tls.Free(8)
		for i := range sqlite3.Xsqlite3_preupdate_count(tls, db) {
			if value(tls, db, i, found) != sqlite3.SQLITE_OK {
				return append(row, nil)
			}
			row = append(row, valueOf(tls, *at[uintptr](found)))
		}
		return row
	}
	now := change{table: libc.GoString(table)}
	if op != sqlite3.SQLITE_INSERT {
		now.old = row(sqlite3.Xsqlite3_preupdate_old)
	}
	if op != sqlite3.SQLITE_DELETE {
		now.new = row(sqlite3.Xsqlite3_preupdate_new)
	}
	c.mu.Lock()
	c.changes = append(c.changes, now)
	c.mu.Unlock()
}

func valueOf(tls *libc.TLS, value uintptr) any {
	switch sqlite3.Xsqlite3_value_type(tls, value) {
	case sqlite3.SQLITE_INTEGER:
		return sqlite3.Xsqlite3_value_int64(tls, value)
	case sqlite3.SQLITE_TEXT:
		return libc.GoString(sqlite3.Xsqlite3_value_text(tls, value))
	case sqlite3.SQLITE_BLOB:
		blob := sqlite3.Xsqlite3_value_blob(tls, value)
		return bytes.Clone(unsafe.Slice(at[byte](blob), sqlite3.Xsqlite3_value_bytes(tls, value)))
	}
	return nil
}

// begun is how many statements there were so far.
func (c *sqliteCounter) begun() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.statements {
		n += times
	}
	return n
}

// written is how many bytes the write-ahead log has. It is emptied when the next call is to be counted: SQLite begins
// again at its front.
func (c *sqliteCounter) written(t *testing.T) int64 {
	info, err := os.Stat(c.file + "-wal")
	testkit.Must(t, err)
	return info.Size()
}

// take gives what was counted since the last time.
func (c *sqliteCounter) take(t *testing.T, schema *indexes) (got counts) {
	c.mu.Lock()
	statements, changes := c.statements, c.changes
	c.statements, c.changes = map[string]int64{}, nil
	c.mu.Unlock()
	for text, times := range statements {
		got.statements += times
		got.what = append(got.what, fmt.Sprintf("%d x %s", times, text))
	}
	for _, at := range changes {
		got.rows++
		n := schema.entries(t, at)
		got.entries += n
		got.what = append(got.what, fmt.Sprintf("a row of %s with %d index entries", at.table, n))
	}
	return got
}

// empty moves everything from the write-ahead log into the file.
func (all *indexes) empty(t *testing.T) {
	testkit.Await(t, "nobody reads", func() bool {
		var busy, frames, moved int
		return all.db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames,
			&moved) == nil && busy == 0
	})
}

// indexes are those of a database file.
type indexes struct {
	db      *sql.DB
	columns map[string][]string // by table
	of      map[string][]index  // likewise
}

type index struct {
	name    string
	columns []string
	where   string // of a partial one
}

func readIndexes(t *testing.T, file string) *indexes {
	t.Helper()
	db, err := sql.Open("sqlite", sqliteAddress(file))
	testkit.Must(t, err)
	t.Cleanup(func() { db.Close() })
	all := &indexes{db: db, columns: map[string][]string{}, of: map[string][]index{}}
	each := func(query string, args []any, row func(text []string)) {
		t.Helper()
		rows, err := db.QueryContext(context.Background(), query, args...)
		testkit.Must(t, err)
		defer rows.Close()
		names, err := rows.Columns()
		testkit.Must(t, err)
		for rows.Next() {
			text, into := make([]string, len(names)), make([]any, len(names))
			for i := range text {
				into[i] = &text[i]
			}
			testkit.Must(t, rows.Scan(into...))
			row(text)
		}
		testkit.Must(t, rows.Err())
	}
	keyed := map[string]bool{} // stored in the primary key, which is no index besides the table
	each("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'", nil, func(text []string) {
		all.columns[text[0]], keyed[text[0]] = nil, text[1] == "1"
	})
	for table := range all.columns {
		each("SELECT name FROM pragma_table_info(?) ORDER BY cid", []any{table},
			func(text []string) { all.columns[table] = append(all.columns[table], text[0]) })
		each("SELECT name, origin FROM pragma_index_list(?)", []any{table}, func(text []string) {
			if text[1] != "pk" || !keyed[table] {
				all.of[table] = append(all.of[table], index{name: text[0]})
			}
		})
		for i := range all.of[table] {
			at := &all.of[table][i]
			each("SELECT name FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno", []any{at.name},
				func(text []string) { at.columns = append(at.columns, text[0]) })
			each("SELECT coalesce(sql, '') FROM sqlite_schema WHERE name = ?", []any{at.name},
				func(text []string) { _, at.where, _ = strings.Cut(text[0], " WHERE ") })
		}
	}
	return all
}

// entries is how many indexes have another entry after a change: one more, one less, or one elsewhere.
func (all *indexes) entries(t *testing.T, at change) (n int64) {
	for _, in := range all.of[at.table] {
		if old, now := all.entry(t, in, at.table, at.old), all.entry(t, in, at.table, at.new); old != now {
			n++
		}
	}
	return n
}

// entry is what an index has of a row; empty if nothing.
func (all *indexes) entry(t *testing.T, in index, table string, row []any) (key string) {
	if row == nil {
		return ""
	}
	columns := all.columns[table]
	if len(row) != len(columns) {
		t.Fatalf("%s has %d columns, not %d", table, len(row), len(columns))
	}
	if in.where != "" {
		var has bool
		query := "SELECT " + in.where + " FROM (SELECT "
		for i, name := range columns {
			if i > 0 {
				query += ", "
			}
			query += "? AS " + name
		}
		testkit.Must(t, all.db.QueryRowContext(context.Background(), query+")", row...).Scan(&has))
		if !has {
			return ""
		}
	}
	for i, name := range columns {
		for _, indexed := range in.columns {
			if name == indexed {
				key += fmt.Sprintf("%s=%q ", name, fmt.Sprint(row[i]))
			}
		}
	}
	return key
}
