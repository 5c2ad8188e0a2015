package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// On Unix a lock belongs to the open file, so that two of them in one process are like two processes.
func TestALockKeepsOthersOutUntilTheFileIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := Lock(second); !errors.Is(err, ErrLocked) {
		t.Errorf("the second lock: %v", err)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Errorf("a locked file can be read: %v", err)
	}
	first.Close()
	if err := Lock(second); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
}

func TestNamesCanBeSynced(t *testing.T) {
	if err := SyncDirectory(t.TempDir()); err != nil {
		t.Error(err)
	}
}
