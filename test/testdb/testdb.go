// Package testdb gives tests a fresh database on every engine Signet runs on.
//
// SQLite is always there. PostgreSQL is the server whose address is in SIGNET_TEST_POSTGRES: scripts/with-postgres.sh
// starts one for the length of a command. Without it the PostgreSQL half of a test is skipped, but fails where CI is
// set, so that a machine meant to test everything cannot forget half of it.
package testdb

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/test/testkit"
)

// The engines.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Engines are all of them.
var Engines = []string{SQLite, Postgres}

// Database is an empty database that lives as long as the test it was made for.
type Database struct {
	Engine string // SQLite or Postgres
	URL    string // as store.Options and the flag --database take it: a file's path, or a postgres:// URL
}

// Patient is the address for nodes that wait for each other: on PostgreSQL they give up a lock after two seconds otherwise,
// and lose a transaction in which nothing happens for ten. On a busy machine that is too soon.
func (d Database) Patient() string {
	if d.Engine != Postgres {
		return d.URL
	}
	join := "&"
	if !strings.Contains(d.URL, "?") {
		join = "?"
	}
	return d.URL + join + "lock_timeout=3min&idle_in_transaction_session_timeout=3min"
}

// Each runs a test once for every engine, each time with a fresh database. Whatever the test opens on it must be closed
// when the test ends (t.Cleanup does that in the right order).
func Each(t *testing.T, test func(t *testing.T, db Database)) {
	t.Helper()
	On(t, Engines, test)
}

// On is Each for some of the engines.
func On(t *testing.T, engines []string, test func(t *testing.T, db Database)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) { test(t, New(t, engine)) })
	}
}

// New makes one database of an engine.
func New(t testing.TB, engine string) Database {
	t.Helper()
	if engine == SQLite {
		return Database{Engine: SQLite, URL: filepath.Join(t.TempDir(), "signet.db")}
	}
	return newPostgres(t)
}

func newPostgres(t testing.TB) Database {
	t.Helper()
	server := os.Getenv("SIGNET_TEST_POSTGRES")
	if server == "" {
		const missing = "PostgreSQL is not tested: SIGNET_TEST_POSTGRES is not set (run through scripts/with-postgres.sh)"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal("SIGNET_TEST_POSTGRES is not a URL") // err would quote it, and a password in it
	}
	name := "signet_test_" + strings.ToLower(rand.Text())
	onServer(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { onServer(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	address.Path = "/" + name
	return Database{Engine: Postgres, URL: address.String()}
}

func onServer(t testing.TB, server, statement string) {
	t.Helper()
	// Not the test's own context: that is over when its cleanup runs.
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connecting to the test server: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
