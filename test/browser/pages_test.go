package browser_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/pagestest"
	"github.com/signet-idm/signet/test/browser"
)

// preview serves all pages at an address that browsers treat as safe.
func preview(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	address := strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	handler, err := pagestest.Handler(&url.URL{Scheme: "http", Host: address}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(server.Close)
	return "http://" + address
}

func TestEveryPageInEveryLanguage(t *testing.T) {
	browser.NeedAxe(t)
	b, origin := browser.Start(t), preview(t)
	for _, language := range pages.Languages {
		t.Run(language, func(t *testing.T) {
			tab := b.Tab(t)
			for _, s := range pagestest.Samples() {
				tab.Look(browser.Desktop)
				tab.Open(origin + "/preview/" + language + "/" + s.Name)
				report(t, s.Name, "axe", tab.Axe())
				report(t, s.Name, "does not fit 800 pixels", tab.Overflowing())
				if language == pages.Languages[0] { // colours are the same in all
					tab.Look(browser.Night)
					report(t, s.Name, "axe in the dark", tab.Axe())
				}
				tab.Look(browser.Narrow)
				report(t, s.Name, "does not fit 360 pixels", tab.Overflowing())
				report(t, s.Name, "the browser complains", tab.Complaints())
			}
		})
	}
}

func report(t *testing.T, page, about string, lines []string) {
	t.Helper()
	for _, line := range lines {
		t.Errorf("%s: %s: %s", page, about, line)
	}
}

// hostile would be a script, an address that runs one, the end of an attribute, and one word that no line can hold.
var hostile = `"'><script>document.title='taken'</script><img src=x onerror=alert(1)>javascript:alert(1)` + strings.Repeat("W", 200) + "\u202emoc.elpmaxe"

func TestHostileNamesStayTextAndFit(t *testing.T) {
	b := browser.Start(t)
	server := httptest.NewUnstartedServer(nil)
	address := strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	p, err := pages.New(pages.Config{ExternalURL: &url.URL{Scheme: "http", Host: address}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(pages.AssetsPath, p.Assets())
	samples := pagestest.Filled(hostile)
	for _, s := range samples {
		mux.HandleFunc("/"+s.Name, func(w http.ResponseWriter, r *http.Request) { p.Render(w, r, http.StatusOK, s.View) })
	}
	server.Config.Handler = mux
	server.Start()
	t.Cleanup(server.Close)

	tab := b.Tab(t)
	tab.Look(browser.Narrow)
	for _, s := range samples {
		tab.Open("http://" + address + "/" + s.Name)
		report(t, s.Name, "does not fit 360 pixels", tab.Overflowing())
		report(t, s.Name, "the browser complains", tab.Complaints())
		var title string
		if tab.Evaluate("document.title", &title); title == "taken" {
			t.Errorf("%s: a name ran as a script", s.Name)
		}
	}
}

// TestPictures is for people: SIGNET_UPDATE_SCREENSHOTS=1 go test -run TestPictures ./test/browser writes docs/screenshots.
func TestPictures(t *testing.T) {
	if os.Getenv("SIGNET_UPDATE_SCREENSHOTS") == "" {
		return
	}
	b, origin := browser.Start(t), preview(t)
	tab := b.Tab(t)
	for _, s := range pagestest.Samples() {
		for name, look := range map[string]browser.Look{"light": browser.Desktop, "dark": browser.Night, "phone": browser.Phone} {
			tab.Look(look)
			tab.Open(origin + "/preview/en/" + s.Name)
			tab.Picture(filepath.Join("..", "..", "docs", "screenshots", s.Name+"-"+name+".png"))
		}
	}
}
