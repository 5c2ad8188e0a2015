package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

var keys = sync.OnceValue(func() map[string]crypto.Signer {
	all := map[string]crypto.Signer{}
	all["ES256"], _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	all["ES384"], _ = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, all["EdDSA"], _ = ed25519.GenerateKey(rand.Reader)
	all["PS256"], _ = rsa.GenerateKey(rand.Reader, 2048)
	all["RS256"] = all["PS256"]
	return all
})

var now = time.Unix(1_800_000_000, 0)

// claimsOf are those of a proof that is fine.
func claimsOf() map[string]any {
	return map[string]any{"jti": "one", "htm": "POST", "htu": "https://id.test/oauth/token", "iat": now.Unix(),
		"nonce": "n"}
}

var wanted = Request{Method: "POST", Address: "https://id.test/oauth/token", Now: now}

// sign makes a proof. change may alter what is signed.
func sign(t testing.TB, algorithm string, change func(header, claims map[string]any)) string {
	t.Helper()
	signer := keys()[algorithm]
	jwk, err := json.Marshal(jose.JSONWebKey{Key: signer.Public()})
	must(t, err)
	header, said := map[string]any{"typ": "dpop+jwt", "jwk": json.RawMessage(jwk)}, claimsOf()
	if change != nil {
		change(header, said)
	}
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	for name, value := range header {
		options.ExtraHeaders[jose.HeaderKey(name)] = value
	}
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: signer}, options)
	must(t, err)
	text, err := json.Marshal(said)
	must(t, err)
	signed, err := by.Sign(text)
	must(t, err)
	compact, err := signed.CompactSerialize()
	must(t, err)
	return compact
}

func jwkOf(t testing.TB, key any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: key})
	must(t, err)
	return text
}

func TestEveryAlgorithmProvesAKey(t *testing.T) {
	for _, algorithm := range Algorithms {
		p, err := Read(sign(t, string(algorithm), nil))
		must(t, err)
		must(t, p.Fits(wanted))
		sum, err := (&jose.JSONWebKey{Key: keys()[string(algorithm)].Public()}).Thumbprint(crypto.SHA256)
		must(t, err)
		if p.Key != base64.RawURLEncoding.EncodeToString(sum) || p.ID != "one" || p.Nonce != "n" || !IsThumbprint(p.Key) {
			t.Errorf("%s: got %+v", algorithm, p)
		}
	}
}

func TestWhatIsNoProof(t *testing.T) {
	for name, tt := range map[string]struct {
		algorithm string
		change    func(header, claims map[string]any)
		says      string
	}{
		"another type":        {"ES256", func(h, _ map[string]any) { h["typ"] = "JWT" }, "typ dpop+jwt"},
		"no type":             {"ES256", func(h, _ map[string]any) { delete(h, "typ") }, "typ dpop+jwt"},
		"no key":              {"ES256", func(h, _ map[string]any) { delete(h, "jwk") }, "no public key"},
		"a private key":       {"ES256", func(h, _ map[string]any) { h["jwk"] = jwkOf(t, keys()["ES256"]) }, "is not a JWT"},
		"a secret":            {"ES256", func(h, _ map[string]any) { h["jwk"] = jwkOf(t, []byte("secret")) }, "is not a JWT"},
		"a key of another":    {"ES256", func(h, _ map[string]any) { h["jwk"] = jwkOf(t, keys()["EdDSA"].Public()) }, "fits its alg"},
		"a larger curve":      {"ES384", nil, "is not a JWT"},
		"RSA with PKCS 1 1.5": {"RS256", nil, "is not a JWT"},
		"no identifier":       {"ES256", func(_, c map[string]any) { delete(c, "jti") }, "jti"},
		"a long identifier":   {"ES256", func(_, c map[string]any) { c["jti"] = strings.Repeat("x", maxID+1) }, "jti"},
		"no time":             {"ES256", func(_, c map[string]any) { delete(c, "iat") }, "iat"},
		"a time that is text": {"ES256", func(_, c map[string]any) { c["iat"] = "now" }, "wrong type"},
		"too long":            {"ES256", func(_, c map[string]any) { c["x"] = strings.Repeat("x", maxLength) }, "too long"},
		"an unknown extension": {"ES256", func(h, _ map[string]any) {
			h["crit"], h["x"] = []string{"x"}, 1
		}, "is not signed by the key"},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := Read(sign(t, tt.algorithm, tt.change)); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	fine := sign(t, "ES256", nil)
	parts := strings.Split(fine, ".")
	other := strings.Split(sign(t, "ES256", func(_, c map[string]any) { c["jti"] = "two" }), ".")
	for name, text := range map[string]string{
		"nothing": "", "no JWT": "x", "another payload": parts[0] + "." + other[1] + "." + parts[2],
		"no signature": parts[0] + "." + parts[1] + ".",
		"no algorithm": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"dpop+jwt"}`)) + "." + parts[1] + ".",
		"a MAC": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"dpop+jwt"}`)) + "." + parts[1] + "." +
			parts[2],
	} {
		if p, err := Read(text); err == nil {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

// Numbers of another size cost more, and no curve of ours has others.
func TestKeysOfAnotherSizeAreNotComputedWith(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	large := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), maxRSABits), E: 65537}
	for _, key := range []any{&small.PublicKey, keys()["ES384"].Public(), []byte("x"), nil,
		large} {
		if taken(key) {
			t.Errorf("%T is taken", key)
		}
	}
}

func TestAProofIsForOneRequest(t *testing.T) {
	const token = "sgn_oat_x"
	with := func(change func(c map[string]any)) func(map[string]any) {
		return func(c map[string]any) { c["ath"] = hash(token); change(c) }
	}
	bound := wanted
	bound.Token = token
	set := func(name string, value any) func(map[string]any) { return func(c map[string]any) { c[name] = value } }
	for name, tt := range map[string]struct {
		change func(map[string]any)
		r      Request
		says   string // empty: it fits
	}{
		"the right one":                 {func(map[string]any) {}, wanted, ""},
		"upper case and its own port":   {set("htu", "HTTPS://ID.test:443/oauth/token"), wanted, ""},
		"a query and a fragment":        {set("htu", "https://id.test/oauth/token?a=b#c"), wanted, ""},
		"another method":                {set("htm", "GET"), wanted, "htm"},
		"a method in another case":      {set("htm", "post"), wanted, "htm"},
		"no method":                     {set("htm", ""), wanted, "htm"},
		"another path":                  {set("htu", "https://id.test/oauth/par"), wanted, "htu"},
		"a path in another case":        {set("htu", "https://id.test/OAuth/token"), wanted, "htu"},
		"a path written in another way": {set("htu", "https://id.test/oauth%2Ftoken"), wanted, "htu"},
		"another host":                  {set("htu", "https://evil.test/oauth/token"), wanted, "htu"},
		"another port":                  {set("htu", "https://id.test:8443/oauth/token"), wanted, "htu"},
		"another scheme":                {set("htu", "http://id.test/oauth/token"), wanted, "htu"},
		"somebody in the address":       {set("htu", "https://me@id.test/oauth/token"), wanted, "htu"},
		"no address":                    {set("htu", ""), wanted, "htu"},
		"a clock that is a bit off":     {set("iat", now.Add(clockSkew).Unix()), wanted, ""},
		"long ago":                      {set("iat", now.Add(-clockSkew-time.Second).Unix()), wanted, "iat"},
		"in the future":                 {set("iat", now.Add(clockSkew+time.Second).Unix()), wanted, "iat"},
		"no time that a clock shows":    {set("iat", 1e300), wanted, "iat"},
		"with its token":                {with(func(map[string]any) {}), bound, ""},
		"with another token":            {set("ath", hash("other")), bound, "ath"},
		"without its token":             {func(map[string]any) {}, bound, "ath"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(sign(t, "ES256", func(_, c map[string]any) { tt.change(c) }))
			must(t, err)
			err = p.Fits(tt.r)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestANonceCountsForAMinute(t *testing.T) {
	at := now
	clock := func() time.Time { return at }
	master := secret.NewMasterKey()
	n := Nonces{Master: master, Clock: clock}
	text := n.New()
	for after, want := range map[time.Duration]bool{0: true, Life - nodeSkew - time.Second: true, Life - nodeSkew: false,
		time.Hour: false, -nodeSkew: true, -nodeSkew - time.Second: false} {
		if at = now.Add(after); (Nonces{Master: master, Clock: clock}).Fresh(text) != want {
			t.Errorf("after %v: %t", after, !want)
		}
	}
	at = now
	for _, other := range []string{"", text + "A", text[:len(text)-1], "B" + text[1:], strings.Repeat("A", len(text)),
		Nonces{Master: secret.NewMasterKey(), Clock: clock}.New(), text[:10] + "\n" + text[11:]} {
		if n.Fresh(other) {
			t.Errorf("%q is fresh", other)
		}
	}
}

func TestAProofIsSeenForAMinute(t *testing.T) {
	one, same, otherKey, other := &Proof{Key: "k", ID: "1"}, &Proof{Key: "k", ID: "1"}, &Proof{Key: "l", ID: "1"},
		&Proof{Key: "k", ID: "2"}
	for _, start := range []time.Duration{0, Life / 2, Life - time.Second} {
		var s Seen
		s.First(&Proof{Key: "k", ID: "0"}, now)
		at := now.Add(start)
		for i, p := range []*Proof{one, otherKey, other} {
			if first, full := s.First(p, at); !first || full {
				t.Errorf("%d was seen", i)
			}
		}
		for _, after := range []time.Duration{-time.Second, 0, time.Second, Life - time.Nanosecond} {
			if first, _ := s.First(same, at.Add(after)); first {
				t.Errorf("from %v, it is forgotten after %v", start, after)
			}
		}
		if first, _ := s.First(same, at.Add(2*Life)); !first {
			t.Errorf("from %v, it is never forgotten", start)
		}
	}
}

func TestWhatIsSeenIsBounded(t *testing.T) {
	var s Seen
	for i := range MostSeen {
		if first, full := s.First(&Proof{ID: fmt.Sprint(i)}, now); !first || full {
			t.Fatalf("%d: first %t, full %t", i, first, full)
		}
	}
	over := &Proof{ID: "over"}
	for _, at := range []time.Time{now, now, now.Add(Life)} { // remembered elsewhere, so it has to be asked for there
		if first, full := s.First(over, at); !first || !full || len(s.now) > MostSeen {
			t.Errorf("first %t, full %t of %d", first, full, len(s.now))
		}
	}
	if _, full := s.First(over, now.Add(3*Life)); full {
		t.Error("it stays full")
	}
}

func TestThumbprints(t *testing.T) {
	for text, want := range map[string]bool{hash("x"): true, "": false, "x": false, hash("x") + "A": false,
		hash("x") + "=": false, strings.Repeat("/", 43): false} {
		if IsThumbprint(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// Whatever is sent, reading it ends, and what is read has been signed by the key that it names.
func FuzzRead(f *testing.F) {
	fine := sign(f, "ES256", nil)
	for _, seed := range []string{fine, sign(f, "EdDSA", nil), "", "..", fine[:len(fine)/2]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read(text)
		if (p == nil) == (err == nil) {
			t.Fatalf("got %+v, %v", p, err)
		}
		if p != nil && (len(text) > maxLength || !IsThumbprint(p.Key) || p.ID == "") {
			t.Fatalf("got %+v of %q", p, text)
		}
	})
}
