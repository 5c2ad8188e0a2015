package hosted

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/ops/server"
)

// gadget is a device without a browser.
type gadget struct {
	*world
	client, device, user string
}

func (w *world) gadget(client, scope string) *gadget {
	w.t.Helper()
	got := w.browser().send(http.MethodPost, "/oauth/device_authorization",
		values("client_id", client, "scope", scope)).shows(200)
	g := &gadget{w, client, got.json["device_code"].(string), got.json["user_code"].(string)}
	if got.json["verification_uri_complete"] != w.url+"/device?user_code="+g.user {
		w.t.Fatalf("got %v", got.json)
	}
	return g
}

// asks asks for tokens.
func (g *gadget) asks() map[string]any {
	g.t.Helper()
	return g.browser().send(http.MethodPost, "/oauth/token",
		values("grant_type", "urn:ietf:params:oauth:grant-type:device_code", "client_id", g.client,
			"device_code", g.device)).json
}

func TestADeviceIsConnected(t *testing.T) {
	w := open(t, server.Config{})
	jo, tv := w.person(w.org, true), w.application("Television")
	g := w.gadget(tv, "openid profile")
	if got := g.asks(); got["error"] != "authorization_pending" {
		t.Fatalf("got %v", got)
	}
	b := w.browser()
	p := b.get("/device?user_code="+g.user).shows(200, "loginName").signIn(jo.email, password)
	// one click less, but the code is there to be compared
	p.shows(200, "Is this your device?", "Television", g.user, jo.name)
	// Neither an address nor a form that is not the one of the page with the code allows anything.
	for _, address := range []string{"&do=allow", "&do=allow&userCode=" + g.user, "&confirm=1&do=allow&id=x"} {
		b.get("/device?user_code="+g.user+address).shows(200, "Is this your device?")
	}
	b.get("/device?user_code=BBBB-BBBB").shows(422, "Connect a device", "This code is wrong", `value="BBBB-BBBB"`)
	p = b.get("/device").shows(200, "Connect a device")
	p.post("do", "allow", "userCode", g.user).shows(200, "Is this your device?")
	if got := g.asks(); got["access_token"] != nil {
		t.Fatalf("got %v", got)
	}
	p.post("userCode", "").shows(422, "Please fill this in.")
	p.post("userCode", "BBBB-BBBB").shows(422, "This code is wrong")
	p = p.post("userCode", strings.ToLower(strings.ReplaceAll(g.user, "-", " "))).shows(200, "Is this your device?",
		"Television", g.user, jo.name, "/login?other=1")
	if p.hidden("userCode") != g.user {
		t.Errorf("got %s", p.body)
	}
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(200, "Your device is connected")
	tokens := g.asks()
	if tokens["id_token"] == nil || !w.counts(tokens["access_token"]) {
		t.Errorf("got %v", tokens)
	}
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(422, "This code is wrong") // once
}

func TestADeviceIsRefused(t *testing.T) {
	w := open(t, server.Config{})
	b, tv := w.signedIn(w.person(w.org, true)), w.application("Television")
	g := w.gadget(tv, "")
	p := b.get("/device").post("userCode", g.user).shows(200, "Is this your device?")
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "deny").shows(200, "Access was denied")
	if got := g.asks(); got["error"] != "access_denied" {
		t.Errorf("got %v", got)
	}
	// A device that asks for nothing in particular can be connected, too.
	g = w.gadget(tv, "")
	p = b.get("/device").post("userCode", g.user)
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(200, "Your device is connected")
	if got := g.asks(); got["access_token"] == nil {
		t.Errorf("got %v", got)
	}
}

func TestTheAccountThatWasShownAnswersForADevice(t *testing.T) {
	w := open(t, server.Config{})
	jo, ann := w.person(w.org, true), w.person(w.org, true)
	g := w.gadget(w.application("Television"), "openid profile")
	b := w.signedIn(jo)
	p := b.get("/device").post("userCode", g.user).shows(200, jo.name)
	b.get("/login?other=1&to=/device").signIn(ann.email, password).shows(200, ann.name) // in another tab
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(200, "Your device is connected")
	info := w.browser().send(http.MethodGet, "/oauth/userinfo", nil, "Authorization",
		"Bearer "+g.asks()["access_token"].(string))
	if info.json["sub"] != jo.id {
		t.Errorf("it acts for %v", info.json)
	}

	// The session of another browser is no account of this one.
	g = w.gadget(g.client, "")
	p = b.get("/device").post("userCode", g.user).shows(200, ann.name)
	w.signedIn(jo).get("/device").post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(200,
		"Is this your device?")
}

func TestADeviceOfAnOrganizationIsForItsPeople(t *testing.T) {
	w := open(t, server.Config{})
	other, domain := w.organization()
	tv := w.application("Television", func(s *app.Settings) { s.AllOrganizations = true })
	jo, guest := w.person(w.org, true), w.person(other, true)
	g := w.gadget(tv, "openid urn:signet:org:domain:"+domain)
	b := w.signedIn(jo)
	p := b.get("/device").post("userCode", g.user).shows(422, "This sign-in is for members of", "Elsewhere")
	// Nor does a form that somebody made up.
	open := w.gadget(tv, "openid")
	confirm := b.get("/device").post("userCode", open.user)
	id := confirm.hidden("id")
	if strings.Contains(confirm.body, "another organization") {
		t.Errorf("an application of the own organization: %s", confirm.body)
	}
	p.post("id", id, "userCode", g.user, "do", "allow").shows(422, "This sign-in is for members of")
	if got := g.asks(); got["error"] != "authorization_pending" {
		t.Fatalf("got %v", got)
	}
	// With an account of there in the same browser it is that one, whichever was used last.
	b.get("/login?other=1&to=/device").signIn(guest.name+"@"+domain, password).shows(200, guest.name)
	b.get("/login?to=/device").post("id", id).shows(200, jo.name)
	p = b.get("/device").post("userCode", g.user).shows(200, "Is this your device?", guest.name,
		"belongs to another organization")
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(200, "Your device is connected")

	// An application of one organization is not for people of another.
	g = w.gadget(w.application("Own"), "openid")
	b = w.browser()
	b.get("/login?to=/device").signIn(guest.name+"@"+domain, password).shows(200)
	p = b.get("/device").post("userCode", g.user)
	p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(422, "This sign-in is for members of")
}

func TestUserCodesCannotBeGuessed(t *testing.T) {
	w := open(t, server.Config{})
	b := w.signedIn(w.person(w.org, true))
	g := w.gadget(w.application("Television"), "")
	p := b.get("/device")
	for range 20 {
		p.post("userCode", "BBBB-BBBB").shows(422, "This code is wrong")
	}
	p.post("userCode", g.user).shows(422, "Too many attempts")
}

func TestASessionThatLacksSomethingConnectsNoDevice(t *testing.T) {
	w := open(t, server.Config{})
	jo := w.person(w.org, true)
	g := w.gadget(w.application("Television"), "")
	b := w.signedIn(jo)
	p := b.get("/device").post("userCode", g.user)
	w.rules(policy.Policy{SecondFactorRequired: true})
	for _, got := range []*page{p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow"),
		b.get("/device?user_code=" + g.user), b.get("/verify")} {
		if !strings.HasPrefix(got.path, "/login?") {
			t.Errorf("got %s", got.path)
		}
	}
	if got := g.asks(); got["error"] != "authorization_pending" {
		t.Errorf("got %v", got)
	}
}
