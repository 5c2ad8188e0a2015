package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/ops/server"
)

type moveCmd struct {
	dataFlags
	To   string `help:"Target: postgres://… with an empty database, or a data directory without a database." placeholder:"URL|DIR"`
	Undo bool   `help:"Use this database again after a move away from it. Nothing that has changed in the target since is in it."`
}

func (c *moveCmd) Run(ctx context.Context) error {
	switch {
	case c.Undo && c.To != "":
		return errors.New("--to and --undo exclude each other: use one of them")
	case c.Undo:
		return c.undo(ctx)
	case c.To == "":
		return errors.New("name the target with --to: postgres://… with an empty database, or a data directory without a database")
	}
	moved, err := server.Move(ctx, c.config(), c.logger(), c.To, showProgress)
	if err != nil && ctx.Err() != nil {
		return errors.New("stopped before it was done: the source is unchanged. Run the same command again to start over")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "moved and checked: %d rows of %d tables, %d events of %d objects\n\n", moved.Rows,
		moved.Tables, moved.Events, moved.Objects)
	if store.IsPostgres(c.To) {
		fmt.Fprintf(stdout, "Start with:  signet start --database postgres://… %s\n", c.keyAfter())
	} else {
		fmt.Fprintf(stdout, "Start with:  signet start --data-dir %s\nThe master key is there as well: %s\n", c.To,
			filepath.Join(c.To, "master.key"))
	}
	fmt.Fprintln(stdout, "The source still has everything. Keep it until you are satisfied. Commands refuse it from now on and say where it went (undo: signet move --undo).")
	return nil
}

func (c *moveCmd) undo(ctx context.Context) error {
	c.logger()
	where, err := server.UndoMove(ctx, c.config())
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "This database can be used again. Do not start servers on %s as well: they would become two different installations.\n", where)
	return nil
}

// keyAfter is how a start on PostgreSQL finds the master key: where it was found now.
func (c *moveCmd) keyAfter() string {
	switch {
	case os.Getenv("SIGNET_MASTER_KEY") != "":
		return "(with SIGNET_MASTER_KEY as now)"
	case c.MasterKeyFile != "":
		return "--master-key-file " + c.MasterKeyFile
	}
	return "--data-dir " + c.DataDir +
		"\nThe master key is in the data directory. Other nodes need the same key: --master-key-file with a copy of " +
		filepath.Join(c.DataDir, "master.key")
}
