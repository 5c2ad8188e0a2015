//go:build rolling

package rolling

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	patience = time.Minute // with anything that should come soon

	// delay is that of the nodes: more than twice what HAProxy takes to notice, and what nginx keeps idle connections
	// for.
	delay = 7 * time.Second
)

var must = testkit.Must

// cluster is three nodes on one PostgreSQL behind two proxies.
type cluster struct {
	t        *testing.T
	dir      string // holds the certificate; others may read it, for proxies give up the rights of root
	database string
	external string
	ports    []string // of the nodes
	nodes    []*node
	proxies  []*proxy
	roots    *x509.CertPool
	token    string // of the first administrator
}

// proxy is one that callers come through.
type proxy struct {
	name, url string
	client    *http.Client
}

// node is a running server.
type node struct {
	cmd   *exec.Cmd
	log   *testkit.Log
	ended chan struct{}
}

// newCluster runs the nodes with a program, and the proxies with the documented configurations.
func newCluster(t *testing.T, binary string) *cluster {
	t.Helper()
	c := &cluster{t: t, database: testdb.New(t, testdb.Postgres).URL, nodes: make([]*node, 3)}
	var err error
	c.dir, err = os.MkdirTemp("/tmp", "signet-rolling-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(c.dir) })
	must(t, os.Chmod(c.dir, 0o755))
	c.roots = testkit.Certify(t, c.dir)
	for range c.nodes {
		c.ports = append(c.ports, testkit.FreePort(t))
	}
	fronts := []string{testkit.FreePort(t), testkit.FreePort(t)}
	c.external = "https://localhost:" + fronts[0]
	for i := range c.nodes {
		c.start(i, binary)
	}
	var first struct{ Token string }
	text, err := os.ReadFile(filepath.Join(c.dataDir(0), "first-admin.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &first))
	c.token = first.Token
	c.front("nginx", "nginx-nodes.conf", fronts[0], func(dir, config string) []string {
		around := "daemon off;\nworker_processes 2;\npid " + dir +
			"/pid;\nerror_log stderr;\nevents {}\nhttp {\n\taccess_log off;\n"
		for _, temp := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			around += "\t" + temp + "_temp_path " + dir + "/" + temp + ";\n"
		}
		main := filepath.Join(dir, "main.conf")
		must(t, os.WriteFile(main, []byte(around+"\tinclude "+config+";\n}\n"), 0o644))
		return []string{"-p", dir, "-e", "stderr", "-c", main}
	})
	c.front("haproxy", "haproxy-nodes.cfg", fronts[1],
		func(_, config string) []string { return []string{"-db", "-f", config} })
	return c
}

func (c *cluster) dataDir(i int) string { return filepath.Join(c.dir, fmt.Sprint("node", i)) }

// dataArgs say where the data of a node is.
func (c *cluster) dataArgs(i int) []string {
	return []string{"--data-dir", c.dataDir(i), "--database", c.database, "--master-key-file",
		filepath.Join(c.dataDir(0), "master.key")}
}

// start runs a node and waits until it is ready.
func (c *cluster) start(i int, binary string) {
	c.t.Helper()
	args := []string{"start", "--listen", "127.0.0.1:" + c.ports[i], "--external-url", c.external, "--trusted-proxies",
		"127.0.0.1", "--starts-per-minute", "1000000", "--log-format", "json", "--shutdown-delay", delay.String()}
	if data := c.dataArgs(i); i == 0 {
		args = append(args, data[:4]...) // it makes the master key
	} else {
		args = append(args, data...)
	}
	n := &node{cmd: testkit.Command(binary, args...), log: &testkit.Log{}, ended: make(chan struct{})}
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that is cut off leaves nothing behind
	out, err := n.cmd.StderrPipe()
	must(c.t, err)
	must(c.t, n.cmd.Start())
	ready := make(chan struct{}, 1)
	go func() {
		defer close(n.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(n.log, lines.Text())
			if strings.Contains(lines.Text(), `"msg":"ready"`) {
				ready <- struct{}{}
			}
		}
		_ = n.cmd.Wait()
	}()
	c.t.Cleanup(func() {
		_ = n.cmd.Process.Kill() // it may be gone
		<-n.ended
		if c.t.Failed() {
			text := n.log.String()
			c.t.Logf("node %d said:\n%s", i+1, text[max(0, len(text)-2000):])
		}
	})
	select {
	case <-ready:
	case <-n.ended:
		c.t.Fatalf("node %d does not start", i+1)
	case <-time.After(patience):
		c.t.Fatalf("node %d is not ready", i+1)
	}
	c.nodes[i] = n
	c.await(i)
}

// await waits until a node says that it is ready, as the procedure asks for.
func (c *cluster) await(i int) {
	c.t.Helper()
	testkit.Await(c.t, fmt.Sprintf("node %d is ready", i+1), func() bool {
		resp, err := http.Get("http://127.0.0.1:" + c.ports[i] + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// replace stops a node and starts it anew with a program.
func (c *cluster) replace(i int, binary string) (stopped, started time.Duration) {
	c.t.Helper()
	began := time.Now()
	must(c.t, c.nodes[i].cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-c.nodes[i].ended:
	case <-time.After(patience):
		c.t.Fatalf("node %d does not stop", i+1)
	}
	stopped = time.Since(began)
	if code := c.nodes[i].cmd.ProcessState.ExitCode(); code != 0 {
		c.t.Errorf("node %d ended with %d", i+1, code)
	}
	c.start(i, binary)
	return stopped, time.Since(began) - stopped
}

// front runs a proxy with its documented configuration.
func (c *cluster) front(name, sample, port string, args func(dir, config string) []string) {
	t := c.t
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			t.Fatalf("%s is not installed: run this through scripts/with-proxies.sh", name)
		}
	}
	dir := filepath.Join(c.dir, name)
	must(t, os.Mkdir(dir, 0o755))
	text, err := os.ReadFile(filepath.Join("../../docs/operations/proxies", sample))
	must(t, err)
	replace := []string{"/etc/signet/", c.dir + "/", "id.example.com", "localhost", "listen 443", "listen " + port,
		"bind :443", "bind :" + port}
	for i, node := range c.ports {
		replace = append(replace, fmt.Sprint("127.0.0.1:", 8081+i), "127.0.0.1:"+node)
	}
	config := filepath.Join(dir, sample)
	must(t, os.WriteFile(config, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o644))
	cmd := exec.Command(path, args(dir, config)...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	p := &proxy{name: name, url: "https://localhost:" + port,
		client: &http.Client{Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	c.proxies = append(c.proxies, p)
	testkit.RunProxy(t, name, cmd, p.client, p.url)
}

// finish stops all nodes and checks the log and the state.
func (c *cluster) finish(binary string) {
	c.t.Helper()
	for _, n := range c.nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, n := range c.nodes {
		<-n.ended
	}
	// After an upgrade, nodes bring objects into their new shape in the background: migrate does what is left.
	for _, command := range [][]string{{"migrate"}, {"rebuild", "--check"}, {"verify"}} {
		if out, err := testkit.Command(binary, append(command, c.dataArgs(0)...)...).CombinedOutput(); err != nil {
			c.t.Errorf("%v: %v\n%s", command, err, out)
		}
	}
}
