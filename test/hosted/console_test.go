package hosted

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/ui/console"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// consoleOn starts a server on a database, on PostgreSQL two of them, and gives where they listen.
func consoleOn(t *testing.T, db testdb.Database) (w *world, nodes []string) {
	t.Helper()
	config := server.Config{Data: server.Data{MasterKey: string(secret.NewMasterKey().Text())}, Listen: "localhost:0",
		CORSOrigins: []string{"https://app.test"}}
	if db.Engine == testdb.Postgres {
		config.Database = db.URL
	}
	w = open(t, config)
	nodes = append(nodes, w.url)
	if db.Engine == testdb.Postgres {
		config.ExternalURL, config.DataDir = w.url, ""
		nodes = append(nodes, "http://"+servertest.Start(t, config, w.log).Addr().String())
	}
	return w, nodes
}

// ask is a request of the console.
func (b *browser) ask(path, body string, headers ...string) *page {
	b.t.Helper()
	return b.sendText(http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// consoleToken gets a token for the console.
func (b *browser) consoleToken() string {
	b.t.Helper()
	got := b.ask("/console/token", `{}`).shows(200)
	return got.json["token"].(string)
}

// calls sends a request of the API with a token to a node, and gives the status and the reason of a refusal.
func calls(t *testing.T, node, token, method, path, body string) (status int, reason string) {
	t.Helper()
	status, answer := answers(t, node, token, method, path, body)
	details, _ := answer["details"].([]any)
	for _, d := range details {
		if said, _ := d.(map[string]any)["reason"].(string); said != "" {
			reason = said
		}
	}
	return status, reason
}

// answers gives the whole answer.
func answers(t *testing.T, node, token, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, node+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// webCalls sends an empty message by gRPC-Web, and gives its status.
func webCalls(t *testing.T, node, token, procedure string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, node+procedure,
		strings.NewReader("\x00\x00\x00\x00\x00"))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/grpc-web+proto")
	r.Header.Set("X-Grpc-Web", "1")
	resp, err := client.Do(r)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if found := regexp.MustCompile(`(?i)grpc-status: ?(\d+)`).FindSubmatch(body); found != nil {
		return string(found[1])
	}
	return resp.Header.Get("Grpc-Status")
}

// grows makes the proof of a session older than what counts as recent.
func (w *world) grows(sessionID string) {
	w.t.Helper()
	w.do(event.Command{Tokens: []string{sessionID}, Decide: func(tx *event.Tx) error {
		token, err := tx.Token(sessionID)
		if err != nil {
			return err
		}
		proof, err := session.ProofOf(token)
		if err != nil {
			return err
		}
		proof.At -= (16 * time.Minute).Microseconds()
		proof.FirstAt, proof.FactorAt = 0, 0
		text, err := json.Marshal(proof)
		if err != nil {
			return err
		}
		tx.UpdateToken(sessionID, token.Hash, string(text))
		return nil
	}})
}

const me = "/v1/users/me"

func TestTheTokenOfTheConsoleIsTheSession(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w, nodes := consoleOn(t, db)
		last := nodes[len(nodes)-1]
		jo := w.person(w.org, true)
		b := w.signedIn(jo)
		before := w.stored(jo.id)
		got := b.ask("/console/token", `{"returnTo": "/console/users?x=y"}`).shows(200)
		token, id := got.json["token"].(string), b.session()
		expires, err := time.Parse(time.RFC3339, got.json["expiresAt"].(string))
		must(t, err)
		if left := time.Until(expires); left > console.TokenLife || left < console.TokenLife-time.Minute ||
			got.json["sessionId"] != id || got.json["userId"] != jo.id || got.json["name"] != "Jo Doe" ||
			got.json["expiresIn"].(float64) < 240 ||
			got.json["prove"] != "/login?account="+id+"&again=1&to=%2Fconsole%2Fusers%3Fx%3Dy" {
			t.Errorf("got %v", got.json)
		}
		if h := got.header; h.Get("Cache-Control") != "no-store" || h.Get("Set-Cookie") != "" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the headers are %v", h)
		}
		if after := w.stored(jo.id); after != before {
			t.Errorf("%d tokens are stored, %d were before", after, before)
		}
		for _, node := range nodes {
			if status, reason := calls(t, node, token, http.MethodGet, me, ""); status != 200 {
				t.Errorf("REST: %d %s", status, reason)
			}
			if got := webCalls(t, node, token, "/signet.v1.UserService/GetMyUser"); got != "0" {
				t.Errorf("gRPC-Web: %s", got)
			}
		}
		// What asks for a session and a recent proof sees those of the session, as they are now.
		create := `{"name": "x", "expirationDate": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/users/me/tokens", create); status != 200 {
			t.Errorf("with a recent proof: %d %s", status, reason)
		}
		w.grows(id)
		if status, reason := calls(t, last, token, http.MethodPost, "/v1/users/me/tokens", create); status != 403 ||
			reason != "RECENT_PROOF_REQUIRED" {
			t.Errorf("with an old proof: %d %s", status, reason)
		}
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/sessions/_reauthenticate",
			`{"password": "a wrong word"}`); status != 400 {
			t.Errorf("a wrong password: %d %s", status, reason)
		}
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/sessions/_reauthenticate",
			`{"password": "`+password+`"}`); status != 200 {
			t.Errorf("the password: %d %s", status, reason)
		}
		if status, reason := calls(t, last, token, http.MethodPost, "/v1/users/me/tokens", create); status != 200 {
			t.Errorf("with the new proof: %d %s", status, reason)
		}
		b.get("/account/password").shows(200) // and the page has it, too

		// The same with a second factor.
		phone, _ := b.enrol()
		token = b.consoleToken()
		w.grows(b.session())
		if status, reason := calls(t, last, token, http.MethodPost, "/v1/users/me/tokens", create); status != 403 ||
			reason != "RECENT_PROOF_REQUIRED" {
			t.Errorf("with an old factor: %d %s", status, reason)
		}
		proof := `{"totpCode": "` + phone.code() + `"}`
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/sessions/_prove", proof); status != 200 {
			t.Errorf("the factor: %d %s", status, reason)
		}
		if status, reason := calls(t, last, token, http.MethodPost, "/v1/users/me/tokens", create); status != 200 {
			t.Errorf("with the new factor: %d %s", status, reason)
		}
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/sessions/_start_passkey_proof",
			`{}`); status != 400 || reason != "NO_PASSKEY" {
			t.Errorf("a passkey that there is not: %d %s", status, reason)
		}
		// And with a passkey, made and proven in the console.
		device := &factortest.Authenticator{Origin: w.url}
		_, started := answers(t, w.url, token, http.MethodPost, "/v1/users/me/factors/passkey/_start", `{}`)
		credential, err := device.Create(started["creationOptions"].(string))
		must(t, err)
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/users/me/factors/passkey/_confirm",
			`{"name": "x", "credential": `+quoted(credential)+`}`); status != 200 {
			t.Errorf("a passkey: %d %s", status, reason)
		}
		w.grows(b.session())
		_, started = answers(t, w.url, token, http.MethodPost, "/v1/sessions/_start_passkey_proof", `{}`)
		assertion, err := device.Get(started["requestOptions"].(string))
		must(t, err)
		if status, reason := calls(t, last, token, http.MethodPost, "/v1/sessions/_prove",
			`{"assertion": `+quoted(assertion)+`}`); status != 200 {
			t.Errorf("the passkey: %d %s", status, reason)
		}
		if status, reason := calls(t, w.url, token, http.MethodPost, "/v1/users/me/tokens", create); status != 200 {
			t.Errorf("with the passkey: %d %s", status, reason)
		}
		if w.log.Has(token) || w.log.Has(token[8:40]) {
			t.Error("a token is in the log")
		}
	})
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// stored counts what is kept of the sessions of a user.
func (w *world) stored(userID string) int {
	w.t.Helper()
	found, err := w.server.Store().TokensOf(w.t.Context(), userID, string(secret.Session), "", 100)
	must(w.t, err)
	return len(found)
}

func TestTheTokenOfTheConsoleDiesWithTheSession(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w, nodes := consoleOn(t, db)
		here, last := nodes[0], nodes[len(nodes)-1]
		root := w.server.FirstAdmin.Token
		for name, end := range map[string]func(jo person, b *browser, token string){
			"signing out in the console": func(_ person, b *browser, _ string) {
				if got := b.ask("/console/sign_out",
					`{"returnTo": "/console/users"}`).shows(200); got.json["signIn"] != "/login?to=%2Fconsole%2Fusers" || b.jar[sessionCookie] != "" {
					t.Errorf("got %v", got.json)
				}
			},
			"signing out on the page": func(_ person, b *browser, _ string) {
				p := b.get("/logout")
				p.post("do", "end", "id", p.hidden("id")).shows(200)
			},
			"ending itself": func(_ person, b *browser, token string) {
				if status, reason := calls(t, here, token, http.MethodDelete, "/v1/sessions/"+b.session(),
					""); status != 200 {
					t.Errorf("got %d %s", status, reason)
				}
			},
			"another session": func(jo person, b *browser, _ string) {
				if status, reason := calls(t, here, w.signedIn(jo).consoleToken(), http.MethodDelete,
					"/v1/users/me/sessions", ""); status != 200 {
					t.Errorf("got %d %s", status, reason)
				}
			},
			"an administrator": func(jo person, b *browser, _ string) {
				if status, reason := calls(t, here, root, http.MethodDelete, "/v1/users/"+jo.id+"/sessions",
					""); status != 200 {
					t.Errorf("got %d %s", status, reason)
				}
			},
			"the epoch of the person's sessions": func(jo person, _ *browser, _ string) {
				w.happens(jo.id, user.SessionsEnded{})
			},
			"another password": func(jo person, _ *browser, _ string) {
				if status, reason := calls(t, here, root, http.MethodPost, "/v1/users/"+jo.id+"/password",
					`{"password": "quite Another phrase 42", "noChangeRequired": true}`); status != 200 {
					t.Errorf("got %d %s", status, reason)
				}
			},
			"a change of the password elsewhere": func(jo person, _ *browser, _ string) {
				if status, reason := calls(t, here, w.signedIn(jo).consoleToken(), http.MethodPut,
					"/v1/users/me/password",
					`{"currentPassword": "`+password+`", "newPassword": "`+otherWord+`"}`); status != 200 {
					t.Errorf("got %d %s", status, reason)
				}
			},
			"a person who is switched off": func(jo person, _ *browser, _ string) {
				w.happens(jo.id, user.Deactivated{})
			},
			"a person who is locked": func(jo person, _ *browser, _ string) {
				w.happens(jo.id, user.WasLocked{})
			},
			"a person who was off for a moment": func(jo person, _ *browser, _ string) {
				w.happens(jo.id, user.Deactivated{})
				w.happens(jo.id, user.Reactivated{})
			},
			"a step on a page": func(_ person, b *browser, _ string) { // which gives the session another token
				w.grows(b.session())
				b.get("/login?to=/device&again=1&account="+b.session()).post("password", password).shows(200,
					"Connect a device")
				b.consoleToken()
			},
		} {
			t.Run(name, func(t *testing.T) {
				jo := w.person(w.org, true)
				b := w.signedIn(jo)
				token := b.consoleToken()
				for _, node := range nodes {
					if status, reason := calls(t, node, token, http.MethodGet, me, ""); status != 200 {
						t.Fatalf("before: %d %s", status, reason)
					}
				}
				end(jo, b, token)
				for _, node := range []string{last, here} {
					if status, reason := calls(t, node, token, http.MethodGet, me, ""); status != 401 ||
						reason != "UNAUTHENTICATED" {
						t.Errorf("afterwards: %d %s", status, reason)
					}
				}
			})
		}
		t.Run("an organization that is switched off", func(t *testing.T) {
			elsewhere, domain := w.organization()
			kim := w.person(elsewhere, true)
			b := w.browser()
			b.get("/login?to=/device").signIn(kim.name+"@"+domain, password).shows(200, "Connect a device")
			token := b.consoleToken()
			w.do(event.Command{Write: []event.Ref{org.Kind.Ref(elsewhere)}, Decide: func(tx *event.Tx) error {
				o, err := org.Kind.Get(tx, elsewhere)
				if err != nil {
					return err
				}
				return o.Append(org.Deactivated{})
			}})
			for _, node := range []string{last, here} {
				if status, _ := calls(t, node, token, http.MethodGet, me, ""); status != 401 {
					t.Errorf("afterwards: %d", status)
				}
			}
			if got := b.ask("/console/token", `{}`); got.json["token"] != nil || got.json["signIn"] == nil {
				t.Errorf("it gets %d %s", got.status, got.body)
			}
		})
		t.Run("the own change of the password", func(t *testing.T) { // ends others
			b := w.signedIn(w.person(w.org, true))
			token := b.consoleToken()
			if status, reason := calls(t, here, token, http.MethodPut, "/v1/users/me/password",
				`{"currentPassword": "`+password+`", "newPassword": "`+otherWord+`"}`); status != 200 {
				t.Fatalf("got %d %s", status, reason)
			}
			if status, _ := calls(t, last, token, http.MethodGet, me, ""); status != 200 {
				t.Errorf("afterwards: %d", status)
			}
		})
	})
}

func TestARestrictedSessionGetsNoTokenForTheConsole(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w, nodes := consoleOn(t, db)
		last := nodes[len(nodes)-1]
		restricted := func(b *browser, token, reason, shows string) {
			t.Helper()
			id := b.session()
			got := b.ask("/console/token", `{"returnTo": "/console/a"}`).shows(200)
			if got.json["token"] != nil || got.json["reason"] != reason ||
				got.json["next"] != "/login?account="+id+"&to=%2Fconsole%2Fa" {
				t.Errorf("%s: got %s", reason, got.body)
			}
			b.get(got.json["next"].(string)).shows(200, shows)
			// A token from before is held to the same.
			if status, said := calls(t, last, token, http.MethodGet, me, ""); status != 403 || said != reason {
				t.Errorf("%s: a token from before gets %d %s", reason, status, said)
			}
		}
		kim := w.person(w.org, true)
		other := w.signedIn(kim)
		token := other.consoleToken()
		w.do(event.Command{
			Write:  []event.Ref{user.Kind.Ref(kim.id)},
			Tokens: []string{other.session()},
			Decide: func(tx *event.Tx) error {
				u, err := user.Kind.Get(tx, kim.id)
				if err != nil {
					return err
				}
				from := u.Data.SessionEpoch
				if err := u.Append(user.PasswordSet{ChangeRequired: true}); err != nil {
					return err
				}
				tx.AdvanceToken(other.session(), from, u.Data.SessionEpoch)
				return nil
			},
		})
		restricted(other, token, "PASSWORD_CHANGE_REQUIRED", "Choose a new password")

		jo := w.person(w.org, true)
		b := w.signedIn(jo)
		token = b.consoleToken()
		w.rules(policy.Policy{SecondFactorRequired: true})
		restricted(b, token, "SECOND_FACTOR_REQUIRED", "second factor")
	})
}

func TestWhatIsNoTokenOfTheConsole(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w, _ := consoleOn(t, db)
		elsewhere := open(t, server.Config{})
		b := w.signedIn(w.person(w.org, true))
		token := b.consoleToken()
		sessions := w.server.Grants().Sessions
		bearer, err := sessions.SessionByHash(t.Context(), hashOf(b.jar[sessionCookie]))
		must(t, err)
		past := *sessions
		past.Clock = func() time.Time { return time.Now().Add(-console.TokenLife) }
		expired, _ := console.Tokens{Sessions: &past}.New(bearer)
		pat, err := sessions.Bearer(t.Context(), w.server.FirstAdmin.Token)
		must(t, err)
		ofPAT, _ := console.Tokens{Sessions: sessions}.New(pat)
		unknown := *bearer
		unknown.Token.Hash = hashOf("nothing")
		nobodys, _ := console.Tokens{Sessions: sessions}.New(&unknown)
		for name, wrong := range map[string]string{
			"expired": expired, "of a personal access token": ofPAT, "of no session": nobodys,
			"cut": token[:len(token)-1], "longer": token + "A", "altered": token[:60] + flipped(token[60]) + token[61:],
			"of another installation": elsewhere.signedIn(elsewhere.person(elsewhere.org, true)).consoleToken(),
			"the hash itself":         "sgn_con_" + strings.Repeat("A", 92),
		} {
			if status, reason := calls(t, w.url, wrong, http.MethodGet, me, ""); status != 401 ||
				reason != "UNAUTHENTICATED" {
				t.Errorf("%s: %d %s", name, status, reason)
			}
		}
		if status, _ := calls(t, w.url, token, http.MethodGet, me, ""); status != 200 {
			t.Errorf("the token itself: %d", status)
		}
		// A cookie is none, and the token is no cookie.
		if got := b.send(http.MethodGet, me, nil); got.status != 401 {
			t.Errorf("the cookie of the pages calls the API: %d", got.status)
		}
		thief := w.browser()
		thief.jar[sessionCookie] = token
		if got := thief.ask("/console/token", `{}`); got.json["token"] != nil ||
			got.json["signIn"] != "/login?to=%2Fconsole%2F" {
			t.Errorf("as a cookie it gets %d %s", got.status, got.body)
		}
		thief.get("/account").shows(200, "Sign in")
		if got := thief.send(http.MethodGet, me, nil); got.status != 401 {
			t.Errorf("as a cookie it calls the API: %d", got.status)
		}
		// It is for the API, and for nothing else that takes tokens.
		if w.counts(token) {
			t.Error("user info takes it")
		}
	})
}

func hashOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func flipped(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

func TestOnlyTheConsoleItselfGetsAToken(t *testing.T) {
	w, _ := consoleOn(t, testdb.New(t, testdb.SQLite))
	jo := w.person(w.org, true)
	b := w.signedIn(jo)
	for _, path := range []string{"/console/token", "/console/sign_out"} {
		for name, c := range map[string]struct {
			status  int
			headers []string
		}{
			"another origin": {403,
				[]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"}},
			"an origin that may call the API": {403,
				[]string{"Origin", "https://app.test", "Sec-Fetch-Site", "cross-site"}},
			"another origin that lies": {403,
				[]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "same-origin"}},
			"another origin in an old browser": {403,
				[]string{"Origin", "https://evil.test", "Sec-Fetch-Site", ""}},
			"a frame without an origin": {403, []string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}},
			"another port": {403,
				[]string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}},
			"the same site": {403, []string{"Origin", "", "Sec-Fetch-Site", "same-site"}},
			"nobody":        {403, []string{"Origin", "", "Sec-Fetch-Site", ""}},
			"typed in":      {403, []string{"Origin", "", "Sec-Fetch-Site", "none"}},
			"a name that leads here": {403,
				[]string{"Origin", "http://evil.test", "Sec-Fetch-Site", "same-origin", "Host", "evil.test"}},
			"a form of ours": {415,
				[]string{"Content-Type", "application/x-www-form-urlencoded"}},
			"text that looks like JSON":             {415, []string{"Content-Type", "text/plain"}},
			"text that says so in a parameter":      {415, []string{"Content-Type", "text/plain; application/json"}},
			"nothing that says what it is":          {415, []string{"Content-Type", ""}},
			"a request that nobody knows a site of": {403, []string{"Origin", "", "Sec-Fetch-Site", "cross-site"}},
		} {
			got := b.ask(path, `{}`, c.headers...)
			if got.status != c.status || got.json["token"] != nil ||
				got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%s, %s: %d %v %s", path, name, got.status, got.header, got.body)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodOptions,
			http.MethodDelete} {
			got := b.send(method, path, nil, "Origin", "https://app.test", "Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "content-type")
			if got.status != 405 || got.header.Get("Access-Control-Allow-Origin") != "" || got.json["token"] != nil ||
				got.header.Get("Allow") != "POST" {
				t.Errorf("%s %s: %d %v", method, path, got.status, got.header)
			}
		}
		for _, body := range []string{`[]`, `{"sessionID": 1}`, `{"sessionId": 7}`, `{}{}`, `{`, `"x"`, `{"other": ""}`,
			strings.Repeat(" ", 70<<10) + "{}"} {
			if got := b.ask(path, body); got.status != 400 || got.json["reason"] != "INVALID_REQUEST" {
				t.Errorf("%s with %.20s: %d %s", path, body, got.status, got.body)
			}
		}
	}
	b.ask("/console/token", ``).shows(200)
	b.ask("/console/token", `{}`, "Sec-Fetch-Site", "").shows(200) // an older browser
	b.ask("/console/token", `{}`, "Origin", "", "Content-Type", "application/json; charset=utf-8").shows(200)
	if b.jar[sessionCookie] == "" || b.get("/account").path != "/account" {
		t.Error("something was done")
	}
}

func TestTheConsoleUsesOneOfTheAccountsOfTheBrowser(t *testing.T) {
	w := open(t, server.Config{})
	jo, kim := w.person(w.org, true), w.person(w.org, true)
	b := w.signedIn(jo, kim)
	as := func(body string) map[string]any { return b.ask("/console/token", body).json }
	second := as(`{}`)
	if second["userId"] != kim.id || second["switchAccount"] != "/login?to=%2Fconsole%2F" {
		t.Fatalf("got %v", second)
	}
	b.get(second["switchAccount"].(string)).shows(200, jo.name, kim.name)
	b.get("/account").shows(200, kim.email)
	sessions, err := w.server.Store().TokensOf(t.Context(), jo.id, string(secret.Session), "", 10)
	must(t, err)
	first := as(`{"sessionId": "` + sessions[0].ID + `"}`)
	if first["userId"] != jo.id || first["token"] == nil {
		t.Fatalf("got %v", first)
	}
	if again := as(`{}`); again["userId"] != kim.id {
		t.Errorf("the other account became the current one: %v", again)
	}
	// Somebody else's session is none of this browser's, whatever one knows of it.
	other := w.signedIn(w.person(w.org, true))
	if got := as(`{"sessionId": "` + other.session() + `"}`); got["token"] != nil ||
		got["signIn"] != "/login?other=1&to=%2Fconsole%2F" {
		t.Errorf("got %v", got)
	}
	if got := w.browser().ask("/console/token", `{"sessionId": "`+b.session()+`"}`); got.json["token"] != nil ||
		got.json["signIn"] != "/login?to=%2Fconsole%2F" {
		t.Errorf("got %d %s", got.status, got.body)
	}
	// One signs out alone, and the other one does not take its place unasked.
	b.ask("/console/sign_out", `{"sessionId": "`+first["sessionId"].(string)+`"}`).shows(200)
	if got := as(`{"sessionId": "` + first["sessionId"].(string) + `"}`); got["token"] != nil ||
		got["signIn"] != "/login?other=1&to=%2Fconsole%2F" {
		t.Errorf("got %v", got)
	}
	b.get("/login?other=1&to=%2Fconsole%2F").shows(200, `name="loginName"`)
	if got := as(`{}`); got["userId"] != kim.id {
		t.Errorf("got %v", got)
	}
	b.ask("/console/sign_out", `{"sessionId": "`+other.session()+`"}`).shows(200)
	other.get("/account").shows(200, "Your profile")
}

func TestASignInLeadsBackIntoTheConsole(t *testing.T) {
	w := open(t, server.Config{})
	jo := w.person(w.org, true)
	for _, at := range []string{"/console/users?x=y", "/console/",
		"/console/orgs/org_1/users?q=%C3%BC%20%26%22&page=eyJ&sort=-name", "/console/a%2Fb/?=",
		"/console/x?next=https://evil.test/"} {
		b := w.browser()
		b.get(at).shows(200) // the application is for everybody
		text, err := json.Marshal(map[string]string{"returnTo": at})
		must(t, err)
		got := b.ask("/console/token", string(text)).shows(200)
		if end := b.get(got.json["signIn"].(string)).shows(200, "Sign in").signIn(jo.name, password); end.path != at ||
			end.status != 200 {
			t.Errorf("%s: came to %s: %d", at, end.path, end.status)
		}
		b.ask("/console/token", string(text)).shows(200)
		// Who is signed in is let through.
		if end := b.get(got.json["signIn"].(string)); end.path != at {
			t.Errorf("%s: came to %s", at, end.path)
		}
	}
	for _, evil := range []string{"//evil.test/console/", "https://evil.test/console/", "/\\evil.test/console/",
		"\\\\evil.test", "/console/../login", "/console//evil.test", "/console/%2f%2fevil.test", "/console/%2e%2e/x",
		"%2f%2fevil.test", "javascript:alert(1)", "/console\\..\\x", "/account", "/consolex/", "/console/\tx",
		"https:/console/", "https:console/", "/console/#//evil.test", "", "//evil.test\\@" + w.url + "/console/"} {
		text, err := json.Marshal(map[string]string{"returnTo": evil})
		must(t, err)
		if got := w.browser().ask("/console/token", string(text)); got.json["signIn"] != "/login?to=%2Fconsole%2F" {
			t.Errorf("%s leads to %s", evil, got.body)
		}
		end := w.browser().get("/login?to="+url.QueryEscape(evil)).signIn(jo.name, password)
		if end.path != "/account" {
			t.Errorf("%s: came to %s", evil, end.path)
		}
	}
}

func TestAnOldProofIsRenewedOnTheWayBackIntoTheConsole(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := federatedOn(t, db)
		t.Run("with the password", func(t *testing.T) {
			b := w.signedIn(w.person(w.org, true))
			id := b.session()
			w.grows(id)
			got := b.ask("/console/token", `{"returnTo": "/console/me?x=y"}`).shows(200)
			if end := b.get(got.json["prove"].(string)).shows(200, "Confirm it’s you").post("password",
				password); end.path != "/console/me?x=y" || b.session() != id {
				t.Errorf("came to %s", end.path)
			}
			if end := b.get(got.json["prove"].(string)); end.path != "/console/me?x=y" {
				t.Errorf("who has just proven is asked again: %s", end.path)
			}
		})
		t.Run("through the only way there is, a provider", func(t *testing.T) {
			w.register("ana")
			b := w.browser()
			old := w.portal.Token(w.idp, "ana", map[string]any{"auth_time": time.Now().Add(-time.Hour).Unix()})
			b.send(http.MethodGet, callbackOf(w.idp, w.leaves(b)), nil, "Authorization", "Bearer "+old).follow()
			id := b.session()
			got := b.ask("/console/token", `{"returnTo": "/console/me?x=y"}`).shows(200)
			token := got.json["token"].(string)
			const begin = "/v1/users/me/factors/totp/_start"
			if status, reason := calls(t, w.url, token, http.MethodPost, begin, `{}`); status != 403 ||
				reason != "RECENT_PROOF_REQUIRED" {
				t.Fatalf("before: %d %s", status, reason)
			}
			asks := b.get(got.json["prove"].(string)).shows(200, "<bdi>Portal</bdi>")
			state := w.sent(asks.press())
			fresh := w.portal.Token(w.idp, "ana", map[string]any{"auth_time": time.Now().Unix()})
			end := b.send(http.MethodGet, callbackOf(w.idp, state), nil, "Authorization", "Bearer "+fresh).follow()
			if end.path != "/console/me?x=y" || end.status != 200 || b.session() != id {
				t.Fatalf("came to %s: %d", end.path, end.status)
			}
			again := b.ask("/console/token", `{"sessionId": "`+id+`"}`).shows(200).json["token"].(string)
			if status, reason := calls(t, w.nodes[len(w.nodes)-1], again, http.MethodPost, begin, `{}`); status != 200 {
				t.Errorf("afterwards: %d %s", status, reason)
			}
		})
	})
}

func TestTheConsoleCanBeSwitchedOff(t *testing.T) {
	for _, off := range []bool{false, true} {
		w := open(t, server.Config{Console: new(!off)})
		b := w.signedIn(w.person(w.org, true))
		found, root := http.StatusOK, "/console/"
		if off {
			found, root = http.StatusNotFound, "/account"
		}
		for _, path := range []string{"/console/", "/console/users/usr_1", "/console"} {
			if got := b.get(path); got.status != found {
				t.Errorf("off: %t: %s answers %d", off, path, got.status)
			}
		}
		if got := b.ask("/console/token", `{}`); got.status != found || off && got.json["token"] != nil {
			t.Errorf("off: %t: a token: %d %s", off, got.status, got.body)
		}
		if to := b.send(http.MethodGet, "/", nil, "Accept", "text/html,*/*").header.Get("Location"); to != root {
			t.Errorf("off: %t: the bare address leads to %s", off, to)
		}
		if to := b.send(http.MethodGet, "/", nil, "Accept", "*/*").header.Get("Location"); to != "/account" {
			t.Errorf("off: %t: the bare address leads programs to %s", off, to)
		}
	}
}

func TestANetworkAsksForSoManyTokensOfTheConsole(t *testing.T) {
	clock := testkit.NewClock(time.Now()) // nothing is given back meanwhile
	w := open(t, server.Config{StartsPerMinute: 20, Clock: clock.Now})
	b := w.signedIn(w.person(w.org, true))
	for range 40 { // what comes from elsewhere is not counted
		b.ask("/console/token", `{}`, "Origin", "https://evil.test").shows(403)
	}
	throttled := 0
	for range 40 {
		if got := b.ask("/console/token",
			`{}`); got.status == 429 && got.json["reason"] == "NETWORK_THROTTLED" &&
			got.header.Get("Retry-After") != "" && got.json["token"] == nil {
			throttled++
		} else if got.status != 200 {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if throttled != 20 {
		t.Errorf("%d of 40 were refused", throttled)
	}
	b.get("/account").shows(200, "Your profile")
}

// A session that ends if it is not used may be used until its last day: the cookie must not go before.
func TestTheCookieLivesAsLongAsTheSessionCan(t *testing.T) {
	w := open(t, server.Config{})
	w.rules(policy.Policy{SessionIdleSeconds: 600, SessionSeconds: 7200})
	jo := w.person(w.org, true)
	b := w.browser()
	b.get("/login?to=/device")
	got := b.send(http.MethodPost, "/login?to=/device", values("loginName", jo.name, "password", password))
	life := 0
	for _, text := range got.header.Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(text); err == nil && c.Name == sessionCookie {
			life = c.MaxAge
		}
	}
	if life < 7000 || life > 7200 {
		t.Errorf("the cookie lives for %d s", life)
	}
	// A token of the console does not count longer than the session as it is now.
	if left := b.ask("/console/token", `{}`).shows(200).json["expiresIn"].(float64); left > 300 || left < 200 {
		t.Errorf("the token counts for %v s", left)
	}
}

// Behind a proxy browsers know the server by another address, which is the one that counts.
func TestTheConsoleIsAtTheExternalAddress(t *testing.T) {
	w := open(t, server.Config{ExternalURL: "https://id.signet.test"})
	w.url = "http://" + w.server.Addr().String()
	b := w.browser()
	jo := w.person(w.org, true)
	ours := []string{"Origin", "https://id.signet.test"}
	b.send(http.MethodGet, "/login?to=/console/", nil)
	b.send(http.MethodPost, "/login?to=/console/", values("loginName", jo.name, "password", password),
		ours...).follow().shows(200)
	if got := b.ask("/console/token", `{}`, ours...).shows(200); got.header.Get("Strict-Transport-Security") == "" ||
		!strings.HasPrefix(got.json["prove"].(string), "/login?") {
		t.Errorf("got %v %s", got.header, got.body)
	}
	for _, origin := range []string{w.url, "http://id.signet.test", "https://id.signet.test:8443",
		"https://id.signet.test.evil.test"} {
		if got := b.ask("/console/token", `{}`, "Origin", origin); got.status != 403 {
			t.Errorf("%s gets %d", origin, got.status)
		}
	}
	for _, path := range []string{"/console", "/"} { // no address of the machine behind the proxy
		if to := b.send(http.MethodGet, path, nil, "Accept", "text/html", "Host",
			"10.0.0.1:8080").header.Get("Location"); to != "/console/" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
}
