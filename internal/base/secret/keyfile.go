package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/signet-idm/signet/internal/base/disk"
)

// LoadOrCreateKeyFile reads the master key from the file at path. When there is no such file and create is set, it
// makes a key and the file, which only its owner can read, and which is on disk before the key is returned: data sealed
// with a key that a power cut took away could never be opened.
//
// Of processes that start at the same time one makes the file. Another may find it before the key is in it and fail;
// no two of them get different keys.
//
// Errors wrap fs.ErrNotExist when the file is missing. A regular file that group or others may touch is refused. Other
// kinds, such as a pipe, are read as they are. Errors name the path and never quote the content.
func LoadOrCreateKeyFile(path string, create bool) (key MasterKey, created bool, err error) {
	key, err = loadKeyFile(path)
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	key = NewMasterKey()
	err = createKeyFile(path, key)
	if errors.Is(err, fs.ErrExist) { // another process was faster; its key counts
		key, err = loadKeyFile(path)
		return key, false, err
	}
	if err != nil {
		return MasterKey{}, false, err
	}
	return key, true, nil
}

// CreateKeyFile makes a key and a file for it as LoadOrCreateKeyFile does. Errors wrap fs.ErrExist when there is a file
// already: it is left as it is.
func CreateKeyFile(path string) (MasterKey, error) {
	key := NewMasterKey()
	if err := createKeyFile(path, key); err != nil {
		return MasterKey{}, err
	}
	return key, nil
}

func loadKeyFile(path string) (MasterKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return MasterKey{}, fmt.Errorf("master key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return MasterKey{}, fmt.Errorf("master key file: %w", err)
	}
	if disk.OthersCanRead(info) {
		return MasterKey{}, fmt.Errorf("other users can read the master key file %s (mode %04o): run chmod 600 on it, "+
			"and rotate the key if somebody may have read it", path, info.Mode().Perm())
	}
	// A wrong path may name something without an end. The limit is above every valid length.
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return MasterKey{}, fmt.Errorf("master key file: %w", err)
	}
	key, err := ParseMasterKey(text)
	if err != nil {
		return MasterKey{}, fmt.Errorf("master key file %s: %w", path, err)
	}
	return key, nil
}

// WriteKeyFile puts a key into a new file, which only its owner can read, and which is on disk when it returns. A file
// that is there already is left alone: fs.ErrExist.
func WriteKeyFile(path string, key MasterKey) error { return createKeyFile(path, key) }

func createKeyFile(path string, key MasterKey) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("master key file: %w", err)
	}
	defer func() {
		if err != nil {
			// A file without a whole key would only be in the way of the next start.
			err = fmt.Errorf("master key file: %w", errors.Join(err, os.Remove(path)))
		}
	}()
	_, err = f.Write(append(key.Text(), '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return disk.SyncDirectory(filepath.Dir(path)) // the name is as durable as the key
}
