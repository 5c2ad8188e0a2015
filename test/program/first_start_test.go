package program

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

func TestFirstStart(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		checkFiles(t, s)
		admin := s.admin(t)
		text := readFile(t, s.path("first-admin.json"))
		var fields map[string]string
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		want := []string{"loginName", "orgId", "password", "serviceUserId", "token", "url", "userId"}
		if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
			t.Errorf("first-admin.json has %v", got)
		}
		if ready := p.await(t, "ready"); admin.URL != ready.URL ||
			!strings.HasSuffix(admin.URL, p.listen[strings.LastIndex(p.listen, ":"):]) {
			t.Errorf("the URL is %s, the server says %s and listens on %s", admin.URL, ready.URL, p.listen)
		}

		c := newClient(t, p, admin.Token)
		me := c.want(t, 200, "GET", "/v1/users/me", nil)
		if id := at[string](t, me, "user", "userId"); id != admin.ServiceUserID {
			t.Errorf("the token is of %s, not %s", id, admin.ServiceUserID)
		}
		c.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("Another", "a password")) // so it owns the installation
		person := c.with(c.signIn(t, admin.LoginName, admin.Password))
		me = person.want(t, 200, "GET", "/v1/users/me", nil)
		if id := at[string](t, me, "user", "userId"); id != admin.UserID {
			t.Errorf("the password is of %s, not %s", id, admin.UserID)
		}
		if owner := at[string](t, me, "user", "details", "resourceOwner"); owner != admin.OrgID {
			t.Errorf("the administrator is in %s, not %s", owner, admin.OrgID)
		}
		person.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("A third", "a password"))

		key := strings.TrimSpace(string(readFile(t, s.path("master.key"))))
		for _, secret := range []string{admin.Password, admin.Token, key} {
			if strings.Contains(p.stdout.String()+p.stderr.String(), secret) {
				t.Error("a secret is in the output")
			}
		}
		if p.stdout.String() != "" {
			t.Errorf("standard output is no terminal, and got %q", p.stdout)
		}
		p.stop(t)

		before := s.events(t)
		again := s.start(t)
		if after := s.events(t); after != before {
			t.Errorf("the second start made %d events", after-before)
		}
		if !bytes.Equal(readFile(t, s.path("first-admin.json")), text) {
			t.Error("the second start changed first-admin.json")
		}
		c = newClient(t, again, admin.Token)
		if id := at[string](t, c.want(t, 200, "GET", "/v1/users/me", nil), "user",
			"userId"); id != admin.ServiceUserID {
			t.Errorf("now the token is of %s", id)
		}
		checkFiles(t, s)
	})
}

// checkFiles: what is in the data directory is for its owner alone.
func checkFiles(t *testing.T, s *site) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = fs.ModeDir | 0o700
		} else if name := entry.Name(); !strings.HasPrefix(name, "signet.db-") && name != "log-head" {
			names = append(names, name)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"first-admin.json", "lock", "master.key"}
	if s.Engine == testdb.SQLite {
		want = []string{"first-admin.json", "lock", "log-end", "master.key", "signet.db"}
	}
	if !slices.Equal(names, want) {
		t.Errorf("the data directory holds %v, want %v", names, want)
	}
}

func TestAFirstStartThatWasCutOffIsCompleted(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.start(t).stop(t)
		admin, path := s.admin(t), s.path("first-admin.json")
		// As after a power cut between the commit and the renaming. Another attempt had come to nothing.
		if err := os.Rename(path, path+"."+admin.OrgID+".tmp"); err != nil {
			t.Fatal(err)
		}
		other := writeFile(t, path+".org_0000.tmp", "{}", 0o600)
		p := s.start(t)
		if s.admin(t) != admin {
			t.Error("first-admin.json is another one")
		}
		if _, err := os.Stat(other); err == nil {
			t.Error("the file of the attempt that came to nothing is still there")
		}
		newClient(t, p, "").signIn(t, admin.LoginName, admin.Password)
		checkFiles(t, s)
	})
}

func TestAFirstStartThatCannotHandOverItsAdministratorCreatesNothing(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		for _, path := range []string{filepath.Join(t.TempDir(), "missing", "first-admin.json"), t.TempDir()} {
			p := s.launch(t, nil, "--first-admin-file", path)
			r := result{p.exit(t), p.stdout.String(), p.stderr.String()}
			r.refused(t, "writing the first administrator's file")
			if !strings.Contains(r.stderr, path) {
				t.Errorf("it does not name the file: %s", r.stderr)
			}
			if n := s.events(t); n != 0 {
				t.Errorf("there are %d events", n)
			}
		}
		path := filepath.Join(t.TempDir(), "elsewhere.json")
		p := s.start(t, "--first-admin-file", path)
		admin := readAdmin(t, path)
		newClient(t, p, "").signIn(t, admin.LoginName, admin.Password)
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("beside the file there is something: %v %v", entries, err)
		}
	})
}

func TestAPortInUseCreatesNothing(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	other := newSite(t, testdb.New(t, testdb.SQLite))
	run(t, nil, append(other.args("start"), "--listen", p.listen)...).refused(t, "another program uses this address")
	run(t, nil, append(other.args("start"), "--listen", "localhost:0", "--metrics-listen", p.listen)...).refused(t,
		"--metrics-listen")
	if _, err := os.Stat(other.path("signet.db")); err == nil {
		t.Error("there is a database")
	}
}

// TestNodesThatStartTogether: of several first starts on one database one makes the installation, and its file is the
// one that stays, even where all of them write to the same place.
func TestNodesThatStartTogether(t *testing.T) {
	t.Parallel()
	db := testdb.New(t, testdb.Postgres)
	shared := t.TempDir()
	key := writeFile(t, filepath.Join(shared, "key"), newKey(), 0o600)
	path := filepath.Join(shared, "first-admin.json")
	var nodes []*process
	for range 4 {
		nodes = append(nodes, newSite(t, db).launch(t, nil, "--master-key-file", key, "--first-admin-file", path))
	}
	for _, p := range nodes {
		p.awaitReady(t)
	}
	admin := readAdmin(t, path)
	for _, p := range nodes {
		c := newClient(t, p, "")
		c.with(c.signIn(t, admin.LoginName, admin.Password)).want(t, 200, "GET", "/v1/users/me", nil)
		c.with(admin.Token).want(t, 200, "GET", "/v1/users/"+admin.UserID, nil)
	}
	entries, err := os.ReadDir(shared)
	if err != nil || len(entries) != 2 {
		t.Errorf("files were left behind: %v %v", entries, err)
	}
}

// TestAFirstStartBesideAnotherInstallationIsRefused: what the operator needs to get in is not written over, and nothing
// is made that is in the way of a move.
func TestAFirstStartBesideAnotherInstallationIsRefused(t *testing.T) {
	t.Parallel()
	ways := []string{"signet move", "--data-dir"}
	refused := func(s *site, says string, extra ...string) {
		t.Helper()
		p := s.launch(t, nil, extra...)
		r := result{p.exit(t), p.stdout.String(), p.stderr.String()}
		for _, said := range append([]string{says}, ways...) {
			r.refused(t, said)
		}
	}
	file := newSite(t, testdb.New(t, testdb.SQLite))
	file.start(t).stop(t)
	admin := readFile(t, file.path("first-admin.json"))
	server := &site{Database: testdb.New(t, testdb.Postgres), dir: file.dir}
	refused(server, "contains an installation, but the PostgreSQL database is empty")
	if err := os.Remove(file.path("first-admin.json")); err != nil { // put away, as the manual says
		t.Fatal(err)
	}
	refused(server, "contains an installation, but the PostgreSQL database is empty")
	writeFile(t, file.path("first-admin.json"), string(admin), 0o600)
	file.run(t, "move", "--to", server.URL).fine(t) // nothing is in the way
	server.start(t).stop(t)

	// The other way round, and to a second PostgreSQL database.
	first := newSite(t, testdb.New(t, testdb.Postgres))
	first.start(t).stop(t)
	admin = readFile(t, first.path("first-admin.json"))
	refused(&site{Database: testdb.Database{Engine: testdb.SQLite}, dir: first.dir},
		"first-admin.json belongs to another installation, and there is no database here")
	second := &site{Database: testdb.New(t, testdb.Postgres), dir: first.dir}
	refused(second, "first-admin.json belongs to another installation, but this PostgreSQL database is empty")
	refused(newSite(t, second.Database), "first-admin.json belongs to another installation", "--first-admin-file",
		first.path("first-admin.json"))
	if !bytes.Equal(readFile(t, first.path("first-admin.json")), admin) {
		t.Error("first-admin.json was changed")
	}
	if _, err := os.Stat(first.path("signet.db")); err == nil {
		t.Error("a database was made")
	}
	newSite(t, second.Database).start(t).stop(t) // with a directory of its own
	first.start(t).stop(t)
}
