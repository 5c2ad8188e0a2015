package hosted

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/ops/server"
)

// link waits for a mail to somebody and gives the path of the link in it.
func (w *world) link(to string) string {
	w.t.Helper()
	m := w.mail.Next(w.t)
	found := regexp.MustCompile(regexp.QuoteMeta(w.url) + `(/\S+)`).FindStringSubmatch(m.Text)
	if m.To != to || found == nil {
		w.t.Fatalf("the mail to %s says %s", m.To, m.Text)
	}
	return found[1]
}

func TestAForgottenPasswordIsResetByMail(t *testing.T) {
	w := withMail(t)
	jo, shop := w.person(w.org, true), w.application("Shop")
	w.rules(policy.Policy{PasswordMinLength: 12, CommonPasswordsRefused: true})
	elsewhere := w.signedIn(jo)

	// Somebody on the way to an application does not know the password.
	b := w.browser()
	p := b.authorize(shop).post("loginName", jo.email).shows(200, "/forgot?request=")
	request := p.path[strings.Index(p.path, "request="):]
	b.get("/forgot?"+request).shows(200, "Forgot your password?", "Shop").
		post("loginName", "").shows(422, "Please fill this in.").
		post("loginName", jo.email).shows(200, "Check your inbox", "/login?"+request)

	// The link leads to the form. The code is in no address that a page is shown at, and nothing is done with it.
	link := w.link(jo.email)
	for range 3 {
		if seen := w.browser().get(link).shows(200, "Set a new password"); strings.Contains(seen.path, "code") ||
			seen.path != "/reset?mailed=1&user="+jo.id {
			t.Errorf("the form is at %s", seen.path)
		}
	}
	sent := b.send(http.MethodGet, link, nil)
	if sent.status != http.StatusSeeOther || sent.header.Get("Referrer-Policy") != "no-referrer" ||
		sent.header.Get("Location") != "/reset?mailed=1&user="+jo.id {
		t.Errorf("got %d %v", sent.status, sent.header)
	}
	form := sent.follow().shows(200, "Set a new password", "At least 12 characters.", "No common passwords.")
	for _, tt := range []struct{ name, new, repeated, says string }{
		{"none", "", "", "Please fill this in."},
		{"too short", "short", "short", "Use at least 12 characters."},
		{"too long", strings.Repeat("x", 73), strings.Repeat("x", 73), "72"},
		{"common", "password1234", "password1234", "guess"},
		{"not the same", otherWord, otherWord + "!", "The two passwords do not match."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			form.post("newPassword", tt.new, "repeatPassword", tt.repeated).shows(422, tt.says)
		})
	}
	done := form.post("newPassword", otherWord, "repeatPassword", otherWord).shows(200, "Your password has been set")
	if done.next() != "/login?"+request {
		t.Errorf("it goes on to %s", done.next())
	}

	// All sessions have ended, the old password is over, and the way to the application is open.
	elsewhere.get("/device").shows(200, "loginName")
	w.browser().get("/login").signIn(jo.email, password).shows(422)
	b.get(done.next()).signIn(jo.email, otherWord).tokens(shop)

	// The code does not work again, wherever.
	for _, again := range []*browser{b, w.browser()} {
		p := again.get(link).post("newPassword", password, "repeatPassword", password).shows(400,
			"This link no longer works")
		if p.next() != "/forgot" {
			t.Errorf("it goes on to %s", p.next())
		}
		again.get("/reset?user="+jo.id).shows(400, "This link no longer works") // it is forgotten
	}
	w.browser().get("/login?to=/device").signIn(jo.email, otherWord).shows(200, "Connect a device")
}

func TestWrongLinksResetNothing(t *testing.T) {
	w := withMail(t)
	jo := w.person(w.org, true)
	w.browser().get("/forgot").post("loginName", jo.email).shows(200)
	link := w.link(jo.email)
	u, err := url.Parse(link)
	must(t, err)
	code := u.Query().Get("code")
	b := w.browser()
	for _, path := range []string{"/reset", "/reset?user=" + jo.id, "/reset?user=" + jo.id + "&code=",
		"/reset?user=&code=" + code, "/reset?code=" + code,
		"/reset?user=" + jo.id + "&code=" + url.QueryEscape("a~b\r\n")} {
		b.get(path).shows(400, "This link no longer works")
	}
	b.get("/reset?user=" + url.QueryEscape("usr_\x00") + "&code=" + code).shows(400) // no browser sends this
	// These look like links.
	for _, path := range []string{"/reset?user=" + jo.id + "&code=AAAAAAAA", "/reset?user=usr_nobody&code=" + code} {
		b.get(path).shows(200, "Set a new password").post("newPassword", otherWord, "repeatPassword",
			otherWord).shows(400, "This link no longer works")
	}
	// A code counts for whom it was sent to, whatever the form is about.
	b.get(link).shows(200)
	b.get("/reset?user="+w.person(w.org, true).id).shows(400, "This link no longer works")
	b.get(link).post("newPassword", otherWord, "repeatPassword", otherWord).shows(200, "Your password has been set")
}

func TestNobodyLearnsWhoHasAnAccount(t *testing.T) {
	w := withMail(t)
	known, unproven := w.person(w.org, true), w.person(w.org, false)
	w.mail.Next(t) // the code that comes with an address that is not proven
	bodies := map[string]bool{}
	for _, name := range []string{known.email, unproven.email, "nobody-of-this-name-at-all1@mail.test",
		strings.Repeat("x", 5000)} {
		for range 3 { // also when it is slowed down
			p := w.browser().get("/forgot").post("loginName", name).shows(200, "Check your inbox")
			bodies[strings.ReplaceAll(strings.ReplaceAll(p.body, name, ""), "\ufffd", "")] = true
		}
	}
	if len(bodies) != 1 {
		t.Errorf("there are %d different answers: %v", len(bodies), bodies)
	}
	w.link(known.email)
	w.mail.None(t)
}

func TestASignInThatIsBoundToAnOrganizationResetsOnlyThere(t *testing.T) {
	w := withMail(t)
	shop := w.application("Shop", func(s *app.Settings) { s.AllOrganizations = true })
	other, domain := w.organization()
	here, there := w.person(w.org, true), w.person(other, true)
	p := w.browser().authorize(shop, "scope", "openid urn:signet:org:domain:"+domain)
	forgot := func(name string) {
		p.browser.get("/forgot?"+p.path[strings.Index(p.path, "request="):]).shows(200, "Elsewhere").post("loginName",
			name).shows(200, "Check your inbox")
	}
	forgot(here.email)
	forgot(there.email)
	w.link(there.email) // the first and only mail
	w.mail.None(t)
}

func TestWithoutMailNobodyIsPromisedOne(t *testing.T) {
	w := open(t, server.Config{})
	jo := w.person(w.org, true)
	for _, name := range []string{jo.email, "nobody@mail.test"} {
		w.browser().get("/forgot").shows(422, "This service cannot send").post("loginName", name).shows(422,
			"This service cannot send")
	}
	b := w.signedIn(w.person(w.org, false))
	p := b.get("/verify").shows(200, "Confirm your")
	if strings.Contains(p.body, "Send another code") {
		t.Error("another mail is offered")
	}
	p.post("do", "resend").shows(422, "This service cannot send")
}

func TestAnAddressIsProvenByTheLinkOfAMail(t *testing.T) {
	w := withMail(t)
	jo := w.person(w.org, false)
	link := w.link(jo.email)
	b := w.browser()
	for range 3 {
		p := b.get(link).shows(200, "Confirm your", `name="code"`)
		if p.path != "/verify?mailed=1&user="+jo.id || strings.Contains(p.body, `inputmode="numeric"`) {
			t.Errorf("got %s %s", p.path, p.body)
		}
	}
	p := b.get(link)
	code := regexp.MustCompile(`name="code" type="text" value="(\w+)"`).FindStringSubmatch(p.body)[1]
	p.post("code", "").shows(422, "Please fill this in.")
	p.post("code", "AAAAAAAA").shows(422, "This code is wrong")
	p.post("code", " "+strings.ToLower(code)).shows(200, "is confirmed")
	p.post("code", code).shows(422, "This code is wrong") // once

	for _, path := range []string{"/verify?user=usr_nobody&code=AAAAAAAA", "/verify?user=usr_nobody"} {
		b.get(path).shows(200).post("code", "AAAAAAAA").shows(422, "This code is wrong")
	}
	b.get("/verify?user=" + url.QueryEscape("\x00")).shows(400)
	b.get("/login?to=/device").signIn(jo.email, password).shows(200)
	b.get("/verify").shows(200, "is confirmed", jo.email)
}

func TestPeopleWhoAreSignedInProveTheirAddress(t *testing.T) {
	w := withMail(t)
	jo := w.person(w.org, false)
	w.mail.Next(t)
	b := w.browser()
	p := b.get("/verify").shows(200, "loginName").signIn(jo.name, password).shows(200, "Confirm your", jo.email,
		"Send another code")
	p.post("do", "resend").shows(422, "Too many attempts") // the mail of before counts
	p.post("do", "continue", "code", "AAAAAAAA").shows(422, "This code is wrong")

	// A link of somebody else is about somebody else.
	other := w.person(w.org, false)
	link := w.link(other.email)
	if p := b.get(link).shows(200, "Confirm your"); strings.Contains(p.body, jo.email) ||
		strings.Contains(p.body, "Send another code") {
		t.Errorf("got %s", p.body)
	}
}

// People of an organization sign in to its own application by user name and by address, and get their mails there. An
// application for all organizations, and none at all, find by a bare name people of the default organization only.
func TestNamesAreLookedForInTheOrganizationOfTheApplication(t *testing.T) {
	w := withMail(t)
	other, _ := w.organization()
	home := w.org
	jo := w.person(other, true)
	w.org = other // where applications are made
	own := w.application("Own")
	shop := w.application("Shop", func(s *app.Settings) { s.AllOrganizations = true })
	w.org = home
	for _, name := range []string{jo.name, jo.email} {
		w.browser().authorize(own).signIn(name, password).tokens(own)
		w.browser().authorize(shop).signIn(name, password).shows(422, "the password is wrong")
		w.browser().get("/login?to=/device").signIn(name, password).shows(422, "the password is wrong")
	}
	for _, application := range []string{shop, own} { // the last one leads to the only mail
		p := w.browser().authorize(application)
		p.browser.get("/forgot?"+p.path[strings.Index(p.path, "request="):]).post("loginName", jo.name).shows(200,
			"Check your inbox")
	}
	w.link(jo.email)
	w.mail.None(t)
}
