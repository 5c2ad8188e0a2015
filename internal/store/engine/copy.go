package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
)

// openFile opens a database file by itself, for what is done to whole files. It changes nothing in it. Where a copy is made of it, what SQLite
// moves while it writes is deleted where it was (secure_delete): else whoever is erased after a restore could still be found there.
func openFile(path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: "mode=ro&_pragma=busy_timeout(10000)&_pragma=secure_delete(1)"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// refuseAutoVacuum keeps a database with auto_vacuum away from package scrubvfs, which would take its pointer-map pages for b-tree
// pages and destroy them. It writes nothing.
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

// CopyFile writes the embedded database into a file that is empty, beside whoever is using it. The copy is one moment of the
// database, and everything that was committed before the call is in it; what was deleted is not. It is not yet on the disk.
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
	err = db.QueryRowContext(ctx, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&bytes)
	return bytes, err
}

// CheckFile lets SQLite look for damage in a database file. Thoroughly, it also compares the indexes with the tables.
func CheckFile(ctx context.Context, path string, thoroughly bool) error {
	db, err := openFile(path)
	if err != nil {
		return err
	}
	defer db.Close()
	check := "PRAGMA quick_check(1)"
	if thoroughly {
		check = "PRAGMA integrity_check(1)"
	}
	var found string
	if err := db.QueryRowContext(ctx, check).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("the database file is damaged: %s", found)
	}
	return nil
}

// Errors of IsWhole.
var (
	ErrNoDatabase = errors.New("it is not a database file")
	ErrInWAL      = errors.New("it is the live database of an installation, and other files may contain a part of it")
)

// IsWhole tells whether all of a database is in its one file, as in one that CopyFile has made: one that is in use has its
// latest changes beside it.
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
