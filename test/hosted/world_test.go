package hosted

import (
	"crypto/rand"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/transport/pages/pagestest"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	callback  = "https://shop.test/callback"
	farewell  = "https://shop.test/bye"
	password  = "a long word with Sense 7"
	otherWord = "quite Another phrase 42"
)

var must = testkit.Must

// world is a running server with a mail server, if wanted.
type world struct {
	t      *testing.T
	server *server.Server
	url    string
	org    string
	mail   *mailtest.Sink // nil: no mail
	log    *testkit.Log
	dir    string
}

func withMail(t *testing.T, change ...func(*server.Config)) *world {
	t.Helper()
	sink := mailtest.Start(t)
	config := server.Config{SMTPURL: sink.URL, SMTPFrom: "no-reply@id.test"}
	for _, c := range change {
		c(&config)
	}
	w := open(t, config)
	w.mail = sink
	return w
}

func open(t *testing.T, config server.Config) *world {
	t.Helper()
	w := &world{t: t, log: &testkit.Log{}}
	config.DataDir = t.TempDir()
	s := servertest.Start(t, config, w.log)
	w.server, w.url, w.org, w.dir = s, s.URL(), s.FirstAdmin.OrgID, config.DataDir
	return w
}

func (w *world) do(c event.Command) {
	w.t.Helper()
	c.Actor = event.System
	must(w.t, w.server.Store().Do(w.t.Context(), c))
}

// person is somebody with a password.
type person struct{ id, name, email string }

var hasher = secret.NewCheapHasher()

// person adds somebody to an organization, with an e-mail address that is proven or not.
func (w *world) person(orgID string, proven bool) person {
	w.t.Helper()
	p := person{id: user.Kind.NewID(), name: strings.ToLower(rand.Text())}
	p.email = p.name + "@mail.test"
	hash, err := hasher.Hash(w.t.Context(), password)
	must(w.t, err)
	w.do(event.Command{
		Write:  []event.Ref{user.Kind.Ref(p.id)},
		Claims: []event.Claim{user.NameClaim(orgID, syntax.NameKey(p.name))},
		Decide: func(tx *event.Tx) error {
			u, err := user.AddHuman(tx, p.id, orgID, &user.NewHuman{
				UserName:      p.name,
				Email:         p.email,
				EmailVerified: proven,
				Profile:       user.Profile{FirstName: "Jo", LastName: "Doe", DisplayName: "Jo Doe"},
			})
			if err != nil {
				return err
			}
			return user.PutPassword(tx, u, hash, user.PasswordSet{})
		},
	})
	return p
}

// organization adds another one.
func (w *world) organization() (id, domain string) {
	w.t.Helper()
	id = org.Kind.NewID()
	domain = strings.ToLower(rand.Text()) + ".test"
	w.do(event.Command{
		Write:  []event.Ref{org.Kind.Ref(id)},
		Claims: []event.Claim{org.DomainClaim(domain)},
		Decide: func(tx *event.Tx) error {
			_, err := org.Kind.Create(tx, id, id, org.Added{Name: "Elsewhere"},
				org.DomainAdded{Domain: domain, Verified: true, Primary: true})
			return err
		},
	})
	return id, domain
}

// rules sets the policy of the organization.
func (w *world) rules(p policy.Policy) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{org.Kind.Ref(w.org)}, Decide: func(tx *event.Tx) error {
		o, err := org.Kind.Get(tx, w.org)
		if err != nil {
			return err
		}
		return o.Append(org.PolicySet{Diff: o.Data.Policy.DiffTo(p)})
	}})
}

// happens records something about a user.
func (w *world) happens(userID string, fact event.Fact[user.User]) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{user.Kind.Ref(userID)}, Decide: func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, userID)
		if err != nil {
			return err
		}
		return u.Append(fact)
	}})
}

// application adds one that keeps no secret.
func (w *world) application(name string, change ...func(*app.Settings)) string {
	w.t.Helper()
	s := app.Settings{
		AuthMethod:          app.NoAuth,
		GrantTypes:          []app.GrantType{app.AuthorizationCode, app.RefreshToken, app.DeviceCode},
		RedirectURIs:        []string{callback},
		PostLogoutURIs:      []string{farewell},
		TokenFormat:         app.Opaque,
		SigningAlgorithm:    "ES256",
		AccessTokenSeconds:  3600,
		RefreshTokenSeconds: 86400,
	}
	for _, c := range change {
		c(&s)
	}
	id := app.Kind.NewID()
	w.do(event.Command{Write: []event.Ref{app.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		_, err := app.Kind.Create(tx, id, w.org,
			app.Added{Name: name, NameKey: strings.ToLower(name), Type: app.Native, Settings: s})
		return err
	}})
	return id
}

// browser keeps cookies, the secure ones for plain http too, as browsers do for this machine.
type browser struct {
	*world
	jar map[string]string // nil: it keeps no cookies
}

func (w *world) browser() *browser { return &browser{w, map[string]string{}} }

// page is what a browser ends up at.
type page struct {
	*browser
	status int
	header http.Header
	body   string
	path   string // with the query; where it was sent away, the whole address
	json   map[string]any
}

var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send sends one request, and follows no redirect.
func (b *browser) send(method, path string, form url.Values, headers ...string) *page {
	b.t.Helper()
	return b.sendText(method, path, form.Encode(), headers...)
}

func (b *browser) sendText(method, path, text string, headers ...string) *page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(text))
	must(b.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.url)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	for name, value := range b.jar {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := client.Do(r)
	must(b.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(b.t, err)
	for _, c := range resp.Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode ||
			c.Path != "/" || c.Domain != "" {
			b.t.Errorf("%s sets the cookie %s", path, c)
		}
		if c.MaxAge < 0 || b.jar == nil {
			delete(b.jar, c.Name)
		} else {
			b.jar[c.Name] = c.Value
		}
	}
	p := &page{browser: b, status: resp.StatusCode, header: resp.Header, body: string(body), path: path}
	_ = json.Unmarshal(body, &p.json) // not everything is JSON
	if strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		if found := pagestest.Raw(p.body); found != nil {
			b.t.Errorf("%s %s shows %q", method, path, found)
		}
	}
	return p
}

// follow goes where it is sent, as long as it stays with us.
func (p *page) follow() *page {
	p.t.Helper()
	for range 10 {
		to := p.header.Get("Location")
		if to == "" {
			return p
		}
		to = strings.TrimPrefix(to, p.url)
		if !strings.HasPrefix(to, "/") {
			p.path = to
			return p
		}
		p = p.send(http.MethodGet, to, nil)
	}
	p.t.Fatal("sent round in circles")
	return nil
}

func (b *browser) get(path string) *page {
	b.t.Helper()
	return b.send(http.MethodGet, path, nil).follow()
}

// post sends the form of a page.
func (p *page) post(pairs ...string) *page {
	p.t.Helper()
	form := values(pairs...)
	if shown := p.hidden("for"); shown != "" { // what the form was shown for comes along
		form.Set("for", shown)
	}
	return p.send(http.MethodPost, p.path, form).follow()
}

var providerButton = regexp.MustCompile(`<form method="post" action="(/login/idp/[^"]*)">`)

// press presses the button of a provider on a page, the one with this id or the first one.
func (p *page) press(id ...string) *page {
	p.t.Helper()
	for _, m := range providerButton.FindAllStringSubmatch(p.body, -1) {
		if to := html.UnescapeString(m[1]); len(id) == 0 || strings.HasPrefix(to, "/login/idp/"+id[0]) {
			return p.send(http.MethodPost, to, nil)
		}
	}
	p.t.Fatalf("%s: no provider is offered: %s", p.path, p.body)
	return nil
}

var textField = regexp.MustCompile(`<input id="(\w+)"[^>]* value="([^"]*)"`)

// creates makes the account that a page offers to somebody whom a provider has brought, with what is known of them.
func (p *page) creates() *page {
	p.t.Helper()
	p.shows(200, "Create your account")
	var pairs []string
	for _, m := range textField.FindAllStringSubmatch(p.body, -1) {
		pairs = append(pairs, m[1], html.UnescapeString(m[2]))
	}
	return p.post(pairs...)
}

func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// shows fails unless the page has this status and these texts.
func (p *page) shows(status int, texts ...string) *page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("%s: got %d %s", p.path, p.status, p.body)
	}
	seen := html.UnescapeString(p.body)
	for _, text := range texts {
		if !strings.Contains(seen, text) {
			p.t.Fatalf("%s: there is no %q in %s", p.path, text, seen)
		}
	}
	return p
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// hidden gives a hidden field of the page.
func (p *page) hidden(name string) string {
	for _, m := range hiddenField.FindAllStringSubmatch(p.body, -1) {
		if m[1] == name {
			return html.UnescapeString(m[2])
		}
	}
	return ""
}

var linkForm = regexp.MustCompile(`<a class="button" href="([^"]*)">`)

// next is where the link leads that goes on.
func (p *page) next() string {
	p.t.Helper()
	m := linkForm.FindStringSubmatch(p.body)
	if m == nil {
		p.t.Fatalf("nothing leads on from %s", p.body)
	}
	return html.UnescapeString(m[1])
}

// signIn signs somebody in from a page of the sign-in.
func (p *page) signIn(name, word string) *page {
	p.t.Helper()
	return p.post("loginName", name, "password", word)
}

// signedIn is a browser in which somebody is.
func (w *world) signedIn(who ...person) *browser {
	w.t.Helper()
	b := w.browser()
	for _, p := range who {
		b.get("/login?other=1&to=/device").signIn(p.name, password).shows(200, "Connect a device")
	}
	return b
}

const verifier = "a-verifier-that-is-long-enough-for-the-rules-of-PKCE"

// authorize begins a sign-in to an application.
func (b *browser) authorize(clientID string, more ...string) *page {
	b.t.Helper()
	q := values(append([]string{"client_id", clientID, "redirect_uri", callback, "response_type", "code", "scope",
		"openid", "state", "st",
		"code_challenge", "3PQc_WblO8W9xBQjYfGOKsco5u3B1iCP_MYNH1nthpY", "code_challenge_method", "S256"}, more...)...)
	return b.get("/oauth/authorize?" + q.Encode())
}

// arrival reads what an application is sent: by a redirect, or by the page in between.
func (p *page) arrival(at string) url.Values {
	p.t.Helper()
	to := p.path
	if p.status == http.StatusOK {
		to = p.next()
	}
	u, err := url.Parse(to)
	must(p.t, err)
	if u.Scheme+"://"+u.Host+u.Path != at {
		p.t.Fatalf("sent to %s: %s", to, p.body)
	}
	return u.Query()
}

// tokens exchanges the code that an application was sent.
func (p *page) tokens(clientID string) map[string]any {
	p.t.Helper()
	code := p.arrival(callback).Get("code")
	got := p.world.browser().send(http.MethodPost, "/oauth/token",
		values("grant_type", "authorization_code", "client_id", clientID, "code", code,
			"redirect_uri", callback, "code_verifier", verifier))
	got.shows(200)
	return got.json
}

// counts tells whether an access token does.
func (w *world) counts(token any) bool {
	w.t.Helper()
	return w.browser().send(http.MethodGet, "/oauth/userinfo", nil, "Authorization",
		"Bearer "+token.(string)).status == 200
}
