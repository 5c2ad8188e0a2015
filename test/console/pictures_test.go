//go:build pictures

package console

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// TestPictures is for people: make pictures writes one of every view into .cache/pictures, by day, and by night on a
// phone.
func TestPictures(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	for _, v := range s.fill(s.admin.org, "Usual").views() {
		name := strings.NewReplacer("/", "-", ":", "").Replace("console" + v.route)
		for look, l := range map[string]browser.Look{"light": {Width: 1280, Height: 900},
			"phone-dark": {Width: 390, Height: 780, Dark: true, Phone: true}} {
			w.Look(l)
			w.visit(v.path)
			w.Picture(filepath.Join("..", "..", ".cache", "pictures", name+"-"+look+".png"))
		}
	}
}
