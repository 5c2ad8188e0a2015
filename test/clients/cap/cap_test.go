// Package cap tries hashicorp/cap, the library behind Vault and Boundary, as its README sets it up: a module of its own
// because of what it needs.
package cap

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/cap/oidc"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
)

// A public client: no secret, PKCE, RS256 and no other algorithm.
func TestAPublicClient(t *testing.T) {
	s := servertest.Start(t, server.Config{}, t.Output())
	const callback = "http://127.0.0.1:9999/callback"
	post := func(path string, body map[string]any) (answer map[string]any) {
		t.Helper()
		text, err := json.Marshal(body)
		must(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path,
			strings.NewReader(string(text)))
		must(t, err)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + s.FirstAdmin.Token}}
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		defer resp.Body.Close()
		must(t, json.NewDecoder(resp.Body).Decode(&answer))
		return answer
	}
	id, _ := post("/v1/apps", map[string]any{"name": "Cap", "type": "APPLICATION_TYPE_NATIVE",
		"redirectUris": []string{callback}})["appId"].(string)
	config, err := oidc.NewConfig(s.URL(), id, "", []oidc.Alg{oidc.RS256}, []string{callback})
	must(t, err)
	provider, err := oidc.NewProvider(config)
	must(t, err)
	defer provider.Done()
	verifier, err := oidc.NewCodeVerifier()
	must(t, err)
	request, err := oidc.NewRequest(2*time.Minute, callback, oidc.WithPKCE(verifier),
		oidc.WithScopes("profile", "email"))
	must(t, err)
	address, err := provider.AuthURL(t.Context(), request)
	must(t, err)
	back := signIn(t, s, address)
	token, err := provider.Exchange(context.Background(), request, back.Get("state"), back.Get("code"))
	must(t, err)
	var claims map[string]any
	must(t, token.IDToken().Claims(&claims))
	if claims["sub"] != s.FirstAdmin.UserID || claims["preferred_username"] == nil {
		t.Errorf("the ID token says %v", claims)
	}
}

// signIn plays the browser.
func signIn(t *testing.T, s *server.Server, address string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	onward := regexp.MustCompile(`<a class="button" href="([^"]*)">`)
	var back url.Values
	browser := &http.Client{Jar: insecure{jar}, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), s.URL()) {
			back = r.URL.Query()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	read := func(resp *http.Response, err error) (at, body string) {
		t.Helper()
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp.Request.URL.String(), string(text)
	}
	at, _ := read(browser.Get(address))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at,
		strings.NewReader(url.Values{"loginName": {s.FirstAdmin.LoginName},
			"password": {s.FirstAdmin.Password}}.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.URL())
	_, body := read(browser.Do(r))
	if back == nil {
		to := onward.FindStringSubmatch(body)
		if to == nil {
			t.Fatalf("nothing leads on from %s", body)
		}
		u, err := url.Parse(strings.ReplaceAll(to[1], "&amp;", "&"))
		must(t, err)
		back = u.Query()
	}
	return back
}

// insecure keeps cookies of https over http, as browsers do on this machine.
type insecure struct{ http.CookieJar }

func (j insecure) SetCookies(u *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		c.Secure = false
	}
	j.CookieJar.SetCookies(u, cookies)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
