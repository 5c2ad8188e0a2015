package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

// outside is an issuer of workloads: it publishes its key as OpenID Connect has it, and nothing else.
type outside struct {
	*httptest.Server
	w     *world
	key   *ecdsa.PrivateKey
	keys  string // where its metadata say that the keys are
	asked atomic.Int64
}

func (w *world) outside() *outside {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(w.t, err)
	o := &outside{w: w, key: key}
	o.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		o.asked.Add(1)
		var answer any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer = map[string]any{"issuer": o.URL, "jwks_uri": o.keys}
		case "/keys":
			answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: o.key.Public(), KeyID: "one", Use: "sig"}}}
		default:
			http.NotFound(rw, r)
			return
		}
		_ = json.NewEncoder(rw).Encode(answer)
	}))
	o.keys = o.URL + "/keys"
	w.t.Cleanup(o.Close)
	return o
}

// says is an assertion of the issuer about a workload.
func (o *outside) says(change ...func(claims map[string]any)) string {
	return o.w.signed(o.URL, "ES256", o.key, "one", append([]func(map[string]any){func(c map[string]any) {
		c["sub"] = "system:serviceaccount:shop:deployer"
		delete(c, "jti")
	}}, change...)...)
}

// trust adds a rule by the API.
func (o *outside) trust(id, more string) (ruleID string) {
	o.w.t.Helper()
	made := o.w.api(o.w.org, "POST", "/v1/users/"+id+"/workload_rules", `{"issuer":"`+o.URL+`","claims":[`+
		`{"name":"sub","value":"system:serviceaccount:shop:*"}]`+more+`}`)
	ruleID, _ = made.json["ruleId"].(string)
	return ruleID
}

func byGrant(id, assertion string) url.Values {
	return url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "client_id": {id},
		"assertion": {assertion}, "scope": {"openid signet.self"}}
}

func byWorkload(id, assertion string) url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "scope": {"openid signet.self"},
		"client_assertion_type": {byAssertion}, "client_assertion": {assertion}}
}

func TestAWorkloadGetsATokenByTheWordOfAnIssuerThatItsServiceUserTrusts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db, func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.1/32"} })
		cluster := w.outside()
		id, other := w.add(true, access.OrgOwner), w.add(true)
		ways := map[string]func(id, assertion string) url.Values{"grant": byGrant, "client": byWorkload}
		refused := func(name, id, assertion string) {
			t.Helper()
			for way, form := range ways {
				got := w.post("/oauth/token", form(id, assertion))
				want := reply{status: 400, json: map[string]any{"error": "invalid_grant"}}
				if way == "client" {
					want = reply{status: 401, json: map[string]any{"error": "invalid_client"}}
				}
				if got.status != want.status || got.json["error"] != want.json["error"] ||
					strings.Contains(got.body, cluster.URL) || strings.Contains(got.body, "rule") {
					t.Errorf("%s, as %s: %+v", name, way, got)
				}
			}
		}
		refused("without a rule", id, cluster.says())
		if cluster.asked.Load() != 0 {
			t.Error("an issuer was asked that nobody trusts")
		}
		rule := cluster.trust(id, "")
		refused("of another service user", other, cluster.says())
		if cluster.asked.Load() != 0 {
			t.Error("an issuer was asked for somebody who does not trust it")
		}
		text := cluster.says()
		var token string
		for way, form := range ways {
			for range 2 { // as often as it comes
				got := w.post("/oauth/token", form(id, text))
				if token, _ = got.json["access_token"].(string); got.status != 200 || !w.active(token) ||
					got.json["refresh_token"] != nil || got.json["expires_in"].(float64) > 60 {
					t.Fatalf("as %s: %+v", way, got)
				}
			}
		}
		if got := w.get(w.url+"/v1/users/me", "Authorization", "Bearer "+token); got.json["userId"] != id &&
			!strings.Contains(got.body, id) {
			t.Errorf("the token is of %+v", got)
		}
		stranger := w.outside()
		set := func(name string, value any) func(map[string]any) {
			return func(c map[string]any) { c[name] = value }
		}
		at := func(name string, d time.Duration) func(map[string]any) {
			return set(name, time.Now().Add(d).Unix())
		}
		refused("wrong audience", id, cluster.says(set("aud", "https://other.test")))
		refused("expired", id, cluster.says(at("iat", -time.Hour), at("exp", -time.Second)))
		refused("too long a life", id, cluster.says(at("exp", 25*time.Hour)))
		refused("another workload", id, cluster.says(set("sub", "system:serviceaccount:admin:deployer")))
		refused("another issuer", id, stranger.says())
		refused("the key of another issuer", id, stranger.says(set("iss", cluster.URL)))
		refused("HMAC by the public key", id, hmacBy(t, cluster))
		refused("no signature", id, "eyJhbGciOiJub25lIn0."+strings.Split(text, ".")[1]+".")
		if got := w.post("/oauth/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
			"assertion": {text}}); got.status != 400 || got.json["error"] != "invalid_grant" {
			t.Errorf("without a client_id: %+v", got)
		}
		if stranger.asked.Load() != 0 {
			t.Error("an issuer was asked that nobody trusts")
		}

		var causes []string
		told := w.api(w.org, "GET", "/v1/users/"+id+"/workload_refusals", "")
		for _, r := range told.json["refusals"].([]any) {
			one := r.(map[string]any)
			causes = append(causes, fmt.Sprint(one["cause"], " ", one["issuer"] == cluster.URL, " ", one["count"]))
		}
		slices.Sort(causes)
		if want := []string{"workload_audience true 2", "workload_claim true 2", "workload_issuer false 2",
			"workload_issuer true 2", "workload_life true 2", "workload_signature true 2",
			"workload_times true 2"}; !slices.Equal(causes, want) {
			t.Errorf("the people of the service user read %q", causes)
		}

		t.Run("once, in parallel", func(t *testing.T) {
			nodes := w.nodes(db)
			id := w.add(true)
			cluster.trust(id, `,"oneTime":true`)
			for way, form := range ways {
				text := cluster.says(set("jti", rand.Text()))
				if got := w.many(nodes, form(id, text), "invalid_client"); len(got) != 1 {
					t.Errorf("as %s: %d times", way, len(got))
				}
			}
			refused("without an id", id, cluster.says())
		})
		t.Run("an issuer that leads inside", func(t *testing.T) {
			inside := w.outside()
			id := w.add(true)
			inside.trust(id, "")
			inside.keys = "http://169.254.169.254/latest/meta-data"
			refused("keys at a private address", id, inside.says())
			w.api(w.org, "POST", "/v1/users/"+id+"/workload_rules",
				`{"issuer":"https://10.0.0.1","claims":[{"name":"sub","value":"a"}]}`)
			refused("at a private address", id, w.signed("https://10.0.0.1", "ES256", inside.key, "one",
				func(c map[string]any) { c["sub"] = "a" }))
		})

		w.api(w.org, "DELETE", "/v1/users/"+id+"/workload_rules/"+rule, "")
		refused("by a rule that is removed", id, text)
		cluster.trust(id, "")
		got := w.post("/oauth/token", byGrant(id, text))
		token, _ = got.json["access_token"].(string)
		w.api(w.org, "POST", "/v1/users/"+id+"/_deactivate", "{}")
		refused("for a user who is inactive", id, text)
		if w.active(token) {
			t.Error("a token of an inactive user counts")
		}
	})
}

// hmacBy signs with what everybody knows of the key of an issuer.
func hmacBy(t *testing.T, o *outside) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(public(t, o.key))},
		(&jose.SignerOptions{}).WithHeader("kid", "one"))
	must(t, err)
	now := time.Now()
	text, err := json.Marshal(map[string]any{"iss": o.URL, "sub": "system:serviceaccount:shop:deployer", "aud": o.w.url,
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
	must(t, err)
	signed, err := signer.Sign(text)
	must(t, err)
	compact, err := signed.CompactSerialize()
	must(t, err)
	return compact
}
