package upstream

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

const (
	external = "https://signet.example"
	clientID = "our client:1"
	browser  = "browser-a"
)

// Keys of the upstream. Making them takes long, so all tests share them.
var (
	ecKey, _  = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ec384, _  = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsaKey, _ = rsa.GenerateKey(rand.Reader, 2048)
	other, _  = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
)

func edKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32))) }

// upstream is a provider that does what a test tells it to.
type upstream struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	fetched  map[string]int
	claims   map[string]any // of ID tokens; nil values are left out
	user     string         // what /user and /userinfo answer
	emails   string
	access   string
	metadata map[string]any // besides what it publishes anyway; nil values are left out
	keys     []jose.JSONWebKey
	sign     func(claims map[string]any) string
	answers  map[string]http.HandlerFunc // instead of those of a path
	nonce    string
	asked    url.Values // the last form at the token endpoint
	basic    [2]string  // and its Authorization header
	now      func() time.Time
	expected string // the code challenge
}

func newUpstream(t testing.TB, now func() time.Time) *upstream {
	t.Helper()
	u := &upstream{
		t:       t,
		now:     now,
		fetched: map[string]int{},
		access:  "access-token",
		answers: map[string]http.HandlerFunc{},
		emails:  "[]",
		keys: []jose.JSONWebKey{public("ec", ecKey.Public(), ""), public("rsa", rsaKey.Public(), "RS256"),
			public("p384", ec384.Public(), ""), public("ed", edKey().Public(), "")},
	}
	u.sign = func(claims map[string]any) string { return signedBy(jose.ES256, ecKey, "ec", claims) }
	u.Server = httptest.NewTLSServer(http.HandlerFunc(u.serve))
	t.Cleanup(u.Close)
	return u
}

func public(id string, key any, alg string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: alg, Use: "sig"}
}

// signedBy signs claims with any key, as anybody could.
func signedBy(alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	payload, err := json.Marshal(present(claims))
	if err != nil {
		panic(err)
	}
	return signedText(alg, key, id, string(payload))
}

func signedText(alg jose.SignatureAlgorithm, key any, id, payload string) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic(err)
	}
	made, err := signer.Sign([]byte(payload))
	if err != nil {
		panic(err)
	}
	text, err := made.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// present leaves out what is nil.
func present(claims map[string]any) map[string]any {
	claims = maps.Clone(claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.fetched[r.URL.Path]++
	instead := u.answers[r.URL.Path]
	u.mu.Unlock()
	w.Header().Set("Date", u.now().UTC().Format(http.TimeFormat))
	if instead != nil {
		instead(w, r)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch r.URL.Path {
	case wellKnown:
		m := map[string]any{
			"issuer":                                u.URL,
			"authorization_endpoint":                u.URL + "/authorize?tenant=1",
			"token_endpoint":                        u.URL + "/token",
			"userinfo_endpoint":                     u.URL + "/userinfo",
			"jwks_uri":                              u.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256", "RS256", "ES384", "EdDSA", "HS256", "none"},
			"code_challenge_methods_supported":      []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post",
				"private_key_jwt", "none"},
		}
		maps.Copy(m, u.metadata)
		answer(w, present(m))
	case "/keys":
		answer(w, map[string]any{"keys": u.keys})
	case "/token":
		u.token(w, r)
	case "/userinfo", "/user":
		if r.Header.Get("Authorization") != "Bearer "+u.access {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, u.user)
	case "/emails":
		io.WriteString(w, u.emails)
	default:
		http.NotFound(w, r)
	}
}

func (u *upstream) token(w http.ResponseWriter, r *http.Request) {
	must(u.t, r.ParseForm())
	u.asked = r.PostForm
	name, password, _ := r.BasicAuth()
	u.basic = [2]string{name, password}
	if r.PostForm.Get("code") != "the-code" {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": "invalid_grant", "error_description": "leaked"})
		return
	}
	if challenge(r.PostForm.Get("code_verifier")) != u.expected {
		u.t.Error("the verifier is not that of the challenge")
	}
	claims := u.idToken()
	answer(w, map[string]any{"access_token": u.access, "token_type": "Bearer", "id_token": u.sign(claims)})
}

func (u *upstream) idToken() map[string]any {
	claims := map[string]any{
		"iss":                u.URL,
		"aud":                clientID,
		"sub":                "sub-1",
		"iat":                u.now().Unix(),
		"exp":                u.now().Add(time.Hour).Unix(),
		"nonce":              u.nonce,
		"preferred_username": "jo",
		"given_name":         "Jo",
		"family_name":        "Doe",
		"email":              "jo@example.org",
		"email_verified":     true,
	}
	maps.Copy(claims, u.claims)
	return claims
}

func answer(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Write(text)
}

func (u *upstream) set(change func(u *upstream)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstream) times(path string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.fetched[path]
}

// world is a Federation with one upstream.
type world struct {
	*Federation
	t  testing.TB
	s  *eventtest.Store
	up *upstream
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s := eventtest.New(t, failure.Kind, signing.Kind)
	w := &world{t: t, s: s, up: newUpstream(t, s.Now)}
	w.Federation = New(config(t, w.up, s, s.Now))
	w.Master = s.Master
	return w
}

func config(t testing.TB, up *upstream, s event.Store, clock func() time.Time) Config {
	t.Helper()
	client := clientOf(t, up)
	calls := outbound.NewCalls()
	return Config{
		Client:      client,
		Keys:        outbound.NewKeySets(client, clock, calls),
		Calls:       calls,
		Store:       s,
		Clock:       clock,
		ExternalURL: external,
		Failing:     func(err error) { t.Error(err) },
	}
}

// clientOf trusts an upstream, and may reach it.
func clientOf(t testing.TB, up *upstream) *outbound.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Roots: roots,
		Timeout: testkit.Patience})
	t.Cleanup(client.Close)
	return client
}

func provider(data idp.Provider) *Provider {
	data.State, data.Epoch, data.Changer = idp.Active, 7, &idp.Changer{UserID: "usr_1", Version: 3}
	return &Provider{ID: "idp_1", Org: "org_a", Data: data}
}

func (w *world) jwt() *Provider {
	return provider(idp.Provider{JWT: &idp.JWT{Endpoint: w.up.URL + "/portal?lang=de", Issuer: "corp",
		KeysEndpoint: w.up.URL + "/keys"}})
}

func (w *world) oidc(change func(o *idp.OIDC)) *Provider {
	o := &idp.OIDC{Issuer: w.up.URL, ClientID: clientID, HasClientSecret: true}
	if change != nil {
		change(o)
	}
	w.secret("our secret/+")
	return provider(idp.Provider{OIDC: o})
}

func (w *world) oauth() *Provider {
	w.secret("our secret/+")
	return provider(idp.Provider{
		OAuth: &idp.OAuth{
			AuthorizationEndpoint: w.up.URL + "/authorize",
			TokenEndpoint:         w.up.URL + "/token",
			UserEndpoint:          w.up.URL + "/user",
			EmailsEndpoint:        w.up.URL + "/emails",
			ClientID:              clientID,
			HasClientSecret:       true,
			Preset:                idp.GitHubPreset,
		},
	})
}

func (w *world) secret(text string) {
	w.s.GivenRow(event.Row{RowKey: idp.SecretRow("idp_1"),
		Value: w.s.Master.Wrap("idp client secret", []byte(text), []byte("idp_1"))})
}

// start begins a sign-in, and gives the parameters that the provider gets.
func (w *world) start(p *Provider, a Attempt) url.Values {
	w.t.Helper()
	if a.Browser == "" {
		a.Browser = browser
	}
	address, err := w.Start(w.t.Context(), p, a)
	must(w.t, err)
	u, err := url.Parse(address)
	must(w.t, err)
	q := u.Query()
	w.up.set(func(u *upstream) { u.nonce, u.expected = q.Get("nonce"), q.Get("code_challenge") })
	return q
}

func back(q url.Values) Callback {
	return Callback{Provider: "idp_1", Browser: browser,
		Query: url.Values{"state": {q.Get("state")}, "code": {"the-code"}}}
}

// token is one of the portal, with claims changed.
func (w *world) token(changed map[string]any) string {
	return signedBy(jose.ES256, ecKey, "ec", w.portal(changed))
}

func (w *world) portal(changed map[string]any) map[string]any {
	claims := map[string]any{"iss": "corp", "aud": "idp_1", "sub": "sub-1", "iat": w.s.Now().Unix(),
		"exp": w.s.Now().Add(5 * time.Minute).Unix()}
	maps.Copy(claims, changed)
	return claims
}

func carrying(q url.Values, token string) Callback {
	c := back(q)
	c.Query.Del("code")
	c.Header = http.Header{"Authorization": {"Bearer " + token}}
	return c
}

// refused tells which check refused; empty: none.
func refused(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	failed, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Fatalf("it is not a failure, but %v", err)
	}
	if failed.Hint == "" || strings.Contains(err.Error(), "leaked") || strings.Contains(err.Error(), "our secret") {
		t.Errorf("the failure says %q", err)
	}
	return failed.Check
}

// hmacOf signs with a public key as if it were a secret.
func hmacOf(key crypto.PublicKey, claims map[string]any) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err)
	}
	return signedBy(jose.HS256, der, "ec", claims)
}

func secretRowThatIsEmpty(w *world) event.Row {
	return event.Row{RowKey: idp.SecretRow("idp_1"), Value: w.s.Master.Wrap("idp client secret", nil, []byte("idp_1"))}
}
