// Package datadir looks after the directory that holds an installation's files: the lock against a second server, the
// master key, the embedded database, and what the first start hands to the operator.
package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/signet-idm/signet/internal/secret"
)

// Names of the files.
const (
	databaseFile   = "signet.db"
	keyFile        = "master.key"
	lockFile       = "lock"
	firstAdminFile = "first-admin.json"
)

// Dir is a data directory.
type Dir struct {
	path string
	lock *os.File
}

// Open gives the directory, making it (for its owner alone) where it is missing and create is set.
func Open(path string, create bool) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if create {
		if err := os.MkdirAll(abs, 0o700); err != nil {
			return nil, fmt.Errorf("making the data directory: %w", err)
		}
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("the data directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("the data directory %s is not a directory", abs)
	}
	return &Dir{path: abs}, nil
}

// ErrInUse says that a server is running on the directory.
var ErrInUse = errors.New("the data directory is in use by another signet process: stop it first, or use another directory with --data-dir")

// Lock keeps every other process from serving or changing this directory until Close. It belongs to the file itself, so
// a symbolic link to the directory leads to the same lock, and it goes with the process, however that ends.
func (d *Dir) Lock() error {
	f, err := os.OpenFile(filepath.Join(d.path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return ErrInUse
		}
		return fmt.Errorf("locking the data directory: %w", err)
	}
	d.lock = f
	return nil
}

// Close gives the lock back.
func (d *Dir) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// Database is the path of the embedded database. Errors: when the file is a link, since the lock of this directory
// would not protect what it leads to.
func (d *Dir) Database() (string, error) {
	path := filepath.Join(d.path, databaseFile)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file: link the whole data directory instead", path)
	}
	return path, nil
}

// MasterKey reads the master key: from text where it is not empty, else from the file, else from the directory. Only
// in the directory, and only where create is set (an empty database), is a new one made.
func (d *Dir) MasterKey(text, file string, create bool) (secret.MasterKey, error) {
	if text != "" && file != "" {
		return secret.MasterKey{}, errors.New("SIGNET_MASTER_KEY and --master-key-file are both set: use one of them")
	}
	if text != "" {
		return secret.ParseMasterKey([]byte(text))
	}
	if file != "" {
		key, _, err := secret.LoadOrCreateKeyFile(file, false)
		return key, err
	}
	path := filepath.Join(d.path, keyFile)
	key, _, err := secret.LoadOrCreateKeyFile(path, create)
	if errors.Is(err, fs.ErrNotExist) {
		return key, fmt.Errorf("the database holds an installation, but its master key is not in %s: put it back, or give it with --master-key-file or SIGNET_MASTER_KEY", path)
	}
	return key, err
}

// FirstAdmin is the file the first start leaves for the operator.
type FirstAdmin struct {
	URL           string `json:"url"`
	OrgID         string `json:"orgId"`
	UserID        string `json:"userId"`
	LoginName     string `json:"loginName"`
	Password      string `json:"password"`
	ServiceUserID string `json:"serviceUserId"`
	Token         string `json:"token"`
}

// FirstAdminPath is where the file goes: path where it is set, else in the directory.
func (d *Dir) FirstAdminPath(path string) string {
	if path != "" {
		return path
	}
	return filepath.Join(d.path, firstAdminFile)
}

// PrepareFirstAdmin writes the file under a temporary name and makes sure it is on the disk, before the first
// start commits: an administrator nobody can sign in as must never exist.
func PrepareFirstAdmin(path string, f FirstAdmin) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(temporary(path), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the first administrator's file: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close(), syncDirectory(path))
	if err != nil {
		return fmt.Errorf("writing the first administrator's file: %w", err)
	}
	return nil
}

// PublishFirstAdmin gives the file its name, after the first start has committed. It also completes a first start that
// was cut off between the two; where there is nothing to do it does nothing.
func PublishFirstAdmin(path string) error {
	err := os.Rename(temporary(path), path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDirectory(path))
}

// DiscardFirstAdmin removes the temporary file of a first start that did not happen.
func DiscardFirstAdmin(path string) error { return os.Remove(temporary(path)) }

func temporary(path string) string { return path + ".tmp" }

func syncDirectory(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
