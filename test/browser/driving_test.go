//go:build driving

package browser_test

import (
	"testing"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/test/browser"
)

// TestDrivingEveryPage looks at every page in every language, and in the dark. Colours are the same in all languages.
func TestDrivingEveryPage(t *testing.T) {
	browser.NeedAxe(t)
	b, origin := browser.Start(t), preview(t)
	for _, language := range pages.Languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			tab := b.Tab(t)
			for _, s := range samples() {
				tab.Look(browser.Night)
				tab.Open(origin + "/preview/" + language + "/" + s.Name)
				report(t, s.Name, "axe in the dark", tab.Axe(language == "en"))
				tab.Look(browser.Desktop)
				fits(t, tab, s.Name)
			}
		})
	}
}
