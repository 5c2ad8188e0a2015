package importer

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// state is how far an import has come, as it is kept in a file beside the one that is imported.
type state struct {
	ID     string `json:"id"` // of this import: what was sent by another one is not the same
	Org    string `json:"org,omitempty"`
	Format Format `json:"format"`

	Size   int64  `json:"size"`   // of the whole file
	Offset int64  `json:"offset"` // bytes of it that are done with
	Line   int64  `json:"line"`
	SHA256 string `json:"sha256"` // of these bytes

	Imported int64 `json:"imported"`
	Rejected int64 `json:"rejected"`
	// of the file with the rejected lines; what is behind them was written in vain
	RejectedBytes int64 `json:"rejectedBytes"`
	Done          bool  `json:"done,omitempty"`
}

// notebook keeps the state of an import. Without a path it keeps nothing.
type notebook struct {
	path string
	state
	begun bool // by this run
	noted time.Time
}

// pause is how often the state is noted. What is not noted is sent again, and answered from memory.
const pause = 250 * time.Millisecond

// openNotebook reads the state of an import that was begun, or begins one.
func openNotebook(path string, begin state) (*notebook, error) {
	n := &notebook{path: path, state: begin}
	n.ID = rand.Text()
	if path == "" {
		return n, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		n.begun = true
		if err := n.note(); err != nil { // where it cannot be written nothing should be sent
			return nil, fmt.Errorf("%w: give --state and --rejected files that can be written", err)
		}
		return n, nil
	}
	if err != nil {
		return nil, err
	}
	var begun state
	if err := json.Unmarshal(text, &begun); err != nil || begun.ID == "" {
		return nil, fmt.Errorf("%s should contain the progress of the import but cannot be read: remove it to start over", path)
	}
	switch {
	case begun.Size != begin.Size:
		return nil, fmt.Errorf("the file had %d bytes when its import started and has %d now: restore it, or import the new lines as a separate file", begun.Size, begin.Size)
	case begun.Format != begin.Format:
		return nil, fmt.Errorf("the import started with --format %s: use the same, or remove %s to start over",
			begun.Format, path)
	case begun.Org != begin.Org:
		return nil, fmt.Errorf("the import started with another --org (%q): use the same, or remove %s to start over",
			begun.Org, path)
	}
	n.state = begun
	return n, nil
}

// note writes the state down, so that it is there whole after a crash, or as it was before.
func (n *notebook) note() error {
	if n.path == "" {
		return nil
	}
	text, err := json.Marshal(n.state)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(n.path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("storing the progress of the import: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(n.path+".tmp", n.path)
	}
	if err != nil {
		return fmt.Errorf("storing the progress of the import: %w", err)
	}
	n.noted = time.Now()
	return nil
}

// forget removes the state of an import that was refused before it has done anything: the next one may be another one.
func (n *notebook) forget() error {
	if !n.begun || n.Offset > 0 {
		return n.note()
	}
	return os.Remove(n.path)
}

// rejects is the file with the rejected lines.
type rejects struct {
	path string
	file *os.File // nil until there is one
}

// openRejects takes away what an earlier run has written behind its last note.
func openRejects(path string, keep int64) (*rejects, error) {
	r := &rejects{path: path}
	if keep == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return r, nil
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() < keep {
		err = fmt.Errorf("%s is shorter than before", path)
	}
	if err == nil {
		err = os.Truncate(path, keep)
	}
	if err != nil {
		return nil, fmt.Errorf("continuing the rejected lines (restore the file, or remove the --state file to start over): %w", err)
	}
	return r, nil
}

// add writes lines, and gives how many bytes they took.
func (r *rejects) add(all []*rejection) (n int64, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	if r.file == nil {
		if r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return 0, err
		}
	}
	var text []byte
	for _, one := range all {
		line, err := json.Marshal(one)
		if err != nil {
			return 0, err
		}
		text = append(append(text, line...), '\n')
	}
	_, err = r.file.Write(text)
	return int64(len(text)), err
}

// sync makes what was added durable.
func (r *rejects) sync() error {
	if r.file == nil {
		return nil
	}
	return r.file.Sync()
}

func (r *rejects) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
