package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/signet-idm/signet/internal/eventlog/store/engine/silence"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
	"github.com/signet-idm/signet/test/testdb"
)

// TestAnErrorDoesNotTellWhereTheDatabaseIs: errors are logged, and the log is read by more people than may know that.
func TestAnErrorDoesNotTellWhereTheDatabaseIs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // nobody is there
	config, err := pgxpool.ParseConfig("postgres://someuser:somesecret@" + address + "/somedatabase")
	if err != nil {
		t.Fatal(err)
	}
	e := &pgEngine{config: config.ConnConfig.Copy(), dialer: silence.New(func(bool) {})}
	if e.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	nothing := func(Executor) error { return nil }
	question := readbatch.Question{SQL: "SELECT 1"}
	for name, failed := range map[string]error{
		"reading":    e.Query(t.Context(), "SELECT 1", nil, nil),
		"asking":     e.Ask(t.Context(), []readbatch.Question{question, question}),
		"writing":    func() error { _, err := e.Begin(t.Context(), &Needs{}); e.Rollback(t.Context()); return err }(),
		"a change":   e.Transact(t.Context(), nothing),
		"a look":     e.Snapshot(t.Context(), nothing),
		"joining":    e.Join(t.Context()),
		"rebuilding": e.Alone(t.Context(), nothing),
	} {
		if failed == nil || !strings.Contains(failed.Error(), "connecting to PostgreSQL failed: connection refused") {
			t.Errorf("%s: %v", name, failed)
			continue
		}
		wantDiscreet(t, name, failed, address)
	}
	_, err = Open(t.Context(), Options{Database: "postgres://someuser:somesecret@" + address + "/somedatabase"})
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("whoever starts the program is told what does not answer: %v", err)
	}
	wantDiscreet(t, "starting", err, "somedatabase")
}

func wantDiscreet(t *testing.T, name string, err error, more ...string) {
	t.Helper()
	for _, word := range append(more, "someuser", "somesecret", "somedatabase") {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q tells %s", name, err, word)
		}
	}
}

func TestAnErrorOfAConnectionStillSaysWhatIsWrong(t *testing.T) {
	address := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5432}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("read: %w",
			&net.OpError{Op: "read", Net: "tcp", Source: address, Addr: address, Err: errors.New("strange")}),
			"the connection to PostgreSQL failed: "},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: context.DeadlineExceeded},
			"the connection to PostgreSQL failed: timeout"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "192.0.2.1.example"}},
			"the connection to PostgreSQL failed: the host name was not found"},
		{&pgconn.PgError{Severity: "ERROR", Code: "23505", Message: "duplicate key"},
			"ERROR: duplicate key (SQLSTATE 23505)"},
	} {
		got := discreet(c.err)
		if !strings.HasPrefix(got.Error(), c.want) || strings.Contains(got.Error(), "192.0.2.1") {
			t.Errorf("%v became %v", c.err, got)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v is lost", c.err)
		}
	}
	if discreet(nil) != nil {
		t.Error("no error became one")
	}
}

// TestAnUnknownDatabaseIsNotNamed: here it is the server that would say so. Whoever starts the program has named the
// database, and is told which one there is not. The password is nobody's business.
func TestAnUnknownDatabaseIsNamedToWhoeverStartsTheProgram(t *testing.T) {
	address, err := url.Parse(testdb.New(t, testdb.Postgres).URL)
	if err != nil {
		t.Fatal(err)
	}
	address.Path, address.User = "/somedatabase", url.UserPassword(address.User.Username(), "somesecret")
	_, err = Open(t.Context(), Options{Database: address.String()})
	if err == nil || !strings.Contains(err.Error(), `has no database "somedatabase"`) ||
		strings.Contains(err.Error(), "somesecret") {
		t.Fatalf("%v", err)
	}
}

// TestAStoppedNodeDoesNotKeepItsLocks: PostgreSQL ends its transaction.
func TestAStoppedNodeDoesNotKeepItsLocks(t *testing.T) {
	for _, c := range []struct{ name, parameter, idle, wait string }{
		{"by default", "", "10s", "2s"},
		{"as the operator says", "&idle_in_transaction_session_timeout=90s&lock_timeout=7s", "90s", "7s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := testdb.New(t, testdb.Postgres)
			engine, err := Open(t.Context(), Options{Database: db.URL + c.parameter})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			if err := engine.Join(t.Context()); err != nil {
				t.Fatal(err)
			}
			var idle, wait string
			err = engine.(*pgEngine).conn.QueryRow(t.Context(),
				"SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')").Scan(&idle, &wait)
			if err != nil || idle != c.idle || wait != c.wait {
				t.Errorf("%s, %s, %v", idle, wait, err)
			}
		})
	}
}
