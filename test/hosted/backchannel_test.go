package hosted

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// ear is an application's server that is told when sessions end.
type ear struct {
	*world
	url    string
	client string
	heard  chan string   // logout tokens
	answer atomic.Int64  // status
	hold   chan struct{} // not nil: it does not answer before this is closed
}

func (w *world) ear(name string) *ear {
	w.t.Helper()
	e := &ear{world: w, heard: make(chan string, 100)}
	e.answer.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.ParseForm() != nil || len(r.PostForm) != 1 || r.URL.RawQuery != "" ||
			r.Header.Get("Cookie") != "" {
			w.t.Errorf("got %s %s %v", r.Method, r.URL, r.PostForm)
		}
		e.heard <- r.PostForm.Get("logout_token")
		if e.hold != nil {
			select {
			case <-e.hold:
			case <-r.Context().Done():
			}
		}
		rw.WriteHeader(int(e.answer.Load()))
	}))
	w.t.Cleanup(server.Close)
	e.url = server.URL
	e.client = w.application(name, func(s *app.Settings) { s.BackChannelLogoutURI = server.URL + "/out" })
	return e
}

// next waits for a logout token and reads it.
func (e *ear) next() map[string]any {
	e.t.Helper()
	select {
	case token := <-e.heard:
		return e.read(token, "logout+jwt")
	case <-time.After(testkit.Patience):
		e.t.Fatalf("nobody was told: %s", e.log)
		return nil
	}
}

// read checks the signature of a token by the published keys.
func (e *ear) read(token, typ string) map[string]any {
	e.t.Helper()
	signed, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	must(e.t, err)
	var keys jose.JSONWebKeySet
	must(e.t, json.Unmarshal([]byte(e.browser().get("/oauth/keys").body), &keys))
	header := signed.Signatures[0].Header
	payload, err := signed.Verify(keys.Key(header.KeyID)[0])
	must(e.t, err)
	if header.ExtraHeaders["typ"] != typ {
		e.t.Errorf("it is a %v", header.ExtraHeaders["typ"])
	}
	var claims map[string]any
	must(e.t, json.Unmarshal(payload, &claims))
	return claims
}

func (e *ear) silent() {
	e.t.Helper()
	select {
	case token := <-e.heard:
		e.t.Errorf("told %v", e.read(token, "logout+jwt"))
	default:
	}
}

// enter signs somebody who is in a browser in to the application, and gives the session's id.
func (e *ear) enter(b *browser) string {
	e.t.Helper()
	return e.read(b.authorize(e.client).tokens(e.client)["id_token"].(string), "JWT")["sid"].(string)
}

func listening(t *testing.T) *world {
	t.Helper()
	return open(t, server.Config{OutboundAllow: []string{"127.0.0.0/8"}})
}

func TestApplicationsAreToldWhenASessionEnds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		config := server.Config{OutboundAllow: []string{"127.0.0.0/8"}}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		tellEverybody(t, open(t, config))
	})
}

func tellEverybody(t *testing.T, w *world) {
	t.Helper()
	shop, news, deaf, never := w.ear("Shop"), w.ear("News"), w.ear("Deaf"), w.ear("Never")
	jo := w.person(w.org, true)
	b := w.signedIn(jo)
	sid := shop.enter(b)
	if news.enter(b) != sid || deaf.enter(b) != sid {
		t.Fatal("one session, one sid")
	}
	w.deactivate(deaf.client)
	p := b.get("/logout")
	p.post("do", "end", "id", p.hidden("id")).shows(200, "You are signed out")
	for _, e := range []*ear{shop, news} {
		got := e.next()
		events, _ := got["events"].(map[string]any)
		if got["iss"] != w.url || got["aud"] != e.client || got["sid"] != sid || got["sub"] != jo.id ||
			got["jti"] == "" || got["nonce"] != nil ||
			got["exp"].(float64)-got["iat"].(float64) > 120 ||
			events["http://schemas.openid.net/event/backchannel-logout"] == nil {
			t.Errorf("told %v", got)
		}
	}
	// Another sign-out comes after this one: nothing of the first is left to tell.
	b = w.signedIn(jo)
	second := shop.enter(b)
	b.get("/logout").post("do", "endAll")
	if got := shop.next(); got["sid"] != second {
		t.Errorf("told %v", got)
	}
	news.silent()
	deaf.silent()
	never.silent()
}

func (w *world) deactivate(client string) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{app.Kind.Ref(client)}, Decide: func(tx *event.Tx) error {
		a, err := app.Kind.Get(tx, client)
		if err != nil {
			return err
		}
		return a.Append(app.Deactivated{})
	}})
}

func TestWhateverEndsSessionsIsTold(t *testing.T) {
	w := listening(t)
	shop := w.ear("Shop")
	for _, tt := range []struct {
		name string
		fact event.Fact[user.User]
	}{
		{"all sessions are ended", user.SessionsEnded{}},
		{"somebody sets the password", user.PasswordSet{}},
		{"the password is reset", user.PasswordReset{}},
		{"the password is changed", user.PasswordChanged{}},
		{"the user is switched off", user.Deactivated{}},
		{"the user is locked", user.WasLocked{}},
		{"the user is removed", user.WasRemoved{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			jo := w.person(w.org, true)
			one, two := shop.enter(w.signedIn(jo)), shop.enter(w.signedIn(jo))
			w.happens(jo.id, tt.fact)
			told := map[any]bool{shop.next()["sid"]: true, shop.next()["sid"]: true}
			if !told[one] || !told[two] {
				t.Errorf("told %v, want %s and %s", told, one, two)
			}
		})
	}
	shop.silent()
}

func TestTheSessionThatStaysIsNotToldToHaveEnded(t *testing.T) {
	w := listening(t)
	shop := w.ear("Shop")
	jo := w.person(w.org, true)
	stays, goes := w.signedIn(jo), w.signedIn(jo)
	kept, ended := shop.enter(stays), shop.enter(goes)
	bearer, err := w.server.Grants().Sessions.Bearer(t.Context(), stays.jar["__Host-signet"])
	must(t, err)
	_, err = w.server.Grants().Sessions.EndOthers(t.Context(), bearer.Caller, event.IfMatch{})
	must(t, err)
	if got := shop.next(); got["sid"] != ended {
		t.Errorf("told %v", got)
	}
	must(t, w.server.Grants().Sessions.End(t.Context(), session.Own(bearer.Caller), kept))
	if got := shop.next(); got["sid"] != kept { // the very next
		t.Errorf("told %v", got)
	}
}

func TestAnApplicationThatFailsIsToldAgainAndKeepsNobodyWaiting(t *testing.T) {
	w := listening(t)
	broken, stuck, shop := w.ear("Broken"), w.ear("Stuck"), w.ear("Shop")
	broken.answer.Store(http.StatusInternalServerError)
	stuck.hold = make(chan struct{})
	defer close(stuck.hold)
	both := w.signedIn(w.person(w.org, true))
	sid := broken.enter(both)
	stuck.enter(both)
	shop.enter(both)
	both.get("/logout").post("do", "endAll")
	if got := shop.next(); got["sid"] != sid {
		t.Errorf("told %v", got)
	}
	first := broken.next()
	stuck.next()
	// While one has failed and the other does not answer, others are told, however much the other is to be told first.
	var inside []*browser
	for range 5 {
		b := w.signedIn(w.person(w.org, true))
		stuck.enter(b)
		inside = append(inside, b)
	}
	b := w.signedIn(w.person(w.org, true))
	last := shop.enter(b)
	for _, b := range append(inside, b) {
		b.get("/logout").post("do", "endAll")
	}
	if got := shop.next(); got["sid"] != last {
		t.Errorf("told %v", got)
	}
	broken.answer.Store(http.StatusNoContent)
	again := broken.next()
	if again["sid"] != sid || again["jti"] == first["jti"] {
		t.Errorf("told %v, then %v", first, again)
	}
	// Who has understood is not told again.
	shop.silent()
}

func TestAnApplicationInsideTheNetworkIsNotCalled(t *testing.T) {
	w := open(t, server.Config{})
	shop := w.ear("Shop")
	named := w.application("Named", func(s *app.Settings) {
		u, err := url.Parse(shop.url)
		must(t, err)
		s.BackChannelLogoutURI = "http://localhost:" + u.Port() + "/out"
	})
	b := w.signedIn(w.person(w.org, true))
	shop.enter(b)
	b.authorize(named).tokens(named)
	b.get("/logout").post("do", "endAll")
	for _, client := range []string{shop.client, named} {
		w.logged("telling " + client + ": OUTBOUND_REFUSED")
	}
	shop.silent()
}

// logged waits until something is in the log.
func (w *world) logged(text string) {
	w.t.Helper()
	testkit.Await(w.t, "the log says "+text, func() bool { return w.log.Has(text) })
}
