package hosted

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
)

const termsOfUse = "https://shop.test/terms"

func opened(mode policy.Openness, change ...func(*policy.Policy)) policy.Policy {
	p := policy.Policy{Registering: policy.Registering{Registration: mode}}
	for _, c := range change {
		c(&p)
	}
	return p
}

func withTerms(p *policy.Policy) {
	p.TermsURI, p.PrivacyURI = termsOfUse, "https://shop.test/privacy"
}

// chosen is what somebody fills in.
func chosen(more ...string) []string {
	return append([]string{"firstName", "New", "lastName", "Person", "newPassword", password, "repeatPassword",
		password}, more...)
}

func TestPeopleRegisterOnTheWayToAnApplication(t *testing.T) {
	w := withMail(t)
	shop := w.application("Shop")
	b := w.browser()
	if p := b.authorize(shop).shows(200, "loginName"); strings.Contains(p.body, "/login/register") {
		t.Error("an account is offered where nobody can make one")
	}
	w.rules(opened(policy.ToAll, withTerms))
	start := b.authorize(shop).shows(200, "Create account")
	path := html.UnescapeString(linkTo(t, start.body, "/login/register"))
	form := b.get(path).shows(200, "Create your account", "Shop")
	form.post("email", "").shows(422, "Please fill this in.")
	form.post("email", "new").shows(422, "e‑mail")
	form.post("email", "new@mail.test").shows(200, "Check your inbox", "new@mail.test")

	// The link leads to the form. The code is in no address that a page is shown at, and nothing is done with it.
	link := w.link("new@mail.test")
	for range 3 {
		if seen := w.browser().get(link).shows(200, "new@mail.test", termsOfUse,
			"https://shop.test/privacy"); seen.path != "/register?mailed=1" {
			t.Errorf("the form is at %s", seen.path)
		}
	}
	sent := b.send(http.MethodGet, link, nil)
	if sent.status != http.StatusSeeOther || sent.header.Get("Referrer-Policy") != "no-referrer" ||
		sent.header.Get("Location") != "/register?mailed=1" {
		t.Errorf("got %d %v", sent.status, sent.header)
	}
	account := sent.follow().shows(200, "Shop", "At least 8 characters.")
	account.post(chosen("userName", "new@mail.test")...).shows(422, "Please accept the terms of use.")
	account.post(chosen("userName", "new@mail.test", "terms", "https://shop.test/others")...).shows(422,
		"Please accept the terms of use.")
	for _, tt := range []struct{ field, value, says string }{
		{"lastName", "", "Please fill this in."},
		{"userName", "boss@mail.test", "@"},
		{"newPassword", "short", "Use at least 8 characters."},
		{"repeatPassword", "another", "The two passwords do not match."},
	} {
		account.post(chosen("userName", "new@mail.test", "terms", termsOfUse, tt.field,
			tt.value)...).shows(422, tt.says)
	}
	in := account.post(chosen("userName", "new@mail.test", "terms", termsOfUse)...)
	in.tokens(shop)
	b.get("/account").shows(200, "new@mail.test", termsOfUse)

	// It works once, wherever; and the account is there.
	for _, again := range []*browser{b, w.browser()} {
		again.get(link).shows(400, "This link no longer works")
		again.get("/register?mailed=1").shows(400, "This link no longer works")
	}
	w.browser().get("/login?to=/device").signIn("new@mail.test", password).shows(200, "Connect a device")
}

// linkTo finds a link of a page.
func linkTo(t *testing.T, body, path string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, `href="`+path)
	if !found {
		t.Fatalf("there is no link to %s in %s", path, body)
	}
	rest, _, _ = strings.Cut(rest, `"`)
	return path + rest
}

func TestPromptCreateLeadsToRegistration(t *testing.T) {
	w := withMail(t)
	shop := w.application("Shop")
	b := w.browser()
	b.authorize(shop, "prompt", "create").shows(200, "loginName") // off: the sign-in
	w.rules(opened(policy.ToAll))
	p := b.authorize(shop, "prompt", "create").shows(200, "Create your account", "Shop")
	if !strings.HasPrefix(p.path, "/login/register?request=") {
		t.Errorf("at %s", p.path)
	}
	// who has an account is not sent back
	b.get(html.UnescapeString(linkTo(t, p.body, "/login?"))).shows(200, "loginName")
	p.post("email", "new@mail.test").shows(200, "Check your inbox")
	b.get(w.link("new@mail.test")).post(chosen("userName", "new")...).tokens(shop)

	// Who is signed in can make another account.
	b.authorize(shop, "prompt", "create").shows(200, "Create your account")

	// The link works in another browser, which does not have the application's request: it ends at the account.
	b.authorize(shop, "prompt", "create").post("email", "other@mail.test").shows(200)
	other := w.browser()
	other.get(w.link("other@mail.test")).shows(200, "other@mail.test").post(chosen("userName", "other")...).shows(200,
		"other@mail.test")
	if at := other.get("/account").path; at != "/account" {
		t.Errorf("at %s", at)
	}
}

func TestNobodyLearnsWhoCouldRegister(t *testing.T) {
	w := withMail(t)
	known := w.person(w.org, true)
	w.do(event.Command{
		Write:  []event.Ref{org.Kind.Ref(w.org)},
		Claims: []event.Claim{org.DomainClaim("proven.test"), org.ProvenClaim("proven.test")},
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Get(tx, w.org)
			if err != nil {
				return err
			}
			return o.Append(org.DomainAdded{Domain: "proven.test"},
				org.DomainVerified{Domain: "proven.test", Proven: true})
		},
	})
	seen := map[string]string{}
	for _, mode := range []policy.Openness{policy.ToAll, policy.ToDomains} {
		w.rules(opened(mode))
		bodies := map[string]bool{}
		for _, email := range []string{known.email, "x" + known.name + "@mail.test", "new@proven.test",
			"new@else.test"} {
			for range 2 {
				p := w.browser().get("/login/register").post("email", email).shows(200, "Check your inbox")
				bodies[strings.ReplaceAll(p.body, email, "")] = true
			}
		}
		if len(bodies) != 1 {
			t.Errorf("%s: there are %d different answers", mode, len(bodies))
		}
		for mode == policy.ToAll && len(seen) < 4 { // everybody gets a mail
			m := w.mail.Next(t)
			seen[m.To] = m.Subject
		}
	}
	w.mail.None(t) // a minute has not passed
	if seen[known.email] != "You already have an account" || seen["new@proven.test"] != "Create your account" ||
		len(seen) != 4 {
		t.Errorf("mails: %v", seen)
	}
	// Only addresses in the proven domain.
	w.browser().get("/login/register").post("email", "no@else.test").shows(200, "Check your inbox")
	w.browser().get("/login/register").post("email", "yes@proven.test").shows(200, "Check your inbox")
	link := w.link("yes@proven.test")
	w.mail.None(t)
	w.rules(opened(policy.ToNobody))
	w.browser().get(link).shows(403)
}

func TestWhereRegistrationIsOff(t *testing.T) {
	w := withMail(t)
	b := w.browser()
	if p := b.get("/login/register").shows(200, "loginName"); !strings.HasPrefix(p.path, "/login?") {
		t.Errorf("at %s", p.path)
	}
	b.send(http.MethodPost, "/login/register", url.Values{"email": {"new@mail.test"}}).follow().shows(200, "loginName")
	elsewhere, _ := w.organization()
	w.rules(opened(policy.ToAll))
	for _, org := range []string{elsewhere, "org_none", strings.Repeat("x", 300)} {
		b.get("/login/register?org="+org).shows(200, "loginName")
	}
	b.get("/login/register?org="+w.org).shows(200, "Create your account")
	w.mail.None(t)

	w = open(t, server.Config{}) // no mail
	w.rules(opened(policy.ToAll))
	w.browser().get("/login/register").shows(422, "cannot send e‑mail")
	if p := w.browser().get("/login").shows(200); strings.Contains(p.body, "/login/register") {
		t.Error("an account is offered where no mail can be sent")
	}
	for _, path := range []string{"/register", "/register?code=", "/register?code=x",
		"/register?code=" + url.QueryEscape("sgn_reg_\r\n.x")} {
		w.browser().get(path).shows(400)
	}
}

func TestRegisteringWithAPasskey(t *testing.T) {
	w := withMail(t, func(c *server.Config) { c.Listen = "localhost:0" }) // an IP address has no passkeys
	shop := w.application("Shop")
	w.rules(opened(policy.ToAll,
		func(p *policy.Policy) { p.SignInMethods = []policy.Way{policy.WithPasskey} }, withTerms))
	b := w.browser()
	b.authorize(shop, "prompt", "create").post("email", "new@mail.test").shows(200)
	form := b.get(w.link("new@mail.test")).shows(200)
	if strings.Contains(form.body, "newPassword") {
		t.Error("it asks for a password that nobody may have")
	}
	form.post("do", "passkey", "firstName", "New", "lastName", "", "userName", "new", "terms", termsOfUse).shows(422,
		"Please fill this in.")
	form.post(chosen("userName", "new", "terms", termsOfUse)...).shows(422) // no password all the same
	making := form.post("do", "passkey", "firstName", "New", "lastName", "Person", "userName", "new", "terms",
		termsOfUse).shows(200, "Create a passkey")
	device := &factortest.Authenticator{Origin: w.url}
	_, options, _ := strings.Cut(making.body, `data-options="`)
	options, _, _ = strings.Cut(options, `"`)
	credential, err := device.Create(html.UnescapeString(options))
	must(t, err)
	making.post("firstName", "New", "lastName", "Person", "userName", "new", "terms", termsOfUse, "credential",
		"{}").shows(422, "passkey")
	making.post("firstName", "New", "lastName", "Person", "userName", "new", "terms", termsOfUse, "credential",
		credential).tokens(shop)
}

// A second factor that the organization requires is asked for right after.
func TestRegisteringWhereASecondFactorIsRequired(t *testing.T) {
	w := withMail(t)
	w.rules(opened(policy.ToAll, func(p *policy.Policy) { p.SecondFactorRequired = true }))
	b := w.browser()
	b.get("/login/register").post("email", "new@mail.test").shows(200)
	b.get(w.link("new@mail.test")).post(chosen("userName", "new")...).shows(200, "authenticator app")
	b.get("/account").shows(200, "authenticator app")
}
