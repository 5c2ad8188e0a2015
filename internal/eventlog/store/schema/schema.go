// Package schema migrates the tables of a database to the current version.
package schema

import (
	"context"
	"fmt"

	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
)

// Known gives the migrations that this program knows. upTo leaves out those behind it, for tests; 0 leaves out none.
func Known(upTo int) ([]migrations.Migration, error) {
	all, err := migrations.All()
	if err == nil && upTo > 0 {
		all = all[:upTo]
	}
	return all, err
}

// Migrate brings the schema up to date. A database of a newer program is left alone when it is one version ahead (nodes
// are replaced one by one) and refused beyond that.
func Migrate(ctx context.Context, e engine.Engine, upTo int) error {
	all, err := Known(upTo)
	if err != nil {
		return err
	}
	// Mostly there is nothing to do, and every start asks. Versions only grow: what is up to date needs no lock.
	current, err := Version(ctx, e)
	switch {
	case err == nil && (current == len(all) || current == len(all)+1):
		return nil
	case err != nil && !e.IsMissingTable(err):
		return err
	case current == 0: // nobody is there yet
		return e.Transact(ctx, func(x engine.Executor) error {
			if err := e.LockSchema(ctx, x); err != nil {
				return err
			}
			return MigrateIn(ctx, e, x, upTo)
		})
	}
	return e.Reshape(ctx, func(x engine.Executor, change func(string) error) error {
		return migrate(ctx, x, all, change)
	})
}

// MigrateIn is Migrate in one transaction, for a database that nobody else uses.
func MigrateIn(ctx context.Context, e engine.Engine, x engine.Executor, upTo int) error {
	all, err := Known(upTo)
	if err != nil {
		return err
	}
	if err := x.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY, name TEXT NOT NULL)"); err != nil {
		return err
	}
	return migrate(ctx, x, all, func(statement string) error {
		// One for the other engine is empty, and does nothing.
		return x.Exec(ctx, migrations.Parse(statement).In(e.Dialect()))
	})
}

func migrate(ctx context.Context, x engine.Executor, all []migrations.Migration,
	change func(statement string) error) error {
	current, err := Version(ctx, x) // again: another node may have been faster
	if err != nil {
		return err
	}
	if current > len(all)+1 {
		return fmt.Errorf("the database has schema version %d, but this program supports only %d: use a newer program",
			current, len(all))
	}
	for _, m := range all[min(current, len(all)):] {
		for _, statement := range m.Statements {
			if err := change(statement); err != nil {
				return fmt.Errorf("migration %s: %w", m.Name, err)
			}
		}
		if err := x.Exec(ctx, "INSERT INTO schema_version (version, name) VALUES (?, ?)", int64(m.Version),
			m.Name); err != nil {
			return err
		}
	}
	return nil
}

// Version is what the database has been migrated to.
func Version(ctx context.Context, q engine.Querier) (version int, err error) {
	err = q.Query(ctx, "SELECT coalesce(max(version), 0) FROM schema_version", nil,
		func(scan engine.Scanner) error { return scan(&version) })
	return version, err
}
