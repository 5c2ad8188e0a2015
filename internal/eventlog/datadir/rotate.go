package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/signet-idm/signet/internal/base/secret"
)

// A rotation of the master key that is in the directory touches two things that cannot change together: the database,
// and the file. So the new key is on the disk under a name of its own first, then the database changes, then the files
// get their names. Wherever this is cut off, one of the two files fits the database; SettleKey finds out which.
const (
	newKeyFile = keyFile + ".new"
	oldKeyFile = keyFile + ".old"
)

// NewKey makes the key of a rotation. It is on the disk when this returns. The lock has to be held.
func (d *Dir) NewKey() (secret.MasterKey, error) {
	old := filepath.Join(d.path, oldKeyFile)
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		return secret.MasterKey{},
			fmt.Errorf("%s exists from an earlier rotation: move it to where you keep old keys, or remove it if no older backup is left", old)
	}
	return secret.CreateKeyFile(filepath.Join(d.path, newKeyFile))
}

// AdoptNewKey gives the files their names after the database has changed: the new key is master.key, and the one before
// it master.key.old. The lock has to be held.
func (d *Dir) AdoptNewKey() error {
	current := filepath.Join(d.path, keyFile)
	if err := os.Rename(current, filepath.Join(d.path, oldKeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("storing the old master key: %w", err)
	}
	if err := os.Rename(filepath.Join(d.path, newKeyFile), current); err != nil {
		return fmt.Errorf("storing the new master key: %w", err)
	}
	return syncDirectory(current)
}

// KeyPaths are where the master key is, and where a rotation leaves the one before it.
func (d *Dir) KeyPaths() (current, old string) {
	return filepath.Join(d.path, keyFile), filepath.Join(d.path, oldKeyFile)
}

// SettleKey ends a rotation that was cut off: the key that fits the database gets its name, and one that never came to
// be used is removed. Without the lock nothing is moved. It gives the key where that is not master.key itself. fits
// tells whether a key is the database's.
func (d *Dir) SettleKey(fits func(secret.MasterKey) (bool, error)) (key secret.MasterKey, found bool, err error) {
	made := filepath.Join(d.path, newKeyFile)
	if _, err := os.Lstat(made); errors.Is(err, fs.ErrNotExist) {
		return key, false, nil
	}
	is := func(path string) (secret.MasterKey, bool, error) {
		key, _, err := secret.LoadOrCreateKeyFile(path, false)
		if err != nil { // half a key, or none: it is not the one
			return key, false, nil
		}
		ok, err := fits(key)
		return key, ok, err
	}
	key, adopted, err := is(made)
	if err != nil {
		return key, false, err
	}
	if adopted {
		if d.lock != nil {
			err = d.AdoptNewKey()
		}
		return key, true, err
	}
	if _, used, err := is(filepath.Join(d.path, keyFile)); err != nil || !used || d.lock == nil {
		return secret.MasterKey{}, false, err
	}
	if err := os.Remove(made); err != nil {
		return secret.MasterKey{}, false, fmt.Errorf("removing a master key that was never used: %w", err)
	}
	return secret.MasterKey{}, false, syncDirectory(made)
}
