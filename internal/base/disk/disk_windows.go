package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Lock locks a file against every other process until it is closed. The lock goes with the process, however that ends.
// Errors: ErrLocked; others where the file system has no locks.
func Lock(f *os.File) error {
	// Such a lock keeps others from reading what it covers, so it covers a byte far behind the end.
	behind := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// SyncDirectory does nothing: NTFS keeps names in a journal, and directories cannot be synced.
func SyncDirectory(string) error { return nil }

// HasOtherNames tells nothing here: what is known of a file does not include its links.
func HasOtherNames(fs.FileInfo) bool { return false }

// OthersCanRead tells nothing here: access control lists decide, and the directory passes its own on.
func OthersCanRead(fs.FileInfo) bool { return false }

// Free is how many bytes a user can still write to the file system of a path.
func Free(path string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	}
	return free, err
}
