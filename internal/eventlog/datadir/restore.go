package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// What is being restored has a name of its own until it is whole and checked, so that nobody takes it for a database.
const restoringFile = databaseFile + ".restoring"

// beside are the files that SQLite keeps beside one of its own.
var beside = []string{"-wal", "-shm", "-journal"}

// Vacant tells whether there is no database in the directory, nor anything that SQLite would take for a part of one.
func (d *Dir) Vacant() error {
	path := filepath.Join(d.path, databaseFile)
	for _, suffix := range append([]string{""}, beside...) {
		if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is already a database (%s): restore into another directory with --data-dir, or move it away first", path+suffix)
		}
	}
	return nil
}

// HasDatabase tells whether there is an embedded database in the directory.
func (d *Dir) HasDatabase() bool {
	_, err := os.Lstat(filepath.Join(d.path, databaseFile))
	return err == nil
}

// Restoring is where to put together what is restored. What an earlier attempt has left is removed. The lock has to be
// held.
func (d *Dir) Restoring() (string, error) {
	if err := d.Vacant(); err != nil {
		return "", err
	}
	return filepath.Join(d.path, restoringFile), d.DropRestoring()
}

// DropRestoring removes what an attempt to restore has left.
func (d *Dir) DropRestoring() error {
	path := filepath.Join(d.path, restoringFile)
	for _, suffix := range append([]string{""}, beside...) {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// GiveUpRestoring removes what an attempt to restore has put together, but leaves its mark: nobody takes the directory
// for one in which a new installation belongs.
func (d *Dir) GiveUpRestoring() error {
	path := filepath.Join(d.path, restoringFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, suffix := range beside {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Truncate(path, 0)
}

// AdoptRestored makes what was restored the database of the directory. All of it has to be in the one file.
func (d *Dir) AdoptRestored() error {
	from := filepath.Join(d.path, restoringFile)
	for _, suffix := range beside {
		if _, err := os.Lstat(from + suffix); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s was left behind: the restored database is incomplete", from+suffix)
		}
	}
	if err := d.Vacant(); err != nil {
		return err
	}
	f, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := d.ForgetLog(); err != nil { // it may be behind what was here
		return err
	}
	to := filepath.Join(d.path, databaseFile)
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDirectory(to)
}

// CutOff tells of a restore that did not come to its end, where there is no database either: a first start would make a
// new installation in its place.
func (d *Dir) CutOff() error {
	path := filepath.Join(d.path, restoringFile)
	if _, err := os.Lstat(path); err != nil || d.Vacant() != nil {
		return nil
	}
	return fmt.Errorf("a restore into this directory was not finished: run signet restore again, or remove %s for a new installation", path)
}

// Contains tells whether a path is in the directory, by whatever names it is reached.
func (d *Dir) Contains(path string) (bool, error) {
	mine, err := os.Stat(d.path)
	if err != nil {
		return false, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return false, err
	}
	for {
		info, err := os.Stat(parent)
		if err != nil {
			return false, err
		}
		if os.SameFile(info, mine) {
			return true, nil
		}
		up := filepath.Dir(parent)
		if up == parent {
			return false, nil
		}
		parent = up
	}
}
