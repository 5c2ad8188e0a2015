package browser_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/pages/pagestest"
	"github.com/signet-idm/signet/test/browser"
)

// preview serves all pages at an address that browsers treat as safe.
func preview(t *testing.T) string {
	t.Helper()
	return serve(t, func(origin *url.URL) http.Handler {
		handler, err := pagestest.Handler(origin, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return handler
	})
}

// serve gives what it serves the address that it is served at.
func serve(t *testing.T, handler func(origin *url.URL) http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	origin := &url.URL{Scheme: "http",
		Host: strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1)}
	server.Config.Handler = handler(origin)
	server.Start()
	t.Cleanup(server.Close)
	return origin.String()
}

// with serves pages besides something else.
func with(t *testing.T, origin *url.URL, also func(p *pages.Pages, mux *http.ServeMux)) http.Handler {
	t.Helper()
	p, err := pages.New(pages.Config{ExternalURL: origin, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(pages.AssetsPath, p.Assets())
	also(p, mux)
	return p.SameOrigin(mux)
}

// TestEveryPage looks at every page in English, and in German, whose words are the longest, for what does not fit. Every
// language, and the dark, are in make driving.
func TestEveryPage(t *testing.T) {
	browser.NeedAxe(t)
	b, origin := browser.Start(t), preview(t)
	for _, language := range []string{"en", "de"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			tab := b.Tab(t)
			for _, s := range samples() {
				tab.Look(browser.Desktop)
				tab.Open(origin + "/preview/" + language + "/" + s.Name)
				if language == "en" { // a page has the same elements and colours in all
					report(t, s.Name, "axe", tab.Axe(true))
				}
				fits(t, tab, s.Name)
			}
		})
	}
}

// fits looks at the page that is open.
func fits(t *testing.T, tab *browser.Tab, name string) {
	t.Helper()
	report(t, name, "does not fit 800 pixels", tab.Overflowing())
	report(t, name, "is wrong, but does not look so", unmarked(tab))
	report(t, name, "is not level with the field beside it", uneven(tab))
	tab.Look(browser.Narrow)
	report(t, name, "does not fit 360 pixels", tab.Overflowing())
	report(t, name, "the browser complains", tab.Complaints())
}

// uneven gives the inputs that stand beside another one, but higher or lower.
func uneven(tab *browser.Tab) []string {
	var names []string
	tab.Evaluate(`[...document.querySelectorAll('.pair')].flatMap(pair => [...pair.querySelectorAll('input, select')].filter((field, i, all) =>
		field.getBoundingClientRect().top !== all[0].getBoundingClientRect().top).map(field => field.name))`, &names)
	return names
}

// unmarked gives the inputs with a problem whose frame has another colour than the words about it.
func unmarked(tab *browser.Tab) []string {
	var names []string
	tab.Evaluate(`document.activeElement.blur(), document.getAnimations().forEach(a => a.finish()), [...document.querySelectorAll('[aria-invalid]')].filter(field =>
		getComputedStyle(field)[field.type === 'checkbox' ? 'outlineColor' : 'borderColor'] !== getComputedStyle(document.getElementById(field.id + '-problem')).color).map(field => field.name)`, &names)
	return names
}

// samples are those that stay where they are.
func samples() []pagestest.Sample {
	return slices.DeleteFunc(pagestest.Samples(), func(s pagestest.Sample) bool { return s.Moves })
}

func report(t *testing.T, page, about string, lines []string) {
	t.Helper()
	for _, line := range lines {
		t.Errorf("%s: %s: %s", page, about, line)
	}
}

// hostile would be a script, an address that runs one, the end of an attribute, and one word that no line can hold.
var hostile = `"'><script>document.title='taken'</script><img src=x onerror=alert(1)>javascript:alert(1)` +
	strings.Repeat("W", 200) + "\u202emoc.elpmaxe"

func TestHostileNamesStayTextAndFit(t *testing.T) {
	b := browser.Start(t)
	filled := slices.DeleteFunc(pagestest.Filled(hostile), func(s pagestest.Sample) bool { return s.Moves })
	origin := serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			for _, s := range filled {
				mux.HandleFunc("/"+s.Name,
					func(w http.ResponseWriter, r *http.Request) { p.Render(w, r, http.StatusOK, s.View) })
			}
		})
	})
	tab := b.Tab(t)
	tab.Look(browser.Narrow)
	for _, s := range filled {
		tab.Open(origin + "/" + s.Name)
		report(t, s.Name, "does not fit 360 pixels", tab.Overflowing())
		report(t, s.Name, "the browser complains", tab.Complaints())
		var title string
		if tab.Evaluate("document.title", &title); title == "taken" {
			t.Errorf("%s: a name ran as a script", s.Name)
		}
	}
}
