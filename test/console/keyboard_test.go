//go:build driving

package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// reachable marks everything that can be used and gives how many there are. Of the choices of a group, one is reached
// and the arrows lead to the others.
const reachable = `(() => {
	document.querySelectorAll('[data-use]').forEach((e) => e.removeAttribute('data-use'));
	const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
		.filter((e) => e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.tabIndex >= 0 && !e.closest('[inert], [aria-hidden="true"]'))
		.filter((e, i, all) => e.type !== 'radio' || all.findIndex((o) => o.type === 'radio' && o.name === e.name) === i);
	all.forEach((e, i) => e.setAttribute('data-use', i));
	all[0].focus(); // the link that skips the navigation comes first
	return all.length;
})()`

// focused tells which one has the focus, and whether one can see that.
const focused = `(() => {
	let e = document.activeElement;
	if (!e || e === document.body) return {use: -1};
	if (e.type === 'radio') e = document.querySelector('input[type="radio"][data-use][name="' + CSS.escape(e.name) + '"]') ?? e;
	const shows = [e, e.parentElement, e.closest('label')].some((x) => { if (!x) return false; const s = getComputedStyle(x); return (s.outlineStyle !== 'none' && s.outlineWidth !== '0px') || s.boxShadow !== 'none'; });
	return {use: Number(e.getAttribute('data-use') ?? -2), shows, html: e.outerHTML.slice(0, 140)};
})()`

type focus struct {
	Use   int
	Shows bool
	HTML  string
}

// walk presses Tab until the end of the page, and tells what was not reached or does not show that it is.
func (w *window) walk() {
	w.t.Helper()
	var count int
	w.Evaluate(reachable, &count)
	met := map[int]bool{}
	last := -1
	for i := range 3*count + 10 {
		if i > 0 {
			w.key(kb.Tab)
		}
		var at focus
		w.Evaluate(focused, &at)
		if at.Use == -1 {
			break
		}
		if at.Use == -2 || at.Use == last {
			continue // it has come since, such as the name of somebody; or it is the next part of a date
		}
		if met[at.Use] {
			break
		}
		met[at.Use], last = true, at.Use
		if !at.Shows && i > 0 {
			w.t.Errorf("nobody sees that this has the focus: %s", at.HTML)
		}
	}
	for i := range count {
		if !met[i] {
			var html string
			w.Evaluate(fmt.Sprintf(`document.querySelector('[data-use="%d"]')?.outerHTML.slice(0, 140) ?? ''`, i), &html)
			w.t.Errorf("Tab does not lead to %s", html)
		}
	}
}

// opens tries every button of the view: if it opens something, the focus goes there, stays there, and comes back with
// Escape.
func (w *window) opens(path string) {
	w.t.Helper()
	const buttons = `[...document.querySelectorAll('main button')].filter((e) => e.checkVisibility() && !e.disabled && e.type !== 'submit')`
	var count int
	w.Evaluate(buttons+".length", &count)
	const over = `[...document.querySelectorAll('[role="dialog"], [role="alertdialog"], [role="menu"], [role="listbox"]')].filter((e) => e.checkVisibility() && e.dataset.state !== 'closed')`
	for i := range count {
		var name string
		w.Evaluate(fmt.Sprintf(`(() => { const b = %s[%d]; if (!b) return ''; b.setAttribute('data-pressed', ''); b.focus(); return b.getAttribute('aria-label') || b.innerText; })()`, buttons, i), &name)
		if name == "" {
			continue
		}
		w.key(kb.Enter)
		w.settle()
		var open bool
		if w.Evaluate(over+".length > 0", &open); !open {
			w.visit(path)
			continue
		}
		w.until(fmt.Sprintf("the focus is in what %q opened", name),
			over+`.some((e) => e.contains(document.activeElement))`)
		var menu bool // Tab leads out of a menu, and closes it
		w.Evaluate(over+`.some((e) => e.getAttribute('role') === 'menu')`, &menu)
		for i := 0; i < 12 && !menu; i++ {
			w.key(kb.Tab)
			var inside bool
			if w.Evaluate(over+`.some((e) => e.contains(document.activeElement)) || `+over+`.length === 0`,
				&inside); !inside {
				var html string
				w.Evaluate(`document.activeElement.outerHTML.slice(0, 140)`, &html)
				w.t.Errorf("Tab leads out of what %q opened, to %s", name, html)
				break
			}
		}
		w.key(kb.Escape)
		w.until(fmt.Sprintf("Escape closes what %q opened", name), over+".length === 0")
		w.until(fmt.Sprintf("the focus is back at %q", name), `document.activeElement?.closest('main') !== null`)
		w.Evaluate(`document.querySelectorAll('[data-pressed]').forEach((e) => e.removeAttribute('data-pressed')), true`, nil)
	}
}

// Every view is reached and used with the keyboard alone.
func TestDrivingByKeyboard(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	o := s.fill(s.admin.org, "Usual")
	w := s.signIn(t, b, s.admin)

	t.Run("every place by Ctrl-K", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		entries := w.places()
		if len(entries) < 20 {
			t.Fatalf("the navigation has %v", entries)
		}
		for _, entry := range entries {
			w.key("k", input.ModifierCtrl)
			w.until("the search has the focus", `document.activeElement?.id === 'search'`)
			w.key(entry.Text)
			// Texts that several places share, such as "Administrators", are told apart by what stands with them.
			for range 10 {
				var chosen string
				w.Evaluate(`document.querySelector('.search [aria-selected="true"]')?.dataset.id ?? ''`, &chosen)
				if chosen == entry.Path {
					break
				}
				w.key(kb.ArrowDown)
			}
			w.key(kb.Enter)
			w.until("the search leads to "+entry.Path, fmt.Sprintf(`location.pathname === "/console" + %q`, entry.Path))
			w.settle()
		}
	})
	for _, v := range o.views() {
		t.Run(v.route, func(t *testing.T) {
			w := &window{Tab: w.Tab, t: t, s: s}
			w.visit(v.path)
			w.walk()
			w.visit(v.path)
			w.opens(v.path)
			w.quiet()
		})
	}
}
