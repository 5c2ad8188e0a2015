package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// says waits until readiness says something; nothing: until the node is ready. Every answer comes.
func says(t *testing.T, s *Store, what string) {
	t.Helper()
	testkit.Await(t, fmt.Sprintf("readiness says %q", what), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.Ready(ctx)
		if ctx.Err() != nil {
			t.Error("no answer came within a minute")
		}
		return err == nil && what == "" || err != nil && what != "" && strings.Contains(err.Error(), what)
	})
}

func TestAFullDiskIsNotReady(t *testing.T) {
	s, _, err := Open(t.Context(), Options{Database: testdb.New(t, testdb.SQLite).URL, Master: secret.NewMasterKey()})
	testkit.Must(t, err)
	defer s.Close()
	says(t, s, "")
	room := func(pages int) {
		testkit.Must(t, s.engine.Transact(t.Context(), func(x engine.Executor) error {
			return x.Query(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil,
				func(engine.Scanner) error { return nil })
		}))
	}
	room(1) // it becomes as many as there are
	for s.tryWrite(t.Context()) == nil {
		s.name += "x" // a row of its own each time, until there is no room
	}
	says(t, s, "the disk of the server is full")
	room(1 << 30)
	says(t, s, "") // nobody has written meanwhile
}

func TestASilentDatabaseIsNotReady(t *testing.T) {
	t.Parallel()
	wire := testdb.NewWire(t, testdb.New(t, testdb.Postgres))
	s, _, err := Open(t.Context(), Options{Database: wire.URL, Master: secret.NewMasterKey()})
	testkit.Must(t, err)
	defer s.Close()
	says(t, s, "")
	wire.Freeze()
	says(t, s, "the database")
	wire.Resume()
	says(t, s, "")
}
