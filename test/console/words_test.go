package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// broken finds the words of the page that end in another line than they begin in. A word may go on behind a hyphen, also a
// soft one, or a slash. Where a line has at least 200 pixels, what is longer than the line and all that stands there, such as
// an identifier, may break; in a table it is cut instead, except in a cell for texts.
const broken = `(() => {
	const found = [], range = document.createRange();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text = walker.nextNode(); text; text = walker.nextNode()) {
		const e = text.parentElement;
		if (!text.data.trim() || !e.checkVisibility() || e.closest('.sr, .skip, pre, svg, script, style, noscript, option, textarea')) continue;
		for (const word of text.data.matchAll(/\S+/g)) {
			const end = word.index + word[0].length;
			range.setStart(text, word.index);
			range.setEnd(text, end);
			if (range.getClientRects().length < 2) continue;
			let at = 0, before; // the place of a soft hyphen is that of the character behind it
			for (let i = word.index; i < end && at === 0; i++) {
				range.setStart(text, i);
				range.setEnd(text, i + 1);
				const box = range.getClientRects()[0];
				if (!box || box.width === 0) continue;
				if (before !== undefined && Math.abs(box.top - before) > box.height / 2 && !/[-\/\u2010-\u2014]$|\u00ad/.test(text.data.slice(i - 2, i))) at = i;
				before = box.top;
			}
			if (at === 0) continue;
			let line = e;
			while (getComputedStyle(line).display.startsWith('inline')) line = line.parentElement;
			const style = getComputedStyle(line);
			const room = line.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
			const whole = document.createElement('span');
			whole.style.cssText = 'position: absolute; visibility: hidden; white-space: nowrap';
			whole.textContent = word[0];
			e.append(whole);
			const width = whole.getBoundingClientRect().width;
			whole.remove();
			if (width > room && room >= 200 && line.textContent.trim() === word[0] && (!line.closest('td, th') || line.closest('td.whole'))) continue;
			found.push(text.data.slice(word.index, at) + '|' + text.data.slice(at, end) + ' (' + Math.round(width) + ' wide in ' + Math.round(room) + ') in ' + line.outerHTML.slice(0, 160));
		}
	}
	return found;
})()`

// With the longest names, no word breaks, nothing is wider than its place, and what is cut is whole in its title: on a
// desktop and on a phone, in the language with the longest words.
func TestNoWordBreaksInAnyView(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	o := s.fillLong()
	w := s.signIn(t, b, s.admin)
	w.speak("de")
	for _, v := range o.views() {
		t.Run(v.route, func(t *testing.T) {
			w := &window{Tab: w.Tab, t: t, s: s}
			w.visit(v.path)
			for _, look := range []browser.Look{{Width: 1280, Height: 900}, {Width: 390, Height: 780, Phone: true}} {
				w.Look(look)
				var words []string
				w.Evaluate(broken, &words)
				for what, found := range map[string][]string{"words break": words, "it is too wide": w.Overflowing()} {
					if len(found) > 0 {
						t.Errorf("at %d pixels, %s:\n%s", look.Width, what, strings.Join(found[:min(len(found), 6)], "\n"))
					}
				}
			}
			w.Look(browser.Look{Width: 1280, Height: 900})
		})
	}
}

// The measure finds what it has to find.
func TestWordsThatBreakAreFound(t *testing.T) {
	w := browser.Start(t).Tab(t)
	for _, c := range []struct{ html, want string }{
		{`<p style="width: 60px; overflow-wrap: anywhere">Administrator</p>`, "Admin"},
		{`<p style="width: 60px; overflow-wrap: break-word">well-known/words</p>`, ""},
		{`<p style="width: 220px; overflow-wrap: anywhere">` + strings.Repeat("w", 60) + `</p>`, ""},
		{`<p style="width: 220px; overflow-wrap: anywhere">A text of ` + strings.Repeat("w", 60) + `</p>`, "www"},
		{`<table><tr><td style="width: 220px; max-width: 220px; overflow-wrap: anywhere">` + strings.Repeat("w", 60) + `</td></tr></table>`, "www"},
		{`<table><tr><td class="whole" style="width: 260px; max-width: 260px; overflow-wrap: anywhere">` + strings.Repeat("w", 60) + `</td></tr></table>`, ""},
	} {
		w.Open("data:text/html," + url.PathEscape(c.html))
		var found []string
		w.Evaluate(broken, &found)
		if (c.want == "") != (len(found) == 0) || !strings.HasPrefix(strings.Join(found, ""), c.want) {
			t.Errorf("in %s it finds %q", c.html, found)
		}
	}
}
