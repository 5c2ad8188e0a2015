package hosted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/portal"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// federated is a world whose people can come through a portal.
type federated struct {
	*world
	portal *portal.Portal
	idp    string
	shop   string
	nodes  []string // where they listen
	token  string   // of an owner
}

// federatedOn starts a server on a database, on PostgreSQL two of them.
func federatedOn(t *testing.T, db testdb.Database) *federated {
	t.Helper()
	config := server.Config{Data: server.Data{MasterKey: string(secret.NewMasterKey().Text())},
		OutboundAllow: []string{"127.0.0.0/8", "::1/128"}, StartsPerMinute: 1_000_000}
	if db.Engine == testdb.Postgres {
		config.Database = db.URL
	}
	w := &federated{world: open(t, config), portal: portal.Start(t)}
	w.nodes = append(w.nodes, w.url)
	if db.Engine == testdb.Postgres {
		config.ExternalURL = w.url
		w.nodes = append(w.nodes, "http://"+servertest.Start(t, config, w.log).Addr().String())
	}
	w.token = w.server.FirstAdmin.Token
	w.idp = w.provider("Portal")
	w.shop = w.application("Shop")
	return w
}

func (w *federated) provider(name string) string {
	w.t.Helper()
	config := w.portal.Config(name, "")
	config["autoRegister"] = true
	return w.api("POST", "/v1/idps/jwt", config)["idpId"].(string)
}

// api calls the API as an owner.
func (w *federated) api(method, path string, body any) map[string]any {
	w.t.Helper()
	var text []byte
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		must(w.t, err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(text))
	must(w.t, err)
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	must(w.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(w.t, err)
	var read map[string]any
	if err := json.Unmarshal(answer, &read); err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return read
}

// failures are the checks that refused a sign-in, as administrators see them.
func (w *federated) failures() (checks []string) {
	w.t.Helper()
	events, _ := w.api("GET", "/v1/events?types=idp_sign_in.*&pageSize=100", nil)["events"].([]any)
	for _, e := range events {
		payload, _ := e.(map[string]any)["payload"].(map[string]any)
		checks = append(checks, fmt.Sprint(payload["check"]))
	}
	return checks
}

// leaves begins a sign-in in a browser, presses the button, and gives the state that the provider gets.
func (w *federated) leaves(b *browser) (state string) {
	w.t.Helper()
	page := b.authorize(w.shop).shows(200, "<bdi>Portal</bdi>")
	return w.sent(page.press(w.idp))
}

func (w *federated) sent(p *page) (state string) {
	w.t.Helper()
	to, err := url.Parse(p.next())
	must(w.t, err)
	if !strings.HasPrefix(to.String(), w.portal.Address("/login")) {
		w.t.Fatalf("sent to %s: %d %s", to, p.status, p.body)
	}
	return to.Query().Get("state")
}

// returns comes back from the provider with a new token.
func (w *federated) returns(b *browser, idp, state, subject string) *page {
	w.t.Helper()
	return b.send(http.MethodGet, callbackOf(idp, state), nil, "Authorization",
		"Bearer "+w.portal.Token(idp, subject, nil))
}

func callbackOf(idp, state string) string {
	return "/login/idp/" + idp + "/callback?" + url.Values{"state": {state}}.Encode()
}

// register makes an account for somebody, by signing in.
func (w *federated) register(subject string) {
	w.t.Helper()
	b := w.browser()
	if code := w.returns(b, w.idp, w.leaves(b), subject).follow().creates().arrival(callback).Get("code"); code == "" {
		w.t.Fatal("nobody is signed in")
	}
}

// atOnce brings something back many times at the same moment, to all nodes, and counts the sessions that come of it.
func (w *federated) atOnce(jar map[string]string, times int, path func(i int) string,
	token func(i int) string) (sessions int) {
	w.t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range times {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.nodes[i%len(w.nodes)]+path(i), nil)
		must(w.t, err)
		r.Header.Set("Authorization", "Bearer "+token(i))
		for name, value := range jar {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		all.Go(func() {
			<-begin
			resp, err := client.Do(r)
			if err != nil {
				w.t.Error(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			mu.Lock()
			defer mu.Unlock()
			if slices.ContainsFunc(resp.Cookies(),
				func(c *http.Cookie) bool { return c.Name == "__Host-signet" && c.Value != "" && c.MaxAge >= 0 }) {
				sessions++
			}
		})
	}
	close(begin)
	all.Wait()
	return sessions
}

func TestWhatAProviderAnswersCountsOnceOnAllNodes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		w.register("ana")
		const times = 64
		t.Run("one state, with a token each", func(t *testing.T) {
			b := w.browser()
			state := w.leaves(b)
			if n := w.atOnce(b.jar, times, func(int) string { return callbackOf(w.idp, state) },
				func(int) string { return w.portal.Token(w.idp, "ana", nil) }); n != 1 {
				t.Errorf("it let %d in", n)
			}
		})
		t.Run("one token, with a state each", func(t *testing.T) {
			b := w.browser()
			states := make([]string, times)
			for i := range states {
				states[i] = w.leaves(b)
			}
			token := w.portal.Token(w.idp, "ana", nil)
			if n := w.atOnce(b.jar, times, func(i int) string { return callbackOf(w.idp, states[i]) },
				func(int) string { return token }); n != 1 {
				t.Errorf("it let %d in", n)
			}
		})
		if found := w.failures(); !slices.Contains(found, "state_used") { // the others wait for a minute to end
			t.Errorf("administrators see %q", found)
		}
	})
}

func TestASignInThroughAProviderThatSomethingHappensTo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		w.register("ana")
		second := w.provider("Second")
		t.Run("it is finished at the address of another provider", func(t *testing.T) {
			b := w.browser()
			w.returns(b, second, w.leaves(b), "ana").shows(400, "too long")
		})
		t.Run("it is finished in another browser", func(t *testing.T) {
			state := w.leaves(w.browser())
			other := w.browser()
			w.leaves(other)
			w.returns(other, w.idp, state, "mallory").shows(400, "too long")
		})
		t.Run("it is finished in a browser that was never here", func(t *testing.T) {
			w.returns(w.browser(), w.idp, w.leaves(w.browser()), "mallory").shows(400)
		})
		t.Run("the provider is changed between start and callback", func(t *testing.T) {
			b := w.browser()
			state := w.leaves(b)
			w.api("PATCH", "/v1/idps/"+w.idp,
				map[string]any{"jwt": map[string]any{"audience": "elsewhere"}, "updateMask": "jwt.audience"})
			w.api("PATCH", "/v1/idps/"+w.idp,
				map[string]any{"jwt": map[string]any{"audience": ""}, "updateMask": "jwt.audience"})
			w.returns(b, w.idp, state, "ana").shows(400, "too long")
		})
		t.Run("the provider is switched off between start and callback", func(t *testing.T) {
			b := w.browser()
			state := w.leaves(b)
			w.api("POST", "/v1/idps/"+w.idp+"/_deactivate", map[string]any{})
			if p := w.returns(b, w.idp, state, "ana"); p.status != 404 || p.jar["__Host-signet"] != "" {
				t.Errorf("%d %s", p.status, p.body)
			}
			w.api("POST", "/v1/idps/"+w.idp+"/_reactivate", map[string]any{})
		})
		t.Run("the provider is switched off between code and token", func(t *testing.T) {
			b := w.browser()
			code := w.returns(b, w.idp, w.leaves(b), "ana").follow().arrival(callback).Get("code")
			exchange := func() *page {
				return w.world.browser().send(http.MethodPost, "/oauth/token",
					values("grant_type", "authorization_code", "client_id", w.shop, "code", code,
						"redirect_uri", callback, "code_verifier", verifier))
			}
			w.api("POST", "/v1/idps/"+w.idp+"/_deactivate", map[string]any{})
			w.api("POST", "/v1/idps/"+w.idp+"/_reactivate", map[string]any{})
			if got := exchange(); got.status != 400 || got.json["error"] != "invalid_grant" {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
		t.Run("the provider is switched off after the token", func(t *testing.T) {
			b := w.browser()
			access := w.returns(b, w.idp, w.leaves(b), "ana").follow().tokens(w.shop)["access_token"]
			if !w.counts(access) {
				t.Fatal("the token does not count")
			}
			w.api("POST", "/v1/idps/"+w.idp+"/_deactivate", map[string]any{})
			w.api("POST", "/v1/idps/"+w.idp+"/_reactivate", map[string]any{})
			if w.counts(access) {
				t.Error("the token goes on")
			}
		})
		// Anybody can send what comes from another browser: it is no event.
		for check, seen := range map[string]bool{"provider": true, "browser": false, "changed": true} {
			if found := w.failures(); slices.Contains(found, check) != seen {
				t.Errorf("administrators see %s: %t: %q", check, !seen, found)
			}
		}
	})
}

func TestAThousandSignInsThroughAProviderFetchItsKeysOnce(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		w.register("ana")
		began := time.Now()
		for range 1000 {
			b := w.browser()
			start := b.get("/login/idp/" + w.idp + "?to=%2Faccount").press()
			if p := w.returns(b, w.idp, w.sent(start), "ana"); p.jar["__Host-signet"] == "" {
				t.Fatalf("%d %s", p.status, p.body)
			}
		}
		t.Logf("1000 sign-ins, one after another: %s", time.Since(began).Round(time.Millisecond))
		if n := w.portal.Fetched(); n != 1 {
			t.Errorf("its keys were fetched %d times", n)
		}
	})
}

func TestASlowProviderCostsNobodyElseASignIn(t *testing.T) {
	w := federatedOn(t, testdb.New(t, testdb.SQLite))
	jo := w.person(w.org, true)
	release := w.portal.Hold()
	defer release()
	const many = 64
	b := w.browser()
	states := make([]string, many)
	for i := range states {
		states[i] = w.leaves(b)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.atOnce(b.jar, many, func(i int) string { return callbackOf(w.idp, states[i]) },
			func(int) string { return w.portal.Token(w.idp, "ana", nil) })
	}()
	testkit.Await(t, "the provider is asked", func() bool { return w.portal.Waiting() > 0 })
	beside := 0
	for range 20 {
		if w.session(jo); w.portal.Waiting() == 0 {
			break // the server has given the provider up
		}
		beside++
	}
	release()
	testkit.Receive(t, done, "all are answered")
	t.Logf("%d password sign-ins beside %d that wait for a provider", beside, many)
	if beside == 0 {
		t.Error("a password sign-in waits until the provider is given up")
	}
}

// session signs somebody in over the API.
func (w *federated) session(p person) {
	w.t.Helper()
	w.api("POST", "/v1/sessions", map[string]any{"loginName": p.name, "password": password})
}

// A name with a proven domain leads to the provider of the organization, but nobody who has come back from there in
// vain is sent there again: the password of a last owner counts.
func TestNobodyIsSentToAProviderAgainAndAgain(t *testing.T) {
	w := federatedOn(t, testdb.New(t, testdb.SQLite))
	for _, way := range []string{"DNS", "the installation's word"} {
		w.sentOnceByDomain(way)
	}
}

func (w *federated) sentOnceByDomain(way string) {
	corp, domain := w.organization()
	w.api("PUT", "/v1/orgs/"+corp+"/policy", map[string]any{"policy": map[string]any{"defaultIdpId": w.idp}})
	w.browser().get("/login?to=/account").post("loginName", "whoever@"+domain).shows(200, `name="password"`)
	leads := map[string]event.Fact[org.Org]{
		"DNS":                     org.DomainVerified{Domain: domain, Proven: true},
		"the installation's word": org.DomainRoutingSet{Domain: domain, Routed: &org.Routing{By: "usr_x", At: 1}},
	}
	w.do(event.Command{
		Write:  []event.Ref{org.Kind.Ref(corp)},
		Claims: []event.Claim{org.ProvenClaim(domain)},
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Get(tx, corp)
			if err != nil {
				return err
			}
			return o.Append(leads[way])
		},
	})
	b := w.browser()
	state := w.sent(b.get("/login?to=/account").post("loginName", "whoever@"+domain).shows(200))
	failed := b.get("/login/idp/"+w.idp+"/callback?"+url.Values{"state": {state},
		"error": {"access_denied"}}.Encode()).shows(400, "cancelled")
	b.get(html.UnescapeString(regexp.MustCompile(`href="(/login\?[^"]*)"`).FindStringSubmatch(failed.body)[1])).shows(200, `name="loginName"`).
		post("loginName", "whoever@"+domain).shows(200, `name="password"`)
	// A name that an application hints at leads there by itself only where the provider was chosen before, as it was
	// here, nobody is signed in, and no other way is wanted.
	shop := w.application("Shop", func(s *app.Settings) { s.AllOrganizations = true })
	hinted := func(b *browser, leads bool, more ...string) *page {
		t := b.authorize(shop, append(more, "login_hint", "whoever@"+domain)...)
		if there := strings.HasPrefix(t.header.Get("Location"), w.portal.Address("/login")); there != leads {
			w.t.Errorf("%s: a hint leads there: %t; %s", way, there, t.body)
		}
		return t
	}
	hinted(w.browser(), false).shows(200, `name="loginName"`, "whoever@"+domain)
	hinted(w.signedIn(w.person(w.org, true)), false, "prompt", "login")
	hinted(b, true)
	b.authorize(shop, "login_hint", "whoever@elsewhere.test").shows(200, `name="loginName"`)
	// whoever only wants another account is
	w.browser().get("/login?other=1&to=/account").post("loginName", "whoever@"+domain).shows(200,
		w.portal.Address("/login"))
}

// The 21st provider of an organization is one like the others: on the page, by its name, by the hint of an application,
// by a policy, for linking and for invitations.
func TestEveryProviderOfManyIsReached(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		home := w.server.FirstAdmin.OrgID
		ids := []string{w.idp}
		for i := range 24 {
			ids = append(ids, w.provider(fmt.Sprintf("Office %02d", i)))
		}
		last := ids[24]
		shown := func(p *page) (n int, hasLast bool) {
			found := regexp.MustCompile(`(?:/login/idp/|link=)(idp_\w+)`).FindAllStringSubmatch(p.body, -1)
			return len(found), slices.ContainsFunc(found, func(m []string) bool { return m[1] == last })
		}
		next := regexp.MustCompile(`<p class="aside"><a href="([^"]*after=[^"]*)">`)
		jo := w.person(home, false)
		for name, first := range map[string]func(b *browser) *page{
			"sign-in": func(b *browser) *page { return b.authorize(w.shop) },
			"account": func(b *browser) *page {
				b.get("/login?to=/account/security").signIn(jo.name, password)
				return b.get("/account/security")
			},
		} {
			b := w.browser()
			p := first(b).shows(200, "Find your provider")
			if n, has := shown(p); n != 20 || has {
				t.Errorf("%s: %d on the first page, the last one: %t", name, n, has)
			}
			more := next.FindStringSubmatch(p.body)
			if more == nil {
				t.Fatalf("%s: nothing leads on from %s", name, p.body)
			}
			if n, has := shown(b.get(html.UnescapeString(more[1])).shows(200)); n != 5 || !has {
				t.Errorf("%s: %d on the second page, the last one: %t", name, n, has)
			}
			// The form sends what it hides along.
			path, _, _ := strings.Cut(p.path, "?")
			query := url.Values{"provider": {"OFFICE 23"}}
			for _, m := range hiddenField.FindAllStringSubmatch(regexp.MustCompile(`(?s)<form method="get".*?</form>`).FindString(p.body), -1) {
				query.Set(m[1], html.UnescapeString(m[2]))
			}
			if n, has := shown(b.get(path + "?" + query.Encode()).shows(200)); n != 1 || !has {
				t.Errorf("%s: %d are found by name, the last one: %t", name, n, has)
			}
			query.Set("provider", "nobody")
			b.get(path+"?"+query.Encode()).shows(200, "No provider has a name that begins with this.")
			query.Set("provider", strings.Repeat("ﷺ", 300))
			query.Set("after", strings.Repeat("x", 300))
			b.get(path + "?" + query.Encode()).shows(200)
		}
		// An application that wants one gets it, and a policy that names one offers it.
		if n, has := shown(w.browser().authorize(w.shop, "idp_hint", last).shows(200, "Continue with",
			"Office 23")); n != 1 || !has {
			t.Errorf("idp_hint offers %d, the one that was named: %t", n, has)
		}
		w.api("PUT", "/v1/orgs/"+home+"/policy", map[string]any{"policy": map[string]any{"idpIds": []string{last}}})
		if n, has := shown(w.browser().authorize(w.shop).shows(200)); n != 1 || !has {
			t.Errorf("a policy that names the last one offers %d, that one: %t", n, has)
		}
	})
}
