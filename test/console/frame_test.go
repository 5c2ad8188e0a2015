package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// axe fails the test if axe finds something.
func (w *window) axe(where string) {
	w.t.Helper()
	if found := w.Axe(true); len(found) > 0 {
		w.t.Errorf("%s: axe finds:\n%s", where, strings.Join(found, "\n"))
	}
}

// focus waits until an element has the focus.
func (w *window) focus(selector string) {
	w.t.Helper()
	w.until(selector+" has the focus", fmt.Sprintf(`document.activeElement?.matches(%q)`, selector))
}

// The header says who is signed in and where they are, and leads everywhere, with the keyboard alone.
func TestTheHeaderByKeyboard(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	o := s.fill(s.admin.org, "Usual")
	acme := s.newOrganization("Acme")
	s.in(s.admin.org, "POST", "/v1/apps", map[string]any{"name": "Usher", "type": "APPLICATION_TYPE_WEB",
		"redirectUris": []string{"https://app.test/callback"}})
	w := s.signIn(t, b, s.admin)
	here := `document.querySelector('.switcher button bdi').innerText`

	t.Run("who and where", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.until("the name is there", `document.querySelector('button.account').innerText.includes('First Administrator')`)
		var initials string
		if w.Evaluate(`document.querySelector('.avatar').dataset.initials`, &initials); initials != "FA" {
			t.Errorf("the avatar says %q", initials)
		}
		w.until("the organization is named", here+` === 'Default'`)
		w.visit("/installation/status")
		w.until("the installation is named", here+` === 'Installation'`)
	})

	t.Run("the account", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit("/o/" + o.org)
		w.Evaluate(`document.querySelector('button.account').focus()`, nil)
		w.key(kb.Enter)
		w.until("the menu is open", `document.querySelector('.account-menu').checkVisibility()`)
		w.axe("the menu of the account")
		w.key(kb.Tab)
		w.focus(`.account-menu a[href="/console/me"]`)
		w.key(kb.Escape)
		w.until("Escape closes it", `!document.querySelector('.account-menu').checkVisibility()`)
		w.focus("button.account")
		for _, language := range []string{"de", "fr", "es", "en"} {
			w.speak(language)
			w.axe("the frame in " + language)
		}
		w.quiet()
	})

	t.Run("the organization", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit("/o/" + o.org + "/groups")
		w.Evaluate(`document.querySelector('.switcher button').focus()`, nil)
		w.key(kb.Enter)
		w.focus(".switch input")
		w.sees("All organizations")
		w.axe("the organizations")
		w.key("Acm")
		w.until("Acme is found, and nothing else",
			`[...document.querySelectorAll('.switch [role="option"]')].map((e) => e.dataset.id).join() === '`+acme+`'`)
		w.key(kb.ArrowDown)
		w.key(kb.Enter)
		w.until("the same view of the other organization is there",
			fmt.Sprintf(`location.pathname === '/console/o/%s/groups'`, acme))
		w.settle()
		w.until("it is named", here+` === 'Acme'`)
	})

	t.Run("the search", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit("/o/" + o.org)
		w.key("k", input.ModifierCtrl)
		w.focus("#search")
		w.key("us")
		kinds := `[...document.querySelectorAll('.search [role="group"]')].map((e) => e.getAttribute('aria-label'))`
		w.until("every kind is found", kinds+`.length === 7`)
		var found []string
		w.Evaluate(kinds, &found)
		if want := []string{"Places and actions", "Users", "Applications", "Groups", "Projects", "Identity providers",
			"Organizations"}; !slices.Equal(found, want) {
			t.Errorf("it finds %q", found)
		}
		w.axe("the suggestions")
		w.key("h") // nothing but the application begins with it
		w.until("only the application is left", kinds+`.join() === 'Users,Applications'`)
		w.key(kb.ArrowUp)
		w.key(kb.Enter)
		w.until("it leads to the application", `/\/apps\/app_\w+$/.test(location.pathname)`)
		w.settle()
		w.sees("Usher")
		// Enter without a choice searches for people.
		w.key("k", input.ModifierCtrl)
		w.key("somebody")
		w.key(kb.Enter)
		w.until("it leads to the search", `location.pathname.endsWith('/search') && location.search === '?q=somebody'`)
		w.settle()
		w.sees("somebody@mail.test")
		w.quiet()
	})
}

// The permissions of a custom role stand under headings, and the navigation leads to them.
func TestPermissionsStandUnderHeadings(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	w.press("Custom roles")
	w.until("the custom roles are there", `location.pathname.endsWith('/roles')`)
	w.press("Add a custom role")
	w.fill("Name", "Readers")
	w.axe("the form of a role")
	of := func(heading, permission string) string {
		return fmt.Sprintf(`[...top.querySelectorAll('[role="group"]')].filter((g) => document.getElementById(g.getAttribute('aria-labelledby')).innerText === %q)
			.flatMap((g) => [...g.querySelectorAll('label')]).find((l) => l.innerText.startsWith(%q))?.control`, heading, permission)
	}
	w.Click(w.mark("users can be read", of("Users", "read")))
	w.Click(w.mark("groups can be read", of("Groups", "read")))
	w.press("Add")
	w.sees("The role was added.")
	made := s.in(s.admin.org, "GET", "/v1/orgs/"+s.admin.org+"/roles", nil)["roles"].([]any)
	if got := fmt.Sprint(made[0].(map[string]any)["permissions"]); got != "[group.read user.read]" {
		t.Errorf("the role has %s", got)
	}
	w.quiet()
}

// The fields of the search for users have no button in front of them, also on a phone.
func TestThePhoneShowsTheSearchForUsers(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	w.Look(browser.Narrow)
	w.visit("/o/" + s.admin.org + "/search")
	w.until("the field is there", `document.querySelector('main form input')?.checkVisibility()`)
	w.visit("/o/" + s.admin.org + "/groups")
	w.until("filters are behind a button", `!document.querySelector('main form input').checkVisibility()`)
	w.press("Filters")
	w.until("the button shows them", `document.querySelector('main form input').checkVisibility()`)
}

// The navigation needs no more height than a small window has, and short pages do not scroll.
func TestTheFrameFitsASmallWindow(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	w.Look(browser.Look{Width: 1280, Height: 800})
	for _, path := range []string{"/o/" + s.admin.org + "/granted", "/installation/apps"} {
		w.visit(path)
		for _, language := range []string{"de", "fr", "es", "en"} {
			w.speak(language)
			var over struct{ Page, Navigation int }
			w.Evaluate(`(() => { const nav = document.querySelector('nav.side'), page = document.documentElement;
				return {Page: page.scrollHeight - innerHeight, Navigation: nav.scrollHeight - nav.clientHeight}; })()`, &over)
			if over.Page > 0 || over.Navigation > 0 {
				t.Errorf("%s in %s is too high: %+v", path, language, over)
			}
		}
	}
}
