package hosted

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// The clock of a node jumps by minutes, hours and years, in both directions. People sign in and change things at any
// time, tokens end by the clock, the node is ready, and the log stays in order.
func TestAClockThatJumps(t *testing.T) {
	const day = 24 * time.Hour
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		clock := testkit.NewClock(time.Now())
		config := server.Config{Listen: "localhost:0", Clock: clock.Now}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		w := open(t, config)
		shop, someone := w.application("Shop"), w.person(w.org, true)
		var held []string // tokens
		for _, jump := range []time.Duration{0, 20 * time.Minute, -2 * time.Hour, 3 * time.Hour, 400 * day, -400 * day,
			-10 * 365 * day, 10 * 365 * day} {
			clock.Advance(jump)
			tokens := w.browser().authorize(shop).signIn(someone.name, password).tokens(shop)
			me := caller{world: w}
			session, _ := me.call("POST", "/v1/sessions",
				map[string]any{"loginName": someone.name, "password": password})["token"].(string)
			if session == "" || tokens["id_token"] == nil {
				t.Fatalf("after a jump of %v nobody can sign in: %v", jump, tokens)
			}
			me.token = session
			me.call("PUT", "/v1/users/me/profile",
				map[string]any{"firstName": "Jo", "lastName": "Doe", "displayName": "Jo after " + jump.String()})
			if user, _ := me.call("GET", "/v1/users/me", nil)["user"].(map[string]any); user == nil {
				t.Errorf("after a jump of %v the new session is not known", jump)
			}
			for _, token := range held { // they may have ended, and nothing worse: call takes 200 and 401
				(caller{world: w, token: token}).call("GET", "/v1/users/me", nil)
			}
			if jump == 400*day {
				for i, token := range held {
					if answer := (caller{world: w, token: token}).call("GET", "/v1/users/me",
						nil); answer["user"] != nil {
						t.Errorf("session %d lives for %v", i, jump)
					}
				}
			}
			held = append(held, session)
			resp, err := http.Get(w.url + "/readyz")
			must(t, err)
			var said map[string]any
			must(t, json.NewDecoder(resp.Body).Decode(&said))
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("after a jump of %v: %v", jump, said)
			}
		}
		last := int64(0)
		for _, e := range w.history(t, someone.id)[someone.id] {
			if e.Time < last {
				t.Errorf("event %d is from before the one before it", e.Sequence)
			}
			last = e.Time
		}
		if _, err := w.server.Store().RebuildCheck(t.Context()); err != nil {
			t.Error(err)
		}
		testkit.Await(t, "the log is sealed, and as it was written", func() bool {
			report, err := w.server.Store().Verify(t.Context(), proof.Options{})
			must(t, err)
			return report.Unsealed == 0
		})
	})
}
