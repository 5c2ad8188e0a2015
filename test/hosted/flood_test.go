package hosted

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
)

func TestAFloodFromOneNetworkIsHeldUp(t *testing.T) {
	const limit = 20
	w := withMail(t, func(c *server.Config) { c.StartsPerMinute, c.TrustedProxies = limit, []string{"127.0.0.1"} })
	shop := w.application("Shop")
	pushed := url.Values{
		"client_id":             {shop},
		"redirect_uri":          {callback},
		"response_type":         {"code"},
		"code_challenge_method": {"S256"},
		"code_challenge":        {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
	}
	wish := pushed.Encode()
	for i, way := range []struct {
		name         string
		method, path string
		form         url.Values
		fine         int
		says         string
	}{
		{"signing in", http.MethodGet, "/oauth/authorize?" + wish, nil, http.StatusSeeOther, "Too many attempts"},
		{"signing out", http.MethodGet, "/oauth/logout", nil, http.StatusSeeOther, "Too many attempts"},
		{"a pushed request", http.MethodPost, "/oauth/par", pushed, http.StatusCreated,
			`"error":"temporarily_unavailable"`},
		{"a device", http.MethodPost, "/oauth/device_authorization", values("client_id", shop), http.StatusOK,
			`"error":"temporarily_unavailable"`},
		{"a forgotten password", http.MethodPost, "/forgot", values("loginName", "nobody"), http.StatusOK,
			"Too many attempts"},
	} {
		t.Run(way.name, func(t *testing.T) {
			from := func(address string) *page {
				b := w.browser()
				b.t = t
				return b.send(way.method, way.path, way.form, "X-Forwarded-For", address)
			}
			here, there := "192.0.2."+strconv.Itoa(i), "198.51.100."+strconv.Itoa(i)
			answer := from(here).shows(way.fine)
			for range 10 * limit {
				if answer = from(here); answer.status != way.fine {
					break
				}
			}
			refused := answer.shows(http.StatusTooManyRequests, way.says)
			if after, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
				t.Errorf("it may come again after %q seconds", refused.header.Get("Retry-After"))
			}
			from(there).shows(way.fine)
		})
	}
}
