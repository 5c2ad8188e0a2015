package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// Users are chosen and locked with the keyboard alone; what fails is named with its reason.
func TestManyUsersAtOnceByKeyboard(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	people := map[string]account{}
	for _, name := range []string{"ann", "bea", "cem", "gone"} {
		people[name] = s.person(org, name)
	}
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/users")
	choose := func(name string) {
		t.Helper()
		w.Evaluate(fmt.Sprintf(`document.querySelector('[aria-label="Choose Jo %s"]').focus()`, name), nil)
		w.key(" ")
	}
	press := func(text string) {
		t.Helper()
		w.Evaluate(fmt.Sprintf(`document.querySelector(%q).focus()`,
			w.mark("there is a button "+text, fmt.Sprintf(`[...top.querySelectorAll('button')].find((e) => visible(e) && e.innerText.trim() === %q)`, text))), nil)
		w.key(kb.Enter)
	}
	state := func(name string) string {
		t.Helper()
		return s.in(org, "GET", "/v1/users/"+people[name].id, nil)["user"].(map[string]any)["state"].(string)
	}

	for _, name := range []string{"ann", "bea", "gone"} {
		choose(name)
	}
	w.sees("3 chosen (at most 500)")
	w.axe("users that are chosen")
	s.in(org, "DELETE", "/v1/users/"+people["gone"].id, nil)
	press("Lock")
	w.sees("3 users cannot sign in until somebody unlocks their accounts.")
	w.axe("the question")
	press("Lock")
	w.sees("Done for 2 of 3.")
	w.until("what failed is named with its reason",
		`/^Jo gone: .+/.test(document.querySelector('[role="dialog"] .failed li').innerText)`)
	w.axe("what failed")
	press("Done")
	w.sees("1 chosen")
	for name, want := range map[string]string{"ann": "STATE_LOCKED", "bea": "STATE_LOCKED", "cem": "STATE_ACTIVE"} {
		if got := state(name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	w.press("Choose none")
	w.until("nothing is chosen", `document.querySelector('.bulk') === null`)
	w.quiet()
}

// The choice of columns is kept in the browser; what is exported is what the filters leave, and nothing in it runs.
func TestColumnsAndExport(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	s.person(org, "ann")
	s.in(org, "POST", "/v1/users/service", map[string]any{"userName": "robot", "name": "=1+1"})
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/users")
	visible := func(column string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('main th')].find((e) => e.innerText === %q)?.checkVisibility()`, column)
	}
	w.until("the kind is not shown", `!(`+visible("Kind")+`)`)
	w.Click("button[aria-label='Columns']")
	w.Click(".panel.columns input[id$='-type']")
	w.until("the kind is shown", visible("Kind"))
	w.visit("/o/" + org + "/users")
	w.until("it is still shown", visible("Kind"))

	w.Evaluate(`(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.exported = text; }); return make.call(URL, blob); }; })()`, nil)
	w.visitInside("/o/" + org + "/users?name=%3D")
	w.press("Export as CSV")
	w.until("it is exported", `window.exported !== undefined`)
	var text string
	w.Evaluate(`window.exported`, &text)
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")), "\r\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `"id","name",`) || !strings.Contains(lines[1], `,"'=1+1","robot",`) {
		t.Errorf("the file is %q", text)
	}
	w.quiet()
}
