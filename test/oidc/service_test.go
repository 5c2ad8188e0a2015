package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2/jwt"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

// robot adds a service user with a secret and a key.
func (w *world) robot(roles ...access.Role) (id, secretText string, key *ecdsa.PrivateKey) {
	w.t.Helper()
	id = w.add(true, roles...)
	key, public := newKey(w.t)
	secretText, hash := secret.NewToken(secret.Client)
	w.do(event.Command{Write: []event.Ref{user.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		tx.PutRow(event.Row{RowKey: user.SecretRow(id), Value: hash})
		return u.Append(user.SecretSet{}, user.KeyAdded{KeyID: "pky_1", PublicKey: public})
	}})
	return id, secretText, key
}

func TestServiceUsersAndTheScopesOfTheAPI(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id, secretText, key := w.robot(access.OrgOwner)
		token := func(scope string) string {
			got := w.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}, "scope": {scope}},
				"Authorization", basic(id, secretText))
			text, _ := got.json["access_token"].(string)
			if got.status != 200 || text == "" || got.json["refresh_token"] != nil || got.json["id_token"] != nil {
				t.Fatalf("got %+v", got)
			}
			return text
		}
		const me, password = "/v1/users/me", "/v1/users/me/password"
		every := strings.Join(access.APIScopeNames, " ")
		people := func(name, more string) string {
			return `{"userName":"` + name +
				`","profile":{"firstName":"Jo","lastName":"Doe"},"email":{"email":"jo@mail.example"}` + more + `}`
		}
		for _, tt := range []struct {
			scope, method, path, body string
			want                      int
		}{
			{"", "GET", me, "", 401},
			{"openid", "GET", me, "", 401},
			{"signet.self", "GET", me, "", 200},
			{"signet.read", "GET", me, "", 403},
			{"signet.write", "GET", me, "", 403},
			{"signet.self", "GET", "/v1/users/" + w.userID, "", 403},
			{"signet.read", "GET", "/v1/users/" + w.userID, "", 200},
			{"signet.write", "GET", "/v1/users/" + w.userID, "", 200},
			{"signet.read", "POST", "/v1/users/" + w.userID + "/_lock", "{}", 403},
			{"signet.write", "POST", "/v1/users/" + w.userID + "/_lock", "{}", 200},
			{"signet.self signet.read signet.write", "POST", "/v1/users/" + id + "/tokens", `{"name":"more"}`, 403},
			// it holds more than that scope is for
			{"signet.credentials", "POST", "/v1/users/" + id + "/tokens", `{"name":"more"}`, 403},
			{every, "POST", "/v1/users/" + id + "/tokens", `{"name":"more"}`, 200},
			{every, "POST", "/v1/users/me/tokens", `{"name":"more"}`, 403},
			{"signet.write", "POST", "/v1/users/human", people("jo", `,"password":"a first password"`), 403},
			{"signet.write signet.contacts", "POST", "/v1/users/human",
				people("jo", `,"password":"a first password"`), 403},
			{"signet.write signet.contacts signet.passwords", "POST", "/v1/users/human",
				people("jo", `,"password":"a first password"`), 200},
			{"signet.write", "POST", "/v1/users/human", people("jan", ""), 403},
			{"signet.write signet.contacts", "POST", "/v1/users/human", people("jan", ""), 200},
			{"signet.self signet.read signet.write", "PUT", password, `{"currentPassword":"a","newPassword":"b"}`, 403},
		} {
			headers := []string{"Authorization", "Bearer " + token(tt.scope)}
			if tt.body != "" {
				headers = append(headers, "Content-Type", "application/json")
			}
			got := w.request(tt.method, w.url+tt.path, tt.body, headers...)
			if got.status != tt.want {
				t.Errorf("%q %s %s: got %+v", tt.scope, tt.method, tt.path, got)
			}
		}

		if got := w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+token("signet.self")); got.status != 403 ||
			got.json["error"] != "insufficient_scope" ||
			!strings.HasPrefix(got.header.Get("Www-Authenticate"), `Bearer error="insufficient_scope"`) {
			t.Errorf("user info without openid: %+v", got)
		}
		if got := w.post("/oauth/introspect", url.Values{"token": {token("openid")}}, "Authorization",
			basic(id, secretText)); got.json["active"] != true || got.json["client_id"] != id || got.json["sub"] != id {
			t.Errorf("a service user acts for itself: %+v", got)
		}
		if got := w.get(w.url+"/oauth/userinfo", "Authorization",
			"Bearer "+token("openid profile")); got.status != 200 || got.json["name"] != "Robot" {
			t.Errorf("got %+v", got)
		}

		ask := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
			"assertion": {w.assertion(id, key, "")}, "scope": {"signet.self"}}
		if got := w.post("/oauth/token", ask); got.status != 200 || got.json["access_token"] == nil ||
			got.json["refresh_token"] != nil {
			t.Errorf("got %+v", got)
		}
		if got := w.post("/oauth/token", ask); got.status != 400 || got.json["error"] != "invalid_grant" {
			t.Errorf("an assertion was taken twice: %+v", got)
		}
		byKey := url.Values{"grant_type": {"client_credentials"}, "client_assertion_type": {byAssertion},
			"client_assertion": {w.assertion(id, key, "pky_1")}, "scope": {"openid"}}
		if got := w.post("/oauth/token", byKey); got.status != 200 || !w.active(got.json["access_token"]) {
			t.Errorf("a service user that signs: %+v", got)
		}
		// Without an id a client is refused, and the answer says what is missing. The grant takes it, also twice in one
		// second.
		byKey["client_assertion"] = []string{w.assertion(id, key, "",
			func(claims map[string]any) { delete(claims, "jti") })}
		if got := w.post("/oauth/token", byKey); got.json["error"] != "invalid_client" ||
			!strings.Contains(fmt.Sprint(got.json["error_description"]), "jti") {
			t.Errorf("without an id: %+v", got)
		}
		ask["assertion"] = byKey["client_assertion"]
		for range 2 {
			if got := w.post("/oauth/token", ask); got.status != 200 || got.json["access_token"] == nil {
				t.Errorf("without an id: %+v", got)
			}
		}
	})
}

// The library that many Go programs have for service accounts sends no jti, and the same assertion twice within one
// second.
func TestTheJWTClientOfGoGetsTokens(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id := w.add(true, access.OrgOwner)
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		must(t, err)
		public, err := x509.MarshalPKIXPublicKey(key.Public())
		must(t, err)
		w.do(event.Command{Write: []event.Ref{user.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, id)
			if err != nil {
				return err
			}
			return u.Append(user.KeyAdded{KeyID: "pky_1",
				PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))})
		}})
		config := jwt.Config{
			Email:        id,
			Subject:      id,
			PrivateKeyID: "pky_1",
			TokenURL:     w.url + "/oauth/token",
			Scopes:       []string{"openid"},
			PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
				Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		}
		for range 3 {
			got, err := config.TokenSource(t.Context()).Token()
			must(t, err)
			if !w.active(got.AccessToken) {
				t.Errorf("got %+v", got)
			}
		}
	})
}

func TestDeviceFlow(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id, _ := w.application(app.Native, app.NoAuth)
		got := w.post("/oauth/device_authorization", url.Values{"client_id": {id}, "scope": {"openid"}})
		if got.status != 200 || got.json["verification_uri"] != w.url+"/device" || got.json["interval"] != 5.0 ||
			got.json["expires_in"] != 600.0 {
			t.Fatalf("got %+v", got)
		}
		ask := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {id},
			"device_code": {got.json["device_code"].(string)}}
		for _, want := range []string{"authorization_pending", "slow_down"} {
			if got := w.post("/oauth/token", ask); got.status != http.StatusBadRequest || got.json["error"] != want {
				t.Errorf("got %+v", got)
			}
		}
		person := w.visitor(w.userID)
		if done := person.goOn(got.json["verification_uri_complete"].(string)); done.status != 200 ||
			!slices.Equal(person.asked, []string{"name", "password", "allow"}) {
			t.Errorf("the pages asked for %q and came to %d %s", person.asked, done.status, done.body)
		}
		if got := w.post("/oauth/token", ask); got.status != 200 || got.json["id_token"] == nil ||
			!w.active(got.json["access_token"]) {
			t.Errorf("got %+v", got)
		}
		if got := w.post("/oauth/token", ask); got.json["error"] != "expired_token" {
			t.Errorf("got %+v", got)
		}
		if got := w.post("/oauth/device_authorization", url.Values{"client_id": {"app_none"}}); got.status != 401 ||
			got.json["error"] != "invalid_client" {
			t.Errorf("got %+v", got)
		}
	})
}

// assertion is what somebody signs to say who they are.
func (w *world) assertion(id string, key *ecdsa.PrivateKey, keyID string, change ...func(map[string]any)) string {
	w.t.Helper()
	return w.signed(id, "ES256", key, keyID, change...)
}

func (w *world) signed(id, algorithm string, key crypto.Signer, keyID string, change ...func(map[string]any)) string {
	w.t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": id, "sub": id, "aud": w.url, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"jti": rand.Text()}
	for _, c := range change {
		c(claims)
	}
	text, err := json.Marshal(claims)
	must(w.t, err)
	options := &jose.SignerOptions{}
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key}, options)
	must(w.t, err)
	signed, err := signer.Sign(text)
	must(w.t, err)
	compact, err := signed.CompactSerialize()
	must(w.t, err)
	return compact
}

// newKey makes a key with what is registered of it.
func newKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key, public(t, key)
}

// public is what is registered of a key.
func public(t *testing.T, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// key registers a key with an application.
func (w *world) key(appID, public string) (keyID string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"publicKey": public})
	must(w.t, err)
	keyID, _ = w.api(w.org, "POST", "/v1/apps/"+appID+"/keys", string(body)).json["keyId"].(string)
	return keyID
}

const byAssertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

func TestAnApplicationThatSignsForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id, _ := w.application(app.Web, app.PrivateKeyJWT)
		key, public := newKey(t)
		stranger, _ := newKey(t)
		keyID := w.key(id, public)
		signed := func(pairs ...string) url.Values {
			form := url.Values{"client_assertion_type": {byAssertion},
				"client_assertion": {w.assertion(id, key, keyID)}}
			for i := 0; i < len(pairs); i += 2 {
				form.Set(pairs[i], pairs[i+1])
			}
			return form
		}
		code, verifier := w.party(id, "", "offline_access").code(w.in)
		exchange := []string{"grant_type", "authorization_code", "code", code, "redirect_uri", callback,
			"code_verifier", verifier}
		for _, tt := range []struct {
			name   string
			form   url.Values
			header []string
			status int
			want   string
		}{
			{"another key", signed(append(exchange, "client_assertion", w.assertion(id, stranger, keyID))...), nil, 401,
				"invalid_client"},
			{"for another server",
				signed(append(exchange, "client_assertion",
					w.assertion(id, key, keyID, func(c map[string]any) { c["aud"] = "https://other.test" }))...), nil,
				401, "invalid_client"},
			{"from another time",
				signed(append(exchange, "client_assertion",
					w.assertion(id, key, keyID,
						func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() }))...), nil, 401,
				"invalid_client"},
			{"of somebody else", signed(append(exchange, "client_id", "app_none")...), nil, 401, "invalid_client"},
			{"nothing at all",
				url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code},
					"redirect_uri": {callback}, "code_verifier": {verifier}}, nil, 401, "invalid_client"},
			{"two methods at once", signed(exchange...), []string{"Authorization", basic(id, "x")}, 400,
				"invalid_request"},
		} {
			if got := w.post("/oauth/token", tt.form, tt.header...); got.status != tt.status ||
				got.json["error"] != tt.want {
				t.Errorf("%s: got %+v", tt.name, got)
			}
		}
		form := signed(exchange...)
		got := w.post("/oauth/token", form)
		if got.status != 200 || got.json["id_token"] == nil {
			t.Fatalf("got %+v", got)
		}
		access, refresh := got.json["access_token"].(string), got.json["refresh_token"].(string)
		if got := w.post("/oauth/introspect",
			url.Values{"token": {access}, "client_assertion_type": {byAssertion},
				"client_assertion": {form.Get("client_assertion")}}); got.status != 401 {
			t.Errorf("an assertion was taken twice: %+v", got)
		}
		if got := w.post("/oauth/introspect", signed("token", access)); got.json["active"] != true ||
			got.json["client_id"] != id {
			t.Errorf("got %+v", got)
		}
		got = w.post("/oauth/token", signed("grant_type", "refresh_token", "refresh_token", refresh))
		if refresh, _ = got.json["refresh_token"].(string); got.status != 200 || refresh == "" {
			t.Fatalf("got %+v", got)
		}
		if got := w.post("/oauth/revoke", signed("token", refresh)); got.status != 200 || w.active(access) {
			t.Errorf("got %+v", got)
		}
		w.api(w.org, "DELETE", "/v1/apps/"+id+"/keys/"+keyID, "")
		if got := w.post("/oauth/introspect", signed("token", access)); got.status != 401 ||
			got.json["error"] != "invalid_client" {
			t.Errorf("a key that was taken away: %+v", got)
		}
	})
}
