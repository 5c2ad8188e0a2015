//go:build unix

package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

var reserved struct {
	sync.Mutex
	files []*os.File // locked as long as they are open
}

// reserve keeps a port from the tests of other processes, and tells whether it was free to have. What a port is kept by
// is the same for all of them, wherever they have their temporary files.
func reserve(t testing.TB, port string) bool {
	t.Helper()
	dir := filepath.Join("/tmp", fmt.Sprintf("signet-test-ports-%d", os.Getuid()))
	Must(t, os.MkdirAll(dir, 0o700))
	file, err := os.OpenFile(filepath.Join(dir, port), os.O_CREATE|os.O_RDWR, 0o600)
	Must(t, err)
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		Must(t, file.Close())
		return false
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.files = append(reserved.files, file)
	return true
}
