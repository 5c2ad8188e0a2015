package store

import (
	"context"
	"fmt"

	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/migrations"
)

// migrate brings the schema up to date under the engine's lock. A database of a newer program is left alone when it is
// one version ahead (nodes are replaced one by one) and refused beyond that.
func (s *Store) migrate(ctx context.Context) error {
	// Mostly there is nothing to do, and every start asks. Versions only grow: what is up to date needs no lock.
	if all, err := s.migrations(); err == nil {
		if current, err := schemaVersion(ctx, s.engine); err == nil && (current == len(all) || current == len(all)+1) {
			return nil
		}
	}
	return s.engine.Transact(ctx, func(x engine.Executor) error {
		if err := s.engine.LockSchema(ctx, x); err != nil {
			return err
		}
		return s.migrateIn(ctx, x)
	})
}

func (s *Store) migrateIn(ctx context.Context, x engine.Executor) error {
	all, err := s.migrations()
	if err != nil {
		return err
	}
	if err := x.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY, name TEXT NOT NULL)"); err != nil {
		return err
	}
	current, err := schemaVersion(ctx, x)
	if err != nil {
		return err
	}
	if current > len(all)+1 {
		return fmt.Errorf("the database has schema version %d, but this program supports only %d: use a newer program", current, len(all))
	}
	for _, m := range all[min(current, len(all)):] {
		for _, statement := range m.Statements {
			if err := x.Exec(ctx, s.engine.Dialect(statement)); err != nil { // one of the other engine is empty, and does nothing
				return fmt.Errorf("migration %s: %w", m.Name, err)
			}
		}
		if err := x.Exec(ctx, "INSERT INTO schema_version (version, name) VALUES (?, ?)", int64(m.Version), m.Name); err != nil {
			return err
		}
	}
	return nil
}

// migrations are those that this program knows.
func (s *Store) migrations() ([]migrations.Migration, error) {
	all, err := migrations.All()
	if err == nil && s.schema > 0 {
		all = all[:s.schema]
	}
	return all, err
}

// schemaVersion is what the database has been migrated to.
func schemaVersion(ctx context.Context, x reader) (version int, err error) {
	err = x.Query(ctx, "SELECT coalesce(max(version), 0) FROM schema_version", nil, func(scan engine.Scanner) error { return scan(&version) })
	return version, err
}
