// Package portal is a portal that people sign in to and that hands out JWTs about them, for tests of JWT providers: a
// page to sign in on, a service that signs tokens for a reverse proxy, and the address of its keys.
package portal

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is what every portal calls itself.
const Issuer = "portal.test"

// Cookie is that of the portal's own session. It holds the name of the person.
const Cookie = "portal_session"

// Portal is one that runs until the test ends.
type Portal struct {
	*httptest.Server
	t testing.TB

	waiting atomic.Int64 // for keys

	mu       sync.Mutex
	key      *ecdsa.PrivateKey
	keyID    string
	fetched  int
	hold     chan struct{} // nil: keys are told at once
	audience string
	header   string
	claims   map[string]any
	garbage  bool
}

// Start starts one at localhost, like whatever is behind the proxy: browsers share cookies between the ports of a host.
func Start(t testing.TB) *Portal {
	t.Helper()
	p := &Portal{t: t, header: "X-Portal-Token"}
	p.Rotate()
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Server.Start()
	t.Cleanup(p.Close)
	return p
}

// Address is where the portal is, for browsers and for the configuration of a provider.
func (p *Portal) Address(path string) string {
	_, port, err := net.SplitHostPort(p.Listener.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	return "http://localhost:" + port + path
}

// Config is what a provider is made of, as the API takes it.
func (p *Portal) Config(name, headerName string) map[string]any {
	return map[string]any{"name": name, "jwtEndpoint": p.Address("/login"), "issuer": Issuer,
		"keysEndpoint": p.URL + "/keys", "headerName": headerName}
}

// For says who the tokens of the signing service are for, in which header they come, and what they say besides. Values
// that are nil are left out.
func (p *Portal) For(audience, header string, claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.audience, p.header, p.claims = audience, header, claims
}

// Rotate gives it another key, and forgets the one before.
func (p *Portal) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, rand.Text()
}

// Hold keeps everybody who wants its keys waiting until release is called.
func (p *Portal) Hold() (release func()) {
	hold := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = hold
	return sync.OnceFunc(func() { close(hold) })
}

// Waiting is how many wait for its keys.
func (p *Portal) Waiting() int { return int(p.waiting.Load()) }

// Garbage makes its tokens unreadable.
func (p *Portal) Garbage(garbage bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.garbage = garbage
}

// Fetched is how often its keys were asked for.
func (p *Portal) Fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetched
}

// Token is a new one about somebody. Values of more that are nil are left out.
func (p *Portal) Token(audience, subject string, more map[string]any) string {
	p.mu.Lock()
	key := jose.JSONWebKey{Key: p.key, KeyID: p.keyID}
	p.mu.Unlock()
	claims := map[string]any{
		"iss":                Issuer,
		"aud":                audience,
		"sub":                subject,
		"iat":                time.Now().Unix(),
		"exp":                time.Now().Add(time.Minute).Unix(),
		"auth_time":          time.Now().Unix(),
		"jti":                rand.Text(),
		"preferred_username": subject,
		"given_name":         "Jo",
		"family_name":        "Doe",
		"email":              subject + "@portal.test",
		"email_verified":     true,
	}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

func (p *Portal) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/keys":
		p.mu.Lock()
		p.fetched++
		hold := p.hold
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: p.keyID, Use: "sig",
			Algorithm: string(jose.ES256)}}}
		p.mu.Unlock()
		if hold != nil {
			p.waiting.Add(1)
			select {
			case <-hold:
			case <-r.Context().Done():
			}
			p.waiting.Add(-1)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(set)
	case "/login":
		p.login(w, r)
	case "/signet-token": // asked by the proxy, with the portal's cookie
		who, err := r.Cookie(Cookie)
		if err != nil || who.Value == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.mu.Lock()
		audience, header, claims, garbage := p.audience, p.header, p.claims, p.garbage
		p.mu.Unlock()
		token := p.Token(audience, who.Value, claims)
		if garbage {
			token = strings.Repeat("garbage.", 3)
		}
		w.Header().Set(header, token)
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

// login asks who it is, and sends them back with the portal's cookie and the state.
func (p *Portal) login(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><title>Portal</title><link rel="icon" href="data:,"><main><h1>Portal</h1><form method="post" action="%s"><label>Name <input name="login"></label>
			<button>Sign in</button></form></main></html>`, html.EscapeString(r.URL.RequestURI()))
		return
	}
	back, err := url.Parse(query.Get("return_to"))
	if err != nil {
		http.Error(w, "return_to is not an address", http.StatusBadRequest)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: Cookie, Value: r.PostFormValue("login"), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	back.RawQuery = url.Values{"state": {query.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}
