package hosted

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// json calls an operation with JSON, as somebody or as nobody.
func (w *world) json(method, path string, in map[string]any, token ...string) *page {
	w.t.Helper()
	body, err := json.Marshal(in)
	must(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(body))
	must(w.t, err)
	r.Header.Set("Content-Type", "application/json")
	if len(token) > 0 {
		r.Header.Set("Authorization", "Bearer "+token[0])
	}
	resp, err := client.Do(r)
	must(w.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(w.t, err)
	p := &page{browser: w.browser(), status: resp.StatusCode, header: resp.Header, body: string(answer), path: path}
	must(w.t, json.Unmarshal(answer, &p.json))
	return p
}

// api calls an operation as the first administrator's service user.
func (w *world) api(method, path string, in map[string]any) map[string]any {
	w.t.Helper()
	return w.json(method, path, in, w.server.FirstAdmin.Token).shows(200).json
}

// federatedWorlds are two installations, the second of which is a provider of the first.
type federatedWorlds struct {
	*world
	up  *world
	idp string
	app string // at the provider
}

func withProvider(t *testing.T, config server.Config) *federatedWorlds {
	t.Helper()
	config.OutboundAllow = []string{"127.0.0.0/8"}
	f := &federatedWorlds{world: open(t, config), up: open(t, server.Config{OutboundAllow: []string{"127.0.0.0/8"}})}
	made := f.up.api("POST", "/v1/apps",
		map[string]any{"name": "Corp", "type": "APPLICATION_TYPE_WEB",
			"redirectUris": []string{"http://127.0.0.1:1/callback"}})
	f.app = made["appId"].(string)
	f.idp = f.api("POST", "/v1/idps/oidc",
		map[string]any{"name": "Upstream", "issuer": f.up.url, "clientId": f.app, "clientSecret": made["clientSecret"],
			"autoRegister": true})["idpId"].(string)
	at := f.url + "/login/idp/" + f.idp
	f.up.api("PATCH", "/v1/apps/"+f.app,
		map[string]any{"redirectUris": []string{at + "/callback"}, "backChannelLogoutUri": at + "/logout",
			"updateMask": "redirectUris,backChannelLogoutUri"})
	return f
}

// through signs somebody in to an application through the provider, and gives the browser at the provider, too.
func (f *federatedWorlds) through(app string, who person) (tokens map[string]any, there *browser) {
	f.t.Helper()
	here, there := f.browser(), f.up.browser()
	to := here.authorize(app).shows(200).press().next()
	back := there.get(strings.TrimPrefix(to, f.up.url)).signIn(who.name, password)
	if back.status == 200 {
		back.path = back.next()
	}
	arrived := here.get(strings.TrimPrefix(back.path, f.url))
	if strings.Contains(arrived.body, "Create your account") { // the first time
		arrived = arrived.creates()
	}
	return arrived.tokens(app), there
}

// Another Signet is the provider, and says when somebody signs out there.
func TestASignOutAtTheProviderEndsTheSessionHere(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		config := server.Config{}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		f := withProvider(t, config)
		told := f.ear("Shop")
		shop := told.client
		jo, ann := f.up.person(f.up.org, true), f.up.person(f.up.org, true)
		gone, there := f.through(shop, jo)
		stays, _ := f.through(shop, ann)
		elsewhere, _ := f.through(shop, jo) // another session there
		if !f.counts(gone["access_token"]) || !f.counts(stays["access_token"]) {
			t.Fatal("the tokens do not count")
		}
		p := there.get("/logout")
		p.post("do", "end", "id", p.hidden("id")).shows(200, "You are signed out")
		told.next() // applications here are told in turn
		if f.counts(gone["access_token"]) {
			t.Error("the session goes on")
		}
		if !f.counts(stays["access_token"]) || !f.counts(elsewhere["access_token"]) {
			t.Error("another session has ended, too")
		}
		events, err := f.server.Store().Events(t.Context(), 0, 10000)
		must(t, err)
		ended := 0
		for _, e := range events {
			if e.Type == "sign_in.session_ended.v1" {
				if ended++; e.Actor != event.System {
					t.Errorf("it is recorded as done by %s", e.Actor)
				}
			}
		}
		if ended != 1 {
			t.Errorf("%d ends are recorded", ended)
		}
	})
}

func TestWhatIsNoLogoutTokenIsRefusedWithoutDetail(t *testing.T) {
	f := withProvider(t, server.Config{})
	at := "/login/idp/" + f.idp + "/logout"
	for name, tt := range map[string]struct {
		method, path string
		form         []string
		headers      []string
		want         int
	}{
		"nothing": {"POST", at, nil, nil, 400},
		"garbage": {"POST", at, []string{"logout_token", "garbage"}, nil, 400},
		"garbage from elsewhere": {"POST", at, []string{"logout_token", "garbage"},
			[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 400},
		"in the query": {"POST", at + "?logout_token=garbage", nil, nil, 400},
		"of no provider": {"POST", "/login/idp/idp_none/logout",
			[]string{"logout_token", "garbage"}, nil, 400},
		"of a name that is too long": {"POST", "/login/idp/" + strings.Repeat("x", 300) + "/logout",
			[]string{"logout_token", "garbage"}, nil, 400},
		"read": {"GET", at, nil, nil, 405},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.browser().send(tt.method, tt.path, values(tt.form...), tt.headers...)
			if got.status != tt.want || got.body != "" || got.header.Get("Cache-Control") != "no-store" ||
				len(got.header.Values("Set-Cookie")) > 0 {
				t.Errorf("got %d %q %v", got.status, got.body, got.header)
			}
		})
	}
	twice := f.browser().send("POST", at, map[string][]string{"logout_token": {"a", "b"}})
	if twice.status != 400 {
		t.Errorf("two at once: %d", twice.status)
	}
}

func TestANetworkSendsSoManyLogoutTokens(t *testing.T) {
	clock := testkit.NewClock(time.Now()) // nothing is given back meanwhile
	f := withProvider(t, server.Config{StartsPerMinute: 10, Clock: clock.Now})
	last := 0
	for range 15 {
		got := f.browser().send("POST", "/login/idp/"+f.idp+"/logout", values("logout_token", "garbage"))
		if last = got.status; last == 429 && got.header.Get("Retry-After") == "" {
			t.Error("it is not said when to come again")
		}
	}
	if last != 429 {
		t.Errorf("the last one got %d", last)
	}
}
