package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/portal"
	"github.com/signet-idm/signet/test/testdb"
)

// tells checks what the overview of a user says about one thing: all of these texts, in this order.
func (w *window) tells(name string, texts ...string) {
	w.t.Helper()
	said := w.fact(name)
	rest := said
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			w.t.Errorf("%s: %q does not say %q", name, said, texts)
			return
		}
		rest = after
	}
}

// fact is what the overview of a user says about one thing; empty if it says nothing.
func (w *window) fact(name string) (said string) {
	w.t.Helper()
	w.Evaluate(fmt.Sprintf(`[...document.querySelectorAll('main dt')].find((e) => e.innerText === %q)?.nextElementSibling.innerText.replace(/\s+/g, ' ').trim() ?? ''`, name), &said)
	return said
}

// reached are the names of what Tab leads to in a view. It is opened again afterwards: who has left a page with Tab no
// longer types into it.
func (w *window) reached(path string) (names []string) {
	w.t.Helper()
	defer w.visit(path)
	var count int
	w.Evaluate(`document.querySelector('main h1').focus(), document.querySelectorAll('main :is(a, button)').length`, &count)
	for range count {
		w.key(kb.Tab)
		var name string
		w.Evaluate(`document.activeElement.closest('main') === null ? '' : document.activeElement.getAttribute('aria-label') || document.activeElement.innerText`, &name)
		if name == "" {
			break
		}
		names = append(names, name)
	}
	return names
}

// menu opens a menu with the keyboard, and gives its entries. The first one is chosen.
func (w *window) menu(name string) (entries []string) {
	w.t.Helper()
	w.Evaluate(fmt.Sprintf(`[...document.querySelectorAll('main button')].find((e) => (e.getAttribute('aria-label') || e.innerText.trim()) === %q).focus()`, name), nil)
	w.key(kb.Enter)
	w.until("the menu is open", `document.activeElement.getAttribute('role') === 'menuitem'`)
	w.Evaluate(`[...document.querySelectorAll('[role="menuitem"]')].map((e) => e.innerText.trim())`, &entries)
	return entries
}

// focusBack waits until a dialog is gone and has given the focus back.
func (w *window) focusBack() {
	w.t.Helper()
	w.until("the dialog has given the focus back",
		`document.querySelector('[role="dialog"]') === null && document.activeElement.closest('main') !== null`)
}

func (w *window) closeMenu() {
	w.t.Helper()
	w.key(kb.Escape)
	w.until("the menu is closed, and its button has the focus again",
		`document.querySelector('[role="menu"]') === null && document.activeElement.getAttribute('aria-haspopup') === 'menu'`)
}

// The overview of a person says how the person signs in, and offers what the caller may do about it.
func TestAPersonAtAGlance(t *testing.T) {
	browser.NeedAxe(t)
	b, site := browser.Start(t), portal.Start(t)
	s := start(t, testdb.SQLite, "--outbound-allow", "127.0.0.0/8,::1/128")
	org := s.admin.org
	config := site.Config("Staff portal", "X-Portal-Token")
	config["autoRegister"] = true
	idp := s.rest("POST", "/v1/idps/jwt", config)["idpId"].(string)

	// Ana comes through a provider, and has nothing else.
	own := &window{Tab: b.Tab(t), t: t, s: s}
	own.Header("X-Portal-Token", site.Token(idp, "ana", nil))
	own.Open(s.url + "/console/")
	own.Click(`form[action*="` + idp + `"] button`)
	own.Fill("input[name=login]", "ana")
	own.Submit("button")
	own.sees("Create your account")
	own.Submit("button.primary")
	own.settle()
	ana := s.rest("GET", "/v1/users/_search?query=ana", nil)["results"].([]any)[0].(map[string]any)["user"].(map[string]any)
	id := ana["userId"].(string)
	user := "/v1/users/" + id
	path := "/o/" + org + "/users/" + id

	w := s.signIn(t, b, s.admin)
	t.Run("without a password", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit(path)
		w.tells("E-mail", "ana@portal.test", "Verified")
		w.tells("First and last name", "Jo Doe")
		w.tells("Last sign-in", "Identity provider", "Staff portal")
		w.tells("Password", "Not set")
		w.tells("Second factors", "None")
		w.tells("Providers", "Staff portal", "ana")
		w.tells("Here", "No roles")
		var rows int
		if w.Evaluate(`document.querySelectorAll('main tbody tr').length`, &rows); rows != 1 {
			t.Errorf("%d sign-ins are listed", rows)
		}
		if found := w.Axe(true); len(found) > 0 {
			t.Errorf("axe finds:\n%s", strings.Join(found, "\n"))
		}
	})

	t.Run("by keyboard alone", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit(path)
		reached := w.reached(path)
		for _, name := range []string{"More actions", "Edit profile", "Change: E-mail", "Add: Phone", "Change: User name",
			"Set: Password", "Help to sign in", "Details: Sign-in", "Details: Access"} {
			if !slices.Contains(reached, name) {
				t.Errorf("Tab does not lead to %q: %q", name, reached)
			}
		}
		helps := w.menu("Help to sign in")
		if want := []string{"Send a mail to reset the password", "Send a link to choose a password",
			"Have the e-mail address verified again", "Clear failed attempts"}; !slices.Equal(helps, want) {
			t.Errorf("help is %q", helps)
		}
		w.closeMenu()
		if rare := w.menu("More actions"); !slices.Equal(rare, []string{"Deactivate", "Lock", "Remove"}) {
			t.Errorf("the menu has %q", rare)
		}
		w.key(kb.ArrowDown)
		w.key(kb.Enter)
		w.sees("Sessions and tokens end at once and for good.")
		w.until("the focus is in the question", `document.activeElement.closest('[role="dialog"]') !== null`)
		w.key(kb.Enter)
		w.sees("The user was locked.")
		w.focusBack()
		if rare := w.menu("More actions"); !slices.Equal(rare, []string{"Unlock", "Remove"}) {
			t.Errorf("of a locked user the menu has %q", rare)
		}
		w.key(kb.Enter)
		w.sees("Earlier sessions and tokens stay invalid.")
		w.key(kb.Enter)
		w.sees("The user can sign in again.")
		w.focusBack()

		w.Evaluate(`document.querySelector('[aria-label="Set: Password"]').focus()`, nil)
		w.key(kb.Enter)
		w.until("the field has the focus", `document.activeElement.name === 'password'`)
		w.key(password)
		w.key(kb.Enter)
		w.sees("The password was set.")
		w.until("the overview says so", `document.querySelector('[aria-label="Change: Password"]') !== null`)
		w.tells("Password", "Set", "Must be changed at the next sign-in")
		w.quiet()
	})

	s.in(org, "POST", user+"/password", map[string]any{"password": password, "noChangeRequired": true})
	s.rest("PUT", "/v1/orgs/"+org+"/members/"+id, map[string]any{"roles": []string{"ORG_USER_MANAGER"}})
	session := s.as("", "", "POST", "/v1/sessions", map[string]any{"loginName": ana["loginNames"].([]any)[0],
		"password": password})["token"].(string)
	const totp = "/v1/users/me/factors/totp/"
	secret := s.as(session, "", "POST", totp+"_start", map[string]any{})["secret"].(string)
	s.as(session, "", "POST", totp+"_confirm",
		map[string]any{"code": factortest.Code(secret, time.Now()), "name": "Ana’s phone"})

	t.Run("with a password, a factor and a link", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit(path)
		w.tells("Last sign-in", "Password")
		w.tells("Password", "Set")
		w.tells("Second factors", "Authenticator app", "Ana’s phone")
		w.tells("Providers", "Staff portal", "ana")
		w.tells("Here", "User manager")
		s.rest("PUT", "/v1/orgs/"+org+"/policy", map[string]any{
			"policy": map[string]any{"signInMethods": []string{"SIGN_IN_METHOD_PASSKEY"}}})
		w.visit(path)
		w.tells("Password", "Set", "The security policy does not allow signing in with a password.")
		if said := w.fact("Password"); strings.Contains(said, "owners") {
			t.Errorf("somebody who owns nothing is told %q", said)
		}
		w.tells("Providers", "The security policy does not allow this provider.")
		w.visit("/o/" + org + "/users/" + s.person(org, "owner", "ORG_OWNER").id)
		w.tells("Password", "Only owners can, while none of them has another way.")
		s.rest("PUT", "/v1/orgs/"+org+"/policy", map[string]any{"policy": map[string]any{}})
		w.quiet()
	})

	t.Run("the profile is edited in a dialog", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit(path)
		w.press("Edit profile")
		w.fill("Nickname", "Nana")
		w.press("Save")
		w.sees("The changes were saved.")
		w.until("the overview says so", `document.querySelector('main dl').innerText.includes('Nana')`)
	})

	t.Run("a service user", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		robot := s.in(org, "POST", "/v1/users/service",
			map[string]any{"userName": "robot", "name": "Robot", "description": "Sends bills"})["userId"].(string)
		s.in(org, "POST", "/v1/users/"+robot+"/tokens", map[string]any{"name": "first"})
		made := w.requests(func() { w.visit("/o/" + org + "/users/" + robot) })
		w.tells("Name", "Robot")
		w.tells("Description", "Sends bills")
		w.tells("Keys", "0")
		w.tells("Secret", "There is no secret.")
		w.tells("Personal access tokens", "1")
		for _, name := range []string{"Password", "E-mail", "Last sign-in", "Second factors"} {
			if said := w.fact(name); said != "" {
				t.Errorf("%s of a service user: %q", name, said)
			}
		}
		for _, operation := range made {
			if strings.HasPrefix(operation, "EventService/") || strings.HasPrefix(operation, "LinkService/") {
				t.Errorf("%s is read for nothing", operation)
			}
		}
		s.in(org, "POST", "/v1/users/"+robot+"/secret", map[string]any{})
		w.visit("/o/" + org + "/users/" + robot)
		w.tells("Secret", "There is a secret.")
		if rare := w.menu("More actions"); !slices.Equal(rare, []string{"Deactivate", "Lock", "Remove"}) {
			t.Errorf("the menu has %q", rare)
		}
		w.closeMenu()
		w.quiet()
	})

	t.Run("as support", func(t *testing.T) {
		agent := s.person(s.newOrganization("Helpers"), "agent")
		s.rest("PUT", "/v1/members/"+agent.id, map[string]any{"roles": []string{"IAM_SUPPORT"}})
		w := s.signIn(t, b, agent)
		made := w.requests(func() { w.visit(path) })
		for _, operation := range made {
			for _, service := range []string{"MemberService/", "PolicyService/", "GroupService/", "ProjectService/"} {
				if strings.HasPrefix(operation, service) {
					t.Errorf("%s is read", operation)
				}
			}
		}
		w.tells("E-mail", "ana@portal.test", "Verified")
		w.tells("Last sign-in", "Password")
		w.tells("Password", "Set")
		w.tells("Second factors", "Authenticator app")
		w.tells("Providers", "Staff portal")
		w.sees("You may not see who has roles in this organization.")
		for _, name := range w.reached(path) {
			if strings.HasPrefix(name, "Change") || strings.HasPrefix(name, "Edit") || strings.HasPrefix(name, "Remove") {
				t.Errorf("support is offered %q", name)
			}
		}
		if helps := w.menu("Help to sign in"); !slices.Equal(helps, []string{"Send a mail to reset the password",
			"Have the e-mail address verified again", "Clear failed attempts"}) {
			t.Errorf("support may help with %q", helps)
		}
		w.closeMenu()
		if rare := w.menu("More actions"); !slices.Equal(rare, []string{"Lock"}) {
			t.Errorf("support is offered %q", rare)
		}
		w.closeMenu()
		if w.Has("main .failure") {
			t.Errorf("it shows a failure: %s", w.Text("main .failure"))
		}
		w.quiet()
	})

	t.Run("as a user manager, of somebody with more rights", func(t *testing.T) {
		w := s.signIn(t, b, s.person(org, "manager", "ORG_USER_MANAGER"))
		made := w.requests(func() { w.visit("/o/" + org + "/users/" + s.admin.id) })
		w.sees("This user may do things that you may not.")
		w.tells("Password", "Set")
		if w.Has("main .failure") || slices.Contains(made, "EventService/ListEvents") {
			t.Errorf("what is refused was asked: %q", made)
		}
		w.visit(path)
		w.tells("Last sign-in", "Password")
		w.quiet()
	})

	t.Run("as an auditor", func(t *testing.T) {
		w := s.signIn(t, b, s.person(org, "auditor", "ORG_AUDITOR"))
		made := w.requests(func() { w.visit(path) })
		for _, operation := range made {
			if strings.HasPrefix(operation, "UserService/GetUser") || strings.HasPrefix(operation, "FactorService/") ||
				strings.HasPrefix(operation, "LinkService/") || strings.HasPrefix(operation, "EventService/") {
				t.Errorf("%s was asked", operation)
			}
		}
		w.sees("You are not allowed to do this")
		w.quiet()
	})
}
