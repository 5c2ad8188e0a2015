package browser

import (
	"fmt"
	"time"
)

// Window is a tab at the console, whose views load what they show and are drawn anew: a person presses what is written on
// buttons, and waits for what is to be seen.
type Window struct {
	*Tab
	Console string // the address of the console, without a slash at its end
}

// Visit opens a view by its address, as a link in a mail does.
func (w Window) Visit(path string) {
	w.t.Helper()
	w.Open(w.Console + path)
	w.Settle()
}

// Settle waits until the view is there and nothing is on its way to it.
func (w Window) Settle() {
	w.t.Helper()
	w.Until("the view has settled",
		`document.querySelector('main h1') !== null && document.querySelector('main').getAttribute('aria-busy') === 'false' && document.querySelector('main .pending') === null`)
}

// Until waits until an expression holds in the page.
func (w Window) Until(what, expression string) {
	w.t.Helper()
	var held bool
	w.Evaluate(fmt.Sprintf(`new Promise((resolve) => {
		const end = performance.now() + %d;
		const look = () => { let ok = false; try { ok = !!(%s); } catch (e) { ok = false; } if (ok || performance.now() > end) resolve(ok); else setTimeout(look, 30); };
		look();
	})`, (stepLimit-5*time.Second).Milliseconds(), expression), &held)
	if !held {
		w.t.Fatalf("%s: it does not happen at %s; the page says:\n%s", what, w.At(), w.Text("body"))
	}
}

// Sees waits until a text is on the page.
func (w Window) Sees(text string) {
	w.t.Helper()
	w.Until(fmt.Sprintf("%q is to be seen", text), fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// Mark waits for an element that a script finds, and gives a selector for it. When the view draws it anew, the selector
// is for the new one.
func (w Window) Mark(what, script string) string {
	w.t.Helper()
	w.Until(what, fmt.Sprintf(`(() => {
		const visible = (e) => e.checkVisibility() && !e.closest('[aria-hidden="true"]');
		const find = () => {
			const top = [...document.querySelectorAll('[role="dialog"]')].filter((e) => e.checkVisibility()).sort((a, b) => getComputedStyle(a).zIndex - getComputedStyle(b).zIndex).at(-1) ?? document;
			return %s;
		};
		const found = find();
		if (!found) return false;
		document.querySelectorAll('[data-test]').forEach((e) => e.removeAttribute('data-test'));
		found.setAttribute('data-test', '');
		found.scrollIntoView({block: 'center'});
		window.redrawn?.disconnect();
		window.redrawn = new MutationObserver(() => document.querySelector('[data-test]') ?? find()?.setAttribute('data-test', ''));
		window.redrawn.observe(document.body, {childList: true, subtree: true});
		return true;
	})()`, script))
	return "[data-test]"
}

// Press presses a button, a link, or an entry of a menu by its text; in a dialog, if one is open.
func (w Window) Press(text string) {
	w.t.Helper()
	w.Click(w.Mark(fmt.Sprintf("there is a button %q", text), fmt.Sprintf(`[...top.querySelectorAll('button, a, [role="menuitem"], [role="option"]')]
		.find((e) => visible(e) && !e.disabled && ((e.getAttribute('aria-label') ?? '') === %[1]q || e.innerText.trim() === %[1]q))`, text)))
}

// Labelled gives a selector for the control with a label.
func (w Window) Labelled(label string) string {
	w.t.Helper()
	return w.Mark(fmt.Sprintf("there is a field %q", label), fmt.Sprintf(`[...top.querySelectorAll('label')].filter((l) => visible(l) && l.firstChild?.textContent.trim() === %q)
		.map((l) => l.control).find(Boolean)`, label))
}

// Type types into the field with a label, in place of what was there.
func (w Window) Type(label, text string) {
	w.t.Helper()
	w.Tab.Fill(w.Labelled(label), text)
}

// Pick looks something up in the field with a label, and chooses what is found with this text.
func (w Window) Pick(label, typed, found string) {
	w.t.Helper()
	w.Type(label, typed)
	w.Click(w.Mark(fmt.Sprintf("%q is found", found),
		fmt.Sprintf(`[...document.querySelectorAll('[role="option"]')].find((e) => visible(e) && e.innerText.trim() === %q)`, found)))
}
