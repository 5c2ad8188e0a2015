package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A page that moves, is covered, or takes no clicks for a while gets its click when it can be reached.
func TestAClickReachesItsElement(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>Moving</title>
<div id="cover" style="position:fixed;inset:0;background:#fff"></div>
<p id="above"></p><button onclick="this.textContent='reached'">Press</button>
<script>
	document.body.style.pointerEvents = 'none';
	const steps = [
		() => cover.remove(),
		() => { above.style.height = '300px'; },
		() => { above.style.height = '3000px'; },
		() => document.body.style.removeProperty('pointer-events'),
	];
	const next = () => { steps.shift()?.(); setTimeout(next, 50); };
	next();
	addEventListener('click', (e) => { if (e.target.tagName !== 'BUTTON') throw new Error('the click reached ' + e.target.tagName); });
</script>`))
	}))
	defer page.Close()
	tab := Start(t).Tab(t)
	tab.Open(page.URL)
	tab.Click("button")
	if text := tab.Text("button"); text != "reached" {
		t.Errorf("the button says %q", text)
	}
	if said := tab.Complaints(); len(said) > 0 {
		t.Errorf("the page complains: %q", said)
	}
}
