package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signet-idm/signet/internal/server"
	"github.com/signet-idm/signet/internal/store"
)

type moveCmd struct {
	dataFlags
	To string `required:"" help:"Where to: postgres://…, an empty database; or a data directory that has none." placeholder:"URL|DIR"`
}

func (c *moveCmd) Run(ctx context.Context) error {
	moved, err := server.Move(ctx, c.config(), c.logger(), c.To, showProgress)
	if err != nil && ctx.Err() != nil {
		return errors.New("stopped before it was done: the data is as it was where it comes from; run the same command again, it starts anew")
	}
	if err != nil {
		return err
	}
	fmt.Printf("moved and checked: %d rows of %d tables, %d events of %d objects\n\n", moved.Rows, moved.Tables, moved.Events, moved.Objects)
	if store.IsPostgres(c.To) {
		fmt.Printf("Start with:  signet start --database postgres://… %s\n", c.keyAfter())
	} else {
		fmt.Printf("Start with:  signet start --data-dir %s\nThe master key is there as well: %s\n", c.To, filepath.Join(c.To, "master.key"))
	}
	fmt.Println("Nothing was changed where the data comes from. Keep it until you are content, and do not start both: from the first change on they are two.")
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
	return "--data-dir " + c.DataDir + "\nIt finds the master key there. Further nodes need the same one: --master-key-file with a copy of " + filepath.Join(c.DataDir, "master.key")
}
