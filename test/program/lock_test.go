package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
)

func TestOneProcessPerDataDirectory(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		link := &site{Database: s.Database, dir: filepath.Join(t.TempDir(), "link")}
		if err := os.Symlink(s.dir, link.dir); err != nil {
			t.Fatal(err)
		}
		for _, same := range []*site{s, link} {
			second := same.launch(t, nil)
			result{second.exit(t), second.stdout.String(), second.stderr.String()}.refused(t,
				"in use by another signet process")
			same.run(t, "rebuild").refused(t, "in use by another signet process")
			same.run(t, "admin", "recover").refused(t, "in use by another signet process")
			same.run(t, "rebuild", "--check").fine(t)
		}
		// The one that runs has not noticed.
		newClient(t, p, s.admin(t).Token).want(t, 200, "GET", "/v1/users/me", nil)
		// The lock goes with the process, however that ends.
		p.kill(t)
		s.run(t, "rebuild", "--check").fine(t)
		link.start(t).kill(t)
		s.start(t).stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

// TestSigningKeys: the keys can be looked at beside a server, and changed where the database has room for two who
// write.
func TestSigningKeys(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.run(t, "keys", "list").refused(t, "no such file or directory")
		p := s.start(t)
		lines := func(r result) int { return strings.Count(r.fine(t).stdout, "\n") - 1 }
		if n := lines(s.run(t, "keys", "list")); n != 1 {
			t.Errorf("%d keys after the first start", n)
		}
		if s.Engine == testdb.SQLite {
			s.run(t, "keys", "rotate").refused(t, "in use by another signet process")
			p.stop(t)
		}
		r := s.run(t, "keys", "rotate")
		if n := lines(r); n != 2 || !strings.Contains(r.stdout, "waits") || !strings.Contains(r.stdout, "signs  ") {
			t.Errorf("%d keys: %s", n, r.stdout)
		}
		s.run(t, "keys", "rotate").refused(t, "already in progress")
		if n := lines(s.run(t, "keys", "rotate", "--now")); n != 3 {
			t.Errorf("%d keys after the urgent change", n)
		}
		if s.Engine == testdb.SQLite {
			p = s.start(t)
		}
		got := newClient(t, p, s.admin(t).Token).want(t, 200, "GET", "/v1/signing_keys", nil)
		if keys, _ := got["keys"].([]any); len(keys) != 3 {
			t.Errorf("the server shows %v", got)
		}
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

func TestADatabaseFileThatIsALink(t *testing.T) {
	s := embedded(t)
	s.start(t).stop(t)
	for name, link := range map[string]func(from, to string) error{"symbolic": os.Symlink, "hard": os.Link} {
		other := newSite(t, testdb.New(t, testdb.SQLite))
		if err := os.Mkdir(other.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := link(s.path("signet.db"), other.path("signet.db")); err != nil {
			t.Fatal(err)
		}
		writeFile(t, other.path("master.key"), string(readFile(t, s.path("master.key"))), 0o600)
		p := other.launch(t, nil)
		r := result{p.exit(t), p.stdout.String(), p.stderr.String()}
		r.refused(t, "must be a regular file, not a link")
		if t.Failed() {
			t.Fatalf("with a %s link", name)
		}
		if err := os.Remove(other.path("signet.db")); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t)
}

func TestRebuild(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.run(t, "rebuild").refused(t, "no such file or directory")
		p := s.start(t)
		admin := s.admin(t)
		c := newClient(t, p, admin.Token)
		for _, name := range []string{"One", "Two"} {
			c.want(t, 200, "POST", "/v1/orgs/_setup", newOrg(name, "a password"))
		}
		if said := s.run(t, "rebuild", "--check").fine(t).stdout; !strings.Contains(said, "events of") {
			t.Errorf("it said %q", said)
		}
		p.stop(t)

		check := func(want ...string) {
			t.Helper()
			r := s.run(t, "rebuild", "--check")
			if r.code != 1 {
				t.Errorf("exit code %d", r.code)
			}
			for _, w := range want {
				if !strings.Contains(r.stdout+r.stderr, w) {
					t.Errorf("it does not say %q:\n%s%s", w, r.stdout, r.stderr)
				}
			}
		}
		s.tamper(t, "UPDATE orgs SET doc = replace(doc, 'Default', 'Mine') WHERE id = '"+admin.OrgID+"'")
		check(admin.OrgID+": its state does not match its events", "the state does not match the log")
		s.tamper(t, "DELETE FROM users WHERE id = '"+admin.UserID+"'")
		check(admin.OrgID+": its state does not match its events", admin.UserID+": its state is missing")
		s.tamper(t, "DELETE FROM claims WHERE object_id = '"+admin.UserID+"'")
		check(admin.UserID + ": its claims do not match its state")

		s.run(t, "rebuild").fine(t)
		s.run(t, "rebuild", "--check").fine(t)
		p = s.start(t)
		c = newClient(t, p, "")
		c.token = c.signIn(t, admin.LoginName, admin.Password)
		answer := c.want(t, 200, "GET", "/v1/orgs/"+admin.OrgID, nil)
		if name := at[string](t, answer, "org", "name"); name != "Default" {
			t.Errorf("the organization is called %s", name)
		}
		p.stop(t)

		// A history that was rewritten cannot be repaired, and nothing is lost by trying.
		s.tamper(t, "UPDATE events SET payload = replace(payload, 'Default', 'Mine') WHERE object_id = '"+admin.OrgID+
			"' AND sequence = 1")
		check(admin.OrgID)
		if r := s.run(t, "rebuild"); r.code == 0 {
			t.Error("a rebuild from a broken history succeeds")
		}
		s.tamper(t, "UPDATE events SET payload = replace(payload, 'Mine', 'Default') WHERE object_id = '"+admin.OrgID+
			"' AND sequence = 1")
		s.run(t, "rebuild", "--check").fine(t)
	})
}

func TestRecover(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.run(t, "admin", "recover").refused(t, "no such file or directory")
		s.start(t).stop(t)
		said := s.run(t, "admin", "recover").fine(t).stdout
		values := map[string]string{}
		for l := range strings.Lines(said) {
			if name, value, ok := strings.Cut(l, " "); ok {
				values[name] = strings.TrimSpace(value)
			}
		}
		p := s.start(t)
		c := newClient(t, p, values["token"])
		me := c.want(t, 200, "GET", "/v1/users/me", nil)
		if id := at[string](t, me, "user", "userId"); id != values["user"] {
			t.Errorf("the token is of %s:\n%s", id, said)
		}
		// It may do what only an owner of the installation may: take the password of the first administrator.
		admin := s.admin(t)
		c.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("New", "a password"))
		c.want(t, 200, "POST", "/v1/users/"+admin.UserID+"/password",
			object{"password": "recovered", "noChangeRequired": true})
		c.signIn(t, admin.LoginName, "recovered")
		s.run(t, "rebuild", "--check").fine(t)
	})
}

// TestMaintenanceFromElsewhere: on PostgreSQL an operator needs the database and the key, not the data directory.
func TestMaintenanceFromElsewhere(t *testing.T) {
	t.Parallel()
	db := testdb.New(t, testdb.Postgres)
	s, elsewhere := newSite(t, db), newSite(t, db)
	p := s.start(t)
	key := []string{"SIGNET_MASTER_KEY=" + strings.TrimSpace(string(readFile(t, s.path("master.key"))))}
	run(t, key, elsewhere.args("rebuild", "--check")...).fine(t)
	elsewhere.run(t, "rebuild", "--check").refused(t, "no such file or directory")
	p.stop(t)
	run(t, key, elsewhere.args("rebuild")...).fine(t)
	if _, err := os.Stat(elsewhere.dir); err == nil {
		t.Error("a directory was made")
	}
}

// TestRebuildKeepsToItself: the lock of a data directory says nothing about nodes on other machines. PostgreSQL does.
func TestRebuildKeepsToItself(t *testing.T) {
	t.Parallel()
	db := testdb.New(t, testdb.Postgres)
	s, elsewhere := newSite(t, db), newSite(t, db)
	p := s.start(t)
	key := []string{"SIGNET_MASTER_KEY=" + strings.TrimSpace(string(readFile(t, s.path("master.key"))))}
	run(t, key, elsewhere.args("rebuild")...).refused(t, "other signet nodes are running on this database")
	newClient(t, p, s.admin(t).Token).want(t, 200, "POST", "/v1/idps/jwt", newProvider("still here"))
	run(t, key, elsewhere.args("rebuild")...).refused(t, "other signet nodes are running on this database")
	p.kill(t)
	for end := time.Now().Add(patience); ; { // PostgreSQL has to notice that the node is gone
		if r := run(t, key, elsewhere.args("rebuild")...); r.code == 0 || time.Now().After(end) {
			r.fine(t)
			break
		}
	}
	s.start(t)
}
