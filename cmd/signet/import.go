package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/cmd/signet/importer"
)

type importUsersCmd struct {
	File   string `arg:"" help:"File with one user per line, or - for the standard input."`
	Format string `help:"ndjson or csv. Default: by the extension of FILE (.ndjson, .jsonl, .csv)." enum:",ndjson,csv" default:"" placeholder:"FORMAT"`
	remoteFlags
	State    string        `help:"File that records the progress of the import. Default: FILE.import." placeholder:"FILE"`
	Rejected string        `help:"File for rejected lines. Default: FILE.rejected, or FILE.dry-run.rejected." placeholder:"FILE"`
	DryRun   bool          `help:"Import nothing: say what would be imported and rejected."`
	GiveUp   time.Duration `help:"How long to wait for a server that does not answer. Default: ${default}." default:"5m" placeholder:"TIME"`
}

func (c *importUsersCmd) Run(ctx context.Context) error {
	i := importer.Import{
		Path:     c.File,
		DryRun:   c.DryRun,
		GiveUp:   c.GiveUp,
		Progress: os.Stderr,
		Terminal: isatty.IsTerminal(os.Stderr.Fd()),
		State:    cmp.Or(c.State, c.File+".import"),
		Rejected: cmp.Or(c.Rejected, c.File+".rejected"),
	}
	switch {
	case c.File == "-":
		i.Rejected = cmp.Or(c.Rejected, "stdin.rejected")
	case c.DryRun: // what an import has rejected stays
		i.Rejected = cmp.Or(c.Rejected, c.File+".dry-run.rejected")
	}
	var err error
	if i.Format, err = c.format(); err != nil {
		return err
	}
	if i.Server, err = c.target(); err != nil {
		return err
	}
	summary, err := i.Run(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		err = errors.New("stopped")
		fallthrough
	case err != nil:
		if summary.Imported+summary.Rejected == 0 {
			return err
		}
		again := ": run the same command again to continue"
		if c.File == "-" {
			again = ""
		}
		return fmt.Errorf("%w (%d users were imported and %d lines rejected%s)", err, summary.Imported,
			summary.Rejected, again)
	case summary.Before:
		fmt.Fprintf(stdout, "%s is already imported. Remove %s to import it again.\n", c.File, i.State)
	}
	words := "%d users imported, %d lines rejected\n"
	if c.DryRun {
		words = "%d users would be imported, %d lines would be rejected\n"
	}
	fmt.Fprintf(stdout, words, summary.Imported, summary.Rejected)
	if summary.Rejected > 0 {
		return fmt.Errorf("%d lines were rejected: %s says why", summary.Rejected, i.Rejected)
	}
	return nil
}

func (c *importUsersCmd) format() (importer.Format, error) {
	if c.Format != "" {
		return importer.Format(c.Format), nil
	}
	switch strings.ToLower(filepath.Ext(c.File)) {
	case ".csv":
		return importer.CSV, nil
	case ".ndjson", ".jsonl":
		return importer.NDJSON, nil
	}
	return "", errors.New("the format of the file is unknown: give --format ndjson or --format csv")
}
