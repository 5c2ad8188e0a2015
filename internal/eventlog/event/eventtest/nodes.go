package eventtest

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// Nodes is one database on which a test opens as many nodes as it wants. They share a clock and a log.
type Nodes struct {
	testdb.Database
	Master secret.MasterKey
	Clock  *testkit.Clock
	Log    testkit.Log

	kinds []event.Definition
}

// NewNodes prepares a database for objects of these kinds.
func NewNodes(db testdb.Database, kinds ...event.Definition) *Nodes {
	return &Nodes{Database: db, Master: secret.NewMasterKey(),
		Clock: testkit.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), kinds: kinds}
}

// Open opens the store of another node, which is closed when the test ends.
func (n *Nodes) Open(t testing.TB) *store.Store {
	t.Helper()
	s, _, err := store.Open(t.Context(),
		store.Options{Database: n.Patient(), Kinds: n.kinds, Master: n.Master, Clock: n.Clock.Now})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}
