package engine

import (
	"errors"
	"os"
	"syscall"
)

// syncData waits until the content of a file, and its size, are on the disk. Unlike Sync it does not wait for the time
// of the last change, for which a file system writes to its journal.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
