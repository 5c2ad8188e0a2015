package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema, forward only.
type migration struct {
	version int
	name    string
	text    string
}

func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, name := range names { // Glob sorts
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimPrefix(name, "migrations/")
		number, _, _ := strings.Cut(base, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(all)+1 {
			return nil, fmt.Errorf("migration %s is out of order", base)
		}
		all = append(all, migration{version: version, name: base, text: string(text)})
	}
	return all, nil
}

// migrate brings the schema up to date under the engine's lock. A database of a newer program is left alone when it is
// one version ahead (nodes are replaced one by one) and refused beyond that.
func (s *Store) migrate(ctx context.Context) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	if s.schema > 0 {
		all = all[:s.schema]
	}
	return s.engine.transact(ctx, func(x executor) error {
		if err := s.engine.lockSchema(ctx, x); err != nil {
			return err
		}
		if err := x.exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY, name TEXT NOT NULL)"); err != nil {
			return err
		}
		var current int64
		err := x.query(ctx, "SELECT coalesce(max(version), 0) FROM schema_version", nil, func(scan scanner) error { return scan(&current) })
		if err != nil {
			return err
		}
		if current > int64(len(all))+1 {
			return fmt.Errorf("the database is at schema version %d, this program knows %d: use a newer program", current, len(all))
		}
		for _, m := range all[min(int(current), len(all)):] {
			for _, statement := range strings.Split(m.text, ";\n") {
				if strings.TrimSpace(stripComments(statement)) == "" {
					continue
				}
				if err := x.exec(ctx, s.engine.dialect(statement)); err != nil {
					return fmt.Errorf("migration %s: %w", m.name, err)
				}
			}
			if err := x.exec(ctx, "INSERT INTO schema_version (version, name) VALUES (?, ?)", int64(m.version), m.name); err != nil {
				return err
			}
		}
		return nil
	})
}

func stripComments(sql string) string {
	var out []string
	for _, line := range strings.Split(sql, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
