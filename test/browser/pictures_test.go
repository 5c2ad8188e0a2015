//go:build pictures

package browser_test

import (
	"path/filepath"
	"testing"

	"github.com/signet-idm/signet/test/browser"
)

// TestPictures is for people: make pictures writes one of every page into .cache/pictures.
func TestPictures(t *testing.T) {
	b, origin := browser.Start(t), preview(t)
	tab := b.Tab(t)
	for _, s := range samples() {
		for _, p := range []struct {
			name string
			look browser.Look
		}{{"light", browser.Desktop}, {"dark", browser.Night}, {"phone", browser.Phone}} {
			tab.Look(p.look)
			tab.Open(origin + "/preview/en/" + s.Name)
			tab.Picture(filepath.Join("..", "..", ".cache", "pictures", s.Name+"-"+p.name+".png"))
		}
	}
}
