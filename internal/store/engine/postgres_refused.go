package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// notConnected tells whoever starts the program why PostgreSQL cannot be used, and what to do about it.
func notConnected(c *pgx.ConnConfig, err error) error {
	at := fmt.Sprintf("PostgreSQL at %s:%d", c.Host, c.Port)
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return fmt.Errorf("%s does not answer: %w: check --database, and that it is running", at, discreet(err))
	}
	switch refusal.Code {
	case "3D000":
		return fmt.Errorf("%s has no database %q: create it (CREATE DATABASE %s), or correct --database", at, c.Database, quoted(c.Database))
	case "28P01":
		return fmt.Errorf("%s does not accept the password of the role %q: correct --database", at, c.User)
	case "28000":
		return fmt.Errorf("%s does not let the role %q in: it does not exist (CREATE ROLE %s LOGIN), or pg_hba.conf has no line for it", at, c.User, quoted(c.User))
	case "42501":
		return fmt.Errorf("%s does not let the role %q connect to the database %q: GRANT CONNECT ON DATABASE %s TO %s", at, c.User, c.Database, quoted(c.Database), quoted(c.User))
	case "53300":
		return fmt.Errorf("%s has no free connection: raise its max_connections, or set pool_max_conns in --database", at)
	}
	return fmt.Errorf("%s refuses the connection: %w", at, discreet(err))
}

// mayNotCreate tells how to let the role make tables.
func mayNotCreate(c *pgx.ConnConfig, schema *string) error {
	if schema == nil {
		return fmt.Errorf("the database %q has no schema in which the role %q could create tables: check its search_path", c.Database, c.User)
	}
	return fmt.Errorf("the role %q must not create tables in the schema %q of the database %q: run there GRANT CREATE ON SCHEMA %s TO %s",
		c.User, *schema, c.Database, quoted(*schema), quoted(c.User))
}

// quoted writes a name as SQL wants it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
