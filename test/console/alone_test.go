package console

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// tabTo presses Tab until an element has the focus that a script, given as e, says yes to. Nothing else moves the focus.
func (w *window) tabTo(what, fits string) {
	w.t.Helper()
	for range 200 {
		w.key(kb.Tab)
		var there bool
		w.Evaluate(fmt.Sprintf(`((e) => !!(%s))(document.activeElement)`, fits), &there)
		if there {
			return
		}
	}
	w.t.Fatalf("Tab does not lead to %s", what)
}

// tabToButton presses Tab until the button or link with a text or a label has the focus.
func (w *window) tabToButton(text string) {
	w.t.Helper()
	w.tabTo("the button "+text, fmt.Sprintf(
		`e.matches('button, a') && (e.getAttribute('aria-label') === %[1]q || e.innerText.trim() === %[1]q)`, text))
}

// From the beginning of the page to the end of what is to be done, nothing but the keyboard is needed.
func TestTheKeyboardAlone(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	for _, name := range []string{"ann", "bea", "cem"} {
		s.person(org, name)
	}
	group := s.in(org, "POST", "/v1/groups", map[string]any{"name": "Night shift"})["groupId"].(string)
	w := s.signIn(t, b, s.admin)
	members := func() int {
		t.Helper()
		found, _ := s.in(org, "GET", "/v1/groups/"+group+"/members", nil)["members"].([]any)
		return len(found)
	}

	t.Run("the header", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit("/o/" + org)
		w.key(kb.Tab)
		w.focus("a.skip")
		w.tabTo("the search", `e.id === 'search'`)
		w.key("nig")
		w.until("the group is suggested",
			`[...document.querySelectorAll('.search [role="option"]')].some((e) => e.innerText.includes('Night shift'))`)
		w.key(kb.Escape)
		w.until("Escape closes the suggestions", `document.querySelector('#search').getAttribute('aria-expanded') === 'false'`)
		w.tabTo("the account", `e.matches('button.account')`)
		w.key(kb.Enter)
		w.tabTo("the language", `e.id === 'language'`)
		w.key(kb.Escape)
		w.focus("button.account")
		w.tabTo("the organization", `e.closest('.switcher')`)
		w.key(kb.Enter)
		w.focus(".switch input")
		w.key(kb.Escape)
		w.focus(".switcher button")
	})

	t.Run("a table", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.Evaluate(`localStorage.clear()`, nil)
		w.visit("/o/" + org + "/users")
		w.Evaluate(`(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.exported = text; }); return make.call(URL, blob); }; })()`, nil)
		w.tabToButton("Export as CSV")
		w.key(kb.Enter)
		w.until("it is exported", `window.exported?.includes('Jo bea')`)
		w.tabToButton("Columns")
		w.key(kb.Enter)
		w.tabTo("the column", `e.id.endsWith('-type')`)
		w.key(" ")
		w.until("the kind is shown", `[...document.querySelectorAll('main th')].find((e) => e.innerText === 'Kind')?.checkVisibility()`)
		w.key(kb.Escape)
		w.focus("button[aria-label='Columns']")
		for _, name := range []string{"ann", "cem"} {
			w.tabTo("the choice of "+name, fmt.Sprintf(`e.getAttribute('aria-label') === 'Choose Jo %s'`, name))
			w.key(" ")
		}
		w.sees("2 chosen (at most 500)")
	})

	t.Run("many at once join a group", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.tabToButton("Add to a group")
		w.key(kb.Enter)
		w.until("the field for the group has the focus", `document.activeElement?.closest('[role="dialog"] form') && document.activeElement.matches('input')`)
		w.key("Nig")
		w.until("the group is found",
			`[...document.querySelectorAll('.picker [role="option"]')].map((e) => e.innerText.trim()).join() === 'Night shift'`)
		w.key(kb.Enter)
		w.until("it is chosen", `document.activeElement.value === 'Night shift'`)
		if got := members(); got != 0 {
			t.Fatalf("before anybody said so, the group has %d members", got)
		}
		w.tabToButton("Add to a group")
		w.key(kb.Enter)
		w.sees("Done for 2 of 2.")
		w.tabToButton("Done")
		w.key(kb.Enter)
		w.until("nothing is chosen", `document.querySelector('.bulk') === null`)
		if got := members(); got != 2 {
			t.Errorf("the group has %d members", got)
		}
	})

	t.Run("a dialog", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.visit("/o/" + org + "/groups")
		w.tabToButton("Add a group")
		w.key(kb.Enter)
		w.focus(`[role="dialog"] input[name="name"]`)
		w.key(kb.Escape)
		w.until("Escape closes it", `document.querySelector('[role="dialog"]') === null`)
		w.until("the focus is back", `document.activeElement.innerText === 'Add a group'`)
		w.key(kb.Enter)
		w.focus(`[role="dialog"] input[name="name"]`)
		w.key(strings.Repeat("n", 201))
		w.key(kb.Enter)
		w.sees("Name: must have at most 200 characters")
		w.focus(`[role="dialog"] input[name="name"][aria-invalid="true"]`)
		w.key("a", input.ModifierCtrl)
		w.key("Day shift")
		w.key(kb.Enter)
		w.sees("The group was added.")
		w.quiet()
	})
}

// A dialog that closes does not close the one that opens in the same moment.
func TestADialogThatClosesLeavesTheNextOneOpen(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/groups")
	w.press("Add a group")
	w.focus(`[role="dialog"] input[name="name"]`)
	// What is typed is sent, and the view that shows the group opens its own dialog as soon as it can be asked to.
	w.Evaluate(`(() => {
		const look = new MutationObserver(() => {
			const edit = [...document.querySelectorAll('main a')].find((e) => e.innerText.trim() === 'Edit');
			if (!edit || !/\/groups\/grp_/.test(location.pathname)) return;
			look.disconnect();
			edit.click();
		});
		look.observe(document.body, {childList: true, subtree: true, characterData: true});
	})()`, nil)
	w.key("Night shift")
	w.key(kb.Enter)
	w.until("the other dialog is open", `document.querySelector('[role="dialog"] input[name="name"]')?.value === 'Night shift'`)
	w.Click(`[role="dialog"] input[name="name"]`)
	w.fill("Name", "Day shift")
	w.press("Save")
	w.until("the group has its new name", `document.querySelector('h1').innerText === 'Day shift' && document.querySelector('[role="dialog"]') === null`)
	// Closed twice before the question is answered, it asks once and takes the answer once.
	w.press("Edit")
	w.fill("Name", "Third shift")
	w.Evaluate(`(() => { const close = document.querySelector('[role="dialog"] .icon'); close.click(); close.click(); })()`, nil)
	w.press("Discard")
	w.until("all is closed", `document.querySelector('[role="dialog"]') === null`)
	w.press("Edit")
	w.until("it opens again", `document.querySelector('[role="dialog"] input[name="name"]')?.value === 'Day shift'`)
	w.quiet()
}

// A dialog whose request is on its way stays: the answer would close whatever has been opened in its place.
func TestADialogWaitsForItsAnswer(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + s.admin.org + "/groups?add=group")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	held := make(chan fetch.RequestID, 1)
	w.Listen(ctx, func(e any) {
		if paused, ok := e.(*fetch.EventRequestPaused); ok {
			held <- paused.RequestID
		}
	})
	w.Do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/signet.v1.GroupService/AddGroup"}}))
	w.fill("Name", "Night shift")
	w.press("Add")
	request := testkit.Receive(t, held, "the request is on its way")
	w.key(kb.Escape)
	w.Evaluate(`document.querySelector('[role="dialog"] .icon').click()`, nil)
	var open bool
	if w.Evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(document.querySelector('[role="dialog"]')?.dataset.state === 'open'))))`,
		&open); !open {
		t.Error("it is closed while its request is on its way")
	}
	w.Do(fetch.ContinueRequest(request))
	w.sees("The group was added.")
	w.until("it is closed, and the group is there", `document.querySelector('[role="dialog"]') === null && document.querySelector('h1').innerText === 'Night shift'`)
	w.quiet()
}
