package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// logoutClaims are those of a logout token, some of them changed.
func (w *world) logoutClaims(changed map[string]any) map[string]any {
	claims := map[string]any{
		"iss":    w.up.URL,
		"aud":    clientID,
		"sub":    "sub-1",
		"sid":    "sid-1",
		"iat":    w.s.Now().Unix(),
		"exp":    w.s.Now().Add(2 * time.Minute).Unix(),
		"jti":    "one",
		"events": map[string]any{logoutEvent: map[string]any{}},
	}
	maps.Copy(claims, changed)
	return claims
}

func (w *world) logout(changed map[string]any) string { return w.up.sign(w.logoutClaims(changed)) }

// ended collects what was ended.
func ended(into *[]SignedOut) func(context.Context, SignedOut) error {
	return func(_ context.Context, out SignedOut) error {
		*into = append(*into, out)
		return nil
	}
}

func TestEveryCheckOfALogoutTokenRefusesAlone(t *testing.T) {
	type c = map[string]any
	claims := func(changed c) func(*world, *Provider) string {
		return func(w *world, _ *Provider) string { return w.logout(changed) }
	}
	for name, c := range map[string]struct {
		token func(w *world, p *Provider) string
		want  string
	}{
		"as it should be":           {claims(nil), ""},
		"of a person":               {claims(c{"sid": nil}), ""},
		"of a session":              {claims(c{"sub": nil}), ""},
		"of nothing":                {claims(c{"sub": nil, "sid": nil}), failure.Session},
		"a subject that is no text": {claims(c{"sub": 17}), failure.Subject},
		"an empty subject":          {claims(c{"sub": ""}), failure.Subject},
		"a session that is no text": {claims(c{"sid": 17}), failure.Session},
		"an empty session":          {claims(c{"sid": ""}), failure.Session},
		"a huge session":            {claims(c{"sid": strings.Repeat("x", 256)}), failure.Session},
		"no signature": {func(w *world, _ *Provider) string {
			return unsigned(`{"alg":"none"}`, w.logoutClaims(nil))
		}, failure.Algorithm},
		"a MAC with the public key": {func(w *world, _ *Provider) string {
			return hmacOf(ecKey.Public(), w.logoutClaims(nil))
		}, failure.Algorithm},
		"an algorithm that is not advertised": {func(w *world, _ *Provider) string {
			return signedBy(jose.RS512, rsaKey, "rsa", w.logoutClaims(nil))
		}, failure.Algorithm},
		"an algorithm of another key": {func(w *world, _ *Provider) string {
			return signedBy(jose.RS256, rsaKey, "ec", w.logoutClaims(nil))
		}, failure.Algorithm},
		"another key": {func(w *world, _ *Provider) string {
			return signedBy(jose.ES256, other, "ec", w.logoutClaims(nil))
		}, failure.Signature},
		"an unknown key": {func(w *world, _ *Provider) string {
			return signedBy(jose.ES256, other, "other", w.logoutClaims(nil))
		}, failure.Key},
		"no token": {func(*world, *Provider) string { return "leaked" }, failure.Token},
		"a huge token": {func(*world, *Provider) string { return strings.Repeat("x", 17<<10) },
			failure.Token},
		"another issuer":   {claims(c{"iss": "https://evil.example"}), failure.Issuer},
		"no issuer":        {claims(c{"iss": nil}), failure.Issuer},
		"another audience": {claims(c{"aud": "other"}), failure.Audience},
		"no audience":      {claims(c{"aud": nil}), failure.Audience},
		"no time of issue": {claims(c{"iat": nil}), failure.IssuedAt},
		"issued long ago":  {claims(c{"iat": 1}), failure.IssuedAt},
		"issued in the future": {func(w *world, _ *Provider) string {
			return w.logout(c{"iat": w.s.Now().Add(time.Hour).Unix()})
		}, failure.IssuedAt},
		"no expiry": {claims(c{"exp": nil}), failure.Expired},
		"expired": {func(w *world, _ *Provider) string {
			return w.logout(c{"iat": w.s.Now().Add(-5 * time.Minute).Unix(),
				"exp": w.s.Now().Add(-2 * time.Minute).Unix()})
		}, failure.Expired},
		"no identifier":                 {claims(c{"jti": nil}), failure.TokenID},
		"an empty identifier":           {claims(c{"jti": ""}), failure.TokenID},
		"an identifier that is no text": {claims(c{"jti": 17}), failure.TokenID},
		"a huge identifier":             {claims(c{"jti": strings.Repeat("x", 256)}), failure.TokenID},
		"no events":                     {claims(c{"events": nil}), failure.Event},
		"another event":                 {claims(c{"events": c{"https://example.org": c{}}}), failure.Event},
		"an event that is none":         {claims(c{"events": c{logoutEvent: nil}}), failure.Event},
		"events that are a list":        {claims(c{"events": []string{logoutEvent}}), failure.Event},
		"a nonce":                       {claims(c{"nonce": "x"}), failure.Nonce},
		"a nonce that is null":          {func(w *world, _ *Provider) string { return w.nullNonce() }, failure.Nonce},
		"an ID token": {func(w *world, _ *Provider) string { return w.up.sign(w.up.idToken()) },
			failure.TokenID},
		"a provider that is switched off": {func(w *world, p *Provider) string {
			p.Data.State = idp.Inactive
			return w.logout(nil)
		}, failure.Inactive},
		"a provider that nobody answers for": {func(w *world, p *Provider) string {
			p.Data.Changer = nil
			return w.logout(nil)
		}, failure.Inactive},
		"a provider of another kind": {func(w *world, p *Provider) string {
			*p = *w.jwt()
			return w.logout(nil)
		}, failure.Configuration},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.oidc(nil)
			token := c.token(w, p)
			var out []SignedOut
			got := refused(t, w.SignOut(t.Context(), p, token, "req", ended(&out)))
			if want := c.want; want != "" && got != "logout_"+want || want == "" && got != "" {
				t.Errorf("it was refused by %q, want %q", got, want)
			}
			if (len(out) == 1) != (c.want == "") {
				t.Errorf("ended %v", out)
			}
		})
	}
}

// nullNonce is a token with a nonce that is there and says nothing.
func (w *world) nullNonce() string {
	payload, err := json.Marshal(w.logoutClaims(nil))
	must(w.t, err)
	return signedText(jose.ES256, ecKey, "ec", strings.Replace(string(payload), `{`, `{"nonce":null,`, 1))
}

func TestWhatALogoutTokenEnds(t *testing.T) {
	for name, c := range map[string]struct {
		changed map[string]any
		want    SignedOut
	}{
		"of a person":                 {map[string]any{"sid": nil}, SignedOut{Subject: "sub-1"}},
		"of a session":                {map[string]any{"sub": nil}, SignedOut{Session: "sid-1"}},
		"of a session and its person": {nil, SignedOut{Subject: "sub-1", Session: "sid-1"}},
		"of an exact subject":         {map[string]any{"sub": " 1e3 ", "sid": nil}, SignedOut{Subject: " 1e3 "}},
		"for several, one of them us": {map[string]any{"aud": []string{"other", clientID}},
			SignedOut{Subject: "sub-1", Session: "sid-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.want.Provider, c.want.Issuer = "idp_1", w.up.URL
			var out []SignedOut
			must(t, w.SignOut(t.Context(), w.oidc(nil), w.logout(c.changed), "", ended(&out)))
			if len(out) != 1 || out[0] != c.want {
				t.Errorf("got %+v, want %+v", out, c.want)
			}
		})
	}
}

func TestALogoutTokenCountsOnce(t *testing.T) {
	w := newWorld(t)
	p := w.oidc(nil)
	token := w.logout(nil)
	var ends atomic.Int64
	end := func(context.Context, SignedOut) error { ends.Add(1); return nil }
	var all sync.WaitGroup
	var again atomic.Int64
	for range 64 {
		all.Go(func() {
			if err := w.SignOut(t.Context(), p, token, "", end); err != nil {
				if failed, ok := errors.AsType[*Failure](err); ok && failed.Check == "logout_"+failure.Replayed {
					again.Add(1)
				}
			}
		})
	}
	all.Wait()
	if ends.Load() != 1 || again.Load() != 63 {
		t.Errorf("it counted %d times, and was refused %d times", ends.Load(), again.Load())
	}
	// The same identifier under another signature is the same token.
	if got := refused(t, w.SignOut(t.Context(), p, w.logout(nil), "", end)); got != "logout_"+failure.Replayed {
		t.Errorf("signed again, it is refused by %q", got)
	}
	// As long as it is fresh, it is remembered.
	w.s.Advance(maxTokenAge + clockSkew/2)
	stale := w.logout(map[string]any{"iat": w.s.Now().Add(-maxTokenAge - clockSkew/2).Unix()})
	if got := refused(t, w.SignOut(t.Context(), p, stale, "", end)); got != "logout_"+failure.Replayed {
		t.Errorf("at the end of its life it is refused by %q", got)
	}
	if err := w.SignOut(t.Context(), p, w.logout(map[string]any{"jti": "two"}), "", end); err != nil ||
		ends.Load() != 2 {
		t.Errorf("another one: %v", err)
	}
}

func TestALogoutTokenCountsAgainWhereNothingWasEnded(t *testing.T) {
	w := newWorld(t)
	p, token, broken := w.oidc(nil), w.logout(nil), errors.New("broken")
	if err := w.SignOut(t.Context(), p, token, "",
		func(context.Context, SignedOut) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	var out []SignedOut
	if err := w.SignOut(t.Context(), p, token, "", ended(&out)); err != nil || len(out) != 1 {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestALogoutThatFailedIsRecordedAsOne(t *testing.T) {
	w := newWorld(t)
	refused(t, w.SignOut(t.Context(), w.oidc(nil), w.logout(map[string]any{"aud": "leaked"}), "req", nil))
	if o := eventtest.State(t, w.s, failure.Kind, "ips_1"); o.Data.Failed != 1 || o.Data.Last["logout_audience"] == 0 {
		t.Errorf("got %+v", o)
	}
}
