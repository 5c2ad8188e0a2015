package program

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/life/mail/mailtest"
)

// victim is the owner of an organization, with a verified e-mail address.
type victim struct {
	site          *site
	process       *process
	mail          *mailtest.Sink
	root          *client
	org, id       string
	login, email  string
	password, pat string
}

const firstPassword = "a kettle of blue fish"

func newVictim(t *testing.T, s *site) *victim {
	t.Helper()
	v := &victim{site: s, mail: mailtest.Start(t), email: "olga@mail.example", password: firstPassword}
	v.start(t)
	v.root = newClient(t, v.process, s.admin(t).Token)
	made := newOrg("Prey", v.password)
	made["human"].(object)["email"] = object{"email": v.email, "isEmailVerified": true}
	answer := v.root.want(t, 200, "POST", "/v1/orgs/_setup", made)
	v.org, v.id = at[string](t, answer, "orgId"), at[string](t, answer, "userId")
	of := *v.root
	of.org = v.org
	v.login = at[[]any](t, of.want(t, 200, "GET", "/v1/users/"+v.id, nil), "user", "loginNames")[0].(string)
	v.pat = at[string](t, v.session(t).want(t, 200, "POST", "/v1/users/me/tokens", object{"name": "script"}), "token")
	if m := v.mail.Next(t); m.To != v.email || m.Subject != "A personal access token was added" {
		t.Errorf("told: %s to %s", m.Subject, m.To)
	}
	return v
}

func (v *victim) start(t *testing.T) {
	t.Helper()
	v.process = v.site.start(t, "--smtp-url", v.mail.URL, "--smtp-from", "no-reply@id.example")
}

// url is the external one, as mails and pages have it.
func (v *victim) url() string { return strings.Replace(v.process.url, "127.0.0.1", "localhost", 1) }

// session signs in.
func (v *victim) session(t *testing.T) *client {
	t.Helper()
	c := newClient(t, v.process, "")
	return c.with(c.signIn(t, v.login, v.password))
}

// takeOver tries every first step on the way to somebody's account, with a credential of that person's. None of them
// may do anything.
func (v *victim) takeOver(t *testing.T, c *client, reasons ...string) {
	t.Helper()
	before := v.site.events(t)
	for _, step := range []struct {
		method, path string
		body         object
	}{
		{"PUT", "/v1/users/me/email", object{"email": "thief@mail.example"}},
		{"PUT", "/v1/users/me/phone", object{"phone": "+49-30-1"}},
		{"DELETE", "/v1/users/me/phone", nil},
		{"POST", "/v1/users/me/tokens", object{"name": "mine"}},
		{"POST", "/v1/users/me/factors/totp/_start", object{}},
		{"POST", "/v1/users/me/factors/passkey/_start", object{}},
		{"POST", "/v1/users/me/recovery_codes", object{}},
		// What an administrator may do to others.
		{"PUT", "/v1/users/" + v.id + "/email", object{"email": "thief@mail.example", "isEmailVerified": true}},
		{"PUT", "/v1/users/" + v.id + "/phone", object{"phone": "+49-30-1", "isPhoneVerified": true}},
		{"POST", "/v1/users/" + v.id + "/password", object{"password": "x", "noChangeRequired": true}},
		{"POST", "/v1/users/" + v.id + "/tokens", object{"name": "mine"}},
	} {
		answer := c.want(t, 403, step.method, step.path, step.body)
		text, _ := json.Marshal(answer)
		if !regexp.MustCompile(`"reason":"(` + strings.Join(reasons, "|") + `)"`).Match(text) {
			t.Errorf("%s %s: %s", step.method, step.path, text)
		}
	}
	if after := v.site.events(t); after != before {
		t.Errorf("%d events were recorded", after-before)
	}
	v.mail.None(t)
}

func TestATokenOrAnApplicationTakesNoAccountOver(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		v := newVictim(t, s)
		c := newClient(t, v.process, v.pat)
		v.takeOver(t, c, "SESSION_REQUIRED")
		c.want(t, 403, "PUT", "/v1/users/me/password",
			object{"currentPassword": v.password, "newPassword": "another kettle of fish"})
		v.takeOver(t, c.with(v.application(t)), "SESSION_REQUIRED", "SCOPE_REQUIRED")
		// The token is good for what it is there for, and for its own end.
		c.want(t, 200, "PUT", "/v1/users/me/profile", profile("Olly"))
		listed := at[[]any](t, c.want(t, 200, "GET", "/v1/users/me/tokens", nil), "tokens")
		c.want(t, 200, "DELETE", "/v1/users/me/tokens/"+listed[0].(object)["tokenId"].(string), nil)
		c.want(t, 401, "GET", "/v1/users/me", nil)
	})
}

func TestAnOldSessionTakesNoAccountOver(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		v := newVictim(t, s)
		stolen := v.session(t)
		v.process.stop(t)
		// Sixteen minutes pass for all sessions.
		db := s.open(t)
		rows, err := db.Query("SELECT id, data FROM tokens WHERE kind = 'session' OR id LIKE 'ses_%'")
		if err != nil {
			t.Fatal(err)
		}
		aged := map[string]string{}
		for rows.Next() {
			var id, data string
			if err := rows.Scan(&id, &data); err != nil {
				t.Fatal(err)
			}
			var proof object
			if err := json.Unmarshal([]byte(data), &proof); err != nil {
				t.Fatal(err)
			}
			aged[id] = fmt.Sprintf(`{"methods":["pwd"],"at":%d}`, int64(proof["at"].(float64))-16*60*1_000_000)
		}
		rows.Close()
		db.Close()
		for id, data := range aged {
			s.tamper(t, "UPDATE tokens SET data = '"+data+"' WHERE id = '"+id+"'")
		}
		v.start(t)
		stolen.base = v.process.url
		v.takeOver(t, stolen, "RECENT_PROOF_REQUIRED")
		stolen.want(t, 400, "POST", "/v1/sessions/_reauthenticate", object{"password": "guessed"})
		stolen.want(t, 403, "PUT", "/v1/users/me/email", object{"email": "thief@mail.example"})
		// Its owner knows the password.
		stolen.want(t, 200, "POST", "/v1/sessions/_reauthenticate", object{"password": v.password})
		stolen.want(t, 200, "PUT", "/v1/users/me/phone", object{"phone": "+49-30-1"})
	})
}

func TestTheAddressBeforeTakesTheAccountBack(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		v := newVictim(t, s)
		thief := v.session(t) // with the password, in a fresh session
		link := func(to, subject string) string {
			t.Helper()
			m := v.mail.Next(t)
			found := regexp.MustCompile(`http://\S+`).FindString(m.Text)
			if m.To != to || m.Subject != subject || !strings.HasPrefix(found, v.url()) && found != "" {
				t.Fatalf("%q to %s: %s", m.Subject, m.To, m.Text)
			}
			return found
		}
		// The thief moves the account away, twice.
		thief.want(t, 200, "PUT", "/v1/users/me/email", object{"email": "thief@mail.example"})
		undo := link(v.email, "Your e-mail address was changed")
		thief.want(t, 200, "POST", "/v1/users/me/email/_request_code", object{})
		code, _ := url.Parse(link("thief@mail.example", "Confirm your e-mail address"))
		thief.want(t, 200, "POST", "/v1/users/me/email/_verify", object{"code": code.Query().Get("code")})
		thief.want(t, 200, "PUT", "/v1/users/me/password",
			object{"currentPassword": v.password, "newPassword": "the thief's own word"})
		link("thief@mail.example", "Your password was changed")
		// the address before is told as long as it can be had back
		link(v.email, "Your password was changed")
		// too soon after the other one to be told
		token := at[string](t, thief.want(t, 200, "POST", "/v1/users/me/tokens", object{"name": "later"}), "token")
		// A reset by mail alone is not possible yet.
		newClient(t, v.process, "").want(t, 200, "POST", "/v1/users/_request_password_reset",
			object{"loginName": v.login})
		if m := v.mail.Next(t); m.To != "thief@mail.example" || m.Subject != "Your password cannot be reset yet" ||
			strings.Contains(m.Text, "/reset") {
			t.Errorf("%q: %s", m.Subject, m.Text)
		}

		// Looking at the link does nothing, pressing the button does, once.
		b := newBrowser(t, v.url())
		page := b.get(undo)
		if !strings.Contains(page, "Undo the change") {
			t.Fatalf("the page is %s", page)
		}
		b.get(undo)
		thief.want(t, 200, "GET", "/v1/users/me", nil)
		if page = b.post(b.at, nil); !strings.Contains(page, "Now choose a new password") {
			t.Fatalf("after the button: %s", page)
		}
		thief.want(t, 401, "GET", "/v1/users/me", nil)
		thief.with(token).want(t, 401, "GET", "/v1/users/me", nil)
		thief.with("").want(t, 401, "POST", "/v1/sessions",
			object{"loginName": v.login, "password": "the thief's own word"})
		told := map[string]bool{}
		for range 2 {
			m := v.mail.Next(t)
			told[m.To] = m.Subject == "The change to the e-mail address was undone"
		}
		if !told[v.email] || !told["thief@mail.example"] {
			t.Errorf("told: %v", told)
		}
		if page = b.post(b.at,
			url.Values{"newPassword": {"short"}, "repeatPassword": {"shorter"}}); !strings.Contains(page,
			"Set a new password") {
			t.Fatalf("with two that differ: %s", page)
		}
		v.password = "olga is back again"
		if page = b.post(b.at,
			url.Values{"newPassword": {v.password}, "repeatPassword": {v.password}}); !strings.Contains(page,
			"Your password has been set") {
			t.Fatalf("with a new password: %s", page)
		}
		me := at[object](t, v.session(t).want(t, 200, "GET", "/v1/users/me", nil), "user", "human")
		if me["email"] != v.email || me["isEmailVerified"] != true {
			t.Errorf("the address is %v", me)
		}
		// The link is used up.
		other := newBrowser(t, v.url())
		other.get(undo)
		if page = other.post(other.at, nil); !strings.Contains(page, "This link no longer works") {
			t.Errorf("a second time: %s", page)
		}
	})
}

// application gives an access token of an application that the victim lets act for them.
func (v *victim) application(t *testing.T) string {
	t.Helper()
	of := *v.root
	of.org = v.org
	made := of.want(t, 200, "POST", "/v1/apps", object{
		"name":         "Helper",
		"type":         "APPLICATION_TYPE_SINGLE_PAGE",
		"redirectUris": []string{"https://app.example/cb"},
		"grantTypes":   []string{"GRANT_TYPE_AUTHORIZATION_CODE"},
	})
	id := at[string](t, made, "appId")
	of.want(t, 200, "PUT", "/v1/apps/"+id+"/api_access", object{"scopes": []string{"signet.self"}})
	verifier := strings.Repeat("verifier", 8)
	sum := sha256.Sum256([]byte(verifier))
	b := newBrowser(t, v.url())
	b.get(v.url() + "/oauth/authorize?" + url.Values{
		"client_id":             {id},
		"redirect_uri":          {"https://app.example/cb"},
		"response_type":         {"code"},
		"scope":                 {"openid signet.self"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
		"state":                 {"s"},
	}.Encode())
	page := b.post(b.at, url.Values{"loginName": {v.login}, "password": {v.password}})
	if strings.Contains(page, `value="allow"`) {
		page = b.post(b.at, url.Values{"do": {"allow"}})
	}
	back, err := url.Parse(html.UnescapeString(regexp.MustCompile(`https://app\.example/cb[^"]*`).FindString(page)))
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("the sign-in leads to %s: %s", b.at, page)
	}
	resp, err := http.PostForm(v.url()+"/oauth/token", url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {id},
		"code":          {back.Query().Get("code")},
		"redirect_uri":  {"https://app.example/cb"},
		"code_verifier": {verifier},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var tokens object
	if err := json.NewDecoder(resp.Body).Decode(&tokens); err != nil {
		t.Fatal(err)
	}
	token := at[string](t, tokens, "access_token")
	newClient(t, v.process, token).want(t, 200, "GET", "/v1/users/me", nil)
	return token
}

// visitor is a browser: it keeps cookies and says which page a form came from.
type visitor struct {
	t    *testing.T
	base string
	http *http.Client
	at   string // the address of the last page
}

func newBrowser(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, base: base, http: &http.Client{Transport: transport, Jar: jar, Timeout: patience}}
}

func (b *visitor) get(address string) string { return b.send(http.MethodGet, address, nil) }

func (b *visitor) post(address string, form url.Values) string {
	return b.send(http.MethodPost, address, strings.NewReader(form.Encode()))
}

func (b *visitor) send(method, address string, body io.Reader, headers ...string) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.base)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.at = resp.Request.URL.String()
	return string(text)
}
