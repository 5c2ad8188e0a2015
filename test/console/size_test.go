package console

import (
	"context"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// wire counts what a page fetches.
type wire struct {
	mu    sync.Mutex
	open  map[network.RequestID]string
	bytes map[string]int // by address; answers of calls by their operation
	total int
}

func (w *wire) listen(e any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		w.open[e.RequestID] = e.Request.URL
	case *network.EventLoadingFinished:
		name := path.Base(strings.Split(w.open[e.RequestID], "?")[0])
		w.bytes[name] += int(e.EncodedDataLength)
		w.total += int(e.EncodedDataLength)
		delete(w.open, e.RequestID)
	case *network.EventLoadingFailed:
		delete(w.open, e.RequestID)
	}
}

// still tells whether nothing is on its way, and the file that comes last has come.
func (w *wire) still() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.bytes {
		if strings.HasPrefix(name, "dialogs-") {
			return len(w.open) == 0
		}
	}
	return false
}

// TestTheFirstLoadOfAView: whoever opens a view for the first time fetches at most 180 KiB, counting everything: heads
// and bodies of all answers, calls of the API and the dialogs that come afterwards included.
func TestTheFirstLoadOfAView(t *testing.T) {
	const most = 180 << 10
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	o := s.fill(s.admin.org, "Usual")
	var cookies []*network.CookieParam
	for _, c := range s.signIn(t, b, s.admin).Cookies() {
		cookies = append(cookies, &network.CookieParam{Name: c.Name, Value: c.Value, URL: s.url, Path: c.Path,
			Secure: c.Secure, HTTPOnly: c.HTTPOnly, SameSite: c.SameSite})
	}
	for _, v := range o.views() {
		t.Run(v.route, func(t *testing.T) {
			w := &window{Tab: b.Tab(t), t: t, s: s} // a profile of its own: its cache is empty
			w.Look(browser.Look{Width: 1280, Height: 900})
			w.Do(network.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
				return network.SetCookies(cookies).Do(ctx)
			}))
			got := &wire{open: map[network.RequestID]string{}, bytes: map[string]int{}}
			w.Listen(t.Context(), got.listen)
			w.visit(v.path)
			testkit.Await(t, "everything has come", got.still)
			got.mu.Lock()
			defer got.mu.Unlock()
			t.Logf("%.1f KiB %s", float64(got.total)/1024, v.route)
			if got.total > most {
				t.Errorf("it fetches %d bytes: %v", got.total, got.bytes)
			}
			if got.total < 50<<10 {
				t.Errorf("it fetches only %d bytes: %v", got.total, got.bytes)
			}
			if testing.Verbose() && v.path == "/o/"+o.org+"/users" {
				t.Log(got.bytes)
			}
		})
	}
}
