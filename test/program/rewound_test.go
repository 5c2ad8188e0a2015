package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noticed checks that a server that was just started says everywhere that the database has lost events.
func noticed(t *testing.T, s *site, p *process, c *client) {
	t.Helper()
	p.await(t, "the log is behind what this node has seen of it: the database has lost events that were answered, or an older copy was put in its place. "+
		"This node goes on with the log as it is: see docs/operations/faults.md")
	if lost := at[string](t, c.want(t, 200, "GET", "/v1/status", nil), "log", "lostEvents"); lost == "0" {
		t.Error("the status knows of no lost events")
	}
	if said := at[string](t, c.want(t, 200, "GET", "/readyz", nil), "details",
		"log"); said != "the database has lost events" {
		t.Errorf("the detail of readiness is %q", said)
	}
}

// A write-ahead log that is damaged after a crash takes events away that were answered. SQLite finds nothing wrong with
// the rest.
func TestADamagedWriteAheadLogIsNoticed(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	c := newClient(t, p, s.admin(t).Token)
	for i := range 200 {
		c.want(t, 200, "POST", "/v1/groups", object{"name": fmt.Sprint("group ", i)})
	}
	p.kill(t)
	wal := s.path("signet.db-wal")
	text := readFile(t, wal)
	text[len(text)/2] ^= 1
	writeFile(t, wal, string(text), 0o600)

	if r := s.run(t, "doctor"); r.code != 2 || !strings.Contains(r.stdout, "the database has lost the last ") {
		t.Errorf("the doctor: %d\n%s", r.code, r.stdout)
	}
	p = s.start(t)
	c = newClient(t, p, s.admin(t).Token)
	noticed(t, s, p, c)
	c.want(t, 200, "POST", "/v1/groups", object{"name": "after"})
	p.stop(t)
	if s.start(t); strings.Contains(s.run(t, "doctor").stdout, "has lost") {
		t.Error("the next start says it again, although the log has grown since")
	}
}

func TestAnOlderDatabaseFileIsNoticed(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	p.stop(t)
	older := readFile(t, s.path("signet.db"))
	p = s.start(t)
	newClient(t, p, s.admin(t).Token).want(t, 200, "POST", "/v1/groups", object{"name": "newer"})
	p.stop(t)
	writeFile(t, s.path("signet.db"), string(older), 0o600)
	p = s.start(t)
	noticed(t, s, p, newClient(t, p, s.admin(t).Token))
}

// Neither a crash alone nor a backup that is restored on purpose has lost anything.
func TestACrashOrARestoreLosesNothing(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s.run(t, "backup", backup).fine(t)
	admin := s.admin(t)
	c := newClient(t, p, admin.Token)
	for i := range 20 {
		c.want(t, 200, "POST", "/v1/groups", object{"name": fmt.Sprint("group ", i)})
	}
	sound := func() {
		t.Helper()
		p = s.start(t)
		c = newClient(t, p, admin.Token)
		c.want(t, 200, "POST", "/v1/groups", object{"name": "more"}) // the sealer has looked, or is about to
		p.stop(t)
		if said := p.stderr.String(); strings.Contains(said, "the log is behind") {
			t.Errorf("it says that events are lost:\n%s", said)
		}
	}
	p.kill(t)
	sound()
	for _, name := range []string{"signet.db", "signet.db-wal", "signet.db-shm"} {
		if err := os.Remove(s.path(name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	s.run(t, "restore", backup).fine(t)
	sound()
}
