package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/life/mail/mailtest"
)

// silent is an identity provider that knows everybody already: it sends whoever comes back at once, and says what a
// test wants.
type silent struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any // of its ID tokens
	asked  []url.Values   // what it was asked for
	nonces map[string]string
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &silent{t: t, key: key, nonces: map[string]string{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

// says sets who comes next, and what is said besides.
func (p *silent) says(subject string, more map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = map[string]any{"sub": subject, "preferred_username": subject, "given_name": "Vi", "family_name": "Sitor",
		"email": subject + "@provider.example", "email_verified": true}
	for name, value := range more {
		p.claims[name] = value
	}
}

// requests gives what it was asked for since the last time.
func (p *silent) requests() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

func (p *silent) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := any(nil)
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{
			"issuer":                                p.URL,
			"authorization_endpoint":                p.URL + "/authorize",
			"token_endpoint":                        p.URL + "/token",
			"jwks_uri":                              p.URL + "/keys",
			"response_types_supported":              []string{"code"},
			"subject_types_supported":               []string{"public"},
			"id_token_signing_alg_values_supported": []string{"ES256"},
		}
	case "/keys":
		answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k", Use: "sig",
			Algorithm: "ES256"}}}
	case "/authorize":
		q, code := r.URL.Query(), rand.Text()
		p.asked, p.nonces[code] = append(p.asked, q), q.Get("nonce")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(),
			http.StatusSeeOther)
		return
	case "/token":
		id, _, _ := r.BasicAuth()
		if id == "" {
			id = r.PostFormValue("client_id")
		}
		claims := map[string]any{"iss": p.URL, "aud": id, "iat": time.Now().Unix(),
			"exp": time.Now().Add(time.Minute).Unix(), "nonce": p.nonces[r.PostFormValue("code")]}
		for name, value := range p.claims {
			claims[name] = value
		}
		payload, _ := json.Marshal(claims)
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
			Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}}, nil)
		if err != nil {
			p.t.Error(err)
			return
		}
		signed, err := signer.Sign(payload)
		if err != nil {
			p.t.Error(err)
			return
		}
		text, _ := signed.CompactSerialize()
		answer = map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 60, "id_token": text}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// at makes it a provider of the client's organization.
func (p *silent) at(t *testing.T, c *client, name string, more object) string {
	t.Helper()
	in := object{"name": name, "issuer": p.URL, "clientId": "signet", "clientSecret": "a secret"}
	for key, value := range more {
		in[key] = value
	}
	return at[string](t, c.want(t, 200, "POST", "/v1/idps/oidc", in), "idpId")
}

var (
	providerForm = regexp.MustCompile(`<form method="post" action="(/login/idp/[^"]*)">`)
	onwardLink   = regexp.MustCompile(`<a class="button" href="([^"]*)">`)
	formField    = regexp.MustCompile(`<input id="(\w+)"[^>]* value="([^"]*)"`)
	shownFor     = regexp.MustCompile(`<input type="hidden" name="for" value="([^"]*)">`)
)

// onward goes where a page leads by itself.
func (b *visitor) onward(page string) string {
	b.t.Helper()
	m := onwardLink.FindStringSubmatch(page)
	if m == nil {
		b.t.Fatalf("nothing leads on from %s: %s", b.at, page)
	}
	return html.UnescapeString(m[1])
}

// press presses the button of a provider, and goes there and back.
func (b *visitor) press(page string) string {
	b.t.Helper()
	m := providerForm.FindStringSubmatch(page)
	if m == nil {
		b.t.Fatalf("no provider is offered at %s: %s", b.at, page)
	}
	return b.get(b.onward(b.post(b.base+html.UnescapeString(m[1]), nil)))
}

// creates sends the form that makes an account, as it is.
func (b *visitor) creates(page string) string {
	b.t.Helper()
	form := url.Values{}
	for _, m := range formField.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	if m := shownFor.FindStringSubmatch(page); m != nil {
		form.Set("for", html.UnescapeString(m[1]))
	}
	return b.post(b.at, form)
}

func (b *visitor) sees(page string, texts ...string) string {
	b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(html.UnescapeString(page), text) {
			b.t.Fatalf("at %s there is no %q: %s", b.at, text, page)
		}
	}
	return page
}

// session is the session cookie; empty: nobody is signed in.
func (b *visitor) session() string {
	b.t.Helper()
	u, err := url.Parse(b.base)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == "__Host-signet" {
			return c.Value
		}
	}
	return ""
}

// unchanged fails if an act records something, or signs anybody in or out.
func (b *visitor) unchanged(s *site, act func()) {
	b.t.Helper()
	before, in := s.events(b.t), b.session()
	act()
	if after := s.events(b.t); after != before || b.session() != in {
		b.t.Fatalf("at %s: %d events were recorded, and the session was %q and is %q", b.at, after-before,
			in, b.session())
	}
}

// Two addresses that a foreign page opens register nobody in the attacker's organization.
func TestAttackNobodyJoinsByNavigation(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		mail, up := mailtest.Start(t), newSilent(t)
		p := s.start(t, "--smtp-url", mail.URL, "--smtp-from", "no-reply@id.example", "--outbound-allow", "127.0.0.0/8")
		root := newClient(t, p, s.admin(t).Token)
		base := strings.Replace(p.url, "127.0.0.1", "localhost", 1)
		idp := up.at(t, root, "Corp", object{"autoRegister": false})
		evil, _, domain := root.organization(t, "Evil", "owner@evil.example")
		owner := newClient(t, p, "")
		owner = owner.with(owner.signIn(t, "owner@"+domain, herPassword))
		owner.want(t, 200, "POST", "/v1/orgs/"+evil+"/invitations", object{"email": "attacker@evil.example"})
		link := regexp.MustCompile(`http://\S+`).FindString(mail.Next(t).Text)
		up.says("visitor", nil)
		b := newBrowser(t, base)
		attack := func() (page string) {
			b.unchanged(s, func() {
				b.get(link)
				page = b.get(base + "/login/idp/" + idp + "?" + url.Values{"to": {"/login/invitation"},
					"other": {"1"}}.Encode())
			})
			return page
		}

		b.sees(attack(), "Continue with", "Corp", "Default")
		if asked := up.requests(); len(asked) > 0 {
			t.Errorf("the provider was asked: %v", asked)
		}
		// Who has chosen the provider before comes back from it, to a page that says what would happen.
		b.sees(b.press(b.get(base+"/login?to=/account")), "not known here")
		b.sees(attack(), "Create your account", "Evil", "attacker@evil.example")
		// The button on it is what joins.
		b.sees(b.creates(b.get(b.at)), "Welcome")
	})
}

// An address that a foreign page opens signs nobody in to the attacker's account.
func TestAttackNobodyIsSignedInByNavigation(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		up := newSilent(t)
		p := s.start(t, "--outbound-allow", "127.0.0.0/8")
		root := newClient(t, p, s.admin(t).Token)
		base := strings.Replace(p.url, "127.0.0.1", "localhost", 1)
		_, _, domain := root.organization(t, "Evil", "owner@evil.example")
		owner := newClient(t, p, "")
		owner = owner.with(owner.signIn(t, "owner@"+domain, herPassword))
		idp := up.at(t, owner, "Trap", object{"autoRegister": true})
		way := base + "/login/idp/" + idp + "?" + url.Values{"to": {"/account"}, "other": {"1"}}.Encode()
		up.says("attacker", nil)
		attacker := newBrowser(t, base)
		attacker.sees(attacker.creates(attacker.press(attacker.get(way))), "attacker")

		root.person(t, "victim", "victim@mail.example", true)
		for name, b := range map[string]*visitor{"nobody is signed in": newBrowser(t, base),
			"somebody is": newBrowser(t, base)} {
			t.Run(name, func(t *testing.T) {
				if name == "somebody is" {
					b.get(base + "/login?to=/account")
					b.sees(b.post(b.at, url.Values{"loginName": {"victim"}, "password": {hisPassword}}),
						"victim@mail.example")
				}
				up.requests()
				for range 9 {
					b.unchanged(s, func() { b.sees(b.get(way), "Continue with", "Trap", "Evil") })
				}
				if asked := up.requests(); len(asked) > 0 {
					t.Errorf("the provider was asked: %v", asked)
				}
			})
		}
		// Also not where the provider was chosen before, while somebody else is signed in.
		b := newBrowser(t, base)
		b.sees(b.press(b.get(way)), "attacker")
		b.get(base + "/login?other=1&to=/account")
		b.sees(b.post(b.at, url.Values{"loginName": {"victim"}, "password": {hisPassword}}), "victim@mail.example")
		b.unchanged(s, func() { b.sees(b.get(way), "Continue with", "Trap", "Evil") })
	})
}

// A provider that does not say that somebody has just signed in there is not taken for one that does.
func TestAttackAProofThroughAProviderIsAsOldAsItSays(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		up := newSilent(t)
		p := s.start(t, "--outbound-allow", "127.0.0.0/8")
		root := newClient(t, p, s.admin(t).Token)
		base := strings.Replace(p.url, "127.0.0.1", "localhost", 1)
		idp := up.at(t, root, "Corp", object{"autoRegister": true})
		made := root.want(t, 200, "POST", "/v1/apps", object{
			"name":         "Shop",
			"type":         "APPLICATION_TYPE_SINGLE_PAGE",
			"redirectUris": []string{"https://app.example/cb"},
			"grantTypes":   []string{"GRANT_TYPE_AUTHORIZATION_CODE"},
		})
		app := at[string](t, made, "appId")
		verifier := strings.Repeat("verifier", 8)
		sum := sha256.Sum256([]byte(verifier))
		ask := func(more ...string) string {
			q := url.Values{
				"client_id":             {app},
				"redirect_uri":          {"https://app.example/cb"},
				"response_type":         {"code"},
				"scope":                 {"openid"},
				"idp_hint":              {idp},
				"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
				"code_challenge_method": {"S256"},
				"state":                 {"s"},
			}
			for i := 0; i < len(more); i += 2 {
				q.Set(more[i], more[i+1])
			}
			return base + "/oauth/authorize?" + q.Encode()
		}
		// token gives the claims of the ID token for a code.
		token := func(t *testing.T, code string) object {
			t.Helper()
			resp, err := http.PostForm(base+"/oauth/token",
				url.Values{"grant_type": {"authorization_code"}, "client_id": {app}, "code": {code},
					"redirect_uri": {"https://app.example/cb"}, "code_verifier": {verifier}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got object
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			payload, err := base64.RawURLEncoding.DecodeString(strings.Split(at[string](t, got, "id_token"), ".")[1])
			if err != nil {
				t.Fatal(err)
			}
			var claims object
			if err := json.Unmarshal(payload, &claims); err != nil {
				t.Fatal(err)
			}
			return claims
		}
		begun := time.Now().Unix()
		days := float64(begun - 3*24*3600)
		up.says("vi", nil)
		first := newBrowser(t, base)
		first.creates(first.press(first.get(ask())))
		up.says("val", nil)
		second := newBrowser(t, base)
		second.creates(second.press(second.get(ask())))
		users := at[[]any](t, root.want(t, 200, "GET", "/v1/users?pageSize=100", nil), "users")
		for _, u := range users {
			if u := u.(object); u["userName"] == "val" || u["userName"] == "val@provider.example" {
				root.want(t, 200, "POST", "/v1/users/"+u["userId"].(string)+"/password",
					object{"password": hisPassword, "noChangeRequired": true})
			}
		}

		const now = -1 // the provider says that it was just proven
		for _, tt := range []struct {
			name      string
			asks      []string
			authTime  any // nil: it does not say
			passed    url.Values
			refused   bool
			authTimes bool // the ID token has one
		}{
			{"nothing is asked for", nil, days, url.Values{}, false, true},
			{"nothing is asked for, and it does not say", nil, nil, url.Values{}, false, false},
			{"a moment to come is no time", nil, float64(begun + 3600), url.Values{}, false, false},
			{"prompt=login", []string{"prompt", "login"}, days,
				url.Values{"prompt": {"login"}, "max_age": {"0"}}, true, false},
			{"prompt=login, and it does not say", []string{"prompt", "login"}, nil,
				url.Values{"prompt": {"login"}, "max_age": {"0"}}, true, false},
			{"prompt=login, and it asks", []string{"prompt", "login"}, now,
				url.Values{"prompt": {"login"}, "max_age": {"0"}}, false, true},
			{"max_age=0", []string{"max_age", "0"}, days,
				url.Values{"max_age": {"0"}, "prompt": {"login"}}, true, false},
			{"max_age=60", []string{"max_age", "60"}, days, url.Values{"max_age": {"60"}}, true, false},
			{"max_age=60, and it does not say", []string{"max_age", "60"}, nil,
				url.Values{"max_age": {"60"}}, true, false},
			{"max_age of a week", []string{"max_age", "604800"}, days, url.Values{"max_age": {"604800"}}, false, true},
			{"auth_time as an essential claim", []string{"claims", `{"id_token":{"auth_time":{"essential":true}}}`},
				nil, url.Values{}, true, false},
		} {
			for _, who := range []string{"vi", "val"} {
				t.Run(tt.name+" of "+who, func(t *testing.T) {
					said := map[string]any{}
					if tt.authTime == now {
						said["auth_time"] = time.Now().Unix()
					} else if tt.authTime != nil {
						said["auth_time"] = tt.authTime
					}
					up.says(who, said)
					up.requests()
					b := newBrowser(t, base)
					page := b.press(b.sees(b.get(ask(tt.asks...)), "Continue with"))
					asked := up.requests()
					if len(asked) != 1 || asked[0].Get("prompt") != tt.passed.Get("prompt") ||
						asked[0].Get("max_age") != tt.passed.Get("max_age") {
						t.Fatalf("the provider was asked for %v", asked)
					}
					proven := tt.authTimes
					if tt.refused && who == "val" { // who has a password proves that
						b.sees(page, "Confirm it’s you")
						page = b.post(b.at, url.Values{"password": {hisPassword}})
						proven = true
					}
					back, err := url.Parse(b.onward(page))
					if err != nil {
						t.Fatal(err)
					}
					if tt.refused && who == "vi" {
						if got := back.Query(); got.Get("error") != "unmet_authentication_requirements" ||
							got.Get("code") != "" {
							t.Fatalf("the application is told %v", got)
						}
						return
					}
					claims := token(t, back.Query().Get("code"))
					got, there := claims["auth_time"].(float64)
					if there != proven {
						t.Fatalf("the ID token says %v", claims)
					}
					switch {
					case !there:
					case tt.refused || tt.authTime == now:
						if got < float64(begun) {
							t.Errorf("it was proven at %v, before %d", got, begun)
						}
					case got != tt.authTime:
						t.Errorf("it was proven at %v, and the provider says %v", got, tt.authTime)
					}
				})
			}
		}
	})
}
