// Package scrubvfs is a file system for SQLite (a VFS) that keeps deleted rows out of the database file, and that
// writes a transaction to the write-ahead log with one call.
//
// With secure_delete SQLite overwrites what is deleted. But when it moves rows to another page to make room, it leaves
// a copy in the unused middle of the page they came from. Deleting the row does not delete that copy. So this VFS
// clears the unused middle of every b-tree page on its way to the file. SQLite never reads what is there.
//
// It scrubs the database file only: a checkpoint writes the pages of the write-ahead log there, and an erasure
// truncates the log (see Engine.Scrub).
//
// It tells b-tree pages by their first byte. Pointer-map pages, which only databases with auto_vacuum have, may begin
// with the same bytes: the engine refuses such a database before this VFS opens it.
//
// How it writes the log is told in gather.go.
package scrubvfs

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// VFS registers the file system and gives its name, for the parameter vfs of a database's address. All it replaces in
// SQLite's own is how a database file and its log are written.
var VFS = sync.OnceValues(func() (string, error) {
	const name = "signet"
	tls := libc.NewTLS() // for as long as the program runs, like the file system
	// Nobody asks SQLite how much memory it uses, and counting takes a lock for each piece of memory. If somebody has
	// started SQLite before, it counts.
	setting := tls.Alloc(8)
	sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, libc.VaList(setting, int32(0)))
	tls.Free(8)
	if rc := sqlite3.Xsqlite3_initialize(tls); rc != sqlite3.SQLITE_OK {
		return "", fmt.Errorf("scrubvfs: SQLite does not start: %d", rc)
	}
	own = sqlite3.Xsqlite3_vfs_find(tls, 0)
	vfs := sqlite3.Xsqlite3_malloc(tls, int32(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	text, err := libc.CString(name)
	if own == 0 || vfs == 0 || err != nil {
		return "", fmt.Errorf("scrubvfs: SQLite has no file system, or no memory: %w", err)
	}
	made := at[sqlite3.Tsqlite3_vfs](vfs)
	*made = *at[sqlite3.Tsqlite3_vfs](own)
	made.FpNext, made.FzName, made.FxOpen = 0, text, pointer(open)
	behind = (uintptr(made.FszOsFile) + 7) &^ 7
	made.FszOsFile = int32(behind + unsafe.Sizeof(room{}))
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 0); rc != sqlite3.SQLITE_OK {
		return "", fmt.Errorf("scrubvfs: SQLite does not take the file system: %d", rc)
	}
	return name, nil
})

// own is SQLite's file system.
var own uintptr

// methods is SQLite's own table of functions of an open file with some of them replaced, followed by the own ones.
type methods struct {
	sqlite3.Tsqlite3_io_methods
	own sqlite3.Tsqlite3_io_methods
}

// tables holds the methods made so far. There are as many as ways to lock a file, for each kind of file.
var tables sync.Map // from a table to an address

// table says what methods are for.
type table struct {
	own  uintptr // SQLite's own that they replace
	kind int32   // of a file, as SQLite opens it
}

// The functions of SQLite that are called here.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	writeFunc    = func(tls *libc.TLS, file, data uintptr, size int32, offset int64) int32
	readFunc     = writeFunc
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	lockFunc     = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
)

func open(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := function[openFunc](at[sqlite3.Tsqlite3_vfs](own).FxOpen)(tls, own, name, file, flags, outFlags)
	if rc != sqlite3.SQLITE_OK {
		return rc
	}
	switch {
	case flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0:
		return openDatabase(tls, file)
	case flags&sqlite3.SQLITE_OPEN_WAL != 0:
		return openLog(tls, name, file)
	}
	return rc
}

func openDatabase(tls *libc.TLS, file uintptr) int32 {
	*roomOf(file) = room{}
	return replace(tls, file, sqlite3.SQLITE_OPEN_MAIN_DB, func(m *methods) {
		m.FxWrite = pointer(write)
		if m.FiVersion >= 2 && m.FxShmLock != 0 { // otherwise SQLite does not call it
			m.FxShmLock = pointer(lock)
		}
	})
}

// replace gives an open file its methods.
func replace(tls *libc.TLS, file uintptr, kind int32, change func(*methods)) int32 {
	f := at[sqlite3.Tsqlite3_file](file)
	key := table{f.FpMethods, kind}
	made, ok := tables.Load(key)
	if !ok {
		address := sqlite3.Xsqlite3_malloc(tls, int32(unsafe.Sizeof(methods{})))
		if address == 0 {
			// SQLite closes a file that has methods, even if opening it failed.
			return sqlite3.SQLITE_NOMEM
		}
		m := at[methods](address)
		m.own = *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
		m.Tsqlite3_io_methods = m.own
		change(m)
		made, _ = tables.LoadOrStore(key, address)
	}
	f.FpMethods = made.(uintptr)
	return sqlite3.SQLITE_OK
}

// methodsOf gives the methods of an open file that has some from here.
func methodsOf(file uintptr) *methods { return at[methods](at[sqlite3.Tsqlite3_file](file).FpMethods) }

func write(tls *libc.TLS, file, data uintptr, size int32, offset int64) int32 {
	m := methodsOf(file)
	page := view(data, size)
	if from, to := middle(page, offset); from < to && smallEnough(tls, m, file, size) {
		// SQLite may still use the page it gave us, so scrub a copy.
		copied := tls.Alloc(int(size))
		defer tls.Free(int(size))
		clean := view(copied, size)
		copy(clean, page)
		clear(clean[from:to])
		data = copied
	}
	return function[writeFunc](m.own.FxWrite)(tls, file, data, size, offset)
}

// Kinds of b-tree pages, by their first byte.
const (
	innerIndex = 2
	innerTable = 5
	leafIndex  = 10
	leafTable  = 13
)

// middle finds the unused bytes between the cell pointers, which grow from the beginning of a b-tree page, and the
// cells, which grow from its end. It is empty for any other page.
func middle(page []byte, offset int64) (from, to int) {
	const smallest, fileHeader = 512, 100
	size := len(page)
	if size < smallest || size&(size-1) != 0 || offset%int64(size) != 0 {
		return 0, 0
	}
	header := 0
	if offset == 0 {
		header = fileHeader
	}
	switch page[header] {
	case leafIndex, leafTable:
		from = header + 8
	case innerIndex, innerTable:
		from = header + 12
	default:
		return 0, 0
	}
	from += 2 * int(binary.BigEndian.Uint16(page[header+3:])) // the number of cells
	if to = int(binary.BigEndian.Uint16(page[header+5:])); to == 0 {
		to = 1 << 16
	}
	if to > size {
		return 0, 0 // broken: leave it as it is
	}
	return from, to
}

// smallEnough tells whether the first byte is enough to know a b-tree page. Overflow and freelist pages begin with the
// number of another page, whose first byte is 0 or 1 below 2^25. The bound leaves room for what a checkpoint adds.
func smallEnough(tls *libc.TLS, m *methods, file uintptr, pageSize int32) bool {
	const most = 1 << 24
	size := tls.Alloc(8)
	defer tls.Free(8)
	rc := function[sizeFunc](m.FxFileSize)(tls, file, size)
	return rc == sqlite3.SQLITE_OK && *at[int64](size) < most*int64(pageSize)
}

// The casts below rest on how the driver, C translated to Go, keeps C memory and function pointers. A test pins its
// version.

// at gives what lies at an address of SQLite's memory, which is not Go's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function gives a function that SQLite has the address of.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

// pointer is the address of a function for SQLite: what a variable holds that it was assigned to.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// view gives bytes of SQLite's memory.
func view(address uintptr, size int32) []byte { return unsafe.Slice(at[byte](address), size) }
