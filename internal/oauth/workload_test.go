package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

const cluster = "https://cluster.test"

// issuers publish keys, and count who asks.
type issuers struct {
	keys  map[string][]jose.JSONWebKey
	asked int
}

func (i *issuers) IssuerKeys(_ context.Context, _, issuer, keyID string) ([]jose.JSONWebKey, error) {
	i.asked++
	keys, there := i.keys[issuer]
	if !there {
		return nil, errors.New("nothing is there")
	}
	return keys, nil
}

var clusterKey, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)

// workloads is a world in which usr_robot trusts a cluster.
func workloads(t *testing.T) (*world, *issuers) {
	t.Helper()
	w := newWorld(t)
	i := &issuers{keys: map[string][]jose.JSONWebKey{cluster: {{Key: clusterKey.Public(), KeyID: "kid"}}}}
	w.Issuers = i
	w.trust("wlr_1", func(*user.Workload) {})
	eventtest.Given(t, w.store, user.Kind, "usr_other", "org_a", []event.Claim{user.NameClaim("org_a", "other")},
		user.ServiceAdded{Personal: user.ServiceFacts{Name: "Other", UserName: "other", UserNameKey: "other"}})
	return w, i
}

func (w *world) trust(id string, change func(*user.Workload)) {
	w.t.Helper()
	rule := user.Workload{Issuer: cluster, MaxLife: 3600,
		Claims: []user.WorkloadClaim{{Name: "sub", Value: "system:serviceaccount:shop:*"}}}
	change(&rule)
	if wrong := rule.Violations(); len(wrong) > 0 {
		w.t.Fatal(wrong)
	}
	w.change("usr_robot", user.WorkloadRuleAdded{Rule: user.WorkloadRule{ID: id, Workload: rule}})
}

// of is what the cluster says about its workload.
func (w *world) of() map[string]any {
	now := w.store.Now()
	return map[string]any{"iss": cluster, "sub": "system:serviceaccount:shop:deployer", "aud": []string{issuer},
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
}

func (w *world) byGrant(id, text string) (*Tokens, error) {
	return w.ByAssertion(w.t.Context(), id, text, nil, nil)
}

func (w *world) byClient(id, text string) (*Tokens, error) {
	c, err := w.Authenticate(w.t.Context(), Credentials{Method: app.PrivateKeyJWT, ClientID: id, Assertion: text})
	if err != nil {
		return nil, err
	}
	return w.ClientCredentials(w.t.Context(), c, nil)
}

func TestAssertionsOfOutsideIssuers(t *testing.T) {
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	type attempt struct {
		w      *world
		id     string
		claims map[string]any
		by     jose.SigningKey
		kid    string
	}
	type change = func(a *attempt)
	set := func(name string, value any) change { return func(a *attempt) { a.claims[name] = value } }
	without := func(name string) change { return func(a *attempt) { delete(a.claims, name) } }
	at := func(name string, d time.Duration) change {
		return func(a *attempt) { a.claims[name] = a.w.store.Now().Add(d).Unix() }
	}
	also := func(changes ...change) change {
		return func(a *attempt) {
			for _, c := range changes {
				c(a)
			}
		}
	}
	by := func(algorithm jose.SignatureAlgorithm, key any) change {
		return func(a *attempt) { a.by = jose.SigningKey{Algorithm: algorithm, Key: key} }
	}
	rule := func(change func(*user.Workload)) change {
		return func(a *attempt) {
			a.w.change("usr_robot", user.WorkloadRuleRemoved{RuleID: "wlr_1"})
			a.w.trust("wlr_2", change)
		}
	}
	fact := func(id string, f any) change { return func(a *attempt) { a.w.change(id, f) } }
	given := func(key any) func(*user.Workload) {
		text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: "kid"}}})
		must(t, err)
		return func(r *user.Workload) { r.KeySet = string(text) }
	}
	const fetched = true
	for _, tt := range []struct {
		name    string
		change  change
		fetches bool
		why     string // in the log; empty: it is fine
	}{
		{"as it should be", set("x", 1), fetched, ""},
		{"for the token endpoint", set("aud", issuer+"/oauth/token"), fetched, ""},
		{"without the id of a key", func(a *attempt) { a.kid = "" }, fetched, ""},
		{"for an audience of the rule", also(rule(func(r *user.Workload) { r.Audience = "us" }), set("aud", "us")), fetched, ""},
		{"by keys that are given", rule(given(clusterKey.Public())), !fetched, ""},
		{"by another rule about the issuer", func(a *attempt) {
			a.w.trust("wlr_0", given(stranger.Public()))
			a.by.Key = stranger
		}, fetched, ""},
		{"with all claims", also(rule(func(r *user.Workload) {
			r.Claims = append(r.Claims, user.WorkloadClaim{Name: "ref", Value: "refs/heads/main"})
		}), set("ref", "refs/heads/main")), fetched, ""},

		{"for somebody else", set("aud", "https://other.test"), !fetched, "wlr_1: aud"},
		{"for nobody", without("aud"), !fetched, "aud"},
		{"for us, but the rule has another audience", rule(func(r *user.Workload) { r.Audience = "us" }), !fetched, "aud"},
		{"without an end", without("exp"), !fetched, "exp"},
		{"that has ended", at("exp", 0), !fetched, "expired"},
		{"without a beginning", without("iat"), !fetched, "iat"},
		{"from the future", at("iat", 2*time.Minute), !fetched, "iat"},
		{"that ends before it begins", also(at("exp", time.Second), at("iat", 30*time.Second)), !fetched, "iat"},
		{"not yet", at("nbf", 2*time.Minute), !fetched, "nbf"},
		{"valid at some time", set("nbf", "x"), !fetched, "cannot be read"},
		{"valid for too long", at("iat", -time.Second), !fetched, "more than 3600 seconds"},
		{"of another workload", set("sub", "system:serviceaccount:admin:deployer"), !fetched, "sub"},
		{"of a workload below", set("sub", "system:serviceaccount:shop:a:b"), !fetched, "sub"},
		{"of no workload", without("sub"), !fetched, "sub"},
		{"of several workloads", set("sub", []string{"system:serviceaccount:shop:deployer"}), !fetched,
			"cannot be read"},
		{"with the claim in capitals", also(without("sub"), set("SUB", "system:serviceaccount:shop:deployer")), !fetched,
			"sub"},
		{"with a claim missing", rule(func(r *user.Workload) {
			r.Claims = append(r.Claims, user.WorkloadClaim{Name: "ref", Value: "refs/heads/main"})
		}), !fetched, "ref"},
		{"with a number as text", also(rule(func(r *user.Workload) {
			r.Claims = append(r.Claims, user.WorkloadClaim{Name: "id", Value: "74"})
		}), set("id", 74)), !fetched, "id"},
		{"of an issuer without a rule", set("iss", "https://other.test"), !fetched, "none of its workload rules"},
		{"of almost the issuer", set("iss", cluster+"/"), !fetched, "none of its workload rules"},
		{"of the issuer in capitals", set("iss", "https://CLUSTER.test"), !fetched, "none of its workload rules"},
		{"of no issuer", without("iss"), !fetched, "none of its workload rules"},
		{"for another service user", func(a *attempt) { a.id = "usr_other" }, !fetched, "none of its workload rules"},
		{"for nobody known", func(a *attempt) { a.id = "usr_none" }, !fetched, "no active service user"},
		{"for a person", func(a *attempt) { a.id = "usr_a" }, !fetched, "no active service user"},
		{"by a rule that is removed", fact("usr_robot", user.WorkloadRuleRemoved{RuleID: "wlr_1"}), !fetched,
			"none of its workload rules"},
		{"for a user who is inactive", fact("usr_robot", user.Deactivated{}), !fetched, "no active service user"},
		{"in an organization that is inactive", fact("org_a", org.Deactivated{}), !fetched, "no active service user"},
		{"by a stranger", by(jose.ES256, stranger), fetched, "not signed"},
		{"by another algorithm than the key's", by(jose.RS256, rsaKey), fetched, "not signed"},
		{"with HMAC by the public key", by(jose.HS256, []byte(publicPEM(t, clusterKey.Public()))), !fetched, "cannot be read"},
		{"by a published key where others are given", rule(given(stranger.Public())), !fetched, "not signed"},
		{"of an issuer that is away", also(rule(func(r *user.Workload) { r.Issuer = "https://away.test" }),
			set("iss", "https://away.test")), fetched, "cannot be fetched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for way, use := range map[string]func(w *world, id, text string) (*Tokens, error){
				"grant": (*world).byGrant, "client": (*world).byClient} {
				w, issuers := workloads(t)
				a := &attempt{w, "usr_robot", w.of(), jose.SigningKey{Algorithm: jose.ES256, Key: clusterKey}, "kid"}
				tt.change(a)
				made, err := use(w, a.id, signed(t, a.by, a.kid, a.claims))
				if (issuers.asked > 0) != tt.fetches {
					t.Errorf("%s: keys were asked for %d times", way, issuers.asked)
				}
				if tt.why == "" {
					if must(t, err); made.Access == "" || made.Refresh != "" {
						t.Errorf("%s: %+v", way, made)
					}
					continue
				}
				want := ErrInvalidGrant
				if way == "client" {
					want = ErrInvalidClient
				}
				wants(t, err, want)
				if e, _ := errors.AsType[*errs.Error](err); e == nil || e.Message != want.Message {
					t.Errorf("%s: the caller is told %v", way, err)
				}
				if !strings.Contains(why(err), tt.why) {
					t.Errorf("%s: the log says %q", way, why(err))
				}
			}
		})
	}
	for _, bad := range []string{"", "x", "e30.e30.", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2NsdXN0ZXIudGVzdCJ9."} {
		w, _ := workloads(t)
		_, err := w.byGrant("usr_robot", bad)
		wants(t, err, ErrInvalidGrant)
	}
}

func (w *world) says(change func(claims map[string]any)) string {
	claims := w.of()
	change(claims)
	return signed(w.t, jose.SigningKey{Algorithm: jose.ES256, Key: clusterKey}, "kid", claims)
}

func TestATokenNeverOutlivesTheAssertionOfAnOutsideIssuer(t *testing.T) {
	for _, use := range []func(w *world, id, text string) (*Tokens, error){(*world).byGrant, (*world).byClient} {
		w, _ := workloads(t)
		w.change("usr_robot", user.WorkloadRuleRemoved{RuleID: "wlr_1"})
		w.trust("wlr_1", func(r *user.Workload) { r.MaxLife = user.MaxWorkloadLife })
		text := w.says(func(c map[string]any) { c["exp"] = w.store.Now().Add(90 * time.Minute).Unix() })
		made, err := use(w, "usr_robot", text)
		must(t, err)
		if made.Life != time.Hour {
			t.Errorf("it lives for %v", made.Life)
		}
		w.store.Advance(80 * time.Minute)
		made, err = use(w, "usr_robot", text) // it counts until it expires, and as often as it comes
		must(t, err)
		if made.Life > 10*time.Minute || made.Life < 10*time.Minute-time.Second {
			t.Errorf("it lives for %v", made.Life)
		}
		w.store.Advance(made.Life - time.Microsecond)
		if !w.counts(made.Access) {
			t.Error("it ended too early")
		}
		w.store.Advance(time.Microsecond)
		if w.counts(made.Access) {
			t.Error("it outlived the assertion")
		}
		if _, err := use(w, "usr_robot", text); err == nil {
			t.Error("an assertion that has expired counts")
		}
	}
}

func TestAnAssertionOfAnOutsideIssuerCountsOnceIfTheRuleSaysSo(t *testing.T) {
	w, issuers := workloads(t)
	w.change("usr_robot", user.WorkloadRuleRemoved{RuleID: "wlr_1"})
	w.trust("wlr_1", func(r *user.Workload) { r.Once = true })
	const second = "https://second.test"
	issuers.keys[second] = issuers.keys[cluster]
	w.trust("wlr_2", func(r *user.Workload) { r.Once, r.Issuer = true, second })
	one := w.says(func(c map[string]any) { c["jti"] = "one" })
	_, err := w.byGrant("usr_robot", one)
	must(t, err)
	_, err = w.byClient("usr_robot", w.says(func(c map[string]any) { c["jti"], c["iss"] = "one", second }))
	must(t, err) // another issuer's identifiers are its own
	w.store.Advance(59 * time.Minute)
	for name, text := range map[string]string{
		"already been used": one,
		"no jti":            w.says(func(c map[string]any) { delete(c, "jti") }),
		"too long":          w.says(func(c map[string]any) { c["jti"] = strings.Repeat("x", 256) }),
	} {
		_, err := w.byGrant("usr_robot", text)
		if wants(t, err, ErrInvalidGrant); !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not say %s", err, name)
		}
		_, err = w.byClient("usr_robot", text)
		if wants(t, err, ErrInvalidClient); !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not say %s", err, name)
		}
	}
	// A stranger learns nothing about what is missing.
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	_, err = w.byGrant("usr_robot", signed(t, jose.SigningKey{Algorithm: jose.ES256, Key: stranger}, "kid", w.of()))
	if wants(t, err, ErrInvalidGrant); strings.Contains(err.Error(), "jti") {
		t.Errorf("got %v", err)
	}
}
