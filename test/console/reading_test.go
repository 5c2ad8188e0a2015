package console

import (
	"fmt"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// What a view says can be read: names instead of keys, what is open is in sight, and nothing leads where one may not go.
func TestWhatViewsSay(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	home := s.admin.org
	o := s.fill(s.newOrganization("Acme"), "Usual")
	s.in(o.org, "PUT", "/v1/users/"+o.user+"/app_roles/"+o.project, map[string]any{"roleKeys": []string{"reader"}})
	w := s.signIn(t, b, s.admin)

	t.Run("the tab that is open is in sight, and the row says that there is more", func(t *testing.T) {
		w := s.signIn(t, b, s.admin)
		w.visit("/o/" + o.org + "/users/" + o.user + "/history")
		w.Look(browser.Look{Width: 390, Height: 780, Phone: true})
		w.until("the tab is in sight", `(() => { const tab = document.querySelector('.tabs [aria-current]').getBoundingClientRect(); return tab.left >= 0 && tab.right <= innerWidth; })()`)
		w.until("there is more before it", `document.querySelector('.tabs').dataset.more.includes('before')`)
		w.visit("/o/" + o.org + "/users/" + o.user)
		w.until("there is more behind it", `document.querySelector('.tabs').dataset.more === 'after'`)
		w.Look(browser.Look{Width: 1280, Height: 900})
		w.until("on a desktop there is not", `document.querySelector('.tabs').dataset.more === ''`)
	})

	t.Run("roles of one kind fit side by side", func(t *testing.T) {
		for _, of := range []string{"", "?of=installation"} {
			w.visit("/roles" + of)
			w.until("nothing is cut", `document.querySelector('.matrix').dataset.more === ''`)
		}
		w.sees("IAM_SUPPORT")
	})

	t.Run("people have roles with names", func(t *testing.T) {
		w.visit("/o/" + o.org + "/projects/" + o.project + "/people")
		w.settle()
		w.until("the role has its name", `[...document.querySelectorAll('td .badge')].some((e) => e.innerText === 'Usual')`)
	})

	t.Run("a trial belongs to the organization of the application", func(t *testing.T) {
		w.visit("/apps/" + o.app + "/try")
		w.until("the switcher names it", `document.querySelector('.switcher bdi').innerText === 'Acme'`)
		w.until("the navigation says where it is", fmt.Sprintf(`document.querySelector('.side [aria-current]')?.pathname === %q`,
			"/console/o/"+o.org+"/apps"))
		w.visitInside("/me")
		w.until("it is said no longer", `document.querySelector('.side [aria-current]') === null`)
	})

	t.Run("lifetimes have units", func(t *testing.T) {
		w.visit("/o/" + o.org + "/apps/" + o.app)
		w.sees("30 days")
		w.visit("/o/" + o.org + "/apps/" + o.app + "/settings")
		w.fill("Lifetime of access tokens", "2")
		w.press("Save")
		w.sees("The application was saved.")
		if app := s.in(o.org, "GET", "/v1/apps/"+o.app, nil)["app"].(map[string]any); app["accessTokenSeconds"] != 7200. {
			t.Errorf("two hours are %v seconds", app["accessTokenSeconds"])
		}
	})

	t.Run("who owns the installation has a role", func(t *testing.T) {
		w.visit("/o/" + home + "/users/" + s.admin.id)
		w.sees("Owner of the installation")
	})

	t.Run("the account button is called what it shows", func(t *testing.T) {
		w.until("its name holds what is seen", `(() => { const button = document.querySelector('.account'); return !button.ariaLabel && button.textContent.replace(/\s+/g, ' ').trim() === 'Your account: ' + button.querySelector('bdi').innerText; })()`)
	})

	t.Run("providers of the default organization can be the only one", func(t *testing.T) {
		shared := s.in(home, "POST", "/v1/idps/jwt", map[string]any{"name": "Shared", "jwtEndpoint": "https://idp.test/jwt",
			"issuer": "https://idp.test", "keysEndpoint": "https://idp.test/keys", "headerName": "x-token"})
		w.visit("/o/" + s.newOrganization("Without") + "/policy")
		w.Click(w.mark("the preset can be looked at", `[...top.querySelectorAll('button')].find((e) => visible(e) && e.ariaLabel?.includes('Only our provider'))`))
		w.sees("Shared")
		if shared["idpId"] == nil {
			t.Error("nothing was added")
		}
	})

	t.Run("auditors are led nowhere where they may not go", func(t *testing.T) {
		w := s.signIn(t, b, s.person(o.org, "auditor", "ORG_AUDITOR"))
		w.visit("/o/" + o.org + "/events?object=" + o.app)
		w.until("the events are there", `document.querySelectorAll('main tbody tr').length > 0`)
		w.settle()
		if w.Has(`main td a[href*="/apps/"]`) {
			t.Error("an application may not be opened, but there is a link to it")
		}
		var text string
		w.Evaluate(`document.querySelector('main').innerText`, &text)
		t.Log(text)
	})
	w.quiet()
}
