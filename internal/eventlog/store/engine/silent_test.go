package engine

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// goneSilent is what the log says when the watch gives a server up. Without a watch, who waits for a silent server does so
// until some other limit, or for ever; how long the watch takes is for the tests of silence.
const goneSilent = "PostgreSQL has gone silent"

// watched gives options for a database, and what is logged with them.
func watched(database string) (Options, *testkit.Log) {
	log := &testkit.Log{}
	return Options{Database: database, Log: slog.New(slog.NewTextHandler(log, nil))}, log
}

// Whoever only looks at a database must not be taken for a database that can only be looked at.
func TestTheServerIsTheOneThatTheAddressWants(t *testing.T) {
	t.Parallel()
	db := testdb.New(t, testdb.Postgres)
	for _, readOnly := range []bool{false, true} {
		e, err := Open(t.Context(), Options{Database: db.URL + "&target_session_attrs=read-write", ReadOnly: readOnly})
		if err != nil {
			t.Fatalf("read only %v: %v", readOnly, err)
		}
		err = e.Transact(t.Context(),
			func(x Executor) error { return x.Exec(t.Context(), "CREATE TABLE made (id BIGINT)") })
		if refused := err != nil; refused != readOnly {
			t.Errorf("read only %v: a write: %v", readOnly, err)
		}
		e.Close()
	}
	_, err := Open(t.Context(), Options{Database: db.URL + "&target_session_attrs=standby"})
	if !errors.Is(err, ErrAway) ||
		!strings.Contains(err.Error(), "the server is not the one that target_session_attrs wants") {
		t.Errorf("a primary instead of a standby: %v", err)
	}
}

// several gives the address of a database with hosts of a cluster in it.
func several(t *testing.T, database string, hosts ...string) string {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	address.Host = strings.Join(hosts, ",")
	return address.String()
}

func TestAHostThatIsSilentDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	db := testdb.New(t, testdb.Postgres)
	first, second := testdb.NewWire(t, db), testdb.NewWire(t, db)
	first.Freeze()
	address := several(t, db.URL, first.Host(), second.Host())
	options, log := watched(address)
	e, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Now the one that it uses goes silent, and the first is back.
	second.Freeze()
	first.Resume()
	if err := e.Query(t.Context(), "SELECT 1", nil, func(Scanner) error { return nil }); err != nil {
		t.Errorf("a read goes to the other host: %v", err)
	}
	if _, err := e.Begin(t.Context(), &Needs{}); err != nil {
		t.Errorf("a batch begins at the other host: %v", err)
	}
	e.Rollback(t.Context())
	if !log.Has(goneSilent) {
		t.Error("the second host is not given up")
	}
}

func TestTheMembersOfAClusterMeanTheOneThatWrites(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	wire := testdb.NewWire(t, db)
	for suffix, want := range map[string]bool{"": true, "&target_session_attrs=any": false} {
		config, _, err := parseAddress(several(t, db.URL, wire.Host(), "127.0.0.1:1") + suffix)
		if err != nil || (config.ConnConfig.ValidateConnect != nil) != want ||
			config.ConnConfig.ConnectTimeout != connectTimeoutOne {
			t.Errorf("%q: %v, %v", suffix, config.ConnConfig.ConnectTimeout, err)
		}
	}
	config, _, err := parseAddress(db.URL + "&connect_timeout=7")
	if err != nil || config.ConnConfig.ConnectTimeout != 7*time.Second || config.ConnConfig.ValidateConnect != nil {
		t.Errorf("a single host: %v, %v", config.ConnConfig.ConnectTimeout, err)
	}
}

// openBehindWire opens a database behind a wire that can be frozen.
func openBehindWire(t *testing.T) (Engine, *testdb.Wire, *testkit.Log) {
	t.Helper()
	wire := testdb.NewWire(t, testdb.New(t, testdb.Postgres))
	options, log := watched(wire.URL)
	e, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, wire, log
}

// A commit on a connection that goes silent may or may not have happened, and that is what is said.
func TestASilentConnectionIsGivenUpSoon(t *testing.T) {
	t.Parallel()
	e, wire, log := openBehindWire(t)
	begun := func() error {
		_, err := e.Begin(t.Context(), &Needs{})
		return err
	}
	if err := begun(); err != nil {
		t.Fatal(err)
	}
	wire.Freeze()
	err := e.(*pgEngine).failed(t.Context(), e.(*pgEngine).conn.Ping(t.Context()))
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "the outcome may be unknown") ||
		!log.Has(goneSilent) {
		t.Errorf("%v; the log:\n%s", err, log)
	}
	e.Rollback(t.Context())
	err = begun()
	e.Rollback(t.Context())
	if errs.KindOf(err) != errs.Unavailable {
		t.Errorf("the next batch: %v", err)
	}
	wire.Resume()
	for end := time.Now().Add(testkit.Patience); ; {
		err := begun()
		e.Rollback(t.Context())
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not come back: %v", err)
		}
	}
}

// What takes long for a reason goes on, however long it takes.
func TestASlowStatementIsNotGivenUp(t *testing.T) {
	t.Parallel()
	e, _, _ := openBehindWire(t)
	err := e.Alone(t.Context(), func(x Executor) error {
		return x.Exec(t.Context(), "SELECT pg_sleep(4)")
	})
	if err != nil {
		t.Error(err)
	}
}
