package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestAMigrationGivesWay: whoever writes does not wait for a migration that waits for somebody else, and an index over
// many rows is built beside those who write. A migration that was cut off is finished.
func TestAMigrationGivesWay(t *testing.T) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	options := Options{Database: testdb.New(t, testdb.Postgres).URL, Kinds: []event.Definition{oldThings},
		Master: secret.NewMasterKey(), schema: 6}
	s, _, err := Open(ctx, options)
	must(err)
	must(s.Close())
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, options.Database)
		must(err)
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	reader, writer := connect(), connect()
	exec := func(conn *pgx.Conn, text string) {
		t.Helper()
		_, err := conn.Exec(ctx, text)
		must(err)
	}
	exec(writer, "INSERT INTO users (id, org_id, sequence, created, changed, hash, key_id, shape, doc, standing, verified_email) "+
		"SELECT 'usr_' || i, 'org_1', 1, 0, 0, '', '', 1, '{}', '', '' FROM generate_series(1, 3000) i")
	// What a migration that was cut off leaves behind.
	exec(writer, "ALTER TABLE users ADD COLUMN email_order TEXT NOT NULL DEFAULT '~'")
	exec(writer, "CREATE INDEX users_email_order ON users (id)")
	exec(writer, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'users_email_order'::regclass")

	exec(reader, "BEGIN; SELECT FROM users LIMIT 1") // as a dump does
	options.schema = 0
	opened := make(chan error, 1)
	go func() {
		s, _, err := Open(context.Background(), options)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	watcher := connect()
	testkit.Await(t, "the migration has waited for the reader, and given way", func() bool {
		var tries int
		must(watcher.QueryRow(ctx,
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%users%'").Scan(&tries))
		return tries > 0
	})
	// who waits for the migration waits until the reader has ended
	soon, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	for range 40 {
		if _, err := writer.Exec(soon, "UPDATE users SET doc = doc WHERE id = 'usr_7'"); err != nil {
			t.Fatalf("somebody who writes waits: %v", err)
		}
		select {
		case err := <-opened:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	exec(reader, "ROLLBACK")
	must(testkit.Receive(t, opened, "the migration is done"))
	var valid int
	must(watcher.QueryRow(ctx,
		"SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid IN ('users_email_order'::regclass, 'users_email_word'::regclass) AND indnatts >= 3").Scan(&valid))
	if valid != 2 {
		t.Errorf("%d of 2 indexes are there", valid)
	}
}

// A row of PostgreSQL has room for its next version beside it: then a change that no index is over writes to no index.
func TestARowHasRoomForItsNextVersion(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	s := opened(t, Options{Database: db.URL, Kinds: []event.Definition{people}, Master: secret.NewMasterKey()})
	defer s.Close()
	for n := range 60 { // several pages
		nameUser(t, s, n, strings.Repeat("Maria ", 60))
	}
	tx, err := connect(t, db).Begin(t.Context())
	testkit.Must(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), "UPDATE users SET doc = doc WHERE id = 'usr_000'")
	testkit.Must(t, err)
	var beside int
	testkit.Must(t, tx.QueryRow(t.Context(),
		"SELECT pg_stat_get_xact_tuples_hot_updated('users'::regclass)").Scan(&beside))
	if beside != 1 {
		t.Errorf("%d versions beside the one before", beside)
	}
}
