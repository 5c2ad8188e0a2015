//go:build providers

package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/portal"
	"github.com/signet-idm/signet/test/testkit"
)

type values = map[string]any

// foreign is npm oidc-provider as a provider of an installation.
type foreign struct{ address, idp string }

// foreign configures one with a token of somebody, and starts it with its quirks.
func (i *installation) foreign(token string, options, more values) foreign {
	i.t.Helper()
	port := testkit.FreePort(i.t)
	config := values{"name": "Foreign", "issuer": foreignAt(port), "clientId": foreignClient,
		"clientSecret": foreignSecret, "autoRegister": true}
	maps.Copy(config, more)
	status, made := i.call(token, "POST", "/v1/idps/oidc", config)
	if status != http.StatusOK {
		i.t.Fatalf("%d %v", status, made)
	}
	return i.startForeign(port, made["idpId"].(string), options)
}

const (
	foreignClient = "signet"
	foreignSecret = "a secret of the client"
)

func foreignAt(port string) string { return "http://127.0.0.1:" + port }

// startForeign starts one that is configured already. See ../federation/provider.mjs.
func (i *installation) startForeign(port, idp string, options values) foreign {
	i.t.Helper()
	if _, err := os.Stat("../clients/node_modules/oidc-provider"); err != nil {
		i.t.Fatal("oidc-provider is not installed: run this through scripts/with-browser.sh")
	}
	f := foreign{address: foreignAt(port), idp: idp}
	started := values{
		"port": json.Number(port),
		"clients": []values{{"client_id": foreignClient, "client_secret": foreignSecret,
			"redirect_uris": []string{i.url + "/login/idp/" + f.idp + "/callback"}}},
	}
	maps.Copy(started, options)
	text, err := json.Marshal(started)
	must(i.t, err)
	ctx, stop := context.WithCancel(context.Background())
	run := exec.CommandContext(ctx, "node", "../federation/provider.mjs", string(text))
	run.Stderr = io.Discard // it warns of what is fine in tests
	out, err := run.StdoutPipe()
	must(i.t, err)
	must(i.t, run.Start())
	i.t.Cleanup(func() {
		stop()
		_ = run.Wait()
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	must(i.t, err)
	return f
}

// at signs in at the provider.
func (f foreign) at(v *visitor, name string) {
	v.t.Helper()
	v.WaitFor("input[name=login]")
	if !strings.HasPrefix(v.At(), f.address) {
		v.t.Fatalf("at %s", v.At())
	}
	v.Fill("input[name=login]", name)
	v.Submit("button")
}

func allowed(c *server.Config) { c.OutboundAllow = []string{"127.0.0.0/8", "::1/128"} }

func TestProvidersWithTheirQuirks(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	for name, c := range map[string]struct{ options, config values }{
		"as it is":                 {nil, nil},
		"no userinfo":              {values{"noUserinfo": true}, nil},
		"no iss in the answer":     {values{"issOff": true}, nil},
		"an answer that is posted": {nil, values{"formPost": true}},
		"posted, and no iss in it": {values{"issOff": true}, values{"formPost": true}},
	} {
		t.Run(name, func(t *testing.T) {
			i := installed(t, allowed)
			f := i.foreign(i.token, c.options, c.config)
			if found := i.api("POST", "/v1/idps/"+f.idp+"/_check", values{}); found["ok"] != true {
				t.Errorf("a check finds %v", found)
			}
			for n := range 2 { // registered, then known
				v := i.visitor(t, b)
				v.Open(i.ask())
				v.button(f.idp)
				f.at(v, "ana")
				if n == 0 {
					v.creates()
				}
				v.arrives()
			}
			if address, verified := i.emailOf("ana"); address != "ana@example.org" || !verified {
				t.Errorf("the address is %s, verified: %t", address, verified)
			}
		})
	}
}

func TestProvidersThatFail(t *testing.T) {
	browser.NeedAxe(t)
	i, b := installed(t, allowed), browser.Start(t)
	f := i.foreign(i.token, nil, nil)
	t.Run("the person says no there", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.button(f.idp)
		v.WaitFor("input[name=login]")
		v.Evaluate(`(() => { const e = document.querySelector("input"); e.name = "cancel"; e.value = "1" })()`, nil)
		v.Submit("button")
		v.says("You were not signed in")
		i.failed("denied")
	})
	t.Run("its secret is another one", func(t *testing.T) {
		i.api("PATCH", "/v1/idps/"+f.idp,
			values{"oidc": values{"clientSecret": "another one"}, "updateMask": "oidc.clientSecret"})
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.button(f.idp)
		f.at(v, "ana")
		v.says("This sign-in did not work")
		i.failed("client")
		i.api("PATCH", "/v1/idps/"+f.idp,
			values{"oidc": values{"clientSecret": "a secret of the client"}, "updateMask": "oidc.clientSecret"})
	})
	t.Run("its keys are rotated", func(t *testing.T) {
		in := func() (arrived bool) {
			v := i.visitor(t, b)
			v.Open(i.ask())
			v.button(f.idp)
			f.at(v, "ana")
			v.WaitFor("h1, #arrived")
			if v.Has("#firstName") { // the first time
				v.creates()
				v.WaitFor("#arrived")
			}
			return v.Has("#arrived")
		}
		if !in() {
			t.Fatal("nobody is signed in")
		}
		resp, err := http.Get(f.address + "/test/rotate")
		must(t, err)
		must(t, resp.Body.Close())
		for end := time.Now().Add(time.Minute); !in(); { // unknown keys are looked for every 30 seconds
			if time.Now().After(end) {
				t.Fatal("the new key is not found")
			}
		}
		i.failed("key")
	})
	t.Run("a broken callback", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.Open(i.url + "/login/idp/" + f.idp + "/callback?state=garbage&code=x")
		v.WaitFor("h1")
		v.saysNothingBad("a broken callback")
		i.failed("state")
	})
}

func TestProvidersThatAreChanged(t *testing.T) {
	browser.NeedAxe(t)
	i, b, second := atPortal(t, "", values{"autoRegister": true}), browser.Start(t), portal.Start(t)
	begin := func() *visitor {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.button(i.idp)
		return v
	}
	v := begin()
	v.atPortal("ana")
	v.creates()
	v.arrives() // the header that is empty means authorization

	t.Run("UpdateJWTIdentityProvider", func(t *testing.T) {
		change := func(endpoint, keys string) {
			i.api("PUT", "/v1/idps/"+i.idp+"/jwt_config",
				values{"jwtEndpoint": endpoint, "issuer": portal.Issuer, "keysEndpoint": keys})
		}
		change(second.Address("/login"), i.Portal.URL+"/keys")
		v := begin()
		v.WaitUntilBelow(second.Address("/login"))
		v.atPortal("ana")
		v.arrives()
		change(second.Address("/login"), second.URL+"/keys")
		v = begin()
		v.atPortal("ana")
		v.says("This sign-in did not work")
		i.failed("key")
		change(i.Portal.Address("/login"), i.Portal.URL+"/keys")
		v = begin()
		v.atPortal("ana")
		v.arrives()
	})
	t.Run("UpdateIdentityProvider", func(t *testing.T) {
		i.api("PUT", "/v1/idps/"+i.idp, values{"name": "Renamed", "stylingType": "STYLING_TYPE_GOOGLE"})
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.sees(".google", "Sign in with Renamed")
		v.saysNothingBad("sign-in")
		v.button(i.idp)
		v.atPortal("somebody-new") // auto registration went off by it
		v.says("This account is not known here yet")
		i.api("PUT", "/v1/idps/"+i.idp, values{"name": "Plain", "autoRegister": true})
		v = i.visitor(t, b)
		v.Open(i.ask())
		v.sees(".quiet", "Sign in with Plain")
		v.button(i.idp)
		v.atPortal("somebody-new")
		v.creates()
		v.arrives()
	})
	t.Run("ModifyIdentityProvider", func(t *testing.T) {
		i.api("PATCH", "/v1/idps/"+i.idp, values{"jwt": values{"audience": "here"}, "updateMask": "jwt.audience"})
		v := begin()
		v.atPortal("ana")
		v.says("This sign-in did not work")
		i.failed("audience")
		i.For("here", "Authorization", nil)
		v = begin()
		v.atPortal("ana")
		v.arrives()
		i.api("PATCH", "/v1/idps/"+i.idp,
			values{"jwt": values{"headerName": "x-other"}, "updateMask": "jwt.headerName"})
		v = begin()
		v.atPortal("ana")
		v.says("This sign-in did not work")
		i.failed("token")
	})
}

func TestProvidersAndSecondFactors(t *testing.T) {
	browser.NeedAxe(t)
	i, b := installed(t, allowed), browser.Start(t)
	f := i.foreign(i.token, nil, values{"autoRegister": false})
	i.person("tom")
	v := i.visitor(t, b)
	v.Open(i.url + "/account/security/totp")
	v.name("tom")
	v.password(firstPassword)
	v.WaitFor(".secret code")
	key, begun := strings.ReplaceAll(v.Text(".secret code"), " ", ""), time.Now()
	v.Fill("#code", factortest.Code(key, begun))
	v.Submit("button.primary")
	v.Open(i.url + "/account/security")
	v.link(f.idp)
	f.at(v, "tom-there")
	v.says("Link the two accounts?")
	v.Submit("button[value=allow]")
	v.sees(".notice.done", "linked")

	v = i.visitor(t, b)
	v.Open(i.ask())
	v.button(f.idp)
	f.at(v, "tom-there")
	v.WaitFor("#code")
	v.Open(i.ask()) // no address leads past it
	v.WaitFor("#code")
	v.Open(i.url + "/account")
	v.WaitFor("#code")
	v.Open(i.ask())
	v.Fill("#code", factortest.Code(key, begun.Add(30*time.Second)))
	v.Submit("main form button.primary")
	v.arrives()

	// Who comes for somebody else's account, and signs in to their own, links nothing before they have proven all of
	// it.
	v = i.visitor(t, b)
	v.Open(i.ask())
	v.button(f.idp)
	f.at(v, "stranger")
	v.says("This account is not known here yet")
	v.Submit("main a.button")
	v.name("tom")
	v.password(firstPassword)
	v.WaitFor("#code")
	if v.Has("button[value=allow]") {
		t.Error("an account can be linked with half a sign-in")
	}
}

// names answers for DNS.
type names struct {
	mu    sync.Mutex
	texts map[string]string
}

func (n *names) set(name, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts[name+"."] = text
}

func (n *names) LookupTXT(_ context.Context, name string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts[name] == "" {
		return nil, errors.New("no such name")
	}
	return []string{n.texts[name]}, nil
}

func TestProvidersThatAreTheOnlyWay(t *testing.T) {
	browser.NeedAxe(t)
	dns, b := &names{texts: map[string]string{}}, browser.Start(t)
	i := installed(t, allowed, func(c *server.Config) { c.Resolver = dns })
	i.api("PATCH", "/v1/apps/"+i.clientID, values{"allOrganizations": true, "updateMask": "allOrganizations"})
	const domain = "corp.example"
	made := i.api("POST", "/v1/orgs/_setup", values{
		"org": values{"name": "Corp", "domain": domain},
		"human": values{"userName": "owner", "password": firstPassword,
			"profile": values{"firstName": "O", "lastName": "W"},
			"email":   values{"email": "owner@" + domain, "isEmailVerified": true}},
	})
	org := made["orgId"].(string)
	session := func(name string) (int, values) {
		return i.call("", "POST", "/v1/sessions", values{"loginName": name + "@" + domain, "password": firstPassword})
	}
	_, in := session("owner")
	owner, _ := in["token"].(string)
	as := func(method, path string, body any) values {
		t.Helper()
		status, read := i.call(owner, method, path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %v", method, path, status, read)
		}
		return read
	}
	as("POST", "/v1/users/human", values{
		"userName":         "dora",
		"password":         firstPassword,
		"noChangeRequired": true,
		"profile":          values{"firstName": "D", "lastName": "O"},
		"email":            values{"email": "dora@" + domain, "isEmailVerified": true},
	})
	f := i.foreign(owner, nil, nil)
	if status, _ := session("dora"); status != http.StatusOK {
		t.Fatal("the password does not count")
	}
	policy := values{"signInMethods": []string{"SIGN_IN_METHOD_IDENTITY_PROVIDER"}, "idpIds": []string{f.idp}}
	if said, err := json.Marshal(as("PUT", "/v1/orgs/"+org+"/policy",
		values{"policy": policy})["warnings"]); err != nil || !strings.Contains(string(said), "dora") {
		t.Errorf("nobody is warned: %s", said)
	}

	t.Run("who signs in to the organization is led there with one button", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("scope", "openid urn:signet:org:id:"+org))
		v.says("Continue to sign in?")
		v.button(f.idp)
		f.at(v, "eve")
		v.creates()
		v.WaitFor("button[value=allow]")
		v.Submit("button[value=allow]")
		v.arrives()
	})
	t.Run("who said no there is not sent there again, and sees no field for a password", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("scope", "openid urn:signet:org:id:"+org))
		v.button(f.idp)
		v.WaitFor("input[name=login]")
		v.Evaluate(`(() => { const e = document.querySelector("input"); e.name = "cancel"; e.value = "1" })()`, nil)
		v.Submit("button")
		v.says("You were not signed in")
		v.Submit("main a")
		v.WaitFor(`form[action*="` + f.idp + `"]`)
		v.says("Sign in")
		if v.Has("#loginName") {
			t.Error("it asks for a name")
		}
		v.Submit(`a[href*="other=name"]`) // but an owner may have kept the password
		v.name("owner@" + domain)
		v.password(firstPassword)
		v.WaitFor("button[value=allow]")
	})
	t.Run("no password counts but the last owner's", func(t *testing.T) {
		if status, read := session("dora"); status != http.StatusUnauthorized {
			t.Errorf("%d %v", status, read)
		}
		if status, read := session("owner"); status != http.StatusOK {
			t.Errorf("the last owner is locked out: %d %v", status, read)
		}
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("dora@" + domain)
		v.WaitFor("#password")
		v.password(firstPassword)
		v.WaitFor("[role=alert]")
		v.saysNothingBad("a password that does not count")
	})
	t.Run("a domain that DNS has proven leads there", func(t *testing.T) {
		for _, d := range as("GET", "/v1/orgs/"+org+"/domains", nil)["domains"].([]any) {
			if d := d.(map[string]any); d["domain"] == domain {
				dns.set(d["verificationName"].(string), d["verificationValue"].(string))
			}
		}
		as("POST", "/v1/orgs/"+org+"/domains/"+domain+"/_verify", values{})
		policy["defaultIdpId"] = f.idp
		as("PUT", "/v1/orgs/"+org+"/policy", values{"policy": policy})
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("whoever@" + domain) // whether there is somebody of that name
		f.at(v, "eve")
		v.WaitFor("button[value=allow]")
		v.Submit("button[value=allow]")
		v.arrives()
	})
	t.Run("the last owner gets past a provider that does not work", func(t *testing.T) {
		as("PATCH", "/v1/idps/"+f.idp,
			values{"oidc": values{"issuer": "http://127.0.0.1:1", "clientSecret": ""},
				"updateMask": "oidc.issuer,oidc.clientSecret"})
		v := i.visitor(t, b)
		v.Open(i.url + "/account/security")
		v.name("owner@" + domain)
		v.WaitFor(`a[href*="other=way"]`)
		v.says("The other service does not answer")
		v.Submit(`a[href*="other=way"]`)
		v.name("owner@" + domain)
		v.password(firstPassword)
		v.says("Security")
		as("PATCH", "/v1/idps/"+f.idp,
			values{"oidc": values{"issuer": f.address, "clientSecret": "a secret of the client"},
				"updateMask": "oidc.issuer,oidc.clientSecret"})
	})
	t.Run("by idp_hint with one button", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("idp_hint", f.idp, "scope", "openid urn:signet:org:id:"+org))
		v.button(f.idp)
		f.at(v, "eve")
		v.arrives() // it was allowed before
	})
}
