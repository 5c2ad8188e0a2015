//go:build clients

package clients_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/servertest"
)

// Libraries for pages, in Chromium, with nothing but the issuer and the client: what they show of a person comes from
// the ID token.
func TestPagesSignIn(t *testing.T) {
	s := servertest.Start(t, server.Config{Listen: "localhost:0"}, t.Output())
	call(t, s, "/v1/users/human", map[string]any{
		"userName":         "jo",
		"password":         "correct horse",
		"noChangeRequired": true,
		"profile":          map[string]any{"firstName": "Jo", "lastName": "Doe"},
		"email":            map[string]any{"email": "jo@mail.test", "isEmailVerified": true},
	})
	for page, app := range map[string]map[string]any{
		"oidc-client-ts.html": {},
		// keycloak-js reads the access token, too.
		"keycloak.html": {"tokenFormat": "TOKEN_FORMAT_JWT"},
	} {
		t.Run(page, func(t *testing.T) {
			files := http.NewServeMux()
			site := httptest.NewServer(files)
			t.Cleanup(site.Close)
			at := strings.Replace(site.URL, "127.0.0.1", "localhost", 1) + "/" + page
			app["name"], app["type"], app["redirectUris"] = page, "APPLICATION_TYPE_SINGLE_PAGE", []string{at}
			id, _ := call(t, s, "/v1/apps", app)["appId"].(string)
			files.HandleFunc("/config.json", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"issuer":"` + s.URL() + `","clientId":"` + id + `"}`))
			})
			files.HandleFunc("/"+page,
				func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "pages/"+page) })
			files.Handle("/", http.FileServer(http.Dir("pages/node_modules")))
			tab := browser.Start(t).Tab(t)
			tab.Open(at)
			tab.WaitFor("#loginName, #failed")
			if tab.Has("#failed") {
				t.Fatalf("%s: %v", tab.Text("#failed"), tab.Complaints())
			}
			tab.Fill("#loginName", "jo")
			tab.Submit("main form button.primary")
			tab.Fill("#password", "correct horse")
			tab.Submit("main form button.primary")
			tab.WaitFor("#done, #failed")
			if to, err := url.Parse(tab.At()); err != nil || tab.Has("#failed") ||
				tab.Text("#done") != "jo@mail.test" || !strings.HasPrefix(to.String(), at) {
				t.Errorf("at %s: %s %v", tab.At(), tab.Text("body"), tab.Complaints())
			}
		})
	}
}
