//go:build driving

package console

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
)

// painted does something in the page and measures until what it leads to is painted, and how many requests it took.
// other() is true in another view than before.
const painted = `(async () => {
	const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
	performance.clearResourceTimings();
	const heading = document.querySelector('main h1'), other = () => document.querySelector('main h1') !== null && document.querySelector('main h1') !== heading;
	const before = performance.now();
	%s;
	while (!(%s)) {
		if (performance.now() - before > 20000) return {ms: -1, requests: 0};
		await frame();
	}
	await frame();
	await frame();
	return {ms: performance.now() - before, requests: performance.getEntriesByType('resource').length, calls: performance.getEntriesByType('resource').filter((e) => e.name.includes('/signet.v1.')).length};
})()`

// With the server idle, a click leads to something painted within 300 ms and five requests (eight for a user), however
// many users, organizations and events there are. SIGNET_CONSOLE_DATA is a data directory that test/scaledata has made;
// SIGNET_CONSOLE_DATABASE the database, if it is not in there.
func TestDrivingAtScale(t *testing.T) {
	dir := os.Getenv("SIGNET_CONSOLE_DATA")
	if dir == "" {
		t.Skip("SIGNET_CONSOLE_DATA names no data directory made by test/scaledata")
	}
	b := browser.Start(t)
	s := startAt(t, dir, os.Getenv("SIGNET_CONSOLE_DATABASE"))
	w := s.signIn(t, b, s.admin)
	org := cmp.Or(os.Getenv("SIGNET_CONSOLE_ORG"), s.admin.org)
	rows := `document.querySelectorAll('main tbody tr').length > 0 && document.querySelector('main [aria-busy="true"]') === null`
	// The overview of a user is put together from several lists.
	most := map[bool]int{false: 5, true: 8}
	measure := func(what, act, holds string) {
		t.Helper()
		var got struct {
			MS              float64
			Requests, Calls int
		}
		w.Evaluate(fmt.Sprintf(painted, act, holds), &got)
		t.Logf("%-28s %6.0f ms, %d requests, %d of them calls", what, got.MS, got.Requests, got.Calls)
		if got.MS < 0 || got.MS > 300 || got.Requests > most[strings.HasPrefix(what, "a user,")] {
			t.Errorf("%s takes %.0f ms and %d requests", what, got.MS, got.Requests)
		}
	}
	click := func(selector string) string { return fmt.Sprintf(`document.querySelector(%q).click()`, selector) }
	users, events := fmt.Sprintf(`nav a[href="/console/o/%s/users"]`, org),
		fmt.Sprintf(`nav a[href="/console/o/%s/events"]`, org)
	w.visit("/o/" + org)
	// The first visit loads the view itself; what counts is the second, and both are shown.
	for _, round := range []string{"first visit", "again"} {
		measure("users, "+round, click(users), `other() && location.pathname.endsWith('/users') && `+rows)
		measure("a user, "+round, click(`main tbody a`),
			`other() && location.pathname.includes('/users/') && document.querySelector('main dl') !== null && document.querySelector('main .pending') === null`)
		measure("the log, "+round, click(events), `other() && location.pathname.endsWith('/events') && `+rows)
		measure("search, "+round,
			`(() => { const f = document.querySelector('header input[type="search"]'); f.value = 'an'; f.dispatchEvent(new Event('input', {bubbles: true})); f.form.requestSubmit(); })()`,
			`other() && location.pathname.endsWith('/search') && `+rows)
	}
	w.visit("/o/" + org + "/users")
	for page := 2; page < 20; page++ {
		w.Evaluate(fmt.Sprintf(painted, click(`nav.pages button:last-child`),
			fmt.Sprintf(`(history.length, document.querySelector('main tbody a').href !== %s && %s)`,
				"window.signetLast", rows)), nil)
		w.Evaluate(`window.signetLast = document.querySelector('main tbody a').href; true`, nil)
	}
	measure("page 20", click(`nav.pages button:last-child`),
		`document.querySelector('main tbody a').href !== window.signetLast && `+rows)
}

// With the server idle, what the lists and the search show is painted within 300 ms: the median and 95 of 100. The
// search waits 150 ms for the next keystroke before it asks; that is part of it. SIGNET_CONSOLE_ORG names the
// organization with the most users.
func TestDrivingPaintAtScale(t *testing.T) {
	dir := os.Getenv("SIGNET_CONSOLE_DATA")
	if dir == "" {
		t.Skip("SIGNET_CONSOLE_DATA names no data directory made by test/scaledata")
	}
	b := browser.Start(t)
	s := startAt(t, dir, os.Getenv("SIGNET_CONSOLE_DATABASE"))
	w := s.signIn(t, b, s.admin)
	org := cmp.Or(os.Getenv("SIGNET_CONSOLE_ORG"), s.admin.org)
	beginnings := strings.Fields("ann mar joh sop emm mia len lau jul sar lis kat eva cla cha pet han ste fel tho")
	// Before the first of the twenty, each is done once: what it loads comes to the browser but once.
	measure := func(what string, before, act func(i int) string, holds string) {
		t.Helper()
		var took []float64
		for i := -1; i < len(beginnings); i++ {
			w.Evaluate(before(max(i, 0)), nil)
			w.settle()
			var got struct{ MS float64 }
			w.Evaluate(fmt.Sprintf(painted, act(max(i, 0)), holds), &got)
			if got.MS < 0 {
				t.Fatalf("%s: nothing is painted", what)
			}
			if i >= 0 {
				took = append(took, got.MS)
			}
		}
		slices.Sort(took)
		median, p95 := took[len(took)/2], took[len(took)*95/100]
		t.Logf("%-46s median %4.0f ms, p95 %4.0f ms", what, median, p95)
		if median > 300 || p95 > 300 {
			t.Errorf("%s takes more than 300 ms", what)
		}
	}
	always := func(script string) func(int) string { return func(int) string { return script } }
	const rows = `document.querySelectorAll('main tbody .pick input').length > 10 && document.querySelector('main [aria-busy="true"]') === null`
	nav := func(org, view string) string {
		return fmt.Sprintf(`(document.querySelector('nav.side a[href="/console/o/%s%s"]').click(), true)`, org, view)
	}
	typed := func(text string) string {
		return fmt.Sprintf(`(() => { const f = document.querySelector('#search'); f.focus(); f.value = %q; f.dispatchEvent(new Event('input', {bubbles: true})); return true; })()`, text)
	}
	for _, place := range []struct{ name, org string }{{"the default organization", s.admin.org},
		{"the largest organization", org}} {
		if place.name != "the default organization" && place.org == s.admin.org {
			continue
		}
		w.visit("/o/" + place.org)
		if place.org != s.admin.org {
			measure("users with choice, "+place.name, always(nav(place.org, "")), always(nav(place.org, "/users")),
				`other() && `+rows)
			w.visit("/o/" + place.org + "/users")
			measure("all of a page chosen, "+place.name,
				always(`(() => { const all = document.querySelector('th.pick input'); if (all.checked) all.click(); return true; })()`),
				always(`document.querySelector('th.pick input').click()`),
				`document.querySelector('.bulk') !== null && [...document.querySelectorAll('td.pick input')].every((e) => e.checked)`)
		}
		measure("suggestions after a keystroke, "+place.name, always(typed("")),
			func(i int) string { return typed(beginnings[i]) },
			`document.querySelector('.search [role="option"][data-id*="/search?q="]') !== null`)
	}
	w.visit("/organizations")
	measure("suggestions after a keystroke, the installation", always(typed("")),
		func(i int) string { return typed(beginnings[i]) },
		`document.querySelectorAll('.search [role="option"][data-id*="/users/usr_"]').length > 0`)
}
