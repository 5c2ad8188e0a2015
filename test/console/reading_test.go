package console

import (
	"fmt"
	"net/url"
	"strings"
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

	t.Run("who may not open an application reads its name without a link", func(t *testing.T) {
		lost := s.person(o.org, "lost")
		tab := b.Tab(t)
		tab.Open(s.url + "/oauth/authorize?" + url.Values{"client_id": {o.app}, "response_type": {"code"}, "scope": {"openid"},
			"redirect_uri": {"https://app.test/callback"}, "code_challenge": {strings.Repeat("c", 43)},
			"code_challenge_method": {"S256"}}.Encode())
		tab.Fill("#loginName", lost.login)
		tab.Submit("button.primary")
		tab.Fill("#password", "not this one, 7 times")
		tab.Submit("button.primary")
		managing := s.signIn(t, b, s.person(o.org, "manager", "ORG_USER_MANAGER"))
		for _, who := range []struct {
			w    *window
			link bool
		}{{w, true}, {managing, false}} {
			who.w.visit("/o/" + o.org + "/users/" + lost.id)
			who.w.until("the application has its name", `[...document.querySelectorAll('.cause')].some((e) => e.innerText.includes('Usual'))`)
			if got := who.w.Has(`.cause a[href*="/apps/"]`); got != who.link {
				t.Errorf("that there is a link to the application is %t", got)
			}
		}
	})
	w.quiet()
}
