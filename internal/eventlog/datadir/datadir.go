// Package datadir manages the directory that holds an installation's files: the lock against a second server, the
// master key, the embedded database, and what the first start hands to the operator.
package datadir

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // for Mend

	"github.com/signet-idm/signet/internal/base/disk"
	"github.com/signet-idm/signet/internal/base/secret"
)

// Names of the files.
const (
	databaseFile   = "signet.db"
	keyFile        = "master.key"
	lockFile       = "lock"
	logHeadFile    = "log-head"
	logEndFile     = "log-end"
	FirstAdminFile = "first-admin.json"
)

// Dir is a data directory.
type Dir struct {
	path   string
	lock   *os.File
	logEnd *os.File // see KeepLogEnd
}

// Open gives the directory, making it (for its owner alone) where it is missing and create is set.
func Open(path string, create bool) (*Dir, error) {
	if path == "" { // an empty variable in a script: files must not end up wherever it runs
		return nil, errors.New("--data-dir is empty: name a directory, or leave it out for ./signet-data")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if create {
		if err := os.MkdirAll(abs, 0o700); err != nil {
			return nil, fmt.Errorf("creating the data directory: %w", forbidden(abs, err))
		}
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrPermission) {
		return nil, forbidden(abs, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the data directory: %w: name the right one with --data-dir, or create one with signet start", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("the data directory %s is not a directory", abs)
	}
	return &Dir{path: abs}, nil
}

// forbidden says what to do where the system does not let this user in.
func forbidden(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: the user that runs signet (id %d) needs to read and write %s: give it to that user (chown -R), or name another directory with --data-dir", err, os.Getuid(), path)
}

// ErrInUse says that a server is running on the directory.
var ErrInUse = errors.New("the data directory is in use by another signet process: stop it first, or use another directory with --data-dir")

// Lock keeps every other process from serving or changing this directory until Close. It belongs to the file itself, so
// a symbolic link to the directory leads to the same lock, and it goes with the process, however that ends.
func (d *Dir) Lock() error {
	f, err := os.OpenFile(filepath.Join(d.path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the data directory: %w", forbidden(d.path, err))
	}
	if err := disk.Lock(f); err != nil {
		f.Close()
		if errors.Is(err, disk.ErrLocked) {
			return ErrInUse
		}
		return fmt.Errorf("locking the data directory: %w", err)
	}
	d.lock = f
	return nil
}

// Close gives the lock back.
func (d *Dir) Close() error {
	var all []error
	for _, f := range []*os.File{d.lock, d.logEnd} {
		if f != nil {
			all = append(all, f.Close())
		}
	}
	return errors.Join(all...)
}

// LogEnd is the last position of the log that the server on the embedded database was known to have on the disk; 0
// where none was.
func (d *Dir) LogEnd() (int64, error) {
	text, err := os.ReadFile(filepath.Join(d.path, logEndFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// OpenLogEnd gives what writes that down: over what was there, and without waiting for the disk. A server that is
// killed leaves the last position there; a machine that loses its power may leave an older one, which is as true. The
// lock has to be held.
func (d *Dir) OpenLogEnd() (keep func(position int64) error, err error) {
	d.logEnd, err = os.OpenFile(filepath.Join(d.path, logEndFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, 21)
	return func(position int64) error {
		text = fmt.Appendf(text[:0], "%020d\n", position)
		_, err := d.logEnd.WriteAt(text, 0)
		return err
	}, nil
}

// ForgetLog removes what is known of a log: another one is about to take its place, on purpose.
func (d *Dir) ForgetLog() error {
	for _, name := range []string{logHeadFile, logEndFile} {
		if err := os.Remove(filepath.Join(d.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// LogHead is where the log ended when a node last wrote that down; nil where none has.
func (d *Dir) LogHead() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(d.path, logHeadFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// KeepLogHead writes that down. It may be lost with the machine: then an older one is there, which is as true.
func (d *Dir) KeepLogHead(text string) error {
	path := filepath.Join(d.path, logHeadFile)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// Database is the path of the embedded database. Errors: when the file is a link, symbolic or hard, since the lock of
// this directory would not protect what it leads to.
func (d *Dir) Database() (string, error) {
	path := filepath.Join(d.path, databaseFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("the database file: %w", err)
	}
	if !info.Mode().IsRegular() || disk.HasOtherNames(info) {
		return "", fmt.Errorf("%s must be a regular file, not a link: link the whole data directory instead", path)
	}
	return path, nil
}

// Mend recovers a half-created database. Until it is in its usual mode (write-ahead log), a crash can leave a journal
// behind, which refuses readers. The caller holds the lock.
func (d *Dir) Mend(ctx context.Context) error {
	path, err := d.Database()
	if err != nil || !cutOff(path) {
		return err
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=rw"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return err
	}
	defer db.Close()
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return fmt.Errorf("repairing the database after a crash: %w", err)
	}
	return nil
}

// Whole refuses a database that Mend has to repair first. It is for commands that only read.
func (d *Dir) Whole() error {
	path, err := d.Database()
	if err == nil && cutOff(path) {
		err = errors.New("the database was cut off while it was made: signet start repairs it, or signet move where it was made by that")
	}
	return err
}

// cutOff tells whether a database has a journal of changes that were not finished.
func cutOff(path string) bool {
	for _, name := range []string{path, path + "-journal"} {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// MasterKey reads the master key: from text where it is not empty, else from the file, else from the directory. Only
// in the directory, and only where create is set (an empty database), is a new one made. With text or file it needs no
// directory: d may be nil. Errors never quote a key.
func (d *Dir) MasterKey(text, file string, create bool) (secret.MasterKey, error) {
	if text != "" && file != "" {
		return secret.MasterKey{}, errors.New("SIGNET_MASTER_KEY and --master-key-file are both set: use one of them")
	}
	if text != "" {
		key, err := secret.ParseMasterKey([]byte(text))
		if err != nil {
			err = fmt.Errorf("SIGNET_MASTER_KEY: %w", err)
		}
		return key, err
	}
	if file != "" {
		if _, err := secret.ParseMasterKey([]byte(file)); err == nil {
			return secret.MasterKey{},
				errors.New("--master-key-file takes the name of a file, not the key: put the key into the file, or into SIGNET_MASTER_KEY")
		}
		key, _, err := secret.LoadOrCreateKeyFile(file, false)
		return key, err
	}
	path := filepath.Join(d.path, keyFile)
	key, _, err := secret.LoadOrCreateKeyFile(path, false)
	if errors.Is(err, fs.ErrNotExist) && create {
		return makeKey(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return key, fmt.Errorf("the database belongs to an installation, but its master key is not in %s: put it there, or give it with --master-key-file or SIGNET_MASTER_KEY", path)
	}
	return key, err
}

func makeKey(path string) (key secret.MasterKey, err error) {
	err = writeKey(path, func(made string) (err error) {
		key, _, err = secret.LoadOrCreateKeyFile(made, true)
		return err
	})
	return key, err
}

// writeKey lets a key be written under a temporary name first: a crash must not leave half a key that is in the way of
// the next start. The lock of the directory keeps others from doing the same.
func writeKey(path string, write func(made string) error) error {
	made := path + ".tmp"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("creating the master key: %w", err)
	}
	if err := write(made); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		return fmt.Errorf("creating the master key: %w", err)
	}
	return syncDirectory(path)
}

// KeepMasterKey puts a key into the directory, for a database that is about to come there. One that is there already
// has to be the same.
func (d *Dir) KeepMasterKey(key secret.MasterKey) error {
	path := filepath.Join(d.path, keyFile)
	have, _, err := secret.LoadOrCreateKeyFile(path, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeKey(path, func(made string) error { return secret.WriteKeyFile(made, key) })
	case err != nil:
		return err
	case !hmac.Equal(have.CheckValue(), key.CheckValue()):
		return fmt.Errorf("%s is a different master key than that of the data: move it elsewhere first", path)
	}
	return nil
}

// Is tells whether a path leads to this directory.
func (d *Dir) Is(path string) bool {
	here, err := os.Stat(d.path)
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(here, there)
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
	if path == "" {
		return filepath.Join(d.path, FirstAdminFile)
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// PrepareFirstAdmin writes the file under a temporary name and makes sure it is on the disk, before the first
// start commits: an administrator nobody can sign in as must never exist. The name is that of this one attempt: nodes
// that try at the same time, and attempts that came to nothing, must not be taken for the one that made it.
func PrepareFirstAdmin(path string, f FirstAdmin) error {
	err := prepareFirstAdmin(path, f)
	if err != nil {
		err = fmt.Errorf("writing the first administrator's file: %w", err)
	}
	return err
}

func prepareFirstAdmin(path string, f FirstAdmin) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s already exists and is not a file", path)
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(temporary(path, f.OrgID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Sync(), file.Close(), syncDirectory(path))
}

// PublishFirstAdmin gives the file its name, after the first start has committed and made this default organization.
// It also completes a first start that was cut off between the two, and removes what attempts that lost have left.
// Where there is nothing to do it does nothing.
func PublishFirstAdmin(path, orgID string) error {
	err := os.Rename(temporary(path, orgID), path)
	if err == nil {
		err = syncDirectory(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing the first administrator's file: %w", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // it was needed once, at the first start
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+".org_") && strings.HasSuffix(e.Name(), ".tmp") {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name())) // credentials of nobody
		}
	}
	return nil
}

func temporary(path, orgID string) string { return path + "." + orgID + ".tmp" }

func syncDirectory(path string) error {
	return disk.SyncDirectory(filepath.Dir(path))
}
