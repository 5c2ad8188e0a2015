package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	codeVerifier = "a-verifier-that-is-long-enough-for-the-rules-of-PKCE"
	theBrowser   = "the browser"
)

// granting is a provider that has given app_every, which may use every grant type that there is for applications,
// something to show for each of them. The service user usr_robot has a secret and a key.
type granting struct {
	*Provider
	t      *testing.T
	store  *eventtest.Store
	shown  map[string]string // by grant type
	secret string            // of usr_robot
}

func newGranting(t *testing.T) *granting {
	t.Helper()
	p, s := provider(t)
	g := &granting{Provider: p, t: t, store: s, shown: map[string]string{}}
	eventtest.Given(t, s, app.Kind, "app_every", "org_a", nil, app.Added{
		Name:    "every",
		NameKey: "every",
		Type:    app.Native,
		Settings: app.Settings{AuthMethod: app.NoAuth,
			TokenFormat:      app.Opaque,
			GrantTypes:       []app.GrantType{app.AuthorizationCode, app.RefreshToken, app.DeviceCode},
			RedirectURIs:     []string{shop + "/callback"},
			SigningAlgorithm: "ES256", AccessTokenSeconds: 60, RefreshTokenSeconds: 60},
	})
	g.shown[authorizationCode] = g.code("openid")
	made, err := p.grants.Exchange(t.Context(), g.every(),
		oauth.Code{Text: g.code("openid offline_access"), RedirectURI: shop + "/callback", Verifier: codeVerifier})
	testkit.Must(g.t, err)
	g.shown[refreshToken] = made.Refresh
	device, err := p.grants.BeginDevice(t.Context(), g.every(), []string{"openid"})
	testkit.Must(g.t, err)
	pending, err := p.grants.DeviceByUserCode(t.Context(), netip.Addr{}, device.UserCode)
	testkit.Must(g.t, err)
	testkit.Must(g.t, p.grants.ApproveDevice(t.Context(), pending, g.signIn(), pending.Scopes))
	g.shown[deviceCode] = device.DeviceCode
	g.shown[jwtBearer] = g.robot()
	return g
}

func (g *granting) every() *oauth.Client {
	return &oauth.Client{App: eventtest.State(g.t, g.store, app.Kind, "app_every")}
}

// signIn opens a session of usr_a.
func (g *granting) signIn() *session.Bearer {
	text, hash := secret.NewToken(secret.Session)
	now := event.Micros(g.store.Now())
	g.store.GivenToken(event.Token{ID: event.NewID("ses"), Hash: hash, Kind: string(secret.Session), UserID: "usr_a",
		Created: now, Expires: now + time.Hour.Microseconds()})
	b, err := g.grants.Sessions.Bearer(g.t.Context(), text)
	testkit.Must(g.t, err)
	return b
}

// code lets app_every have a code.
func (g *granting) code(scopes string) string {
	sum := sha256.Sum256([]byte(codeVerifier))
	began, err := g.grants.Begin(g.t.Context(), request.Ask{
		ClientID:            "app_every",
		RedirectURI:         shop + "/callback",
		ResponseType:        "code",
		Scope:               scopes,
		CodeChallenge:       base64.RawURLEncoding.EncodeToString(sum[:]),
		CodeChallengeMethod: "S256",
		Browser:             theBrowser,
	})
	testkit.Must(g.t, err)
	to, err := g.grants.Approve(g.t.Context(), began.ID, theBrowser, g.signIn(), nil)
	testkit.Must(g.t, err)
	back, err := url.Parse(to.Address)
	testkit.Must(g.t, err)
	return back.Query().Get("code")
}

// robot adds usr_robot and gives an assertion of it.
func (g *granting) robot() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(g.t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	testkit.Must(g.t, err)
	eventtest.Given(g.t, g.store, user.Kind, "usr_robot", "org_a", []event.Claim{user.NameClaim("org_a", "robot")},
		user.ServiceAdded{Personal: user.ServiceFacts{Name: "Robot", UserName: "robot", UserNameKey: "robot"}},
		user.SecretSet{},
		user.KeyAdded{KeyID: "pky_a",
			PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))})
	text, hash := secret.NewToken(secret.Client)
	g.store.GivenRow(event.Row{RowKey: user.SecretRow("usr_robot"), Value: hash})
	g.secret = text
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	testkit.Must(g.t, err)
	now := g.store.Now()
	assertion, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": "usr_robot",
		"sub": "usr_robot",
		"aud": g.issuer,
		"jti": "one",
		"iat": now.Unix(),
		"exp": now.Add(time.Minute).Unix(),
	}).Serialize()
	testkit.Must(g.t, err)
	return assertion
}

// post sends a form of pairs to a path.
func (g *granting) post(path, header string, pairs ...string) (int, map[string]any) {
	g.t.Helper()
	r := asked(g.t, header, pairs...).Request
	w := httptest.NewRecorder()
	g.Handlers()[path].ServeHTTP(w, r)
	var body map[string]any
	if w.Body.Len() > 0 {
		testkit.Must(g.t, json.Unmarshal(w.Body.Bytes(), &body))
	}
	return w.Code, body
}

func TestEveryGrantTypeTakesWhatIsItsOwn(t *testing.T) {
	parameter := map[string]string{authorizationCode: "code", refreshToken: "refresh_token", deviceCode: "device_code",
		jwtBearer: "assertion"}
	g := newGranting(t)
	show := func(grantType, text string) (int, map[string]any) {
		return g.post(tokenPath, "", "grant_type", grantType, parameter[grantType], text, "client_id", "app_every",
			"redirect_uri", shop+"/callback", "code_verifier", codeVerifier)
	}
	for grantType := range parameter {
		want := "invalid_grant"
		if grantType == deviceCode {
			want = "expired_token"
		}
		for of, text := range g.shown {
			if of == grantType {
				continue
			}
			if status, answer := show(grantType, text); status != http.StatusBadRequest || answer["error"] != want {
				t.Errorf("%s takes that of %s: %d %v", grantType, of, status, answer)
			}
		}
	}
	for grantType, text := range g.shown { // nothing was used up by that
		status, answer := show(grantType, text)
		forPerson := grantType != jwtBearer
		if status != http.StatusOK || answer["token_type"] != "Bearer" || answer["access_token"] == "" ||
			(answer["id_token"] != nil) != forPerson ||
			(answer["refresh_token"] != nil) != (grantType == refreshToken) {
			t.Errorf("%s: %d %v", grantType, status, answer)
		}
	}
	// A service user proves itself, and has nothing else to show.
	status, answer := g.post(tokenPath, inHeader("usr_robot", g.secret), "grant_type", clientCredentials)
	if status != http.StatusOK || answer["access_token"] == "" || answer["id_token"] != nil ||
		answer["refresh_token"] != nil {
		t.Errorf("a service user: %d %v", status, answer)
	}
	for grantType := range parameter {
		if grantType == jwtBearer {
			continue
		}
		if status, answer := g.post(tokenPath, inHeader("usr_robot", g.secret), "grant_type",
			grantType); status != http.StatusBadRequest || answer["error"] != "unauthorized_client" {
			t.Errorf("a service user with %s: %d %v", grantType, status, answer)
		}
	}
}

func TestWhatIsSaidOfAnAccessToken(t *testing.T) {
	g := newGranting(t)
	hidden, hash := secret.NewToken(secret.Client)
	g.store.GivenRow(event.Row{RowKey: app.SecretRow("app_web"), Value: hash})
	eventtest.Given(t, g.store, app.Kind, "app_web", "", nil, app.SecretSet{})
	give := func(scopes string) string {
		_, answer := g.post(tokenPath, inHeader("usr_robot", g.secret), "grant_type", clientCredentials,
			"scope", scopes)
		return answer["access_token"].(string)
	}
	const forWeb = "urn:signet:app:app_web:aud"
	for _, tt := range []struct {
		name, token string
		robot, web  bool // whether it counts for usr_robot, which it was given to, and for app_web
		userInfo    int
	}{
		{"for nobody else", give(""), true, false, http.StatusForbidden},
		{"for an application", give(forWeb), true, true, http.StatusForbidden},
		{"about its user", give("openid"), true, false, http.StatusOK},
		{"none", "sgn_oat_x", false, false, http.StatusUnauthorized},
	} {
		active := func(header string) bool {
			status, answer := g.post(introspectPath, header, "token", tt.token)
			if status != http.StatusOK || answer["active"] == false && len(answer) != 1 {
				t.Errorf("%s: %d %v", tt.name, status, answer)
			}
			return answer["active"] == true
		}
		byRobot, byWeb := inHeader("usr_robot", g.secret), inHeader("app_web", hidden)
		if active(byRobot) != tt.robot || active(byWeb) != tt.web {
			t.Errorf("%s: it counts for its owner %t, for the application %t", tt.name, active(byRobot), active(byWeb))
		}
		if status, _ := g.post(userinfoPath, "Bearer "+tt.token); status != tt.userInfo {
			t.Errorf("%s: user info says %d", tt.name, status)
		}
		if status, _ := g.post(revokePath, byWeb, "token", tt.token); status != http.StatusOK ||
			active(byRobot) != tt.robot {
			t.Errorf("%s: somebody else revoked it: %d", tt.name, status)
		}
		if status, _ := g.post(revokePath, byRobot, "token", tt.token); status != http.StatusOK || active(byRobot) {
			t.Errorf("%s: its owner revoked it: %d", tt.name, status)
		}
	}
}

func TestHowBrowsersMayAsk(t *testing.T) {
	p, _ := provider(t)
	for _, tt := range []struct {
		name, method, query, form string
		status                    int    // 0: the request is read
		to                        string // where the browser is sent to
	}{
		{"a link", http.MethodGet, "client_id=a&state=", "", 0, ""},
		{"its head", http.MethodHead, "client_id=a", "", 0, ""},
		{"a form, which comes round again", http.MethodPost, "", "client_id=a&state=b", http.StatusSeeOther,
			"https://id.test/oauth/authorize?client_id=a&state=b"},
		{"a form with a query", http.MethodPost, "client_id=a", "state=b", http.StatusBadRequest, ""},
		{"a form that cannot be read", http.MethodPost, "", "%", http.StatusBadRequest, ""},
		{"a query that cannot be read", http.MethodGet, "client_id=%", "", http.StatusBadRequest, ""},
		{"a parameter twice", http.MethodGet, "client_id=a&client_id=a", "", http.StatusBadRequest, ""},
		{"another method", http.MethodPut, "client_id=a", "", http.StatusMethodNotAllowed, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, authorizePath+"?"+tt.query,
			strings.NewReader(tt.form))
		r.Header.Set("Content-Type", formType)
		w := httptest.NewRecorder()
		form, read := p.form(w, r)
		status := w.Code
		if read {
			status = 0
		}
		if status != tt.status || w.Header().Get("Location") != tt.to || read && form.Get("client_id") != "a" ||
			w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %d %v %v", tt.name, status, w.Header(), form)
		}
	}
}

func TestWhomAnIDTokenMeans(t *testing.T) {
	p, s := provider(t)
	sign := func(typ, issuer, audience string, session any) string {
		text, err := p.config.Keys.Sign(t.Context(), "ES256", typ,
			map[string]any{"iss": issuer, "sub": "usr_a", "aud": audience, "sid": session,
				"exp": s.Now().Add(-time.Hour).Unix()})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ours := sign(oauth.IDTokenType, p.issuer, "app_spa", "ses_a")
	for _, tt := range []struct {
		name, text, client string
		means              string
		known              bool
	}{
		{"nothing", "", "app_spa", "", true},
		{"a token of the client, which may have expired", ours, "app_spa", "usr_a", true},
		{"a token where no client is named", ours, "", "usr_a", true},
		{"a token of another client", ours, "app_web", "", false},
		{"a token of another server", sign(oauth.IDTokenType, "https://other.test", "app_spa", "ses_a"),
			"app_spa", "", false},
		{"a token of no client", sign(oauth.IDTokenType, p.issuer, "", "ses_a"), "", "", false},
		{"a token of another type", sign("logout+jwt", p.issuer, "app_spa", "ses_a"), "app_spa", "", false},
		{"a token that was changed", ours + "A", "app_spa", "", false},
		{"a token that says nonsense", sign(oauth.IDTokenType, p.issuer, "app_spa", 1), "app_spa", "", false},
		{"no token", "x", "app_spa", "", false},
	} {
		h, known, err := p.parseHint(t.Context(), tt.text, tt.client)
		if err != nil || known != tt.known || h.Subject != tt.means {
			t.Errorf("%s: %+v, %t, %v", tt.name, h, known, err)
		}
	}
}

// busyKeys cannot be read at the moment.
type busyKeys struct {
	Keys
	kind errs.Kind
}

func (k busyKeys) Verify(context.Context, string, string, any) error {
	return errs.New(k.kind, "BUSY", "later")
}

func TestAnIDTokenThatCannotBeCheckedNowIsNotUnknown(t *testing.T) {
	p, _ := provider(t)
	for _, kind := range []errs.Kind{errs.Unavailable, errs.DeadlineExceeded, errs.Cancelled} {
		p.config.Keys = busyKeys{kind: kind}
		if _, known, err := p.parseHint(t.Context(), "x", ""); known || errs.KindOf(err) != kind {
			t.Errorf("%t, %v", known, err)
		}
	}
}
