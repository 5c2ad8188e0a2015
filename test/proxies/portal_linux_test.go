package proxies

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

// TestNginxBringsThePortalsToken holds docs/guides/providers/jwt-nginx.conf to its word: the token of a portal arrives
// at one address, and nobody sends one of their own. What matters here is what nginx sends on, so a recorder stands
// where Signet would.
func TestNginxBringsThePortalsToken(t *testing.T) {
	var mu sync.Mutex
	var signet, portal *http.Request
	record := func(at **http.Request, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*at = r
	}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { record(&signet, r) }))
	t.Cleanup(server.Close)
	long := strings.Repeat("t", 12<<10)
	signing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record(&portal, r)
		switch cookie, _ := r.Cookie("portal_session"); {
		case cookie == nil || cookie.Value == "":
			w.WriteHeader(http.StatusUnauthorized)
		case cookie.Value == "broken":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("X-Portal-Token", long)
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(signing.Close)

	w := &backend{t: t, listen: server.Listener.Addr().String()}
	var err error
	w.dir, err = os.MkdirTemp("/tmp", "signet-portal-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(w.dir) })
	must(t, os.Chmod(w.dir, 0o755))
	w.roots = testkit.Certify(t, w.dir)
	v := w.through(t, proxy{
		name:    "nginx",
		program: "nginx",
		config:  "../../guides/providers/jwt-nginx.conf",
		run:     runNginx,
		replace: []string{"127.0.0.1:9000", signing.Listener.Addr().String(), "idp_REPLACE", "idp_1"},
	})

	const callback = "/login/idp/idp_1/callback?state=s"
	for _, c := range []struct {
		name, path, cookie string
		token              string // that Signet sees
		asked              bool   // is the portal
	}{
		{"somebody who is signed in", callback, "portal_session=good; __Host-signet=secret", long, true},
		{"somebody who is not", callback, "__Host-signet=secret", "", true},
		{"a portal that fails", callback, "portal_session=broken", "", true},
		{"the address of another provider", "/login/idp/idp_2/callback?state=s", "portal_session=good", "", false},
		{"an address that only looks the same", "/login/idp/idp_1/callback/?state=s", "portal_session=good", "", false},
		{"any other page", "/login", "portal_session=good", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			signet, portal = nil, nil
			req, err := http.NewRequestWithContext(t.Context(), "GET", v.url+c.path, nil)
			must(t, err)
			req.Header = http.Header{"Cookie": {c.cookie}, "X-Portal-Token": {"forged"},
				"X-Forwarded-For": {"192.0.2.66"}, "Authorization": {"Bearer of the API"}}
			resp, err := v.http.Do(req)
			must(t, err)
			resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if signet == nil || signet.Header.Get("X-Portal-Token") != c.token ||
				len(signet.Header.Values("X-Portal-Token")) > 1 || signet.RequestURI != c.path ||
				signet.Header.Get("X-Forwarded-For") != "127.0.0.1" ||
				signet.Host != strings.TrimPrefix(v.url, "https://") || signet.Header.Get("Authorization") == "" {
				t.Errorf("Signet gets %+v", signet)
			}
			if (portal != nil) != c.asked {
				t.Fatalf("the portal gets %+v", portal)
			}
			if c.asked && (portal.RequestURI != "/signet-token" ||
				strings.Contains(portal.Header.Get("Cookie"), "__Host") || portal.Header.Get("Authorization") != "" ||
				portal.Header.Get("X-Portal-Token") != "") {
				t.Errorf("the portal gets %+v", portal)
			}
		})
	}
	t.Run("the signing service from outside", func(t *testing.T) {
		resp, err := v.http.Get(v.url + "/internal/portal-token")
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("it answers %d", resp.StatusCode)
		}
	})
}
