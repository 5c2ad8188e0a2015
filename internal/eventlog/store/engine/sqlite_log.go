package engine

import (
	"context"
	"encoding/binary"
	"os"
)

// SQLite writes changed pages to the write-ahead log first. From there they are moved to the file of the database, page
// by page, with two syncs, which SQLite calls a checkpoint: if COMMIT does that, as SQLite would by itself, everybody
// who wants to write waits. So it is done beside the writer, on a connection of its own. What the writer adds meanwhile
// is left, and SQLite writes the log from its beginning again only if nothing is left: when the log has grown, what is
// left is moved while nobody writes. That is little.
//
// Nothing is lost if the process ends meanwhile: SQLite moves only what was committed, and syncs the log before and the
// database after.
//
// All sizes are in frames: pages in the log.
const (
	// A page that many changes have touched is moved once: the more are waited for, the fewer are moved.
	moveFrames = 4000
	mostFrames = 8000  // Then the log is emptied: 33 MB.
	tooMany    = 16000 // Then COMMIT does it after all: what is moved beside it fails, or is too slow.
)

// tend has the log moved if it has grown. The caller has just committed, and calls it before others may write.
func (e *sqliteEngine) tend() {
	frames := e.logFrames()
	if frames < e.tended { // the log has begun again
		e.tended = 0
	}
	if frames-e.tended < moveFrames {
		return
	}
	select {
	case e.due <- struct{}{}:
		e.tended = frames
	default: // it is being moved
	}
}

// logFrames gives how many frames the log has. 0 where that cannot be read: then COMMIT moves them, see tooMany.
func (e *sqliteEngine) logFrames() int {
	if e.index == nil {
		f, err := os.Open(e.path + "-shm")
		if err != nil {
			return 0
		}
		e.index = f
	}
	// This is a part of SQLite's file format: https://sqlite.org/walformat.html#the_wal_index_header
	var header [20]byte
	if _, err := e.index.ReadAt(header[:], 0); err != nil {
		return 0
	}
	return int(binary.NativeEndian.Uint32(header[16:]))
}

// moveAll moves the log whenever that is due.
func (e *sqliteEngine) moveAll() {
	defer close(e.stopped)
	for {
		select {
		case <-e.due:
			if err := e.move(); err != nil {
				e.log.Warn("moving the write-ahead log into the database failed: the server retries", "error", err)
			}
		case <-e.stopping:
			return
		}
	}
}

func (e *sqliteEngine) move() error {
	e.moving.Lock()
	defer e.moving.Unlock()
	frames, err := e.checkpoint()
	if err != nil || frames < mostFrames {
		return err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	_, err = e.checkpoint()
	return err
}

// checkpoint moves what it can without waiting for anybody, and gives how many frames the log has.
func (e *sqliteEngine) checkpoint() (frames int, err error) {
	var busy, moved int
	err = e.movers.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &moved)
	return frames, err
}
