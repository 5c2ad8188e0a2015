package program

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// Each way in which PostgreSQL refuses has words that say what to do.
func TestPostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, database testdb.Database) {
		db, err := sql.Open("pgx", database.URL)
		testkit.Must(t, err)
		defer db.Close()
		guest := "guest_" + strings.ToLower(rand.Text())
		for _, statement := range []string{"CREATE ROLE " + guest + " LOGIN", "REVOKE ALL ON SCHEMA public FROM PUBLIC",
			"GRANT USAGE ON SCHEMA public TO " + guest} {
			_, err := db.ExecContext(t.Context(), statement)
			testkit.Must(t, err)
		}
		t.Cleanup(func() {
			db, err := sql.Open("pgx", database.URL)
			testkit.Must(t, err)
			defer db.Close()
			for _, statement := range []string{"DROP OWNED BY " + guest, "DROP ROLE " + guest} {
				_, err := db.Exec(statement)
				testkit.Must(t, err)
			}
		})
		for what, tt := range map[string]struct {
			change func(u *url.URL)
			says   string
		}{
			"no such database": {func(u *url.URL) { u.Path = "/nodb" },
				`has no database "nodb": create it (CREATE DATABASE "nodb"), or correct --database`},
			"no such role": {func(u *url.URL) { u.User = url.User("no one") },
				`does not let the role "no one" in: it does not exist (CREATE ROLE "no one" LOGIN)`},
			"no right on the schema": {func(u *url.URL) { u.User = url.User(guest) },
				`run there GRANT CREATE ON SCHEMA "public" TO "` + guest + `"`},
			"no such attributes": {func(u *url.URL) { u.RawQuery += "&target_session_attrs=whatever" },
				"the database address is not valid"},
			"nobody there": {func(u *url.URL) { u.Host = "127.0.0.1:1" },
				"PostgreSQL at 127.0.0.1:1 does not answer: connecting to PostgreSQL failed: connection refused: check --database, and that it is running"},
		} {
			t.Run(what, func(t *testing.T) {
				u := address(t, database.URL)
				tt.change(u)
				s := newSite(t, testdb.Database{Engine: testdb.Postgres, URL: u.String()})
				wait := "10m" // what waiting does not help is refused at once
				if what == "nobody there" {
					wait = "0s"
				}
				s.run(t, "start", "--listen", "localhost:0", "--database-wait", wait).refused(t, tt.says)
			})
		}
		_, err = db.ExecContext(t.Context(), "GRANT CREATE ON SCHEMA public TO "+guest)
		testkit.Must(t, err)
		u := address(t, database.URL)
		u.User = url.User(guest)
		newSite(t, testdb.Database{Engine: testdb.Postgres, URL: u.String()}).start(t)
	})
}

// A start waits for a database that is away, also for one that takes connections and does not answer.
func TestAStartWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, database testdb.Database) {
		wire := testdb.NewWire(t, database)
		wire.Freeze()
		p := newSite(t, wire.Database).launch(t, nil)
		p.await(t, "waiting for the database (--database-wait)")
		wire.Resume()
		p.awaitReady(t)
	})
}

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	testkit.Must(t, err)
	return u
}
