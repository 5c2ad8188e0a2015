package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/test/testdb"
)

// prover is a client with a key.
type prover struct {
	*world
	algorithm jose.SignatureAlgorithm
	key       crypto.Signer
}

func (w *world) prover() *prover {
	w.t.Helper()
	key, _ := newKey(w.t)
	return &prover{w, jose.ES256, key}
}

// proof is one for a request with an access token, or without. claims replace those that are right.
func (p *prover) proof(method, path, token string, claims map[string]any) string {
	p.t.Helper()
	grants := p.server.Grants()
	said := map[string]any{"jti": rand.Text(), "htm": method, "htu": p.url + path, "iat": grants.Clock().Unix(),
		"nonce": grants.Nonce()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		said["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	maps.Copy(said, claims)
	text, err := json.Marshal(said)
	must(p.t, err)
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: p.algorithm, Key: p.key},
		&jose.SignerOptions{EmbedJWK: true, ExtraHeaders: map[jose.HeaderKey]any{"typ": "dpop+jwt"}})
	must(p.t, err)
	signed, err := by.Sign(text)
	must(p.t, err)
	compact, err := signed.CompactSerialize()
	must(p.t, err)
	return compact
}

// robotToken is one of a service user for the key.
func (p *prover) robotToken(scope string) (id, token string) {
	p.t.Helper()
	id, secretText, _ := p.robot(access.OrgOwner)
	got := p.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}, "scope": {scope}},
		"Authorization", basic(id, secretText), "DPoP", p.proof("POST", "/oauth/token", "", nil))
	if got.status != 200 || got.json["token_type"] != "DPoP" || got.header.Get("DPoP-Nonce") == "" {
		p.t.Fatalf("got %+v", got)
	}
	return id, got.json["access_token"].(string)
}

func TestRefusalsOfProofsToTheLetter(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	p := w.prover()
	_, token := p.robotToken("openid")
	id, _ := w.application(app.SPA, app.NoAuth, func(s *app.Settings) { s.DPoPRequired = true })
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {"x"}}
	const challenge, algorithms = `DPoP error="`, `, algs="ES256 EdDSA PS256"`
	for _, tt := range []struct {
		name, path, authorization, proof string
		status                           int
		code, description, challenge     string
	}{
		{"no proof where one is needed", "/oauth/token", "", "", 400, "invalid_request",
			"this application gets tokens only for a key: send a proof in the header DPoP", ""},
		{"nonsense", "/oauth/token", "", "x", 400, "invalid_dpop_proof",
			"the DPoP proof is not a JWT that is signed with ES256, EdDSA or PS256 and has the public key as jwk", ""},
		{"another address", "/oauth/token", "", p.proof("POST", "/oauth/par", "", nil), 400, "invalid_dpop_proof",
			"the DPoP proof is for another address: htu must be that of the request, without query and fragment", ""},
		{"no nonce", "/oauth/token", "", p.proof("POST", "/oauth/token", "", map[string]any{"nonce": ""}), 400, "use_dpop_nonce",
			"the DPoP proof must have the nonce that is in the header DPoP-Nonce of this answer: make a new proof", ""},
		{"a bound token as Bearer", "/oauth/userinfo", "Bearer " + token, "", 401, "invalid_token",
			"this access token is bound to a key: send it as authorization: DPoP <token>, with a proof in the header DPoP",
			challenge + `invalid_token", error_description="this access token is bound to a key: send it as authorization: DPoP <token>, with a proof in the header DPoP"` + algorithms},
		{"a bound token without a proof", "/oauth/userinfo", "DPoP " + token, "", 401, "invalid_dpop_proof",
			"the DPoP proof must be sent in one header DPoP",
			challenge + `invalid_dpop_proof", error_description="the DPoP proof must be sent in one header DPoP"` + algorithms},
		{"a proof for no token", "/oauth/userinfo", "DPoP " + token, p.proof("POST", "/oauth/userinfo", "", nil), 401,
			"invalid_dpop_proof",
			"the DPoP proof is for another access token: ath must be its SHA-256 in base64url without padding",
			challenge + `invalid_dpop_proof", error_description="the DPoP proof is for another access token: ath must be its SHA-256 in base64url without padding"` + algorithms},
		{"a proof without a nonce", "/oauth/userinfo", "DPoP " + token,
			p.proof("POST", "/oauth/userinfo", token, map[string]any{"nonce": ""}), 401, "use_dpop_nonce",
			"the DPoP proof must have the nonce that is in the header DPoP-Nonce of this answer: make a new proof",
			challenge + `use_dpop_nonce", error_description="the DPoP proof must have the nonce that is in the header DPoP-Nonce of this answer: make a new proof"` + algorithms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			headers, body := []string(nil), form
			if tt.authorization != "" {
				headers, body = []string{"Authorization", tt.authorization}, url.Values{}
			}
			if tt.proof != "" {
				headers = append(headers, "DPoP", tt.proof)
			}
			got := w.post(tt.path, body, headers...)
			if got.status != tt.status || got.json["error"] != tt.code || got.json["error_description"] != tt.description ||
				got.header.Get("Www-Authenticate") != tt.challenge {
				t.Errorf("got %+v", got)
			}
			if asks := tt.code == "use_dpop_nonce"; asks && got.header.Get("DPoP-Nonce") == "" {
				t.Error("there is no nonce to use")
			}
		})
	}
	plain := w.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}, "scope": {"openid"}}, p.robotHeader()...)
	text, _ := plain.json["access_token"].(string)
	if got := w.get(w.url+"/oauth/userinfo", "Authorization", "DPoP "+text, "DPoP",
		p.proof("GET", "/oauth/userinfo", text, nil)); plain.json["token_type"] != "Bearer" || got.status != 401 ||
		!strings.HasPrefix(got.header.Get("Www-Authenticate"), `Bearer error="invalid_token"`) {
		t.Errorf("a token that is bound to nothing: %+v", got)
	}
}

func (p *prover) robotHeader() []string {
	id, secretText, _ := p.robot()
	return []string{"Authorization", basic(id, secretText)}
}

// At Signet's own API a bound token counts with a proof of the request, in every protocol.
func TestBoundTokensAtTheAPI(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		p := w.prover()
		id, token := p.robotToken("signet.self signet.write")
		const read, change = "/v1/users/me", "/v1/users/me/profile"
		call := func(method, path, body, authorization, proof string) reply {
			t.Helper()
			return w.request(method, w.url+path, body, "Authorization", authorization, "DPoP", proof,
				"Content-Type", "application/json")
		}
		got := call("GET", read, "", "DPoP "+token, p.proof("GET", read, token, nil))
		if me, _ := got.json["user"].(map[string]any); got.status != 200 || me["userId"] != id ||
			got.header.Get("DPoP-Nonce") == "" {
			t.Fatalf("got %+v", got)
		}
		for name, wrong := range map[string]reply{
			"as Bearer":       call("GET", read, "", "Bearer "+token, p.proof("GET", read, token, nil)),
			"another key":     call("GET", read, "", "DPoP "+token, w.prover().proof("GET", read, token, nil)),
			"another method":  call("GET", read, "", "DPoP "+token, p.proof("POST", read, token, nil)),
			"another path":    call("GET", read, "", "DPoP "+token, p.proof("GET", change, token, nil)),
			"another token":   call("GET", read, "", "DPoP "+token, p.proof("GET", read, "x", nil)),
			"no proof":        call("GET", read, "", "DPoP "+token, ""),
			"a stale nonce":   call("GET", read, "", "DPoP "+token, p.proof("GET", read, token, map[string]any{"nonce": "x"})),
			"a write without": call("PUT", change, `{}`, "DPoP "+token, ""),
		} {
			if wrong.status != 401 || !strings.HasPrefix(wrong.header.Get("Www-Authenticate"), "DPoP error=") {
				t.Errorf("%s: %+v", name, wrong)
			}
		}
		// gRPC-Web: the address is that of the procedure.
		const procedure = "/signet.v1.UserService/GetMyUser"
		grpc := func(proof string) string {
			t.Helper()
			got := w.request("POST", w.url+procedure, "\x00\x00\x00\x00\x00", "Authorization", "DPoP "+token, "DPoP", proof,
				"Content-Type", "application/grpc-web+proto")
			return got.body + got.header.Get("Grpc-Status")
		}
		if said := grpc(p.proof("POST", procedure, token, nil)); !strings.Contains(said, "grpc-status: 0") {
			t.Errorf("gRPC-Web: %q", said)
		}
		if said := grpc(p.proof("POST", read, token, nil)); !strings.Contains(said, "16") {
			t.Errorf("gRPC-Web with the proof for another address: %q", said)
		}
	})
}

// atOnce sends the same request so many times, to all nodes in turn, and counts what got through. All others have to be
// refused as a proof that was used.
func (w *world) atOnce(nodes []*node, status int, ask func(url string) (*http.Request, error)) int32 {
	w.t.Helper()
	var through atomic.Int32
	var wait sync.WaitGroup
	start := make(chan struct{})
	for i := range parallel {
		wait.Go(func() {
			<-start
			r, err := ask(nodes[i%len(nodes)].url)
			if err != nil {
				w.t.Error(err)
				return
			}
			got, err := try(r)
			switch {
			case err != nil:
				w.t.Error(err)
			case got.status == http.StatusOK:
				through.Add(1)
			case got.status != status || !strings.Contains(got.body, "the DPoP proof was already used"):
				w.t.Errorf("got %+v", got)
			}
		})
	}
	close(start)
	wait.Wait()
	return through.Load()
}

func TestAProofWorksOnceHoweverManyTry(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		nodes := w.nodes(db)
		p := w.prover()
		t.Run("for tokens", func(t *testing.T) {
			id, secretText, _ := w.robot()
			proof := p.proof("POST", "/oauth/token", "", nil)
			n := w.atOnce(nodes, http.StatusBadRequest, func(address string) (*http.Request, error) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/oauth/token",
					strings.NewReader("grant_type=client_credentials"))
				if err == nil {
					r.Header = http.Header{"Authorization": {basic(id, secretText)}, "Dpop": {proof},
						"Content-Type": {"application/x-www-form-urlencoded"}}
				}
				return r, err
			})
			if n != 1 {
				t.Errorf("%d got tokens", n)
			}
		})
		_, token := p.robotToken("signet.self signet.write")
		t.Run("for a call that writes", func(t *testing.T) {
			const path, body = "/v1/users/service", `{"userName":"one","name":"One"}`
			proof := p.proof("POST", path, token, nil)
			n := w.atOnce(nodes, http.StatusUnauthorized, func(at string) (*http.Request, error) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(body))
				if err == nil {
					r.Header = http.Header{"Authorization": {"DPoP " + token}, "Dpop": {proof},
						"Content-Type": {"application/json"}}
				}
				return r, err
			})
			if n != 1 {
				t.Errorf("%d got through", n)
			}
		})
		t.Run("for a call that reads", func(t *testing.T) {
			proof := p.proof("GET", "/v1/users/me", token, nil)
			n := w.atOnce(nodes, http.StatusUnauthorized, func(at string) (*http.Request, error) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/v1/users/me", nil)
				if err == nil {
					r.Header = http.Header{"Authorization": {"DPoP " + token}, "Dpop": {proof}}
				}
				return r, err
			})
			if int(n) != len(nodes) { // each node has its own memory of these
				t.Errorf("%d got through", n)
			}
		})
	})
}

// A page can prove a key: it may send proofs, and reads the nonce also of what is refused.
func TestPagesProveAKey(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	p := w.prover()
	id, _ := w.application(app.SPA, app.NoAuth, func(s *app.Settings) { s.PushedRequired, s.DPoPRequired = true, true })
	const own = "https://shop.test"
	party := w.party(id, "")
	verifier := oauth2.GenerateVerifier()
	pushed := w.post("/oauth/par", url.Values{"client_id": {id}, "response_type": {"code"}, "redirect_uri": {callback},
		"scope": {"openid"}, "code_challenge_method": {"S256"}, "state": {"st"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}},
		"Origin", own, "DPoP", p.proof("POST", "/oauth/par", "", nil))
	uri, _ := pushed.json["request_uri"].(string)
	back := w.with(w.in).signIn(party.oauth.Endpoint.AuthURL + "?" +
		url.Values{"client_id": {id}, "request_uri": {uri}}.Encode())
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Get("code")},
		"redirect_uri": {callback}, "code_verifier": {verifier}}
	stale := w.post("/oauth/token", form, "Origin", own, "DPoP",
		p.proof("POST", "/oauth/token", "", map[string]any{"nonce": "x"}))
	given := w.post("/oauth/token", form, "Origin", own, "DPoP", p.proof("POST", "/oauth/token", "", nil))
	token, _ := given.json["access_token"].(string)
	refused := w.get(w.url+"/oauth/userinfo", "Origin", own, "Authorization", "DPoP "+token)
	person := w.get(w.url+"/oauth/userinfo", "Origin", own, "Authorization", "DPoP "+token, "DPoP",
		p.proof("GET", "/oauth/userinfo", token, nil))
	for name, tt := range map[string]struct {
		got    reply
		status int
	}{"pushed": {pushed, 201}, "stale": {stale, 400}, "tokens": {given, 200}, "refused": {refused, 401},
		"person": {person, 200}} {
		h := tt.got.header
		if tt.got.status != tt.status || h.Get("Access-Control-Allow-Origin") != own || h.Get("DPoP-Nonce") == "" ||
			!strings.Contains(h.Get("Access-Control-Expose-Headers"), "DPoP-Nonce") {
			t.Errorf("%s: %+v", name, tt.got)
		}
	}
	asks := w.request("OPTIONS", w.url+"/oauth/token", "", "Origin", own, "Access-Control-Request-Method", "POST")
	if !strings.Contains(asks.header.Get("Access-Control-Allow-Headers"), "dpop") {
		t.Errorf("a page may send %q", asks.header.Get("Access-Control-Allow-Headers"))
	}
}
