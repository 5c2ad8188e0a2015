// Package upgrade holds what is promised of an upgrade: data of the version before opens, verifies and goes on, and a
// node of the version before works beside one of this version on the same PostgreSQL database.
//
// The file VERSION names the commit of the version before. Its data is in testdata; its program is built from the
// history of this repository.
package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// patience is how long a test waits for what should come at once.
const patience = testkit.Patience

// base is the address that every node believes to have, whichever port it listens on.
const base = "http://localhost:8080"

// versionBefore is the commit of the version before.
var versionBefore = sync.OnceValue(func() string {
	text, err := os.ReadFile("VERSION")
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(text))
})

// scratch is where the program of this version is put if it has to be built.
var scratch = filepath.Join(os.TempDir(), fmt.Sprint("signet-upgrade-", os.Getpid()))

var buildNew = sync.OnceValues(func() (string, error) { return testkit.Program(scratch) })

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// thisVersion is the program of this version.
func thisVersion(t *testing.T) string {
	t.Helper()
	binary, err := buildNew()
	must(t, err)
	return binary
}

// theVersionBefore is the program of the version before.
func theVersionBefore(t *testing.T) string {
	t.Helper()
	return testkit.ProgramBefore(t)
}

var must = testkit.Must

// site is where an installation keeps its data.
type site struct {
	testdb.Database
	dir string
}

func (s *site) args(command ...string) []string {
	args := append(slices.Clone(command), "--data-dir", s.dir)
	if s.Engine == testdb.Postgres {
		args = append(args, "--database", s.URL)
	}
	return args
}

// run runs a command on the site to its end, which has to be a good one.
func (s *site) run(t *testing.T, binary string, command ...string) string {
	t.Helper()
	output, err := testkit.Command(binary, s.args(command...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, output)
	}
	return string(output)
}

// node is a running server.
type node struct {
	cmd  *exec.Cmd
	logs io.Reader
	http *http.Client
}

// start runs a server on the site and waits until it is ready.
func (s *site) start(t *testing.T, binary string) *node {
	t.Helper()
	cmd := testkit.Command(binary,
		append(s.args("start"), "--listen", "localhost:0", "--external-url", base, "--log-format", "json",
			"--outbound-allow", "127.0.0.1/32", "--webhook-retry", "100ms")...)
	logs, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	n := &node{cmd: cmd, logs: logs}
	t.Cleanup(func() { n.kill() })
	address := n.awaitReady(t)
	dialer := &net.Dialer{Timeout: patience}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	n.http = &http.Client{Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return n
}

// awaitReady gives the address that the server listens on. It keeps on reading what the server logs.
func (n *node) awaitReady(t *testing.T) (address string) {
	t.Helper()
	decoder := json.NewDecoder(n.logs)
	for {
		var line struct{ Msg, Listen string }
		if err := decoder.Decode(&line); err != nil {
			said, _ := io.ReadAll(io.MultiReader(decoder.Buffered(), n.logs))
			t.Fatalf("it ended before it was ready: %v\n%s", n.cmd.Wait(), said)
		}
		if line.Msg == "ready" {
			go io.Copy(io.Discard, n.logs)
			return line.Listen
		}
	}
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill() // it may be gone
	_ = n.cmd.Wait()
}

// stop asks the server to stop and waits until it has.
func (n *node) stop(t *testing.T) {
	t.Helper()
	must(t, n.cmd.Process.Signal(syscall.SIGTERM))
	must(t, n.cmd.Wait())
}

type object = map[string]any

// caller is whose token a request carries, and the organization that it is about.
type caller struct{ token, org string }

// call sends a request of the API.
func (n *node) call(t *testing.T, c caller, method, path string, body any) (status int, answer object) {
	t.Helper()
	text := []byte{}
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		must(t, err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(text))
	must(t, err)
	for name, value := range map[string]string{"Authorization": "Bearer " + c.token, "X-Service-Orgid": c.org,
		"Content-Type": "application/json"} {
		if value != "" && value != "Bearer " {
			r.Header.Set(name, value)
		}
	}
	resp, err := n.http.Do(r)
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// want sends a request that has to succeed.
func (n *node) want(t *testing.T, c caller, method, path string, body any) object {
	t.Helper()
	status, answer := n.call(t, c, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: status %d: %v", method, path, status, answer)
	}
	return answer
}

// signIn opens a session.
func (n *node) signIn(t *testing.T, loginName, password string) caller {
	t.Helper()
	return n.signInTo(t, "", loginName, password)
}

// signInTo opens a session of somebody in an organization, who may be named by a verified e-mail address.
func (n *node) signInTo(t *testing.T, org, loginName, password string) caller {
	t.Helper()
	return caller{token: at[string](t,
		n.want(t, caller{}, "POST", "/v1/sessions",
			object{"loginName": loginName, "password": password, "orgId": org}), "token")}
}

// at digs a value out of an answer.
func at[T any](t *testing.T, answer object, path ...string) T {
	t.Helper()
	var value any = answer
	for _, name := range path {
		within, _ := value.(object)
		value = within[name]
	}
	typed, ok := value.(T)
	if !ok {
		t.Fatalf("there is no %s in %v", strings.Join(path, "."), answer)
	}
	return typed
}
