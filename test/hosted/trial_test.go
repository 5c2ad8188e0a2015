package hosted

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

// onEach runs a test on whole servers with each engine.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		config := server.Config{}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		test(t, open(t, config))
	})
}

// owner is somebody who may do everything in the organization.
func (w *world) owner(orgID string) person {
	w.t.Helper()
	p := w.person(orgID, true)
	w.happens(p.id, user.MembershipSet{Scope: orgID, Roles: []access.Role{access.OrgOwner}})
	return p
}

// token is that of the session that was used last, as the console has it.
func (b *browser) token() string {
	b.t.Helper()
	token, _, _ := strings.Cut(b.jar["__Host-signet"], "~")
	if token == "" {
		b.t.Fatal("nobody is signed in")
	}
	return token
}

// tried is a trial on its way.
type tried struct {
	*browser
	client, id, address string
}

// try starts a trial in a browser, by the person who was there last.
func (b *browser) try(client string, pairs ...string) *tried {
	b.t.Helper()
	in := map[string]any{"scope": "openid"}
	for i := 0; i < len(pairs); i += 2 {
		in[pairs[i]] = pairs[i+1]
	}
	got := b.json("POST", "/v1/apps/"+client+"/sign_in_trials", in, b.token()).shows(200).json
	return &tried{b, client, got["trialId"].(string), strings.TrimPrefix(got["address"].(string), b.url)}
}

// arrived fails unless a page is where every trial leads to.
func (tr *tried) arrived(p *page) {
	tr.t.Helper()
	if want := "/console/apps/" + tr.client + "/try?trial=" + tr.id; p.path != want ||
		strings.Contains(p.body, callback+"?") {
		tr.t.Fatalf("came to %s, not to %s: %s", p.path, want, p.body)
	}
}

// finish gives the result.
func (tr *tried) finish() *result {
	tr.t.Helper()
	r := &result{t: tr.t}
	body := tr.json("POST", "/v1/sign_in_trials/"+tr.id+"/_finish", map[string]any{}, tr.token()).shows(200).body
	r.text = body
	must(tr.t, json.Unmarshal([]byte(body), r))
	return r
}

// walk goes straight through a trial that asks nothing.
func (tr *tried) walk() *result {
	tr.t.Helper()
	tr.arrived(tr.get(tr.address))
	return tr.finish()
}

type document struct {
	Token  string
	Claims []struct{ Name, Value, RealValue, Source, Detail, Message string }

	Missing []struct{ Name, Lack, Detail, Message string }
}

type result struct {
	t     *testing.T
	text  string
	Trial struct {
		State   string
		Request struct {
			Findings []struct{ Code, Value, Message string }
		}
		Steps   []struct{ Step, Outcome, Because, Detail, Message string }
		Refusal *struct{ Error, Description, Address string }
	}
	Answer *struct {
		Address, TokenRequest                         string
		RefreshToken                                  bool
		IDToken, AccessToken, UserInfo, Introspection *document
	}
}

func short(enum string) string {
	parts := strings.SplitN(enum, "_", 5) // SIGN_IN_TRIAL_STATE_…
	return strings.ToLower(parts[len(parts)-1])
}

// steps are what happened, with the reasons.
func (r *result) steps() string {
	var all []string
	for _, s := range r.Trial.Steps {
		if s.Because != "" && s.Message == "" {
			r.t.Errorf("%s has no text", s.Because)
		}
		all = append(all, s.Step+" "+short(s.Outcome)+" "+s.Because+
			map[bool]string{true: ":" + s.Detail}[s.Detail != ""])
	}
	return strings.Join(all, "\n")
}

func (r *result) wants(steps ...string) {
	r.t.Helper()
	if got := r.steps(); got != strings.Join(steps, "\n") {
		r.t.Errorf("the steps were\n%s\nwant\n%s", got, strings.Join(steps, "\n"))
	}
}

// why is the reason for a claim, or for its lack.
func (d *document) why(name string) string {
	for _, c := range d.Claims {
		if c.Name == name {
			return short(c.Source) + " " + c.Detail
		}
	}
	for _, m := range d.Missing {
		if m.Name == name {
			return "missing: " + short(m.Lack) + " " + m.Detail
		}
	}
	return "nothing"
}

func (d *document) value(name string) (value, real string) {
	for _, c := range d.Claims {
		if c.Name == name {
			return c.Value, c.RealValue
		}
	}
	return "", ""
}

// payload reads a JWT.
func payloadOf(t *testing.T, token string) (header, claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	for i, into := range []*map[string]any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		must(t, err)
		must(t, json.Unmarshal(text, into))
	}
	return header, claims
}

func TestATrialSaysWhyEveryClaimIsThere(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		shop := w.application("Shop",
			func(s *app.Settings) { s.TokenFormat, s.IDTokenClaims = app.JWT, app.MinimalClaims })
		jo := w.owner(w.org)
		b := w.signedIn(jo)
		r := b.try(shop, "scope", "openid profile email phone urn:signet:org offline_access strange signet.write",
			"claims", `{"id_token":{"email":null}}`, "acrValues", "gold").walk()
		if r.Trial.State != "SIGN_IN_TRIAL_STATE_APPROVED" || r.Answer == nil || !r.Answer.RefreshToken {
			t.Fatalf("got %s", r.text)
		}
		r.wants("opened done ", "password skipped signed_in:pwd", "second_factor skipped factor_not_required",
			"account done own_organization", "consent skipped consent_not_required",
			"result ended nothing_missing")
		var found []string
		for _, f := range r.Trial.Request.Findings {
			if f.Message == "" {
				t.Errorf("%s has no text", f.Code)
			}
			found = append(found, f.Code+" "+f.Value)
		}
		if want := []string{"scope_unknown strange", "scope_not_allowed signet.write",
			"acr_unknown gold"}; !slices.Equal(found, want) {
			t.Errorf("found %q", found)
		}
		a := r.Answer
		for _, tt := range []struct {
			of         *document
			name, want string
		}{
			{a.IDToken, "iss", "always "}, {a.IDToken, "aud", "always "}, {a.IDToken, "nonce", "request nonce"},
			{a.IDToken, "acr", "sign_in "}, {a.IDToken, "email", "request claims"},
			{a.IDToken, "name", "missing: setting idTokenClaims"},
			{a.IDToken, "phone_number", "missing: no_value phone"},
			{a.IDToken, "urn:signet:org", "scope urn:signet:org"},
			{a.IDToken, "urn:signet:roles", "missing: scope urn:signet:roles"},
			{a.IDToken, "urn:signet:app_roles", "missing: setting roleSettings.rolesInTokens"},
			{a.UserInfo, "email", "scope email"}, {a.UserInfo, "name", "scope profile"},
			{a.UserInfo, "nickname", "missing: no_value profile"},
			{a.AccessToken, "scope", "always "}, {a.AccessToken, "urn:signet:org", "scope urn:signet:org"},
			{a.Introspection, "username", "scope profile"}, {a.Introspection, "active", "always "},
		} {
			if got := tt.of.why(tt.name); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		if v, _ := a.UserInfo.value("email"); v != `"`+jo.email+`"` {
			t.Errorf("the address is %s", v)
		}
		// What is shown is what the tokens say, and the real values are those that an application gets.
		for which, d := range map[string]*document{"ID token": a.IDToken, "access token": a.AccessToken} {
			header, claims := payloadOf(t, d.Token)
			if header["typ"] != trial.TokenType || len(claims) != len(d.Claims) || claims["aud"] != trial.Audience ||
				which == "ID token" && claims["azp"] != trial.Audience ||
				claims["exp"].(float64)-claims["iat"].(float64) != 60 {
				t.Errorf("%s: %v %v", which, header, claims)
			}
			if _, real := d.value("aud"); !strings.Contains(real, shop) {
				t.Errorf("%s is really for %s", which, real)
			}
		}
		if want := callback + "?code=CODE&"; !strings.HasPrefix(a.Address, want) ||
			!strings.Contains(a.TokenRequest, "code_verifier=") || !strings.Contains(a.TokenRequest, shop) {
			t.Errorf("the application would get %s, and send %s", a.Address, a.TokenRequest)
		}
		real := b.authorize(shop, "scope", "openid profile email phone urn:signet:org offline_access", "nonce", "n",
			"claims", `{"id_token":{"email":null}}`).tokens(shop)
		for which, d := range map[string]*document{"id_token": a.IDToken, "access_token": a.AccessToken} {
			_, claims := payloadOf(t, real[which].(string))
			for _, c := range d.Claims {
				if _, there := claims[c.Name]; !there {
					t.Errorf("a real %s has no %s", which, c.Name)
				}
				delete(claims, c.Name)
			}
			if len(claims) > 0 {
				t.Errorf("a real %s has %v, too", which, claims)
			}
		}
	})
}

// sessions counts those of somebody.
func (b *browser) sessions() int {
	b.t.Helper()
	list, _ := b.fetch("/v1/users/me/sessions", b.token()).shows(200).json["sessions"].([]any)
	return len(list)
}

func TestATrialLeavesNothingBehindAndNobodyTakesItsTokens(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		jo := w.owner(w.org)
		b := w.signedIn(jo)
		made := w.api("POST", "/v1/apps", map[string]any{
			"name":                 "Web",
			"type":                 "APPLICATION_TYPE_WEB",
			"redirectUris":         []string{callback},
			"consentRequired":      true,
			"grantTypes":           []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN"},
			"backChannelLogoutUri": "https://shop.test/logout",
		})
		web, secret := made["appId"].(string), made["clientSecret"].(string)
		w.api("PUT", "/v1/apps/"+web+"/api_access", map[string]any{"scopes": []string{"signet.self"}})
		for _, format := range []string{"TOKEN_FORMAT_OPAQUE", "TOKEN_FORMAT_JWT"} {
			w.api("PATCH", "/v1/apps/"+web, map[string]any{"tokenFormat": format, "updateMask": "tokenFormat"})
			before, was := b.sessions(), w.positions()
			for range 2 { // the first consent was not stored
				tr := b.try(web, "scope", "openid email offline_access signet.self")
				p := tr.get(tr.address).shows(200, "Web")
				tr.arrived(p.post("do", "allow"))
				r := tr.finish()
				r.wants("opened done ", "consent shown setting:consentRequired", "password skipped signed_in:pwd",
					"second_factor skipped factor_not_required", "account done own_organization",
					"consent done consent_not_stored", "result ended nothing_missing")
				if !r.Answer.RefreshToken || strings.Contains(r.text, "sgn_ort_") || strings.Contains(r.text, secret) {
					t.Errorf("got %s", r.text)
				}
				tr.json("POST", "/v1/sign_in_trials/"+tr.id+"/_finish", map[string]any{}, tr.token()).shows(404,
					"SIGN_IN_TRIAL_NOT_FOUND")
				tr.fetch("/v1/sign_in_trials/"+tr.id, tr.token()).shows(404, "SIGN_IN_TRIAL_NOT_FOUND")

				token, id := r.Answer.AccessToken.Token, r.Answer.IDToken.Token
				if token == "" || id == "" {
					t.Fatal("there are no tokens")
				}
				if w.counts(token) {
					t.Error("the user info endpoint takes it")
				}
				w.fetch("/v1/users/me", token).shows(401)
				basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(web+":"+secret))
				nobody := w.browser()
				if got := nobody.send(http.MethodPost, "/oauth/introspect", values("token", token), "Authorization",
					basic).shows(200).json; got["active"] != false {
					t.Errorf("introspection says %v", got)
				}
				for _, code := range []string{"CODE", token, tr.id} {
					nobody.send(http.MethodPost, "/oauth/token",
						values("grant_type", "authorization_code", "code", code, "redirect_uri", callback),
						"Authorization", basic).shows(400, "invalid_grant")
					nobody.send(http.MethodPost, "/oauth/token",
						values("grant_type", "refresh_token", "refresh_token", code), "Authorization", basic).shows(400,
						"invalid_grant")
				}
				nobody.send(http.MethodPost, "/oauth/token",
					values("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token", token),
					"Authorization", basic).shows(400)
				b.get("/oauth/logout?id_token_hint="+id).shows(400, "id_token_hint")
				if p := w.browser().authorize(web, "id_token_hint", id, "prompt", "none", "scope",
					"openid"); p.arrival(callback).Get("error") != "login_required" {
					t.Errorf("the ID token names somebody: %s", p.path)
				}
			}
			if b.sessions() != before {
				t.Errorf("there were %d sessions, and now %d", before, b.sessions())
			}
			if now := w.positions(); now != was {
				t.Errorf("%d events were recorded", now-was)
			}
		}
		c, err := oauth.Kind.Read(t.Context(), w.server.Store(), oauth.IDFor(jo.id))
		must(t, err)
		if c != nil {
			t.Errorf("a consent is recorded: %+v", c.Data)
		}
		row, err := w.server.Store().Row(t.Context(), oauth.VisitedRow(jo.id))
		must(t, err)
		if row != nil {
			t.Errorf("the application would be told of the end of the session: %s", row.Value)
		}
	})
}

// positions is how long the log is, without what the server itself does.
func (w *world) positions() int {
	w.t.Helper()
	events, err := w.server.Store().Events(w.t.Context(), 0, 10000)
	must(w.t, err)
	n := 0
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "sign_in.") || strings.HasPrefix(string(e.Type), "consent.") ||
			strings.HasPrefix(string(e.Type), "user.") {
			n++
		}
	}
	return n
}

func TestATrialIsOfTheOwnAccountOnly(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		shop := w.application("Shop")
		jo, kim := w.owner(w.org), w.person(w.org, true)
		ended := func(t *testing.T, tr *tried, p *page) {
			t.Helper()
			tr.arrived(p)
			r := tr.finish()
			if r.Answer != nil || r.Trial.Refusal == nil || r.Trial.Refusal.Error != "trial_other_account" ||
				r.Trial.Refusal.Address != "" {
				t.Errorf("got %s", r.text)
			}
			for _, told := range []string{kim.id, kim.name, kim.email} {
				if strings.Contains(r.text, told) {
					t.Errorf("it tells of the other account: %s", r.text)
				}
			}
			if steps := r.steps(); !strings.HasSuffix(steps, "result ended foreign_account") {
				t.Errorf("the steps were %s", steps)
			}
		}
		t.Run("that signs in meanwhile", func(t *testing.T) {
			b := w.signedIn(jo)
			tr := b.try(shop)
			tr.get(tr.address + "&other=1") // it is opened, and goes on to the application's end only with an account
			tr = b.try(shop, "prompt", "login")
			p := tr.get(tr.address).shows(200, "Password")
			other := b.get(p.path + "&other=1&account=").shows(200)
			signed := b.send(http.MethodPost, other.path, values("loginName", kim.name, "password", password))
			if list := w.sessionsOf(kim); list != 0 {
				t.Errorf("%d sessions of the other account count until the browser goes on", list)
			}
			ended(t, tr, signed.follow())
			if got := strings.Count(b.jar["__Host-signet"], "sgn_ses_"); got != 1 {
				t.Errorf("the browser has %d sessions", got)
			}
			if list := w.sessionsOf(kim); list != 0 {
				t.Errorf("%d sessions of the other account are left", list)
			}
		})
		t.Run("that was there before", func(t *testing.T) {
			b := w.signedIn(kim, jo)
			tr := b.try(shop)
			p := tr.get(tr.address).shows(200, "Choose an account")
			tokens := strings.Split(b.jar["__Host-signet"], "~")
			var kims string
			for _, token := range tokens {
				if me := w.fetch("/v1/users/me", token).shows(200); strings.Contains(me.body, kim.id) {
					sessions := w.fetch("/v1/users/me/sessions", token).json["sessions"].([]any)
					kims = sessions[len(sessions)-1].(map[string]any)["sessionId"].(string)
				}
			}
			ended(t, tr, p.post("id", kims))
			if w.sessionsOf(kim) != 1 {
				t.Error("the other account's own session has ended")
			}
		})
		t.Run("in another browser", func(t *testing.T) {
			b := w.signedIn(jo)
			tr := b.try(shop)
			w.browser().get(tr.address).shows(400, "expired")
			w.signedIn(kim).get(tr.address).shows(400, "expired")
			w.signedIn(jo).get(tr.address).shows(400, "expired") // another session of the same person
			tr.arrived(tr.get(tr.address))
			w.browser().get("/login?request=" + tr.id).shows(400)
			kims := w.signedIn(kim).token()
			w.json("POST", "/v1/sign_in_trials/"+tr.id+"/_finish", map[string]any{}, kims).shows(404,
				"SIGN_IN_TRIAL_NOT_FOUND")
			w.fetch("/v1/sign_in_trials/"+tr.id, kims).shows(404, "SIGN_IN_TRIAL_NOT_FOUND")
			tr.finish()
		})
	})
}

// fetch calls an operation that reads.
func (w *world) fetch(path, token string) *page {
	w.t.Helper()
	return w.browser().send(http.MethodGet, path, nil, "Authorization", "Bearer "+token)
}

// sessionsOf counts those of somebody, as an administrator sees them.
func (w *world) sessionsOf(p person) int {
	w.t.Helper()
	list, _ := w.fetch("/v1/users/"+p.id+"/sessions", w.server.FirstAdmin.Token).shows(200).json["sessions"].([]any)
	return len(list)
}

func TestWhoCanStartATrial(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		shop := w.application("Shop")
		jo := w.owner(w.org)
		elsewhere, domain := w.organization()
		foreign, viewer := w.owner(elsewhere), w.person(w.org, true)
		w.happens(viewer.id, user.MembershipSet{Scope: w.org, Roles: []access.Role{access.OrgOwnerViewer}})
		in := map[string]any{"scope": "openid"}
		b := w.signedIn(jo)
		pat := w.json("POST", "/v1/users/me/tokens",
			map[string]any{"expirationDate": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
			b.token()).shows(200).json["token"].(string)
		w.api("PUT", "/v1/apps/"+shop+"/api_access", map[string]any{"scopes": []string{"signet.app_credentials"}})
		given := b.authorize(shop, "scope", "openid signet.app_credentials")
		if given.status == 200 && strings.Contains(given.body, `value="allow"`) {
			given = given.post("do", "allow")
		}
		application := given.tokens(shop)["access_token"].(string)
		foreigner := w.browser()
		foreigner.get("/login?other=1&to=/device").signIn(foreign.name+"@"+domain, password).shows(200,
			"Connect a device")
		for _, tt := range []struct {
			name, token string
			status      int
			reason      string
		}{
			{"a service user", w.server.FirstAdmin.Token, 403, "SESSION_REQUIRED"},
			{"a token of a person", pat, 403, "SESSION_REQUIRED"},
			{"an application", application, 403, "SESSION_REQUIRED"},
			{"an owner of another organization", foreigner.token(), 404, "APPLICATION_NOT_FOUND"},
			{"somebody who only reads", w.signedIn(viewer).token(), 403, "PERMISSION_DENIED"},
			{"nobody", "", 401, "UNAUTHENTICATED"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				w.json("POST", "/v1/apps/"+shop+"/sign_in_trials", in, tt.token).shows(tt.status, tt.reason)
			})
		}
		t.Run("only a session sees and finishes one", func(t *testing.T) {
			tr := b.try(shop)
			tr.arrived(tr.get(tr.address))
			for _, token := range []string{pat, application} {
				w.fetch("/v1/sign_in_trials/"+tr.id, token).shows(403)
				w.json("POST", "/v1/sign_in_trials/"+tr.id+"/_finish", map[string]any{}, token).shows(403)
			}
			tr.finish()
		})
		t.Run("only so many at a time", func(t *testing.T) {
			var first *tried
			for i := range trial.MaxOpen {
				if tr := b.try(shop); i == 0 {
					first = tr
				}
			}
			b.json("POST", "/v1/apps/"+shop+"/sign_in_trials", in, b.token()).shows(429, "TOO_MANY_SIGN_IN_TRIALS")
			first.json("POST", "/v1/sign_in_trials/"+first.id+"/_finish", map[string]any{}, first.token()).shows(400,
				"SIGN_IN_TRIAL_NOT_ENDED")
			first.walk()
			b.try(shop)
		})
	})
}

func TestATrialShowsWhyARequestIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		jo := w.owner(w.org)
		b := w.signedIn(jo)
		shop, off, device := w.application("Shop"), w.application("Off"),
			w.application("TV", func(s *app.Settings) { s.GrantTypes = []app.GrantType{app.DeviceCode} })
		w.deactivate(off)
		for _, tt := range []struct {
			name, client      string
			pairs             []string
			code, err, follow string
		}{
			{"an inactive application", off, nil, "application_inactive", "unknown_client", ""},
			{"an application without codes", device, nil, "no_authorization_code", "unknown_client", ""},
			{"an address that is not registered", shop, []string{"redirectUri", "https://evil.test/"},
				"redirect_not_registered", "redirect_refused", ""},
			{"a prompt that is none", shop, []string{"prompt", "none login"}, "parameter_refused",
				"invalid_request", callback},
			{"an age that is none", shop, []string{"maxAge", "old"}, "parameter_refused", "invalid_request", callback},
			{"an organization that is none", shop, []string{"scope", "openid urn:signet:org:domain:nowhere.test"},
				"parameter_refused", "invalid_scope", callback},
		} {
			t.Run(tt.name, func(t *testing.T) {
				in := map[string]any{"scope": "openid"}
				for i := 0; i < len(tt.pairs); i += 2 {
					in[tt.pairs[i]] = tt.pairs[i+1]
				}
				got := b.json("POST", "/v1/apps/"+tt.client+"/sign_in_trials", in, b.token()).shows(200)
				refusal := got.json["refusal"].(map[string]any)
				if got.json["trialId"] != "" || got.json["address"] != "" ||
					!strings.Contains(got.body, `"code":"`+tt.code+`"`) &&
						!strings.Contains(got.body, `"code": "`+tt.code+`"`) {
					t.Errorf("got %s", got.body)
				}
				if refusal["error"] != tt.err || !strings.HasPrefix(refusal["address"].(string), tt.follow) ||
					(refusal["address"] == "") != (tt.follow == "") {
					t.Errorf("refused with %v", refusal)
				}
			})
		}
	})
}

func TestATrialShowsTheStepsOfTheWay(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		jo := w.owner(w.org)
		shop := w.application("Shop")
		asks := w.application("Asks", func(s *app.Settings) { s.ConsentRequired = true })
		usual := []string{"second_factor skipped factor_not_required", "account done own_organization",
			"consent skipped consent_not_required", "result ended nothing_missing"}
		refused := func(t *testing.T, r *result, err string) {
			t.Helper()
			if r.Answer != nil || r.Trial.State != "SIGN_IN_TRIAL_STATE_REFUSED" || r.Trial.Refusal.Error != err ||
				!strings.HasPrefix(r.Trial.Refusal.Address, callback+"?error="+err) {
				t.Errorf("got %s", r.text)
			}
		}
		t.Run("the password once more", func(t *testing.T) {
			tr := w.signedIn(jo).try(shop, "prompt", "login")
			p := tr.get(tr.address).shows(200, "Password").post("password", "wrong").shows(422)
			got := tr.fetch("/v1/sign_in_trials/"+tr.id, tr.token()).shows(200,
				"SIGN_IN_TRIAL_STATE_RUNNING", "password")
			if strings.Contains(got.body, jo.email) {
				t.Error("claims are shown before the end")
			}
			tr.arrived(p.post("password", password))
			tr.finish().wants(append([]string{"opened done ", "password shown prompt:login", "password failed answered",
				"password done answered"}, usual...)...)
		})
		t.Run("an old proof", func(t *testing.T) {
			tr := w.signedIn(jo).try(shop, "maxAge", "0", "prompt", "none")
			tr.arrived(tr.get(tr.address))
			r := tr.finish()
			refused(t, r, "login_required")
			r.wants("opened done ", "result ended refused:login_required")
		})
		t.Run("a sign-in anew", func(t *testing.T) {
			b := w.signedIn(jo)
			tr := b.try(shop, "prompt", "login")
			p := b.get(tr.get(tr.address).path + "&other=1&account=").shows(200)
			tr.arrived(p.signIn(jo.name, password))
			tr.finish().wants(append([]string{"opened done ", "password shown prompt:login",
				"login_name shown other_account_wanted", "password done answered"}, usual...)...)
		})
		t.Run("no consent", func(t *testing.T) {
			tr := w.signedIn(jo).try(asks)
			tr.arrived(tr.get(tr.address).shows(200, "Asks").post("do", "deny"))
			r := tr.finish()
			refused(t, r, "access_denied")
			r.wants("opened done ", "consent shown setting:consentRequired", "result ended refused:access_denied")
		})
		t.Run("consent that was given before", func(t *testing.T) {
			b := w.signedIn(jo)
			b.authorize(asks).shows(200).post("do", "allow")
			b.try(asks).walk().wants("opened done ", "password skipped signed_in:pwd",
				"second_factor skipped factor_not_required", "account done own_organization",
				"consent skipped consent_given_before",
				"result ended nothing_missing")
		})
		t.Run("a second factor", func(t *testing.T) {
			kim := w.owner(w.org)
			b := w.signedIn(kim)
			b.try(shop, "claims",
				`{"id_token":{"acr":{"essential":true,"value":"urn:signet:acr:multi"}}}`).walk().wants("opened done ",
				"result ended refused:unmet_authentication_requirements")
			phone, _ := b.enrol()
			tr := b.try(shop, "prompt", "login", "acrValues", "urn:signet:acr:multi")
			p := tr.get(tr.address).shows(200, "Password").post("password", password).shows(200, "code")
			tr.arrived(p.post("code", phone.code()))
			r := tr.finish()
			r.wants("opened done ", "password shown prompt:login", "password done answered",
				"second_factor shown prompt:login", "second_factor done answered", "account done own_organization",
				"consent skipped consent_not_required", "result ended nothing_missing")
			if v, _ := r.Answer.IDToken.value("acr"); v != `"urn:signet:acr:multi"` {
				t.Errorf("acr is %s", v)
			}
		})
		t.Run("an organization that requires a second factor", func(t *testing.T) {
			ann := w.owner(w.org)
			b := w.signedIn(ann)
			tr := b.try(shop)
			w.rules(policy.Policy{SecondFactorRequired: true})
			defer w.rules(policy.Policy{})
			tr.get(tr.address).shows(200, "authenticator app")
			w.rules(policy.Policy{})
			tr.arrived(b.get("/login?request=" + tr.id))
			if got := tr.finish().steps(); !strings.Contains(got, "enrol_factor shown policy") {
				t.Errorf("the steps were %s", got)
			}
		})
		t.Run("another organization", func(t *testing.T) {
			elsewhere, _ := w.organization()
			tr := w.signedIn(jo).try(shop, "scope", "openid "+"urn:signet:org:id:"+elsewhere)
			tr.get(tr.address).shows(200)
			got := tr.fetch("/v1/sign_in_trials/"+tr.id, tr.token()).shows(200).body
			if !strings.Contains(got, "not_signed_in") && !strings.Contains(got, "other_organization") {
				t.Errorf("got %s", got)
			}
		})
	})
}

// A trial makes no account, no link and no session of whom a provider brings.
func TestATrialRegistersNobody(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		config := server.Config{}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		f := withProvider(t, config)
		shop, jo, stranger := f.application("Shop"), f.owner(f.org), f.up.person(f.up.org, true)
		b := f.signedIn(jo)
		tr := b.try(shop, "prompt", "login")
		p := b.get(tr.get(tr.address).path + "&other=1&account=").shows(200)
		before := f.positions()
		to := p.press().next()
		back := f.up.browser().get(strings.TrimPrefix(to, f.up.url)).signIn(stranger.name, password)
		if back.status == 200 {
			back.path = back.next()
		}
		tr.arrived(b.get(strings.TrimPrefix(back.path, f.url)))
		r := tr.finish()
		if r.Answer != nil || r.Trial.Refusal.Error != "trial_new_account" || strings.Contains(r.text, stranger.name) {
			t.Errorf("got %s", r.text)
		}
		r.wants("opened done ", "password shown prompt:login", "login_name shown other_account_wanted",
			"provider shown provider_chosen:"+f.idp, "provider done answered:"+f.idp, "result ended new_account")
		if now := f.positions(); now != before {
			t.Errorf("%d events were recorded", now-before)
		}
	})
}

// What is kept of a trial cannot be read without its identifier, and is gone soon.
func TestWhatIsKeptOfATrialIsSealed(t *testing.T) {
	w := open(t, server.Config{})
	shop, jo := w.application("Shop"), w.owner(w.org)
	tr := w.signedIn(jo).try(shop, "loginHint", "somebody@secret.test")
	row, err := w.server.Store().Row(t.Context(), trial.Row(tr.id))
	must(t, err)
	if row == nil || strings.Contains(string(row.Value), "secret") || strings.Contains(row.Key, tr.id) ||
		strings.Contains(row.Key, jo.id) {
		t.Errorf("the row is %+v", row)
	}
	if left := time.Until(time.UnixMicro(row.Expires)); left > trial.Life {
		t.Errorf("it stays for %s", left)
	}
}
