package account_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/pages/pagestest"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/account"
	"github.com/signet-idm/signet/internal/ui/login"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	origin = "https://id.signet.test"
	pass   = "correct horse"
	orgID  = "org_a"
	mara   = "usr_mara"
	nils   = "usr_nils"

	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
)

var (
	hasher = secret.NewCheapHasher()
	hash   = sync.OnceValue(func() []byte {
		made, err := hasher.Hash(context.Background(), pass)
		if err != nil {
			panic(err)
		}
		return made
	})
)

var must = testkit.Must

// site is an organization with mara and nils in it, and a server with the pages of signing in and of the account. Its
// clock stands still until a test moves it.
type site struct {
	t        *testing.T
	origin   string
	store    *eventtest.Store
	sessions *session.Sessions
	account  *account.Account
	server   *httptest.Server

	delivered []user.Delivery // codes that were sent to phones
}

func (w *site) now() time.Time { return w.store.Now() }

func (w *site) wait(d time.Duration) { w.store.Advance(d) }

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteAt(t, origin)
}

func newSiteAt(t *testing.T, external string) *site {
	t.Helper()
	w := &site{t: t, origin: external, store: eventtest.New(t, model.Kinds...)}
	master := w.store.Master
	factors, err := factor.New(master, external)
	must(t, err)
	w.sessions = &session.Sessions{Store: w.store, Factors: factors, Hasher: hasher, Master: master, Clock: w.now,
		DefaultOrg: orgID, Standings: &session.Standings{}, Audience: external}
	u, err := url.Parse(external)
	must(t, err)
	shown, err := pages.New(pages.Config{ExternalURL: u, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	grants := &oauth.Grants{Store: w.store, Sessions: w.sessions, Master: master, Clock: w.now, Issuer: external}
	browsers := login.Browsers{Sessions: w.sessions, Clock: w.now}
	handler, err := web.New(web.Config{API: noAPI{}})
	must(t, err)
	(&login.Login{Store: w.store, Sessions: w.sessions, Grants: grants, Pages: shown, Browsers: browsers, Clock: w.now,
		Master: master, Mail: true}).Mount(handler)
	w.account = &account.Account{
		Store:    w.store,
		Sessions: w.sessions,
		Grants:   grants,
		Pages:    shown,
		Browsers: browsers,
		Clock:    w.now,
		Master:   master,
		Mail:     true,
		Deliver: func(_ context.Context, d user.Delivery) error {
			w.delivered = append(w.delivered, d)
			return nil
		},
	}
	for path, page := range w.account.Handlers() {
		handler.Handle(path, page)
	}
	w.server = httptest.NewTLSServer(handler)
	t.Cleanup(w.server.Close)
	eventtest.Given(t, w.store, org.Kind, orgID, orgID, []event.Claim{org.DomainClaim("a.test")},
		org.Added{Name: "Aldermoor"}, org.DomainAdded{Domain: "a.test", Verified: true, Primary: true})
	w.person(mara, "mara")
	w.person(nils, "nils")
	return w
}

func (w *site) do(c event.Command) {
	w.t.Helper()
	c.Actor = event.System
	must(w.t, w.store.Do(w.t.Context(), c))
}

func (w *site) person(id, name string) {
	w.t.Helper()
	w.do(event.Command{
		Write:  []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim(orgID, syntax.NameKey(name))},
		Decide: func(tx *event.Tx) error {
			u, err := user.AddHuman(tx, id, orgID, &user.NewHuman{UserName: name, Email: name + "@mail.test",
				Profile: user.Profile{FirstName: "First", LastName: "Last", DisplayName: "The " + name}})
			if err != nil {
				return err
			}
			return user.PutPassword(tx, u, hash(), user.PasswordSet{})
		},
	})
}

// change records a fact about somebody.
func (w *site) change(id string, fact event.Fact[user.User]) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, user.Kind, id, "", nil, fact)
}

func (w *site) policy(p policy.Policy) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{org.Kind.Ref(orgID)}, Decide: func(tx *event.Tx) error {
		o, err := org.Kind.Get(tx, orgID)
		if err != nil {
			return err
		}
		return o.Append(org.PolicySet{Diff: o.Data.Policy.DiffTo(p)})
	}})
}

func (w *site) user(id string) *event.Object[user.User] {
	w.t.Helper()
	return eventtest.State(w.t, w.store, user.Kind, id)
}

func (w *site) human(id string) *user.Human { return w.user(id).Data.Human }

// browser is one browser with its own cookies.
type browser struct {
	*site
	jar    http.CookieJar
	client *http.Client
	agent  string
}

func (w *site) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	// The name leads to the server, whose certificate is for another one.
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
		},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &browser{site: w, jar: jar, agent: firefox, client: &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// in is a browser in which somebody has signed in.
func (w *site) in(name string) *browser {
	w.t.Helper()
	b := w.browser()
	b.signIn(name)
	return b
}

func (b *browser) signIn(name string) {
	b.t.Helper()
	b.get(login.Path + "?other=1") // which gives the browser its cookie
	sent := b.post(login.Path+"?other=1", url.Values{pages.FieldLoginName: {name}, pages.FieldPassword: {pass}})
	if sent.status != http.StatusSeeOther {
		b.t.Fatalf("%s is not signed in: %d %s", name, sent.status, sent.text)
	}
}

// cookie is what the browser keeps of its sessions.
func (b *browser) cookie() string {
	b.t.Helper()
	u, err := url.Parse(b.origin)
	must(b.t, err)
	for _, c := range b.jar.Cookies(u) {
		if c.Name == "__Host-signet" {
			return c.Value
		}
	}
	return ""
}

// session is the current one.
func (b *browser) session() *session.Bearer {
	b.t.Helper()
	token, _, _ := strings.Cut(b.cookie(), "~")
	s, err := b.sessions.Session(b.t.Context(), token)
	must(b.t, err)
	return s
}

// shown is an answer.
type shown struct {
	b      *browser
	at     string
	status int
	header http.Header
	text   string
}

func (b *browser) send(method, path, body string, headers ...string) *shown {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.origin+path, strings.NewReader(body))
	must(b.t, err)
	r.Header.Set("User-Agent", b.agent)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(r)
	must(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(b.t, err)
	if found := pagestest.Raw(string(text)); found != nil {
		b.t.Errorf("%s %s shows %q", method, path, found)
	}
	return &shown{b: b, at: path, status: resp.StatusCode, header: resp.Header, text: string(text)}
}

// get asks for a page and follows no redirect.
func (b *browser) get(path string) *shown {
	b.t.Helper()
	return b.send(http.MethodGet, path, "")
}

// open asks for a page and expects it.
func (b *browser) open(path string) *shown {
	b.t.Helper()
	s := b.get(path)
	if s.status != http.StatusOK {
		b.t.Fatalf("%s: %d to %q %s", path, s.status, s.header.Get("Location"), s.text)
	}
	return s
}

// post sends a form as our pages do.
func (b *browser) post(path string, form url.Values) *shown {
	b.t.Helper()
	return b.send(http.MethodPost, path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin",
		b.origin, "Sec-Fetch-Site", "same-origin")
}

// follow goes where the answer leads, until there is a page.
func (s *shown) follow() *shown {
	s.b.t.Helper()
	for range 5 {
		to := s.header.Get("Location")
		if s.status != http.StatusSeeOther {
			return s
		}
		s = s.b.get(to)
	}
	s.b.t.Fatalf("it goes round in circles at %s", s.at)
	return nil
}

// says wants the page to have this status and all of these texts in it.
func (s *shown) says(status int, texts ...string) *shown {
	s.b.t.Helper()
	if s.status != status {
		s.b.t.Fatalf("%s: status %d, not %d (to %q): %s", s.at, s.status, status, s.header.Get("Location"), s.text)
	}
	for _, text := range texts {
		if !strings.Contains(s.text, text) {
			s.b.t.Errorf("%s does not say %q: %s", s.at, text, s.text)
		}
	}
	return s
}

// leads wants the answer to be a redirect.
func (s *shown) leads(to string) *shown {
	s.b.t.Helper()
	if got := s.header.Get("Location"); s.status != http.StatusSeeOther || got != to {
		s.b.t.Fatalf("%s: %d to %q, not to %q: %s", s.at, s.status, got, to, s.text)
	}
	return s
}

// form is one form of a page: the values it would send, and its buttons.
type form struct {
	values  url.Values
	buttons []string // values of FieldDo
}

func (s *shown) forms() []form {
	s.b.t.Helper()
	root, err := html.Parse(strings.NewReader(s.text))
	must(s.b.t, err)
	var all []form
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		f := form{values: url.Values{}}
		for in := range n.Descendants() {
			name, value := attribute(in, "name"), attribute(in, "value")
			switch {
			case in.Type != html.ElementNode || name == "":
			case in.Data == "button":
				f.buttons = append(f.buttons, value)
			case in.Data == "input" && (attribute(in, "type") != "radio" || has(in, "checked")):
				f.values.Set(name, value)
			case in.Data == "select":
				for option := range in.Descendants() {
					if option.Data == "option" && (has(option, "selected") || !f.values.Has(name)) {
						f.values.Set(name, attribute(option, "value"))
					}
				}
			}
		}
		all = append(all, f)
	}
	return all
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// press sends the form that has a button of this value and is about this id, both where there are any, with some fields
// filled in: names and values in turn.
func (s *shown) press(do, id string, fill ...string) *shown {
	s.b.t.Helper()
	for _, f := range s.forms() {
		if do != "" && !slices.Contains(f.buttons, do) || id != "" && f.values.Get(pages.FieldID) != id {
			continue
		}
		if do != "" {
			f.values.Set(pages.FieldDo, do)
		}
		for i := 0; i < len(fill); i += 2 {
			f.values.Set(fill[i], fill[i+1])
		}
		return s.b.post(s.at, f.values)
	}
	s.b.t.Fatalf("%s has no form to %s %s: %s", s.at, do, id, s.text)
	return nil
}

// value is what a field of the page holds.
func (s *shown) value(field string) string {
	for _, f := range s.forms() {
		if f.values.Has(field) {
			return f.values.Get(field)
		}
	}
	return ""
}

// lists tells whether the page has a form about this id.
func (s *shown) lists(id string) bool {
	return slices.ContainsFunc(s.forms(), func(f form) bool { return f.values.Get(pages.FieldID) == id })
}

// code is what an app shows that was told the key on the page.
func (s *shown) code() string { return factortest.Code(s.value(pages.FieldKey), s.b.now()) }

// noAPI finds nothing.
type noAPI struct{}

func (noAPI) Serve(x *web.Exchange)             { http.NotFound(x, x.Request) }
func (noAPI) Refuse(_ *web.Exchange, err error) { panic(err) }
