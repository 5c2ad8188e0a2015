package upstream

import (
	"net/http"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func TestKeysOfAnIssuerAreFoundByItsMetadata(t *testing.T) {
	metadata := func(name string, value any) func(*world) {
		return func(w *world) { w.up.metadata = map[string]any{name: value} }
	}
	instead := func(path string, answer http.HandlerFunc) func(*world) {
		return func(w *world) { w.up.answers[path] = answer }
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for _, c := range []struct {
		name   string
		change func(*world)
		kid    string
		keys   int
		failed string
	}{
		{"one", nil, "ec", 1, ""},
		{"all", nil, "", 4, ""},
		{"none of this id", nil, "x", 0, ""},
		{"what a workload's issuer leaves out", metadata("authorization_endpoint", nil), "ec", 1, ""},
		{"of another issuer", metadata("issuer", "https://other.example"), "ec", 0, failure.Issuer},
		{"of no issuer", metadata("issuer", nil), "ec", 0, failure.Issuer},
		{"nowhere", metadata("jwks_uri", nil), "ec", 0, failure.Discovery},
		{"no metadata", instead(wellKnown, http.NotFound), "ec", 0, failure.Discovery},
		{"no keys", instead("/keys", http.NotFound), "ec", 0, failure.Keys},
		// What an issuer publishes is somebody else's, and leads nowhere inside.
		{"at a private address", metadata("jwks_uri", "https://10.0.0.1/keys"), "ec", 0, failure.Address},
		{"where clouds keep secrets", metadata("jwks_uri", "http://169.254.169.254/latest"), "ec", 0, failure.Address},
		{"in a file", metadata("jwks_uri", "file:///etc/passwd"), "ec", 0, failure.Address},
		{"metadata inside", instead(wellKnown, redirect("https://10.0.0.1/")), "ec", 0, failure.Address},
		{"keys inside", instead("/keys", redirect("https://[::ffff:10.0.0.1]/")), "ec", 0, failure.Address},
		{"keys in the clear", instead("/keys", redirect("http://127.0.0.1:1/")), "ec", 0, failure.Address},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.change != nil {
				c.change(w)
			}
			keys, err := w.IssuerKeys(t.Context(), "org_a", w.up.URL, c.kid)
			if got := refused(t, err); got != c.failed || len(keys) != c.keys {
				t.Errorf("%d keys, refused by %q (%v)", len(keys), got, err)
			}
		})
	}
}

// However many assertions a stranger sends, an issuer is asked once in a while.
func TestKeysOfAnIssuerAreKept(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		_, err := w.IssuerKeys(t.Context(), "org_a", w.up.URL, "ec")
		must(t, err)
		_, err = w.IssuerKeys(t.Context(), "org_a", w.up.URL, "made up")
		must(t, err)
	}
	if w.up.times(wellKnown) != 1 || w.up.times("/keys") != 1 {
		t.Errorf("asked %d and %d times", w.up.times(wellKnown), w.up.times("/keys"))
	}
	w.s.Advance(time.Minute)
	_, err := w.IssuerKeys(t.Context(), "org_a", w.up.URL, "made up")
	must(t, err)
	if w.up.times("/keys") != 2 {
		t.Error("a new key is never seen")
	}
}
