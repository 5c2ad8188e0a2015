package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/internal/progress"
	"github.com/signet-idm/signet/internal/server"
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
	fmt.Printf("%s: %d events, the last at position %d, %d bytes, checked\n", report.Path, report.Events, report.Position, report.Size)
	fmt.Printf("The backup does not contain the master key and cannot be restored without it. Keep a copy of %s apart from the backups.\n", c.keyPlace())
	return nil
}

type restoreCmd struct {
	File string `arg:"" help:"The backup."`
	dataFlags
}

func (c *restoreCmd) Run(ctx context.Context) error {
	bar := &bytesBar{}
	report, err := server.Restore(ctx, c.config(), c.logger(), c.File, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	fmt.Printf("restored into %s: %d events of %d objects, checked\n", c.DataDir, report.Events, report.Objects)
	fmt.Println("Everything is as it was when the backup was made. Ended sessions and erased people are back: read docs/operations/backup.md before you let anybody in.")
	return nil
}

// keyPlace says where the operator has the master key.
func (f dataFlags) keyPlace() string {
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
