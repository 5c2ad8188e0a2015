package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/ops/server"
)

type backupCmd struct {
	File string `arg:"" help:"File to write the backup to. It must not exist yet and must be outside the data directory."`
	dataFlags
}

func (c *backupCmd) Run(ctx context.Context) error {
	bar := &bytesBar{}
	report, err := server.Backup(ctx, c.config(), c.File, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	checked := "checked"
	if report.Unchecked != "" {
		checked = "only the file was checked (" + oneLine(report.Unchecked) + "). Try it with signet restore --rehearse"
	}
	fmt.Fprintf(stdout, "%s: %d events, the last at position %d, %d bytes, %s\n", progress.Line(report.Path),
		report.Events, report.Position, report.Size, checked)
	fmt.Fprintf(stdout, "The backup does not contain the master key and cannot be restored without it. Keep a copy of %s apart from the backups.\n", c.keyLocation())
	return nil
}

type restoreCmd struct {
	File string `arg:"" help:"The backup."`
	dataFlags
	Rehearse          bool   `help:"Only try it: restore into a temporary directory, check everything, print what was seen, and remove it. Can run beside a server."`
	RehearseDirectory string `help:"Where the temporary directory is made. Default: where the system has its temporary files." placeholder:"DIR"`
	JSON              bool   `name:"json" help:"With --rehearse: print what was seen as JSON."`
}

func (c *restoreCmd) Run(ctx context.Context) error {
	if c.Rehearse {
		return c.rehearse(ctx)
	}
	if c.JSON || c.RehearseDirectory != "" {
		return errors.New("--json and --rehearse-directory are for --rehearse")
	}
	bar := &bytesBar{}
	report, err := server.Restore(ctx, c.config(), c.logger(), c.File, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "restored into %s: %d events of %d objects, checked\n", c.DataDir, report.Events,
		report.Objects)
	fmt.Fprintln(stdout, "Everything is as it was when the backup was made. Ended sessions and erased people are back: read docs/operations/backup.md before you let anybody in.")
	return nil
}

func (c *restoreCmd) rehearse(ctx context.Context) error {
	bar := &bytesBar{}
	seen, err := server.Rehearse(ctx, c.config(), c.logger(), c.File, c.RehearseDirectory, bar.show)
	bar.end()
	if c.JSON {
		seen.Problem = oneLine(seen.Problem)
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return errors.Join(err, out.Encode(seen))
	}
	for _, step := range seen.Steps {
		took := "failed"
		if !step.Failed {
			took = time.Duration(step.Took * float64(time.Second)).Round(time.Millisecond).String()
		}
		fmt.Fprintf(stdout, "%-16s %s\n", step.Name, took)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s can be restored: %d events of %d objects, the last at position %d from %s, %d not sealed\nhead %s\n",
		progress.Line(seen.File), seen.Events, seen.Objects, seen.Position, seen.LastEvent.Format(time.RFC3339),
		seen.Unsealed, seen.Head)
	return nil
}

// keyLocation says where the operator has the master key.
func (f dataFlags) keyLocation() string {
	switch {
	case os.Getenv("SIGNET_MASTER_KEY") != "":
		return "the value of SIGNET_MASTER_KEY"
	case f.MasterKeyFile != "":
		return f.MasterKeyFile
	}
	return filepath.Join(f.DataDir, "master.key")
}

// bytesBar shows how many bytes are done. It begins when their number is known.
type bytesBar struct {
	mu   sync.Mutex
	bar  *progress.Bar
	done int64
}

func (b *bytesBar) show(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil {
		b.bar = showProgress("bytes", total)
	}
	b.bar.Add(done - b.done)
	b.done = done
}

func (b *bytesBar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isatty.IsTerminal(os.Stderr.Fd()) { // elsewhere the last line says it all
		b.bar.End()
	}
}
