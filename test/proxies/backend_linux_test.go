package proxies

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testkit"
)

// patience is how long a test waits for what should come at once.
const patience = testkit.Patience

var must = testkit.Must

// backend is a server, and a certificate for those who stand in front of it.
type backend struct {
	t      *testing.T
	listen string
	token  string // of the first administrator's session
	dir    string // holds tls.crt, tls.key and tls.pem; others may read it, for proxies give up the rights of root
	roots  *x509.CertPool
	direct *way
	log    *testkit.Log
}

// way is a way to the server: straight, or through a proxy.
type way struct {
	url  string
	http *http.Client
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	log := &testkit.Log{}
	s := servertest.Start(t, server.Config{TrustedProxies: []string{"127.0.0.1"}, ZitadelV1: true}, log)
	w := &backend{t: t, listen: s.Addr().String(), log: log}
	var err error
	w.dir, err = os.MkdirTemp("/tmp", "signet-proxies-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(w.dir) })
	must(t, os.Chmod(w.dir, 0o755))
	w.roots = testkit.Certify(t, w.dir)

	cleartext := &http.Transport{Protocols: new(http.Protocols)}
	cleartext.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(cleartext.CloseIdleConnections)
	w.direct = &way{"http://" + w.listen, &http.Client{Transport: cleartext, Timeout: patience, CheckRedirect: stay}}
	session := w.change("POST", "/v1/sessions",
		map[string]any{"loginName": s.FirstAdmin.LoginName, "password": s.FirstAdmin.Password})
	w.token = session["token"].(string)
	return w
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// change calls the API straight, and insists on success.
func (w *backend) change(method, path string, body any) map[string]any {
	w.t.Helper()
	text, err := json.Marshal(body)
	must(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.direct.url+path, bytes.NewReader(text))
	must(w.t, err)
	r.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.direct.http.Do(r)
	must(w.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(w.t, err)
	var values map[string]any
	if err := json.Unmarshal(answer, &values); err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return values
}

// proxy is one that is tested.
type proxy struct {
	name    string
	program string
	config  string   // below docs/operations/proxies
	replace []string // what else of the sample is different here: pairs of old and new
	// run tells how to run it in the foreground in a directory of its own, with the sample in the file config, and puts
	// what belongs around the sample there.
	run func(t *testing.T, dir, config string) []string
}

var all = []proxy{
	{name: "nginx", program: "nginx", config: "nginx.conf", run: runNginx},
	{name: "HAProxy with HTTP/1 to the server", program: "haproxy", config: "haproxy.cfg", run: runHAProxy},
	{name: "HAProxy with HTTP/2 to the server", program: "haproxy", config: "haproxy-h2.cfg", run: runHAProxy},
	{name: "Caddy", program: "caddy", config: "Caddyfile", run: func(t *testing.T, dir, config string) []string {
		sample, err := os.ReadFile(config)
		must(t, err)
		main := filepath.Join(dir, "main")
		must(t, os.WriteFile(main,
			append([]byte("{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"),
				sample...), 0o644))
		return []string{"run", "--adapter", "caddyfile", "--config", main}
	}},
	{name: "Apache", program: "apache2", config: "apache.conf", run: func(t *testing.T, dir, config string) []string {
		around := "ServerRoot " + dir + "\nDefaultRuntimeDir " + dir + "\nPidFile " + dir +
			"/pid\nErrorLog /dev/stderr\nLogLevel warn\nServerName localhost\nUser www-data\nGroup www-data\n"
		for _, module := range []string{"mpm_event", "authz_core", "socache_shmcb", "ssl", "http2", "proxy",
			"proxy_http", "proxy_http2"} {
			around += "LoadModule " + module + "_module /usr/lib/apache2/modules/mod_" + module + ".so\n"
		}
		main := filepath.Join(dir, "main.conf")
		must(t, os.WriteFile(main, []byte(around+"Include "+config+"\n"), 0o644))
		return []string{"-DFOREGROUND", "-f", main}
	}},
}

func runNginx(t *testing.T, dir, config string) []string {
	around := "daemon off;\nworker_processes 1;\npid " + dir +
		"/pid;\nerror_log stderr;\nevents {}\nhttp {\n\taccess_log off;\n"
	for _, temp := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		around += "\t" + temp + "_temp_path " + dir + "/" + temp + ";\n"
	}
	main := filepath.Join(dir, "main.conf")
	must(t, os.WriteFile(main, []byte(around+"\tinclude "+config+";\n}\n"), 0o644))
	return []string{"-p", dir, "-e", "stderr", "-c", main}
}

func runHAProxy(_ *testing.T, _, config string) []string { return []string{"-db", "-f", config} }

// find looks for a program also where Debian keeps those of administrators.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + program)
}

// through runs the proxy with its sample configuration, and gives the way through it.
func (w *backend) through(t *testing.T, p proxy) *way {
	t.Helper()
	program, err := find(p.program)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: run this through scripts/with-proxies.sh", p.program)
		}
		t.Skipf("%s is not installed: run this through scripts/with-proxies.sh", p.program)
	}
	dir := filepath.Join(w.dir, strings.ReplaceAll(filepath.Base(p.config), ".", "-"))
	must(t, os.Mkdir(dir, 0o755))
	sample, err := os.ReadFile(filepath.Join("../../docs/operations/proxies", p.config))
	must(t, err)
	port := testkit.FreePort(t)
	config := filepath.Join(dir, filepath.Base(p.config))
	must(t, os.WriteFile(config,
		[]byte(strings.NewReplacer(append(slices.Clone(p.replace), "127.0.0.1:8080", w.listen, "/etc/signet/",
			w.dir+"/", "id.example.com", "localhost",
			"listen 443", "listen "+port, "bind :443", "bind :"+port, ":443", ":"+port, "Listen 443",
			"Listen "+port)...).Replace(string(sample))), 0o644))
	cmd := exec.Command(program, p.run(t, dir, config)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	through := &way{"https://localhost:" + port,
		&http.Client{Transport: transport, Timeout: patience, CheckRedirect: stay}}
	testkit.RunProxy(t, p.name, cmd, through.http, through.url)
	return through
}

// grpc connects as gRPC's own library does.
func (v *way) grpc(t *testing.T, roots *x509.CertPool) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(v.url, "https://"),
		grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "")))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}
