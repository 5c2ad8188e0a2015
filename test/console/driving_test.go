//go:build driving

package console

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// hostile would be an element, the end of an attribute and a script; it is wide, has no place for a line break, and
// partly runs from right to left.
var hostile = `<img/src=x/onerror=document.title='taken'>"'><script>document.title='taken'</script>{{7*7}}${7*7}` +
	strings.Repeat("שלום", 5) + strings.Repeat("Ｗ", 200)

// drive looks at an open view in every way: by day, by night, and on a phone.
func (w *window) drive() {
	w.t.Helper()
	if w.Has("main .failure") {
		w.t.Errorf("it shows a failure: %s", w.Text("main .failure"))
	}
	found := func(where string, lines []string) {
		if len(lines) > 0 {
			w.t.Errorf("%s: %d findings:\n%s", where, len(lines), strings.Join(lines[:min(len(lines), 6)], "\n"))
		}
	}
	found("axe by day", w.Axe(true))
	found("does not fit 1280 pixels", w.Overflowing())
	w.Look(browser.Look{Width: 1280, Height: 900, Dark: true})
	found("axe by night", w.Axe(true))
	w.Look(browser.Narrow)
	found("axe on a phone", w.Axe(false))
	found("does not fit 360 pixels", w.Overflowing())
	w.Look(browser.Look{Width: 1280, Height: 900})
	var title string
	if w.Evaluate("document.title", &title); title == "taken" {
		w.t.Error("a name ran as a script")
	}
	w.quiet()
}

func TestDrivingFromTheFirstStartToAnApplication(t *testing.T) { firstHour(t, testdb.Postgres) }

// Every view can be used with every kind of data, by day and night, on a phone, and in every language.
func TestDrivingEveryView(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	for _, engine := range []string{testdb.SQLite, testdb.Postgres} {
		t.Run(engine, func(t *testing.T) {
			s := start(t, engine)
			w := s.signIn(t, b, s.admin)
			each := func(t *testing.T, views []view) {
				for _, v := range views {
					t.Run(v.route, func(t *testing.T) {
						w := &window{Tab: w.Tab, t: t, s: s}
						w.visit(v.path)
						w.drive()
					})
				}
			}
			t.Run("nothing yet", func(t *testing.T) {
				empty := s.newOrganization("Empty")
				var views []view
				for _, route := range routes(t) {
					if path := strings.ReplaceAll(route, ":org", empty); !strings.Contains(path, ":") {
						views = append(views, view{route, path})
					}
				}
				each(t, views)
			})
			t.Run("hostile", func(t *testing.T) {
				org := s.newOrganization(string([]rune(hostile)[:200]))
				each(t, s.fill(org, hostile).views())
			})
			usual := s.fill(s.admin.org, "Usual").views()
			for _, language := range []string{"en", "de", "fr", "es"} {
				if language != "en" && engine == testdb.Postgres {
					continue // the database does not know languages
				}
				t.Run("usual in "+language, func(t *testing.T) {
					(&window{Tab: w.Tab, t: t, s: s}).speak(language)
					each(t, usual)
				})
			}
		})
	}
}
