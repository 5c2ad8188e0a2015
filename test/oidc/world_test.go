package oidc_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// world is a running server with an organization, somebody in it who is signed in, and applications of it.
type world struct {
	t      *testing.T
	config server.Config
	*node
	org    string
	userID string
	in     string            // token of a session of the user
	names  map[string]string // login names of people
}

// node is one server.
type node struct {
	server *server.Server
	url    string // where it listens
}

const callback = "https://shop.test/callback"

// password is everybody's.
const password = "correct horse battery staple"

var hashed = sync.OnceValues(func() ([]byte, error) {
	return secret.NewCheapHasher().Hash(context.Background(), password)
})

var must = testkit.Must

func open(t *testing.T, db testdb.Database, change ...func(*server.Config)) *world {
	t.Helper()
	w := &world{t: t, names: map[string]string{}}
	master := secret.NewMasterKey()
	w.config = server.Config{Data: server.Data{MasterKey: string(master.Text())}}
	if db.Engine == testdb.Postgres {
		w.config.Database = db.URL
	}
	for _, c := range change {
		c(&w.config)
	}
	w.node = w.start()
	w.config.ExternalURL = w.url // of all nodes
	w.org = w.server.FirstAdmin.OrgID
	w.userID = w.person()
	w.in = w.signIn(w.userID)
	return w
}

// start starts a node. All of them are the same to the world.
func (w *world) start() *node {
	w.t.Helper()
	s := servertest.Start(w.t, w.config, io.Discard)
	return &node{server: s, url: "http://" + s.Addr().String()}
}

func (w *world) do(c event.Command) {
	w.t.Helper()
	c.Actor = event.System
	must(w.t, w.server.Store().Do(w.t.Context(), c))
}

// person adds somebody to the organization, who signs in with the password.
func (w *world) person(roles ...access.Role) string {
	w.t.Helper()
	return w.add(false, roles...)
}

func (w *world) add(service bool, roles ...access.Role) string {
	w.t.Helper()
	id, name := user.Kind.NewID(), strings.ToLower(rand.Text())
	w.names[id] = name
	hash, err := hashed()
	must(w.t, err)
	w.do(event.Command{
		Write:  []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim(w.org, syntax.NameKey(name))},
		Decide: func(tx *event.Tx) error {
			var u *event.Object[user.User]
			var err error
			if service {
				u, err = user.AddService(tx, id, w.org, name, "Robot", "")
			} else {
				u, err = user.AddHuman(tx, id, w.org, &user.NewHuman{
					UserName:      name,
					Email:         name + "@mail.test",
					EmailVerified: true,
					Profile:       user.Profile{FirstName: "Jo", LastName: "Doe", DisplayName: "Jo Doe"},
				})
				if err == nil {
					err = user.PutPassword(tx, u, hash, user.PasswordSet{})
				}
			}
			if err != nil || len(roles) == 0 {
				return err
			}
			return u.Append(user.MembershipSet{Scope: w.org, Roles: roles})
		},
	})
	return id
}

// signIn opens a session.
func (w *world) signIn(userID string) string {
	w.t.Helper()
	text, hash := secret.NewToken(secret.Session)
	w.do(event.Command{Read: []event.Ref{user.Kind.Ref(userID), org.Kind.Ref(w.org)}, Decide: func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, userID)
		if err != nil {
			return err
		}
		o, err := org.Kind.Get(tx, w.org)
		if err != nil {
			return err
		}
		tx.PutToken(event.Token{
			ID:       event.NewID("ses"),
			Hash:     hash,
			Kind:     string(secret.Session),
			UserID:   userID,
			Epoch:    u.Data.SessionEpoch,
			OrgEpoch: o.Data.Epoch,
			Created:  tx.Now(),
			Expires:  tx.Now() + (12 * time.Hour).Microseconds(),
		})
		return nil
	}})
	return text
}

// application adds one of the organization, with a secret where it needs one.
func (w *world) application(typ app.Type, method app.AuthMethod,
	change ...func(*app.Settings)) (id, secretText string) {
	w.t.Helper()
	return w.applicationOf(w.org, typ, method, change...)
}

func (w *world) applicationOf(owner string, typ app.Type, method app.AuthMethod,
	change ...func(*app.Settings)) (id, secretText string) {
	w.t.Helper()
	s := app.Settings{
		AuthMethod:          method,
		GrantTypes:          []app.GrantType{app.AuthorizationCode, app.RefreshToken, app.DeviceCode},
		RedirectURIs:        []string{callback},
		PostLogoutURIs:      []string{"https://shop.test/bye"},
		TokenFormat:         app.Opaque,
		SigningAlgorithm:    "ES256",
		AccessTokenSeconds:  3600,
		RefreshTokenSeconds: 86400,
	}
	for _, c := range change {
		c(&s)
	}
	id = app.Kind.NewID()
	w.do(event.Command{Write: []event.Ref{app.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		facts := []event.Fact[app.App]{app.Added{Name: "Shop", NameKey: "shop", Type: typ, Settings: s}}
		if method == app.SecretBasic || method == app.SecretPost {
			text, hash := secret.NewToken(secret.Client)
			secretText = text
			tx.PutRow(event.Row{RowKey: app.SecretRow(id), Value: hash})
			facts = append(facts, app.SecretSet{})
		}
		_, err := app.Kind.Create(tx, id, owner, facts...)
		return err
	}})
	return id, secretText
}

// approve lets a client of another organization have tokens for an application.
func (w *world) approve(id, client, clientOrg string) {
	w.t.Helper()
	w.changeApp(id, app.AudienceApproved{ClientID: client, ClientOrg: clientOrg, At: 1})
}

func (w *world) changeApp(id string, fact event.Fact[app.App]) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{app.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		a, err := app.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		return a.Append(fact)
	}})
}

// bearer reads the session of a token.
func (w *world) bearer(token string) *session.Bearer {
	w.t.Helper()
	b, err := w.server.Grants().Sessions.Bearer(w.t.Context(), token)
	must(w.t, err)
	return b
}

// client sends requests and follows no redirects.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

func (w *world) send(r *http.Request) reply {
	w.t.Helper()
	out, err := try(r)
	must(w.t, err)
	return out
}

// try is send for several at once.
func try(r *http.Request) (reply, error) {
	resp, err := client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	out := reply{status: resp.StatusCode, header: resp.Header, body: string(body)}
	_ = json.Unmarshal(body, &out.json) // not everything is JSON
	return out, err
}

func (w *world) get(address string, headers ...string) reply {
	w.t.Helper()
	return w.request(http.MethodGet, address, "", headers...)
}

func (w *world) request(method, address, body string, headers ...string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, address, strings.NewReader(body))
	must(w.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.send(r)
}

// post sends a form, with headers after the parameters where there are any.
func (w *world) post(path string, form url.Values, headers ...string) reply {
	w.t.Helper()
	return w.request(http.MethodPost, w.url+path, form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}
