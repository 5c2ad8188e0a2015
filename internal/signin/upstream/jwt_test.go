package upstream

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/test/testdb"
)

// unsigned is a token with a header and no signature.
func unsigned(header string, claims map[string]any) string {
	payload, err := json.Marshal(present(claims))
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." +
		base64.RawURLEncoding.EncodeToString(payload) + "."
}

func TestEveryCheckOfAPortalsTokenRefusesAlone(t *testing.T) {
	type changed = map[string]any
	claims := func(changed map[string]any) func(w *world) string {
		return func(w *world) string { return w.token(changed) }
	}
	after := func(d time.Duration) int64 { return eventtest.Start.Add(d).Unix() }
	for name, c := range map[string]struct {
		token func(w *world) string
		want  string
	}{
		"as it should be": {claims(nil), ""},
		"RSA": {func(w *world) string {
			return signedBy(jose.RS256, rsaKey, "rsa", w.portal(nil))
		}, ""},
		"Ed25519": {func(w *world) string {
			return signedBy(jose.EdDSA, edKey(), "ed", w.portal(nil))
		}, ""},
		"P-384": {func(w *world) string {
			return signedBy(jose.ES384, ec384, "p384", w.portal(nil))
		}, ""},
		"without a key id": {func(w *world) string {
			return signedBy(jose.ES256, ecKey, "", w.portal(nil))
		}, ""},
		"no signature": {func(w *world) string { return unsigned(`{"alg":"none"}`, w.portal(nil)) },
			failure.Algorithm},
		"no signature, spelled otherwise": {func(w *world) string { return unsigned(`{"alg":"nOnE"}`, w.portal(nil)) },
			failure.Algorithm},
		"no algorithm": {func(w *world) string { return unsigned(`{}`, w.portal(nil)) },
			failure.Algorithm},
		"the public key as a secret": {func(w *world) string { return hmacOf(ecKey.Public(), w.portal(nil)) },
			failure.Algorithm},
		"the algorithm of another key": {func(w *world) string {
			return strings.Replace(w.token(nil),
				base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"ec"}`)),
				base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"ec"}`)), 1)
		}, failure.Algorithm},
		"an algorithm that the key is not for": {func(w *world) string {
			return signedBy(jose.PS256, rsaKey, "rsa", w.portal(nil))
		}, failure.Algorithm},
		"another key": {func(w *world) string {
			return signedBy(jose.ES256, other, "ec", w.portal(nil))
		}, failure.Signature},
		"another key of another id": {func(w *world) string {
			return signedBy(jose.ES256, other, "other", w.portal(nil))
		}, failure.Key},
		"another key of no id": {func(w *world) string {
			return signedBy(jose.ES256, other, "", w.portal(nil))
		}, failure.Signature},
		"another issuer":           {claims(changed{"iss": "corp/"}), failure.Issuer},
		"no issuer":                {claims(changed{"iss": nil}), failure.Issuer},
		"a list of issuers":        {claims(changed{"iss": []string{"corp"}}), failure.Issuer},
		"another audience":         {claims(changed{"aud": "idp_2"}), failure.Audience},
		"no audience":              {claims(changed{"aud": nil}), failure.Audience},
		"an empty audience":        {claims(changed{"aud": []string{}}), failure.Audience},
		"several audiences":        {claims(changed{"aud": []string{"x", "idp_1"}}), ""},
		"a number among audiences": {claims(changed{"aud": []any{"idp_1", 1}}), failure.Audience},
		"no expiry":                {claims(changed{"exp": nil}), failure.Expired},
		"an expiry as text": {claims(changed{"exp": fmt.Sprint(after(time.Minute))}),
			failure.Expired},
		"expired a minute ago": {claims(changed{"exp": after(-61 * time.Second),
			"iat": after(-2 * time.Minute)}), failure.Expired},
		"expired within the skew": {claims(changed{"exp": after(-30 * time.Second),
			"iat": after(-2 * time.Minute)}), ""},
		"valid for a day":  {claims(changed{"exp": after(24 * time.Hour)}), ""},
		"valid for longer": {claims(changed{"exp": after(25 * time.Hour)}), failure.Expired},
		"expired before it was issued": {claims(changed{"exp": after(0), "iat": after(30 * time.Second)}),
			failure.Expired},
		"no time of issue":           {claims(changed{"iat": nil}), failure.IssuedAt},
		"issued in a minute":         {claims(changed{"iat": after(59 * time.Second)}), ""},
		"issued in two minutes":      {claims(changed{"iat": after(2 * time.Minute)}), failure.IssuedAt},
		"issued in a thousand years": {claims(changed{"iat": after(2*time.Minute) * 1000}), failure.IssuedAt},
		"issued ten minutes ago":     {claims(changed{"iat": after(-10 * time.Minute)}), ""},
		"issued twelve minutes ago":  {claims(changed{"iat": after(-12 * time.Minute)}), failure.IssuedAt},
		"a time that is infinite": {func(w *world) string {
			return signedText(jose.ES256, ecKey, "ec", `{"iss":"corp","aud":"idp_1","sub":"a","iat":1e999,"exp":1e999}`)
		}, failure.IssuedAt},
		"not yet valid":             {claims(changed{"nbf": after(2 * time.Minute)}), failure.NotBefore},
		"valid since just now":      {claims(changed{"nbf": after(0)}), ""},
		"valid since a text":        {claims(changed{"nbf": "now"}), failure.NotBefore},
		"no subject":                {claims(changed{"sub": nil}), failure.Subject},
		"an empty subject":          {claims(changed{"sub": ""}), failure.Subject},
		"a number as subject":       {claims(changed{"sub": 1000}), failure.Subject},
		"a long subject":            {claims(changed{"sub": strings.Repeat("ä", 256)}), failure.Subject},
		"a subject with a line end": {claims(changed{"sub": "a\n"}), failure.Subject},
		"nothing":                   {func(*world) string { return "" }, failure.Token},
		"no token":                  {func(*world) string { return "abc" }, failure.Token},
		"a token that is cut off": {func(w *world) string { t := w.token(nil); return t[:len(t)-20] },
			failure.Signature},
		"a huge token": {claims(changed{"x": strings.Repeat("x", 17<<10)}), failure.Token},
		"claims that are a list": {func(*world) string { return signedText(jose.ES256, ecKey, "ec", `[]`) },
			failure.Token},
		"claims that are not UTF-8": {func(*world) string {
			return signedText(jose.ES256, ecKey, "ec", "{\"sub\":\"\xff\"}")
		}, failure.Token},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.jwt()
			q := w.start(p, Attempt{Return: "back"})
			got, err := w.Finish(t.Context(), p, carrying(q, c.token(w)))
			if check := refused(t, err); check != c.want {
				t.Errorf("it was refused by %q (%v), want %q", check, err, c.want)
			}
			if err == nil && (got.Identity.Issuer != "corp" || got.Identity.Provider != "idp_1" ||
				got.Identity.Org != "org_a" || got.Identity.Epoch != 7 || got.Identity.Version != 3 ||
				got.Return != "back") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAPortalIsToldWhereToSendPeople(t *testing.T) {
	w := newWorld(t)
	q := w.start(w.jwt(), Attempt{Again: true})
	if q.Get("lang") != "de" || q.Get("return_to") != external+"/login/idp/idp_1/callback" || q.Get("state") == "" ||
		q.Get("prompt") != "login" || q.Get("max_age") != "0" {
		t.Errorf("got %v", q)
	}
}

func TestWhereATokenIsCarried(t *testing.T) {
	for name, c := range map[string]struct {
		configured string
		header     func(token string) http.Header
		want       string
	}{
		"authorization": {"",
			func(s string) http.Header { return http.Header{"Authorization": {"Bearer " + s}} }, ""},
		"without the scheme": {"",
			func(s string) http.Header { return http.Header{"Authorization": {s}} }, ""},
		"another case of the scheme": {"",
			func(s string) http.Header { return http.Header{"Authorization": {"bEARER  " + s}} }, ""},
		"another scheme": {"",
			func(s string) http.Header { return http.Header{"Authorization": {"Basic " + s}} }, failure.Token},
		"a header of its own": {"x-corp-JWT",
			func(s string) http.Header { return http.Header{"X-Corp-Jwt": {s}} }, ""},
		"that header with the scheme": {"X-CORP-jwt",
			func(s string) http.Header { return http.Header{"X-Corp-Jwt": {"Bearer " + s}} }, ""},
		"the usual header instead": {"x-corp-jwt",
			func(s string) http.Header { return http.Header{"Authorization": {"Bearer " + s}} }, failure.Token},
		"twice": {"",
			func(s string) http.Header { return http.Header{"Authorization": {"Bearer " + s, "Bearer " + s}} },
			failure.Token},
		"none": {"", func(string) http.Header { return nil }, failure.Token},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.jwt()
			p.Data.JWT.HeaderName = c.configured
			cb := carrying(w.start(p, Attempt{}), "")
			cb.Header = c.header(w.token(nil))
			_, err := w.Finish(t.Context(), p, cb)
			if got := refused(t, err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAConfiguredAudienceTakesThePlaceOfTheIdentifier(t *testing.T) {
	w := newWorld(t)
	p := w.jwt()
	p.Data.JWT.Audience = "us"
	for audience, want := range map[string]string{"us": "", "idp_1": failure.Audience} {
		_, err := w.Finish(t.Context(), p, carrying(w.start(p, Attempt{}), w.token(map[string]any{"aud": audience})))
		if got := refused(t, err); got != want {
			t.Errorf("%s: got %q", audience, got)
		}
	}
}

// malleate gives another signature of the same token that is as good: of an elliptic curve, everybody can make one.
func malleate(token string) string {
	at := strings.LastIndexByte(token, '.')
	raw, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	if err != nil {
		panic(err)
	}
	s := new(big.Int).SetBytes(raw[32:])
	s.Sub(ecKey.Curve.Params().N, s).FillBytes(raw[32:])
	return token[:at+1] + base64.RawURLEncoding.EncodeToString(raw)
}

func TestATokenCountsOnceInItsLife(t *testing.T) {
	w := newWorld(t)
	p := w.jwt()
	token := w.token(nil)
	finish := func(p *Provider, token string) string {
		cb := carrying(w.start(p, Attempt{}), token)
		cb.Provider = p.ID
		_, err := w.Finish(t.Context(), p, cb)
		return refused(t, err)
	}
	for i, want := range []string{"", failure.Replayed, failure.Replayed} {
		if got := finish(p, token); got != want {
			t.Errorf("time %d: got %q, want %q", i+1, got, want)
		}
	}
	if got := finish(p, malleate(token)); got != failure.Replayed {
		t.Errorf("with another signature: got %q", got)
	}
	w.s.Advance(5*time.Minute + 59*time.Second) // it still counts, by the skew
	if got := finish(p, token); got != failure.Replayed {
		t.Errorf("at the end of its life: got %q", got)
	}
	second := w.jwt()
	second.ID, second.Data.JWT.Audience = "idp_2", "idp_1"
	if got := finish(second, token); got != "" {
		t.Errorf("at another provider: got %q", got)
	}
}

func TestAStateCountsOnceForItsProviderAndBrowser(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, p *Provider, cb *Callback)
		want   string
	}{
		"as it should be": {func(*world, *Provider, *Callback) {}, ""},
		"none": {func(_ *world, _ *Provider, cb *Callback) { cb.Query.Del("state") },
			failure.State},
		"one that somebody made up": {func(_ *world, _ *Provider, cb *Callback) {
			cb.Query.Set("state", "AAAA")
		}, failure.State},
		"one that is no base64": {func(_ *world, _ *Provider, cb *Callback) { cb.Query.Set("state", "ä") },
			failure.State},
		"a huge one": {func(_ *world, _ *Provider, cb *Callback) {
			cb.Query.Set("state", strings.Repeat("A", 9<<10))
		}, failure.State},
		"one that was changed": {func(_ *world, _ *Provider, cb *Callback) {
			cb.Query.Set("state", "B"+cb.Query.Get("state")[1:])
		}, failure.State},
		"two": {func(_ *world, _ *Provider, cb *Callback) {
			cb.Query.Add("state", cb.Query.Get("state"))
		}, failure.State},
		"of another provider": {func(_ *world, p *Provider, cb *Callback) {
			p.ID, cb.Provider = "idp_2", "idp_2"
		}, failure.Provider},
		"at the address of another": {func(_ *world, _ *Provider, cb *Callback) { cb.Provider = "idp_2" },
			failure.Provider},
		"in another browser": {func(_ *world, _ *Provider, cb *Callback) { cb.Browser = "browser-b" },
			failure.Browser},
		"in no browser": {func(_ *world, _ *Provider, cb *Callback) { cb.Browser = "" },
			failure.Browser},
		"late": {func(w *world, _ *Provider, _ *Callback) { w.s.Advance(10 * time.Minute) },
			failure.StateExpired},
		"just in time": {func(w *world, _ *Provider, _ *Callback) {
			w.s.Advance(10*time.Minute - time.Second)
		}, ""},
		"when the provider was changed": {func(_ *world, p *Provider, _ *Callback) {
			p.Data.Changer = &idp.Changer{Version: 4}
		}, failure.Changed},
		"when nobody answers for it": {func(_ *world, p *Provider, _ *Callback) { p.Data.Changer = nil },
			failure.Inactive},
		"when the provider was turned off": {func(_ *world, p *Provider, _ *Callback) { p.Data.State = idp.Inactive },
			failure.Inactive},
		"when the provider is gone": {func(_ *world, p *Provider, _ *Callback) { p.Data.State = idp.Removed },
			failure.Inactive},
		"when the person said no": {func(_ *world, _ *Provider, cb *Callback) {
			cb.Query.Set("error", "access_denied")
		}, failure.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.jwt()
			cb := carrying(w.start(p, Attempt{}), "")
			c.change(w, p, &cb)
			cb.Header = http.Header{"Authorization": {w.token(nil)}}
			_, err := w.Finish(t.Context(), p, cb)
			if got := refused(t, err); got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
			if c.want != "" && w.up.times("/keys") > 0 {
				t.Error("something was sent before the state was judged")
			}
			if c.want == "" || c.want == failure.Denied {
				cb.Header = http.Header{"Authorization": {w.token(map[string]any{"sub": "again"})}}
				if _, err := w.Finish(t.Context(), p, cb); refused(t, err) != failure.StateUsed {
					t.Errorf("the second time: %v", err)
				}
			}
		})
	}
}

func TestNothingStartsForAProviderThatSignsNobodyIn(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(p *Provider){"off": func(p *Provider) { p.Data.State = idp.Inactive },
		"unconfirmed": func(p *Provider) { p.Data.Changer = nil }} {
		p := w.jwt()
		change(p)
		if address, err := w.Start(t.Context(), p, Attempt{Browser: browser}); refused(t, err) != failure.Inactive ||
			address != "" {
			t.Errorf("%s: %q, %v", name, address, err)
		}
	}
	w.Client = outbound.New(outbound.Config{}) // no network inside is allowed, so nothing is sent in the clear
	for _, endpoint := range []string{"javascript:alert(1)", "http://portal.corp.example", "portal",
		"https://me@portal", ""} {
		p := w.jwt()
		p.Data.JWT.Endpoint = endpoint
		if address, err := w.Start(t.Context(), p,
			Attempt{Browser: browser}); refused(t, err) != failure.Configuration || address != "" {
			t.Errorf("%s: %q, %v", endpoint, address, err)
		}
	}
	p := w.jwt()
	p.Data.JWT.Endpoint = "https://portal.internal" // which browsers reach, and this server need not
	if _, err := w.Start(t.Context(), p, Attempt{Browser: browser}); err != nil {
		t.Error(err)
	}
}

// many finishes so many sign-ins at once, in turn on all of these, and counts what came of them.
func many(t *testing.T, all []*Federation, n int, finish func(f *Federation, i int) error) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var wait sync.WaitGroup
	came := map[string]int{}
	for i := range n {
		wait.Go(func() {
			err := finish(all[i%len(all)], i)
			mu.Lock()
			defer mu.Unlock()
			if failed, ok := errors.AsType[*Failure](err); ok {
				came[failed.Check]++
			} else if err != nil {
				t.Error(err)
			} else {
				came["ok"]++
			}
		})
	}
	wait.Wait()
	return came
}

func TestOfManyAttemptsWithOneStateOrOneTokenOneSucceeds(t *testing.T) {
	const n = 64
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, failure.Kind)
		up := newUpstream(t, nodes.Clock.Now)
		var all []*Federation
		for range 2 {
			if len(all) == 1 && db.Engine != "postgres" {
				break
			}
			c := config(t, up, nodes.Open(t), nodes.Clock.Now)
			c.Master = nodes.Master
			all = append(all, New(c))
		}
		w := &world{t: t, up: up, Federation: all[0], s: &eventtest.Store{Clock: nodes.Clock}}
		p := w.jwt()
		q := w.start(p, Attempt{})
		came := many(t, all, n, func(f *Federation, i int) error {
			_, err := f.Finish(t.Context(), p, carrying(q, w.token(map[string]any{"jti": i})))
			return err
		})
		if came["ok"] != 1 || came[failure.StateUsed] != n-1 {
			t.Errorf("with one state: %v", came)
		}
		token := w.token(nil)
		var states []url.Values
		for range n {
			states = append(states, w.start(p, Attempt{}))
		}
		came = many(t, all, n, func(f *Federation, i int) error {
			_, err := f.Finish(t.Context(), p, carrying(states[i], token))
			return err
		})
		if came["ok"] != 1 || came[failure.Replayed] != n-1 {
			t.Errorf("with one token: %v", came)
		}
	})
}

func TestAThousandSignInsFetchTheKeysOnce(t *testing.T) {
	w := newWorld(t)
	p := w.jwt()
	came := many(t, []*Federation{w.Federation}, 1000, func(f *Federation, i int) error {
		address, err := f.Start(t.Context(), p, Attempt{Browser: browser})
		if err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		_, err = f.Finish(t.Context(), p, carrying(u.Query(), w.token(map[string]any{"sub": fmt.Sprint(i)})))
		return err
	})
	if came["ok"] != 1000 || w.up.times("/keys") != 1 {
		t.Errorf("%v, and the keys were fetched %d times", came, w.up.times("/keys"))
	}
}

func TestKeysThatAreRotatedAndAServerThatIsAway(t *testing.T) {
	w := newWorld(t)
	p := w.jwt()
	finish := func(token string) string {
		_, err := w.Finish(t.Context(), p, carrying(w.start(p, Attempt{}), token))
		return refused(t, err)
	}
	if got := finish(w.token(nil)); got != "" {
		t.Fatal(got)
	}
	w.up.set(func(u *upstream) { u.keys = []jose.JSONWebKey{public("new", other.Public(), "")} })
	rotated := func(n int) string { return signedBy(jose.ES256, other, "new", w.portal(map[string]any{"jti": n})) }
	if got := finish(rotated(1)); got != failure.Key {
		t.Errorf("it was fetched again at once: %q", got)
	}
	w.s.Advance(30 * time.Second)
	if got := finish(rotated(2)); got != "" {
		t.Errorf("after a while: %q", got)
	}
	w.up.set(func(u *upstream) {
		u.answers["/keys"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	w.s.Advance(2 * time.Hour)
	if got := finish(rotated(3)); got != "" {
		t.Errorf("while its server is away: %q", got)
	}
	w.s.Advance(6 * time.Hour)
	if got := finish(rotated(4)); got != failure.Keys {
		t.Errorf("away for too long: %q", got)
	}
}

func TestWhatAPortalTellsAboutAPerson(t *testing.T) {
	w := newWorld(t)
	p := w.jwt()
	started := w.s.Now()
	got, err := w.Finish(t.Context(), p, carrying(w.start(p, Attempt{Again: true}), w.token(map[string]any{
		"sub":                " Jo/ä ",
		"preferred_username": "jo",
		"name":               "Jo van Doe",
		"email":              "jo@example.org",
		"email_verified":     "true",
		"amr":                []string{"pwd", "otp", "otp"},
		"sid":                "s-1",
		"auth_time":          started.Unix(),
		"locale":             "a very long language",
		"nickname":           "a\u0000b",
	})))
	must(t, err)
	who := got.Identity
	if who.Subject != " Jo/ä " || who.UserName != "jo" || who.FirstName != "Jo van" || who.LastName != "Doe" ||
		who.Email != "jo@example.org" || !who.EmailVerified ||
		fmt.Sprint(who.Methods) != "[pwd otp]" || who.Session != "s-1" || !who.Fresh || who.Language != "" ||
		who.NickName != "" || !got.Again {
		t.Errorf("got %+v", got)
	}
}
