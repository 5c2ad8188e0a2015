package browser_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/portal"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// behindPortal is an installation behind nginx, which brings the tokens of a portal.
type behindPortal struct {
	*installation
	*portal.Portal
	idp string
}

// atPortal starts all three. The configuration of nginx is the one of the guide, with what its comments say replaced.
// Header names where nginx puts the token; empty: where the provider looks for it that names none.
func atPortal(t *testing.T, header string, more map[string]any) *behindPortal {
	t.Helper()
	port := testkit.FreePort(t)
	b := &behindPortal{Portal: portal.Start(t), installation: installed(t, func(c *server.Config) {
		c.Listen, c.ExternalURL, c.TrustedProxies, c.OutboundAllow = "127.0.0.1:0", "https://localhost:"+port,
			[]string{"127.0.0.1"}, []string{"127.0.0.0/8", "::1/128"}
	})}
	config := b.Config("Portal", header)
	for name, value := range more {
		config[name] = value
	}
	b.idp = b.api("POST", "/v1/idps/jwt", config)["idpId"].(string)
	if header == "" {
		header = "Authorization"
	}
	b.For(b.idp, header, nil)
	nginx(t, port, "127.0.0.1:8080", strings.TrimPrefix(b.direct, "http://"), "127.0.0.1:9000",
		b.Listener.Addr().String(), "idp_REPLACE", b.idp,
		"X-Portal-Token", header, "x_portal_token", strings.ReplaceAll(strings.ToLower(header), "-", "_"))
	return b
}

// nginx runs docs/guides/providers/jwt-nginx.conf until the test ends.
func nginx(t *testing.T, port string, replace ...string) {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("nginx is not installed: run this through scripts/with-proxies.sh")
		}
		t.Skip("nginx is not installed: run this through scripts/with-proxies.sh")
	}
	dir, err := os.MkdirTemp("/tmp", "signet-portal-") // others may read it: nginx gives up the rights of root
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	testkit.Certify(t, dir)
	sample, err := os.ReadFile("../../docs/guides/providers/jwt-nginx.conf")
	must(t, err)
	text := strings.NewReplacer(append(replace, "/etc/signet/", dir+"/", "id.example.com", "localhost", "listen 443",
		"listen 127.0.0.1:"+port)...).Replace(string(sample))
	around := "daemon off;\nworker_processes 1;\npid " + dir +
		"/pid;\nerror_log stderr;\nevents {}\nhttp {\n\taccess_log off;\n"
	for _, temp := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		around += "\t" + temp + "_temp_path " + dir + "/" + temp + ";\n"
	}
	main := filepath.Join(dir, "main.conf")
	must(t, os.WriteFile(main, []byte(around+text+"}\n"), 0o644))
	cmd := exec.Command(program, "-p", dir, "-e", "stderr", "-c", main)
	said := &testkit.Log{}
	cmd.Stdout, cmd.Stderr = said, said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx said:\n%s", said)
		}
	})
	testkit.Await(t, "nginx listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		return err == nil && conn.Close() == nil
	})
}

// visitor is somebody at a browser that takes the certificate of nginx.
func (b *behindPortal) visitor(t *testing.T, chromium *browser.Browser) *visitor {
	v := b.installation.visitor(t, chromium)
	v.TrustAnybody()
	return v
}

// button presses the button of a provider.
func (v *visitor) button(idp string) {
	v.t.Helper()
	v.Click(`form[action*="` + idp + `"] button`)
}

// link presses the button of a provider on the page of the account, and the one on the page that asks.
func (v *visitor) link(idp string) {
	v.t.Helper()
	v.Submit(`a[href*="` + idp + `"]`)
	v.button(idp)
}

// atPortal signs in at the portal.
func (v *visitor) atPortal(name string) {
	v.t.Helper()
	v.Fill("input[name=login]", name)
	v.Submit("button")
}

// says checks the heading of a page, and what axe finds on it.
func (v *visitor) says(heading string) {
	v.t.Helper()
	v.WaitFor("h1")
	if got := v.Text("h1"); got != heading {
		v.t.Fatalf("%s is headed %q, not %q: %s", v.At(), got, heading, v.Text("main"))
	}
	v.saysNothingBad(heading)
	for _, wide := range v.Overflowing() {
		v.t.Errorf("%s: %s", heading, wide)
	}
}

// failures are the checks that refused a sign-in, as administrators see them.
func (i *installation) failures() (checks []string) {
	i.t.Helper()
	events, _ := i.api("GET", "/v1/events?types=idp_sign_in.*&pageSize=100", nil)["events"].([]any)
	for _, e := range events {
		payload, _ := e.(map[string]any)["payload"].(map[string]any)
		checks = append(checks, fmt.Sprint(payload["check"]))
	}
	return checks
}

// failed checks that administrators see why.
func (i *installation) failed(check string) {
	i.t.Helper()
	if found := i.failures(); !slices.Contains(found, check) {
		i.t.Errorf("administrators see %q, not %q", found, check)
	}
}

// emailOf reads the address of somebody, and whether it is verified.
func (i *installation) emailOf(userName string) (address string, verified bool) {
	i.t.Helper()
	users, _ := i.api("GET", "/v1/users?pageSize=100", nil)["users"].([]any)
	for _, u := range users {
		if u := u.(map[string]any); u["userName"] == userName {
			human, _ := u["human"].(map[string]any)
			address, _ = human["email"].(string)
			verified, _ = human["isEmailVerified"].(bool)
			return address, verified
		}
	}
	i.t.Fatalf("there is no %s: %v", userName, users)
	return "", false
}

// manager adds somebody who may change providers and set no passwords, and gives a token.
func (i *installation) manager() string {
	i.t.Helper()
	id := i.person("manager")
	i.api("PUT", "/v1/orgs/"+i.org+"/members/"+id, map[string]any{"roles": []string{"ORG_SETTINGS_MANAGER"}})
	status, in := i.call("", "POST", "/v1/sessions", map[string]any{"loginName": "manager", "password": firstPassword})
	if status != http.StatusOK {
		i.t.Fatalf("%d %v", status, in)
	}
	return in["token"].(string)
}

// One path to each page of signing in through a provider. The rest is in what make providers runs.
func TestThePagesOfProviders(t *testing.T) {
	browser.NeedAxe(t)
	i, b := atPortal(t, "X-Portal-Token", map[string]any{"autoRegister": true, "stylingType": "STYLING_TYPE_GOOGLE"}),
		browser.Start(t)
	const security = "/account/security"
	away := i.api("POST", "/v1/idps/oidc",
		map[string]any{"name": "Away", "issuer": "http://127.0.0.1:1", "clientId": "c", "clientSecret": "x"})["idpId"].(string)

	t.Run("a form asks for what is missing, and somebody without a password proves again through the provider",
		func(t *testing.T) {
			i.For(i.idp, "X-Portal-Token",
				map[string]any{"given_name": nil, "family_name": nil, "auth_time": time.Now().Add(-time.Hour).Unix()})
			v := i.visitor(t, b)
			v.Open(i.ask())
			if !v.Has(`form[action*="`+i.idp+`"] .google`) || !v.Has(`form[action*="`+away+`"] .quiet`) {
				t.Error("the buttons are not of their styles")
			}
			v.says("Sign in")
			v.button(i.idp)
			v.atPortal("nora")
			v.WaitFor("#firstName")
			v.says("Create your account")
			v.Submit("main form button.primary")
			v.sees("#firstName-problem", "")
			v.Fill("#firstName", "Nora")
			v.Fill("#lastName", "Doe")
			v.Fill("#email", "edited@mail.test")
			v.Submit("main form button.primary")
			v.arrives()
			if address, verified := i.emailOf("nora"); address != "edited@mail.test" || verified {
				t.Errorf("the address that was typed is %s, verified: %t", address, verified)
			}
			i.For(i.idp, "X-Portal-Token", nil)
			v.Open(i.url + security + "?link=" + away)
			v.says("Confirm it’s you")
			v.button(i.idp)
			v.atPortal("nora")
			v.says("Continue to sign in?") // it went on, to the provider that is to be linked
			v.Submit("main form button")
			v.says("The other service does not answer")
			i.failed("discovery")
			v.Submit(`main a[href="/account/security"]`)
			v.says("Security")
			if v.Has(".notice.done") {
				t.Errorf("it says %s", v.Text(".notice.done"))
			}
		})

	t.Run("an account is linked on the account page, suspended, confirmed and unlinked", func(t *testing.T) {
		i.person("bob")
		v := i.visitor(t, b)
		v.Open(i.url + security)
		v.name("bob")
		v.password(firstPassword)
		v.says("Security")
		v.link(i.idp)
		v.atPortal("bob-at-portal")
		v.says("Link the two accounts?")
		v.Submit("button[value=allow]")
		v.sees(".notice.done", "linked")
		v.says("Security")

		// Somebody who could not set a password changes the provider: whoever comes from there is not let in for it.
		status, read := i.call(i.manager(), "PATCH", "/v1/idps/"+i.idp,
			map[string]any{"jwt": map[string]any{"audience": "other"}, "updateMask": "jwt.audience"})
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, read)
		}
		i.For("other", "X-Portal-Token", nil)
		v = i.visitor(t, b)
		v.Open(i.ask())
		v.button(i.idp)
		v.atPortal("bob-at-portal")
		v.says("Please confirm this link")
		v.Submit("main a.button")
		v.name("bob")
		v.password(firstPassword)
		v.says("Link the two accounts?")
		v.Submit("button[value=allow]")
		v.arrives()
		v.Forget()
		v.Open(i.ask())
		v.button(i.idp)
		v.atPortal("bob-at-portal")
		v.arrives()

		v = i.visitor(t, b)
		v.Open(i.url + security)
		v.name("bob")
		v.password(firstPassword)
		v.Submit("button[value=unlink]")
		v.sees(".notice.done", "no longer linked")
	})

	t.Run("what a portal sends is garbage", func(t *testing.T) {
		i.Garbage(true)
		defer i.Garbage(false)
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.button(i.idp)
		v.atPortal("nora")
		v.says("This sign-in did not work")
		i.failed("token")
		v.Submit("main a") // another way leads back
		v.WaitFor("#loginName")
	})
}
