package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-idm/signet/internal/server"
)

type migrateCmd struct{ dataFlags }

// Run succeeds on an empty database, too: who deploys does not know whether a first start has been.
func (c *migrateCmd) Run(ctx context.Context) error {
	err := server.Migrate(ctx, c.config(), c.logger())
	if errors.Is(err, server.ErrNoInstallation) {
		fmt.Println("There is nothing to migrate yet. The first start of the server sets everything up.")
		return nil
	}
	if err == nil {
		fmt.Println("The data is at version " + version + ".")
	}
	return err
}
