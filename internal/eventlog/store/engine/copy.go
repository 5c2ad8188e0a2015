package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"
)

// openFile opens a database file by itself, for work on whole files. It changes nothing in the file. In a copy that is
// made of it, SQLite deletes the old place of what it moves while it writes (secure_delete): otherwise the data of a
// user who is erased after a restore could still be found there.
func openFile(path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: abs,
		RawQuery: "mode=ro&_pragma=busy_timeout(10000)&_pragma=secure_delete(1)"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// refuseAutoVacuum keeps a database with auto_vacuum away from package scrubvfs, which would take its pointer-map pages
// for b-tree pages and destroy them. It writes nothing.
func refuseAutoVacuum(ctx context.Context, path string) error {
	db, err := openFile(path)
	if err != nil {
		return err
	}
	defer db.Close()
	var mode int
	if err := db.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode); err != nil || mode == 0 {
		return err
	}
	return fmt.Errorf("auto_vacuum is on in %[1]s, and Signet would damage such a database: stop what uses it and run "+
		"sqlite3 '%[1]s' 'PRAGMA secure_delete = 1; PRAGMA auto_vacuum = 0; VACUUM'", path)
}

// CopyFile writes the embedded database into an empty file, while other processes may use the database. The copy is one
// moment of the database: it has everything that was committed before the call, and nothing that was deleted. It is not
// yet synced to the disk.
func CopyFile(ctx context.Context, from, to string) error {
	db, err := openFile(from)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return err
}

// FileSize tells about how many bytes a copy of the embedded database will have.
func FileSize(ctx context.Context, path string) (bytes int64, err error) {
	db, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx,
		"SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&bytes)
	return bytes, err
}

// DamagedError says what SQLite found wrong with a database file.
type DamagedError struct{ What string }

func (d *DamagedError) Error() string { return "the database file is damaged: " + d.What }

// Mend is what to do about damage of the database of an installation.
const Mend = "stop the server, keep a copy of the data directory, and run signet rebuild, which makes the indexes and the state again from the log. If that fails, restore the last backup"

// CheckFile lets SQLite look for damage in a whole database file that nobody writes to, and compare its indexes with
// its tables. rest is called after every piece of work, so that others get their turn; nil: in one go. Errors: a
// *DamagedError.
func CheckFile(ctx context.Context, path string, rest func(context.Context) error) error {
	if rest == nil {
		db, err := openFile(path)
		if err != nil {
			return err
		}
		defer db.Close()
		return integrity(ctx, db, "PRAGMA integrity_check(1)")
	}
	// SQLite has no other place to stop at that the driver shows: it rests where it reads.
	name, slow, err := vfs.New(restingFile{path, func() error { return rest(ctx) }})
	if err != nil {
		return err
	}
	defer slow.Close() // after the database
	db, err := sql.Open("sqlite", "file:"+restingName+"?mode=ro&immutable=1&vfs="+name)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	return integrity(ctx, db, "PRAGMA integrity_check(1)")
}

func integrity(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, check string) error {
	var found string
	err := db.QueryRowContext(ctx, check).Scan(&found)
	if err = cutShort(ctx, err); err != nil {
		if IsDamage(err) {
			return &DamagedError{What: err.Error()}
		}
		return err
	}
	if found != "ok" {
		return &DamagedError{What: found}
	}
	return nil
}

// IsDamage tells whether a database file is damaged: SQLite has found that, or gave up because of what it read.
func IsDamage(err error) bool {
	if _, ok := errors.AsType[*DamagedError](err); ok {
		return true
	}
	code := codeOf(err) & 0xff
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// IsFull tells whether there was no more room on the disk.
func IsFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) {
		return true
	}
	return codeOf(err)&0xff == sqlite3.SQLITE_FULL
}

// Check lets SQLite look for damage in the database, beside the server that writes to it. With rest it goes table by
// table and rests in between: what is written meanwhile stays in the write-ahead log only for as long as it takes to
// read one of them.
func (e *sqliteEngine) Check(ctx context.Context, rest func(context.Context) error) error {
	if rest == nil {
		return CheckFile(ctx, e.path, nil)
	}
	db, err := openFile(e.path)
	if err != nil {
		return err
	}
	defer db.Close()
	tables, err := e.Tables(ctx, e)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := integrity(ctx, db, "PRAGMA integrity_check('"+t.Name+"')"); err != nil {
			return err
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Reindex makes all indexes again from their tables.
func (e *sqliteEngine) Reindex(ctx context.Context, x Executor) error { return x.Exec(ctx, "REINDEX") }

const restingName = "resting.db"

// restingFile is a file system with one file, which rests while it is read.
type restingFile struct {
	path string
	rest func() error
}

func (f restingFile) Open(name string) (fs.File, error) {
	if filepath.Base(name) != restingName {
		return nil, fs.ErrNotExist
	}
	file, err := os.Open(f.path)
	return &restingReader{file, f.rest}, err
}

type restingReader struct {
	*os.File
	rest func() error
}

func (r *restingReader) Read(to []byte) (int, error) {
	if err := r.rest(); err != nil {
		return 0, err
	}
	return r.File.Read(to)
}

// Resting gives a rest for long work beside requests: it works a quarter of the time, in short pieces, and so costs a
// quarter of one core at most.
func Resting() func(ctx context.Context) error {
	const piece, restFor = 20 * time.Millisecond, 3
	began := time.Now()
	return func(ctx context.Context) error {
		worked := time.Since(began)
		if worked < piece {
			return ctx.Err()
		}
		err := Pause(ctx, restFor*min(worked, time.Second))
		began = time.Now()
		return err
	}
}

// Errors of IsWhole.
var (
	ErrNoDatabase = errors.New("it is not a database file")
	ErrInWAL      = errors.New("it is the live database of an installation, and other files may contain a part of it")
)

// IsWhole tells whether all of a database is in its one file, as in one that CopyFile has made: one that is in use has
// its latest changes beside it.
func IsWhole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var header [20]byte
	if _, err := io.ReadFull(f, header[:]); err != nil || string(header[:16]) != "SQLite format 3\x00" {
		return ErrNoDatabase
	}
	if header[18] != 1 || header[19] != 1 { // 2: write-ahead log
		return ErrInWAL
	}
	return nil
}
