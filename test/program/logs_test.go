package program

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestNoSecretIsLogged puts secrets into every place where a caller could, and looks for them in the output.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, s *site) {
				p := launch(t,
					program(nil, append(s.args("start"), "--listen", "localhost:0", "--metrics-listen", "localhost:0",
						"--log-format", format, "--log-level", "debug", "--trusted-proxies", "127.0.0.1")...))
				p.awaitReady(t)
				secrets := useSecrets(t, s, p)
				metrics, err := io.ReadAll(answer(t, http.DefaultClient,
					newRequest(t, "GET", "http://"+p.metrics+"/metrics")).Body)
				if err != nil {
					t.Fatal(err)
				}
				p.stop(t)
				log, requests := p.stderr.String(), 0
				for text := range strings.Lines(log) {
					l, ok := parseLine(text)
					if !ok {
						t.Errorf("this is no line of a log in the format %s: %s", format, text)
					}
					if l.Msg == "request" {
						requests++
					}
				}
				if requests < 20 || !strings.Contains(log, "SessionService/CreateSession") {
					t.Errorf("only %d requests are in the log: nothing can be found in it", requests)
				}
				for name, secret := range secrets {
					for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret),
						fmt.Sprintf("%q", secret)} {
						for where, text := range map[string]string{"log": log, "output": p.stdout.String(),
							"metrics": string(metrics)} {
							if i := strings.Index(text, form); i >= 0 {
								t.Errorf("%s is in the %s: …%s…", name, where,
									text[max(0, i-200):min(len(text), i+100)])
							}
						}
					}
				}
			})
		})
	}
}

// useSecrets gives back what must not be found.
func useSecrets(t *testing.T, s *site, p *process) map[string]string {
	t.Helper()
	admin := s.admin(t)
	secrets := map[string]string{"the master key": strings.TrimSpace(string(readFile(t, s.path("master.key")))),
		"the first password": admin.Password, "the first token": admin.Token}
	if s.Engine == testdb.Postgres {
		secrets["the database address"] = s.URL
	}
	secret := func(what string) string {
		secrets[what] = "hush" + strings.Map(func(r rune) rune { // letters alone: they fit everywhere
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return 'x'
		}, newKey()[:24])
		return secrets[what]
	}
	c := newClient(t, p, "")
	signIn := func(status int, name, password string) {
		t.Helper()
		c.want(t, status, "POST", "/v1/sessions", object{"loginName": name, "password": password})
	}
	domain := admin.LoginName[strings.IndexByte(admin.LoginName, '@'):]
	signIn(401, admin.LoginName, secret("a wrong password"))
	signIn(401, secret("a password typed for a name"), "x")
	signIn(401, secret("a password typed for a name in a domain")+domain, "x")
	token := c.signIn(t, admin.LoginName, admin.Password)
	secrets["a session token"] = token
	person, owner := c.with(token), c.with(admin.Token)

	for _, bad := range []string{secret("a token of no form"), "sgn_ses_" + secret("a token that nobody has"),
		token[:len(token)-1], token + "x"} {
		c.with(bad).want(t, 401, "GET", "/v1/users/me", nil)
	}
	person.want(t, 400, "GET", "/v1/users/me?token="+secret("a query value"), nil)
	person.want(t, 400, "GET", "/v1/users/me?"+secret("a query name")+"=1", nil)
	owner.want(t, 404, "GET", "/v1/users/"+secret("an identifier"), nil)
	owner.want(t, 404, "GET", "/v1/"+secret("a path"), nil)
	c.want(t, 404, "POST", "/signet.v1.UserService/"+secret("a method"), object{})
	owner.want(t, 400, "POST", "/v1/sessions", object{"passwrod": secret("the value of an unknown field")})
	owner.want(t, 400, "POST", "/v1/sessions", object{secret("the name of an unknown field"): 1})
	owner.want(t, 400, "POST", "/v1/sessions",
		object{"loginName": 1, "password": object{"a": secret("a value of the wrong type")}})
	owner.want(t, 400, "POST", "/v1/users/"+admin.UserID+"/password",
		object{"password": strings.Repeat(secret("a password too long"), 9)})
	person.want(t, 400, "PUT", "/v1/users/me/password",
		object{"currentPassword": secret("a wrong current password"),
			"newPassword": secret("a new password that is not taken")})
	owner.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("One", secret("an initial password")))
	refused := newOrg("Two", secret("an initial password that is not taken"))
	refused["roles"] = []string{secret("a role")}
	owner.want(t, 400, "POST", "/v1/orgs/_setup", refused)
	person.want(t, 200, "PUT", "/v1/users/me/profile", profile(secret("a personal name")))
	person.want(t, 200, "PUT", "/v1/users/me/password",
		object{"currentPassword": admin.Password, "newPassword": secret("a new password")})

	r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/v1/sessions",
		strings.NewReader(`{"password": "`+secret("a body that breaks off")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, name := range []string{"User-Agent", "Cookie", "X-Forwarded-For", "Forwarded", "Origin", "Idempotency-Key",
		"If-Match", "X-Service-Orgid", "Traceparent"} {
		r.Header.Set(name, secret("the header "+name))
	}
	r.Host = secret("the host")
	answer(t, c.http, r)
	r = newRequest(t, "GET", p.url+"/v1/users/me")
	r.Header.Set("Authorization", "Basic "+secret("basic credentials"))
	answer(t, c.http, r)
	r = newRequest(t, "GET", p.url+"/healthz")
	r.Header.Set("X-Request-Id", secret("a request id with characters that do harm")+"\t \x80")
	answer(t, c.http, r)

	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/device_authorization", "/oauth/par",
		"/oauth/userinfo"} {
		for _, names := range []string{"grant_type client_id client_secret", "client_id client_secret token",
			"client_id scope access_token", "client_assertion client_assertion_type code"} {
			form := url.Values{}
			for name := range strings.FieldsSeq(names) {
				form.Set(name, secret(name+" for "+path))
			}
			r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+path, strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if got := answer(t, c.http, r); got.StatusCode/100 != 4 {
				t.Errorf("%s with %s: %s", path, names, got.Status)
			}
		}
	}

	for _, text := range []string{"GET /" + secret("a request that is no HTTP") + " HTTP/9.9\r\n\r\n",
		secret("no request at all") + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n" + secret("a header that is none") + "\r\n\r\n"} {
		conn, err := net.Dial("tcp", p.listen)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(conn)
		if err != nil || !bytes.HasPrefix(said, []byte("HTTP/1.1 ")) {
			t.Errorf("%q gets %q %v", text, said, err)
		}
		conn.Close()
	}
	return secrets
}

func TestQuietLog(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "--listen", "localhost:"+testkit.FreePort(t))
	admin := s.admin(t)
	p.stop(t)
	p = s.launch(t, nil, "--log-level", "error", "--listen", p.listen) // the last one counts
	p.url = admin.URL
	c := newClient(t, p, admin.Token)
	for {
		if status, _, err := c.do(t.Context(), "GET", "/readyz", nil); err == nil && status == 200 {
			break
		}
		select {
		case <-p.done:
			t.Fatal("it ended")
		default:
		}
	}
	c.want(t, 200, "GET", "/v1/users/me", nil)
	p.stop(t)
	if p.stderr.String() != "" {
		t.Errorf("with --log-level error it says:\n%s", p.stderr)
	}
}
