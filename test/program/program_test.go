// Package program tests the built binary from outside, as an operator and as a client meet it: what it leaves on the
// disk, what it says, what it refuses, and what is still there after a kill -9.
//
// A site is one data directory on one engine; a process is a server that runs on it. Nothing here sleeps: a test waits
// for a line of output, for an answer, or for the end of a process.
package program

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// patience is how long a test waits for what should come at once.
const patience = testkit.Patience

// binary is the program under test.
var binary string

func TestMain(m *testing.M) { os.Exit(testkit.RunWithProgram(m, &binary)) }

// site is where one installation keeps its data.
type site struct {
	testdb.Database
	dir string
}

func newSite(t *testing.T, db testdb.Database) *site {
	t.Helper()
	return &site{Database: db, dir: filepath.Join(t.TempDir(), "data")}
}

// eachEngine runs a test on a fresh site of every engine, beside other tests.
func eachEngine(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		test(t, newSite(t, db))
	})
}

// embedded gives a fresh site on SQLite, for what has nothing to do with the engine.
func embedded(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return newSite(t, testdb.New(t, testdb.SQLite))
}

// args are those of a command on this site.
func (s *site) args(command ...string) []string {
	args := append(slices.Clone(command), "--data-dir", s.dir)
	if s.Engine == testdb.Postgres {
		args = append(args, "--database", s.URL)
	}
	return args
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// start runs a server on the site and waits until it is ready.
func (s *site) start(t *testing.T, extra ...string) *process {
	t.Helper()
	p := s.launch(t, nil, extra...)
	p.awaitReady(t)
	return p
}

// launch runs a server on the site. It may never get ready.
func (s *site) launch(t *testing.T, env []string, extra ...string) *process {
	t.Helper()
	args := append(s.args("start"), "--listen", "localhost:0", "--log-format", "json")
	return launch(t, program(env, append(args, extra...)...))
}

// run runs a command on the site to its end.
func (s *site) run(t *testing.T, command ...string) result {
	t.Helper()
	return run(t, nil, s.args(command...)...)
}

// admin reads what the first start has left.
func (s *site) admin(t *testing.T) firstAdmin {
	t.Helper()
	return readAdmin(t, s.path("first-admin.json"))
}

type firstAdmin struct {
	URL           string `json:"url"`
	OrgID         string `json:"orgId"`
	UserID        string `json:"userId"`
	LoginName     string `json:"loginName"`
	Password      string `json:"password"`
	ServiceUserID string `json:"serviceUserId"`
	Token         string `json:"token"`
}

func readAdmin(t *testing.T, path string) firstAdmin {
	t.Helper()
	var f firstAdmin
	if err := json.Unmarshal(readFile(t, path), &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// open connects to the site's database behind the program's back.
func (s *site) open(t *testing.T) *sql.DB {
	t.Helper()
	driver, address := "pgx", s.URL
	if s.Engine == testdb.SQLite {
		driver, address = "sqlite", "file:"+s.path("signet.db")+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// events counts the log.
func (s *site) events(t *testing.T) (n int) {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// tamper changes the database.
func (s *site) tamper(t *testing.T, statement string) {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	result, err := db.Exec(statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed %d rows (%v)", statement, n, err)
	}
}

// program prepares a run of the binary. No setting of the tests' own environment gets through to it.
func program(env []string, args ...string) *exec.Cmd {
	cmd := testkit.Command(binary, args...)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// output gathers what a process writes and wakes up whoever waits for it.
type output struct {
	mu      sync.Mutex
	text    []byte
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(p), nil
}

func (o *output) String() string {
	text, _ := o.state()
	return text
}

func (o *output) state() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text), o.changed
}

// process is a running server.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	done           chan struct{}
	err            error // of Wait, once done is closed

	url     string // of the API
	listen  string
	metrics string
	took    string
}

// launch starts a process that is gone when the test ends.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, stdout: newOutput(), stderr: newOutput(), done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.stdout
	}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("%s %s said:\n%s%s", filepath.Base(binary), cmd.Args[1], p.stdout, p.stderr)
		}
	})
	return p
}

// line is a line of a log.
type line struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Msg     string    `json:"msg"`
	URL     string    `json:"url"`
	Listen  string    `json:"listen"`
	Metrics string    `json:"metrics"`
	Took    string    `json:"took"`
}

var pair = regexp.MustCompile(`^(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?: |$)`)

// parseLine reads a whole line of a log in either format.
func parseLine(text string) (l line, ok bool) {
	text, ok = strings.CutSuffix(text, "\n")
	if !ok {
		return l, false
	}
	if !strings.HasPrefix(text, "{") {
		values := map[string]string{}
		for text != "" {
			match := pair.FindStringSubmatch(text)
			if match == nil {
				return l, false
			}
			value := match[2]
			if strings.HasPrefix(value, `"`) {
				var err error
				if value, err = strconv.Unquote(value); err != nil {
					return l, false
				}
			}
			values[match[1]], text = value, text[len(match[0]):]
		}
		encoded, err := json.Marshal(values)
		if err != nil {
			return l, false
		}
		text = string(encoded)
	}
	return l, json.Unmarshal([]byte(text), &l) == nil && !l.Time.IsZero() && l.Level != "" && l.Msg != ""
}

// await waits for a line of the log.
func (p *process) await(t *testing.T, msg string) line {
	t.Helper()
	deadline := time.After(patience)
	for {
		text, changed := p.stderr.state()
		for candidate := range strings.Lines(text) {
			if l, ok := parseLine(candidate); ok && l.Msg == msg {
				return l
			}
		}
		select {
		case <-changed:
		case <-p.done:
			if now, _ := p.stderr.state(); now == text {
				t.Fatalf("it ended (%v) before it said %q", p.err, msg)
			}
		case <-deadline:
			t.Fatalf("it never said %q", msg)
		}
	}
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	ready := p.await(t, "ready")
	p.listen, p.metrics, p.took = ready.Listen, ready.Metrics, ready.Took
	p.url = "http://" + ready.Listen
	if strings.HasPrefix(ready.URL, "https:") && slices.Contains(p.cmd.Args, "--tls-cert") {
		p.url = "https://" + ready.Listen
	}
}

// kill ends the process at once, as a crash would.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-p.done
}

// terminate asks the process to stop.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the end and gives the exit code.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("it does not end: %v", p.cmd.Args)
		return -1
	}
}

// stop asks the process to stop and waits until it has.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.terminate(t)
	if code := p.exit(t); code != 0 {
		t.Fatalf("stopped with exit code %d", code)
	}
}

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	p := launch(t, program(env, args...))
	code := p.exit(t)
	return result{code, p.stdout.String(), p.stderr.String()}
}

// refused checks that a command failed with one clear line.
func (r result) refused(t *testing.T, says string) {
	t.Helper()
	if r.code == 0 {
		t.Errorf("it succeeded, but should say %q", says)
	}
	text := strings.TrimSuffix(r.stderr, "\n")
	if !strings.HasPrefix(text, "signet: ") || !strings.Contains(text, says) || strings.Contains(text, "\n") ||
		r.stdout != "" {
		t.Errorf("it should say %q in one line, and said:\n%s%s", says, r.stdout, r.stderr)
	}
}

// fine checks that a command succeeded.
func (r result) fine(t *testing.T) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	return r
}

// client calls the API.
type client struct {
	base  string
	token string
	org   string // whose data it is about, where that is not the caller's
	http  *http.Client
}

// newClient gives a client with connections of its own.
func newClient(t *testing.T, p *process, token string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{base: p.url, token: token, http: &http.Client{Transport: transport, Timeout: patience}}
}

func (c *client) with(token string) *client {
	other := *c
	other.token = token
	return &other
}

type object = map[string]any

// do sends a request. The answer is the body as JSON.
func (c *client) do(ctx context.Context, method, path string, body object) (status int, answer object, err error) {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		text = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, text)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.org != "" {
		r.Header.Set("X-Service-Orgid", c.org)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return resp.StatusCode, answer, err
}

// want sends a request and insists on its status.
func (c *client) want(t *testing.T, status int, method, path string, body object) object {
	t.Helper()
	got, answer, err := c.do(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if got != status {
		t.Fatalf("%s %s: status %d, want %d: %v", method, path, got, status, answer)
	}
	return answer
}

// signIn gives the token of a new session.
func (c *client) signIn(t *testing.T, loginName, password string) string {
	t.Helper()
	answer := c.want(t, 200, "POST", "/v1/sessions", object{"loginName": loginName, "password": password})
	return at[string](t, answer, "token")
}

// at digs a value out of an answer.
func at[T any](t *testing.T, answer object, path ...string) T {
	t.Helper()
	var value any = answer
	for _, name := range path {
		value = value.(object)[name]
	}
	typed, ok := value.(T)
	if !ok {
		t.Fatalf("there is no %s in %v", strings.Join(path, "."), answer)
	}
	return typed
}

func profile(nickName string) object {
	return object{"firstName": "First", "lastName": "Administrator", "displayName": "First Administrator",
		"nickName": nickName}
}

func newOrg(name, password string) object {
	return object{
		"org": object{"name": name},
		"human": object{"userName": "owner", "password": password, "email": object{"email": "owner@example.com"},
			"profile": object{"firstName": "Olga", "lastName": "Owner"}},
	}
}

func newProvider(name string) object {
	return object{"name": name, "jwtEndpoint": "https://idp.example.com/jwt", "issuer": "https://idp.example.com",
		"keysEndpoint": "https://idp.example.com/keys"}
}

// refusesConnections waits until nobody listens on an address any more.
func refusesConnections(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatalf("%s still accepts connections", address)
}
