package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/assertion"
)

func publicPEM(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (w *world) secretOf(row event.RowKey) string {
	text, hash := secret.NewToken(secret.Client)
	w.store.GivenRow(event.Row{RowKey: row, Value: hash})
	return text
}

func TestAnApplicationUsesAMethodThatItsSettingsAccept(t *testing.T) {
	w := newWorld(t)
	right := w.secretOf(app.SecretRow("app_web"))
	other := w.secretOf(app.SecretRow("app_spa"))
	for _, tt := range []struct {
		name string
		c    Credentials
		fine bool
	}{
		{"basic", Credentials{Method: app.SecretBasic, ClientID: "app_web", Secret: right}, true},
		{"post", Credentials{Method: app.SecretPost, ClientID: "app_web", Secret: right}, true},
		{"nothing", Credentials{Method: app.NoAuth, ClientID: "app_web"}, false},
		{"another secret", Credentials{Method: app.SecretBasic, ClientID: "app_web", Secret: other}, false},
		{"a truncated secret",
			Credentials{Method: app.SecretBasic, ClientID: "app_web", Secret: right[:len(right)-1]}, false},
		{"an empty secret", Credentials{Method: app.SecretBasic, ClientID: "app_web"}, false},
		{"an unknown client", Credentials{Method: app.SecretBasic, ClientID: "app_none", Secret: right}, false},
		{"no client", Credentials{Method: app.NoAuth}, false},
		{"a public client", Credentials{Method: app.NoAuth, ClientID: "app_spa"}, true},
		{"a public client with a secret in the body",
			Credentials{Method: app.SecretPost, ClientID: "app_spa", Secret: other}, false},
		{"a public client with a secret",
			Credentials{Method: app.SecretBasic, ClientID: "app_spa", Secret: other}, false},
		{"a person", Credentials{Method: app.SecretBasic, ClientID: "usr_a", Secret: right}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := w.Authenticate(t.Context(), tt.c)
			if tt.fine {
				must(t, err)
				if c.ID() != tt.c.ClientID {
					t.Errorf("got %s", c.ID())
				}
				return
			}
			wants(t, err, ErrInvalidClient)
		})
	}
	w.change("org_a", org.Deactivated{})
	_, err := w.Authenticate(t.Context(), Credentials{Method: app.SecretBasic, ClientID: "app_web", Secret: right})
	wants(t, err, ErrInvalidClient)
}

func TestServiceUsersGetTokensForThemselves(t *testing.T) {
	w := newWorld(t)
	w.change("usr_robot", user.SecretSet{})
	right := w.secretOf(user.SecretRow("usr_robot"))
	for _, method := range []app.AuthMethod{app.SecretBasic, app.SecretPost} {
		c, err := w.Authenticate(t.Context(), Credentials{Method: method, ClientID: "usr_robot", Secret: right})
		must(t, err)
		made, err := w.ClientCredentials(t.Context(), c,
			[]string{"signet.read", "signet.passwords", "offline_access", "openid"})
		must(t, err)
		if made.Refresh != "" || !slices.Equal(made.Scopes, sorted("openid", "signet.passwords", "signet.read")) {
			t.Errorf("got %+v", made)
		}
		caller, err := w.Sessions.Authenticate(t.Context(), made.Access)
		must(t, err)
		if caller.UserID != "usr_robot" || !slices.Equal(caller.Scopes, made.Scopes) || caller.TokenKind != "oat" {
			t.Errorf("got %+v", caller)
		}
		w.store.Advance(serviceLife)
		if w.counts(made.Access) {
			t.Error("it has expired")
		}
	}
	_, err := w.Authenticate(t.Context(), Credentials{Method: app.NoAuth, ClientID: "usr_robot"})
	wants(t, err, ErrInvalidClient)
	_, err = w.Authenticate(t.Context(),
		Credentials{Method: app.SecretBasic, ClientID: "usr_robot", Secret: right[:20]})
	wants(t, err, ErrInvalidClient)
	_, err = w.ClientCredentials(t.Context(), w.client("app_web"), nil)
	wants(t, err, ErrUnauthorizedClient)

	// Without a scope of the API it is not meant for the API.
	c, err := w.Authenticate(t.Context(), Credentials{Method: app.SecretBasic, ClientID: "usr_robot", Secret: right})
	must(t, err)
	made, err := w.ClientCredentials(t.Context(), c, []string{"openid"})
	must(t, err)
	if _, err := w.Sessions.Authenticate(t.Context(), made.Access); err == nil {
		t.Error("a token for others is taken by the API")
	}
	w.change("usr_robot", user.Deactivated{})
	_, err = w.Authenticate(t.Context(), Credentials{Method: app.SecretBasic, ClientID: "usr_robot", Secret: right})
	wants(t, err, ErrInvalidClient)
}

func TestAssertions(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	type change = func(w *world, claims map[string]any, by *jose.SigningKey, kid *string)
	set := func(name string, value any) change {
		return func(_ *world, claims map[string]any, _ *jose.SigningKey, _ *string) { claims[name] = value }
	}
	at := func(name string, d time.Duration) change {
		return func(w *world, claims map[string]any, _ *jose.SigningKey, _ *string) {
			claims[name] = w.store.Now().Add(d).Unix()
		}
	}
	without := func(name string) change {
		return func(_ *world, claims map[string]any, _ *jose.SigningKey, _ *string) { delete(claims, name) }
	}
	by := func(algorithm jose.SignatureAlgorithm, key any) change {
		return func(_ *world, _ map[string]any, by *jose.SigningKey, _ *string) {
			*by = jose.SigningKey{Algorithm: algorithm, Key: key}
		}
	}
	asGrant := func(w *world, text string) error {
		_, err := w.ByAssertion(t.Context(), "", text, nil, nil)
		return err
	}
	asClient := func(w *world, text string) error {
		_, err := w.Authenticate(t.Context(), Credentials{Method: app.PrivateKeyJWT, Assertion: text})
		return err
	}
	for _, tt := range []struct {
		name   string
		change change
		why    string // in the log; empty: it is fine
	}{
		{"as it should be", set("x", 1), ""},
		{"for the token endpoint", set("aud", []string{"https://other.test", issuer + "/oauth/token"}), ""},
		{"for pushed requests", set("aud", issuer+"/oauth/par"), ""},
		{"with RSA", by(jose.PS256, rsaKey), ""},
		{"with the id of the key",
			func(_ *world, _ map[string]any, _ *jose.SigningKey, kid *string) { *kid = "pky_ec" }, ""},
		{"with the id of another key",
			func(_ *world, _ map[string]any, _ *jose.SigningKey, kid *string) { *kid = "pky_rsa" }, "is not signed"},
		{"by a stranger", by(jose.ES256, stranger), "is not signed"},
		{"with HMAC by the public key", by(jose.HS256, []byte(publicPEM(t, ec.Public()))), "cannot be read"},
		{"for somebody else", set("aud", "https://other.test"), "is not meant for this server"},
		{"for nobody", without("aud"), "is not meant for this server"},
		{"about somebody else", set("sub", "usr_a"), "iss and sub"},
		{"by somebody else", set("iss", "usr_a"), "no active service user"},
		{"without an end", without("exp"), "exp"},
		{"that has ended", at("exp", 0), "has expired"},
		{"that lives too long", at("exp", 2*time.Hour), "exp"},
		{"without a beginning", without("iat"), "iat"},
		{"from the future", at("iat", 2*time.Minute), "iat"},
		{"too old", at("iat", -2*time.Hour), "iat"},
		{"not yet", at("nbf", 2*time.Minute), "nbf"},
		{"with the longest id", set("jti", strings.Repeat("x", 255)), ""},
		{"with an id that is too long", set("jti", strings.Repeat("x", 256)), "too long"},
		{"with a number for an id", set("jti", 1), "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as := func(use func(w *world, text string) error) error {
				w := newWorld(t)
				w.change("usr_robot", user.KeyAdded{KeyID: "pky_ec", PublicKey: publicPEM(t, ec.Public())})
				w.change("usr_robot", user.KeyAdded{KeyID: "pky_rsa", PublicKey: publicPEM(t, rsaKey.Public())})
				now := w.store.Now()
				claims := map[string]any{"iss": "usr_robot", "sub": "usr_robot", "aud": issuer, "iat": now.Unix(),
					"exp": now.Add(time.Hour).Unix(), "jti": "one"}
				key, kid := jose.SigningKey{Algorithm: jose.ES256, Key: ec}, ""
				tt.change(w, claims, &key, &kid)
				return use(w, signed(t, key, kid, claims))
			}
			asGrant, asClient := as(asGrant), as(asClient)
			if tt.why == "" {
				must(t, asGrant)
				must(t, asClient)
				return
			}
			wants(t, asGrant, ErrInvalidGrant)
			wants(t, asClient, ErrInvalidClient)
			for _, err := range []error{asGrant, asClient} {
				if !strings.Contains(why(err), tt.why) {
					t.Errorf("the log says %q", why(err))
				}
			}
		})
	}
	assertion := func(t *testing.T, w *world, jti string) string {
		now := w.store.Now()
		claims := map[string]any{"iss": "usr_robot", "sub": "usr_robot", "aud": issuer, "iat": now.Unix(),
			"exp": now.Add(time.Hour).Unix(), "jti": jti}
		if jti == "" {
			delete(claims, "jti")
		}
		return signed(t, jose.SigningKey{Algorithm: jose.ES256, Key: ec}, "", claims)
	}
	t.Run("single use, in whatever way", func(t *testing.T) {
		w := newWorld(t)
		w.change("usr_robot", user.KeyAdded{KeyID: "pky_ec", PublicKey: publicPEM(t, ec.Public())})
		one, two, none := assertion(t, w, "one"), assertion(t, w, "two"), assertion(t, w, "")
		must(t, asGrant(w, one))
		must(t, asClient(w, two))
		for _, used := range []string{one, two, assertion(t, w, "one")} {
			wants(t, asGrant(w, used), ErrInvalidGrant)
			wants(t, asClient(w, used), ErrInvalidClient)
		}
		if err := asClient(w, none); !strings.Contains(err.Error(), "has no jti") {
			t.Errorf("a client assertion without an id: %v", err)
		}
		for text, word := range map[string]string{one: "already been used",
			assertion(t, w, strings.Repeat("x", 256)): "255"} {
			if err := asGrant(w, text); !strings.Contains(err.Error(), word) {
				t.Errorf("%v does not say %s", err, word)
			}
			if err := asClient(w, text); !strings.Contains(err.Error(), word) {
				t.Errorf("%v does not say %s", err, word)
			}
		}
		w.store.Advance(59 * time.Minute) // it is known as used for as long as it would count
		wants(t, asGrant(w, one), ErrInvalidGrant)
	})
	t.Run("without an id, again within a minute of its first use", func(t *testing.T) {
		for _, id := range []string{"left out", "empty"} {
			for _, key := range []jose.SigningKey{{Algorithm: jose.ES256, Key: ec},
				{Algorithm: jose.RS256, Key: rsaKey}} {
				w := newWorld(t)
				w.change("usr_robot", user.KeyAdded{KeyID: "pky_ec", PublicKey: publicPEM(t, ec.Public())})
				w.change("usr_robot", user.KeyAdded{KeyID: "pky_rsa", PublicKey: publicPEM(t, rsaKey.Public())})
				now := w.store.Now()
				claims := map[string]any{"iss": "usr_robot", "sub": "usr_robot", "aud": issuer, "iat": now.Unix(),
					"exp": now.Add(time.Hour).Unix(), "jti": ""}
				if id == "left out" {
					delete(claims, "jti")
				}
				first := signed(t, key, "", claims)
				must(t, asGrant(w, first))
				w.store.Advance(30 * time.Second)
				must(t, asGrant(w, first))
				w.store.Advance(30*time.Second - time.Microsecond) // the second use did not start the minute again
				must(t, asGrant(w, first))
				wants(t, asClient(w, first), ErrInvalidClient)
				w.store.Advance(time.Microsecond)
				// The same claims are the same assertion, whatever the signature is and however it is written.
				for name, text := range map[string]string{"the same": first, "signed again": signed(t, key, "", claims),
					"in other base64": otherBase64(t, first)} {
					err := asGrant(w, text)
					if wants(t, err, ErrInvalidGrant); !strings.Contains(err.Error(), "already been used") {
						t.Errorf("%s: %v", name, err)
					}
				}
				w.store.Advance(57 * time.Minute)
				wants(t, asGrant(w, first), ErrInvalidGrant)
				claims["iat"] = w.store.Now().Unix()
				must(t, asGrant(w, signed(t, key, "", claims)))
			}
		}
	})
	t.Run("strangers learn nothing about what is missing", func(t *testing.T) {
		w := newWorld(t)
		_, err := w.ByAssertion(t.Context(), "", assertion(t, w, strings.Repeat("x", 256)), nil, nil)
		if wants(t, err, ErrInvalidGrant); strings.Contains(err.Error(), "jti") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an expired key", func(t *testing.T) {
		w := newWorld(t)
		w.change("usr_robot", user.KeyAdded{KeyID: "pky_ec", PublicKey: publicPEM(t, ec.Public()),
			Expires: event.Micros(w.store.Now())})
		now := w.store.Now()
		text := signed(t, jose.SigningKey{Algorithm: jose.ES256, Key: ec}, "",
			map[string]any{"iss": "usr_robot", "sub": "usr_robot", "aud": issuer, "iat": now.Unix(),
				"exp": now.Add(time.Hour).Unix(), "jti": "one"})
		_, err := w.ByAssertion(t.Context(), "", text, nil, nil)
		wants(t, err, ErrInvalidGrant)
	})
	for _, bad := range []string{"", "x", "e30.e30.", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ1c3Jfcm9ib3QifQ."} {
		_, err := newWorld(t).ByAssertion(t.Context(), "", bad, nil, nil)
		wants(t, err, ErrInvalidGrant)
	}
}

// otherBase64 writes an assertion in other characters that mean the same: a line break in the header, where Go's
// decoder skips it.
func otherBase64(t *testing.T, text string) string {
	t.Helper()
	other := text[:4] + "\n" + text[4:]
	if _, err := assertion.Read(other); err != nil {
		t.Fatalf("nobody needs this test any more: %v", err)
	}
	return other
}

// published is a set of keys at one address.
type published struct{ key jose.JSONWebKey }

func (p published) Find(_ context.Context, _, address, keyID string) ([]jose.JSONWebKey, error) {
	if address != "https://shop.test/keys" {
		return nil, errors.New("nothing is there")
	}
	if keyID != "" && keyID != p.key.KeyID {
		return nil, nil
	}
	return []jose.JSONWebKey{p.key}, nil
}

func TestKeysOfAnApplication(t *testing.T) {
	w := newWorld(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	w.KeySets = published{jose.JSONWebKey{Key: ec.Public(), KeyID: "theirs"}}
	now := event.Micros(w.store.Now())
	a := &app.App{Keys: []app.Key{{ID: "fresh", Public: publicPEM(t, ec.Public()), Expires: now + 1},
		{ID: "over", Public: publicPEM(t, ec.Public()), Expires: now}}}
	ids := func(keyID string) []string {
		t.Helper()
		keys, err := w.appKeys(t.Context(), "org_a", a, keyID)
		must(t, err)
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.KeyID)
		}
		return ids
	}
	if got := ids(""); !slices.Equal(got, []string{"fresh"}) {
		t.Errorf("got %q", got)
	}
	a.KeySetURI = "https://shop.test/keys"
	if got := ids("theirs"); !slices.Equal(got, []string{"fresh", "theirs"}) {
		t.Errorf("got %q", got)
	}
	a.KeySetURI = "https://elsewhere.test/keys"
	if _, err := w.appKeys(t.Context(), "org_a", a, ""); err == nil {
		t.Error("keys that cannot be read are no keys")
	}
}

func signed(t *testing.T, key jose.SigningKey, kid string, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	by, err := jose.NewSigner(key, options)
	must(t, err)
	text, err := json.Marshal(claims)
	must(t, err)
	s, err := by.Sign(text)
	must(t, err)
	out, err := s.CompactSerialize()
	must(t, err)
	return out
}

func TestLogoutRequests(t *testing.T) {
	w := newWorld(t)
	id, err := w.BeginLogout(t.Context(), Logout{Client: "app_spa", UserID: "usr_a"}, browser,
		"https://shop.test/", "st")
	must(t, err)
	_, err = w.PendingLogout(t.Context(), id, "another browser")
	wants(t, err, ErrRequestNotFound)
	l, err := w.PendingLogout(t.Context(), id, browser)
	must(t, err)
	to, err := w.EndLogout(t.Context(), id, browser)
	must(t, err)
	if l.UserID != "usr_a" || to != "https://shop.test/?state=st" {
		t.Errorf("got %+v, %s", l, to)
	}
	_, err = w.EndLogout(t.Context(), id, browser)
	wants(t, err, ErrRequestNotFound)
	for _, tt := range []struct {
		client, uri string
		want        error
	}{
		{"app_spa", "https://shop.test/x", ErrRedirectRefused}, {"app_spa", callback, ErrRedirectRefused},
		{"", "https://shop.test/", ErrRedirectRefused},
		{"app_none", "https://shop.test/", ErrUnknownClient}, {"app_none", "", ErrUnknownClient},
	} {
		_, err := w.BeginLogout(t.Context(), Logout{Client: tt.client}, browser, tt.uri, "")
		wants(t, err, tt.want)
	}
}
