//go:build faults

package program

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// serves tells whether a caller who connects anew is answered.
func serves(c *client) bool {
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	resp, err := fresh.Get(c.base + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == 200
}

func checked(t *testing.T, s *site) {
	t.Helper()
	s.run(t, "rebuild", "--check").fine(t)
	s.verified(t)
}

// gap is the longest time so far without anything acknowledged, and starts anew.
func (w *writers) gap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := max(w.longest, time.Since(w.last))
	w.longest = 0
	return longest
}

// Strangers hold all file descriptors that the server may open. Whoever is connected goes on, the log is not flooded,
// and it is over when they leave.
func TestFaultsOutOfFileDescriptors(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		c := newClient(t, p, s.admin(t).Token)
		w := writeThrough(t, c, 4)
		w.more(t)
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		limit := uint64(len(open)) + 20
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit},
			nil); err != nil {
			t.Fatal(err)
		}
		var held []net.Conn
		for range 100 {
			conn, err := net.Dial("tcp", p.listen)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, conn)
		}
		if serves(c) {
			t.Error("there are descriptors left")
		}
		w.gap()
		w.more(t)
		warnings := func() (n int) {
			for text := range strings.Lines(p.stderr.String()) {
				if l, ok := parseLine(text); ok && l.Level != "INFO" {
					n++
				}
			}
			return n
		}
		before := warnings()
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			w.more(t)
		}
		said := warnings() - before
		gap := w.gap()
		if said > 20 {
			t.Errorf("%d warnings in the log within 5 s", said)
		}
		if !strings.Contains(p.stderr.String(), "raise the limit of open files") {
			t.Error("the log does not say what to do")
		}
		began := time.Now()
		for _, conn := range held {
			conn.Close()
		}
		testkit.Await(t, "others are served again", func() bool { return serves(c) })
		back := time.Since(began)
		if w.end(t, p); w.refused.Load() > 0 {
			t.Errorf("%d writes of those who were connected were refused", w.refused.Load())
		}
		t.Logf("%s; longest gap %v; %d warnings in 5 s; others were served %v after the strangers had left", w,
			gap.Round(time.Millisecond), said, back.Round(time.Millisecond))
		p.stop(t)
		checked(t, s)
	})
}

// A node is paused for half a minute in the middle of its work, as when its machine is moved. The others go on, and it
// does too when it wakes up.
func TestFaultsPausedNode(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, database testdb.Database) {
		s := newSite(t, database)
		first := s.start(t)
		token := s.admin(t).Token
		other := newSite(t, database)
		second := other.start(t, "--master-key-file", s.path("master.key"))
		a, b := newClient(t, first, token), newClient(t, second, token)
		a.http.Timeout = 2 * time.Minute
		on, beside := writeThrough(t, a, 4), writeThrough(t, b, 4)
		on.more(t)
		beside.more(t)
		if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		paused := time.Now()
		beside.gap()
		for time.Since(paused) < 30*time.Second {
			beside.more(t)
		}
		gap := beside.gap()
		if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		woken := time.Now()
		on.more(t)
		testkit.Await(t, "the node is ready", func() bool { return serves(a) })
		back := time.Since(woken)
		on.end(t, first)
		beside.end(t, second)
		if gap > 5*time.Second || back > 5*time.Second {
			t.Errorf("the other node wrote nothing for %v; this one was back after %v", gap, back)
		}
		if beside.refused.Load() > 0 {
			t.Errorf("%d writes at the other node were refused", beside.refused.Load())
		}
		t.Logf("paused node: %s, back %v after it woke up; the other: %s, longest gap %v", on,
			back.Round(time.Millisecond), beside, gap.Round(time.Millisecond))
		first.stop(t)
		second.stop(t)
		checked(t, s)
	})
}

// startWithin runs a server in a cgroup of its own, with so much memory. Where that is not allowed, the test fails.
func (s *site) startWithin(t *testing.T, bytes int) *process {
	t.Helper()
	root, limit := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil { // version 1
		root, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	dir, err := os.MkdirTemp(root, "signet-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // after the process is gone
	writeFile(t, filepath.Join(dir, limit), strconv.Itoa(bytes), 0o644)
	cmd := program(nil)
	cmd.Path, cmd.Args = "/bin/sh",
		append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs"), binary},
			append(s.args("start"), "--listen", "localhost:0", "--log-format", "json")...)
	p := launch(t, cmd)
	p.awaitReady(t)
	return p
}

// throng sets up organizations, each with a password to hash, from many callers until it is told to stop or the server
// is gone.
func throng(t *testing.T, c *client, p *process, until time.Time) {
	t.Helper()
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				if _, _, err := c.do(t.Context(), "POST", "/v1/orgs/_setup",
					newOrg(fmt.Sprint("Org ", i, " ", n), "a password")); err != nil {
					select {
					case <-p.done:
						return
					default:
					}
				}
			}
		})
	}
	callers.Wait()
}

// The kernel kills a server that has less memory than it needs for a password hash. Nothing that was acknowledged is
// lost, and with enough memory it goes on.
func TestFaultsOutOfMemory(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		first := s.start(t)
		admin := s.admin(t)
		first.stop(t)
		p := s.startWithin(t, 48<<20)
		c := newClient(t, p, admin.Token)
		w := writeThrough(t, c, 4)
		w.more(t)
		w.killed.Store(true)
		throng(t, c, p, time.Now().Add(30*time.Second))
		select {
		case <-p.done:
		default:
			t.Error("it got along with so little memory")
			p.kill(t)
		}
		w.all.Wait()
		p = s.start(t)
		w.end(t, p)
		t.Logf("%s before the kernel ended it", w)
		p.stop(t)
		checked(t, s)
	})
}

// A server with little memory, but as much as the documentation asks for, is not killed, whoever comes.
func TestFaultsLittleMemory(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.startWithin(t, 128<<20)
		c := newClient(t, p, s.admin(t).Token)
		w := writeThrough(t, c, 4)
		throng(t, c, p, time.Now().Add(10*time.Second))
		w.more(t)
		w.end(t, p)
		t.Log(w)
		p.stop(t)
		checked(t, s)
	})
}

// The database refuses to write, or to be connected to, for a while. Nodes say so, and come back by themselves.
func TestFaultsRefusingDatabase(t *testing.T) {
	for _, c := range []struct{ name, begin, end string }{
		{"read-only", "SET default_transaction_read_only = on", "RESET default_transaction_read_only"},
		{"no connections", "ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, database testdb.Database) {
				s := newSite(t, database)
				p := s.start(t)
				caller := newClient(t, p, s.admin(t).Token)
				w := writeThrough(t, caller, 4)
				w.more(t)
				change(t, database, c.begin)
				testkit.Await(t, "it is not ready", func() bool { return !serves(caller) })
				before := w.acknowledged.Load()
				for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
					if serves(caller) {
						t.Fatal("ready, and nothing can be written")
					}
				}
				if w.acknowledged.Load() > before {
					t.Error("written, though the database refuses to")
				}
				change(t, database, c.end)
				began := time.Now()
				w.more(t)
				testkit.Await(t, "it is ready", func() bool { return serves(caller) })
				back := time.Since(began)
				if back > 5*time.Second {
					t.Errorf("back after %v", back)
				}
				w.end(t, p)
				t.Logf("%s; back %v after the database", w, back.Round(time.Millisecond))
				p.stop(t)
				checked(t, s)
			})
		})
	}
}

// change alters a database from outside, and ends all connections to it, so that it counts at once.
func change(t *testing.T, database testdb.Database, how string) {
	t.Helper()
	address, err := url.Parse(database.URL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	address.Path = "/postgres"
	conn, err := pgx.Connect(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, statement := range []string{"ALTER DATABASE " + name + " " + how,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
