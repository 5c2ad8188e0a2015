package browser_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
)

// upstream is another Signet that people come from, with Signet as its application.
type upstream struct {
	*installation
	app    string
	secret string
}

// another starts one. It is at an address of its own: browsers tell cookies apart by hosts, not by ports.
func another(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{installation: installed(t, func(c *server.Config) { c.Listen = "127.0.0.1:0" })}
	made := u.api("POST", "/v1/apps",
		map[string]any{"name": "Corp", "type": "APPLICATION_TYPE_WEB",
			"redirectUris": []string{"http://localhost:1/callback"}})
	u.app, u.secret = made["appId"].(string), made["clientSecret"].(string)
	return u
}

// provider makes upstream a provider of an installation.
func (i *installation) provider(u *upstream, more map[string]any) (id string) {
	i.t.Helper()
	config := map[string]any{"name": "Upstream", "issuer": u.url, "clientId": u.app, "clientSecret": u.secret}
	for name, value := range more {
		config[name] = value
	}
	id = i.api("POST", "/v1/idps/oidc", config)["idpId"].(string)
	u.api("PATCH", "/v1/apps/"+u.app,
		map[string]any{"redirectUris": []string{i.url + "/login/idp/" + id + "/callback"},
			"updateMask": "redirectUris"})
	if found := i.api("POST", "/v1/idps/"+id+"/_check", map[string]any{}); found["ok"] != true {
		i.t.Fatalf("%v", found)
	}
	return id
}

// through presses the button of a provider, and signs in there.
func (v *visitor) through(name string) {
	v.t.Helper()
	v.Click(`form[action*="/login/idp/"] button`)
	v.upstreamSignIn(name)
}

// creates makes the account that the page offers to somebody new.
func (v *visitor) creates() {
	v.t.Helper()
	v.sees("main", "Create your account")
	v.Submit("button.primary")
}

func (v *visitor) upstreamSignIn(name string) {
	v.t.Helper()
	v.WaitUntilBelow("http://127.0.0.1:")
	v.name(name)
	v.password(firstPassword)
}

func (v *visitor) saysNothingBad(page string) {
	v.t.Helper()
	for _, found := range v.Axe(true) {
		v.t.Errorf("%s: %s", page, found)
	}
}

func TestSigningInThroughAProvider(t *testing.T) {
	browser.NeedAxe(t)
	u, i, b := another(t), installed(t, func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.0/8"} }),
		browser.Start(t)
	idp := i.provider(u, map[string]any{"autoRegister": true, "scopes": []string{"profile", "email"}})
	u.person("ana")
	u.person("bea")

	t.Run("somebody new is registered, and signed in the next time", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.sees("main", "Sign in with Upstream")
		v.saysNothingBad("sign-in")
		v.through("ana")
		v.saysNothingBad("register")
		v.creates()
		v.arrives()
		v = i.visitor(t, b)
		v.Open(i.ask())
		v.through("ana")
		v.arrives()
		v.Open(i.url + "/account/security")
		v.sees("main", "Upstream")
		v.sees("main", "ana@mail.test")
		v.saysNothingBad("account")
	})

	t.Run("who is not registered links an account, after signing in to it", func(t *testing.T) {
		i.api("PUT", "/v1/idps/"+idp, map[string]any{"name": "Upstream"}) // auto registration goes off by it
		i.person("bob")
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.through("bea")
		v.sees("main", "not known here")
		v.saysNothingBad("unlinked")
		v.Submit("main a.button")
		v.name("bob")
		v.password(firstPassword)
		v.sees("main", "bea@mail.test")
		v.saysNothingBad("confirm link")
		v.Submit("button[value=allow]")
		v.arrives()
		v = i.visitor(t, b)
		v.Open(i.ask())
		v.through("bea")
		v.arrives()
		v.Open(i.url + "/account/security")
		v.sees("main", "bea@mail.test")
	})

	t.Run("by idp_hint with one button, and straight there the next time", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("idp_hint", idp))
		v.sees("main", "Continue with Upstream")
		v.saysNothingBad("choose provider")
		v.Click("main form button")
		v.upstreamSignIn("bea")
		v.arrives()
		v.Open(i.url + "/logout")
		v.Submit("button.primary")
		v.Open(u.url + "/logout")
		v.Submit("button.primary")
		v.Open(i.ask("idp_hint", idp))
		v.upstreamSignIn("bea")
		v.arrives()
	})

	t.Run("switched off, it is not offered, and who came through it is out", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.through("bea")
		v.arrives()
		i.api("POST", "/v1/idps/"+idp+"/_deactivate", map[string]any{})
		v.Open(i.ask())
		v.WaitFor("#loginName")
		if strings.Contains(v.Text("main"), "Upstream") {
			t.Error("it is still offered")
		}
		i.api("POST", "/v1/idps/"+idp+"/_reactivate", map[string]any{})
		v.Open(i.ask())
		v.WaitFor("#loginName")
		v.sees("main", "Sign in with Upstream")
	})
}
