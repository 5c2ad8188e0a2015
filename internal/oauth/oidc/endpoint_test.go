package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/web"
)

// noKeys has no keys.
type noKeys struct{ Keys }

func (noKeys) KeySet(context.Context) (jose.JSONWebKeySet, time.Duration, error) {
	return jose.JSONWebKeySet{}, time.Minute, nil
}

// provider is that of an organization with the person usr_a and the applications app_spa, which keeps no secret,
// app_web, whose secret nobody knows, and app_tv, a device.
func provider(t *testing.T) (*Provider, *eventtest.Store) {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, session.Kind, app.Kind, oauth.Kind, signing.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "a"})
	eventtest.Given(t, s, user.Kind, "usr_a", "org_a", []event.Claim{user.NameClaim("org_a", "jo")},
		user.HumanAdded{Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo"}})
	add := func(id string, typ app.Type, method app.AuthMethod, grants ...app.GrantType) {
		eventtest.Given(t, s, app.Kind, id, "org_a", nil, app.Added{
			Name:    id,
			NameKey: id,
			Type:    typ,
			Settings: app.Settings{AuthMethod: method, TokenFormat: app.Opaque,
				GrantTypes: grants, RedirectURIs: []string{shop + "/callback"}, SigningAlgorithm: "ES256",
				AccessTokenSeconds: 60, RefreshTokenSeconds: 60},
		})
	}
	add("app_spa", app.SPA, app.NoAuth, app.AuthorizationCode, app.RefreshToken)
	add("app_web", app.Web, app.SecretBasic, app.AuthorizationCode, app.RefreshToken)
	add("app_tv", app.Native, app.NoAuth, app.DeviceCode)
	keys := signing.New(s, s.Master, s.Now)
	p, err := New(Config{
		Keys: keys,
		Grants: &oauth.Grants{Store: s, Master: s.Master, Clock: s.Now, Issuer: "https://id.test", Signer: keys,
			Sessions: &session.Sessions{Store: s, Master: s.Master, Clock: s.Now, Standings: &session.Standings{},
				Audience: "https://id.test"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

// site serves a provider that has no keys. What it logs goes to log.
func site(t *testing.T, log *bytes.Buffer) http.Handler {
	t.Helper()
	p, _ := provider(t)
	p.config.Keys = noKeys{}
	all, err := web.New(web.Config{API: noAPI{}, Log: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for path, handler := range p.Handlers() {
		all.Handle(path, handler)
	}
	return all
}

const (
	formType  = "application/x-www-form-urlencoded"
	theClient = "the client is unknown or its authentication failed: check its id, its credential and its authentication method"
	hush      = "hush-hush"         // is sent as a secret
	shop      = "https://shop.test" // where app_spa runs
)

// refusals are requests to an endpoint and the exact answers to them.
var refusals = []struct {
	name, method, path, header, form string
	status                           int
	code, description                string
	challenge                        string
}{
	{"no grant type", "POST", tokenPath, "", "client_id=app_spa", 400, "invalid_request", "grant_type missing", ""},
	{"an unknown grant type", "POST", tokenPath, "", "grant_type=pass<word>&password=" + hush, 400,
		"unsupported_grant_type",
		"this grant_type is not supported: use one of authorization_code, refresh_token, client_credentials, urn:ietf:params:oauth:grant-type:jwt-bearer, urn:ietf:params:oauth:grant-type:device_code", ""},
	{"token exchange", "POST", tokenPath, "",
		"grant_type=urn:ietf:params:oauth:grant-type:token-exchange&client_id=app_spa&subject_token=" + hush, 400,
		"unauthorized_client",
		"this client must not use this grant_type: add it to the grantTypes of the application", ""},
	{"a grant type it is not registered for", "POST", tokenPath, "", "grant_type=client_credentials&client_id=app_spa",
		400, "unauthorized_client",
		"this client must not use this grant_type: add it to the grantTypes of the application", ""},
	{"no client", "POST", tokenPath, "", "grant_type=refresh_token&refresh_token=" + hush, 400, "invalid_request",
		"client_id or client_assertion must be provided", ""},
	{"an unknown client", "POST", tokenPath, "", "grant_type=refresh_token&client_id=app_none", 401, "invalid_client",
		theClient, ""},
	{"an unknown client in the header", "POST", tokenPath, inHeader("app_none", ""), "grant_type=refresh_token", 401,
		"invalid_client", theClient, basicChallenge},
	{"a wrong secret in the body", "POST", tokenPath, "",
		"grant_type=refresh_token&client_id=app_web&client_secret=" + hush, 401, "invalid_client", theClient, ""},
	{"an assertion that proves nothing", "POST", tokenPath, "",
		"grant_type=refresh_token&client_assertion_type=" + assertionType + "&client_assertion=" + hush, 401,
		"invalid_client", theClient, ""},
	{"a secret of a client that has none", "POST", tokenPath, "",
		"grant_type=refresh_token&refresh_token=x&client_id=app_spa&client_secret=" + hush, 401, "invalid_client",
		theClient, ""},
	{"a secret of a client that has none, in the header", "POST", tokenPath, inHeader("app_spa", hush),
		"grant_type=refresh_token&refresh_token=x", 401, "invalid_client", theClient, basicChallenge},
	{"an empty secret of a client that has none", "POST", tokenPath, "",
		"grant_type=refresh_token&refresh_token=x&client_id=app_spa&client_secret=", 400, "invalid_grant",
		oauth.ErrInvalidGrant.Message, ""},
	{"an empty secret of a client that has none, in the header", "POST", tokenPath, inHeader("app_spa", ""),
		"grant_type=refresh_token&refresh_token=x", 400, "invalid_grant", oauth.ErrInvalidGrant.Message, ""},
	{"no secret of a client that has one", "POST", tokenPath, inHeader("app_web", ""),
		"grant_type=refresh_token&refresh_token=x", 401, "invalid_client", theClient, basicChallenge},
	{"a wrong secret", "POST", tokenPath, inHeader("app_web", hush), "grant_type=refresh_token", 401, "invalid_client",
		theClient, basicChallenge},
	{"a header that cannot be decoded", "POST", tokenPath, inHeader("app_web", "%"+hush), "grant_type=refresh_token",
		400, "invalid_client", "invalid basic auth header", ""},
	{"no code", "POST", tokenPath, "", "grant_type=authorization_code&client_id=app_spa&redirect_uri=x", 400,
		"invalid_request", "code missing", ""},
	{"no redirect URI", "POST", tokenPath, "", "grant_type=authorization_code&client_id=app_spa&code=" + hush, 400,
		"invalid_request", "redirect_uri missing", ""},
	{"no refresh token", "POST", tokenPath, "", "grant_type=refresh_token&client_id=app_spa", 400, "invalid_request",
		"refresh_token missing", ""},
	{"no assertion", "POST", tokenPath, "", "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer", 400,
		"invalid_request", "assertion missing", ""},
	{"no device code", "POST", tokenPath, "", "grant_type=" + deviceCode + "&client_id=app_tv", 400, "invalid_request",
		"device_code missing", ""},
	{"a refresh token that is none", "POST", tokenPath, "",
		"grant_type=refresh_token&client_id=app_spa&refresh_token=" + hush, 400, "invalid_grant",
		oauth.ErrInvalidGrant.Message, ""},
	{"an assertion that is none", "POST", tokenPath, "",
		"grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=" + hush, 400, "invalid_grant",
		oauth.ErrInvalidGrant.Message, ""},
	{"a body too large", "POST", tokenPath, "", hush + "=" + strings.Repeat("x", 70<<10), 413, "invalid_request",
		"the request is not valid: the body is too large", ""},
	{"a body that cannot be read", "POST", tokenPath, "", "grant_type=%" + hush, 400, "invalid_request",
		"the request is not valid: the body must be application/x-www-form-urlencoded", ""},
	{"a parameter sent twice", "POST", tokenPath, "", "grant_type=a&grant_type=b", 400, "invalid_request",
		"the request is not valid: a parameter is sent more than once", ""},

	{"nothing to revoke", "POST", revokePath, "", "client_id=app_spa", 400, "invalid_request", "token missing", ""},
	{"revoking with a grant type", "POST", revokePath, "", "client_id=app_spa&grant_type=x&token=" + hush, 400,
		"unauthorized_client",
		"this client must not use this grant_type: add it to the grantTypes of the application", ""},
	{"revoking by nobody", "POST", revokePath, "", "token=" + hush, 400, "invalid_request",
		"client_id or client_assertion must be provided", ""},

	{"a device that is not registered as one", "POST", devicePath, "", "client_id=app_spa", 400, "unauthorized_client",
		oauth.ErrUnauthorizedClient.Message, ""},
	{"a device of nobody", "POST", devicePath, "", "scope=openid", 400, "invalid_request",
		"client_id or client_assertion must be provided", ""},

	{"pushing by nobody", "POST", pushPath, "", "response_type=code", 400, "invalid_request",
		"client_id or client_assertion must be provided", ""},
	{"pushing with a wrong secret", "POST", pushPath, inHeader("app_web", hush), "response_type=code", 401,
		"invalid_client", theClient, basicChallenge},
	{"pushing where people do not sign in by a browser", "POST", pushPath, "", "client_id=app_tv", 400,
		"unauthorized_client", oauth.ErrUnauthorizedClient.Message, ""},
	{"pushing an address that is not registered", "POST", pushPath, "",
		"client_id=app_spa&redirect_uri=https://me:" + hush + "@evil.test/", 400, "invalid_request",
		oauth.ErrRedirectRefused.Message, ""},
	{"pushing a pushed request", "POST", pushPath, "",
		"client_id=app_spa&redirect_uri=" + shop + "/callback&request_uri=" + hush, 400, "request_not_supported",
		"request objects are not supported: send plain parameters", ""},
	{"pushing another response type", "POST", pushPath, "",
		"client_id=app_spa&redirect_uri=" + shop + "/callback&response_type=token", 400, "unsupported_response_type",
		"only response_type=code is supported", ""},
	{"pushing without PKCE", "POST", pushPath, "",
		"client_id=app_spa&redirect_uri=" + shop + "/callback&response_type=code", 400, "invalid_request",
		"the request is not valid: code_challenge must be sent: this application has no secret", ""},

	{"looking without a proof", "POST", introspectPath, "", "client_id=app_spa&token=" + hush, 401, "invalid_client",
		theClient, ""},
	{"looking as nobody", "POST", introspectPath, "", "token=" + hush, 401, "invalid_client", theClient,
		basicChallenge},
	{"looking with an empty secret", "POST", introspectPath, inHeader("app_spa", ""), "token=" + hush, 400,
		"invalid_client", "client must be authenticated", ""},
	{"looking with a proof that is none", "POST", introspectPath, "Bearer " + hush, "client_id=app_web&token=x", 400,
		"invalid_client",
		"the header authorization must be Basic with the client's id and secret, or be left out", ""},
	{"looking at nothing", "POST", introspectPath, inHeader("app_web", hush), "", 400, "invalid_request",
		"token missing", ""},
	{"looking with a wrong secret", "POST", introspectPath, inHeader("app_web", hush), "token=x", 401, "invalid_client",
		theClient, basicChallenge},

	{"no access token", "GET", userinfoPath, "", "", 401, "invalid_request",
		"the request has no access token: send it as a Bearer token in the header authorization", bearerChallenge},
	{"an access token that is none", "GET", userinfoPath, "Bearer " + hush, "", 401, "invalid_token",
		"the access token is not valid any more",
		`Bearer error="invalid_token", error_description="the access token is not valid any more"`},
	{"an access token that is none, in the form", "POST", userinfoPath, "", "access_token=" + hush, 401,
		"invalid_token", "the access token is not valid any more",
		`Bearer error="invalid_token", error_description="the access token is not valid any more"`},

	{"another method", "PUT", tokenPath, "", "", 405, "invalid_request",
		"the request is not valid: this path does not support that HTTP method: the header allow lists the supported ones", ""},
	{"another method for the keys", "POST", keysPath, "", "", 405, "invalid_request",
		"the request is not valid: this path does not support that HTTP method: the header allow lists the supported ones", ""},
	{"a secret in the query", "POST", tokenPath + "?client_secret=" + hush, "", "", 400, "invalid_request",
		"the request is not valid: parameters must not be in the query string, which ends up in logs: send them in the body", ""},
}

// Programs rely on the exact answers. Every refusal is one line of the log, which says why and repeats nothing.
func TestRefusalsToTheLetter(t *testing.T) {
	var log bytes.Buffer
	served := site(t, &log)
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			log.Reset()
			r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.form))
			if tt.form != "" {
				r.Header.Set("Content-Type", formType)
			}
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			w := httptest.NewRecorder()
			served.ServeHTTP(w, r)
			body, err := json.Marshal(map[string]string{"error": tt.code, "error_description": tt.description})
			if err != nil {
				t.Fatal(err)
			}
			if w.Code != tt.status || w.Body.String() != string(body)+"\n" ||
				w.Header().Get("Www-Authenticate") != tt.challenge ||
				w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
			}
			kept := strings.HasPrefix(tt.path, keysPath)
			if (w.Header().Get("Cache-Control") == "no-store" && w.Header().Get("Pragma") == "no-cache") == kept {
				t.Errorf("the answer may be kept: %v", w.Header())
			}
			var line struct{ Level, Msg, Reason string }
			if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "INFO" || line.Msg != "request" ||
				line.Reason != strings.ToUpper(tt.code) {
				t.Errorf("the log says %s: %v", &log, err)
			}
			if strings.Contains(log.String(), hush) || strings.Contains(w.Body.String(), hush) {
				t.Errorf("a secret is repeated: %s %s", &log, w.Body)
			}
		})
	}
}

// A client is told the same whatever is wrong with what it sent; the operator is told what.
func TestTheLogSaysWhyAClientWasRefused(t *testing.T) {
	var log bytes.Buffer
	served := site(t, &log)
	for _, tt := range []struct{ name, header, form, why string }{
		{"unknown", "", "client_id=app_none", "no active application of an active organization has this client_id"},
		{"a wrong secret", "", "client_id=app_web&client_secret=" + hush,
			"app_web sent a secret that is not its own, or not any more"},
		{"no secret", "", "client_id=app_web",
			"app_web sent no credential, but its authentication method is client_secret_basic"},
		{"a secret of a public client", inHeader("app_spa", hush), "",
			"app_spa sent a secret in the header, but its authentication method is none"},
		{"nonsense", "", "client_assertion_type=" + assertionType + "&client_assertion=" + hush,
			"the assertion cannot be read"},
		{"a service user that is none", "", "client_id=usr_a&client_secret=" + hush,
			"no active service user has this client_id and secret"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log.Reset()
			r := httptest.NewRequestWithContext(t.Context(), "POST", tokenPath,
				strings.NewReader("grant_type=refresh_token&refresh_token=x&"+tt.form))
			r.Header.Set("Content-Type", formType)
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			w := httptest.NewRecorder()
			served.ServeHTTP(w, r)
			var line struct{ Reason, Why string }
			if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Reason != "INVALID_CLIENT" ||
				line.Why != tt.why || !strings.Contains(w.Body.String(), theClient) {
				t.Errorf("the log says %s, the client %s: %v", &log, w.Body, err)
			}
			if strings.Contains(log.String(), hush) {
				t.Errorf("a secret is repeated: %s", &log)
			}
		})
	}
}

// send asks the provider. Headers are pairs of names and values.
func send(t *testing.T, method, path, form string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	site(t, &bytes.Buffer{}).ServeHTTP(w, r)
	return w
}

func TestRevokingAnswersWithoutABody(t *testing.T) {
	w := send(t, "POST", revokePath, "client_id=app_spa&token=x", "Content-Type", formType)
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "application/json" ||
		w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestOnlyFormsAreRead(t *testing.T) {
	for _, tt := range []struct {
		media, encoding string
		fine            bool
	}{
		{formType, "", true}, {"Application/X-WWW-Form-Urlencoded; charset=utf-8", "", true},
		{"", "", false}, {"application/json", "", false}, {"multipart/form-data; boundary=x", "", false},
		{formType + ";;", "", false}, {formType + "; charset", "", false}, {formType, "gzip", false},
	} {
		headers := []string{"Content-Type", tt.media}
		if tt.encoding != "" {
			headers = append(headers, "Content-Encoding", tt.encoding)
		}
		if w := send(t, "POST", revokePath, "client_id=app_spa&token=x", headers...); (w.Code == 200) != tt.fine ||
			!tt.fine && !strings.Contains(w.Body.String(), "must be "+formType) {
			t.Errorf("%s %s: %d %s", tt.media, tt.encoding, w.Code, w.Body)
		}
	}
	if w := send(t, "POST", userinfoPath, "", "Content-Type", "application/json"); w.Code != 400 {
		t.Errorf("a request without a body must not have another type: %d %s", w.Code, w.Body)
	}
	if w := send(t, "POST", userinfoPath, ""); w.Code != 401 {
		t.Errorf("a request without a body needs no type: %d %s", w.Code, w.Body)
	}
}

func TestMethodsAndOrigins(t *testing.T) {
	const asks = "Access-Control-Request-Method"
	refused := "client_id=app_spa&token="
	for _, tt := range []struct {
		name, method, path, form string
		headers                  []string
		status                   int
		allow, vary              string
		origin, methods          string // of the headers about other origins
	}{
		{"a method that is not taken", "GET", tokenPath, "", nil, 405, "POST", "Origin", "", ""},
		{"options", "OPTIONS", tokenPath, "", nil, 204, "POST, OPTIONS", "Origin", "", ""},
		{"options from a page that does not ask", "OPTIONS", tokenPath, "", []string{"Origin", shop}, 204,
			"POST, OPTIONS", "Origin", "", ""},
		{"a page asks first", "OPTIONS", tokenPath, "", []string{"Origin", shop, asks, "POST"}, 204, "POST, OPTIONS",
			"Origin", shop, "POST, OPTIONS"},
		{"a program asks first", "OPTIONS", tokenPath, "", []string{asks, "POST"}, 204, "POST, OPTIONS",
			"Origin", "", ""},
		{"two pages at once", "OPTIONS", tokenPath, "", []string{"Origin", shop, "Origin", shop, asks, "POST"}, 204,
			"POST, OPTIONS", "Origin", "", ""},
		{"a page asks for what is not for pages", "OPTIONS", introspectPath, "", []string{"Origin", shop, asks, "POST"},
			204, "POST, OPTIONS", "", "", ""},
		{"a page asks for what is public", "OPTIONS", keysPath, "", []string{"Origin", shop, asks, "GET"}, 204,
			"GET, HEAD, OPTIONS", "", "*", "GET, HEAD, OPTIONS"},
		{"what is public", "GET", keysPath, "", nil, 200, "", "", "*", ""},
		{"a page of the application", "POST", revokePath, refused, []string{"Origin", shop, "Content-Type", formType},
			400, "", "Origin", shop, ""},
		{"another page", "POST", revokePath, refused, []string{"Origin", "https://evil.test", "Content-Type", formType},
			400, "", "Origin", "", ""},
		{"a page of nobody", "POST", revokePath, "token=x", []string{"Origin", shop, "Content-Type", formType}, 400, "",
			"Origin", "", ""},
	} {
		w := send(t, tt.method, tt.path, tt.form, tt.headers...)
		h := w.Header()
		if w.Code != tt.status || h.Get("Allow") != tt.allow || h.Get("Vary") != tt.vary ||
			h.Get("Access-Control-Allow-Origin") != tt.origin ||
			h.Get("Access-Control-Allow-Methods") != tt.methods ||
			(h.Get("Access-Control-Allow-Credentials") == "true") != (tt.origin == shop) ||
			h.Get("Access-Control-Allow-Credentials") != "" && tt.origin == "*" {
			t.Errorf("%s: %d %v", tt.name, w.Code, h)
		}
	}
}

// noRoom is a body that the node has no room for.
type noRoom struct{}

func (noRoom) Read([]byte) (int, error) {
	return 0, errs.New(errs.ResourceExhausted, "TOO_MUCH_AT_ONCE", "later")
}

func TestABodyThatThereIsNoRoomFor(t *testing.T) {
	for path, want := range map[string]string{tokenPath: `{"error":"temporarily_unavailable","error_description":"later"}`, authorizePath: "Too Many Requests"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, noRoom{})
		r.Header.Set("Content-Type", formType)
		w := httptest.NewRecorder()
		site(t, &bytes.Buffer{}).ServeHTTP(w, r)
		if w.Code != 429 || w.Body.String() != want+"\n" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestKeysMayBeKept(t *testing.T) {
	if got := send(t, "GET", keysPath, "").Header().Get("Cache-Control"); got != "public, max-age=60" {
		t.Errorf("got %q", got)
	}
}

// noAPI finds nothing.
type noAPI struct{}

func (noAPI) Serve(x *web.Exchange)             { http.NotFound(x, x.Request) }
func (noAPI) Refuse(_ *web.Exchange, err error) { panic(err) }

func TestAProviderNeedsGrantsAndKeys(t *testing.T) {
	for _, config := range []Config{{}, {Keys: noKeys{}}, {Grants: &oauth.Grants{}}} {
		if _, err := New(config); err == nil {
			t.Errorf("%+v is enough", config)
		}
	}
}
