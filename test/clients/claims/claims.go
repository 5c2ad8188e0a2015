// Package claims makes ID tokens with the claims of a preset, for the clients of others that read them. Their tests are
// modules of their own, because of what these clients need.
package claims

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	callback = "http://127.0.0.1:9999/callback"
	verifier = "a-verifier-that-is-long-enough-for-the-rules-of-PKCE"
)

// Person is the first administrator, who has signed in to an application that declares the claims of a preset.
type Person struct {
	Issuer, ClientID, UserID, IDToken string
	Client                            *http.Client // reaches the issuer, whatever its name is
}

// SignIn starts a server with an external URL (empty: its own) in which the first administrator is in some groups, and
// signs them in to an application that declares the claims of a preset of the console.
func SignIn(t *testing.T, external, preset string, groups ...string) Person {
	t.Helper()
	s := servertest.Start(t, server.Config{ExternalURL: external}, t.Output())
	p := Person{Issuer: external, UserID: s.FirstAdmin.UserID}
	p.Client = &http.Client{Transport: &reaching{s.Addr().String(), http.DefaultTransport}}
	if p.Issuer == "" {
		p.Issuer = s.URL()
	}
	call := func(method, path string, body any) (answer map[string]any) {
		t.Helper()
		text, err := json.Marshal(body)
		testkit.Must(t, err)
		r, err := http.NewRequestWithContext(t.Context(), method, p.Issuer+path, strings.NewReader(string(text)))
		testkit.Must(t, err)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + s.FirstAdmin.Token}}
		resp, err := p.Client.Do(r)
		testkit.Must(t, err)
		defer resp.Body.Close()
		testkit.Must(t, json.NewDecoder(resp.Body).Decode(&answer))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %v", method, path, answer)
		}
		return answer
	}
	p.ClientID, _ = call("POST", "/v1/apps", map[string]any{"name": preset, "type": "APPLICATION_TYPE_NATIVE",
		"redirectUris": []string{callback}})["appId"].(string)
	chosen := Preset(t, preset)
	call("PUT", "/v1/apps/"+p.ClientID+"/claim_mappings", map[string]any{"mappings": chosen.Mappings})
	for _, name := range groups {
		id, _ := call("POST", "/v1/groups", map[string]any{"name": name})["groupId"].(string)
		call("PUT", "/v1/groups/"+id+"/members/"+p.UserID, map[string]any{})
	}
	sum := sha256.Sum256([]byte(verifier))
	code := p.browse(t, s, p.Issuer+"/oauth/authorize?"+url.Values{"client_id": {p.ClientID},
		"redirect_uri": {callback}, "response_type": {"code"}, "scope": {chosen.Scopes}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}.Encode()).Get("code")
	resp, err := p.Client.PostForm(p.Issuer+"/oauth/token", url.Values{"grant_type": {"authorization_code"},
		"code": {code}, "client_id": {p.ClientID}, "redirect_uri": {callback}, "code_verifier": {verifier}})
	testkit.Must(t, err)
	defer resp.Body.Close()
	var tokens struct {
		IDToken string `json:"id_token"`
	}
	testkit.Must(t, json.NewDecoder(resp.Body).Decode(&tokens))
	if p.IDToken = tokens.IDToken; p.IDToken == "" {
		t.Fatal("there is no ID token")
	}
	return p
}

// Chosen is a preset of the console.
type Chosen struct {
	Scopes   string            `json:"scopes"`
	Mappings []json.RawMessage `json:"mappings"`
}

// Preset reads a preset of the console.
func Preset(t testing.TB, name string) Chosen {
	t.Helper()
	text, err := os.ReadFile("../../../web/console/src/views/apps/presets.json") // from each of the modules beside this
	testkit.Must(t, err)
	var all map[string]Chosen
	testkit.Must(t, json.Unmarshal(text, &all))
	if len(all[name].Mappings) == 0 {
		t.Fatalf("there is no preset %s", name)
	}
	return all[name]
}

// browse plays the browser, and gives the parameters of the address that it is sent back to.
func (p Person) browse(t *testing.T, s *server.Server, address string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	onward := regexp.MustCompile(`<a class="button" href="([^"]*)">`)
	var back url.Values
	browser := &http.Client{Jar: jar, Transport: p.Client.Transport,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if !strings.HasPrefix(r.URL.String(), p.Issuer) {
				back = r.URL.Query()
				return http.ErrUseLastResponse
			}
			return nil
		}}
	if strings.HasPrefix(p.Issuer, "http://") {
		browser.Jar = insecure{jar}
	}
	read := func(resp *http.Response, err error) (at, body string) {
		t.Helper()
		testkit.Must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		testkit.Must(t, err)
		return resp.Request.URL.String(), string(text)
	}
	at, _ := read(browser.Get(address))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(
		url.Values{"loginName": {s.FirstAdmin.LoginName}, "password": {s.FirstAdmin.Password}}.Encode()))
	testkit.Must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", p.Issuer)
	_, body := read(browser.Do(r))
	if back == nil {
		to := onward.FindStringSubmatch(body)
		if to == nil {
			t.Fatalf("nothing leads on from %s", body)
		}
		u, err := url.Parse(strings.ReplaceAll(to[1], "&amp;", "&"))
		testkit.Must(t, err)
		back = u.Query()
	}
	return back
}

// reaching sends all requests to the server, as a proxy that ends TLS would.
type reaching struct {
	host string
	by   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *reaching) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.Host, sent.URL.Scheme, sent.URL.Host = req.URL.Host, "http", r.host
	resp, err := r.by.RoundTrip(sent)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// insecure keeps cookies of https over http, as browsers do on this machine.
type insecure struct{ http.CookieJar }

func (j insecure) SetCookies(u *url.URL, cookies []*http.Cookie) {
	for _, c := range slices.Clone(cookies) {
		c.Secure = false
	}
	j.CookieJar.SetCookies(u, cookies)
}
