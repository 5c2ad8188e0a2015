package scrubvfs

import (
	"encoding/binary"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite writes each changed page to the write-ahead log with two calls: 24 bytes that say which page it is, then the
// page. Together they are a frame. The last frame of a transaction says that the transaction is complete. Here the
// frames are gathered in memory, and written with one call when the last one is complete.
//
// Nobody can miss what is gathered. SQLite writes all frames of a transaction, then syncs the log if it is told to, and
// only then makes the frames known to other connections, in the shared index of the log. By then they are all in the
// file, whatever synchronous is set to. The connection itself may read its frames earlier, when it had to write some
// because its cache was full: reading writes what is gathered first.
//
// A process that is killed loses at most frames of a transaction that is not complete. What it has written of them is
// not valid without the last one, which SQLite tells by checksums that go over all frames, as it does after any crash.
//
// Frames that a transaction leaves behind when it is rolled back must not be written later: another connection may have
// written its own in the same place. No call on the log says that a transaction is over, but SQLite holds a lock on the
// index while it writes, and that lock goes through the database file. So frames are gathered only under that lock, and
// forgotten when it is given up. Where SQLite takes no such lock (locking_mode=EXCLUSIVE) every write goes straight to
// the file.
//
// SQLite uses a file in one thread at a time, and a database file and its log together. So nothing here needs a lock of
// its own.

// room is what is kept for an open file, behind what SQLite's own file system keeps.
type room struct {
	log      uintptr // of a database: its open log, if there is one
	database uintptr // of a log: its database

	// The rest is of a log.
	writing bool // the connection holds the lock
	next    part // of a frame
	commit  bool // the frame that is being written is the last of its transaction

	failed         int32 // why gathered frames are lost, or SQLITE_OK
	size, capacity int32
	data           uintptr // what is gathered
	start          int64   // where in the file that begins
	end            int64   // where in the file the transaction ends so far
}

// part is what SQLite is about to write.
type part uint8

const (
	head    part = iota // of a frame, or of the log
	page                // the rest of a frame
	unclear             // anything
)

const (
	firstRoom = 1 << 16 // 15 pages of the usual size

	// SQLite's own file system cuts a write to its length modulo 2^17, and takes what is left of it, if that is 2^17,
	// for a full disk.
	mostRoom = 1<<17 - 1
)

// behind is how far behind the beginning of an open file its room is.
var behind uintptr

func roomOf(file uintptr) *room { return at[room](file + behind) }

func openLog(tls *libc.TLS, name, file uintptr) int32 {
	database := sqlite3.Xsqlite3_database_file_object(tls, name)
	if methodsOf(database).FxShmLock != pointer(lock) {
		return sqlite3.SQLITE_OK // we would not know when a transaction is over
	}
	rc := replace(tls, file, sqlite3.SQLITE_OPEN_WAL, func(m *methods) {
		m.FxWrite, m.FxRead, m.FxSync = pointer(writeLog), pointer(readLog), pointer(syncLog)
		m.FxTruncate, m.FxFileSize, m.FxClose = pointer(truncateLog), pointer(sizeOfLog), pointer(closeLog)
	})
	if rc == sqlite3.SQLITE_OK {
		*roomOf(file) = room{database: database}
		roomOf(database).log = file
	}
	return rc
}

// lock takes or gives up a lock on the index of the log.
func lock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	own := function[lockFunc](methodsOf(file).own.FxShmLock)
	log := roomOf(file).log
	if log == 0 || offset != sqlite3.WAL_WRITE_LOCK {
		return own(tls, file, offset, n, flags)
	}
	if flags&sqlite3.SQLITE_SHM_UNLOCK != 0 {
		roomOf(log).over()
		return own(tls, file, offset, n, flags)
	}
	rc := own(tls, file, offset, n, flags)
	if rc == sqlite3.SQLITE_OK && flags&sqlite3.SQLITE_SHM_EXCLUSIVE != 0 {
		roomOf(log).writing = true
	}
	return rc
}

// over forgets the transaction. If anything is still gathered, it was rolled back.
func (r *room) over() {
	r.writing, r.next, r.commit, r.failed, r.size, r.end = false, head, false, sqlite3.SQLITE_OK, 0, 0
}

func writeLog(tls *libc.TLS, file, data uintptr, size int32, offset int64) int32 {
	r, own := roomOf(file), function[writeFunc](methodsOf(file).own.FxWrite)
	if !r.writing {
		return own(tls, file, data, size, offset)
	}
	if offset < r.end {
		// SQLite changes a frame of this transaction that it has written before: its page, or, last of all, its
		// checksums. Or it goes back to a savepoint. No order of such writes tells when the transaction is complete.
		if rc := r.flush(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
		return own(tls, file, data, size, offset)
	}
	bytes := view(data, size)
	complete := r.completes(bytes, offset)
	if offset != r.start+int64(r.size) || r.size+size > mostRoom {
		if rc := r.flush(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
		r.start = offset
	}
	r.end = offset + int64(size)
	if !r.grow(tls, r.size+size) {
		if rc := r.flush(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
		return own(tls, file, data, size, offset)
	}
	copy(view(r.data+uintptr(r.size), size), bytes)
	r.size += size
	if complete {
		return r.flush(tls, file)
	}
	return sqlite3.SQLITE_OK
}

// completes tells whether SQLite may make known what it has written when this is written, too. It may if the
// transaction is complete, and for all we know if these are not the writes that we expect: some disks make SQLite write
// a frame in other pieces.
func (r *room) completes(data []byte, offset int64) bool {
	const logHeader, frameHeader, smallestPage = 32, 24, 512
	size := len(data)
	switch {
	case r.next == head && size == logHeader && offset == 0:
		return false
	case r.next == head && size == frameHeader:
		// the size of the database after the transaction
		r.next, r.commit = page, binary.BigEndian.Uint32(data[4:]) != 0
		return false
	case r.next == page && size >= smallestPage && size&(size-1) == 0 && offset == r.end:
		r.next = head
		return r.commit
	}
	r.next = unclear // until the transaction is over
	return true
}

// A test counts these, or has less memory.
var realloc, free = sqlite3.Xsqlite3_realloc, sqlite3.Xsqlite3_free

// grow makes room. Without memory there is none, and the write goes straight to the file.
func (r *room) grow(tls *libc.TLS, size int32) bool {
	if size <= r.capacity {
		return true
	}
	capacity := max(r.capacity, firstRoom)
	for capacity < size {
		capacity *= 2
	}
	data := realloc(tls, r.data, capacity)
	if data == 0 {
		return false
	}
	r.data, r.capacity = data, capacity
	return true
}

// flush writes what is gathered.
//
// If that fails, SQLite hears of it from the call that it makes now, but frames are lost that it was told are written.
// It rolls the transaction back after a failed write of the log. So what is gathered is not kept: to write it later,
// after the transaction was reported as failed, could bring it back. But until SQLite gives up the lock, the
// transaction must not go on as if the frames were there: every write of it fails (none continues what is gathered, so
// all come here), and every read of what is lost.
func (r *room) flush(tls *libc.TLS, file uintptr) int32 {
	if r.size > 0 {
		r.failed = function[writeFunc](methodsOf(file).own.FxWrite)(tls, file, r.data, r.size, r.start)
		r.size = 0
	}
	return r.failed
}

// flushFirst is for calls that do not write. After some errors of a write, a full disk for one, SQLite may roll back no
// more than a statement. It always rolls back the transaction after an input or output error, and here it must.
func (r *room) flushFirst(tls *libc.TLS, file uintptr) int32 {
	rc := r.flush(tls, file)
	if rc == sqlite3.SQLITE_OK || rc&0xff == sqlite3.SQLITE_IOERR {
		return rc
	}
	return sqlite3.SQLITE_IOERR_WRITE
}

func readLog(tls *libc.TLS, file, data uintptr, size int32, offset int64) int32 {
	r := roomOf(file)
	if offset+int64(size) > r.start { // what lies before is in the file
		if rc := r.flushFirst(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	return function[readFunc](methodsOf(file).own.FxRead)(tls, file, data, size, offset)
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	if rc := roomOf(file).flushFirst(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[syncFunc](methodsOf(file).own.FxSync)(tls, file, flags)
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := roomOf(file).flushFirst(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[truncateFunc](methodsOf(file).own.FxTruncate)(tls, file, size)
}

func sizeOfLog(tls *libc.TLS, file, size uintptr) int32 {
	if rc := roomOf(file).flushFirst(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[sizeFunc](methodsOf(file).own.FxFileSize)(tls, file, size)
}

// closeLog writes nothing: what a transaction leaves that was not committed nobody will read.
func closeLog(tls *libc.TLS, file uintptr) int32 {
	r := roomOf(file)
	free(tls, r.data)
	roomOf(r.database).log = 0
	return function[closeFunc](methodsOf(file).own.FxClose)(tls, file)
}
