package program

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
)

// restored gives the site of a backup, with the master key of the one it is of.
func (s *site) restored(t *testing.T, backup string) *site {
	t.Helper()
	to := s.vacant(t)
	said := to.run(t, "restore", backup).fine(t).stdout
	if !strings.Contains(said, "restored into "+to.dir) || !strings.Contains(said, "checked") {
		t.Errorf("it said:\n%s", said)
	}
	return to
}

// vacant is a data directory with nothing but this site's master key.
func (s *site) vacant(t *testing.T) *site {
	t.Helper()
	to := newSite(t, s.Database)
	if err := os.Mkdir(to.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, to.path("master.key"), string(readFile(t, s.path("master.key"))), 0o600)
	return to
}

func TestBackupAndRestore(t *testing.T) {
	s := embedded(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s.run(t, "backup", backup).refused(t, "no such file or directory")
	p := s.start(t)
	admin := s.admin(t)
	c := newClient(t, p, admin.Token)
	provider := at[string](t, c.want(t, 200, "POST", "/v1/idps/jwt", newProvider("before")), "idpId")
	said := s.run(t, "backup", backup).fine(t)
	for _, words := range []string{backup + ": ", "events", "checked", "The backup does not contain the master key",
		s.path("master.key")} {
		if !strings.Contains(said.stdout, words) {
			t.Errorf("it does not say %q:\n%s", words, said.stdout)
		}
	}
	if said.stderr != "" {
		t.Errorf("it complains: %s", said.stderr)
	}
	s.run(t, "backup", backup).refused(t, "already exists")
	late := at[string](t, c.want(t, 200, "POST", "/v1/idps/jwt", newProvider("after")), "idpId")
	s.run(t, "restore", backup).refused(t, "there is already a database")

	to := s.restored(t, backup)
	to.run(t, "rebuild", "--check").fine(t)
	r := to.start(t)
	if _, err := os.Stat(to.path("first-admin.json")); err == nil {
		t.Error("another first administrator")
	}
	rc := newClient(t, r, admin.Token)
	rc.want(t, 200, "GET", "/v1/idps/"+provider, nil)
	rc.want(t, 404, "GET", "/v1/idps/"+late, nil)
	rc.signIn(t, admin.LoginName, admin.Password)
	// Both live on by themselves.
	c.want(t, 200, "GET", "/v1/idps/"+late, nil)
	rc.want(t, 200, "POST", "/v1/idps/jwt", newProvider("elsewhere"))
}

func TestARehearsalForScripts(t *testing.T) {
	s := embedded(t)
	s.start(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s.run(t, "backup", backup).fine(t)
	if out := s.run(t, "restore", "--rehearse", backup).fine(t).stdout; !strings.Contains(out, "can be restored: ") ||
		!strings.Contains(out, "\nhead ") {
		t.Error(out)
	}
	var seen struct {
		OK      bool
		Events  int
		Problem string
	}
	if err := json.Unmarshal([]byte(s.run(t, "restore", "--rehearse", "--json", backup).fine(t).stdout),
		&seen); err != nil || !seen.OK || seen.Events == 0 {
		t.Errorf("%+v, %v", seen, err)
	}
	if err := os.Truncate(backup, 20_000); err != nil {
		t.Fatal(err)
	}
	r := s.run(t, "restore", "--rehearse", "--json", backup)
	if err := json.Unmarshal([]byte(r.stdout), &seen); err != nil || r.code != 1 || seen.OK || seen.Problem == "" {
		t.Errorf("%d: %+v, %v", r.code, seen, err)
	}
	s.run(t, "restore", "--json", backup).refused(t, "are for --rehearse")
}

func TestBackupOfPostgreSQL(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.New(t, testdb.Postgres))
	s.run(t, "backup", filepath.Join(t.TempDir(), "backup.db")).refused(t,
		"for PostgreSQL, use pg_dump with all tables, and keep a copy of the master key")
	s.run(t, "restore", filepath.Join(t.TempDir(), "backup.db")).refused(t, "for PostgreSQL, use pg_restore or psql")
}

// TestABackupThatDoesNotFitLeavesNothing: the limit on the size of a file stands for a disk that is full.
func TestABackupThatDoesNotFitLeavesNothing(t *testing.T) {
	s := embedded(t)
	s.start(t)
	place := t.TempDir()
	small := func(args ...string) result {
		cmd := program(nil, args...)
		limited := exec.Command("sh", append([]string{"-c", `ulimit -f 200; exec "$0" "$@"`, binary}, args...)...)
		limited.Env = cmd.Env
		p := launch(t, limited)
		return result{p.exit(t), p.stdout.String(), p.stderr.String()}
	}
	small(s.args("backup", filepath.Join(place, "backup.db"))...).refused(t, "writing the backup: ")
	if left, err := os.ReadDir(place); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	backup := filepath.Join(place, "backup.db")
	s.run(t, "backup", backup).fine(t)
	to := s.vacant(t)
	small(to.args("restore", backup)...).refused(t, "copying the backup: ")
	if left, err := os.ReadDir(to.dir); err != nil || len(left) != 3 { // the key, the lock, and the mark
		t.Errorf("left behind: %v, %v", left, err)
	}
	to.run(t, "start").refused(t, "a restore into this directory was not finished: run signet restore again")
	to.run(t, "restore", backup).fine(t)
	to.start(t)
}

// TestCrashInABackup: what is killed leaves no backup that is not one, and the server does not notice.
func TestCrashInABackup(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	admin := s.admin(t)
	c := newClient(t, p, admin.Token)
	place := t.TempDir()
	for round := range crashRounds(t) {
		backup := filepath.Join(place, fmt.Sprint("backup", round))
		killed(t, 60*time.Millisecond, program(nil, s.args("backup", backup)...))
		c.want(t, 200, "POST", "/v1/idps/jwt", newProvider("still here"))
		if _, err := os.Stat(backup); err == nil { // it had come to its end
			s.restored(t, backup).run(t, "rebuild", "--check").fine(t)
		}
	}
}

// TestCrashInARestore: a directory has either no database or all of it.
func TestCrashInARestore(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	admin := s.admin(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s.run(t, "backup", backup).fine(t)
	p.stop(t)
	for range crashRounds(t) {
		to := s.vacant(t)
		life := killed(t, 200*time.Millisecond, program(nil, to.args("restore", backup)...))
		if _, err := os.Stat(to.path("signet.db")); err != nil {
			if _, err := os.Stat(to.path("signet.db.restoring")); err == nil {
				p := to.launch(t, nil)
				result{p.exit(t), p.stdout.String(), p.stderr.String()}.refused(t, "run signet restore again")
			}
			to.run(t, "restore", backup).fine(t)
		}
		to.run(t, "rebuild", "--check").fine(t)
		p := to.start(t)
		newClient(t, p, "").signIn(t, admin.LoginName, admin.Password)
		p.stop(t)
		left, err := os.ReadDir(to.dir)
		if err != nil || len(left) != 5 || t.Failed() { // lock, log-end, log-head, master.key, signet.db
			t.Fatalf("killed after %v: %v, %v", life, left, err)
		}
	}
}

// TestCrashInARotation: whenever the master key's rotation is killed, the next start works.
func TestCrashInARotation(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		admin := s.admin(t)
		session := newClient(t, p, "").signIn(t, admin.LoginName, admin.Password)
		p.stop(t)
		for range crashRounds(t) {
			life := killed(t, 150*time.Millisecond, program(nil, s.args("master-key", "rotate")...))
			p := s.start(t)
			c := newClient(t, p, session)
			c.want(t, 200, "GET", "/v1/users/me", nil)
			c.signIn(t, admin.LoginName, admin.Password)
			p.stop(t)
			s.run(t, "rebuild", "--check").fine(t)
			if _, err := os.Stat(s.path("master.key.new")); err == nil || t.Failed() {
				t.Fatalf("killed after %v, and a key is left (%v)", life, err)
			}
			if err := os.Remove(s.path("master.key.old")); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	})
}

// killed runs a command and kills it at some moment within a time.
func killed(t *testing.T, within time.Duration, cmd *exec.Cmd) (life time.Duration) {
	t.Helper()
	life = time.Duration(rand.Int64N(int64(within)))
	p := launch(t, cmd)
	pull := time.NewTimer(life)
	defer pull.Stop()
	select {
	case <-pull.C:
	case <-p.done:
	}
	p.kill(t)
	return life
}

// TestRotateMasterKey as an operator does it.
func TestRotateMasterKey(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		admin := s.admin(t)
		s.run(t, "master-key", "rotate").refused(t, "in use by another signet process")
		p.stop(t)
		old := string(readFile(t, s.path("master.key")))
		said := s.run(t, "master-key", "rotate").fine(t).stdout
		key := string(readFile(t, s.path("master.key")))
		if key == old || string(readFile(t, s.path("master.key.old"))) != old {
			t.Error("the key is the same, or the old one is lost")
		}
		for _, secret := range []string{key, old} {
			if strings.Contains(said, strings.TrimSpace(secret)) {
				t.Error("it shows a key")
			}
		}
		if !strings.Contains(said, s.path("master.key.old")) || !strings.Contains(said, "Existing backups need it") {
			t.Errorf("it said:\n%s", said)
		}
		q := s.launch(t, nil, "--master-key-file", s.path("master.key.old"))
		result{q.exit(t), q.stdout.String(), q.stderr.String()}.refused(t, "after a rotation, use the new one")
		env := []string{"SIGNET_MASTER_KEY=" + strings.TrimSpace(key)}
		run(t, env, s.args("master-key", "rotate")...).refused(t, "name a file for the new key with --new-key-file")
		file := filepath.Join(t.TempDir(), "key")
		run(t, env, append(s.args("master-key", "rotate"), "--new-key-file", file)...).fine(t)
		c := newClient(t, s.start(t, "--master-key-file", file), admin.Token)
		c.want(t, 200, "GET", "/v1/users/"+admin.UserID, nil)
		c.signIn(t, admin.LoginName, admin.Password)
	})
}

// TestScaleABackupUnderWritingCallersMissesNothing: whatever was acknowledged before a backup began is in it, and what
// is in it is in order.
func TestScaleABackupUnderWritingCallersMissesNothing(t *testing.T) {
	s := embedded(t)
	callers, backups, between := 12, 2, 300
	if os.Getenv("SIGNET_SCALE") != "" {
		callers, backups, between = 64, 4, 20_000
	}
	p := s.start(t)
	admin := s.admin(t)
	c := newClient(t, p, admin.Token)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all := make([]*caller, callers)
	acknowledged := make(chan struct{}, 1024)
	var writers sync.WaitGroup
	for i := range all {
		all[i] = &caller{path: "/v1/idps/" + at[string](t,
			c.want(t, 200, "POST", "/v1/idps/jwt", newProvider(fmt.Sprint("caller ", i))), "idpId")}
		client := newClient(t, p, admin.Token)
		writers.Go(func() { all[i].write(ctx, t, client, acknowledged) })
	}
	for round := range backups {
		for range between {
			select {
			case <-acknowledged:
			case <-p.done:
				t.Fatal("it ended by itself")
			case <-time.After(patience):
				t.Fatal("nobody is answered")
			}
		}
		backup := filepath.Join(t.TempDir(), "backup.db")
		began := time.Now()
		running := launch(t, program(nil, s.args("backup", backup)...))
		during, tooLong := 0, time.After(10*time.Minute)
		for waiting := true; waiting; {
			select {
			case <-acknowledged:
				during++
			case <-running.done:
				waiting = false
			case <-tooLong:
				t.Fatal("the backup does not end")
			}
		}
		took := time.Since(began)
		result{running.exit(t), running.stdout.String(), running.stderr.String()}.fine(t)
		to := s.restored(t, backup)
		said := to.run(t, "rebuild", "--check").fine(t)
		q := to.start(t)
		rc := newClient(t, q, admin.Token)
		before := 0
		for _, w := range all {
			before += w.check(t, rc, began)
		}
		q.stop(t)
		t.Logf("backup %d under %d callers: %v, %d writes acknowledged before it began, %d meanwhile, %s", round+1,
			callers, took.Round(time.Millisecond), before, during, strings.TrimSpace(said.stdout))
	}
	stop()
	writers.Wait()
	p.stop(t)
	s.run(t, "rebuild", "--check").fine(t)
}

// caller sets one object to new values, and remembers what was acknowledged, and when.
type caller struct {
	path string
	mu   sync.Mutex
	acks []ack
}

type ack struct {
	at       time.Time
	sequence int
	value    string
}

func (w *caller) write(ctx context.Context, t *testing.T, c *client, acknowledged chan<- struct{}) {
	for n := 0; ctx.Err() == nil; n++ {
		value := fmt.Sprint("value ", n)
		status, answer, err := c.do(ctx, "PUT", w.path, object{"name": value})
		if ctx.Err() != nil {
			return
		}
		if err != nil || status != 200 {
			t.Errorf("%s: status %d, %v %v", w.path, status, answer, err)
			return
		}
		details, _ := answer["details"].(object)
		sequence, err := strconv.Atoi(fmt.Sprint(details["sequence"]))
		if err != nil {
			t.Errorf("%s: %v", w.path, answer)
			return
		}
		w.mu.Lock()
		w.acks = append(w.acks, ack{time.Now(), sequence, value})
		w.mu.Unlock()
		select {
		case acknowledged <- struct{}{}:
		case <-ctx.Done():
		default: // nobody counts
		}
	}
}

// check finds on a restored server what was acknowledged before a moment, and tells how much that was.
func (w *caller) check(t *testing.T, c *client, before time.Time) (n int) {
	t.Helper()
	answer := c.want(t, 200, "GET", w.path, nil)
	sequence, err := strconv.Atoi(at[string](t, answer, "idp", "details", "sequence"))
	if err != nil {
		t.Fatal(err)
	}
	name := at[string](t, answer, "idp", "name")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.acks {
		if a.at.Before(before) {
			if n++; a.sequence > sequence {
				t.Errorf("%s: sequence %d was acknowledged before the backup began, and it has %d", w.path,
					a.sequence, sequence)
			}
		}
		if a.sequence == sequence && a.value != name {
			t.Errorf("%s: it holds %q at sequence %d, where %q was acknowledged", w.path, name, sequence, a.value)
		}
	}
	return n
}
