package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestTheStatusTellsOfLostEvents: a node that has seen more of the log than there is says so to whoever looks after the
// installation.
func TestTheStatusTellsOfLostEvents(t *testing.T) {
	c := home(t, testdb.New(t, testdb.Postgres))
	s := opened(t, c)
	token := s.FirstAdmin.Token
	log := func(s *Server) object { return s.call(t, 200, token, "GET", "/v1/status", nil)["log"].(object) }
	if lost := log(s)["lostEvents"]; lost != "0" && lost != nil {
		t.Errorf("%v events are lost at first", lost)
	}
	must(t, s.Close())
	must(t, os.WriteFile(filepath.Join(c.DataDir, "log-head"),
		[]byte(proof.Mark{Position: 1_000_000}.String()+"\n"), 0o600))
	s = opened(t, c)
	testkit.Await(t, "it notices", func() bool { lost := log(s)["lostEvents"]; return lost != "0" && lost != nil })
	if said := s.details()["log"]; said != "the database has lost events" {
		t.Errorf("the detail of readiness is %q", said)
	}
}
