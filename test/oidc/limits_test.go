package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

// An application sends the requests of all its users from one address: it counts for itself once it has proven who it
// is, and only then.
func TestApplicationsCountForThemselvesOnceTheyHaveProvenWhoTheyAre(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite), func(c *server.Config) { c.LimitPublic, c.LimitCaller = "5/h", "12/h" })
	id, secret := w.application(app.Web, app.SecretBasic)
	other, _ := w.application(app.Web, app.SecretBasic)
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"none"}}
	ask := func(authorization string, more ...string) reply {
		form := url.Values{}
		for k, v := range refresh {
			form[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return w.post("/oauth/token", form, "Authorization", authorization)
	}
	for i := range 12 {
		if got := ask(basic(id, secret)); got.status != 400 || got.json["error"] != "invalid_grant" ||
			!strings.HasPrefix(got.header.Get("RateLimit"), `"caller";r=`) {
			t.Fatalf("request %d: %+v", i, got)
		}
	}
	refused := func(name string, got reply, kind string) {
		t.Helper()
		if got.status != 429 || got.json["error"] != "temporarily_unavailable" || got.header.Get("Retry-After") == "" ||
			!strings.Contains(got.header.Get("RateLimit"), `"`+kind+`";r=0;t=`) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	refused("above its own limit", ask(basic(id, secret)), "caller")
	for i := range 5 { // whoever only knows the name spends the network's, and nothing of the application's
		if got := ask(basic(other, "wrong")); got.status != 401 {
			t.Fatalf("guess %d: %+v", i, got)
		}
	}
	refused("guesses at a secret", ask(basic(other, "wrong")), "public")
	if got := w.get(w.url + "/oauth/authorize"); got.status == http.StatusTooManyRequests {
		t.Errorf("programs use up what people have: %+v", got)
	}
	if got := w.get(w.url + "/.well-known/openid-configuration"); got.status != 200 ||
		got.header.Get("RateLimit") != "" {
		t.Errorf("discovery: %+v", got)
	}
}
