package oidc_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
)

// walk tries out what the discovery document promises, one field after the other, with nothing but its own words.
type walk struct {
	*world
	said  map[string]any
	whole string // a person who has told everything about themselves
}

func (k *walk) at(endpoint string) string { k.t.Helper(); return k.said[endpoint].(string) }

// ask sends a form to an endpoint.
func (k *walk) ask(endpoint string, form url.Values, headers ...string) reply {
	k.t.Helper()
	return k.request(http.MethodPost, k.at(endpoint), form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// Whatever the document says has been tried, and a word that nobody has tried is an error: so it says only what works.
func TestDiscoveryPromisesNothingThatDoesNotWork(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite), func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.1"} })
	k := &walk{world: w, said: w.get(w.url + "/.well-known/openid-configuration").json, whole: w.everything()}
	each := func(try map[string]func()) func(any) {
		return func(values any) {
			t.Helper()
			for _, value := range values.([]any) {
				do := try[value.(string)]
				if do == nil {
					t.Errorf("nobody has tried %s", value)
					continue
				}
				do()
				delete(try, value.(string))
			}
			for value := range try {
				t.Errorf("%s works and is not told", value)
			}
		}
	}
	methods := func(endpoint string) func(any) {
		try := map[string]func(){}
		for _, m := range []app.AuthMethod{app.SecretBasic, app.SecretPost, app.PrivateKeyJWT} {
			try[string(m)] = func() { k.proves(endpoint, m, "ES256") }
		}
		if endpoint != "introspection_endpoint" {
			k.proves(endpoint, app.NoAuth, "ES256") // works, and is not told: see Provider.discovery
		}
		return each(try)
	}
	algorithms := func(endpoint string) func(any) {
		own, err := ownKeys()
		must(t, err)
		try := map[string]func(){}
		for a := range own {
			try[a] = func() { k.proves(endpoint, app.PrivateKeyJWT, a) }
		}
		return each(try)
	}
	nothing := func() {}
	answers := func(address any) {
		if got := w.request(http.MethodOptions, address.(string), ""); got.status == http.StatusNotFound {
			t.Errorf("there is nothing at %s", address)
		}
	}
	try := map[string]func(value any){
		"issuer": func(v any) {
			_, err := oidc.NewProvider(t.Context(), v.(string))
			must(t, err)
		},
		"authorization_endpoint":                answers,
		"token_endpoint":                        answers,
		"introspection_endpoint":                answers,
		"userinfo_endpoint":                     answers,
		"revocation_endpoint":                   answers,
		"end_session_endpoint":                  answers,
		"device_authorization_endpoint":         answers,
		"pushed_authorization_request_endpoint": func(any) { k.push() },
		"require_pushed_authorization_requests": func(v any) { // byCode does without
			if v != false {
				t.Error("they are not required of everybody")
			}
		},
		"jwks_uri": answers,
		"grant_types_supported": each(map[string]func(){
			"authorization_code":                           func() { k.byCode("ES256") },
			"refresh_token":                                k.byRefresh,
			"client_credentials":                           k.byCredentials,
			"urn:ietf:params:oauth:grant-type:jwt-bearer":  k.byBearer,
			"urn:ietf:params:oauth:grant-type:device_code": k.byDevice,
		}),
		"response_types_supported": each(map[string]func(){"code": nothing}), // byCode
		"response_modes_supported": each(map[string]func(){"query": nothing,
			"fragment": func() { k.mode("fragment") }, "form_post": func() { k.mode("form_post") }}),
		"code_challenge_methods_supported": each(map[string]func(){"S256": nothing}),
		// all applications are told the id of the user
		"subject_types_supported": each(map[string]func(){"public": nothing}),
		"id_token_signing_alg_values_supported": each(map[string]func(){"ES256": func() { k.byCode("ES256") },
			"RS256": func() { k.byCode("RS256") }}),
		"acr_values_supported": each(map[string]func(){"urn:signet:acr:single": func() {
			k.acr(false)
		}, "urn:signet:acr:multi": func() { k.acr(true) }}),
		"prompt_values_supported": each(map[string]func(){
			"none":           func() { k.prompt("none", "login_required") },
			"login":          func() { k.prompt("login", "") },
			"consent":        func() { k.prompt("consent", "") },
			"select_account": func() { k.prompt("select_account", "") },
			"create":         func() { k.prompt("create", "") },
		}),
		"token_endpoint_auth_methods_supported":                    methods("token_endpoint"),
		"revocation_endpoint_auth_methods_supported":               methods("revocation_endpoint"),
		"introspection_endpoint_auth_methods_supported":            methods("introspection_endpoint"),
		"token_endpoint_auth_signing_alg_values_supported":         algorithms("token_endpoint"),
		"revocation_endpoint_auth_signing_alg_values_supported":    algorithms("revocation_endpoint"),
		"introspection_endpoint_auth_signing_alg_values_supported": algorithms("introspection_endpoint"),
		"dpop_signing_alg_values_supported": each(map[string]func(){
			"ES256": func() { k.binds("ES256") }, "EdDSA": func() { k.binds("EdDSA") }, "PS256": func() { k.binds("PS256") },
		}),
		"scopes_supported":                               k.scopesAndClaims,
		"claims_supported":                               nil, // with the scopes
		"claims_parameter_supported":                     k.claimsByName,
		"request_uri_parameter_supported":                k.noRequestObjects,
		"authorization_response_iss_parameter_supported": func(v any) { _ = v.(bool) }, // party.code holds it
		"backchannel_logout_supported":                   k.backChannel,
		"backchannel_logout_session_supported":           nil,
	}
	for name, value := range k.said {
		do, known := try[name]
		if !known {
			t.Errorf("nobody has tried %s", name)
		}
		if do != nil {
			t.Run(name, func(*testing.T) { do(value) })
		}
	}
}

// everything adds a person of whom there is everything to tell.
func (w *world) everything() string {
	w.t.Helper()
	id := user.Kind.NewID()
	w.do(event.Command{
		Write:  []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim(w.org, syntax.NameKey("all"))},
		Decide: func(tx *event.Tx) error {
			u, err := user.AddHuman(tx, id, w.org, &user.NewHuman{
				UserName:      "all",
				Email:         "all@mail.test",
				EmailVerified: true,
				Phone:         "+41791234567",
				PhoneVerified: true,
				Profile: user.Profile{FirstName: "A", LastName: "B", DisplayName: "A B", NickName: "C",
					PreferredLanguage: "de", Gender: user.Diverse},
			})
			if err != nil {
				return err
			}
			return u.Append(user.MembershipSet{Scope: w.org, Roles: []access.Role{access.OrgOwner}})
		},
	})
	return id
}

// Keys by the algorithm that they are for: those of applications, and those of somebody else.
var ownKeys, otherKeys = sync.OnceValues(keys), sync.OnceValues(keys)

func keys() (map[string]crypto.Signer, error) {
	all := map[string]crypto.Signer{}
	for name, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(),
		"ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			return nil, err
		}
		all[name] = key
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	all["EdDSA"] = edwards
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	for _, name := range []string{"PS256", "PS384", "PS512", "RS256", "RS384", "RS512"} {
		all[name] = key
	}
	return all, err
}

// proves lets an application prove itself at an endpoint, and somebody who cannot.
func (k *walk) proves(endpoint string, method app.AuthMethod, algorithm string) {
	k.t.Helper()
	typ := app.Web
	if method == app.NoAuth {
		typ = app.SPA
	}
	id, secretText := k.application(typ, method)
	form := url.Values{"token": {"nothing"}, "grant_type": {"refresh_token"}, "refresh_token": {"nothing"}}
	right, wrong := url.Values{"client_id": {id}}, url.Values{"client_id": {"app_none"}}
	var headers [2][]string
	switch method {
	case app.SecretBasic:
		right, wrong = url.Values{}, url.Values{}
		headers[0], headers[1] = []string{"Authorization", basic(id, secretText)},
			[]string{"Authorization", basic(id, secretText+"x")}
	case app.SecretPost:
		right.Set("client_secret", secretText)
		wrong = url.Values{"client_id": {id}, "client_secret": {secretText + "x"}}
	case app.PrivateKeyJWT:
		own, err := ownKeys()
		must(k.t, err)
		other, err := otherKeys()
		must(k.t, err)
		k.key(id, public(k.t, own[algorithm]))
		right = url.Values{"client_assertion_type": {byAssertion},
			"client_assertion": {k.signed(id, algorithm, own[algorithm], "")}}
		wrong = url.Values{"client_assertion_type": {byAssertion},
			"client_assertion": {k.signed(id, algorithm, other[algorithm], "")}}
	}
	send := func(proof url.Values, header []string) int {
		for name, values := range form {
			proof[name] = values
		}
		return k.ask(endpoint, proof, header...).status
	}
	// The token endpoint knows whom it refuses a token that is none.
	want := map[bool]int{true: 400, false: 200}[endpoint == "token_endpoint"]
	if got, other := send(right, headers[0]), send(wrong, headers[1]); got != want || other != 401 {
		k.t.Errorf("%s, %s, %s: answered with %d, and somebody else with %d", endpoint, method, algorithm, got, other)
	}
}

func (k *walk) byCode(algorithm string) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth, func(s *app.Settings) { s.SigningAlgorithm = algorithm })
	p := k.party(id, "")
	raw, _ := p.tokens(k.in).Extra("id_token").(string)
	said, err := p.provider.VerifierContext(k.t.Context(),
		&oidc.Config{ClientID: id, SupportedSigningAlgs: []string{algorithm}}).Verify(k.t.Context(), raw)
	must(k.t, err)
	if said.Subject != k.userID {
		k.t.Errorf("it is about %s", said.Subject)
	}
}

func (k *walk) byRefresh() {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	tokens := k.party(id, "", "offline_access").tokens(k.in)
	k.fine(k.ask("token_endpoint",
		url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens.RefreshToken}}))
}

// fine refuses an answer that has no token that counts.
func (k *walk) fine(got reply) {
	k.t.Helper()
	text, _ := got.json["access_token"].(string)
	if got.status != 200 || k.get(k.at("userinfo_endpoint"), "Authorization", "Bearer "+text).status != 200 {
		k.t.Errorf("got %+v", got)
	}
}

func (k *walk) byCredentials() {
	k.t.Helper()
	id, secretText, _ := k.robot()
	k.fine(k.ask("token_endpoint", url.Values{"grant_type": {"client_credentials"}, "scope": {"openid"}},
		"Authorization", basic(id, secretText)))
}

func (k *walk) byBearer() {
	k.t.Helper()
	id, _, key := k.robot()
	k.fine(k.ask("token_endpoint",
		url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
			"assertion": {k.assertion(id, key, "")}, "scope": {"openid"}}))
}

func (k *walk) byDevice() {
	k.t.Helper()
	id, _ := k.application(app.Native, app.NoAuth)
	shown := k.ask("device_authorization_endpoint", url.Values{"client_id": {id}, "scope": {"openid"}})
	if shown.status != 200 {
		k.t.Fatalf("got %+v", shown)
	}
	k.with(k.in).goOn(shown.json["verification_uri_complete"].(string))
	k.fine(k.ask("token_endpoint",
		url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {id},
			"device_code": {shown.json["device_code"].(string)}}))
}

// claims reads what was signed for an application.
func (k *walk) claims(id, text string) (claims map[string]any) {
	k.t.Helper()
	provider, err := oidc.NewProvider(k.t.Context(), k.at("issuer"))
	must(k.t, err)
	said, err := provider.VerifierContext(k.t.Context(), &oidc.Config{ClientID: id}).Verify(k.t.Context(), text)
	must(k.t, err)
	must(k.t, said.Claims(&claims))
	return claims
}

// acr signs in with one factor or with two.
func (k *walk) acr(second bool) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	raw, _ := k.party(id, "").tokens(k.proven(second)).Extra("id_token").(string)
	claims := k.claims(id, raw)
	if want := map[bool]string{false: "urn:signet:acr:single",
		true: "urn:signet:acr:multi"}[second]; claims["acr"] != want {
		k.t.Errorf("got %v", claims)
	}
}

// proven opens a session with a proof.
func (w *world) proven(second bool) string {
	w.t.Helper()
	text, hash := secret.NewToken(secret.Session)
	w.do(event.Command{
		Read: []event.Ref{user.Kind.Ref(w.userID), org.Kind.Ref(w.org)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, w.userID)
			if err != nil {
				return err
			}
			proof, err := json.Marshal(session.Proof{Methods: []session.Method{session.ByPassword, session.ByTOTP},
				At: tx.Now(), SecondFactor: second})
			if err != nil {
				return err
			}
			tx.PutToken(event.Token{
				ID:      event.NewID("ses"),
				Hash:    hash,
				Kind:    string(secret.Session),
				UserID:  w.userID,
				Epoch:   u.Data.SessionEpoch,
				Created: tx.Now(),
				Expires: tx.Now() + time.Hour.Microseconds(),
				Data:    string(proof),
			})
			return nil
		},
	})
	return text
}

// scopesAndClaims asks for all that can be asked for, and looks for all that is told.
func (k *walk) scopesAndClaims(scopes any) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	k.api(k.org, "PUT", "/v1/apps/"+id+"/api_access", `{"scopes":["`+strings.Join(access.APIScopeNames, `","`)+`"]}`)
	project := k.api(k.org, "POST", "/v1/projects", `{"name":"Shop"}`).json["projectId"].(string)
	k.api(k.org, "PUT", "/v1/apps/"+id+"/role_settings",
		`{"projectId":"`+project+`","rolesInTokens":true,"groupsInTokens":true,"metadataKeys":["team"]}`)
	k.api(k.org, "PUT", "/v1/users/"+k.whole+"/metadata", `{"set":[{"key":"team","value":"blue"}]}`)
	var asked []string
	for _, s := range scopes.([]any) {
		asked = append(asked, s.(string))
	}
	p := k.party(id, "", asked...)
	tokens := p.tokens(k.signIn(k.whole))
	given := strings.Fields(tokens.Extra("scope").(string))
	for _, s := range asked {
		if !slices.Contains(given, s) {
			k.t.Errorf("%s is not given", s)
		}
	}
	raw, _ := tokens.Extra("id_token").(string)
	claims := k.claims(id, raw)
	info, err := p.provider.UserInfo(k.t.Context(), oauth2.StaticTokenSource(tokens))
	must(k.t, err)
	must(k.t, info.Claims(&claims))
	var told []string
	for _, c := range k.said["claims_supported"].([]any) {
		told = append(told, c.(string))
		if _, there := claims[c.(string)]; !there {
			k.t.Errorf("%s is never told", c)
		}
	}
	for c := range claims {
		if !slices.Contains(told, c) {
			k.t.Errorf("%s is told, and the document does not say so", c)
		}
	}
}

// claimsByName asks for a claim in the ID token that is not there by itself.
func (k *walk) claimsByName(supported any) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	for _, claims := range []string{"", `{"id_token":{"email":{"essential":true}},"userinfo":{"name":null}}`} {
		p := k.party(id, "", "email")
		p.claims = claims
		raw, _ := p.tokens(k.signIn(k.whole)).Extra("id_token").(string)
		told := k.claims(id, raw)
		if _, there := told["email"]; supported != true || there != (claims != "") || told["email_verified"] != nil {
			k.t.Errorf("with %q, it tells %v", claims, told)
		}
	}
}

// binds gets a token for a key.
func (k *walk) binds(algorithm string) {
	k.t.Helper()
	own, err := ownKeys()
	must(k.t, err)
	(&prover{k.world, jose.SignatureAlgorithm(algorithm), own[algorithm]}).robotToken("openid")
}

// push lets every kind of client push a request, and signs somebody in by it.
func (k *walk) push() {
	k.t.Helper()
	for _, typ := range []app.Type{app.Web, app.SPA} {
		method, headers := app.NoAuth, []string(nil)
		if typ == app.Web {
			method = app.SecretBasic
		}
		id, secretText := k.application(typ, method, func(s *app.Settings) { s.PushedRequired = true })
		if typ == app.Web {
			headers = []string{"Authorization", basic(id, secretText)}
		}
		verifier := oauth2.GenerateVerifier()
		got := k.ask("pushed_authorization_request_endpoint", url.Values{"client_id": {id}, "response_type": {"code"},
			"redirect_uri": {callback}, "scope": {"openid"}, "state": {"st"}, "code_challenge_method": {"S256"},
			"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}}, headers...)
		uri, _ := got.json["request_uri"].(string)
		if got.status != http.StatusCreated || got.json["expires_in"] != 60.0 {
			k.t.Fatalf("got %+v", got)
		}
		back := k.with(k.in).signIn(k.at("authorization_endpoint") + "?" +
			url.Values{"client_id": {id}, "request_uri": {uri}}.Encode())
		form := url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Get("code")},
			"redirect_uri": {callback}, "code_verifier": {verifier}}
		k.fine(k.ask("token_endpoint", form, headers...))
	}
}

func (k *walk) noRequestObjects(supported any) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	got := k.get(k.party(id, "").oauth.AuthCodeURL("st",
		oauth2.SetAuthURLParam("request_uri", "https://shop.test/request")))
	to, err := url.Parse(got.header.Get("Location"))
	must(k.t, err)
	if supported != false || to.Query().Get("error") != "request_not_supported" &&
		to.Query().Get("error") != "request_uri_not_supported" {
		k.t.Errorf("sent to %s", to)
	}
}

// prompt begins a sign-in with a prompt in a browser that nobody is signed in to: it leads back with an error, or to a
// page.
func (k *walk) prompt(value, refused string) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	at := k.with("").visit("GET",
		k.party(id, "").oauth.AuthCodeURL("st", oauth2.SetAuthURLParam("prompt", value),
			oauth2.S256ChallengeOption(oauth2.GenerateVerifier())), nil).at
	if at.Query().Get("error") != refused || refused == "" && !strings.HasPrefix(at.Path, "/login") {
		k.t.Errorf("prompt=%s leads to %s", value, at)
	}
}

// mode signs somebody in with a response mode, and takes the code from where it belongs.
func (k *walk) mode(value string) {
	k.t.Helper()
	id, _ := k.application(app.SPA, app.NoAuth)
	p, verifier := k.party(id, ""), oauth2.GenerateVerifier()
	got := k.with(k.in).visit("GET",
		p.oauth.AuthCodeURL("st", oauth2.SetAuthURLParam("response_mode", value),
			oauth2.S256ChallengeOption(verifier)), nil)
	back, err := url.ParseQuery(got.at.EscapedFragment())
	must(k.t, err)
	if value == "form_post" {
		back = url.Values{}
		for _, field := range regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`).FindAllStringSubmatch(got.body, -1) {
			back.Set(field[1], html.UnescapeString(field[2]))
		}
		if !strings.Contains(got.body, `action="`+callback+`"`) {
			k.t.Errorf("it goes elsewhere: %s", got.body)
		}
	}
	if back.Get("state") != "st" || back.Get("iss") != k.url || got.at.Query().Has("code") {
		k.t.Errorf("response_mode=%s: at %s with %v", value, got.at, back)
	}
	k.fine(k.ask("token_endpoint",
		url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Get("code")},
			"redirect_uri": {callback}, "code_verifier": {verifier}}))
}

// backChannel ends a session and waits for the application to be told.
func (k *walk) backChannel(any) {
	k.t.Helper()
	told := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told <- r.PostFormValue("logout_token")
	}))
	defer receiver.Close()
	id, _ := k.application(app.SPA, app.NoAuth, func(s *app.Settings) { s.BackChannelLogoutURI = receiver.URL })
	in := k.signIn(k.userID)
	k.party(id, "").tokens(in)
	b := k.bearer(in)
	must(k.t, k.server.Grants().Sessions.End(k.t.Context(), session.Own(b.Caller), b.Token.ID))
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	select {
	case text := <-told:
		claims := k.claims(id, text)
		if claims["sid"] != b.Token.ID || claims["aud"] != id || claims["sub"] != k.userID {
			k.t.Errorf("it was told %v", claims)
		}
	case <-ctx.Done():
		k.t.Error("it was not told")
	}
}
