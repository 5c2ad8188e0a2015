package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

var axe = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("../clients/node_modules/axe-core/axe.min.js") })

// NeedAxe skips the test where axe has not been installed; in CI it fails.
func NeedAxe(t testing.TB) {
	t.Helper()
	if _, err := axe(); err != nil {
		unavailable(t, "axe-core is not installed: run this through scripts/with-browser.sh")
	}
}

// runAxe asks for the rules of WCAG 2.2, levels A and AA, and for what is good practice besides. A colour on its way to
// another one is none to judge: transitions come to their end first.
const runAxe = `document.getAnimations().filter(a => a instanceof CSSTransition).forEach(a => a.finish()), axe.run(document, {rules: {'color-contrast': {enabled: %t}}, resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
	.then(r => JSON.stringify(r.violations.map(v => ({id: v.id, help: v.help, at: v.nodes.map(n => n.html + ' ' + (n.any[0] ? n.any[0].message : ''))}))))`

// Axe gives what keeps people from using the page that is open, one line each. Looking at colours takes most of its
// time.
func (tab *Tab) Axe(colours bool) []string {
	tab.t.Helper()
	script, err := axe()
	if err != nil {
		tab.t.Fatal(err)
	}
	var present bool
	if tab.Evaluate("typeof axe === 'object'", &present); !present {
		tab.Evaluate(string(script)+"; true", &present)
	}
	var text string
	tab.Evaluate(fmt.Sprintf(runAxe, colours), &text)
	var violations []struct {
		ID, Help string
		At       []string
	}
	if err := json.Unmarshal([]byte(text), &violations); err != nil {
		tab.t.Fatal(err)
	}
	var lines []string
	for _, v := range violations {
		lines = append(lines, fmt.Sprintf("%s (%s): %s", v.ID, v.Help, strings.Join(v.At, " | ")))
	}
	return lines
}

// overflowing finds what is wider than the page or than its own box.
const overflowing = `(() => {
	const wide = [], most = document.documentElement.clientWidth;
	const cut = (e) => e.title !== '' && getComputedStyle(e).textOverflow === 'ellipsis'; // on purpose, whole in the title
	const inCut = (e) => e.parentElement !== null && (cut(e.parentElement) || inCut(e.parentElement));
	const tabs = (e) => { const row = e.closest('nav ul, nav.tabs'); return row !== null && ['auto', 'scroll'].includes(getComputedStyle(row).overflowX); };
	if (document.documentElement.scrollWidth > most) wide.push('the page: ' + document.documentElement.scrollWidth);
	for (const e of document.body.querySelectorAll('*')) {
		if (e.closest('.sr') || e.tagName === 'OPTION' || e.tagName === 'NOSCRIPT') continue;
		if (e.closest('[role="region"][tabindex="0"]') || tabs(e)) continue; // meant to be scrolled, also by keyboard
		const box = e.getBoundingClientRect();
		if (box.width === 0 || inCut(e)) continue;
		if (box.right > most + 0.5 || box.left < -0.5) wide.push(e.outerHTML.slice(0, 160) + ' reaches to ' + box.right);
		else if (cut(e)) continue;
		else if (!['INPUT', 'SELECT', 'TEXTAREA'].includes(e.tagName) && getComputedStyle(e).display !== 'inline' && e.scrollWidth > e.clientWidth + 1)
			wide.push(e.outerHTML.slice(0, 160) + ' is ' + e.scrollWidth + ' wide in ' + e.clientWidth);
	}
	return wide;
})()`

// Overflowing gives what does not fit into the width of the window.
func (tab *Tab) Overflowing() []string {
	tab.t.Helper()
	var wide []string
	tab.Evaluate(overflowing, &wide)
	return wide
}
