package browser_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/servertest"
)

// installation is a running server with an application that people sign in to.
type installation struct {
	t        *testing.T
	url      string
	direct   string // where it listens, whatever stands in front of it
	org      string // the default organization
	token    string // of an owner
	clientID string
	callback string // the application's page
	server   *server.Server
}

const (
	firstPassword = "correct horse"
	otherPassword = "battery staple"
)

// installed starts a server as it is run, and registers a single-page application.
func installed(t *testing.T, change ...func(*server.Config)) *installation {
	t.Helper()
	config := server.Config{Listen: "localhost:0"}
	for _, c := range change {
		c(&config)
	}
	s := servertest.Start(t, config, io.Discard)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><p id="arrived">Welcome to the shop</p></html>`)
	}))
	t.Cleanup(app.Close)
	i := &installation{server: s, t: t, url: s.URL(), direct: "http://" + s.Addr().String(), org: s.FirstAdmin.OrgID,
		token: s.FirstAdmin.Token, callback: strings.Replace(app.URL, "127.0.0.1", "localhost", 1) + "/callback"}
	made := i.api("POST", "/v1/apps",
		map[string]any{"name": "Shop", "type": "APPLICATION_TYPE_SINGLE_PAGE", "redirectUris": []string{i.callback}})
	i.clientID = made["appId"].(string)
	return i
}

// api calls the API as an owner.
func (i *installation) api(method, path string, body any) map[string]any {
	i.t.Helper()
	status, read := i.call(i.token, method, path, body)
	if status != http.StatusOK {
		i.t.Fatalf("%s %s: %d %v", method, path, status, read)
	}
	return read
}

// call calls the API with a token, empty: without, and headers, each a name and a value.
func (i *installation) call(token, method, path string, body any, header ...string) (status int, read map[string]any) {
	i.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			i.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(i.t.Context(), method, i.direct+path, bytes.NewReader(text))
	if err != nil {
		i.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		i.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return resp.StatusCode, read
}

// person adds somebody whose password is firstPassword.
func (i *installation) person(name string) (userID string) {
	i.t.Helper()
	made := i.api("POST", "/v1/users/human", map[string]any{
		"userName":         name,
		"password":         firstPassword,
		"noChangeRequired": true,
		"profile":          map[string]any{"firstName": "Jo", "lastName": "Doe", "displayName": "Jo Doe"},
		"email":            map[string]any{"email": name + "@mail.test", "isEmailVerified": true},
	})
	return made["userId"].(string)
}

// ask is the address at which the application sends people to sign in.
func (i *installation) ask(more ...string) string {
	sum := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	query := url.Values{
		"client_id":             {i.clientID},
		"redirect_uri":          {i.callback},
		"response_type":         {"code"},
		"scope":                 {"openid profile email"},
		"state":                 {"st"},
		"nonce":                 {"no"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}
	for n := 0; n < len(more); n += 2 {
		query.Set(more[n], more[n+1])
	}
	return i.url + "/oauth/authorize?" + query.Encode()
}

// visitor is somebody at a browser.
type visitor struct {
	*browser.Tab
	t *testing.T
	i *installation
}

func (i *installation) visitor(t *testing.T, b *browser.Browser) *visitor {
	return &visitor{b.Tab(t), t, i}
}

func (v *visitor) name(name string) {
	v.t.Helper()
	v.Fill("#loginName", name)
	v.Submit("main form button.primary")
}

func (v *visitor) password(text string) {
	v.t.Helper()
	v.Fill("#password", text)
	v.Submit("main form button.primary")
}

// arrives waits until the application has its code.
func (v *visitor) arrives() {
	v.t.Helper()
	v.WaitFor("#arrived")
	at, err := url.Parse(v.At())
	if err != nil || !strings.HasPrefix(v.At(), v.i.callback+"?") || at.Query().Get("code") == "" ||
		at.Query().Get("state") != "st" {
		v.t.Fatalf("at %s", v.At())
	}
	v.quiet()
}

// quiet checks that the browser had nothing to complain about.
func (v *visitor) quiet() {
	v.t.Helper()
	for _, c := range v.Complaints() {
		if !strings.Contains(c, "422") && !strings.Contains(c, "429") { // forms with mistakes answer so
			v.t.Errorf("the browser complains: %s", c)
		}
	}
}

// sees checks what the page says, and that nobody is kept out by how it says it.
func (v *visitor) sees(selector, text string) {
	v.t.Helper()
	v.WaitFor(selector)
	if got := v.Text(selector); !strings.Contains(got, text) {
		v.t.Errorf("at %s: %q, not %q", v.At(), got, text)
	}
}

func (v *visitor) cookie() string {
	v.t.Helper()
	for _, c := range v.Cookies() {
		if c.Name == "__Host-signet" {
			if !c.Secure || !c.HTTPOnly || c.SameSite != "Lax" || c.Path != "/" {
				v.t.Errorf("the cookie is %+v", c)
			}
			return c.Value
		}
	}
	return ""
}

func TestSigningIn(t *testing.T) {
	i, b := installed(t), browser.Start(t)
	jo := i.person("jo")

	t.Run("a wrong password, then the right one", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("jo")
		v.password("wrong")
		v.sees("[role=alert]", "password")
		v.password(firstPassword)
		v.arrives()
		if v.cookie() == "" {
			t.Error("there is no session")
		}
		// The next application needs no password, and one that asks for nobody gets its answer at once.
		v.Open(i.ask())
		v.arrives()
		v.Open(i.ask("prompt", "none"))
		v.arrives()
		// Unless it wants one.
		v.Open(i.ask("prompt", "login"))
		before := v.cookie()
		v.password(firstPassword)
		v.arrives()
		if v.cookie() == before {
			t.Error("the session has the token from before the step")
		}
	})

	t.Run("a name that nobody has looks the same", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("nobody")
		v.password("wrong")
		v.sees("[role=alert]", "password")
	})

	t.Run("nobody is signed in and nobody may be asked", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "none"))
		v.WaitFor("#arrived")
		if !strings.Contains(v.At(), "error=login_required") || !strings.Contains(v.At(), "state=st") {
			t.Errorf("at %s", v.At())
		}
	})

	t.Run("a password that somebody else set has to be changed", func(t *testing.T) {
		id := i.person("forced")
		i.api("POST", "/v1/users/"+id+"/password", map[string]any{"password": otherPassword})
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("forced")
		v.password(otherPassword)
		v.WaitFor("#newPassword")
		// No address leads past it.
		v.Open(i.ask())
		v.WaitFor("#newPassword")
		if v.Has("#currentPassword") {
			t.Error("it asks for the password that was just typed")
		}
		v.Fill("#newPassword", firstPassword)
		v.Fill("#repeatPassword", "another")
		v.Submit("main form button.primary")
		v.WaitFor("[role=alert]")
		v.Fill("#newPassword", firstPassword)
		v.Fill("#repeatPassword", firstPassword)
		v.Submit("main form button.primary")
		v.arrives()
	})

	t.Run("unless it was said that it need not be", func(t *testing.T) {
		id := i.person("free")
		i.api("POST", "/v1/users/"+id+"/password", map[string]any{"password": otherPassword, "noChangeRequired": true})
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("free")
		v.password(otherPassword)
		v.arrives()
	})

	t.Run("locked by an administrator", func(t *testing.T) {
		id := i.person("locked")
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("locked")
		v.password(firstPassword)
		v.arrives()
		i.api("POST", "/v1/users/"+id+"/_lock", map[string]any{})
		v.Open(i.ask())
		v.name("locked")
		v.password(firstPassword)
		v.sees("[role=alert]", "password")
		i.api("POST", "/v1/users/"+id+"/_unlock", map[string]any{})
		v.Open(i.ask()) // the session from before stays dead
		v.WaitFor("#loginName")
	})

	t.Run("signed out everywhere", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("jo")
		v.password(firstPassword)
		v.arrives()
		i.api("DELETE", "/v1/users/"+jo+"/sessions", map[string]any{})
		v.Open(i.ask())
		v.WaitFor("#loginName")
	})

	t.Run("slowed down after many failures", func(t *testing.T) {
		i.person("guessed")
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("guessed")
		for range 12 { // a slow machine sits out the first waits, which are short
			if v.password("wrong"); strings.Contains(v.Text("[role=alert]"), "again in") {
				break
			}
		}
		v.sees("[role=alert]", "again in")
		v.password(firstPassword)
		v.sees("[role=alert]", "again in") // unheard
	})

	t.Run("two accounts in one browser", func(t *testing.T) {
		i.person("second")
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("jo")
		v.password(firstPassword)
		v.arrives()
		v.Open(i.ask("prompt", "select_account"))
		v.Submit("button[value=other]")
		v.name("second")
		v.password(firstPassword)
		v.arrives()
		v.Open(i.ask())
		v.sees("main", "jo@")
		v.sees("main", "second@")
		v.Submit("button.known")
		v.arrives()
	})

	t.Run("in the language of the browser", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Header("Accept-Language", "de-CH")
		v.Open(i.ask())
		v.sees("main form button.primary", "Weiter")
		v.Open(i.ask("ui_locales", "fr"))
		v.sees("main form button.primary", "Continuer")
	})
}

func TestSecondFactors(t *testing.T) {
	i, b := installed(t), browser.Start(t)
	policy := func(required bool) {
		t.Helper()
		i.api("PUT", "/v1/policy", map[string]any{"policy": map[string]any{"secondFactorRequired": required}})
	}

	t.Run("an authenticator app is enrolled, and asked for from then on", func(t *testing.T) {
		i.person("app")
		policy(true)
		defer policy(false)
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.name("app")
		v.password(firstPassword)
		v.WaitFor(".secret code")
		key := strings.ReplaceAll(v.Text(".secret code"), " ", "")
		before := v.cookie()
		begun := time.Now()
		v.Fill("#code", factortest.Code(key, begun))
		v.Submit("main form button.primary")
		v.sees("h1", "ecovery")
		if v.cookie() == before {
			t.Error("the session has the token from before the step")
		}
		var recovery string
		v.Evaluate(`document.querySelector("main li code, main li").textContent.trim()`, &recovery)
		v.Submit("a.button")
		v.arrives()

		v.Forget()
		v.Open(i.ask())
		v.name("app")
		v.password(firstPassword)
		v.WaitFor("#code")
		v.Open(i.ask()) // no address leads past it
		v.WaitFor("#code")
		v.Fill("#code", factortest.Wrong(begun, key))
		v.Submit("main form button.primary")
		v.WaitFor("[role=alert]")
		v.Fill("#code", factortest.Code(key, begun.Add(30*time.Second)))
		v.Submit("main form button.primary")
		v.arrives()

		v.Forget()
		v.Open(i.ask())
		v.name("app")
		v.password(firstPassword)
		v.WaitFor("#code")
		v.Submit(`a[href*="with=recovery"]`)
		v.Fill("#recoveryCode", recovery)
		v.Submit("main form button.primary")
		v.arrives()
	})

	t.Run("a passkey is enrolled, and is all that is needed from then on", func(t *testing.T) {
		i.person("key")
		policy(true)
		v := i.visitor(t, b)
		v.Authenticator(true)
		v.Open(i.ask())
		v.name("key")
		v.password(firstPassword)
		v.Submit(`a[href*="with=passkey"]`)
		v.Fill("#passkeyName", "My telephone")
		v.Click("button.primary")
		v.WaitFor("a.button") // the next page: this one has a heading, too
		v.sees("h1", "ecovery")
		v.Submit("a.button")
		v.arrives()
		policy(false)

		v.Forget()
		v.Touch(false) // the browser offers the passkey at once, among the names it knows
		v.Open(i.ask())
		v.name("key")
		v.password(firstPassword)
		v.sees("h1", "asskey")
		v.Touch(true)
		v.Click("button.primary") // as second factor
		v.arrives()

		v.Forget()
		v.Open(i.ask()) // and alone, at once
		v.arrives()
	})
}

// TestWhereNoCookiesAreKeptThePageSaysSo is what people saw as a sign-in that began again and again: over http,
// browsers refuse cookies that are meant for https.
func TestWhereNoCookiesAreKeptThePageSaysSo(t *testing.T) {
	s := servertest.Start(t, server.Config{Listen: "localhost:0", ExternalURL: "http://id.signet.test:0",
		InsecureURL: true}, io.Discard)
	tab := browser.Start(t).Tab(t)
	tab.Open(s.URL() + "/account")
	tab.Fill("#loginName", "admin")
	tab.Submit("button.primary")
	if got := tab.Text("h1"); got != "We do not recognize your browser" {
		t.Errorf("at %s: %s", tab.At(), got)
	}
}
