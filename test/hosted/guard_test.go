package hosted

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testkit"
)

// safe fails where a page lacks what keeps browsers safe, or holds script or style of its own.
func (p *page) safe() {
	p.t.Helper()
	h := p.header
	kept, forms := "no-store", "form-action 'self'"
	if strings.HasPrefix(p.path, "/console/") {
		kept = "no-cache" // it is the same for everybody
	}
	if strings.HasPrefix(p.path, "/docs/") {
		kept, forms = "no-cache", "form-action 'none'"
	}
	policy := h.Get("Content-Security-Policy")
	for _, need := range []string{"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
		forms} {
		if !strings.Contains(policy, need) {
			p.t.Errorf("%s: the policy %q lacks %q", p.path, policy, need)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") ||
		len(h.Values("Content-Security-Policy")) != 1 || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Cache-Control") != kept || h.Get("Cross-Origin-Opener-Policy") != "same-origin" ||
		!slices.Contains([]string{"same-origin", "no-referrer"}, h.Get("Referrer-Policy")) ||
		h.Get("Access-Control-Allow-Origin") != "" {
		p.t.Errorf("%s: the headers are %v", p.path, h)
	}
	root, err := html.Parse(strings.NewReader(p.body))
	must(p.t, err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "style" || n.Data == "script" && n.FirstChild != nil || n.Data == "base" || n.Data == "iframe" ||
			n.Data == "object" {
			p.t.Errorf("%s: there is a <%s>", p.path, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" ||
				regexp.MustCompile(`(?i)^\s*(javascript|data|vbscript):`).MatchString(a.Val) && a.Key != "src" {
				p.t.Errorf("%s: <%s %s=%q>", p.path, n.Data, a.Key, a.Val)
			}
		}
	}
}

// A new page is covered without anyone remembering: the paths come from the server.
func TestEveryPathIsSafeForBrowsers(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	in := w.signedIn(jo)
	all := w.server.Handler().(*web.Front).Next.(*web.Site).Paths()
	if len(all) < 20 {
		t.Fatalf("the server has only %v", all)
	}
	for _, path := range all {
		for _, b := range []*browser{w.browser(), in} {
			for _, query := range []string{"", "?request=" + url.QueryEscape(`"><script>alert(1)</script>`),
				"?user_code=%22%3E%3Cb%3E&to=//evil.test&account=%27", "?user=usr_a&code=AAAAAAAA", "?with=%00"} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					got := b.send(method, path+query, nil)
					if got.status >= 500 || got.header.Get("X-Content-Type-Options") != "nosniff" ||
						strings.Contains(got.body, "<script>alert") {
						t.Errorf("%s %s%s: %d %v", method, path, query, got.status, got.header)
					}
					if strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
						got.safe()
					} else if got.status == http.StatusOK && slices.Contains(w.paths(), path) {
						t.Errorf("%s is a page of type %q", path, got.header.Get("Content-Type"))
					}
				}
			}
		}
	}
	// Those that lie on the way.
	b := w.browser()
	p := b.authorize(shop)
	p.safe()
	p = p.post("loginName", jo.name).shows(200, "Enter your password")
	p.safe()
	p.post("loginName", jo.name, "password", "wrong").shows(422).safe()
	p = p.signIn(jo.name, password).shows(200, "Allow access?")
	p.safe()
	p = p.post("do", "allow").shows(200, "One moment")
	p.safe()
	b.authorize(shop, "redirect_uri", "https://evil.test").shows(400).safe()
}

// The page tells a stranger nothing about the application, and repeats nothing: the operator finds both in the log.
func TestTheLogNamesTheAddressThatWasRefused(t *testing.T) {
	w := open(t, server.Config{})
	shop := w.application("Shop")
	p := w.browser().authorize(shop, "redirect_uri", "https://me:hush@evil.test/back?code=hush#hush").shows(400)
	if strings.Contains(p.body, "Shop") || strings.Contains(p.body, shop) || strings.Contains(p.body, "evil.test") {
		t.Errorf("the page says %s", p.body)
	}
	w.browser().send(http.MethodGet, "/oauth/authorize?"+values("client_id", "app_hush", "redirect_uri",
		"https://hush.test/").Encode(), nil)
	for _, why := range []string{
		shop + " sent as redirect_uri https://evil.test/back?…#…, which is not registered with it",
		"no active application of an active organization has this client_id",
	} {
		testkit.Await(t, "the log says "+why, func() bool { return w.log.Has(why) })
	}
	if w.log.Has("hush") {
		t.Error("the log repeats what may be a secret")
	}
}

func TestTheBareAddressLeadsToTheAccount(t *testing.T) {
	w := open(t, server.Config{})
	jo := w.person(w.org, true)
	w.browser().get("/").shows(200, "Sign in").post("loginName", jo.name).post("loginName", jo.name, "password",
		password).shows(200, "Your profile")
	if got := w.browser().send(http.MethodGet, "/nothing", nil); got.status != http.StatusNotFound {
		t.Errorf("what is beside it answers %d", got.status)
	}
}

// What other sites are meant to send to.
const (
	answersArePosted = "/login/idp/*/callback" // by browsers, from identity providers
	providersSignOut = "/login/idp/*/logout"   // by the providers themselves; what counts there is the token
)

func TestEveryFormOfAnotherSiteIsRefused(t *testing.T) {
	w := open(t, server.Config{})
	jo := w.person(w.org, true)
	in := w.signedIn(jo)
	session := in.jar[sessionCookie]
	for _, path := range w.paths() {
		for _, headers := range [][]string{
			{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"},
			{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, {"Origin", "null", "Sec-Fetch-Site", ""},
			{"Origin", "", "Sec-Fetch-Site", ""}, {"Origin", "https://evil.test", "Sec-Fetch-Site", "same-origin"},
			{"Origin", "", "Sec-Fetch-Site", "same-site"},
			{"Origin", "http://evil.test", "Sec-Fetch-Site", "", "Host", "evil.test"},
		} {
			form := values("loginName", jo.name, "password", password, "do", "end", "id", in.session(), "account",
				in.session(), "code", "AAAAAAAA")
			got := in.send(http.MethodPost, path, form, headers...)
			switch path {
			case answersArePosted:
				// It does nothing but have the browser bring the same to the same address once more, from a page of
				// ours.
				if got.status != http.StatusOK || got.header.Get("Set-Cookie") != "" ||
					!strings.HasPrefix(strings.Replace(got.next(), "%2A", "*", 1), path+"?") {
					t.Errorf("%s with %q: %d %v leads to %s", path, headers, got.status, got.header, got.next())
				}
				continue
			case providersSignOut:
				if got.status != http.StatusBadRequest || got.header.Get("Set-Cookie") != "" {
					t.Errorf("%s with %q: %d %v", path, headers, got.status, got.header)
				}
				continue
			}
			if got.status != http.StatusForbidden || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%s with %q: %d %v", path, headers, got.status, got.header)
			}
		}
	}
	if in.jar[sessionCookie] != session || in.get("/account").path != "/account" {
		t.Error("a form of another site did something")
	}
}

// plain is a page without what tells two requests for the same apart.
func plain(p *page, name string) string {
	return fmt.Sprint(p.status, strings.ReplaceAll(p.body, name, "NAME"))
}

func TestThePagesDoNotTellWhoHasAnAccount(t *testing.T) {
	w := open(t, server.Config{})
	elsewhere, domain := w.organization()
	guest := w.person(elsewhere, true)
	off, locked, usual := w.person(w.org, true), w.person(w.org, false), w.person(w.org, true)
	w.happens(off.id, user.Deactivated{})
	w.happens(locked.id, user.WasLocked{})
	nobody := strings.Repeat("x", len(usual.name))
	shop := w.application("Shop", func(s *app.Settings) { s.AllOrganizations = true })
	pages, failures, bound := map[string]string{}, map[string]string{}, map[string]string{}
	length := 0
	for who, name := range map[string]string{
		"somebody":                     usual.name,
		"somebody who is switched off": off.name,
		"somebody who is locked":       locked.name,
		"nobody":                       nobody,
		"somebody of elsewhere":        guest.name,
		"nobody of elsewhere":          nobody + "@" + domain,
		"nobody of nowhere":            nobody + "@nowhere.test",
	} {
		b := w.browser()
		p := b.get("/login").post("loginName", name)
		pages[plain(p, name)] += who + ", "
		p = p.post("loginName", name, "password", "a wrong word")
		failures[plain(p, name)] += who + ", "
		if name != nobody+"@"+domain && name != nobody+"@nowhere.test" {
			if length == 0 {
				length = len(p.body)
			}
			if len(p.body) != length {
				t.Errorf("%s: the answer has %d bytes, others have %d", who, len(p.body), length)
			}
		}
		if b.jar[sessionCookie] != "" {
			t.Errorf("%s got a cookie", who)
		}
	}
	// A sign-in for one organization does not tell who is of another: the right password is as wrong as any.
	for who, try := range map[string][2]string{
		"nobody":                          {nobody + "@" + domain, password},
		"a guest with the right password": {guest.name + "@" + domain, password},
		"a guest with a wrong one":        {guest.name + "@" + domain, "a wrong word"},
		"a wrong password":                {usual.name, "a wrong word"},
	} {
		p := w.browser().authorize(shop, "scope", "openid urn:signet:org:id:"+w.org).post("loginName", try[0],
			"password", try[1])
		text := plain(p, try[0])
		bound[regexp.MustCompile(`request=[A-Z0-9]+`).ReplaceAllString(text, "")] += who + ", "
	}
	for what, answers := range map[string]map[string]string{"the page for the password": pages,
		"the answer to a wrong one": failures, "a sign-in for an organization": bound} {
		if len(answers) != 1 {
			var groups []string
			for _, who := range answers {
				groups = append(groups, who)
			}
			t.Errorf("%s tells apart %q", what, groups)
		}
	}
}

func TestASignInForAnOrganizationIsForItsPeople(t *testing.T) {
	w := open(t, server.Config{})
	elsewhere, domain := w.organization()
	jo, guest := w.person(w.org, true), w.person(elsewhere, true)
	shop := w.application("Shop", func(s *app.Settings) { s.AllOrganizations = true })
	own := w.application("Own")
	for _, scope := range []string{"openid urn:signet:org:id:" + w.org, "openid urn:signet:org:domain:" + w.domain()} {
		// Who is signed in with another account is not let through, whatever the address says.
		b := w.browser()
		b.get("/login?to=/device").signIn(guest.name+"@"+domain, password).shows(200, "Connect a device")
		p := b.authorize(shop, "scope", scope).shows(200, "loginName")
		for _, more := range []string{"&account=" + b.session(), "&account=" + b.session() + "&again=1", "&with=totp"} {
			got := b.get(p.path + more)
			if got.stuck(more); !strings.Contains(got.body, `name="loginName"`) {
				t.Errorf("%s: %s", more, got.body)
			}
			b.send(http.MethodPost, p.path+more, values("do", "continue", "id", b.session())).follow().stuck(more)
			b.send(http.MethodPost, p.path+more, values("do", "allow")).follow().stuck(more)
		}
		if got := b.authorize(shop, "scope", scope, "prompt", "none").arrival(callback); got.Get("code") != "" {
			t.Errorf("without asking: %v", got)
		}
		p.signIn(jo.name, password).tokens(shop)
	}
	// Neither a header nor the name of a host makes it another organization's.
	for _, host := range []string{domain, "evil.test"} {
		b := w.browser()
		p := b.send(http.MethodGet, "/login?to=/device", nil, "Host", host, "X-Forwarded-Host", host)
		if got := p.send(http.MethodPost, "/login?to=/device", values("loginName", guest.name, "password", password),
			"Host", host, "X-Forwarded-Host", host).follow(); got.status != http.StatusUnprocessableEntity {
			t.Errorf("as %s: %d", host, got.status)
		}
	}
	// An application of one organization is not for people of another.
	b := w.browser()
	b.authorize(own).signIn(guest.name+"@"+domain, password).stuck("an application of another organization")
}

// domain is one of the organization of most people here.
func (w *world) domain() string {
	w.t.Helper()
	_, domain, _ := strings.Cut(w.server.FirstAdmin.LoginName, "@")
	return domain
}

// wrong sends forms that are wrong until the server does not listen any more.
func (p *page) wrong(what string, pairs ...string) {
	p.t.Helper()
	for range 20 {
		if got := p.post(pairs...); strings.Contains(got.body, "Too many attempts") {
			return
		} else if got.status != http.StatusUnprocessableEntity {
			p.t.Fatalf("%s: got %d %s", what, got.status, got.body)
		}
	}
	p.t.Errorf("%s can be guessed without end", what)
}

func TestWhateverCanBeGuessedIsSlowedDown(t *testing.T) {
	w := open(t, server.Config{})
	slowed := func(p *page, pairs ...string) {
		t.Helper()
		p.post(pairs...).shows(422, "Too many attempts")
	}
	t.Run("a password", func(t *testing.T) {
		jo := w.person(w.org, true)
		in := w.signedIn(jo)
		p := w.browser().get("/login?to=/device")
		p.wrong("a password", "loginName", jo.name, "password", "a wrong word")
		in.get("/account").shows(200, jo.email) // who is signed in stays
	})
	t.Run("the password of nobody", func(t *testing.T) {
		w.browser().get("/login?to=/device").wrong("a name that nobody has", "loginName", "nobody-of-this-name",
			"password", "a wrong word")
	})
	t.Run("the password once more", func(t *testing.T) {
		jo, shop := w.person(w.org, true), w.application("Shop")
		p := w.signedIn(jo).authorize(shop, "prompt", "login").shows(200, "Confirm it’s you")
		p.wrong("the password once more", "password", "a wrong word")
		slowed(p, "password", password)
	})
	t.Run("the current password", func(t *testing.T) {
		b := w.signedIn(w.person(w.org, true))
		p := b.get("/account/password")
		p.wrong("the current password", "account", b.session(), "currentPassword", "a wrong word", "newPassword",
			otherWord, "repeatPassword", otherWord)
		slowed(p, "account", b.session(), "currentPassword", password, "newPassword", otherWord,
			"repeatPassword", otherWord)
	})
	t.Run("a code, and a recovery code by itself", func(t *testing.T) {
		jo := w.person(w.org, true)
		phone, codes := w.signedIn(jo).enrol()
		b := w.browser()
		p := b.get("/login?to=/device").signIn(jo.name, password).shows(200, "Enter your code")
		p.wrong("a code", "code", phone.wrong())
		slowed(p, "code", phone.code())
		// Guesses at one kind do not keep the owner from using another, which has a count of its own.
		b.get("/login?to=/device&with=recovery").post("recoveryCode", codes[0]).shows(200, "device")
		other := w.browser()
		other.get("/login?to=/device").signIn(jo.name, password).shows(200, "Enter your code")
		p = other.get("/login?to=/device&with=recovery")
		p.wrong("a recovery code", "recoveryCode", "WRONG")
		slowed(p, "recoveryCode", codes[1])
	})
}

func TestEveryPageHoldsToThePolicyOfPasswords(t *testing.T) {
	w := withMail(t)
	w.rules(policy.Policy{PasswordMinLength: 12, CommonPasswordsRefused: true})
	kim := w.person(w.org, true)
	w.browser().get("/forgot").post("loginName", kim.email).shows(200)
	reset := w.browser().get(w.link(kim.email)).shows(200, "Set a new password", "At least 12 characters.")
	b := w.signedIn(kim)
	jo := w.person(w.org, true)
	w.happens(jo.id, user.PasswordSet{ChangeRequired: true})
	forced := w.browser().get("/login?to=/device").signIn(jo.name, password).shows(200, "Choose a new password",
		"At least 12 characters.")
	for _, bad := range []string{"short", "password1234", strings.Repeat("x", 73)} {
		forced.post("currentPassword", password, "newPassword", bad, "repeatPassword", bad).shows(422,
			"newPassword-problem")
		b.get("/account/password").post("account", b.session(), "currentPassword", password, "newPassword", bad,
			"repeatPassword", bad).shows(422, "newPassword-problem")
		reset.post("code", reset.hidden("code"), "newPassword", bad, "repeatPassword", bad).shows(422,
			"newPassword-problem")
	}
	// The password that has just been typed is not asked for again, and cannot be kept.
	if strings.Contains(forced.body, `name="currentPassword"`) {
		t.Error("it asks for the password again")
	}
	w.rules(policy.Policy{})
	forced.post("newPassword", password, "repeatPassword", password).shows(422,
		"Choose a password that is different from the current one.")
	// it is the same still
	w.browser().get("/login?to=/device").signIn(jo.name, password).shows(200, "Choose a new password")
	forced.post("newPassword", otherWord, "repeatPassword", otherWord).shows(200, "Connect a device")
}

// knownBrowser is the cookie of a browser that has seen the page.
const knownBrowser = "__Host-signet-browser=ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Guesses that come at once, on the page and over the API, count together.
func TestParallelGuessesOnThePageAndOverTheAPICountTogether(t *testing.T) {
	w := open(t, server.Config{})
	for _, name := range []string{w.person(w.org, true).name, "nobody-has-this-name"} {
		var mu sync.Mutex
		heard, refused := 0, 0
		var wait sync.WaitGroup
		start := make(chan struct{})
		for i := range 64 {
			wait.Go(func() {
				<-start
				address, media, body := w.url+"/login?to=/device", "application/x-www-form-urlencoded",
					values("loginName", name, "password", "a wrong word").Encode()
				if i%2 == 0 {
					address, media, body = w.url+"/v1/sessions", "application/json",
						fmt.Sprintf(`{"loginName": %q, "password": "a wrong word"}`, name)
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", media)
				r.Header.Set("Cookie", knownBrowser)
				r.Header.Set("Origin", w.url)
				resp, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				switch said := string(text); {
				case strings.Contains(said, "SIGN_IN_FAILED"),
					strings.Contains(said, "The login name or the password is wrong"):
					heard++
				case strings.Contains(said, "SIGN_IN_THROTTLED"), strings.Contains(said, "Too many attempts"):
					refused++
				default:
					t.Errorf("got %d %s", resp.StatusCode, said)
				}
			})
		}
		close(start)
		wait.Wait()
		if heard > 10 || heard == 0 || heard+refused != 64 {
			t.Errorf("%s: %d of 64 guesses were heard, %d were not", name, heard, refused)
		}
	}
}

// A crowd that signs in on the page is served in turn and, beyond a number, told to come back. Others do not wait for
// it.
func TestACrowdThatSignsInKeepsNobodyElseWaiting(t *testing.T) {
	w := open(t, server.Config{Hasher: secret.NewHasher(0, 0)}) // as slow as the program
	in := w.signedIn(w.person(w.org, true))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var crowd sync.WaitGroup
	full := make(chan struct{})
	var once sync.Once
	for i := range 600 {
		crowd.Go(func() {
			form := values("loginName", fmt.Sprint("nobody", i), "password", "a wrong word").Encode()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/login?to=/device",
				strings.NewReader(form))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", w.url)
			r.Header.Set("Cookie", knownBrowser)
			resp, err := client.Do(r)
			if err != nil {
				return // it gave up when the others had seen enough
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusServiceUnavailable {
				once.Do(func() { close(full) })
			}
		})
	}
	select {
	case <-full:
	case <-time.After(time.Minute):
		t.Fatal("nobody was told to come back")
	}
	for range 20 { // the crowd is still there
		in.get("/account").shows(200, "Your profile")
		if got := w.browser().send(http.MethodGet, "/v1/users/me", nil, "Authorization",
			"Bearer "+w.server.FirstAdmin.Token); got.status != http.StatusOK {
			t.Fatalf("got %d", got.status)
		}
	}
	cancel()
	crowd.Wait()
}
