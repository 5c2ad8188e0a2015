package hosted

import (
	"cmp"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/portal"
)

// led is a world in which foreign pages have browsers open addresses. Its provider sends everybody back at once.
type led struct {
	*world
	portal *portal.Portal
	idp    string
	who    string         // whom the provider brings
	says   map[string]any // what it says of them besides
}

func ledWorld(t *testing.T) *led {
	w := &led{world: withMail(t, func(c *server.Config) {
		c.OutboundAllow, c.StartsPerMinute, c.LimitPublic = []string{"127.0.0.0/8", "::1/128"}, 1_000_000, "off"
	}), portal: portal.Start(t), who: "linked"}
	config := w.portal.Config("Portal", "")
	config["autoRegister"] = true
	w.idp = w.api("POST", "/v1/idps/jwt", config)["idpId"].(string)
	b := w.browser()
	w.opens(b.get("/login/idp/"+w.idp+"?to=/account").press()).creates().shows(200, "Your profile")
	return w
}

var leadsOn = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]*)">`)

// foreign are the headers of a request that another site made a browser send, and none where it does not say so.
var foreign = [][]string{{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Referer",
	"https://evil.test/"}, {}}

// opens goes on from an answer as a browser does by itself: to where it is sent, through the provider too, and to where
// a page leads. Nobody presses anything.
func (w *led) opens(p *page) *page {
	w.t.Helper()
	for range 20 {
		to := p.header.Get("Location")
		if m := leadsOn.FindStringSubmatch(p.body); to == "" && m != nil {
			to = html.UnescapeString(m[1])
		}
		switch at := strings.TrimPrefix(to, w.url); {
		case to == "":
			return p
		case strings.HasPrefix(at, "/"):
			p = p.send(http.MethodGet, at, nil, foreign[0]...)
		case strings.HasPrefix(to, w.portal.Address("/login")):
			u, err := url.Parse(to)
			must(w.t, err)
			p = p.send(http.MethodGet, callbackOf(w.idp, u.Query().Get("state")), nil, "Authorization",
				"Bearer "+w.portal.Token(w.idp, w.who, w.says))
		default: // to an application
			p.path = to
			return p
		}
	}
	w.t.Fatalf("sent round in circles at %s", p.path)
	return nil
}

// since are the facts that were recorded after a position, without failures, which are counted together.
func (w *led) since(position int64) (facts []string, head int64) {
	w.t.Helper()
	head = position
	for {
		events, err := w.server.Store().Events(w.t.Context(), head, 1000)
		must(w.t, err)
		if len(events) == 0 {
			return facts, head
		}
		for _, e := range events {
			if head = e.Position; !strings.HasPrefix(string(e.Type), "idp_sign_in.") {
				facts = append(facts, string(e.Type))
			}
		}
	}
}

// Whatever addresses a foreign page has a browser open, one after another, nothing happens that somebody did not choose
// on a page of ours: no account, membership, link or session, and none ends. The addresses are those of the server, so
// a new page is covered by itself.
func TestNothingHappensByNavigationAlone(t *testing.T) {
	w := ledWorld(t)
	w.rules(opened(policy.ToAll))
	shop := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	jo, ann := w.owner(w.org), w.person(w.org, true)
	evil, _ := w.organization()
	w.api("POST", "/v1/orgs/"+evil+"/invitations", map[string]any{"email": "attacker@evil.test"})
	invitation := w.link("attacker@evil.test")
	w.browser().get("/login/register").post("email", "other@evil.test").shows(200)
	registration := w.link("other@evil.test")
	w.browser().get("/forgot").post("loginName", jo.email).shows(200)
	reset := w.link(jo.email)
	unset, unproven := w.person(w.org, true), w.person(w.org, false)
	verify := w.link(unproven.email)
	w.api("POST", "/v1/users/"+unset.id+"/_send_password_setup", map[string]any{})
	setup := w.link(unset.email)
	moved := w.person(w.org, true)
	restore := w.moves(moved, "moved@evil.test")
	device := w.gadget(shop, "openid").user
	authorize := func(more ...string) string {
		return "/oauth/authorize?" +
			values(append([]string{"client_id", shop, "redirect_uri", callback, "response_type", "code", "scope",
				"openid", "state", "st",
				"code_challenge", "3PQc_WblO8W9xBQjYfGOKsco5u3B1iCP_MYNH1nthpY", "code_challenge_method", "S256"},
				more...)...).Encode()
	}
	idp := "/login/idp/" + w.idp
	own := w.api("POST", "/v1/apps",
		map[string]any{"name": "Own", "type": "APPLICATION_TYPE_WEB", "redirectUris": []string{home}})
	w.api("PUT", "/v1/apps/"+own["appId"].(string)+"/own_sign_in", map[string]any{"allowed": true})
	start := w.json("POST", "/v1/idps/"+w.idp+"/_start",
		map[string]any{"clientId": own["appId"], "clientSecret": own["clientSecret"],
			"returnAddress": home}).shows(200).json["address"].(string)
	plain := w.application("Plain")
	hint := func(b *browser) string { // the address that signs out of the current session
		return logoutURL("id_token_hint", b.authorize(plain).tokens(plain)["id_token"].(string))
	}
	flows := []string{
		invitation, registration, reset, "/device?user_code=" + device, authorize(), authorize("idp_hint", w.idp),
		authorize("idp_hint", w.idp, "prompt", "login"),
		idp + "?to=%2Faccount&other=1", idp + "?to=%2Flogin%2Finvitation&other=1", "/oauth/logout?client_id=" + shop,
	}
	// These are opened with every address, but not with one another.
	alone := []string{setup, verify, restore, strings.TrimPrefix(start, w.url), hint(w.signedIn(ann)),
		hint(w.signedIn(jo)), w.signedIn(jo).try(shop).address}
	var places []string // of the server that answer to browsers
	for _, path := range w.server.Handler().(*web.Front).Next.(*web.Site).Paths() {
		if !strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/signet.") &&
			!strings.HasPrefix(path, "/assets") {
			places = append(places, strings.ReplaceAll(strings.Replace(path, "/login/idp/*", idp, 1), "*", "x"))
		}
	}
	for _, known := range []string{"/login", "/login/invitation", "/register", "/device", "/logout", "/reset",
		"/restore", "/verify", "/login/password", "/login/try", idp + "/callback", "/login/idp/"} {
		if !slices.Contains(places, known) {
			t.Fatalf("%s is not among %v", known, places)
		}
	}

	kinds := []struct {
		name   string
		chosen bool // the provider was chosen in this browser before
		in     bool // somebody is signed in
		two    bool // and somebody else, before
		who    string
		begin  *browser
		trial  *tried // of the person who is signed in
	}{{name: "nobody", who: "linked"}, {name: "somebody", in: true, who: "linked"},
		{name: "two", in: true, two: true, who: "linked"},
		{name: "somebody who has chosen the provider", chosen: true, in: true, who: "linked"},
		{name: "nobody, who has chosen the provider, and is new", chosen: true, who: "new"}}
	for i, kind := range kinds {
		begin := w.browser()
		if kind.in {
			begin = w.signedIn(jo)
		}
		if kind.two {
			begin = w.signedIn(ann, jo)
		}
		if w.who = kind.who; kind.chosen {
			w.opens(begin.get(idp + "?to=/account&other=1").press())
			if kind.in { // it signed somebody else in, who leaves again
				p := begin.get("/logout")
				p.post("do", "end", "id", p.hidden("id")).shows(200)
			}
		}
		kinds[i].begin = begin
		if kind.in {
			kinds[i].trial = begin.try(shop, "prompt", "login")
		}
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			begin := kind.begin
			w.who = kind.who
			session := begin.jar[sessionCookie]
			_, head := w.since(0)
			again := func() *browser { // as it was
				b := w.browser()
				for name, value := range begin.jar {
					b.jar[name] = value
				}
				return b
			}
			opened := func(b *browser, address string, with []string) *page {
				p := w.opens(b.send(http.MethodGet, address, nil, with...))
				if p.status >= 500 || p.status == http.StatusTooManyRequests {
					t.Errorf("%s answers %d", address, p.status)
				}
				return p
			}
			unchanged := func(b *browser, addresses ...string) {
				t.Helper()
				var facts []string
				if facts, head = w.since(head); len(facts) > 0 || b.jar[sessionCookie] != session {
					t.Fatalf("%q: %v were recorded, and the session is %q", addresses, facts, b.jar[sessionCookie])
				}
			}
			requests, single := 0, alone
			if kind.in {
				single = append(slices.Clone(alone), kind.trial.address)
			}
			for i, first := range slices.Concat([]string{""}, flows, single) {
				for j, second := range append([]string{""}, flows...) {
					// the order of two does not matter: each leaves a cookie, or a request, of its own
					if second != "" && (j <= i || i > len(flows)) {
						continue
					}
					b, pending, arrival, with := again(), "", "", foreign[(i+j)%2]
					for _, address := range []string{first, second} {
						if address == "" {
							continue
						}
						at, err := url.Parse(opened(b, address, with).path)
						must(t, err)
						if id := at.Query().Get("request"); id != "" {
							pending = id
						}
						if id := at.Query().Get("arrival"); id != "" {
							arrival = id
						}
						unchanged(b, first, second)
					}
					queries := []string{"", "?to=%2Faccount&other=1", "?to=%2Flogin%2Finvitation&other=1",
						"?to=%2Flogin%2Finvitation%3Fwith%3Daccount", "?with=account", "?opened=1&mailed=1",
						"?do=allow&id=x&for=x"}
					if pending != "" {
						queries = append(queries, "?request="+pending, "?request="+pending+"&other=1",
							"?request="+pending+"&tried=1")
					}
					if kind.in {
						queries = append(queries, "?to=%2Faccount&link=1&account="+begin.session(),
							"?account="+begin.session()+"&again=1&to=%2Faccount")
					}
					if kind.two {
						before := ids(t, begin)[ann.name]
						queries = append(queries, "?account="+before+"&to=%2Faccount",
							"?account="+before+"&to=%2Fconsole")
						if pending != "" {
							queries = append(queries, "?account="+before+"&request="+pending)
						}
					}
					if arrival != "" {
						queries = append(queries, "?arrival="+arrival,
							"?arrival="+arrival+"&link=1&other=1&to=%2Faccount")
					}
					for _, place := range places {
						all := queries
						if !slices.Contains([]string{"/login", "/login/invitation", "/register"}, place) {
							if all = queries[:1]; second != "" {
								continue // it depends on at most one of them
							}
						}
						for _, query := range all {
							opened(b, place+query, with)
							requests++
						}
						unchanged(b, first, second, place)
					}
					for _, query := range queries {
						opened(b, idp+query, with)
						requests++
					}
					unchanged(b, first, second, idp)
				}
			}
			t.Logf("%d addresses were opened", requests)
		})
	}

	// What was chosen on a page of ours goes on to its end, in a browser in which the same addresses were opened.
	w.who = "new"
	b := w.browser()
	for _, address := range slices.Concat(flows, alone) {
		w.opens(b.send(http.MethodGet, address, nil, foreign[0]...))
	}
	tr := kinds[1].trial
	tr.arrived(tr.get(tr.address).shows(200, "Password").post("password", password).shows(200,
		"Shop").post("do", "allow"))
	word := []string{"newPassword", otherWord, "repeatPassword", otherWord}
	for _, link := range []string{setup, reset} {
		b.get(link).post(word...).shows(200, "Your password has been set")
	}
	b.get(restore).post().shows(200, "Your previous e‑mail address is restored.").post(word...).shows(200,
		"Your password has been set")
	p := b.get(verify).shows(200, "Confirm your")
	p.post("code", textField.FindStringSubmatch(p.body)[2]).shows(200, "is confirmed")
	if got := w.opens(b.send(http.MethodGet, strings.TrimPrefix(start, w.url), nil)).shows(200,
		"Own").allow(); got.Get("code") == "" {
		t.Errorf("the application with a page of its own is told %v", got)
	}
	p = w.opens(b.get("/login/invitation").shows(200, "Elsewhere").press()).shows(200, "Create your account",
		"Elsewhere", "attacker@evil.test")
	p.creates().shows(200, "Welcome")

	// The other exception: a hint ends the session that it names, and none besides.
	b = w.signedIn(ann)
	leave, left := hint(b), b.session()
	stays := w.signedIn(w.person(w.org, true)).jar[sessionCookie]
	b.jar[sessionCookie] = stays + "~" + b.jar[sessionCookie]
	_, head := w.since(0)
	for range 2 {
		w.opens(b.send(http.MethodGet, leave, nil, foreign[0]...))
	}
	if facts, _ := w.since(head); !slices.Equal(facts, []string{"sign_in.session_ended.v1"}) ||
		b.jar[sessionCookie] != stays {
		t.Errorf("%v were recorded, and the sessions are %q", facts, b.jar[sessionCookie])
	}
	if in, err := w.server.Grants().Sessions.Session(t.Context(), stays); err != nil || in.Token.ID == left {
		t.Errorf("the other session ended: %v", err)
	}
}

// The one exception: where somebody has chosen a provider before, an application may lead there, and a person who is
// linked is signed in.
func TestAProviderThatWasChosenBeforeIsGoneToAtOnce(t *testing.T) {
	w := ledWorld(t)
	shop := w.application("Shop")
	b := w.browser()
	w.opens(b.authorize(shop, "idp_hint", w.idp).shows(200, "Continue with", "Portal", "Shop").press()).tokens(shop)
	left := func() {
		t.Helper()
		p := b.get("/logout")
		p.post("do", "end", "id", p.hidden("id")).shows(200)
	}
	left()
	w.opens(b.authorize(shop, "idp_hint", w.idp)).tokens(shop)
	left()
	w.opens(b.get("/login/idp/"+w.idp+"?to=/account")).shows(200, "Your profile")
	left()
	jar := func(value string) *browser {
		other := w.browser()
		for name, kept := range b.jar {
			other.jar[name] = kept
		}
		other.jar["__Host-signet-chosen"] = value
		return other
	}
	value := b.jar["__Host-signet-chosen"]
	if other := jar(value); w.opens(other.authorize(shop, "idp_hint", w.idp)).status == 200 &&
		strings.Contains(w.opens(other.authorize(shop, "idp_hint", w.idp)).body, "Continue with") {
		t.Error("the same cookie does not count")
	}
	// Nobody else can write the cookie, for this or for another provider.
	config := w.portal.Config("Second", "")
	second := w.api("POST", "/v1/idps/jwt", config)["idpId"].(string)
	id, rest, _ := strings.Cut(value, ".")
	at, mac, _ := strings.Cut(rest, ".")
	for name, forged := range map[string]string{"empty": "", "another provider": second + "." + at + "." + mac,
		"a later time": id + ".9999999999." + mac, "no proof": id + "." + at,
		"another proof": id + "." + at + "." + strings.Repeat("A", len(mac))} {
		for _, hint := range []string{w.idp, second} {
			if p := w.opens(jar(forged).authorize(shop, "idp_hint", hint)); p.status != 200 ||
				!strings.Contains(p.body, "Continue with") {
				t.Errorf("%s: %d %s", name, p.status, p.path)
			}
		}
	}
	// It is bounded, however many are chosen.
	for range 12 {
		next := w.api("POST", "/v1/idps/jwt", config)["idpId"].(string)
		b.get("/login/idp/" + next + "?to=/account").press().shows(200)
	}
	if kept := b.jar["__Host-signet-chosen"]; strings.Count(kept, "~") != 7 || len(kept) > 1000 ||
		strings.Contains(kept, w.idp) {
		t.Errorf("the cookie is %q", kept)
	}
}

// A form says what it was shown for. If another tab has opened another link since, its button does nothing but show
// what it is for now.
func TestAFormCountsForWhatItWasShownFor(t *testing.T) {
	w := ledWorld(t)
	w.rules(opened(policy.ToAll))
	evil, _ := w.organization()
	w.api("POST", "/v1/orgs/"+w.org+"/invitations", map[string]any{"email": "jo@mail.test"})
	own := w.link("jo@mail.test")
	w.api("POST", "/v1/orgs/"+evil+"/invitations", map[string]any{"email": "attacker@evil.test"})
	foreign := w.link("attacker@evil.test")
	register := func(email string) string {
		w.browser().get("/login/register").post("email", email).shows(200)
		return w.link(email)
	}
	mine, theirs := register("me@mail.test"), register("they@evil.test")
	// mailed is a form that the link of a mail leads to.
	mailed := func(link func(p person) string) (own, foreign string, form func(*browser) *page, other person) {
		other = w.person(w.org, true)
		own, foreign = link(w.person(w.org, true)), link(other)
		return own, foreign, func(b *browser) *page { return b.get(own) }, other
	}
	setup, theirSetup, setting, other := mailed(func(p person) string {
		w.api("POST", "/v1/users/"+p.id+"/_send_password_setup", map[string]any{})
		return w.link(p.email)
	})
	reset, theirReset, resetting, _ := mailed(func(p person) string {
		w.browser().get("/forgot").post("loginName", p.email).shows(200)
		return w.link(p.email)
	})
	restore, theirRestore, restoring, _ := mailed(func(p person) string {
		return w.moves(p, p.name+"@new.test")
	})
	word := []string{"newPassword", otherWord, "repeatPassword", otherWord}
	const gone = "This link no longer works"
	for name, tt := range map[string]struct {
		own, foreign string
		form         func(b *browser) *page
		fields       []string
		now          string
		status       int // 200 where it is 0
	}{
		"joining with a password": {own, foreign,
			func(b *browser) *page { return b.get("/login/invitation?with=password") }, chosen("userName", "jo"),
			"attacker@evil.test", 0},
		"joining through a provider": {own, foreign, func(b *browser) *page {
			w.who = "new"
			return w.opens(b.get("/login/invitation").press())
		}, []string{"firstName", "Jo", "lastName", "Doe", "userName", "jo"}, "attacker@evil.test", 0},
		"setting a first password": {setup, theirSetup, setting, word, other.name, 0},
		// the address of the form names the person
		"setting a new password": {reset, theirReset, resetting, word, gone, 400},
		"taking an address back": {restore, theirRestore, restoring, nil, gone, 400},
		"registering": {mine, theirs, func(b *browser) *page { return b.get("/register?mailed=1") },
			chosen("userName", "me"), "they@evil.test", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := w.browser()
			b.get(tt.own)
			form := tt.form(b).shows(200)
			_, head := w.since(0)
			b.get(tt.foreign) // in another tab, which a foreign page has opened
			form.post(tt.fields...).shows(cmp.Or(tt.status, 200), tt.now)
			if facts, _ := w.since(head); len(facts) > 0 || b.jar[sessionCookie] != "" {
				t.Errorf("%v were recorded", facts)
			}
		})
	}
	// The form that proves an address holds the code, and its address names the person.
	me := w.person(w.org, false)
	toMe := w.link(me.email)
	they := w.person(w.org, false)
	toThem := w.link(they.email)
	b := w.browser()
	form := b.get(toMe).shows(200, "Confirm your")
	b.get(toThem)
	form.post("code", textField.FindStringSubmatch(form.body)[2]).shows(200, "is confirmed")
	for id, proven := range map[string]bool{me.id: true, they.id: false} {
		u, err := user.Kind.Read(t.Context(), w.server.Store(), id)
		must(t, err)
		if u.Data.Human.Email.Verified != proven {
			t.Errorf("%s is proven: %t", u.Data.UserName, !proven)
		}
	}
}

// Which account of a browser is the current one is chosen there. An address does not change it, whichever account it
// names, and neither does an application.
func TestAnAddressDoesNotChangeTheCurrentAccount(t *testing.T) {
	w := open(t, server.Config{})
	jo, ann, plain := w.person(w.org, true), w.person(w.org, true), w.application("Plain")
	first := w.signedIn(ann)
	hint := first.authorize(plain).tokens(plain)["id_token"].(string)
	b := w.signedIn(ann, jo)
	before := ids(t, b)[ann.name]
	for _, with := range foreign {
		p := b.send(http.MethodGet, "/login?account="+before+"&to=%2Fdevice", nil, with...).follow().shows(200,
			"Choose an account", ann.name, jo.name)
		b.get("/device").shows(200, jo.name)
		p.post("id", b.session()).shows(200, "Connect a device", jo.name)
	}
	b.authorize(plain, "id_token_hint", hint).tokens(plain) // only one account can be meant
	b.get("/device").shows(200, jo.name)

	b.get("/login?account="+before+"&to=%2Fdevice").post("id", before).shows(200, "Connect a device", ann.name)
	b.get("/device").shows(200, ann.name)
}

// A session that a browser has no room for any more ends: nobody could end it there.
func TestASessionThatABrowserForgetsEnds(t *testing.T) {
	w := open(t, server.Config{})
	b := w.signedIn(w.person(w.org, true))
	token := b.jar[sessionCookie]
	counts := func() int {
		return w.browser().send(http.MethodGet, "/v1/users/me", nil, "Authorization", "Bearer "+token).status
	}
	for n := range 8 {
		if got := counts(); got != http.StatusOK {
			t.Fatalf("after %d others it answers %d", n, got)
		}
		b.get("/login?other=1&to=/device").signIn(w.person(w.org, true).name, password).shows(200, "Connect a device")
	}
	if got := counts(); got != http.StatusUnauthorized {
		t.Errorf("it answers %d", got)
	}
}

// Somebody who signs in while the browser is at a provider that it was led to is not replaced by whom the provider
// brings, unless they want to.
func TestWhoComesFromAProviderUnaskedIsAsked(t *testing.T) {
	w := ledWorld(t)
	jo := w.person(w.org, true)
	b := w.browser()
	start := "/login/idp/" + w.idp + "?to=/account"
	w.opens(b.get(start).press()).shows(200, "Your profile")
	p := b.get("/logout")
	p.post("do", "end", "id", p.hidden("id")).shows(200)

	away, err := url.Parse(b.send(http.MethodGet, start, nil).header.Get("Location"))
	must(t, err)
	b.get("/login?to=/device").signIn(jo.name, password).shows(200, "Connect a device")
	session := b.jar[sessionCookie]
	_, head := w.since(0)
	back := b.send(http.MethodGet, callbackOf(w.idp, away.Query().Get("state")), nil, "Authorization",
		"Bearer "+w.portal.Token(w.idp, w.who, w.says)).follow()
	back.shows(200, "Sign in with this account?", "Portal", jo.name, "linked@")
	b.get(back.path).shows(200, "Sign in with this account?")
	back.post("do", "else").shows(200, "Sign in with this account?")
	if facts, _ := w.since(head); len(facts) > 0 || b.jar[sessionCookie] != session {
		t.Fatalf("%v were recorded", facts)
	}
	back.post("do", "allow").shows(200, "Your profile", "linked@")
	back.post("do", "allow").shows(400, "expired") // it counts once
}
