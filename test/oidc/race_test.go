package oidc_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
)

const parallel = 64

// many sends the same form so many times at once, to all nodes in turn, and gives the answers that were a success. All
// others have to be one of these refusals, or invalid_grant.
func (w *world) many(nodes []*node, form url.Values, refusals ...string) (successes []reply) {
	w.t.Helper()
	var mu sync.Mutex
	var wait sync.WaitGroup
	start := make(chan struct{})
	for i := range parallel {
		wait.Go(func() {
			<-start
			r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, nodes[i%len(nodes)].url+"/oauth/token",
				strings.NewReader(form.Encode()))
			if err != nil {
				w.t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			got, err := try(r)
			if err != nil {
				w.t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if got.status == http.StatusOK {
				successes = append(successes, got)
			} else if word, _ := got.json["error"].(string); got.status != http.StatusBadRequest &&
				got.status != http.StatusUnauthorized || !slices.Contains(append(refusals, "invalid_grant"), word) {
				w.t.Errorf("got %+v", got)
			}
		})
	}
	close(start)
	wait.Wait()
	return successes
}

// nodes are one or, where several can share a database, two.
func (w *world) nodes(db testdb.Database) []*node {
	if db.Engine == testdb.Postgres {
		return []*node{w.node, w.start()}
	}
	return []*node{w.node}
}

func (w *world) active(access any) bool {
	w.t.Helper()
	text, _ := access.(string)
	return w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+text).status == http.StatusOK
}

func TestAPushedRequestWorksOnceHoweverManyBrowsersBringIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		nodes := w.nodes(db)
		id, _ := w.application(app.SPA, app.NoAuth)
		pushed := w.post("/oauth/par", url.Values{"client_id": {id}, "response_type": {"code"},
			"redirect_uri": {callback}, "scope": {"openid"}, "code_challenge_method": {"S256"},
			"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}})
		uri, _ := pushed.json["request_uri"].(string)
		query := url.Values{"client_id": {id}, "request_uri": {uri}}.Encode()
		var through atomic.Int32
		var wait sync.WaitGroup
		start := make(chan struct{})
		for i := range parallel {
			wait.Go(func() {
				<-start
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
					nodes[i%len(nodes)].url+"/oauth/authorize?"+query, nil)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := try(r)
				switch {
				case err != nil:
					t.Error(err)
				case got.status == http.StatusSeeOther && strings.Contains(got.header.Get("Location"), "/login?request="):
					through.Add(1)
				case got.status != http.StatusBadRequest:
					t.Errorf("got %+v", got)
				}
			})
		}
		close(start)
		wait.Wait()
		if n := through.Load(); n != 1 {
			t.Errorf("%d got through", n)
		}
	})
}

func TestACodeWorksOnceAndARefreshTokenHasOneAnswerHoweverManyTry(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		nodes := w.nodes(db)
		id, _ := w.application(app.SPA, app.NoAuth)
		p := w.party(id, "", "offline_access")
		t.Run("a code", func(t *testing.T) {
			code, verifier := p.code(w.in)
			given := w.many(nodes,
				url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code},
					"redirect_uri": {callback}, "code_verifier": {verifier}})
			if len(given) != 1 {
				t.Fatalf("%d got tokens", len(given))
			}
			if w.active(given[0].json["access_token"]) {
				t.Error("what the stolen code led to lives on")
			}
			if got := w.post("/oauth/token",
				url.Values{"grant_type": {"refresh_token"}, "client_id": {id},
					"refresh_token": {given[0].json["refresh_token"].(string)}}); got.status != 400 {
				t.Errorf("its refresh token lives on: %+v", got)
			}
		})
		t.Run("a refresh token", func(t *testing.T) {
			tokens := p.tokens(w.in)
			shown := func(token any) url.Values {
				return url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {token.(string)}}
			}
			given := w.many(nodes, shown(tokens.RefreshToken))
			if len(given) != parallel ||
				slices.ContainsFunc(given, func(r reply) bool { return r.body != given[0].body }) {
				t.Fatalf("%d got tokens, not all the same", len(given))
			}
			if !w.active(given[0].json["access_token"]) || !w.active(tokens.AccessToken) {
				t.Error("an honest client lost its tokens")
			}
			// Once the successor is used, the one before is one that somebody has stolen.
			next := w.post("/oauth/token", shown(given[0].json["refresh_token"]))
			if next.status != 200 || next.json["refresh_token"] == given[0].json["refresh_token"] {
				t.Fatalf("got %+v", next)
			}
			if stolen := w.many(nodes, shown(tokens.RefreshToken)); len(stolen) != 0 {
				t.Errorf("%d got tokens", len(stolen))
			}
			if w.active(next.json["access_token"]) || w.active(given[0].json["access_token"]) {
				t.Error("an access token of the family lives on")
			}
			if got := w.post("/oauth/token", shown(next.json["refresh_token"])); got.status != 400 {
				t.Errorf("the refresh token of the family lives on: %+v", got)
			}
		})
		t.Run("an assertion", func(t *testing.T) {
			robot, _, key := w.robot()
			assertion := w.assertion(robot, key, "")
			if given := w.many(nodes,
				url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion},
					"scope": {"openid"}}); len(given) != 1 {
				t.Errorf("%d got tokens", len(given))
			}
			proof := url.Values{
				"grant_type":            {"client_credentials"},
				"client_assertion":      {w.assertion(robot, key, "")},
				"scope":                 {"openid"},
				"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			}
			if given := w.many(nodes, proof, "invalid_client"); len(given) != 1 {
				t.Errorf("%d proved who they are", len(given))
			}
		})
		t.Run("a device code", func(t *testing.T) {
			got := w.post("/oauth/device_authorization", url.Values{"client_id": {id}, "scope": {"openid"}})
			w.visitor(w.userID).goOn(got.json["verification_uri_complete"].(string))
			given := w.many(nodes,
				url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {id},
					"device_code": {got.json["device_code"].(string)}},
				"slow_down", "expired_token")
			if len(given) != 1 {
				t.Errorf("%d got tokens", len(given))
			}
		})
		t.Run("it is on record, once each", func(t *testing.T) {
			c, err := session.Kind.Read(t.Context(), w.server.Store(), session.IDFor(w.userID))
			must(t, err)
			if c == nil || c.Data.Reused != 2 {
				t.Errorf("got %+v", c)
			}
		})
		t.Run("a request", func(t *testing.T) {
			sent := w.get(p.oauth.AuthCodeURL("st") + "&code_challenge_method=S256&code_challenge=" +
				strings.Repeat("A", 43))
			_, rest, _ := strings.Cut(sent.header.Get("Set-Cookie"), "=")
			browser, _, _ := strings.Cut(rest, ";")
			_, request, _ := strings.Cut(sent.header.Get("Location"), "request=")
			in := w.bearer(w.in)
			var wait sync.WaitGroup
			var mu sync.Mutex
			approved := 0
			for i := range 64 {
				wait.Go(func() {
					if _, err := nodes[i%len(nodes)].server.Grants().Approve(t.Context(), request, browser, in,
						nil); err == nil {
						mu.Lock()
						approved++
						mu.Unlock()
					}
				})
			}
			wait.Wait()
			if approved != 1 {
				t.Errorf("%d were approved", approved)
			}
		})
	})
}

func TestTokensStopAtOnceOnEveryNode(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		nodes := w.nodes(db)
		last := nodes[len(nodes)-1]
		id, _ := w.application(app.SPA, app.NoAuth)
		for _, tt := range []struct {
			name    string
			end     func(userID, token string)
			offline bool // whether tokens with offline access stop, too
		}{
			{"the session ends", func(_, token string) {
				must(t, w.server.Grants().Sessions.End(t.Context(), session.Own(w.bearer(token).Caller),
					w.bearer(token).Token.ID))
			}, false},
			{"the consent is withdrawn",
				func(_, token string) {
					must(t, w.server.Grants().Withdraw(t.Context(), w.bearer(token).Caller, id))
				}, true},
			{"the user is switched off and on", func(userID, _ string) { w.toggle(userID) }, true},
		} {
			t.Run(tt.name, func(t *testing.T) {
				userID := w.person()
				in := w.signIn(userID)
				short, long := w.party(id, "").tokens(in), w.party(id, "", "offline_access").tokens(in)
				alive := func(access string) bool {
					got := w.get(last.url+"/oauth/userinfo", "Authorization", "Bearer "+access)
					return got.status == 200
				}
				if !alive(short.AccessToken) || !alive(long.AccessToken) {
					t.Fatal("they do not work at all")
				}
				tt.end(userID, in)
				if alive(short.AccessToken) || alive(long.AccessToken) == tt.offline {
					t.Errorf("without offline access %v, with it %v", alive(short.AccessToken), alive(long.AccessToken))
				}
				got := w.request("POST", last.url+"/oauth/token",
					url.Values{"grant_type": {"refresh_token"}, "client_id": {id},
						"refresh_token": {long.RefreshToken}}.Encode(),
					"Content-Type", "application/x-www-form-urlencoded")
				if (got.status == 400) != tt.offline {
					t.Errorf("refreshed: %+v", got)
				}
			})
		}
		t.Run("the organization is switched off", func(t *testing.T) {
			in := w.signIn(w.userID)
			tokens := w.party(id, "", "offline_access").tokens(in)
			w.do(event.Command{Write: []event.Ref{org.Kind.Ref(w.org)}, Decide: func(tx *event.Tx) error {
				o, err := org.Kind.Get(tx, w.org)
				if err != nil {
					return err
				}
				return o.Append(org.Deactivated{}, org.Reactivated{})
			}})
			if w.active(tokens.AccessToken) {
				t.Error("its token lives on")
			}
		})
	})
}

// toggle switches a user off and on again.
func (w *world) toggle(userID string) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{user.Kind.Ref(userID)}, Decide: func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, userID)
		if err != nil {
			return err
		}
		return u.Append(user.Deactivated{}, user.Reactivated{})
	}})
}
