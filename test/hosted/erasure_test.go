package hosted

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // to look at the tables without the store

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// caller calls the API over REST, as a browser that says whose it is.
type caller struct {
	*world
	token, agent, address string
}

// call sends a request and gives the answer.
func (c caller) call(method, path string, body map[string]any) map[string]any {
	c.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	text, err := json.Marshal(body)
	must(c.t, err)
	if method == http.MethodDelete {
		text = nil
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(text))
	must(c.t, err)
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": c.agent,
		"X-Forwarded-For": c.address, "Idempotency-Key": c.agent + path} {
		r.Header.Set(name, value)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := client.Do(r)
	must(c.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(c.t, err)
	var out map[string]any
	_ = json.Unmarshal(answer, &out)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnauthorized {
		c.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return out
}

// trace is what somebody has left behind.
type trace struct {
	userID  string
	word    string
	values  []string // all of them hold the word, or are the person's alone
	address string   // which is in the log of requests, too
}

// traces lets a person leave everything personal that there is.
func (w *world) traces(word string, number int) trace {
	w.t.Helper()
	named := func(part string) string { return part + word }
	var (
		phone    = fmt.Sprintf("+41-44-555-77-%d1", number)
		later    = fmt.Sprintf("+41-44-555-88-%d2", number)
		language = fmt.Sprintf("xx-Qzvwkj%d", number)
		name     = named("other")
	)
	me := caller{world: w, agent: named("Browser") + "/7.0", address: fmt.Sprintf("203.0.113.%d", 70+number)}
	root := caller{world: w, token: w.server.FirstAdmin.Token, agent: "Admin/" + word}
	id := root.call("POST", "/v1/users/human", map[string]any{
		"userName":         named("user"),
		"password":         password,
		"noChangeRequired": true,
		"profile": map[string]any{"firstName": named("First"), "lastName": named("Last"), "nickName": named("Nick"),
			"displayName": named("Display"), "preferredLanguage": language, "gender": "GENDER_DIVERSE"},
		"email": map[string]any{"email": strings.Repeat("long.", 2000) + word + "@mail.example"},
		"phone": map[string]any{"phone": phone},
	})["userId"].(string)
	root.call("POST", "/v1/users/"+id+"/phone/_create_code", nil)
	root.call("POST", "/v1/users/"+id+"/email/_create_code", nil)
	root.call("PUT", "/v1/users/"+id+"/user_name", map[string]any{"userName": name})
	root.call("PUT", "/v1/users/"+id+"/email",
		map[string]any{"email": "second." + word + "@mail.example", "isEmailVerified": true})
	root.call("PUT", "/v1/users/"+id+"/phone", map[string]any{"phone": later})

	me.call("POST", "/v1/sessions", map[string]any{"loginName": name, "password": "wrong wrong wrong"})
	me.call("POST", "/v1/users/_request_password_reset", map[string]any{"loginName": name})

	// Signing in to applications: with consent, on a device, and on the way to it.
	shop := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	done := w.browser().authorize(shop, "scope", "openid profile offline_access", "login_hint", name).signIn(name,
		password).post("do", "allow").tokens(shop)
	if done["refresh_token"] == nil {
		w.t.Fatal(done)
	}
	w.browser().authorize(shop, "login_hint", name, "state", named("state"))
	w.browser().get("/logout?" + values("client_id", shop, "post_logout_redirect_uri", farewell, "state",
		named("bye")).Encode())
	gadget, b := w.gadget(shop, "openid"), w.browser()
	b.get("/login?to=/device").signIn(name, password)
	at := b.get("/device?user_code=" + gadget.user)
	at.post("id", at.hidden("id"), "userCode", gadget.user, "do", "allow")

	me.token = me.call("POST", "/v1/sessions",
		map[string]any{"loginName": name, "password": password})["token"].(string)
	me.call("PUT", "/v1/users/me/profile",
		map[string]any{"firstName": named("Firster"), "lastName": named("Laster"),
			"nickName": strings.Repeat("n", 150) + word, "displayName": named("Shown"), "preferredLanguage": language})
	me.call("POST", "/v1/users/me/tokens", map[string]any{"name": named("Token")})
	totp := me.call("POST", "/v1/users/me/factors/totp/_start", nil)["secret"].(string)
	confirmed := me.call("POST", "/v1/users/me/factors/totp/_confirm",
		map[string]any{"code": factortest.Code(totp, time.Now()), "name": named("App")})
	if stepped, ok := confirmed["token"].(string); ok {
		me.token = stepped
	}
	me.call("POST", "/v1/users/me/factors/passkey/_start", nil)
	onItsWay := me.call("POST", "/v1/users/me/factors/totp/_start", nil)["secret"].(string)
	return trace{id, word, []string{word, phone, strings.ReplaceAll(phone, "-", ""), later,
		strings.ReplaceAll(later, "-", ""), language, totp, onItsWay}, me.address}
}

// written are the ways in which values may be written down: in lower case, but base64 in its own. In any case, the nine
// characters of a short one would be found by chance in the random text that is about.
func written(values ...string) (all []string) {
	for _, v := range values {
		for _, text := range []string{v, strings.ToLower(v)} {
			all = append(all, strings.ToLower(text), hex.EncodeToString([]byte(text)))
			for skip := range 3 { // wherever it begins within three bytes
				encoded := base64.RawStdEncoding.EncodeToString([]byte(text[skip:]))
				all = append(all, encoded[:len(encoded)-2])
			}
		}
	}
	return all
}

// holdsNone fails where a place holds something of the list.
func holdsNone(t *testing.T, place string, content []byte, list []string) {
	t.Helper()
	for _, content := range [][]byte{content, bytes.ToLower(content)} {
		for _, text := range list {
			if at := bytes.Index(content, []byte(text)); at >= 0 {
				t.Errorf("%s holds %s: %q", place, text, content[max(0, at-60):min(len(content), at+60)])
			}
		}
	}
}

// wouldFind fails where the search for all values would find nothing, which says that it searches for the wrong things.
func (x trace) wouldFind(t *testing.T, content []byte) {
	t.Helper()
	if !bytes.Contains(bytes.ToLower(content), []byte(strings.ToLower(x.word))) {
		t.Error("the search finds nothing at all")
	}
}

// files reads everything there is of an embedded database.
func files(t *testing.T, path string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	names, err := filepath.Glob(path + "*")
	must(t, err)
	for _, name := range names {
		if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// rows reads a query whose result is text or bytes.
func rows(t *testing.T, db *sql.DB, query string, args ...any) []byte {
	t.Helper()
	result, err := db.QueryContext(context.Background(), query, args...)
	must(t, err)
	defer result.Close()
	var all bytes.Buffer
	for result.Next() {
		var line []byte
		must(t, result.Scan(&line))
		all.Write(line)
		all.WriteByte('\n')
	}
	must(t, result.Err())
	return all.Bytes()
}

func TestARemovedPersonIsNowhere(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		sink := mailtest.Start(t)
		config := server.Config{
			Listen:         "localhost:0",
			SMTPURL:        sink.URL,
			SMTPFrom:       "no-reply@id.test",
			TrustedProxies: []string{"127.0.0.1/32", "::1/128"},
			OutboundAllow:  []string{"127.0.0.1/32"},
		}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		w := open(t, config)
		w.mail = sink
		root := caller{world: w, token: w.server.FirstAdmin.Token}
		hook := root.listen()
		gone, stays := w.traces("Qwendoline", 1), w.traces("Ottokarlus", 2)
		var before map[string][]event.Event
		testkit.Await(t, "the request to reset the password was looked at", func() bool { // at a time of its own
			before = w.history(t, gone.userID)
			return slices.ContainsFunc(before[session.IDFor(gone.userID)],
				func(e event.Event) bool { return e.Type == "sign_in.password_reset_requested.v1" })
		})
		root.call("DELETE", "/v1/users/"+gone.userID, nil)

		list := written(append(gone.values, gone.address)...)
		for place, content := range map[string][]byte{"the events": root.listed(),
			"the stream": root.streamed(gone.userID), "the webhook": hook.receive(gone.userID, stays.word)} {
			stays.wouldFind(t, content)
			holdsNone(t, place, content, list)
		}
		holdsNone(t, "the history of the webhook", root.read("/v1/webhooks/"+hook.id+"/deliveries"),
			written(append(append(gone.values, gone.address), stays.values...)...))
		if db.Engine == testdb.SQLite {
			searchSQLite(t, w.dir, stays, list)
		} else {
			searchPostgres(t, db.URL, stays, list)
		}
		holdsNone(t, "the log of the program", []byte(w.log.String()), written(gone.values...))

		// The log is whole, and has everything but what was personal.
		s, key := w.server.Store(), w.server.Store().RootKey()
		after := w.history(t, gone.userID)
		for object, chain := range after {
			if len(chain) != len(before[object])+1 {
				t.Errorf("%s had %d events, and has %d", object, len(before[object]), len(chain))
			}
			for i := range before[object] {
				if !bytes.Equal(before[object][i].Hash(), chain[i].Hash()) {
					t.Errorf("%s has changed", journal.ID(&chain[i]))
				}
			}
			for i := range chain {
				shown, err := journal.Show(t.Context(), s, key, &chain[i], true)
				must(t, err)
				if shown.Personal != nil || shown.Erased != (chain[i].Sealed != nil) {
					t.Errorf("%s is shown as %+v", shown.ID, shown)
				}
				holdsNone(t, shown.ID, fmt.Appendf(nil, "%+v %s", shown, shown.Payload), list)
			}
		}
		for _, chain := range w.history(t, stays.userID) {
			for i := range chain {
				if shown, err := journal.Show(t.Context(), s, key, &chain[i], true); err != nil || shown.Erased {
					t.Errorf("%+v, %v", shown, err)
				}
			}
		}
		report, err := s.RebuildCheck(t.Context())
		must(t, err)
		if len(report.Differences) > 0 {
			t.Errorf("different: %q", report.Differences)
		}
		proven, err := s.Verify(t.Context(), proof.Options{})
		must(t, err)
		if proven.Finding != nil || proven.Events == 0 {
			t.Errorf("%+v: %v", proven, proven.Finding)
		}
	})
}

// read asks for something, and gives the answer as it is.
func (c caller) read(path string) []byte {
	c.t.Helper()
	resp := c.ask(path)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	must(c.t, err)
	return content
}

func (c caller) ask(path string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
	must(c.t, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := client.Do(r)
	must(c.t, err)
	if resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s", path, resp.Status)
	}
	return resp
}

// listed is all that the list of events has.
func (c caller) listed() (all []byte) {
	c.t.Helper()
	for token := "-"; token != ""; {
		page := c.read("/v1/events?allOrganizations=true&pageSize=100&pageToken=" + strings.TrimPrefix(token, "-"))
		var next struct{ NextPageToken string }
		must(c.t, json.Unmarshal(page, &next))
		all, token = append(all, page...), next.NextPageToken
	}
	return all
}

// streamed is all that the stream has up to the end of a user.
func (c caller) streamed(userID string) []byte {
	c.t.Helper()
	resp := c.ask("/v1/events/_stream?allOrganizations=true&from=2020-01-01T00:00:00Z")
	defer resp.Body.Close()
	var all bytes.Buffer
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		all.Write(lines.Bytes())
		if isEndOf(lines.Bytes(), userID) {
			return all.Bytes()
		}
	}
	c.t.Fatalf("the stream has no end of the user: %v", lines.Err())
	return nil
}

func isEndOf(text []byte, userID string) bool {
	return bytes.Contains(text, []byte(`"user.removed.v1"`)) && bytes.Contains(text, []byte(userID))
}

// listener is a webhook that is switched off until somebody receives.
type listener struct {
	caller
	id   string
	sent chan []byte
}

func (c caller) listen() *listener {
	c.t.Helper()
	l := &listener{caller: c, sent: make(chan []byte, 10_000)}
	at := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			l.sent <- body
		}
	}))
	c.t.Cleanup(at.Close)
	l.id = c.call("POST", "/v1/webhooks",
		map[string]any{"name": "Audit", "url": at.URL, "personalData": true,
			"types": []string{"user.*", "sign_in.*", "consent.*"}})["webhookId"].(string)
	c.call("POST", "/v1/webhooks/"+l.id+"/_deactivate", nil)
	return l
}

// receive switches the webhook on, and gives what it sends until it has told of the end of a user, and something with a
// word: those are of different objects, and come in any order.
func (l *listener) receive(userID, word string) []byte {
	l.t.Helper()
	l.call("POST", "/v1/webhooks/"+l.id+"/_reactivate", nil)
	var all bytes.Buffer
	for ended, said := false, false; !ended || !said; {
		select {
		case body := <-l.sent:
			all.Write(body)
			ended, said = ended || isEndOf(body, userID), said || bytes.Contains(body, []byte(word))
		case <-time.After(time.Minute):
			l.t.Fatalf("the webhook does not tell of both: the end of the user %v, %s %v", ended, word, said)
		}
	}
	return all.Bytes()
}

// searchSQLite looks into the files of a running database, and into a backup of it.
func searchSQLite(t *testing.T, dir string, stays trace, list []string) {
	all := files(t, filepath.Join(dir, "signet.db"))
	stays.wouldFind(t, all["signet.db"])
	for name, content := range all {
		holdsNone(t, name, content, list)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := server.Backup(t.Context(), server.Config{Data: server.Data{DataDir: dir}}, backup, nil)
	must(t, err)
	all = files(t, backup)
	stays.wouldFind(t, all["backup.db"])
	for _, content := range all {
		holdsNone(t, "the backup", content, list)
	}
}

// searchPostgres looks into every column of every table, the statistics included, and into the files after VACUUM FULL.
func searchPostgres(t *testing.T, url string, stays trace, list []string) {
	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	do := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	// A transaction that began before the removal, such as one of autovacuum, still sees what was removed, so VACUUM
	// keeps that.
	now := string(rows(t, db, "SELECT now()::text"))
	testkit.Await(t, "older transactions have ended", func() bool {
		return len(rows(t, db,
			"SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND xact_start < $1::text::timestamptz", now)) == 0
	})
	do("VACUUM ANALYZE")
	tables := strings.Fields(string(rows(t, db,
		"SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'")))
	var everything []byte
	for _, table := range append(tables, "pg_statistic") {
		content := rows(t, db, `SELECT convert_to(t::text, 'UTF8') FROM "`+table+`" t`)
		holdsNone(t, "the table "+table, content, list)
		everything = append(everything, content...)
	}
	stays.wouldFind(t, everything)
	for _, table := range tables {
		do(`VACUUM FULL "` + table + `"`)
	}
	do("CHECKPOINT")
	content := rows(t, db, `SELECT pg_read_binary_file(pg_relation_filepath(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'pg_toast') AND c.relkind IN ('r', 'i', 't')`)
	stays.wouldFind(t, content)
	holdsNone(t, "the files", content, list)
}

// history gives the events of a person and of what stands beside, by object; their chains are whole.
func (w *world) history(t *testing.T, userID string) map[string][]event.Event {
	t.Helper()
	chains := map[string][]event.Event{userID: nil, session.IDFor(userID): nil, oauth.IDFor(userID): nil}
	for after := int64(0); ; {
		events, err := w.server.Store().Events(t.Context(), after, 1000)
		must(t, err)
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			after = e.Position
			chain, mine := chains[e.ObjectID]
			if n := len(chain); e.Sequence != uint64(n+1) && mine ||
				n > 0 && !bytes.Equal(e.PrevHash, chain[n-1].Hash()) {
				t.Errorf("%s does not follow", journal.ID(&e))
			}
			if mine {
				chains[e.ObjectID] = append(chain, e)
			}
		}
	}
	for object, chain := range chains {
		if len(chain) == 0 {
			t.Errorf("there is nothing of %s", object)
		}
	}
	return chains
}
