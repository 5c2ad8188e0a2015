// Package importer imports users from a file into a running server, through its API: any number of them, in bounded
// memory. An import that was interrupted continues where it stopped. The command signet import users uses it.
package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/signet-idm/signet/cmd/signet/remote"
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/disk"
	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Import is what is to be imported, and where.
type Import struct {
	Path     string // - is the standard input, which cannot be gone on with
	Format   Format
	State    string // file that says how far it has come
	Rejected string // file for the rejected lines

	Server remote.Server
	GiveUp time.Duration // how long to wait for a server that does not answer
	DryRun bool          // nothing is imported, and nothing is noted

	Progress io.Writer
	Terminal bool // Progress is one
}

// Summary is what has become of all lines, those of earlier runs included.
type Summary struct {
	Imported, Rejected int64
	Before             bool // there was nothing left to do
}

// Run imports what is not imported yet. When it fails or ctx ends, the next run goes on.
func (i Import) Run(ctx context.Context) (Summary, error) {
	if i.Path == "-" || i.DryRun {
		i.State = ""
	}
	if err := i.checkFiles(); err != nil {
		return Summary{}, err
	}
	var in io.Reader
	begin := state{Org: i.Server.Org, Format: i.Format}
	var lines int64 // 0: nobody knows
	if i.Path == "-" {
		in = stoppable(ctx, os.Stdin)
	} else {
		file, err := open(i.Path)
		if err != nil {
			return Summary{}, err
		}
		defer file.Close() // and with it the lock
		if lines, begin.Size, err = count(file); err != nil {
			return Summary{}, fmt.Errorf("reading the file: %w", err)
		}
		in = file
	}
	read, err := newReader(in, i.Format)
	if err != nil {
		return Summary{}, err
	}
	notes, err := openNotebook(i.State, begin)
	if err != nil {
		return Summary{}, err
	}
	if notes.Offset > 0 {
		same, err := read.skip(notes.Offset, notes.Line, notes.SHA256)
		if err != nil {
			return Summary{}, err
		}
		if !same {
			return Summary{}, fmt.Errorf("the file has changed since its import started: restore it, or remove %s to start over", i.State)
		}
	}
	if notes.Done {
		return Summary{Imported: notes.Imported, Rejected: notes.Rejected, Before: true}, nil
	}
	rejected, err := openRejects(i.Rejected, notes.RejectedBytes)
	if err != nil {
		return Summary{}, err
	}
	defer rejected.close()
	run := &run{Import: i, read: read, notes: notes, rejected: rejected,
		bar: progress.New(i.Progress, i.Terminal, "lines", lines)}
	run.client = signetv1connect.NewUserServiceClient(remote.NewHTTPClient(), i.Server.URL, connect.WithGRPCWeb(),
		connect.WithReadMaxBytes(16<<20))
	run.bar.Before(read.line)
	err = run.all(ctx)
	run.bar.End()
	return Summary{Imported: notes.Imported, Rejected: notes.Rejected}, run.end(err)
}

// checkFiles refuses files that are in each other's way, before one of them is overwritten.
func (i Import) checkFiles() error {
	files := []struct{ what, path string }{{"the file to import", i.Path}, {"--state", i.State},
		{"--rejected", i.Rejected}}
	for n, one := range files {
		if one.path == "-" || one.path == "" {
			continue
		}
		info, err := os.Stat(one.path)
		switch {
		case err == nil && info.IsDir():
			return fmt.Errorf("%s is a directory: give a file as %s", one.path, one.what)
		case err == nil && !info.Mode().IsRegular() && n == 0:
			return fmt.Errorf("%s cannot be read twice: send it to the standard input, and give - as the file", one.path)
		case err == nil && !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file: give another one as %s", one.path, one.what)
		}
		for _, other := range files[:n] {
			if sameFile(one.path, other.path) {
				return fmt.Errorf("%s is both %s and %s: give another one as %s", one.path, other.what,
					one.what, one.what)
			}
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	one, oneErr := os.Stat(a)
	two, twoErr := os.Stat(b)
	if oneErr == nil && twoErr == nil {
		return os.SameFile(one, two)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// open opens the file and keeps other imports away from it: two of them would write the same notes.
func open(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	// Not every file system has locks.
	if err := disk.Lock(file); errors.Is(err, disk.ErrLocked) {
		file.Close()
		return nil, fmt.Errorf("another import of %s is running: wait for it to end", path)
	}
	return file, nil
}

// stoppable reads what comes in until ctx ends, which does not end a read that waits for a pipe or a person.
func stoppable(ctx context.Context, in io.Reader) io.Reader {
	out, feed := io.Pipe()
	go func() {
		_, err := io.Copy(feed, in)
		feed.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { feed.CloseWithError(ctx.Err()) })
	return out
}

// end notes how far it has come, and whether that is the end.
func (r *run) end(err error) error {
	if problem := r.rejected.sync(); err == nil {
		err = problem
	}
	r.notes.Done = err == nil
	keep := r.notes.note
	if _, refused := errors.AsType[*refusal](err); refused {
		keep = r.notes.forget
	}
	if problem := keep(); err == nil {
		err = problem
	}
	return err
}

// count counts lines and bytes, and goes back to the beginning.
func count(file *os.File) (lines, size int64, err error) {
	buffer := make([]byte, 64<<10)
	last := byte('\n')
	for {
		n, err := file.Read(buffer)
		if n > 0 {
			lines += int64(bytes.Count(buffer[:n], []byte("\n")))
			size, last = size+int64(n), buffer[n-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if last != '\n' {
		lines++
	}
	_, err = file.Seek(0, io.SeekStart)
	return lines, size, err
}

// run is one run of an import.
type run struct {
	Import
	client   signetv1connect.UserServiceClient
	read     *reader
	notes    *notebook
	rejected *rejects
	bar      *progress.Bar
	names    map[[16]byte]bool // in a dry run: those of all people so far, who are not there to be found by the server

	mu   sync.Mutex
	away bool // it was said that the server is
}

// answer is what the server said about a chunk.
type answer struct {
	results []*signetv1.ImportUsersResponse_Result
	err     error
}

// all sends chunk after chunk, several at a time, and takes the answers in the order of the file.
func (r *run) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan *chunk, remote.InFlight-1)
	var unreadable error
	go func() {
		defer close(sent)
		for ctx.Err() == nil {
			c, err := r.read.chunk()
			if err != nil || c == nil {
				unreadable = err
				return
			}
			go func() { c.answer <- r.send(ctx, c) }()
			select {
			case sent <- c:
			case <-ctx.Done():
			}
		}
	}()
	for c := range sent {
		a := <-c.answer
		if a.err == nil {
			a.err = r.settle(c, a.results)
		}
		if a.err != nil {
			cancel()
			for range sent { // until nobody reads any more
			}
			return a.err
		}
	}
	if unreadable == nil {
		return ctx.Err()
	}
	return unreadable
}

// isNew tells whether nobody before had a name, and remembers it.
func (r *run) isNew(name string) bool {
	sum := sha256.Sum256([]byte(syntax.NameKey(name)))
	key := [16]byte(sum[:16])
	if r.names[key] {
		return false
	}
	if r.names == nil {
		r.names = map[[16]byte]bool{}
	}
	r.names[key] = true
	return true
}

// settle writes down what has become of a chunk.
func (r *run) settle(c *chunk, results []*signetv1.ImportUsersResponse_Result) error {
	if len(results) != len(c.people) {
		return fmt.Errorf("the server returned results for %d users, but %d were sent: check that both have the same version", len(results), len(c.people))
	}
	all := c.rejected
	for i, result := range results {
		if r.DryRun && result.GetError() == nil && !r.isNew(c.people[i].GetUserName()) {
			result.Error = &signetv1.ImportUsersResponse_Error{Reason: "USER_NAME_TAKEN",
				Message: "this user name is given twice in the file: choose another one"}
		}
		if e := result.GetError(); e != nil {
			out := &rejection{Line: c.lines[i], Reference: c.people[i].GetReference(), Reason: e.GetReason(),
				Message: e.GetMessage()}
			for _, f := range e.GetFieldViolations() {
				out.Fields = append(out.Fields, violation{Field: f.GetField(), Description: f.GetDescription()})
			}
			all = append(all, out)
		}
	}
	slices.SortFunc(all, func(a, b *rejection) int { return int(a.Line - b.Line) })
	n, err := r.rejected.add(all)
	if err != nil {
		return fmt.Errorf("writing the rejected lines: %w: give --rejected a file that can be written", err)
	}
	s := &r.notes.state
	s.Offset, s.Line, s.SHA256 = c.offset, c.line, c.digest
	s.Imported += int64(len(c.people) + len(c.rejected) - len(all))
	s.Rejected += int64(len(all))
	s.RejectedBytes += n
	r.bar.Add(c.read)
	if time.Since(r.notes.noted) < pause {
		return nil
	}
	if err := r.rejected.sync(); err != nil {
		return err
	}
	return r.notes.note()
}
