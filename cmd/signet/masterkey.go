package main

import (
	"context"
	"fmt"

	"github.com/signet-idm/signet/internal/ops/server"
)

type rotateMasterKeyCmd struct {
	dataFlags
	NewKeyFile string `help:"File to write the new key to. Default: replace the key in the data directory." placeholder:"FILE"`
}

func (c *rotateMasterKeyCmd) Run(ctx context.Context) error {
	rotated, err := server.RotateMasterKey(ctx, c.config(), c.logger(), c.NewKeyFile)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "The new master key is in %s. Every start needs it from now on. Keep a copy of it apart from the backups.\n", rotated.Key)
	if rotated.Old != "" {
		fmt.Fprintf(stdout, "The old key is in %s. Existing backups need it: remove it when none of them is left.\n", rotated.Old)
	} else {
		fmt.Fprintln(stdout, "Existing backups need the old key: keep it until none of them is left.")
	}
	return nil
}
