package main

import (
	"context"
	"fmt"

	"github.com/signet-idm/signet/internal/server"
)

type rotateMasterKeyCmd struct {
	dataFlags
	NewKeyFile string `help:"New file for the new key. In the data directory, in the place of the old key, when left out." placeholder:"FILE"`
}

func (c *rotateMasterKeyCmd) Run(ctx context.Context) error {
	rotated, err := server.RotateMasterKey(ctx, c.config(), c.logger(), c.NewKeyFile)
	if err != nil {
		return err
	}
	fmt.Printf("The new master key is in %s. From now on every start needs it: keep a copy of it apart from the backups.\n", rotated.Key)
	if rotated.Old != "" {
		fmt.Printf("The one before is in %s. Backups that were made until now need that one: remove it when none of them is left.\n", rotated.Old)
	} else {
		fmt.Println("Backups that were made until now need the one before: keep it until none of them is left.")
	}
	return nil
}
