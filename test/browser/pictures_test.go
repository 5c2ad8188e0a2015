//go:build pictures

package browser_test

import (
	"path/filepath"
	"testing"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/test/browser"
)

// TestPictures is for people: make pictures writes one of every page into .cache/pictures, in English in every look,
// and in the other languages in light and on a phone, where texts that are too long show first.
func TestPictures(t *testing.T) {
	b, origin := browser.Start(t), preview(t)
	tab := b.Tab(t)
	take := func(page, language, name string, look browser.Look) {
		tab.Look(look)
		tab.Open(origin + "/preview/" + language + "/" + page)
		tab.Picture(filepath.Join("..", "..", ".cache", "pictures", page+"-"+name+".png"))
	}
	for _, s := range samples() {
		for name, look := range map[string]browser.Look{"light": browser.Desktop, "dark": browser.Night,
			"phone": browser.Phone} {
			take(s.Name, pages.Languages[0], name, look)
		}
		for _, language := range pages.Languages[1:] {
			take(s.Name, language, language+"-light", browser.Desktop)
			take(s.Name, language, language+"-phone", browser.Phone)
		}
	}
}
