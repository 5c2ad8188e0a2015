package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrAway says that a database cannot be reached now, and may be later. Any other error of Open stays until somebody
// does something about it.
var ErrAway = errors.New("the database cannot be reached now")

// away is ErrAway with what to check.
type away struct{ flag string }

func (a away) Error() string { return "check " + a.flag + ", and that it is running" }

func (away) Is(target error) bool { return target == ErrAway }

// notConnected tells the operator who starts the program why PostgreSQL cannot be used, and what to do about it. The
// database is named by flag.
func notConnected(c *pgx.ConnConfig, flag string, err error) error {
	at := "PostgreSQL at " + strings.Join(hosts(&c.Config), ", ")
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		if problem, passing := whatFailed(err); passing {
			return fmt.Errorf("%s does not answer: connecting to PostgreSQL failed: %s: %w", at, problem, away{flag})
		}
		return fmt.Errorf("%s cannot be used: %w", at, discreet(err))
	}
	switch refusal.Code {
	case "3D000":
		return fmt.Errorf("%s has no database %q: create it (CREATE DATABASE %s), or correct %s", at,
			c.Database, quoted(c.Database), flag)
	case "28P01":
		return fmt.Errorf("%s does not accept the password of the role %q: correct %s", at, c.User, flag)
	case "28000":
		return fmt.Errorf("%s does not let the role %q in: it does not exist (CREATE ROLE %s LOGIN), or pg_hba.conf has no line for it", at, c.User, quoted(c.User))
	case "42501":
		return fmt.Errorf("%s does not let the role %q connect to the database %q: GRANT CONNECT ON DATABASE %s TO %s",
			at, c.User, c.Database, quoted(c.Database), quoted(c.User))
	case "53300":
		return fmt.Errorf("%s has no free connection: raise its max_connections, or set pool_max_conns in %s: %w", at, flag, away{flag})
	}
	// what PgBouncer says; it has one code for everything
	if strings.Contains(refusal.Message, "unsupported startup parameter") {
		return fmt.Errorf("%s is a pooler that keeps no settings of a connection: add pooler=transaction to %s", at, flag)
	}
	if passing(refusal) {
		return fmt.Errorf("%s does not accept connections now (SQLSTATE %s): %w", at, refusal.Code, away{flag})
	}
	return fmt.Errorf("%s refuses the connection: %w", at, discreet(err))
}

// passing tells of a refusal that the server is about to start or to stop, or out of something.
func passing(refusal *pgconn.PgError) bool {
	switch refusal.Code[:2] {
	case "57", "53", "08":
		return true
	}
	return false
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
