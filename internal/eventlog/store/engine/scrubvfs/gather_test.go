package scrubvfs

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// lower is called for each write that reaches SQLite's own file system for a log, and may do something else instead. A
// test sets it.
var lower func(own func() int32, file, data uintptr, size int32, offset int64) int32

var ownWrite writeFunc

func lowerWrite(tls *libc.TLS, file, data uintptr, size int32, offset int64) int32 {
	own := func() int32 { return ownWrite(tls, file, data, size, offset) }
	if lower == nil {
		return own()
	}
	return lower(own, file, data, size, offset)
}

// watched puts lower between the logs and SQLite's own file system, for the time of a test. A log must have been open
// before.
func watched(t *testing.T) {
	t.Helper()
	var logs []*methods
	for key, address := range tables.Range {
		if key.(table).kind == sqlite3.SQLITE_OPEN_WAL {
			logs = append(logs, at[methods](address.(uintptr)))
		}
	}
	if len(logs) != 1 {
		t.Fatalf("%d ways to write a log", len(logs))
	}
	before := logs[0].own.FxWrite
	if before == pointer(lowerWrite) {
		return // by the same test
	}
	ownWrite = function[writeFunc](before)
	logs[0].own.FxWrite = pointer(lowerWrite)
	t.Cleanup(func() { logs[0].own.FxWrite, lower = before, nil })
}

// base is a database with a table of rows that are a page each.
type base struct {
	*sql.Conn
	db   *sql.DB
	t    *testing.T
	path string
}

func connect(t *testing.T, path, vfs, parameters string, pragmas ...string) base {
	t.Helper()
	q := url.Values{"_pragma": append([]string{"journal_mode(WAL)"}, pragmas...)}
	if vfs != "" {
		q.Set("vfs", vfs)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?"+q.Encode()+parameters)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b := base{conn, db, t, path}
	t.Cleanup(b.close)
	return b
}

func (b base) close() {
	b.Conn.Close()
	b.db.Close()
}

// made is a new database with the file system of this package.
func made(t *testing.T, rows int, parameters string, pragmas ...string) base {
	t.Helper()
	vfs, err := VFS()
	if err != nil {
		t.Fatal(err)
	}
	b := connect(t, filepath.Join(t.TempDir(), "some.db"), vfs, parameters, pragmas...)
	b.do("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, text TEXT NOT NULL)")
	b.do("WITH RECURSIVE c(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM c WHERE i < ?) INSERT INTO t SELECT i, 0, ? FROM c", rows, strings.Repeat("x", 3000))
	return b
}

func (b base) try(text string, args ...any) error {
	_, err := b.ExecContext(context.Background(), text, args...)
	return err
}

func (b base) do(text string, args ...any) {
	b.t.Helper()
	if err := b.try(text, args...); err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
}

// has checks that the table has so many rows, and their sum, and that the database is in order.
func (b base) has(rows, sum int) {
	b.t.Helper()
	var n, total int
	var verdict string
	err := b.QueryRowContext(context.Background(),
		"SELECT count(*), sum(n) FROM (SELECT n, text FROM t WHERE length(text) > 0)").Scan(&n, &total)
	if err == nil {
		err = b.QueryRowContext(context.Background(), "PRAGMA integrity_check").Scan(&verdict)
	}
	if err != nil || n != rows || total != sum || verdict != "ok" {
		b.t.Fatalf("%d rows with the sum %d, want %d and %d; %s, %v", n, total, rows, sum, verdict, err)
	}
}

// leaves checks what the files would have if the process ended now, with SQLite's own file system.
func (b base) leaves(rows, sum int) {
	b.t.Helper()
	left := connect(b.t, workload{Path: b.path}.copied(b.t).Path, "", "", "synchronous(OFF)")
	left.has(rows, sum)
	left.close()
}

// file is the open log of the connection. It is found when the log is written.
func (b base) file() (file uintptr) {
	b.t.Helper()
	lower = func(own func() int32, f, _ uintptr, _ int32, _ int64) int32 { file = f; return own() }
	b.do("UPDATE t SET text = text || 'y' WHERE id = 1")
	lower = nil
	if file == 0 {
		b.t.Fatal("nothing was written")
	}
	return file
}

// spilling is a database with a transaction that has gathered frames, which did not fit the cache, and more in the
// file.
func spilling(t *testing.T) (b base, file uintptr) {
	t.Helper()
	b = made(t, 60, "", "synchronous(OFF)", "cache_size(10)", "wal_autocheckpoint(0)")
	watched(t)
	file = b.file()
	b.do("PRAGMA shrink_memory") // where other connections leave room, SQLite keeps more pages than it is told
	b.do("BEGIN IMMEDIATE")
	b.do("UPDATE t SET n = n + 1")
	if r := roomOf(file); r.size == 0 || r.start <= 0 {
		t.Fatalf("%d bytes are gathered", r.size)
	}
	return b, file
}

var modes = []string{"OFF", "NORMAL", "FULL"}

func TestATransactionIsWrittenWithOneCall(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			b := made(t, 100, "", "synchronous("+mode+")", "wal_autocheckpoint(0)")
			watched(t)
			calls := 0
			lower = func(own func() int32, _, _ uintptr, size int32, _ int64) int32 { calls++; return own() }
			header := 1 // it goes with the frames, unless SQLite syncs it before them
			if mode != "OFF" {
				header = 2
			}
			const most = mostRoom / (24 + 4096)
			for _, c := range []struct {
				name, text string
				calls      int
			}{
				{"many pages", "UPDATE t SET n = n + 1 WHERE id <= 9", 1},
				{"one page", "UPDATE t SET n = n + 1 WHERE id = 1", 1},
				{"as many as one call takes", fmt.Sprint("UPDATE t SET n = n + 1 WHERE id <= ", most), 1},
				{"one more", fmt.Sprint("UPDATE t SET n = n + 1 WHERE id <= ", most+1), 2},
				{"all pages", "UPDATE t SET n = n + 1", 4},
				{"nothing", "UPDATE t SET n = n + 1 WHERE id < 0", 0},
				{"nothing, after a rollback", "BEGIN IMMEDIATE; UPDATE t SET n = n + 1; ROLLBACK", 0},
				{"one page, after a rollback", "UPDATE t SET n = n + 1 WHERE id = 1", 1},
				{"no frames", "PRAGMA wal_checkpoint(TRUNCATE)", 0},
				{"the first page of an empty log", "UPDATE t SET n = n + 1 WHERE id = 1", header},
				{"moved frames", "PRAGMA wal_checkpoint(RESTART)", 0},
				{"the first page of a log that begins again", "UPDATE t SET n = n + 1 WHERE id = 1", header},
			} {
				calls = 0
				if b.do(c.text); calls != c.calls {
					t.Errorf("%s: %d calls, want %d", c.name, calls, c.calls)
				}
			}
			b.leaves(100, 9+1+most+most+1+100+3)
		})
	}
}

// The lock that says when a transaction is over is not taken here.
func TestWithoutTheLockNothingIsGathered(t *testing.T) {
	b := made(t, 9, "", "synchronous(OFF)")
	watched(t)
	b.do("PRAGMA locking_mode(EXCLUSIVE)")
	b.do("UPDATE t SET n = n + 1")
	calls := 0
	lower = func(own func() int32, _, _ uintptr, _ int32, _ int64) int32 { calls++; return own() }
	b.do("UPDATE t SET n = n + 1")
	if calls != 18 {
		t.Errorf("%d calls", calls)
	}
	b.leaves(9, 18)
}

// With psow=0 SQLite fills the last sector with more frames, and writes the last of them in two pieces.
func TestACommitIsThereAtOnce(t *testing.T) {
	vfs, err := VFS()
	if err != nil {
		t.Fatal(err)
	}
	for _, parameters := range []string{"", "&psow=0"} {
		for _, mode := range modes {
			t.Run(mode+parameters, func(t *testing.T) {
				b := made(t, 9, parameters, "synchronous("+mode+")", "wal_autocheckpoint(50)")
				other := connect(t, b.path, vfs, parameters)
				for n := 1; n <= 30; n++ {
					b.do("UPDATE t SET n = n + 1 WHERE id <= 1 + ? % 9", n)
					sum := 0
					for i := 1; i <= n; i++ {
						sum += 1 + i%9
					}
					other.has(9, sum)
					b.leaves(9, sum)
				}
			})
		}
	}
}

// Each of these transactions is larger than the cache, so that SQLite writes frames early, reads them again, and writes
// them again.
func TestATransactionLargerThanTheCache(t *testing.T) {
	const rows = 200
	for _, c := range []struct {
		name string
		do   []string
		sum  int
	}{
		{"committed", []string{"UPDATE t SET n = n + 1", "COMMIT"}, rows},
		{"rolled back", []string{"UPDATE t SET n = n + 1", "ROLLBACK"}, 0},
		{"with frames written again",
			[]string{"UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1", "COMMIT"}, 3 * rows},
		{"with few frames written again",
			[]string{"UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1 WHERE id <= 100", "COMMIT"}, rows + 100},
		{"with all taken back but some",
			[]string{"UPDATE t SET n = n + 1", "SAVEPOINT s", "UPDATE t SET n = n + 5", "ROLLBACK TO s",
				"COMMIT"}, rows},
		{"with all taken back, and more",
			[]string{"SAVEPOINT s", "UPDATE t SET n = n + 5", "ROLLBACK TO s", "UPDATE t SET n = n + 1 WHERE id > 20",
				"COMMIT"}, rows - 20},
		{"with some taken back, and more",
			[]string{"UPDATE t SET n = n + 1 WHERE id <= 100", "SAVEPOINT s", "UPDATE t SET n = n + 5", "ROLLBACK TO s",
				"UPDATE t SET n = n + 1", "COMMIT"}, rows + 100},
	} {
		for _, mode := range modes {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				b := made(t, rows, "", "synchronous("+mode+")", "cache_size(10)", "wal_autocheckpoint(0)")
				watched(t)
				for _, begin := range []string{"an empty log", "a log with frames"} {
					t.Log(begin)
					b.do("UPDATE t SET n = 0")
					if begin == "an empty log" {
						b.do("PRAGMA wal_checkpoint(TRUNCATE)")
					}
					early := 0
					lower = func(own func() int32, _, _ uintptr, _ int32, _ int64) int32 { early++; return own() }
					b.do("PRAGMA shrink_memory")
					b.do("BEGIN IMMEDIATE")
					for i, text := range c.do {
						if i == len(c.do)-1 && early < 2 {
							t.Error("nothing was written before the end")
						}
						b.do(text)
						b.has(rows, b.sum())
					}
					lower = nil
					b.has(rows, c.sum)
					b.leaves(rows, c.sum)
				}
				b.do("PRAGMA wal_checkpoint(TRUNCATE)")
				b.has(rows, c.sum)
			})
		}
	}
}

// sum reads every row, by itself.
func (b base) sum() (sum int) {
	b.t.Helper()
	rows, err := b.QueryContext(context.Background(), "SELECT n FROM t ORDER BY id DESC")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			b.t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// What a transaction has gathered when it is rolled back belongs where another connection writes its own frames next.
func TestWhatWasRolledBackIsNotWrittenOverOthers(t *testing.T) {
	vfs, err := VFS()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text string }{
		{"by a transaction", "UPDATE t SET n = n + 1 WHERE id = 1"},
		{"by a checkpoint", "PRAGMA wal_checkpoint(TRUNCATE)"},
		{"by reading", "SELECT * FROM t"},
	} {
		// at one of them, the next frame is right behind the last one gathered
		for frames := 1; frames <= 60; frames += 3 {
			b, file := spilling(t)
			gathered := int(roomOf(file).size) / (24 + 4096)
			start := roomOf(file).start
			b.do("ROLLBACK")
			if r := roomOf(file); r.size != 0 {
				t.Errorf("%d bytes are still gathered", r.size)
			}
			other := connect(t, b.path, vfs, "", "synchronous(OFF)", "wal_autocheckpoint(0)")
			other.do("UPDATE t SET n = n + 1 WHERE id <= ?", frames)
			b.do(c.text)
			sum := frames
			if strings.HasPrefix(c.text, "UPDATE") {
				sum++
			}
			other.has(60, sum)
			b.has(60, sum)
			b.leaves(60, sum)
			if t.Failed() {
				t.Fatalf("%s: %d frames gathered at %d, %d written over them", c.name, gathered, start, frames)
			}
			other.close()
			b.close()
		}
	}
}

// Every call that may need what is gathered finds it in the file.
func TestWhatIsGatheredIsWrittenBefore(t *testing.T) {
	tls := libc.NewTLS()
	defer tls.Close()
	for _, c := range []struct {
		name string
		call func(m *methods, file uintptr, start, end int64) int32
	}{
		{"a sync", func(m *methods, file uintptr, _, _ int64) int32 {
			return function[syncFunc](m.FxSync)(tls, file, sqlite3.SQLITE_SYNC_NORMAL)
		}},
		{"the size is taken", func(m *methods, file uintptr, _, end int64) int32 {
			size := tls.Alloc(8)
			defer tls.Free(8)
			rc := function[sizeFunc](m.FxFileSize)(tls, file, size)
			if got := *at[int64](size); rc == sqlite3.SQLITE_OK && got != end {
				t.Errorf("the size is %d, not %d", got, end)
			}
			return rc
		}},
		{"the log is truncated", func(m *methods, file uintptr, _, end int64) int32 {
			return function[truncateFunc](m.FxTruncate)(tls, file, end)
		}},
		{"it is read", func(m *methods, file uintptr, start, _ int64) int32 {
			data := tls.Alloc(24)
			defer tls.Free(24)
			return function[readFunc](m.FxRead)(tls, file, data, 24, start)
		}},
		{"what begins before it is read", func(m *methods, file uintptr, start, _ int64) int32 {
			data := tls.Alloc(24)
			defer tls.Free(24)
			return function[readFunc](m.FxRead)(tls, file, data, 24, start-23)
		}},
		{"an earlier frame is written again", func(m *methods, file uintptr, start, _ int64) int32 {
			data := tls.Alloc(4096)
			defer tls.Free(4096)
			if rc := function[readFunc](m.FxRead)(tls, file, data, 4096, start-4096); rc != sqlite3.SQLITE_OK {
				return rc
			}
			return function[writeFunc](m.FxWrite)(tls, file, data, 4096, start-4096)
		}},
		{"the head of an earlier frame is written again", func(m *methods, file uintptr, start, _ int64) int32 {
			head := tls.Alloc(24)
			defer tls.Free(24)
			if rc := function[readFunc](m.FxRead)(tls, file, head, 24, start-4096-24); rc != sqlite3.SQLITE_OK {
				return rc
			}
			return function[writeFunc](m.FxWrite)(tls, file, head, 24, start-4096-24)
		}},
		{"a frame is written elsewhere", func(m *methods, file uintptr, _, end int64) int32 {
			data := tls.Alloc(24)
			defer tls.Free(24)
			return function[writeFunc](m.FxWrite)(tls, file, data, 24, end+24+4096)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, answer := range []int32{sqlite3.SQLITE_OK, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE} {
				b, file := spilling(t)
				r := roomOf(file)
				start, gathered := r.start, bytes.Clone(view(r.data, r.size))
				if answer != sqlite3.SQLITE_OK {
					lower = func(func() int32, uintptr, uintptr, int32, int64) int32 { return answer }
				}
				rc := c.call(methodsOf(file), file, start, start+int64(len(gathered)))
				lower = nil
				if r.size > 0 && (answer != sqlite3.SQLITE_OK || !strings.Contains(c.name, "elsewhere")) {
					t.Errorf("%d bytes are still gathered", r.size)
				}
				if answer == sqlite3.SQLITE_OK {
					log, err := os.ReadFile(b.path + "-wal")
					if err != nil || rc != answer || int64(len(log)) < start ||
						!bytes.HasPrefix(log[start:], gathered) {
						t.Errorf("%d, %v: what was gathered is not in the file", rc, err)
					}
					continue
				}
				if rc != answer && rc != sqlite3.SQLITE_IOERR_WRITE ||
					rc != sqlite3.SQLITE_IOERR_WRITE && !strings.Contains(c.name, "written") {
					t.Errorf("%d where a write says %d", rc, answer)
				}
				// What is lost was part of the transaction: nothing can save it, though the disk is fine again.
				if err := b.try("COMMIT"); err == nil {
					t.Error("committed, without some of the frames")
				}
				b.try("ROLLBACK")
				b.has(60, 0)
				b.do("UPDATE t SET n = n + 1")
				b.has(60, 60)
				b.leaves(60, 60)
			}
		})
	}
}

func TestWhatLiesBeforeIsReadWithoutWriting(t *testing.T) {
	tls := libc.NewTLS()
	defer tls.Close()
	_, file := spilling(t)
	data := tls.Alloc(24)
	defer tls.Free(24)
	r := roomOf(file)
	size := r.size
	// a rollback must be able to read what was there before
	for _, failed := range []int32{sqlite3.SQLITE_OK, sqlite3.SQLITE_FULL} {
		if r.failed = failed; failed != sqlite3.SQLITE_OK {
			r.size, size = 0, 0
		}
		if rc := readLog(tls, file, data, 24, r.start-24); rc != sqlite3.SQLITE_OK || r.size != size {
			t.Errorf("%d, and of %d bytes %d are gathered", rc, size, r.size)
		}
	}
	if rc := readLog(tls, file, data, 24, r.start); rc != sqlite3.SQLITE_IOERR_WRITE {
		t.Errorf("%d where something lost is read", rc)
	}
}

// A failed write fails the transaction, and no more than that.
func TestAWriteThatFails(t *testing.T) {
	const rows = 50
	for _, c := range []struct {
		name  string
		cache int
		do    []string
	}{
		{"a commit", 1000, []string{"UPDATE t SET n = n + 1 WHERE id <= 5"}},
		{"a transaction of several calls", 1000, []string{"UPDATE t SET n = n + 1"}},
		{"a commit by hand", 1000, []string{"BEGIN IMMEDIATE", "UPDATE t SET n = n + 1 WHERE id <= 5", "COMMIT"}},
		{"a transaction larger than the cache", 10,
			[]string{"BEGIN IMMEDIATE", "UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1", "COMMIT"}},
		{"reading in a transaction", 10,
			[]string{"BEGIN IMMEDIATE", "UPDATE t SET n = n + 1 WHERE id <= 25", "SELECT sum(n) FROM t",
				"UPDATE t SET n = n + 1 WHERE id = 1", "COMMIT"}},
		{"a savepoint", 10, []string{"SAVEPOINT s", "UPDATE t SET n = n + 1 WHERE id <= 35",
			"UPDATE t SET n = n + 1 WHERE id <= 35", "RELEASE s"}},
	} {
		for _, answer := range []int32{sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE} {
			for _, half := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d, half of it written: %t", c.name, answer, half), func(t *testing.T) {
					failures := 0
					for call := 1; ; call += 1 + call/4 { // that fails
						b := made(t, rows, "", "synchronous(OFF)", fmt.Sprintf("cache_size(%d)", c.cache),
							"wal_autocheckpoint(0)")
						if call == 1 {
							watched(t)
						}
						b.do("UPDATE t SET n = 10")
						calls := 0
						lower = func(own func() int32, file, data uintptr, size int32, offset int64) int32 {
							if calls++; calls != call {
								return own()
							}
							if half {
								tls := libc.NewTLS()
								defer tls.Close()
								ownWrite(tls, file, data, size/2, offset)
							}
							return answer
						}
						var err error
						for _, text := range c.do {
							if err = b.try(text); err != nil {
								break
							}
						}
						lower = nil
						if calls < call {
							break // nothing failed
						}
						failures++
						if err == nil {
							t.Fatalf("call %d failed, and the transaction did not", call)
						}
						b.try("ROLLBACK") // SQLite may have done it
						b.has(rows, 10*rows)
						b.leaves(rows, 10*rows)
						for _, text := range c.do {
							b.do(text)
						}
						sum := b.sum()
						if sum <= 10*rows {
							t.Fatalf("the sum is %d", sum)
						}
						b.leaves(rows, sum)
						b.close()
					}
					if failures == 0 {
						t.Error("nothing was written")
					}
				})
			}
		}
	}
}

// Without memory for it nothing is gathered, and all is well.
func TestWithoutMemory(t *testing.T) {
	defer func() { realloc = sqlite3.Xsqlite3_realloc }()
	for _, most := range []int32{0, firstRoom} {
		realloc = func(tls *libc.TLS, data uintptr, size int32) uintptr {
			if size > most {
				return 0
			}
			return sqlite3.Xsqlite3_realloc(tls, data, size)
		}
		b := made(t, 100, "", "synchronous(OFF)")
		sum := 0
		for n := 1; n <= 100; n += 1 + n/20 {
			b.do("UPDATE t SET n = n + 1 WHERE id <= ?", n)
			sum += n
			b.has(100, sum)
			b.leaves(100, sum)
		}
		realloc = sqlite3.Xsqlite3_realloc
	}
}

func TestNothingIsLeftOfATransaction(t *testing.T) {
	r := room{1, 2, true, unclear, true, sqlite3.SQLITE_FULL, 3, 4, 5, 6, 7}
	r.over()
	if want := (room{log: 1, database: 2, capacity: 4, data: 5, start: 6}); r != want {
		t.Errorf("%+v", r)
	}
}

func TestADatabaseDoesNotKnowALogThatIsClosed(t *testing.T) {
	b := made(t, 1, "")
	watched(t)
	file := b.file()
	database := roomOf(file).database
	if got := roomOf(database).log; got != file {
		t.Errorf("the log is %x, not %x", got, file)
	}
	b.do("PRAGMA journal_mode(DELETE)")
	if got := roomOf(database).log; got != 0 {
		t.Errorf("the log is still %x", got)
	}
	b.has(1, 0)
	b.do("PRAGMA journal_mode(WAL)")
	b.do("UPDATE t SET n = n + 1")
	b.leaves(1, 1)
}

func TestALogKeepsLittleMemoryAndGivesItBack(t *testing.T) {
	held := map[uintptr]int32{}
	defer func() { realloc, free = sqlite3.Xsqlite3_realloc, sqlite3.Xsqlite3_free }()
	realloc = func(tls *libc.TLS, data uintptr, size int32) uintptr {
		delete(held, data)
		data = sqlite3.Xsqlite3_realloc(tls, data, size)
		held[data] = size
		return data
	}
	free = func(tls *libc.TLS, data uintptr) {
		delete(held, data)
		sqlite3.Xsqlite3_free(tls, data)
	}
	b := made(t, 2000, "", "synchronous(OFF)", "wal_autocheckpoint(0)")
	watched(t)
	if r := roomOf(b.file()); len(held) != 1 || held[r.data] != mostRoom+1 {
		t.Errorf("held are %v", held)
	}
	if b.close(); len(held) != 0 {
		t.Errorf("held are %v when all is closed", held)
	}
}

func TestAFrameAllocatesNothing(t *testing.T) {
	b := made(t, 30, "", "synchronous(OFF)", "wal_autocheckpoint(0)")
	update, err := b.PrepareContext(t.Context(), "UPDATE t SET n = n + 1 WHERE id <= ?")
	if err != nil {
		t.Fatal(err)
	}
	defer update.Close()
	allocations := func(rows int) float64 {
		return testing.AllocsPerRun(50, func() {
			if _, err := update.ExecContext(context.Background(), rows); err != nil {
				t.Fatal(err)
			}
		})
	}
	if one, all := allocations(1), allocations(30); all > one+5 {
		t.Errorf("%v allocations for a page, %v for thirty", one, all)
	}
}

func TestWhenATransactionIsComplete(t *testing.T) {
	frame := func(size uint32) []byte {
		head := make([]byte, 24)
		binary.BigEndian.PutUint32(head[4:], size)
		return head
	}
	inner, last, page, header := frame(0), frame(7), make([]byte, 4096), make([]byte, 32)
	page[4], page[7] = 1, 1
	const o, x = false, true
	for _, c := range []struct {
		name   string
		start  int64
		writes [][]byte
		want   []bool
	}{
		{"one frame", 32, [][]byte{last, page}, []bool{o, x}},
		{"two frames", 32, [][]byte{inner, page, last, page}, []bool{o, o, o, x}},
		{"frames that are not complete", 32, [][]byte{inner, page, inner, page}, []bool{o, o, o, o}},
		{"the beginning of a log", 0, [][]byte{header, inner, page, last, page}, []bool{o, o, o, o, x}},
		{"small pages", 32, [][]byte{inner, page[:512], last, page[:512]}, []bool{o, o, o, x}},
		{"the last frame again", 32, [][]byte{last, page, last, page}, []bool{o, x, o, x}},
		{"a head in pieces", 32, [][]byte{last, page, last[:8], last[8:], page}, []bool{o, x, x, x, x}},
		{"a page in pieces, the last as long as a head", 32, [][]byte{last, page, last, page[24:], page[:24]},
			[]bool{o, x, o, x, x}},
		{"a page in pieces, the first as long as a head", 32, [][]byte{last, page[:24], page[24:]}, []bool{o, x, x}},
		{"a page in halves", 32, [][]byte{last, page[2048:], page[2048:], last, page}, []bool{o, x, x, x, x}},
		{"a page without a head", 32, [][]byte{page, inner, page}, []bool{x, x, x}},
		{"two heads", 32, [][]byte{inner, inner, page}, []bool{o, x, x}},
		{"something as long as the head of a log", 64, [][]byte{header, inner}, []bool{x, x}},
	} {
		r, offset := &room{}, c.start
		var got []bool
		for _, data := range c.writes {
			got = append(got, r.completes(data, offset))
			offset += int64(len(data))
			r.end = offset
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	r := &room{end: 56, next: head}
	r.completes(inner, 56)
	r.end = 80
	if !r.completes(page, 81) {
		t.Error("a page that is not behind its head")
	}
}

// Connections that write and read at the same time have files of their own, with nothing between them but SQLite's
// locks.
func TestManyConnections(t *testing.T) {
	const rows, writers, readers, transactions = 40, 2, 3, 60
	vfs, err := VFS()
	if err != nil {
		t.Fatal(err)
	}
	b := made(t, rows, "")
	var all sync.WaitGroup
	var written atomic.Int64
	for i := range writers {
		w := connect(t, b.path, vfs, "", "busy_timeout(60000)", "synchronous(OFF)", "cache_size(10)",
			"wal_autocheckpoint(100)")
		all.Go(func() {
			defer written.Add(1)
			for n := range transactions {
				for _, text := range []string{"BEGIN IMMEDIATE", "UPDATE t SET n = n + 1",
					[]string{"COMMIT", "ROLLBACK"}[(n+i)%2]} {
					if err := w.try(text); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range readers {
		r := connect(t, b.path, vfs, "", "busy_timeout(60000)")
		all.Go(func() {
			for last := 0; written.Load() < writers; {
				var sum int
				if err := r.QueryRowContext(context.Background(),
					"SELECT sum(n) FROM t WHERE length(text) = 3000").Scan(&sum); err != nil || sum < last ||
					sum%rows != 0 {
					t.Errorf("%d after %d, %v", sum, last, err)
					return
				}
				last = sum
			}
		})
	}
	all.Wait()
	b.has(rows, rows*writers*transactions/2)
	b.leaves(rows, rows*writers*transactions/2)
}

const commitsVariable = "SIGNET_TEST_SCRUBVFS_COMMITS"

// commits is the process that is killed: it commits without an end, and says after each time how often.
func commits(path string) error {
	vfs, err := VFS()
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite",
		"file:"+path+"?vfs="+vfs+
			"&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(10)&_pragma=wal_autocheckpoint(100)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for {
		if _, err := db.Exec("UPDATE t SET n = n + 1 WHERE id <= 2 + abs(random() % 7) OR id = 9"); err != nil {
			return err
		}
		var n int
		if err := db.QueryRow("SELECT n FROM t WHERE id = 9").Scan(&n); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func TestAKilledProcessHasLostNoCommit(t *testing.T) {
	b := made(t, 9, "")
	b.close()
	count := 0
	for _, lines := range []int{1, 2, 7, 40, 150, 400} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), commitsVariable+"="+b.path)
		said := &bytes.Buffer{}
		cmd.Stderr = said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reported := 0
		scanner := bufio.NewScanner(out)
		for n := 1; scanner.Scan(); n++ { // to the end: more may be reported before the process is gone
			if reported, err = strconv.Atoi(scanner.Text()); err != nil {
				t.Fatal(err)
			}
			if n == lines {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.Exited() {
			t.Fatalf("%v: %s", exit, said)
		}
		left := connect(t, workload{Path: b.path}.copied(t).Path, "", "", "synchronous(OFF)")
		var n int
		if err := left.QueryRowContext(t.Context(), "SELECT n FROM t WHERE id = 9").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != reported && n != reported+1 || n < count+lines { // the last one may not have been reported yet
			t.Errorf("%d commits were reported, %d are there", reported, n)
		}
		left.has(9, left.sum())
		count = n
	}
}

// BenchmarkCommit measures a transaction that changes a row on each of nine pages. TMPDIR says which disk it measures.
func BenchmarkCommit(b *testing.B) {
	name, err := VFS()
	if err != nil {
		b.Fatal(err)
	}
	for _, mode := range []string{"OFF", "FULL"} {
		b.Run("synchronous="+mode, func(b *testing.B) {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bench.db")+"?vfs="+name+
				"&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(4000)&_pragma=synchronous("+mode+")")
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			for _, text := range []string{"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, text TEXT NOT NULL)",
				"WITH RECURSIVE c(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM c WHERE i < 9) INSERT INTO t SELECT i, 0, '" + strings.Repeat("x", 3000) + "' FROM c"} {
				if _, err := db.Exec(text); err != nil {
					b.Fatal(err)
				}
			}
			update, err := db.Prepare("UPDATE t SET n = n + 1")
			if err != nil {
				b.Fatal(err)
			}
			defer update.Close()
			before := writeCalls()
			b.ResetTimer()
			for b.Loop() {
				if _, err := update.Exec(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(writeCalls()-before)/float64(b.N), "writes/op")
		})
	}
}

// writeCalls is how often this process has called the system to write, where the system counts that.
func writeCalls() int {
	text, _ := os.ReadFile("/proc/self/io")
	n := 0
	if found := regexp.MustCompile(`syscw: (\d+)`).FindSubmatch(text); found != nil {
		n, _ = strconv.Atoi(string(found[1]))
	}
	return n
}
