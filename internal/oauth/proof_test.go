package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/oauth/dpop"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
)

// prover is a client with a key.
type prover struct {
	w   *world
	key *ecdsa.PrivateKey
}

func (w *world) prover() *prover {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(w.t, err)
	return &prover{w, key}
}

const tokenPath = "/oauth/token"

// proof is one for a request with a token, or without. claims replace those that are right.
func (p *prover) proof(method, path, token string, claims map[string]any) ProvenRequest {
	p.w.t.Helper()
	said := map[string]any{"jti": rand.Text(), "htm": method, "htu": issuer + path, "iat": p.w.store.Now().Unix(),
		"nonce": p.w.Nonce()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		said["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	maps.Copy(said, claims)
	text, err := json.Marshal(said)
	must(p.w.t, err)
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key},
		&jose.SignerOptions{EmbedJWK: true, ExtraHeaders: map[jose.HeaderKey]any{"typ": "dpop+jwt"}})
	must(p.w.t, err)
	signed, err := by.Sign(text)
	must(p.w.t, err)
	compact, err := signed.CompactSerialize()
	must(p.w.t, err)
	return ProvenRequest{Proofs: []string{compact}, Method: method, Path: path}
}

// client is an application that has proven the key.
func (p *prover) client(id string) *Client {
	p.w.t.Helper()
	c := p.w.client(id)
	key, err := p.w.ProveKey(c, p.proof("POST", tokenPath, "", nil))
	must(p.w.t, err)
	c.Key = key
	return c
}

func (p *prover) print() string {
	p.w.t.Helper()
	return p.client("app_spa").Key.Thumbprint
}

// tokens lets an application have tokens of usr_a for the key.
func (p *prover) tokens(client, scopes string) *Tokens {
	p.w.t.Helper()
	made, err := p.exchange(p.client(client), ask(client, scopes))
	must(p.w.t, err)
	return made
}

func (p *prover) exchange(c *Client, a request.Ask) (*Tokens, error) {
	p.w.t.Helper()
	code := p.w.code(a, p.w.signIn("usr_a"))
	return p.w.Exchange(p.w.t.Context(), c, Code{Text: code, RedirectURI: callback, Verifier: verifier})
}

func (p *prover) bearer(text string) *session.Bearer {
	p.w.t.Helper()
	b, err := p.w.Bearer(p.w.t.Context(), text)
	must(p.w.t, err)
	return b
}

func refuses(t *testing.T, err error, reason errs.Reason, cause refusal.Cause) {
	t.Helper()
	e, _ := errors.AsType[*errs.Error](err)
	if e == nil || e.Reason != reason {
		t.Fatalf("got %v, want %s", err, reason)
	}
	if kept, _ := e.Kept.(refusal.Refusal); kept.Cause != cause {
		t.Errorf("kept %+v, want %q", e.Kept, cause)
	}
}

func TestTokensAreBoundToTheKeyThatWasProven(t *testing.T) {
	w := newWorld(t)
	p := w.prover()
	for _, client := range []string{"app_spa", "app_web", "app_jwt"} {
		made := p.tokens(client, "openid offline_access")
		b := p.bearer(made.Access)
		if made.Key != p.print() || b.Given.Key != made.Key || b.Caller.Key != made.Key {
			t.Fatalf("%s: %+v is bound to %q", client, made, b.Given.Key)
		}
		about, err := w.ClaimsOf(t.Context(), b, w.client(client))
		must(t, err)
		said := w.Introspection(b, about).Values
		if said["token_type"] != "DPoP" || said["cnf"].(map[string]any)["jkt"] != made.Key {
			t.Errorf("%s: introspection tells %v", client, said)
		}
		if client == "app_jwt" {
			signed, err := jose.ParseSigned(made.Access, []jose.SignatureAlgorithm{jose.ES256})
			must(t, err)
			var claims struct{ Cnf struct{ Jkt string } }
			must(t, json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &claims))
			if claims.Cnf.Jkt != made.Key {
				t.Errorf("the token says %+v", claims)
			}
		}
	}
	robot, err := w.ClientCredentials(t.Context(), &Client{Service: eventtest.State(t, w.store, user.Kind, "usr_robot"), Key: p.client("app_spa").Key}, nil)
	must(t, err)
	if p.bearer(robot.Access).Given.Key != p.print() {
		t.Error("the token of a service user is bound to nothing")
	}
	plain := w.tokens("app_jwt", "usr_a", "openid")
	b := p.bearer(plain.Access)
	about, err := w.ClaimsOf(t.Context(), b, w.client("app_jwt"))
	must(t, err)
	if said := w.Introspection(b, about).Values; plain.Key != "" || b.Caller.Key != "" || said["token_type"] != "Bearer" ||
		said["cnf"] != nil {
		t.Errorf("without a proof: %+v, %v", plain, said)
	}
}

func TestWhichProofsAreTaken(t *testing.T) {
	w := newWorld(t)
	p := w.prover()
	fine := func() ProvenRequest { return p.proof("POST", tokenPath, "", nil) }
	old := p.proof("POST", tokenPath, "", nil)
	w.store.Advance(dpop.Life)
	two := fine()
	two.Proofs = append(two.Proofs, fine().Proofs...)
	for name, tt := range map[string]struct {
		r      ProvenRequest
		reason errs.Reason
		cause  refusal.Cause
	}{
		"two at once":       {two, access.InvalidProof, refusal.Proof},
		"nonsense":          {ProvenRequest{[]string{"x"}, "POST", tokenPath}, access.InvalidProof, refusal.Proof},
		"of another path":   {p.proof("POST", "/oauth/par", "", map[string]any{"htu": issuer + tokenPath}), access.InvalidProof, refusal.Proof},
		"of another method": {p.proof("POST", tokenPath, "", map[string]any{"htm": "GET"}), access.InvalidProof, refusal.Proof},
		"of another server": {p.proof("POST", tokenPath, "", map[string]any{"htu": "https://evil.test" + tokenPath}), access.InvalidProof, refusal.Proof},
		"without a nonce":   {p.proof("POST", tokenPath, "", map[string]any{"nonce": ""}), access.NonceNeeded, ""},
		"of a minute ago":   {old, access.NonceNeeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.ProveKey(w.client("app_spa"), tt.r)
			refuses(t, err, tt.reason, tt.cause)
			if _, err := w.ProveKey(nil, tt.r); err == nil { // where an assertion tells who asks
				t.Error("it is taken of nobody")
			}
		})
	}
	if key, err := w.ProveKey(w.client("app_spa"), ProvenRequest{}); key != nil || err != nil {
		t.Errorf("no proof: %+v, %v", key, err)
	}
}

func TestAnApplicationThatNeedsAKeyGetsNoTokensWithoutOne(t *testing.T) {
	w := newWorld(t)
	w.change("app_spa", app.SettingsChanged{DPoPRequired: new(true)})
	_, err := w.ProveKey(w.client("app_spa"), ProvenRequest{})
	refuses(t, err, errs.InvalidRequest, refusal.ProofMissing)
	w.prover().tokens("app_spa", "openid")
}

// A proof works once, however its tokens are asked for, and what it came with is not used up by the second try.
func TestAProofGivesTokensOnce(t *testing.T) {
	w := newWorld(t)
	p := w.prover()
	c := p.client("app_spa")
	made, err := p.exchange(c, ask("app_spa", "openid offline_access"))
	must(t, err)
	for name, again := range map[string]func() error{
		"a code": func() error { _, err := p.exchange(c, ask("app_spa", "openid")); return err },
		"a refresh token": func() error {
			_, err := w.Refresh(t.Context(), c, made.Refresh, nil)
			return err
		},
		"a pushed request": func() error { _, err := w.Push(t.Context(), c, ask("app_spa", "openid")); return err },
	} {
		t.Run(name, func(t *testing.T) { refuses(t, again(), access.InvalidProof, refusal.Proof) })
	}
	robot := &Client{Service: eventtest.State(t, w.store, user.Kind, "usr_robot"), Key: c.Key}
	_, err = w.ClientCredentials(t.Context(), robot, nil)
	refuses(t, err, access.InvalidProof, "")
	next, err := w.Refresh(t.Context(), p.client("app_spa"), made.Refresh, nil)
	must(t, err)
	// The grace of a refresh token that was just replaced takes a proof of its own, too.
	used := p.client("app_spa")
	same, err := w.Refresh(t.Context(), used, made.Refresh, nil)
	must(t, err)
	if same.Access != next.Access {
		t.Error("another answer")
	}
	_, err = w.Refresh(t.Context(), used, made.Refresh, nil)
	refuses(t, err, access.InvalidProof, refusal.Proof)
}

func TestRefreshTokensOfPublicClientsAreBound(t *testing.T) {
	w := newWorld(t)
	p, other := w.prover(), w.prover()
	made := p.tokens("app_spa", "openid offline_access")
	for name, c := range map[string]*Client{"another key": other.client("app_spa"), "no key": w.client("app_spa")} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Refresh(t.Context(), c, made.Refresh, nil)
			refuses(t, err, InvalidGrant, refusal.ProofKey)
		})
	}
	next, err := w.Refresh(t.Context(), p.client("app_spa"), made.Refresh, nil)
	must(t, err)
	_, err = w.Refresh(t.Context(), other.client("app_spa"), made.Refresh, nil) // within the grace
	refuses(t, err, InvalidGrant, refusal.ProofKey)
	_, err = w.Refresh(t.Context(), p.client("app_spa"), next.Refresh, nil)
	must(t, err)

	// One that was given without a key is bound by the first proof.
	plain := w.tokens("app_spa", "usr_a", "openid offline_access")
	bound, err := w.Refresh(t.Context(), p.client("app_spa"), plain.Refresh, nil)
	must(t, err)
	if bound.Key != p.print() {
		t.Errorf("bound to %q", bound.Key)
	}
	_, err = w.Refresh(t.Context(), w.client("app_spa"), bound.Refresh, nil)
	refuses(t, err, InvalidGrant, refusal.ProofKey)

	// A client that proves who it is may change its key.
	web := p.tokens("app_web", "openid offline_access")
	next, err = w.Refresh(t.Context(), other.client("app_web"), web.Refresh, nil)
	must(t, err)
	if next.Key != other.print() {
		t.Errorf("bound to %q", next.Key)
	}
}

func TestACodeForAKeyIsExchangedWithItAlone(t *testing.T) {
	w := newWorld(t)
	p, other := w.prover(), w.prover()
	a := ask("app_spa", "openid")
	a.Key = p.print()
	for name, c := range map[string]*Client{"another key": other.client("app_spa"), "no key": w.client("app_spa")} {
		_, err := p.exchange(c, a)
		refuses(t, err, InvalidGrant, refusal.ProofKey)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	_, err := p.exchange(p.client("app_spa"), a)
	must(t, err)
	a.Key = "nonsense"
	began, err := w.Begin(t.Context(), a)
	must(t, err)
	if got := parameters(t, began.Refused.Address).Get("error"); got != "invalid_request" {
		t.Errorf("got %q", got)
	}
}

func TestAPushedRequestBindsItsCodeToTheKeyThatWasProven(t *testing.T) {
	w := newWorld(t)
	p, other := w.prover(), w.prover()
	a := ask("app_spa", "openid")
	a.Key = other.print()
	_, err := w.Push(t.Context(), p.client("app_spa"), a)
	refuses(t, err, access.InvalidProof, "")
	a.Key = ""
	pushed, err := w.Push(t.Context(), p.client("app_spa"), a)
	must(t, err)
	began, err := w.Begin(t.Context(), bring("app_spa", pushed.URI))
	must(t, err)
	to, err := w.Approve(t.Context(), began.ID, browser, w.signIn("usr_a"), nil)
	must(t, err)
	code := Code{Text: parameters(t, to.Address).Get("code"), RedirectURI: callback, Verifier: verifier}
	_, err = w.Exchange(t.Context(), other.client("app_spa"), code)
	refuses(t, err, InvalidGrant, refusal.ProofKey)
	_, err = w.Exchange(t.Context(), p.client("app_spa"), code)
	must(t, err)
}

func TestAProofForABoundToken(t *testing.T) {
	w := newWorld(t)
	p, other := w.prover(), w.prover()
	made := p.tokens("app_spa", "openid")
	const path = "/v1/users/me"
	prove := func(r ProvenRequest, reads bool) error {
		return w.ProveToken(t.Context(), r, made.Access, made.Key, reads)
	}
	for name, tt := range map[string]struct {
		r      ProvenRequest
		reason errs.Reason
	}{
		"none":                  {ProvenRequest{Method: "GET", Path: path}, access.InvalidProof},
		"of another key":        {other.proof("GET", path, made.Access, nil), access.InvalidProof},
		"for another token":     {p.proof("GET", path, "other", nil), access.InvalidProof},
		"for no token":          {p.proof("GET", path, "", nil), access.InvalidProof},
		"of another path":       {p.proof("GET", path, made.Access, map[string]any{"htu": issuer + "/v1/users"}), access.InvalidProof},
		"without a fresh nonce": {p.proof("GET", path, made.Access, map[string]any{"nonce": "x"}), access.NonceNeeded},
	} {
		for _, reads := range []bool{true, false} {
			t.Run(name, func(t *testing.T) { refuses(t, prove(tt.r, reads), tt.reason, "") })
		}
	}
	for _, reads := range []bool{true, false} {
		r := p.proof("GET", path, made.Access, nil)
		before := w.store.Fingerprint()
		must(t, prove(r, reads))
		if stored := w.store.Fingerprint() != before; stored == reads {
			t.Errorf("reads %t: stored %t", reads, stored)
		}
		refuses(t, prove(r, reads), access.InvalidProof, "")
	}
}

// A node remembers so many proofs of reads and no more. Those beyond are remembered in the database.
func TestWhatANodeCannotRememberIsStored(t *testing.T) {
	w := newWorld(t)
	p := w.prover()
	made := p.tokens("app_spa", "openid")
	for range dpop.MostSeen {
		w.seen.First(&dpop.Proof{Key: "k", ID: rand.Text()}, w.store.Now())
	}
	r := p.proof("GET", "/v1/users/me", made.Access, nil)
	must(t, w.ProveToken(t.Context(), r, made.Access, made.Key, true))
	w.store.Advance(time.Second)
	refuses(t, w.ProveToken(t.Context(), r, made.Access, made.Key, true), access.InvalidProof, "")
}

// A node of the version before would take a bound token without a proof.
func TestNothingIsBoundWhileOlderNodesRun(t *testing.T) {
	key := newWorld(t).prover().client("app_spa").Key
	s, _, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "signet.db"),
		Kinds: []event.Definition{app.Kind}, Master: secret.NewMasterKey(), FactVersion: boundVersion - 1})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	err = s.Do(t.Context(), event.Command{Origin: event.Origin{Actor: event.System}, Rows: key.rows(), Decide: key.use})
	if !errors.Is(err, errNodesUnaware) || event.FactVersion < boundVersion {
		t.Errorf("got %v", err)
	}
}
