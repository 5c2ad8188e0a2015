package hosted

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testdb"
)

// broken are values of parameters that no page of ours has made.
func broken(made string) []string {
	return []string{"", "x", "\x00", "%", "\xff\xfe", "..//", "null", "[]", `{"a":1}`, strings.Repeat("A", 5000),
		"a.b.c", "eyJhbGciOiJub25lIn0.e30.", "sgn_ses_" + strings.Repeat("0", 40), "-1", "9999999999999999999999",
		made, made[:len(made)/2], "A" + made, made + "A", strings.ToUpper(made)}
}

// parameters are the names of all that pages and endpoints read.
var parameters = []string{"request", "to", "state", "code", "error", "iss", "id_token_hint", "logout_token", "token",
	"account", "with", "arrival", "attempt", "user", "user_code", "client_id", "redirect_uri",
	"scope", "response_type", "code_challenge", "code_challenge_method", "prompt", "max_age", "claims", "request_uri",
	"grant_type", "refresh_token", "device_code", "client_secret", "client_assertion",
	"client_assertion_type", "post_logout_redirect_uri", "loginName", "password", "newPassword", "repeatPassword",
	"credential", "do", "id", "email", "org", "key", "trial", "sid", "lang"}

// TestStrangersCauseNoErrorsInTheLog: an ERROR in the log is a fault of ours, and an operator is woken by it. Nobody
// causes one by what they send.
func TestStrangersCauseNoErrorsInTheLog(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		b := w.browser()
		state := w.leaves(b)
		paths := w.server.Handler().(*web.Front).Next.(*web.Site).Paths()
		for _, path := range append(paths, "/login/idp/none/callback", "/login/idp/none/logout",
			"/login/idp/"+strings.Repeat("x", 300)+"/callback", "/v1/sessions", "/v1/registrations",
			"/v1/sessions/_provider") {
			for _, at := range strings.Split(strings.ReplaceAll(path, "*", w.idp)+"\n"+strings.ReplaceAll(path, "*",
				"%ff"), "\n") {
				for i, value := range broken(state) {
					all, some := url.Values{}, url.Values{}
					for n, name := range parameters {
						if all.Set(name, value); (n+i)%3 == 0 {
							some.Set(name, value)
						}
					}
					from := []*browser{b, w.browser()}[i%2]
					headers := []string{"Authorization",
						"Bearer " + strings.ReplaceAll(url.QueryEscape(value), "%", "")}
					from.send(http.MethodGet, at+"?"+some.Encode(), nil)
					from.send(http.MethodGet, at+"?"+all.Encode(), nil, headers...)
					from.send(http.MethodPost, at, some)
					from.send(http.MethodPost, at+"?"+some.Encode(), all, headers...)
				}
			}
		}
		// What comes back from a provider, and what its server sends.
		for _, token := range []string{"", "x.y.z", w.portal.Token("another", "jo", nil),
			w.portal.Token(w.idp, "", nil), w.portal.Token(w.idp, "jo", map[string]any{"exp": 1}),
			w.portal.Token(w.idp, "jo", map[string]any{"iss": 7})} {
			b.send(http.MethodGet, callbackOf(w.idp, w.leaves(b)), nil, "Authorization", "Bearer "+token)
			w.browser().send(http.MethodPost, "/login/idp/"+w.idp+"/logout", url.Values{"logout_token": {token}})
		}
		b.send(http.MethodGet, callbackOf(w.idp, w.leaves(b))+"&error=access_denied", nil)
		if !w.log.Has("PROVIDER_SIGN_IN_REFUSED") {
			t.Error("the log does not tell of refusals")
		}
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, "level=ERROR") || strings.Contains(line, `"level":"ERROR"`) {
				t.Error(line)
			}
		}
	})
}
