package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/ops/server"
)

type verifyCmd struct {
	dataFlags
	Expect *proof.Mark `help:"Also check that the log still contains the head of an earlier run." placeholder:"POSITION:DIGEST"`
}

// errAltered makes verify exit with 1 after it has said why.
var errAltered = errors.New("the log was changed")

func (c *verifyCmd) Run(ctx context.Context) error {
	return server.Maintain(ctx, c.config(), c.logger(), true, func(ctx context.Context, st *store.Store) error {
		report, err := st.Verify(ctx, proof.Options{Expect: c.Expect, Progress: showProgress})
		if err != nil {
			return err
		}
		if report.Finding != nil {
			fmt.Fprintf(stdout, "%d events were checked\n%s\n", report.Events, progress.Line(report.Finding.String()))
			return errAltered
		}
		fmt.Fprintf(stdout, "%d events of %d objects, %d checkpoints\n%d events are not sealed yet", report.Events,
			report.Objects, report.Checkpoints, report.Unsealed)
		if report.Unsealed > 0 {
			fmt.Fprintf(stdout, ", the first is from %s", event.Time(report.Since).Format(time.RFC3339))
		}
		fmt.Fprintf(stdout, "\nhead %d %x\n", report.Head.Position, report.Head.Digest)
		return checkFile(ctx, st)
	})
}

// checkFile looks for damage in the file of the embedded database, and says what mends it.
func checkFile(ctx context.Context, st *store.Store) error {
	err := st.CheckFile(ctx, nil)
	if engine.IsDamage(err) {
		err = fmt.Errorf("%w: %s", err, engine.Mend)
	}
	return err
}

// showProgress makes a bar beside what a command prints.
func showProgress(what string, total int64) *progress.Bar {
	return progress.New(os.Stderr, isatty.IsTerminal(os.Stderr.Fd()), what, total)
}
