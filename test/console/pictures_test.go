//go:build pictures

package console

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// TestPictures is for people: make pictures writes four of every view into .cache/pictures, wide and on a phone, by day
// and by night, with names that are as long as they may be.
func TestPictures(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	for _, v := range s.fillLong().views() {
		name := strings.NewReplacer("/", "-", ":", "", " ", "-").Replace("console" + v.route)
		w.visit(v.path)
		for look, l := range map[string]browser.Look{
			"light":       {Width: 1280, Height: 900},
			"dark":        {Width: 1280, Height: 900, Dark: true},
			"phone-light": {Width: 390, Height: 780, Phone: true},
			"phone-dark":  {Width: 390, Height: 780, Dark: true, Phone: true},
		} {
			w.Look(l)
			w.Picture(filepath.Join("..", "..", ".cache", "pictures", name+"-"+look+".png"))
		}
	}
}
