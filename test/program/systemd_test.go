package program

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// manager listens as systemd does, and gives the address for the environment and the next state that it hears.
func manager(t *testing.T) (env string, next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return "NOTIFY_SOCKET=" + path, func() string {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, err := conn.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

func TestSystemdHearsThatTheServerIsReadyAliveAndStops(t *testing.T) {
	s := embedded(t)
	env, next := manager(t)
	p := s.launch(t, []string{env, "WATCHDOG_USEC=1500000"})
	p.awaitReady(t)
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := next(); got != want {
			t.Fatalf("systemd heard %q, want %q", got, want)
		}
	}
	p.terminate(t)
	for got := next(); got != "STOPPING=1"; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("systemd heard %q", got)
		}
	}
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTheServerTakesSocketsOverFromSystemd(t *testing.T) {
	s := embedded(t)
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		listeners = append(listeners, l)
	}
	p := s.activated(t, nil, "signet.socket:metrics", listeners...)
	p.awaitReady(t)
	if main, metrics := listeners[0].Addr().String(),
		listeners[1].Addr().String(); p.listen != main || p.metrics != metrics || s.admin(t).URL != "http://"+main {
		t.Errorf("it listens on %s and %s, and its URL is %s", p.listen, p.metrics, s.admin(t).URL)
	}
	for _, url := range []string{"http://" + p.listen + "/readyz", "http://" + p.metrics + "/metrics"} {
		if resp := answer(t, http.DefaultClient, newRequest(t, "GET", url)); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, resp.Status)
		}
	}
	p.stop(t)
}

func TestSocketsThatTheServerCannotUseAreRefused(t *testing.T) {
	s := embedded(t)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := s.activated(t, nil, "signet.socket", l)
	if code := p.exit(t); code != 1 || !strings.Contains(p.stderr.String(), "must be a TCP socket") {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	one, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	p = s.activated(t, nil, "signet.socket:signet.socket", one, one)
	if code := p.exit(t); code != 1 || !strings.Contains(p.stderr.String(), "more than one socket") {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
}

// activated runs a server on sockets that it is given. A shell knows the process id that the server will have, as
// systemd does.
func (s *site) activated(t *testing.T, env []string, names string, listeners ...net.Listener) *process {
	t.Helper()
	server := program(append(env, fmt.Sprint("LISTEN_FDS=", len(listeners)), "LISTEN_FDNAMES="+names),
		append(s.args("start"), "--log-format", "json")...)
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`}, server.Args...)...)
	cmd.Env = server.Env
	for _, l := range listeners {
		file, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
	}
	return launch(t, cmd)
}

func TestHealthIsWhatTheServerSaysOfItself(t *testing.T) {
	s := embedded(t)
	nobody := "127.0.0.1:" + testkit.FreePort(t)
	run(t, nil, "health", "--listen", nobody).refused(t, "the server does not answer: check that it is running")
	run(t, nil, "health", "--listen", "nowhere").refused(t, "must be an address such as localhost:8080")
	p := s.start(t)
	_, port, _ := net.SplitHostPort(p.listen)
	for _, listen := range []string{p.listen, ":" + port, "0.0.0.0:" + port, "[::]:" + port} {
		run(t, []string{"SIGNET_LISTEN=" + listen}, "health").fine(t)
	}
	p.stop(t)
	run(t, []string{"SIGNET_LISTEN=" + p.listen}, "health").refused(t, "does not answer")
}

func TestHealthWithTLS(t *testing.T) {
	s := embedded(t)
	cert, key, _ := selfSigned(t)
	p := s.start(t, "--tls-cert", cert, "--tls-key", key)
	run(t, []string{"SIGNET_LISTEN=" + p.listen, "SIGNET_TLS_CERT=" + cert}, "health").fine(t)
	run(t, []string{"SIGNET_LISTEN=" + p.listen}, "health").refused(t, "the server is not ready (400")
}

func TestTheFirstAdministratorIsPrintedForImagesWithoutAShell(t *testing.T) {
	s := embedded(t)
	s.launch(t, nil).awaitReady(t)
	printed := run(t, nil, "admin", "first", "--data-dir", s.dir).fine(t).stdout
	if printed != string(readFile(t, s.path("first-admin.json"))) {
		t.Errorf("it printed %q", printed)
	}
	run(t, nil, "admin", "first", "--data-dir", t.TempDir()).refused(t,
		"only the node that did the first start has the file")
}

func TestMigrateDoesWhatAStartWould(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if said := s.run(t, "migrate").fine(t).stdout; !strings.Contains(said, "nothing to migrate yet") {
			t.Errorf("on an empty database: %q", said)
		}
		p := s.start(t)
		if s.Engine == testdb.SQLite {
			s.run(t, "migrate").refused(t, "in use by another signet process")
		} else {
			s.run(t, "migrate").fine(t)
		}
		p.stop(t)
		if said := s.run(t, "migrate").fine(t).stdout; said != "The data is at version "+versionNow(t)+".\n" {
			t.Errorf("it said %q", said)
		}
		if s.Engine == testdb.Postgres { // from anywhere, with nothing but the key
			key := strings.TrimSpace(string(readFile(t, s.path("master.key"))))
			run(t, []string{"SIGNET_MASTER_KEY=" + key}, "migrate", "--database", s.URL, "--data-dir",
				filepath.Join(t.TempDir(), "none")).fine(t)
		}
	})
}

func versionNow(t *testing.T) string {
	t.Helper()
	return strings.Fields(run(t, nil, "version").fine(t).stdout)[1]
}
