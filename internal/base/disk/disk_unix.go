//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Lock locks a file against every other process until it is closed. The lock goes with the process, however that ends.
// Errors: ErrLocked; others where the file system has no locks.
func Lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// SyncDirectory makes the names of files in a directory as durable as their content.
func SyncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// HasOtherNames tells whether hard links lead to the same file.
func HasOtherNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// OthersCanRead tells whether the mode of a file lets users read it who do not own it.
func OthersCanRead(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}

// Free is how many bytes a user can still write to the file system of a path.
func Free(path string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, err
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}
