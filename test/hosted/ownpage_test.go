package hosted

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

// shop is an application with a sign-in page of its own.
type shop struct {
	*federatedWorlds
	id, secret string
}

const home = "https://shop.test/home?tab=1"

func (f *federatedWorlds) shop(allowed bool) *shop {
	f.t.Helper()
	made := f.api("POST", "/v1/apps",
		map[string]any{"name": "Shop", "type": "APPLICATION_TYPE_WEB", "redirectUris": []string{home}})
	s := &shop{f, made["appId"].(string), made["clientSecret"].(string)}
	if allowed {
		f.api("PUT", "/v1/apps/"+s.id+"/own_sign_in", map[string]any{"allowed": true})
	}
	return s
}

// call calls a public operation as the application.
func (s *shop) call(path string, in map[string]any, token ...string) *page {
	s.t.Helper()
	for name, value := range map[string]string{"clientId": s.id, "clientSecret": s.secret} {
		if in[name] == nil {
			in[name] = value
		}
	}
	return s.json("POST", path, in, token...)
}

// attempt is a sign-in under way.
type attempt struct {
	*shop
	token, address string
	here           *browser
}

func (s *shop) start(more map[string]any) *attempt {
	s.t.Helper()
	in := map[string]any{"returnAddress": home}
	for name, value := range more {
		in[name] = value
	}
	got := s.call("/v1/idps/"+s.idp+"/_start", in)
	if got.status != 200 {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
	return &attempt{s, got.json["attemptToken"].(string), got.json["address"].(string), s.browser()}
}

// visit goes to the provider, signs in there, and gives the page that asks.
func (a *attempt) visit(who person) *page {
	a.t.Helper()
	return a.here.get(strings.TrimPrefix(a.provider(who), a.url))
}

// provider goes to the provider, signs in there, and gives the address of the callback.
func (a *attempt) provider(who person) string {
	a.t.Helper()
	to := a.here.get(strings.TrimPrefix(a.address, a.url)).path
	back := a.up.browser().get(strings.TrimPrefix(to, a.up.url)).signIn(who.name, password)
	if back.status == 200 {
		back.path = back.next()
	}
	return back.path
}

// code agrees, and gives what the application is sent.
func (p *page) allow() url.Values {
	p.t.Helper()
	u, err := url.Parse(p.post("do", "allow").path)
	must(p.t, err)
	if got := u.Query(); u.Host != "shop.test" || u.Path != "/home" || got.Get("tab") != "1" {
		p.t.Fatalf("sent to %s", u)
	}
	return u.Query()
}

func (a *attempt) redeem(code string, more map[string]any) *page {
	a.t.Helper()
	in := map[string]any{"attemptToken": a.token, "code": code}
	for name, value := range more {
		in[name] = value
	}
	return a.call("/v1/sessions/_provider", in)
}

var newUser = map[string]any{"registration": map[string]any{"userName": "jo", "firstName": "Jo", "lastName": "Doe",
	"email": "jo@mail.test"}}

// failed fails unless a call was refused in this way.
func (p *page) failed(status int, reason string) {
	p.t.Helper()
	if p.status != status || !strings.Contains(p.body, reason) {
		p.t.Errorf("got %d %s, want %d %s", p.status, p.body, status, reason)
	}
}

func TestASignInPageOfAnApplicationsOwn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		config := server.Config{}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		f := withProvider(t, config)
		s := f.shop(true)
		jo := f.up.person(f.up.org, true)

		a := s.start(nil)
		asked := a.visit(jo).shows(200, "Continue to the application?", "Shop", "Upstream", "No account here is linked")
		code := asked.allow().Get("code")
		a.redeem(code, nil).failed(400, "ACCOUNT_NOT_LINKED")
		a.redeem(code, map[string]any{"registration": map[string]any{"userName": "boss@def.test", "lastName": "x",
			"firstName": "y", "email": "jo@mail.test"}}).failed(400, "registration.userName")
		in := a.redeem(code, newUser).shows(200)
		if in.json["token"] == nil || in.json["userId"] == nil {
			t.Fatalf("got %v", in.json)
		}
		a.redeem(code, newUser).failed(401, "SIGN_IN_FAILED")

		a = s.start(map[string]any{"loginHint": jo.name, "again": true})
		asked = a.visit(jo).shows(200, "You will be signed in as <bdi>jo@")
		if !strings.Contains(asked.header.Get("Content-Security-Policy"), "form-action 'self' https://shop.test") {
			t.Errorf("a form may lead to %s", asked.header.Get("Content-Security-Policy"))
		}
		again := a.redeem(asked.allow().Get("code"), nil).shows(200)
		if again.json["userId"] != in.json["userId"] {
			t.Error("it is somebody else")
		}

		// Somebody who is signed in links an account.
		ann := f.up.person(f.up.org, true)
		a = s.start(nil)
		code = a.visit(ann).allow().Get("code")
		link := map[string]any{"attemptToken": a.token, "code": code}
		s.call("/v1/users/me/links", link).failed(401, "")
		mine := f.person(f.org, true)
		session := f.json("POST", "/v1/sessions",
			map[string]any{"loginName": mine.name, "password": password}).shows(200)
		s.call("/v1/users/me/links", link, session.json["token"].(string)).shows(200)
		s.call("/v1/users/me/links", link, session.json["token"].(string)).failed(401, "SIGN_IN_FAILED")
		a = s.start(nil)
		if got := a.redeem(a.visit(ann).allow().Get("code"), nil).shows(200); got.json["userId"] != mine.id {
			t.Errorf("signed in as %v, want %s", got.json["userId"], mine.id)
		}
	})
}

func TestWhatAnApplicationsOwnPageIsRefused(t *testing.T) {
	f := withProvider(t, server.Config{})
	s, other, off := f.shop(true), f.shop(true), f.shop(false)
	jo := f.up.person(f.up.org, true)
	start := "/v1/idps/" + f.idp + "/_start"
	s.call(start, map[string]any{"returnAddress": home, "clientSecret": other.secret}).failed(401,
		"OWN_SIGN_IN_CLIENT_REFUSED")
	s.call(start, map[string]any{"returnAddress": home, "clientId": "app_none"}).failed(401,
		"OWN_SIGN_IN_CLIENT_REFUSED")
	s.call(start, map[string]any{"returnAddress": "https://shop.test/home"}).failed(400, "returnAddress")
	s.call(start, map[string]any{"returnAddress": home + "&x=1"}).failed(400, "returnAddress")
	off.call(start, map[string]any{"returnAddress": home}).failed(403, "OWN_SIGN_IN_NOT_ALLOWED")
	s.call("/v1/idps/idp_none/_start", map[string]any{"returnAddress": home}).failed(404, "IDENTITY_PROVIDER_NOT_FOUND")

	a, second := s.start(nil), s.start(nil)
	code := a.visit(jo).allow().Get("code")
	register := func(more map[string]any) map[string]any {
		in := map[string]any{"registration": newUser["registration"]}
		for name, value := range more {
			in[name] = value
		}
		return in
	}
	for name, more := range map[string]map[string]any{
		"another attempt":       {"attemptToken": second.token},
		"no attempt":            {"attemptToken": "x"},
		"the code as its token": {"attemptToken": code},
		"another application":   {"clientId": other.id, "clientSecret": other.secret},
		"another code":          {"code": second.token},
	} {
		t.Run(name, func(t *testing.T) { a.redeem(code, register(more)).failed(401, "SIGN_IN_FAILED") })
	}
	a.redeem(code, register(map[string]any{"clientSecret": other.secret})).failed(401, "OWN_SIGN_IN_CLIENT_REFUSED")
	a.redeem(code, newUser).shows(200)

	t.Run("used at once", func(t *testing.T) {
		a := s.start(nil)
		code := a.visit(jo).allow().Get("code")
		var all sync.WaitGroup
		var in atomic.Int64
		for range 64 {
			all.Go(func() {
				if a.redeem(code, nil).status == http.StatusOK {
					in.Add(1)
				}
			})
		}
		all.Wait()
		if in.Load() != 1 {
			t.Errorf("the code let in %d times", in.Load())
		}
	})
	t.Run("two codes of one attempt", func(t *testing.T) {
		a := s.start(nil)
		first := a.visit(jo).allow().Get("code")
		again := a.visit(jo).allow().Get("code")
		a.redeem(first, nil).shows(200)
		a.redeem(again, nil).failed(401, "SIGN_IN_FAILED")
	})
	t.Run("finished in another browser", func(t *testing.T) {
		a := s.start(nil)
		callback := strings.TrimPrefix(a.provider(jo), f.url)
		if got := f.browser().get(callback); got.status < 400 {
			t.Errorf("got %d %s", got.status, got.path)
		}
		stranger := f.browser()
		stranger.get("/login")
		if got := stranger.get(callback); got.status < 400 {
			t.Errorf("got %d %s", got.status, got.path)
		}
		asked := a.here.get(callback).shows(200, "Continue")
		if got := stranger.get(asked.path); got.status < 400 {
			t.Errorf("asked in another browser: %d %s", got.status, got.body)
		}
		if got := stranger.send("POST", asked.path, values("do", "allow")); got.status < 400 {
			t.Errorf("agreed in another browser: %d %v", got.status, got.header)
		}
		if got := a.here.send("POST", asked.path, values("do", "allow"), "Origin", "https://evil.example",
			"Sec-Fetch-Site", "cross-site"); got.status < 400 {
			t.Errorf("agreed from another page: %d %v", got.status, got.header)
		}
		if got := a.here.get("/login?arrival=" + url.QueryEscape(asked.path[strings.Index(asked.path,
			"arrival=")+8:])); got.status < 400 {
			t.Errorf("used on our own pages: %d %s", got.status, got.path)
		}
		asked.allow()
		if got := asked.post("do", "allow"); got.status < 400 {
			t.Errorf("agreed twice: %d %s", got.status, got.path)
		}
	})
	t.Run("the person says no", func(t *testing.T) {
		got := s.start(nil).visit(jo).post("do", "deny")
		if !strings.Contains(got.path, "error=access_denied") || strings.Contains(got.path, "code=") {
			t.Errorf("sent to %s", got.path)
		}
	})
	t.Run("the provider says no", func(t *testing.T) {
		a := s.start(nil)
		to, err := url.Parse(a.here.get(strings.TrimPrefix(a.address, f.url)).path)
		must(t, err)
		got := a.here.get("/login/idp/" + f.idp + "/callback?error=access_denied&state=" +
			url.QueryEscape(to.Query().Get("state")) + "&iss=" + url.QueryEscape(f.up.url))
		if got.path != "https://shop.test/home?error=access_denied&tab=1" {
			t.Errorf("sent to %s", got.path)
		}
	})
	t.Run("the address of another provider", func(t *testing.T) {
		a := s.start(nil)
		if got := a.here.get(strings.Replace(strings.TrimPrefix(a.address, f.url), f.idp, "idp_other",
			1)); got.status < 400 {
			t.Errorf("got %d %s", got.status, got.path)
		}
	})
	t.Run("no return address any more", func(t *testing.T) {
		a := s.start(nil)
		asked := a.visit(jo)
		f.api("PATCH", "/v1/apps/"+s.id,
			map[string]any{"redirectUris": []string{"https://shop.test/other"}, "updateMask": "redirectUris"})
		if got := asked.post("do", "allow"); got.status < 400 {
			t.Errorf("sent to %s", got.path)
		}
		f.api("PATCH", "/v1/apps/"+s.id, map[string]any{"redirectUris": []string{home}, "updateMask": "redirectUris"})
	})
	provider := func(do string) { f.api("POST", "/v1/idps/"+f.idp+"/"+do, map[string]any{}) }
	t.Run("the provider is switched off", func(t *testing.T) {
		early, arrived, late := s.start(nil), s.start(nil), s.start(nil)
		asked, code := arrived.visit(jo), late.visit(jo).allow().Get("code")
		provider("_deactivate")
		s.call(start, map[string]any{"returnAddress": home}).failed(404, "IDENTITY_PROVIDER_NOT_FOUND")
		if got := early.here.get(strings.TrimPrefix(early.address, f.url)); got.status < 400 {
			t.Errorf("after the start: %d %s", got.status, got.path)
		}
		if got := asked.post("do", "allow"); got.status < 400 {
			t.Errorf("before the code: %d %s", got.status, got.path)
		}
		late.redeem(code, nil).failed(401, "SIGN_IN_FAILED")
		provider("_reactivate")
		late.redeem(code, nil).failed(401, "SIGN_IN_FAILED") // it came through the provider of before
	})
	t.Run("the switch is off", func(t *testing.T) {
		early, late := s.start(nil), s.start(nil)
		asked, code := early.visit(jo), late.visit(jo).allow().Get("code")
		f.api("PUT", "/v1/apps/"+s.id+"/own_sign_in", map[string]any{"allowed": false})
		if got := asked.post("do", "allow"); got.status < 400 {
			t.Errorf("before the code: %d %s", got.status, got.path)
		}
		late.redeem(code, nil).failed(403, "OWN_SIGN_IN_NOT_ALLOWED")
	})
}
