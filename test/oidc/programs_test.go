//go:build clients

package oidc_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// built builds a program of others, in a module of its own that has the versions that the program asks for.
func built(t *testing.T, module, main string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), module)
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("../clients", module), "build",
		"-o", program, main)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return program
}

// runs runs a program until the test ends, and goes on when the program listens.
func (r *relying) runs(program string, arguments ...string) {
	r.t.Helper()
	run := exec.CommandContext(r.t.Context(), program, arguments...)
	run.Stdout, run.Stderr = r.said, r.said
	must(r.t, run.Start())
	ended := make(chan struct{})
	go func() {
		_ = run.Wait()
		close(ended)
	}()
	r.t.Cleanup(func() { <-ended }) // the test's context ends it
	testkit.Await(r.t, program+" listens", func() bool {
		select {
		case <-ended:
			r.t.Fatalf("%s does not start: %s", program, r.said)
		default:
		}
		c, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
		return err == nil && c.Close() == nil
	})
}

// Somebody signs in by dex's connector, and it knows their name and e-mail address.
func TestDexRelies(t *testing.T) {
	program := built(t, "dex", ".")
	w := open(t, testdb.New(t, testdb.SQLite))
	r, _ := w.relying("/callback", web)
	r.runs(program, w.url, r.id, r.secret, r.base)
	got := r.open(w.visitor(w.userID), "GET", r.base+"/login", nil)
	if got.json["UserID"] != w.userID || got.json["Username"] != "Jo Doe" ||
		got.json["Email"] != w.names[w.userID]+"@mail.test" || got.json["EmailVerified"] != true {
		t.Errorf("it showed %d %s\nand said %s", got.status, got.body, r.said)
	}
}

// A page that loads many things at once makes oauth2-proxy refresh as often at the same time, with one refresh token:
// every request succeeds, and the grant goes on.
func TestOAuth2ProxyReliesAndRefreshesInParallel(t *testing.T) {
	program := built(t, "oauth2proxy", "github.com/oauth2-proxy/oauth2-proxy/v7")
	w := open(t, testdb.New(t, testdb.SQLite))
	r, port := w.relying("/oauth2/callback",
		web+`,"grantTypes":["GRANT_TYPE_AUTHORIZATION_CODE","GRANT_TYPE_REFRESH_TOKEN"]`)
	r.runs(program, "--provider=oidc", "--client-id="+r.id, "--client-secret="+r.secret,
		"--redirect-url="+r.base+"/oauth2/callback", "--oidc-issuer-url="+w.url,
		"--cookie-secure=false", "--cookie-secret=a-secret-of-32-bytes-in-this-tes", "--email-domain=*",
		"--upstream=static://200", fmt.Sprintf("--http-address=127.0.0.1:%d", port),
		"--scope=openid email profile offline_access", "--cookie-refresh=1s")
	got := r.open(w.visitor(w.userID), "GET", r.base+"/oauth2/start?rd=/oauth2/userinfo", nil)
	if got.json["email"] != w.names[w.userID]+"@mail.test" || got.json["user"] != w.userID {
		t.Fatalf("it showed %d %s\nand said %s", got.status, got.body, r.said)
	}
	for round := range 2 {
		r.refreshesAtOnce(round)
	}
}

// refreshesAtOnce sends six requests with the same cookie when it is time to refresh. The browser keeps one of the
// cookies that come back.
func (r *relying) refreshesAtOnce(round int) {
	t := r.t
	t.Helper()
	since := time.Now()
	// as it counts
	testkit.Await(t, "oauth2-proxy wants to refresh",
		func() bool { return time.Now().Truncate(time.Second).Sub(since) > time.Second })
	at, err := url.Parse(r.base)
	must(t, err)
	cookies := r.http.Jar.Cookies(at)
	answers := make([]*http.Response, 6)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = r.withCookies(cookies) })
	}
	group.Wait()
	for i, a := range answers {
		// Without a new cookie the refresh has failed, and the old session lasts a little longer.
		if a == nil || a.StatusCode != http.StatusOK || len(a.Cookies()) == 0 || a.Cookies()[0].MaxAge < 0 {
			t.Errorf("round %d, answer %d: %v\nit said %s", round, i, a, r.said)
			return
		}
		r.http.Jar.SetCookies(at, a.Cookies())
	}
}

func (r *relying) withCookies(cookies []*http.Cookie) *http.Response {
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+"/", nil)
	if err != nil {
		return nil
	}
	for _, c := range cookies {
		q.AddCookie(c)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil
	}
	_ = a.Body.Close()
	return a
}

// agent is oidc-agent, with a directory of its own.
type agent struct {
	t           *testing.T
	environment []string
}

func startAgent(t *testing.T) *agent {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "signet-agent-") // the path of a socket is short
	must(t, err)
	socket := filepath.Join(dir, "socket")
	a := &agent{t: t, environment: append(os.Environ(), "OIDC_CONFIG_DIR="+dir, "OIDC_SOCK="+socket,
		"OIDC_ENCRYPTION_PW=a password of this test")}
	run := a.command("oidc-agent", "--console", "--socket-path="+socket)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) } // it ends its other half
	must(t, run.Start())
	t.Cleanup(func() {
		_ = run.Wait()
		must(t, os.RemoveAll(dir))
	})
	testkit.Await(t, "oidc-agent listens", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	return a
}

func (a *agent) command(name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(a.t.Context(), name, arguments...)
	c.Env = a.environment
	return c
}

// token is an access token that the agent gives to a program that asks for one.
func (a *agent) token(arguments ...string) string {
	a.t.Helper()
	out, err := a.command("oidc-token", append(arguments, "signet")...).Output()
	must(a.t, err)
	return string(bytes.TrimSpace(out))
}

var userCode = regexp.MustCompile(`enter the code: (\S+)`)

// oidc-agent has no secret, and sends an empty one. Somebody allows it to have tokens at another device; it refreshes
// them.
func TestOIDCAgentConnectsAsADevice(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	id := w.api(w.org, "POST", "/v1/apps",
		`{"name":"Agent","type":"APPLICATION_TYPE_NATIVE","grantTypes":["GRANT_TYPE_DEVICE_CODE","GRANT_TYPE_REFRESH_TOKEN"]}`).json["appId"].(string)
	a := startAgent(t)
	said := &testkit.Log{}
	generate := a.command("oidc-gen", "--flow=device", "--client-id="+id, "--client-secret=", "--iss="+w.url,
		"--scope=openid profile email offline_access", "--pw-env", "--prompt=none", "signet")
	generate.Stdout, generate.Stderr = said, said
	must(t, generate.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("oidc-gen said %s", said)
		}
	})
	testkit.Await(t, "oidc-gen shows a code", func() bool { return userCode.MatchString(said.String()) })
	page := w.visitor(w.userID).goOn(w.url + "/device?user_code=" + userCode.FindStringSubmatch(said.String())[1])
	if err := generate.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, page.body)
	}
	first, second := a.token(), a.token("--force-new")
	got := w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+second)
	if first == second || got.json["sub"] != w.userID || got.json["name"] != "Jo Doe" {
		t.Errorf("%s: %d %s", second, got.status, got.body)
	}
}
