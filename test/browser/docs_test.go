package browser_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	written "github.com/signet-idm/signet/docs"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/docs"
	"github.com/signet-idm/signet/test/browser"
)

// TestTheDocumentation opens the list of all pages, and one page of each kind: one with tables, one with
// code, a file. Axe finds nothing, and on a phone only code and tables scroll, within themselves.
func TestTheDocumentation(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	origin := serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			mux.Handle(docs.Path, &docs.Docs{Files: written.Files(), Pages: p})
		})
	})
	tab := b.Tab(t)
	for _, path := range []string{"", "api/errors", "operations/", "guides/native",
		"operations/proxies/nginx.conf"} {
		for name, look := range map[string]browser.Look{"wide": {Width: 1280, Height: 900},
			"wide, dark": {Width: 1280, Height: 900, Dark: true}, "phone": browser.Narrow} {
			tab.Look(look)
			tab.Open(origin + docs.Path + path)
			if found := tab.Axe(true); len(found) > 0 {
				t.Errorf("%s, %s: axe finds:\n%s", path, name, strings.Join(found, "\n"))
			}
			var wider int
			tab.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wider)
			if wider > 0 {
				t.Errorf("%s, %s: it is %d pixels too wide", path, name, wider)
			}
		}
	}
	tab.Open(origin + docs.Path + "guides/")
	tab.Click(`main a[href="/docs/guides/native"]`)
	tab.WaitFor("main h1")
	tab.WaitUntilAt(origin + docs.Path + "guides/native")
	if said := tab.Complaints(); len(said) > 0 {
		t.Errorf("the browser complains: %q", said)
	}
}
