package program

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// newKey makes the text of a master key.
func newKey() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:])
	return base64.StdEncoding.EncodeToString(raw[:])
}

func TestMasterKeyFromTheEnvironment(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		key := newKey()
		p := s.launch(t, []string{"SIGNET_MASTER_KEY=" + key})
		p.awaitReady(t)
		if _, err := os.Stat(s.path("master.key")); err == nil {
			t.Error("a key was made although one was given")
		}
		p.stop(t)
		fails := func(says string, env []string, extra ...string) {
			t.Helper()
			p := s.launch(t, env, extra...)
			result{p.exit(t), p.stdout.String(), p.stderr.String()}.refused(t, says)
		}
		fails("its master key is not in "+s.path("master.key"), nil)
		fails("the master key does not fit this database", []string{"SIGNET_MASTER_KEY=" + newKey()})
		fails("the master key must be the base64 text of 32 bytes", []string{"SIGNET_MASTER_KEY=nonsense"})
		file := writeFile(t, filepath.Join(t.TempDir(), "key"), key+"\n", 0o600)
		fails("are both set", []string{"SIGNET_MASTER_KEY=" + key}, "--master-key-file", file)
		fails("takes the name of a file, not the key", nil, "--master-key-file", key)
		// The same key from a file is the same key.
		s.start(t, "--master-key-file", file).stop(t)
		run(t, nil, append(s.args("rebuild", "--check"), "--master-key-file", file)...).fine(t)
		run(t, []string{"SIGNET_MASTER_KEY=" + key}, s.args("rebuild", "--check")...).fine(t)
		s.run(t, "rebuild", "--check").refused(t, "its master key is not in")
		s.run(t, "admin", "recover").refused(t, "its master key is not in")
		if _, err := os.Stat(s.path("master.key")); err == nil {
			t.Error("a refused start left a key behind")
		}
	})
}

func TestMasterKeyInTheDataDirectory(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.start(t).stop(t)
		path := s.path("master.key")
		fails := func(says string) {
			t.Helper()
			p := s.launch(t, nil)
			result{p.exit(t), p.stdout.String(), p.stderr.String()}.refused(t, says)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		fails("(mode 0640): run chmod 600 on it")
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		right := string(readFile(t, path))
		writeFile(t, path, newKey(), 0o600)
		fails("the master key does not fit this database")
		writeFile(t, path, "", 0o600)
		fails("the master key is empty")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		fails("its master key is not in " + path)
		if _, err := os.Stat(path); err == nil {
			t.Error("a new key was made over an existing database")
		}
		writeFile(t, path, right, 0o600)
		s.start(t).stop(t)
	})
}

func TestMasterKeyFileThatIsMissing(t *testing.T) {
	s := embedded(t)
	p := s.launch(t, nil, "--master-key-file", filepath.Join(t.TempDir(), "none"))
	result{p.exit(t), p.stdout.String(), p.stderr.String()}.refused(t, "no such file")
}

func TestNodes(t *testing.T) {
	t.Parallel()
	db := testdb.New(t, testdb.Postgres)
	first, second := newSite(t, db), newSite(t, db)
	a := first.start(t)

	p := second.launch(t, nil)
	result{p.exit(t), p.stdout.String(), p.stderr.String()}.refused(t,
		"its master key is not in "+second.path("master.key"))
	other := writeFile(t, filepath.Join(t.TempDir(), "other"), newKey(), 0o600)
	p = second.launch(t, nil, "--master-key-file", other)
	result{p.exit(t), p.stdout.String(), p.stderr.String()}.refused(t, "the master key does not fit this database")

	b := second.start(t, "--master-key-file", first.path("master.key"))
	if _, err := os.Stat(second.path("first-admin.json")); err == nil {
		t.Error("the second node made an administrator")
	}
	admin := first.admin(t)
	c := newClient(t, a, "")
	nodes := []*client{c.with(c.signIn(t, admin.LoginName, admin.Password)), newClient(t, b, "")}
	nodes[1].token = nodes[0].token
	// What one node ends is over on the other.
	for i := range 5 {
		answer := nodes[i%2].want(t, 200, "POST", "/v1/sessions",
			object{"loginName": admin.LoginName, "password": admin.Password})
		id, token := at[string](t, answer, "sessionId"), at[string](t, answer, "token")
		nodes[1-i%2].with(token).want(t, 200, "GET", "/v1/users/me", nil)
		nodes[i%2].with(token).want(t, 200, "DELETE", "/v1/sessions/"+id, nil)
		nodes[1-i%2].with(token).want(t, 401, "GET", "/v1/users/me", nil)
	}
}
