//go:build cost

package program

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// auc is how well times tell two kinds of requests apart: 0.5 not at all, 0 or 1 always.
func auc(a, b []time.Duration) float64 {
	slices.Sort(a)
	slices.Sort(b)
	below, equal, sum := 0, 0, 0.0
	for _, x := range a {
		for below < len(b) && b[below] < x {
			below++
		}
		equal = max(equal, below)
		for equal < len(b) && b[equal] == x {
			equal++
		}
		sum += float64(below) + float64(equal-below)/2
	}
	return sum / float64(len(a)) / float64(len(b))
}

// Whether somebody has a name must not show in how long an answer takes.
func TestAttackTimesDoNotTellWhichNamesThereAre(t *testing.T) {
	// With 4,000 samples of each kind, an AUC is beyond the bound by chance once in 300,000 times; with 8,000, once in 20
	// billion.
	const samples, most = 8000, 0.03
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, append([]string{"--development"}, behindProxy...)...)
		c := newClient(t, p, s.admin(t).Token)
		names := [2][]string{}
		for i := range 3 {
			name := fmt.Sprintf("somebody%d", i)
			human(t, c, name, "a password of somebody")
			names[0], names[1] = append(names[0], name), append(names[1], fmt.Sprintf("stranger%d", i))
		}
		domain := routedToProvider(t, s, c)
		stranger := c.with("")
		browser := stranger.browser(t)
		for what, act := range map[string]func(name string, n int) (counts bool){
			"asking for a reset by user name": func(name string, n int) bool {
				stranger.from(network(n)).want(t, 200, "POST", "/v1/users/_request_password_reset",
					object{"loginName": name})
				return true
			},
			"asking for a reset by address": func(name string, n int) bool {
				stranger.from(network(n)).want(t, 200, "POST", "/v1/users/_request_password_reset",
					object{"loginName": name + "@mail.example"})
				return true
			},
			"being led to a provider": func(name string, n int) bool {
				seen := stranger.from(network(n)).page(t, browser, "/login?to=/account",
					url.Values{"loginName": {name + "@" + domain}})
				if !strings.Contains(seen, "/oauth/authorize?") {
					t.Fatalf("%s was not led to the provider: %s", name, seen)
				}
				return true
			},
			"being turned away": func(name string, _ int) bool {
				seen, _ := tried(t, stranger.from("192.0.2.7"), "/v1/sessions",
					object{"loginName": name, "password": "wrong"})
				return strings.HasPrefix(seen, "429")
			},
		} {
			var took [2][]time.Duration
			for n := 0; min(len(took[0]), len(took[1])) < samples; n++ {
				kind := rand.IntN(2)
				name := names[kind][rand.IntN(len(names[kind]))]
				begun := time.Now()
				counts := act(name, n)
				if d := time.Since(begun); counts {
					took[kind] = append(took[kind], d)
				}
			}
			got := auc(took[0], took[1])
			t.Logf("%s: AUC %.3f, medians %v and %v", what, got, took[0][len(took[0])/2], took[1][len(took[1])/2])
			if got < 0.5-most || got > 0.5+most {
				t.Errorf("%s: known and unknown names are told apart with an AUC of %.3f", what, got)
			}
		}
	})
}

// routedToProvider gives a domain whose people the organization of the client sends to a provider, on the word of the
// operator. The server is its own provider.
func routedToProvider(t *testing.T, s *site, c *client) (domain string) {
	t.Helper()
	const word = "the very own words of the operator"
	admin := s.admin(t)
	boss := c.with("")
	boss.token = boss.signIn(t, admin.LoginName, admin.Password)
	boss.want(t, 200, "PUT", "/v1/users/me/password", object{"currentPassword": admin.Password, "newPassword": word})
	boss.token = boss.with("").signIn(t, admin.LoginName, word)
	app := c.want(t, 200, "POST", "/v1/apps", object{"name": "Client", "type": "APPLICATION_TYPE_WEB",
		"redirectUris": []string{admin.URL + "/login/provider/callback"}})
	added := c.want(t, 200, "POST", "/v1/idps/oidc", object{"name": "Provider", "issuer": admin.URL,
		"clientId": at[string](t, app, "appId"), "clientSecret": at[string](t, app, "clientSecret")})
	idp := at[string](t, added, "idpId")
	run(t, nil, "idp", "check", idp, "--data-dir", s.dir).fine(t)
	c.want(t, 200, "PUT", "/v1/orgs/"+admin.OrgID+"/policy", object{"policy": object{
		"signInMethods": []string{"SIGN_IN_METHOD_IDENTITY_PROVIDER"}, "idpIds": []string{idp}, "defaultIdpId": idp}})
	domain = "routed.example"
	boss.want(t, 200, "POST", "/v1/orgs/"+admin.OrgID+"/domains", object{"domain": domain, "isVerified": true})
	boss.want(t, 200, "POST", "/v1/orgs/"+admin.OrgID+"/domains/"+domain+"/_set_routing", object{"isRouted": true})
	return domain
}

// browser is how the server knows a browser again.
func (c *client) browser(t *testing.T) []*http.Cookie {
	t.Helper()
	resp, err := c.http.Get(c.base + "/login?to=/account")
	must(t, err)
	must(t, resp.Body.Close())
	return resp.Cookies()
}

// page posts the form of a page, as a browser does, and gives the page that answers.
func (c *client) page(t *testing.T, browser []*http.Cookie, path string, form url.Values) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", c.base+path, strings.NewReader(form.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, cookie := range browser {
		r.AddCookie(cookie)
	}
	resp, err := c.http.Do(r)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(text)
}
