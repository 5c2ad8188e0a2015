package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/test/testdb"
)

// party is an application that uses the libraries that applications use.
type party struct {
	*world
	oauth    oauth2.Config
	provider *oidc.Provider
	claims   string // the parameter of that name
}

func (w *world) party(id, secret string, scopes ...string) *party {
	w.t.Helper()
	provider, err := oidc.NewProvider(w.t.Context(), w.url)
	must(w.t, err)
	return &party{w, oauth2.Config{
		ClientID:     id,
		ClientSecret: secret,
		Endpoint:     provider.Endpoint(),
		RedirectURL:  callback,
		Scopes:       append([]string{oidc.ScopeOpenID}, scopes...),
	}, provider, ""}
}

// code sends somebody with a session through the pages and gives the code with its verifier.
func (p *party) code(token string) (code, verifier string) {
	p.t.Helper()
	return p.codeFor(p.with(token))
}

func (p *party) codeFor(v *visitor) (code, verifier string) {
	p.t.Helper()
	verifier = oauth2.GenerateVerifier()
	options := []oauth2.AuthCodeOption{oidc.Nonce("no"), oauth2.S256ChallengeOption(verifier)}
	if p.claims != "" {
		options = append(options, oauth2.SetAuthURLParam("claims", p.claims))
	}
	back := v.signIn(p.oauth.AuthCodeURL("st", options...))
	if back.Get("state") != "st" || back.Get("iss") != p.url {
		p.t.Fatalf("sent back with %v", back)
	}
	return back.Get("code"), verifier
}

func (p *party) tokens(token string) *oauth2.Token {
	p.t.Helper()
	return p.tokensFor(p.with(token))
}

func (p *party) tokensFor(v *visitor) *oauth2.Token {
	p.t.Helper()
	code, verifier := p.codeFor(v)
	tokens, err := p.oauth.Exchange(p.t.Context(), code, oauth2.VerifierOption(verifier))
	must(p.t, err)
	return tokens
}

func TestCodeFlow(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		for _, tt := range []struct {
			name    string
			typ     app.Type
			method  app.AuthMethod
			style   oauth2.AuthStyle
			format  app.TokenFormat
			consent bool
		}{
			{"in a browser", app.SPA, app.NoAuth, oauth2.AuthStyleInParams, app.Opaque, false},
			{"in a browser, with JWTs", app.SPA, app.NoAuth, oauth2.AuthStyleInParams, app.JWT, true},
			{"with a secret in the header", app.Web, app.SecretBasic, oauth2.AuthStyleInHeader, app.Opaque, true},
			{"with a secret in the body", app.Web, app.SecretPost, oauth2.AuthStyleInParams, app.JWT, false},
			{"with a secret in the body that was to come in the header", app.Web, app.SecretBasic,
				oauth2.AuthStyleInParams, app.Opaque, false},
		} {
			t.Run(tt.name, func(t *testing.T) {
				id, secret := w.application(tt.typ, tt.method,
					func(s *app.Settings) { s.TokenFormat, s.ConsentRequired = tt.format, tt.consent })
				p := w.party(id, secret, "profile", "email", "offline_access", "urn:signet:org")
				p.oauth.Endpoint.AuthStyle = tt.style
				person := w.visitor(w.userID)
				tokens := p.tokensFor(person)
				if want := map[bool]string{false: "name password",
					true: "name password allow"}[tt.consent]; strings.Join(person.asked, " ") != want {
					t.Errorf("the pages asked for %q", person.asked)
				}
				if (strings.Count(tokens.AccessToken, ".") == 2) != (tt.format == app.JWT) ||
					tokens.RefreshToken == "" || tokens.TokenType != "Bearer" {
					t.Errorf("got %+v", tokens)
				}

				raw, _ := tokens.Extra("id_token").(string)
				idToken, err := p.provider.VerifierContext(t.Context(),
					&oidc.Config{ClientID: id, SupportedSigningAlgs: []string{"ES256"}}).Verify(t.Context(), raw)
				must(t, err)
				must(t, idToken.VerifyAccessToken(tokens.AccessToken))
				var claims struct {
					Azp      string         `json:"azp"`
					Sid      string         `json:"sid"`
					AMR      []string       `json:"amr"`
					ACR      string         `json:"acr"`
					AuthTime int64          `json:"auth_time"`
					Email    string         `json:"email"`
					Org      map[string]any `json:"urn:signet:org"`
				}
				must(t, idToken.Claims(&claims))
				if idToken.Subject != w.userID || idToken.Nonce != "no" || claims.Azp != id ||
					!strings.HasPrefix(claims.Sid, "ses_") || claims.AuthTime == 0 ||
					!slices.Equal(claims.AMR, []string{"pwd"}) || claims.ACR == "" || claims.Email != "" ||
					claims.Org["id"] != w.org {
					t.Errorf("the ID token says %+v %+v", idToken, claims)
				}

				info, err := p.provider.UserInfo(t.Context(), oauth2.StaticTokenSource(tokens))
				must(t, err)
				var profile map[string]any
				must(t, info.Claims(&profile))
				if info.Subject != w.userID || !info.EmailVerified || profile["name"] != "Jo Doe" {
					t.Errorf("the user info says %+v %v", info, profile)
				}

				// The library refreshes what has expired.
				tokens.Expiry = tokens.Expiry.AddDate(-1, 0, 0)
				fresh, err := p.oauth.TokenSource(t.Context(), tokens).Token()
				must(t, err)
				if fresh.RefreshToken == tokens.RefreshToken || fresh.AccessToken == tokens.AccessToken {
					t.Error("nothing was refreshed")
				}
				same, _ := fresh.Extra("scope").(string)
				if given, _ := tokens.Extra("scope").(string); same != given || same == "" ||
					fresh.Extra("id_token") == nil || !w.active(fresh.AccessToken) {
					t.Errorf("the new token is for %q, the first was for %q", same, given)
				}

				// A token for others is nothing to Signet's own API.
				if got := w.get(w.url+"/v1/users/me", "Authorization",
					"Bearer "+fresh.AccessToken); got.status != http.StatusUnauthorized {
					t.Errorf("the API answers %d", got.status)
				}

				p.ends(secret, person, fresh)
			})
		}
	})
}

// ends goes the rest of the way: tokens are looked at and taken back, and the person signs out.
func (p *party) ends(secret string, person *visitor, tokens *oauth2.Token) {
	p.t.Helper()
	var told struct {
		Introspection string `json:"introspection_endpoint"`
		Revocation    string `json:"revocation_endpoint"`
		EndSession    string `json:"end_session_endpoint"`
	}
	must(p.t, p.provider.Claims(&told))
	ask := func(endpoint, token string) reply {
		form, headers := url.Values{"token": {token}}, []string{"Content-Type", "application/x-www-form-urlencoded"}
		if p.oauth.Endpoint.AuthStyle == oauth2.AuthStyleInHeader {
			headers = append(headers, "Authorization", basic(p.oauth.ClientID, secret))
		} else {
			form.Set("client_id", p.oauth.ClientID)
			form.Set("client_secret", secret)
		}
		return p.request(http.MethodPost, endpoint, form.Encode(), headers...)
	}
	if secret == "" {
		if got := ask(told.Introspection, tokens.AccessToken); got.status != http.StatusUnauthorized {
			p.t.Errorf("a client that proves nothing is told %+v", got)
		}
	} else if got := ask(told.Introspection, tokens.AccessToken); got.json["active"] != true ||
		got.json["sub"] != p.userID || got.json["client_id"] != p.oauth.ClientID {
		p.t.Errorf("got %+v", got)
	}
	if got := ask(told.Revocation, tokens.RefreshToken); got.status != http.StatusOK || p.active(tokens.AccessToken) {
		p.t.Errorf("its refresh token is revoked, and the access token counts: %+v", got)
	}
	tokens.Expiry = tokens.Expiry.AddDate(-1, 0, 0)
	if _, err := p.oauth.TokenSource(p.t.Context(), tokens).Token(); err == nil {
		p.t.Error("a revoked token was refreshed")
	}

	// Whoever is signed in to Signet comes back at once, until they sign out.
	person.asked = nil
	p.oauth.Scopes = []string{oidc.ScopeOpenID} // without offline access, tokens end with the session
	short := p.tokensFor(person)
	if len(person.asked) != 0 || !p.active(short.AccessToken) {
		p.t.Errorf("the pages asked for %q", person.asked)
	}
	hint, _ := short.Extra("id_token").(string)
	const bye = "https://shop.test/bye"
	left := person.goOn(told.EndSession + "?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye},
		"state": {"st"}}.Encode())
	if left.at.String() != bye+"?state=st" || len(person.asked) != 0 || p.active(short.AccessToken) ||
		person.cookies["__Host-signet"] != "" {
		p.t.Errorf("signing out led to %s and asked for %q; the token counts: %t", left.at, person.asked,
			p.active(short.AccessToken))
	}
	p.tokensFor(person)
	left = person.goOn(told.EndSession + "?" + url.Values{"client_id": {p.oauth.ClientID},
		"post_logout_redirect_uri": {bye}}.Encode())
	if left.at.String() != bye || !slices.Equal(person.asked, []string{"name", "password", "end"}) {
		p.t.Errorf("signing out led to %s and asked for %q", left.at, person.asked)
	}
}

func TestDiscoverySaysOnlyWhatThereIs(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	whole := w.get(w.url + "/.well-known/openid-configuration").body
	for _, path := range []string{"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server",
		"/.well-known/openid-configuration/", "/.well-known/oauth-authorization-server/"} {
		got := w.get(w.url+path, "Origin", "https://anywhere.test")
		if got.status != 200 || got.json["issuer"] != w.url || got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Fatalf("%s: got %+v", path, got)
		}
		if got.body != whole {
			t.Errorf("%s says something else", path)
		}
		// With "none" in the lists of methods, clients that have a secret would not send it.
		for name, value := range got.json {
			if list, ok := value.([]any); ok && name != "prompt_values_supported" &&
				slices.Contains(list, any("none")) {
				t.Errorf("%s has none in %s", path, name)
			}
		}
		for _, absent := range []string{"implicit", `"password"`, "token-exchange", "plain", "registration_endpoint",
			"check_session_iframe", "request_parameter_supported\":true"} {
			if strings.Contains(got.body, absent) {
				t.Errorf("%s speaks of %s", path, absent)
			}
		}
		for name, address := range got.json {
			if text, ok := address.(string); ok && strings.HasSuffix(name, "_endpoint") {
				if got := w.request(http.MethodOptions, text, ""); got.status == http.StatusNotFound {
					t.Errorf("there is nothing at %s", text)
				}
			}
		}
	}
	if got := w.get(w.url + "/oauth/keys"); got.status != 200 || !strings.Contains(got.body, `"kid":"`) ||
		strings.Contains(got.body, `"d":`) ||
		!strings.Contains(got.header.Get("Cache-Control"), "max-age=900") {
		t.Errorf("got %+v", got)
	}
	// The API answers whatever is not the provider's.
	for path, status := range map[string]int{
		"/healthz": 200,
		"/ready":   404,
		"/.well-known/oauth-authorization-server/tenant": 404,
		"/.well-known/openid-configuration/tenant":       404,
		"/.well-known/oauth-authorization-server//":      404,
		"/oauth":                404,
		"/oauth/token/":         404,
		"/oauth/../oauth/token": 404,
		"/OAUTH/token":          404,
		"/oauth%2ftoken":        404,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
		must(t, err)
		r.URL.Opaque = strings.TrimPrefix(w.url, "http:") + path
		if got := w.send(r); got.status != status {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestTheTokenEndpointRefuses(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		public, _ := w.application(app.SPA, app.NoAuth)
		web, secret := w.application(app.Web, app.SecretBasic)
		exact, exactSecret := w.application(app.Web, app.SecretBasic,
			func(s *app.Settings) { s.ExactAuthMethod = true })
		body := func(pairs ...string) url.Values {
			v := url.Values{}
			for i := 0; i < len(pairs); i += 2 {
				v.Add(pairs[i], pairs[i+1])
			}
			return v
		}
		form := []string{"Content-Type", "application/x-www-form-urlencoded"}
		code, verifier := w.party(public, "").code(w.in)
		right := body("grant_type", "authorization_code", "client_id", public, "code", code, "redirect_uri", callback,
			"code_verifier", verifier)
		with := func(name, value string) url.Values {
			v := url.Values{}
			for k, vs := range right {
				v[k] = vs
			}
			if v.Set(name, value); value == "" {
				v.Del(name)
			}
			return v
		}
		for _, tt := range []struct {
			name   string
			got    reply
			status int
			want   string
		}{
			{"parameters in the query", w.request("POST", w.url+"/oauth/token?"+right.Encode(), "", form...), 400,
				"invalid_request"},
			{"one parameter in the query",
				w.request("POST", w.url+"/oauth/token?client_id="+public, right.Encode(), form...), 400,
				"invalid_request"},
			{"a parameter sent twice",
				w.request("POST", w.url+"/oauth/token", right.Encode()+"&client_id="+public, form...), 400,
				"invalid_request"},
			{"JSON", w.request("POST", w.url+"/oauth/token", `{"grant_type":"authorization_code"}`, "Content-Type",
				"application/json"), 400, "invalid_request"},
			{"GET", w.get(w.url + "/oauth/token"), 405, "invalid_request"},
			{"a body that is too large",
				w.request("POST", w.url+"/oauth/token", "x="+strings.Repeat("x", 70<<10), form...), 413,
				"invalid_request"},
			{"nothing", w.request("POST", w.url+"/oauth/token", "", form...), 400, "invalid_request"},
			{"the password grant",
				w.post("/oauth/token",
					body("grant_type", "password", "client_id", public, "username", "jo", "password", "x")), 400,
				"unsupported_grant_type"},
			{"token exchange",
				w.post("/oauth/token",
					body("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange", "client_id", public,
						"subject_token", "x",
						"subject_token_type", "urn:ietf:params:oauth:token-type:access_token")), 400,
				"unauthorized_client"},
			{"client credentials of an application",
				w.post("/oauth/token", body("grant_type", "client_credentials"), "Authorization", basic(web, secret)),
				400, "unauthorized_client"},
			{"a wrong secret", w.post("/oauth/token", right, "Authorization", basic(web, "sgn_sec_x")), 401,
				"invalid_client"},
			{"a secret in the body where the header is demanded",
				w.post("/oauth/token",
					body("grant_type", "refresh_token", "refresh_token", "x", "client_id", exact, "client_secret",
						exactSecret)), 401, "invalid_client"},
			{"no secret", w.post("/oauth/token", with("client_id", web)), 401, "invalid_client"},
			{"another client", w.post("/oauth/token", with("client_id", ""), "Authorization", basic(web, secret)), 400,
				"invalid_grant"},
			{"another redirect URI", w.post("/oauth/token", with("redirect_uri", callback+"/")), 400, "invalid_grant"},
			{"no verifier", w.post("/oauth/token", with("code_verifier", "")), 400, "invalid_grant"},
			{"another verifier", w.post("/oauth/token", with("code_verifier", verifier[1:]+"x")), 400, "invalid_grant"},
			{"a truncated code", w.post("/oauth/token", with("code", code[:len(code)-1])), 400, "invalid_grant"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if tt.got.status != tt.status || tt.got.json["error"] != tt.want ||
					tt.got.header.Get("X-Request-Id") == "" ||
					tt.got.header.Get("Cache-Control") != "no-store" || strings.Contains(tt.got.body, code) {
					t.Errorf("got %+v", tt.got)
				}
			})
		}
		if got := w.post("/oauth/token", right); got.status != 200 || got.json["id_token"] == nil {
			t.Errorf("nothing of that used the code up: %+v", got)
		}
	})
}

func basic(id, secret string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	return r.Header.Get("Authorization")
}

func TestNobodyIsSentToAnAddressThatIsNotRegistered(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	id, _ := w.application(app.SPA, app.NoAuth)
	base := url.Values{
		"client_id":             {id},
		"redirect_uri":          {callback},
		"response_type":         {"code"},
		"scope":                 {"openid"},
		"state":                 {"st"},
		"code_challenge":        {oauth2.S256ChallengeFromVerifier(oauth2.GenerateVerifier())},
		"code_challenge_method": {"S256"},
	}
	for _, tt := range []struct {
		name, parameter, value string
		back                   string // the error that the application is told; empty: a page
	}{
		{"an unknown client", "client_id", "app_none", ""},
		{"another address", "redirect_uri", "https://evil.test/", ""},
		{"an address below", "redirect_uri", callback + "/../../evil", ""},
		{"no address", "redirect_uri", "", ""},
		{"a script", "redirect_uri", "javascript:alert(1)", ""},
		{"implicit", "response_type", "id_token token", "unsupported_response_type"},
		{"a plain challenge", "code_challenge_method", "plain", "invalid_request"},
		{"no challenge", "code_challenge", "", "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := url.Values{}
			for k, v := range base {
				sent[k] = v
			}
			sent.Set(tt.parameter, tt.value)
			got := w.get(w.url+"/oauth/authorize?"+sent.Encode(), "Host", "evil.test", "X-Forwarded-Host", "evil.test")
			location := got.header.Get("Location")
			if tt.back == "" {
				if got.status != 400 || location != "" || strings.Contains(got.body, "evil") ||
					strings.Contains(got.body, "script") {
					t.Errorf("got %+v", got)
				}
				return
			}
			to, err := url.Parse(location)
			must(t, err)
			if got.status != 303 || !strings.HasPrefix(location, callback+"?") || to.Query().Get("error") != tt.back ||
				to.Query().Get("state") != "st" {
				t.Errorf("got %+v", got)
			}
		})
	}
	twice := w.get(w.url + "/oauth/authorize?" + base.Encode() + "&redirect_uri=https%3A%2F%2Fevil.test")
	if twice.status != 400 || twice.header.Get("Location") != "" {
		t.Errorf("got %+v", twice)
	}
	// A form from another site comes without cookies: it goes round once more. Links are made from the external URL.
	posted := w.request("POST", w.url+"/oauth/authorize", base.Encode(), "Content-Type",
		"application/x-www-form-urlencoded")
	if posted.status != 303 || !strings.HasPrefix(posted.header.Get("Location"), w.url+"/oauth/authorize?") {
		t.Errorf("got %+v", posted)
	}
}

func TestWhoSeesAndEndsTokens(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id, secret := w.application(app.Web, app.SecretPost)
		other, otherSecret := w.application(app.API, app.SecretPost,
			func(s *app.Settings) { s.GrantTypes, s.RedirectURIs = nil, nil })
		foreign, foreignSecret := w.application(app.Web, app.SecretPost)
		public, _ := w.application(app.SPA, app.NoAuth)
		p := w.party(id, secret, "offline_access", "urn:signet:app:"+other+":aud")
		p.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		tokens := p.tokens(w.in)
		ask := func(path, id, secret, token string) reply {
			v := url.Values{"client_id": {id}, "token": {token}}
			if secret != "" {
				v.Set("client_secret", secret)
			}
			return w.post(path, v)
		}
		for _, tt := range []struct {
			name, id, secret string
			active           bool
		}{{"the client", id, secret, true}, {"the audience", other, otherSecret, true},
			{"somebody else", foreign, foreignSecret, false}} {
			got := ask("/oauth/introspect", tt.id, tt.secret, tokens.AccessToken)
			if got.status != 200 || got.json["active"] != tt.active ||
				tt.active && (got.json["sub"] != w.userID || got.json["client_id"] != id) ||
				!tt.active && len(got.json) != 1 {
				t.Errorf("%s: got %+v", tt.name, got)
			}
		}
		for name, got := range map[string]reply{
			"a public client":             ask("/oauth/introspect", public, "", tokens.AccessToken),
			"a wrong secret":              ask("/oauth/introspect", id, otherSecret, tokens.AccessToken),
			"a client without its secret": ask("/oauth/introspect", id, "", tokens.AccessToken),
			"nobody":                      w.post("/oauth/introspect", url.Values{"token": {tokens.AccessToken}}),
		} {
			if got.status != 401 || got.json["error"] != "invalid_client" ||
				strings.HasPrefix(got.header.Get("Www-Authenticate"), "Basic ") != (name == "nobody") {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		if got := ask("/oauth/introspect", id, secret, w.in); got.json["active"] != false {
			t.Errorf("a session is shown: %+v", got)
		}

		// Revoking: one's own only, and what is unknown is no error.
		for _, token := range []string{tokens.AccessToken, tokens.RefreshToken, "nonsense"} {
			if got := ask("/oauth/revoke", foreign, foreignSecret, token); got.status != 200 {
				t.Errorf("got %+v", got)
			}
		}
		if got := ask("/oauth/introspect", id, secret, tokens.AccessToken); got.json["active"] != true {
			t.Fatal("somebody else revoked it")
		}
		ask("/oauth/revoke", id, secret, tokens.RefreshToken)
		if got := ask("/oauth/introspect", id, secret, tokens.AccessToken); got.json["active"] != false {
			t.Error("it lives on without its refresh token")
		}
		if got := w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+tokens.AccessToken); got.status != 401 ||
			!strings.Contains(got.header.Get("Www-Authenticate"), `error="invalid_token"`) {
			t.Errorf("got %+v", got)
		}
		for name, got := range map[string]reply{
			"no token":             w.get(w.url + "/oauth/userinfo"),
			"a session":            w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+w.in),
			"a token in the query": w.get(w.url + "/oauth/userinfo?access_token=" + tokens.AccessToken),
		} {
			if got.status == 200 {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	})
}

// People of two organizations may have the same user name, and a mail server must not open one's mailbox for the other.
func TestIntrospectionNamesPeopleWithTheirDomain(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	id, secret := w.application(app.Web, app.SecretBasic)
	tokens := w.party(id, secret, "profile").tokens(w.in)
	user := w.get(w.url+"/v1/users/"+w.userID, "Authorization", "Bearer "+w.server.FirstAdmin.Token)
	names := user.json["user"].(map[string]any)["loginNames"].([]any)
	got := w.post("/oauth/introspect", url.Values{"token": {tokens.AccessToken}}, "Authorization", basic(id, secret))
	if name, _ := got.json["username"].(string); name != names[0] || !strings.Contains(name, "@") {
		t.Errorf("introspection says %q, the login names are %v", name, names)
	}
	if info := w.get(w.url+"/oauth/userinfo", "Authorization",
		"Bearer "+tokens.AccessToken); info.json["preferred_username"] == nil || info.json["username"] != nil {
		t.Errorf("user info says %v", info.json)
	}
	without := w.party(id, secret).tokens(w.in) // the scope profile covers it
	if got := w.post("/oauth/introspect", url.Values{"token": {without.AccessToken}}, "Authorization",
		basic(id, secret)); got.json["active"] != true || got.json["username"] != nil {
		t.Errorf("got %v", got.json)
	}
}

func TestOtherOrigins(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	id, _ := w.application(app.SPA, app.NoAuth)
	web, secret := w.application(app.Web, app.SecretPost)
	tokens := w.party(id, "").tokens(w.in)
	const own, foreign = "https://shop.test", "https://evil.test"
	for _, tt := range []struct {
		name string
		got  reply
		want string
	}{
		{"user info, where the application runs",
			w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+tokens.AccessToken, "Origin", own), own},
		{"user info, elsewhere",
			w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+tokens.AccessToken, "Origin", foreign), ""},
		{"a refused code, where the application runs",
			w.post("/oauth/token",
				url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {"x"},
					"redirect_uri": {callback}}, "Origin", own), own},
		{"a refused code, elsewhere",
			w.post("/oauth/token",
				url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {"x"},
					"redirect_uri": {callback}}, "Origin", foreign), ""},
		{"an application on a server",
			w.post("/oauth/revoke", url.Values{"client_id": {web}, "client_secret": {secret}, "token": {"x"}},
				"Origin", own), ""},
		{"introspection", w.post("/oauth/introspect",
			url.Values{"client_id": {web}, "client_secret": {secret}, "token": {"x"}}, "Origin", own), ""},
		{"keys", w.get(w.url+"/oauth/keys", "Origin", foreign), "*"},
		{"a question before user info",
			w.request("OPTIONS", w.url+"/oauth/userinfo", "", "Origin", own,
				"Access-Control-Request-Method", "GET"), own},
		{"a question before introspection",
			w.request("OPTIONS", w.url+"/oauth/introspect", "", "Origin", own,
				"Access-Control-Request-Method", "POST"), ""},
	} {
		if got := tt.got.header.Get("Access-Control-Allow-Origin"); got != tt.want ||
			(tt.got.header.Get("Access-Control-Allow-Credentials") == "true") != (got == own) ||
			tt.got.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %q %+v", tt.name, got, tt.got)
		}
	}
}

func TestSigningOut(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	id, _ := w.application(app.SPA, app.NoAuth)
	other, _ := w.application(app.SPA, app.NoAuth)
	hint, _ := w.party(id, "").tokens(w.in).Extra("id_token").(string)
	old, err := w.server.Grants().Signer.Sign(context.Background(), "ES256", "JWT",
		map[string]any{"iss": w.url, "aud": id, "sub": w.userID, "sid": "ses_x", "exp": 1})
	must(t, err)
	forged, err := open(t, testdb.New(t, testdb.SQLite)).server.Grants().Signer.Sign(context.Background(), "ES256",
		"JWT", map[string]any{"iss": w.url, "aud": id, "sub": w.userID})
	must(t, err)
	foreign, err := w.server.Grants().Signer.Sign(context.Background(), "ES256", "JWT",
		map[string]any{"iss": "https://other.test", "aud": id, "sub": w.userID})
	must(t, err)
	const bye = "https://shop.test/bye"
	for _, tt := range []struct {
		name string
		ask  url.Values
		fine bool
	}{
		{"with a hint", url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}, "state": {"st"}}, true},
		{"with a hint that has expired", url.Values{"id_token_hint": {old}, "post_logout_redirect_uri": {bye}}, true},
		{"with the client", url.Values{"client_id": {id}, "post_logout_redirect_uri": {bye}}, true},
		{"with nothing", url.Values{}, true},
		{"an address without a client", url.Values{"post_logout_redirect_uri": {bye}}, false},
		{"an address that is not registered",
			url.Values{"client_id": {id}, "post_logout_redirect_uri": {bye + "/"}}, false},
		{"an address for signing in", url.Values{"client_id": {id}, "post_logout_redirect_uri": {callback}}, false},
		{"a forged hint", url.Values{"id_token_hint": {forged}, "post_logout_redirect_uri": {bye}}, false},
		{"a hint of another issuer", url.Values{"id_token_hint": {foreign}}, false},
		{"a hint of another client", url.Values{"id_token_hint": {hint}, "client_id": {other}}, false},
		{"nonsense", url.Values{"id_token_hint": {"nonsense"}}, false},
	} {
		got := w.get(w.url + "/oauth/logout?" + tt.ask.Encode())
		if tt.fine != strings.HasPrefix(got.header.Get("Location"), w.url+"/logout?request=") ||
			!tt.fine && (got.status != 400 || got.header.Get("Location") != "") {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}
