package hosted

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/web"
)

const sessionCookie = "__Host-signet"

// session is the id of the session that the browser used last.
func (b *browser) session() string {
	b.t.Helper()
	token, _, _ := strings.Cut(b.jar[sessionCookie], "~")
	in, err := b.server.Grants().Sessions.Session(b.t.Context(), token)
	must(b.t, err)
	return in.Token.ID
}

// paths are those that people come by, out of all that the server has. What is for programs is left out.
func (w *world) paths() []string {
	var paths []string
	for _, path := range w.server.Handler().(*web.Front).Next.(*web.Site).Paths() {
		if !strings.HasPrefix(path, "/oauth/") && !strings.HasPrefix(path, "/.well-known/") &&
			!strings.HasSuffix(path, "/") {
			paths = append(paths, path)
		}
	}
	return paths
}

var recoveryCode = regexp.MustCompile(`<li><code>([^<]+)</code></li>`)

// codeApp is an authenticator app. The server takes each of its codes once, and already that of the next half minute.
type codeApp struct {
	key  string
	next time.Time // of which nothing was shown yet
}

// code is that of this moment, or of the half minute after the one whose code was shown last.
func (a *codeApp) code() string {
	const step = 30 * time.Second
	at := time.Now()
	if at.Before(a.next) {
		at = a.next
	}
	a.next = at.Truncate(step).Add(step)
	return factortest.Code(a.key, at)
}

// wrong is a code that the app does not show.
func (a *codeApp) wrong() string { return factortest.Wrong(time.Now(), a.key) }

// enrol sets up an authenticator app in a browser, and gives it and the recovery codes.
func (b *browser) enrol() (a *codeApp, codes []string) {
	b.t.Helper()
	p := b.get("/account/security/totp").shows(200, "Set up an authenticator app")
	a = &codeApp{key: p.hidden("key")}
	done := p.post("account", b.session(), "key", a.key, "code", a.code()).shows(200, "Your recovery codes")
	for _, m := range recoveryCode.FindAllStringSubmatch(done.body, -1) {
		codes = append(codes, html.UnescapeString(m[1]))
	}
	return a, codes
}

// stuck fails where a browser got further than the sign-in.
func (p *page) stuck(what string) {
	p.t.Helper()
	if p.status >= 500 || !strings.HasPrefix(p.path, "/login") || strings.Contains(p.body, callback+"?") ||
		strings.Contains(p.body, "One moment") {
		p.t.Errorf("%s: came to %s: %d %s", what, p.path, p.status, p.body)
	}
}

func TestASecondFactorCannotBeSkipped(t *testing.T) {
	w := open(t, server.Config{})
	jo, kim := w.person(w.org, true), w.person(w.org, true)
	shop := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	old := w.signedIn(jo) // from before there was a factor
	phone, _ := w.signedIn(jo).enrol()

	b := w.browser()
	at := b.authorize(shop).signIn(jo.name, password).shows(200, "Enter your code")
	account := b.session()
	u, err := url.Parse(at.path)
	must(t, err)
	request := u.Query().Get("request")

	t.Run("by going to a later page", func(t *testing.T) {
		for _, path := range w.paths() {
			got := b.get(path)
			if strings.HasPrefix(path, "/account") || path == "/device" || path == "/login" {
				got.stuck(path)
				got.shows(200, "Enter your code")
			} else if got.status >= 500 || strings.Contains(got.body, "/account/security") {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	})
	t.Run("by other words in the address", func(t *testing.T) {
		for _, more := range []string{"", "&account=" + account, "&account=" + account + "&with=recovery",
			"&with=passkey", "&with=consent", "&with=none", "&again=1", "&to=/account",
			"&account=" + account + "&to=/account&again=1&with=totp", "&account=ses_other", "&account=", "&other="} {
			got := b.get("/login?request=" + request + more)
			got.stuck(more)
			if !strings.Contains(got.body, "code") {
				t.Errorf("%s: %s", more, got.body)
			}
		}
	})
	t.Run("by the forms of later pages", func(t *testing.T) {
		for _, form := range []url.Values{
			values("do", "allow"), values("do", "deny", "code", ""), values("do", "continue", "id", account),
			values("id", account), values("password", password),
			values("loginName", jo.name, "password", password),
			values("currentPassword", password, "newPassword", otherWord, "repeatPassword", otherWord),
			values("credential", "{}"), values("code", phone.wrong()), values("code", ""),
			values("recoveryCode", "AAAA-AAAA"), values("code", "", "recoveryCode", ""),
		} {
			for _, path := range []string{at.path, "/login?request=" + request,
				"/login?request=" + request + "&account=" + account + "&with=recovery"} {
				b.send(http.MethodPost, path, form).follow().stuck(form.Encode())
			}
			b.send(http.MethodPost, "/login?to=/account", form).follow().stuck(form.Encode())
		}
		if b.session() != account {
			t.Error("the session is another one")
		}
	})
	t.Run("by another flow", func(t *testing.T) {
		silent := b.authorize(shop, "prompt", "none").arrival(callback)
		if silent.Get("error") != "interaction_required" || silent.Get("code") != "" {
			t.Errorf("without asking: %v", silent)
		}
		b.authorize(shop, "prompt", "consent").stuck("prompt=consent")
		b.authorize(shop, "max_age", "100000").stuck("max_age")
		b.authorize(shop, "prompt", "login").stuck("prompt=login")
		g := w.gadget(shop, "openid")
		b.send(http.MethodPost, "/device",
			values("id", account, "userCode", g.user, "do", "allow")).follow().stuck("a device")
		if got := g.asks(); got["error"] != "authorization_pending" {
			t.Errorf("a device: %v", got)
		}
		for _, path := range []string{"/v1/users/me", "/v1/users/me/tokens", "/v1/users/me/sessions",
			"/v1/users/" + jo.id} {
			got := w.browser().send(http.MethodGet, path, nil, "Authorization", "Bearer "+b.jar[sessionCookie])
			if got.status != http.StatusForbidden || !strings.Contains(got.body, "SECOND_FACTOR_REQUIRED") {
				t.Errorf("the API at %s: %d %s", path, got.status, got.body)
			}
		}
	})
	t.Run("by an old session", func(t *testing.T) {
		old.get("/account").shows(200, "Enter your code").stuck("the account")
		old.authorize(shop).shows(200, "Enter your code").stuck("an application")
	})
	t.Run("by another account of the browser", func(t *testing.T) {
		b.get("/login?other=1&to=/device").signIn(kim.name, password).shows(200, "Connect a device")
		b.get("/login?request="+request+"&account="+account).shows(200, "Enter your code").post("do",
			"allow").stuck("kim's proof")
	})
}

func TestASecondFactorIsProvenOnTheWay(t *testing.T) {
	w := open(t, server.Config{})
	jo := w.person(w.org, true)
	shop := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	phone, codes := w.signedIn(jo).enrol()
	p := w.browser().authorize(shop).signIn(jo.name, password).post("code", phone.code()).shows(200, "Allow access?")
	if !w.counts(p.post("do", "allow").tokens(shop)["access_token"]) {
		t.Error("the token does not count")
	}
	for _, works := range []bool{true, false} { // once
		b := w.browser()
		b.get("/login?to=/device").signIn(jo.name, password).shows(200, "Enter your code")
		p := b.get("/login?to=/device&with=recovery").shows(200, "Enter a recovery code").post("recoveryCode", codes[0])
		if works {
			p.shows(200, "Connect a device")
		} else {
			p.shows(422).stuck("a code that was used")
		}
	}
}

// Where one is required and none is there, the first has to be enrolled, with a password that was just given.
func TestARequiredFactorCannotBeSkipped(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	old := w.signedIn(jo)
	w.rules(policy.Policy{SecondFactorRequired: true})
	b := w.browser()
	at := b.authorize(shop).signIn(jo.name, password).shows(200, "Set up an authenticator app")
	for _, more := range []string{"", "&account=" + b.session(), "&with=recovery", "&with=none", "&again=1"} {
		b.get(at.path + more).stuck(more)
	}
	const foreign = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	for _, form := range []url.Values{values("do", "allow"), values("do", "continue", "id", b.session()),
		values("code", "wrong", "key", foreign),
		values("code", "of that key", "key", foreign), values("recoveryCode", "AAAA-AAAA")} {
		// No code is by chance one of the key that the page shows.
		waiting := factortest.Choose(time.Now(), []string{foreign},
			func() string { return b.get(at.path).hidden("key") })
		switch form.Get("code") {
		case "wrong":
			form.Set("code", factortest.Wrong(time.Now(), waiting, foreign))
		case "of that key":
			form.Set("code", factortest.Code(foreign, time.Now()))
		}
		b.send(http.MethodPost, at.path, form).follow().stuck(form.Encode())
	}
	old.get("/account").stuck("an old session")
	p := b.get(at.path).shows(200, "Set up an authenticator app")
	b.get(p.post("key", p.hidden("key"), "code", factortest.Code(p.hidden("key"), time.Now())).shows(200,
		"Your recovery codes").next()).tokens(shop)
}

// gone fails where a token from before a step still leads anywhere.
func (w *world) gone(token, when string) {
	w.t.Helper()
	got := w.browser().send(http.MethodGet, "/v1/users/me", nil, "Authorization", "Bearer "+token)
	if got.status != http.StatusUnauthorized {
		w.t.Errorf("%s: the token from before is answered with %d %s", when, got.status, got.body)
	}
	with := w.browser()
	with.jar[sessionCookie] = token
	with.get("/account").shows(200, "loginName")
}

func TestTheCookieChangesAtEverySignInAndStepUp(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	b := w.browser()
	before := ""
	// changed is called after everything that has to give the browser another token.
	changed := func(when string) {
		t.Helper()
		now := b.jar[sessionCookie]
		if now == before || now == "" || strings.Contains(now, "~") {
			t.Fatalf("%s: the cookie was %q and is %q", when, before, now)
		}
		if before != "" {
			w.gone(before, when)
		}
		before = now
	}
	b.get("/login?to=/account").signIn(jo.name, password).shows(200, "Your profile")
	changed("a sign-in")
	phone, codes := b.enrol()
	changed("a new factor")
	b.get("/login?other=1&to=/account").signIn(jo.name, password).shows(200, "Enter your code")
	changed("another sign-in of the same person")
	b.get("/login?to=/account").post("code", phone.code()).shows(200, "Your profile")
	changed("a code")
	b.authorize(shop, "prompt", "login").shows(200, "Confirm it’s you").post("password", password).shows(200,
		"Enter your code")
	changed("the password once more")
	b.get("/login?to=/account").shows(200, "Your profile") // the session counts as before
	b.get("/account/password").post("account", b.session(), "currentPassword", password, "newPassword", otherWord,
		"repeatPassword", otherWord).shows(200, "Your password has been changed")
	changed("a changed password")
	w.happens(jo.id, user.PasswordSet{ChangeRequired: true})
	b.get("/login?to=/account").signIn(jo.name, otherWord).shows(200, "Enter your code")
	changed("a sign-in after all sessions have ended")
	b.get("/login?to=/account&with=recovery").post("recoveryCode", codes[0]).shows(200, "Choose a new password")
	changed("a recovery code")
	b.get("/login?to=/account").post("currentPassword", otherWord, "newPassword", password, "repeatPassword",
		password).shows(200, "Your profile")
	changed("a password that had to be changed")
	b.get("/logout").post("do", "end", "id", b.session())
	if b.jar[sessionCookie] != "" {
		t.Errorf("after signing out there is still %q", b.jar[sessionCookie])
	}
	w.gone(before, "signing out")
}

// A cookie that somebody else put into the browser stays theirs: signing in opens a session of its own.
func TestASessionCannotBePutIntoABrowser(t *testing.T) {
	w := open(t, server.Config{})
	jo, mallory := w.person(w.org, true), w.person(w.org, true)
	planted := w.signedIn(mallory).jar[sessionCookie]
	b := w.browser()
	b.jar[sessionCookie] = planted
	b.get("/login?other=1&to=/account").signIn(jo.name, password).shows(200, jo.email)
	if first, _, _ := strings.Cut(b.jar[sessionCookie], "~"); first == planted {
		t.Error("the session is the one from before")
	}
	thief := w.browser()
	thief.jar[sessionCookie] = planted
	if got := thief.get("/account").shows(200, mallory.email); strings.Contains(got.body, jo.email) {
		t.Error("the planted session leads to the other person")
	}
	for _, nonsense := range []string{"x", strings.Repeat("sgn_ses_a~", 50), planted + "~" + planted, "sgn_pat_x",
		w.server.FirstAdmin.Token} {
		thief.jar[sessionCookie] = nonsense
		if got := thief.get("/account"); got.status >= 500 ||
			nonsense == w.server.FirstAdmin.Token && !strings.Contains(got.body, "loginName") {
			t.Errorf("with %q: %d %s", nonsense, got.status, got.body)
		}
	}
}

// Whoever signs in with two factors proves both where an application wants it anew: an old proof of either does not
// count.
func TestAnApplicationThatWantsAProofGetsBothFactors(t *testing.T) {
	w := open(t, server.Config{})
	jo, shop := w.person(w.org, true), w.application("Shop")
	b := w.signedIn(jo)
	_, codes := b.enrol()
	b.authorize(shop).tokens(shop) // both were just proven
	next := 0
	code := func() string { next++; return codes[next-1] }
	for _, wish := range [][]string{{"prompt", "login"}, {"max_age", "0"}} {
		p := b.authorize(shop, wish...).shows(200, "Confirm it’s you")
		p.stuck("at once")
		at := p.post("password", password).shows(200, "Enter your code")
		at.stuck("the password alone")
		b.get(at.path).stuck("once more")
		claims := idClaims(t, b.get(at.path+"&with=recovery").post("recoveryCode", code()).tokens(shop))
		if claims["acr"] != "urn:signet:acr:multi" {
			t.Errorf("%v: %v", wish, claims)
		}
		// The other way round: a second factor that is new does not make up for the old password.
		p = b.authorize(shop, wish...).shows(200, "Confirm it’s you")
		token, _, _ := strings.Cut(b.jar[sessionCookie], "~")
		in, err := w.server.Grants().Sessions.Session(t.Context(), token)
		must(t, err)
		_, err = w.server.Grants().Sessions.Prove(t.Context(), in.Caller, session.Answer{RecoveryCode: code()},
			session.From{})
		must(t, err)
		b.get(p.path).shows(200, "Confirm it’s you").stuck("the second factor alone")
		b.get(p.path).post("password", password).tokens(shop)
	}
	if silent := b.authorize(shop, "max_age", "0", "prompt",
		"none").arrival(callback); silent.Get("error") != "login_required" {
		t.Errorf("silently: %v", silent)
	}
}

// acr_values is a wish: who has no second factor goes on without, and the claim says so.
func TestALevelThatIsPreferredIsReachedOrSaidSo(t *testing.T) {
	w := open(t, server.Config{})
	jo, kim, shop := w.person(w.org, true), w.person(w.org, true), w.application("Shop")
	withFactor := w.signedIn(kim)
	withFactor.enrol()
	for _, tt := range []struct {
		b            *browser
		levels, want string
	}{
		{w.signedIn(jo), "urn:signet:acr:multi", "urn:signet:acr:single"},
		{w.signedIn(jo), "urn:signet:acr:single", "urn:signet:acr:single"},
		{w.signedIn(jo), "phr", "urn:signet:acr:single"},
		{withFactor, "urn:signet:acr:multi", "urn:signet:acr:multi"},
		{withFactor, "urn:signet:acr:single", "urn:signet:acr:multi"},
	} {
		if got := idClaims(t, tt.b.authorize(shop, "acr_values", tt.levels).tokens(shop))["acr"]; got != tt.want {
			t.Errorf("%s: got %v", tt.levels, got)
		}
	}
}

// idClaims reads the ID token among some tokens, without checking it.
func idClaims(t *testing.T, tokens map[string]any) (claims map[string]any) {
	t.Helper()
	text, _ := tokens["id_token"].(string)
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		t.Fatalf("there is no ID token in %v", tokens)
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	must(t, json.Unmarshal(body, &claims))
	return claims
}

const deviceCookie = "__Host-signet-device"

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// everywhere sets the policy of the installation.
func (w *world) everywhere(p policy.Policy) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{installation.Ref}, Decide: func(tx *event.Tx) error {
		i, err := installation.Kind.Get(tx, installation.ID)
		if err != nil {
			return err
		}
		return i.Append(installation.PolicySet{Diff: i.Data.Policy.DiffTo(p)})
	}})
}

// Somebody who has the device remembered gives the password alone there, and is asked for the second factor wherever it
// matters.
func TestADeviceIsRemembered(t *testing.T) {
	w := open(t, server.Config{})
	jo, kim, shop := w.person(w.org, true), w.person(w.org, true), w.application("Shop")
	first := w.signedIn(jo)
	_, codes := first.enrol()
	phone, _ := w.signedIn(kim).enrol()
	const box = "Do not ask again on this device"
	if p := w.browser().get("/login?to=/device").signIn(jo.name, password).shows(200,
		"Enter your code"); strings.Contains(p.body, box) || strings.Contains(p.body, `name="remember"`) {
		t.Error("it is offered where no policy lets it")
	}
	w.everywhere(policy.Policy{Devices: policy.Devices{RememberDeviceSeconds: 30 * 86400}})

	b := w.browser()
	at := b.get("/login?to=/device").signIn(kim.name, password).shows(200, "Enter your code", box, "30 days")
	at.post("code", phone.wrong(), "remember", "1").shows(422, `value="1" checked`)
	if b.jar[deviceCookie] != "" {
		t.Error("a wrong code is remembered")
	}
	at.post("code", phone.code(), "remember", "1").shows(200, "Connect a device")
	token := b.jar[deviceCookie]
	if token == "" {
		t.Fatal("the browser has no cookie")
	}
	if p := b.get("/login?other=1&to=/device&with=recovery"); strings.Contains(p.body, box) {
		t.Error("a recovery code can be remembered")
	}

	b.get("/logout").post("do", "end", "id", b.session())
	before := b.jar[sessionCookie]
	in := b.get("/login?to=/device").signIn(kim.name, password).shows(200, "Connect a device")
	if b.jar[sessionCookie] == before || b.jar[sessionCookie] == "" {
		t.Error("the session is the same")
	}
	in.get("/account").shows(200, kim.email)
	claims := idClaims(t, b.authorize(shop).tokens(shop))
	if claims["acr"] != "urn:signet:acr:single" || len(claims["amr"].([]any)) != 1 {
		t.Errorf("the ID token says %v", claims)
	}
	for what, p := range map[string]*page{
		"contact": b.get("/account/contact"), "a new factor": b.get("/account/security/totp"),
		"acr_values": b.authorize(shop, "acr_values", "urn:signet:acr:multi"),
		"an essential acr": b.authorize(shop, "claims",
			`{"id_token":{"acr":{"essential":true,"value":"urn:signet:acr:multi"}}}`),
	} {
		p.shows(200, "Enter your code").stuck(what)
	}
	b.authorize(shop, "prompt", "login").shows(200, "Confirm it’s you").post("password", password).shows(200,
		"Enter your code").stuck("prompt=login")

	// Somebody else gains nothing by the cookie, and nobody by it alone.
	b.get("/login?other=1&to=/device").signIn(jo.name, password).shows(200, "Enter your code")
	thief := w.browser()
	thief.jar[deviceCookie] = token
	thief.get("/account").shows(200, "loginName")
	p := thief.get("/login?to=/device")
	p.send(http.MethodPost, p.path, values("loginName", kim.name, "password", password), "User-Agent",
		firefox).follow().shows(200, "Enter your code")
	for _, bearer := range []string{token, strings.Split(token, "~")[0]} {
		if got := w.browser().send(http.MethodGet, "/v1/users/me", nil, "Authorization",
			"Bearer "+bearer); got.status != http.StatusUnauthorized {
			t.Errorf("as a bearer token: %d", got.status)
		}
	}

	// It is listed, and ended there.
	b.get("/login?other=1&to=/account/sessions").signIn(kim.name, password).shows(200, "Remembered devices")
	list := b.get("/account/sessions").shows(200, "Forget device")
	id := regexp.MustCompile(`value="(dev_[0-9a-z]+)"`).FindStringSubmatch(list.body)
	if id == nil {
		t.Fatal(list.body)
	}
	list.post("account", b.session(), "do", "forget", "id", id[1]).shows(200, "no longer remembered")
	b.get("/login?other=1&to=/device").signIn(kim.name, password).shows(200, "Enter your code")

	// What the page does not offer is not taken either.
	w.rules(policy.Policy{Devices: policy.Devices{DevicesNotRemembered: true}})
	none := w.browser()
	if p := none.get("/login?to=/device").signIn(jo.name, password); strings.Contains(p.body, box) {
		t.Error("it is offered where the organization forbids it")
	}
	w.rules(policy.Policy{})
	none.get("/login?to=/device&with=recovery").post("recoveryCode", codes[0], "remember", "1").shows(200,
		"Connect a device")
	if none.jar[deviceCookie] != "" {
		t.Error("a recovery code is remembered")
	}
}

// Browsers offer passkeys among the login names that they know. What they need for it is on the page, and costs nothing
// that is stored.
func TestPasskeysAreOfferedInTheFieldOfTheLoginName(t *testing.T) {
	w := open(t, server.Config{Listen: "localhost:0"})
	for _, path := range []string{"/login", "/login?to=/device"} {
		p := w.browser().get(path).shows(200, `autocomplete="username webauthn"`, "data-conditional",
			`"userVerification":"required"`)
		if strings.Contains(html.UnescapeString(p.body), "allowCredentials") || strings.Contains(p.body, "<script>") {
			t.Errorf("%s: %s", path, p.body)
		}
	}
	bare := open(t, server.Config{}) // where there are no passkeys
	if p := bare.browser().get("/login").shows(200, "loginName"); strings.Contains(p.body, "webauthn") ||
		strings.Contains(p.body, "data-passkey") {
		t.Error("passkeys are offered where there are none")
	}
}
