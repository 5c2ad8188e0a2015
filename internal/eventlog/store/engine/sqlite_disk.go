package engine

import (
	"context"
	"errors"
	"os"
)

// Sync makes what was committed durable. SQLite could do that in every COMMIT (synchronous=FULL), but then the writer
// would stand still meanwhile. With NORMAL, SQLite syncs at checkpoints only, and this method syncs the log of the
// database, with the same promise to the callers that wait.
func (e *sqliteEngine) Sync() error {
	e.syncing.Lock()
	defer e.syncing.Unlock()
	if e.wal == nil {
		f, err := os.OpenFile(e.path+"-wal", os.O_RDWR, 0) // Windows syncs only what can be written
		if err != nil {
			return err
		}
		e.wal = f
	}
	return syncData(e.wal)
}

// Scrub moves everything from the write-ahead log into the database and truncates the log. What was deleted is
// overwritten in the database (secure_delete, package scrubvfs); the log still has it.
func (e *sqliteEngine) Scrub(context.Context) (done bool, err error) {
	if e.conn == nil {
		return true, nil
	}
	e.moving.Lock()
	defer e.moving.Unlock()
	e.writing.Lock()
	defer e.writing.Unlock()
	wait := func(milliseconds string) error { return e.pragma(busyTimeout + "(" + milliseconds + ")") }
	if err := wait(scrubPatience); err != nil {
		return false, err
	}
	var busy, frames, moved int64
	if _, err = e.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, []any{&busy, &frames, &moved}); err == nil {
		// The pages in memory still have their unused middles: the next write to one must take it from the file.
		err = e.pragma("shrink_memory")
	}
	return err == nil && busy == 0, errors.Join(err, wait(patience))
}
