package upstream

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/test/testkit"
)

func TestTheAddressThatPeopleAreSentTo(t *testing.T) {
	w := newWorld(t)
	p := w.oidc(func(o *idp.OIDC) {
		o.Parameters = idp.Parameters{"acr_values": "high", "state": "ours counts", "nonce": "x",
			"redirect_uri": "https://evil.example"}
		o.Scopes = []string{"openid", "groups"}
	})
	q := w.start(p, Attempt{Hint: "jo@example.org"})
	want := url.Values{
		"tenant":                {"1"},
		"acr_values":            {"high"},
		"response_type":         {"code"},
		"client_id":             {clientID},
		"redirect_uri":          {external + "/login/idp/idp_1/callback"},
		"scope":                 {"openid groups"},
		"login_hint":            {"jo@example.org"},
		"code_challenge_method": {"S256"},
	}
	for name, value := range want {
		if !slices.Equal(q[name], value) {
			t.Errorf("%s is %q, want %q", name, q[name], value)
		}
	}
	if q.Get("state") == "ours counts" || len(q.Get("nonce")) != 43 || len(q.Get("code_challenge")) != 43 ||
		q.Has("prompt") || q.Has("response_mode") {
		t.Errorf("got %v", q)
	}
	if again := w.start(p, Attempt{}); again.Get("nonce") == q.Get("nonce") ||
		again.Get("code_challenge") == q.Get("code_challenge") || again.Get("state") == q.Get("state") {
		t.Error("two attempts share something")
	}
	q = w.start(w.oidc(func(o *idp.OIDC) { o.FormPost = true }), Attempt{Again: true, Hint: "a\nb"})
	if q.Get("scope") != "openid profile email" || q.Get("prompt") != "login" || q.Get("max_age") != "0" ||
		q.Get("response_mode") != "form_post" || q.Has("login_hint") {
		t.Errorf("got %v", q)
	}
	q = w.start(w.oidc(func(o *idp.OIDC) { o.Preset = idp.GooglePreset }), Attempt{Again: true})
	if q.Get("prompt") != "select_account" || q.Get("max_age") != "0" {
		t.Errorf("got %v", q)
	}
}

func TestEveryCheckOfAnAnswerRefusesAlone(t *testing.T) {
	claims := func(changed map[string]any) func(w *world, p *Provider, cb *Callback) {
		return func(w *world, _ *Provider, _ *Callback) { w.up.set(func(u *upstream) { u.claims = changed }) }
	}
	signs := func(by func(claims map[string]any) string) func(w *world, p *Provider, cb *Callback) {
		return func(w *world, _ *Provider, _ *Callback) { w.up.set(func(u *upstream) { u.sign = by }) }
	}
	answers := func(path string, h http.HandlerFunc) func(w *world, p *Provider, cb *Callback) {
		return func(w *world, _ *Provider, _ *Callback) { w.up.set(func(u *upstream) { u.answers[path] = h }) }
	}
	tokens := func(status int, body string) func(w *world, p *Provider, cb *Callback) {
		return answers("/token",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); io.WriteString(w, body) })
	}
	param := func(name, value string) func(w *world, p *Provider, cb *Callback) {
		return func(_ *world, _ *Provider, cb *Callback) { cb.Query.Set(name, value) }
	}
	info := func(user string) func(w *world, p *Provider, cb *Callback) {
		return func(w *world, _ *Provider, _ *Callback) {
			w.up.set(func(u *upstream) { u.claims, u.user = map[string]any{"email": nil}, user })
		}
	}
	type c = map[string]any
	for name, c := range map[string]struct {
		change func(w *world, p *Provider, cb *Callback)
		want   string
	}{
		"as it should be": {claims(nil), ""},
		"no signature": {signs(func(c map[string]any) string {
			return unsigned(`{"alg":"none"}`, c)
		}), failure.Algorithm},
		"a MAC with the public key": {signs(func(c map[string]any) string {
			return hmacOf(ecKey.Public(), c)
		}), failure.Algorithm},
		"an algorithm that is not advertised": {signs(func(c map[string]any) string {
			return signedBy(jose.RS512, rsaKey, "rsa", c)
		}), failure.Algorithm},
		"another key": {signs(func(c map[string]any) string {
			return signedBy(jose.ES256, other, "ec", c)
		}), failure.Signature},
		"another issuer":   {claims(c{"iss": "https://evil.example"}), failure.Issuer},
		"another audience": {claims(c{"aud": "other"}), failure.Audience},
		"no audience":      {claims(c{"aud": nil}), failure.Audience},
		"several audiences and no azp": {claims(c{"aud": []string{clientID, "other"}}),
			failure.AuthorizedParty},
		"several audiences":            {claims(c{"aud": []string{clientID, "other"}, "azp": clientID}), ""},
		"another azp":                  {claims(c{"azp": "other"}), failure.AuthorizedParty},
		"an azp that is no text":       {claims(c{"azp": 1}), failure.AuthorizedParty},
		"no expiry":                    {claims(c{"exp": nil}), failure.Expired},
		"no time of issue":             {claims(c{"iat": nil}), failure.IssuedAt},
		"issued long ago":              {claims(c{"iat": 1}), failure.IssuedAt},
		"no nonce":                     {claims(c{"nonce": nil}), failure.Nonce},
		"another nonce":                {claims(c{"nonce": "other"}), failure.Nonce},
		"a subject that is a number":   {claims(c{"sub": 17}), failure.Subject},
		"the hash of the access token": {claims(c{"at_hash": accessTokenHash("ES256", "access-token")}), ""},
		"the hash of another one": {claims(c{"at_hash": accessTokenHash("ES256", "other")}),
			failure.AccessTokenHash},
		"a hash by another algorithm": {claims(c{"at_hash": accessTokenHash("ES384", "access-token")}),
			failure.AccessTokenHash},
		"a hash that is no text": {claims(c{"at_hash": 1}), failure.AccessTokenHash},
		"the issuer of the answer": {func(w *world, _ *Provider, cb *Callback) {
			cb.Query.Set("iss", w.up.URL)
		}, ""},
		"another issuer of the answer":           {param("iss", "https://evil.example"), failure.IssParameter},
		"an empty issuer of the answer":          {param("iss", ""), failure.IssParameter},
		"the person said no":                     {param("error", "access_denied"), failure.Denied},
		"the request was wrong":                  {param("error", "leaked"), failure.Refused},
		"no code":                                {param("code", ""), failure.Code},
		"a huge code":                            {param("code", strings.Repeat("x", 5<<10)), failure.Code},
		"a code that the provider does not know": {param("code", "other"), failure.Code},
		"two codes": {func(_ *world, _ *Provider, cb *Callback) {
			cb.Query.Add("code", "the-code")
		}, failure.State},
		"credentials that it does not know": {tokens(http.StatusUnauthorized, `{"error":"invalid_client"}`),
			failure.Client},
		"credentials that it refuses silently": {tokens(http.StatusUnauthorized, ``), failure.Client},
		"no tokens":                            {tokens(http.StatusOK, `{}`), failure.TokenAnswer},
		"no ID token": {tokens(http.StatusOK, `{"token_type":"bearer","access_token":"x"}`),
			failure.Token},
		"tokens of another type": {tokens(http.StatusOK, `{"token_type":"DPoP","access_token":"x"}`),
			failure.TokenAnswer},
		"garbage":               {tokens(http.StatusOK, "<html>leaked"), failure.TokenAnswer},
		"garbage with an error": {tokens(http.StatusBadRequest, "leaked"), failure.TokenAnswer},
		"a redirect": {answers("/token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/keys", http.StatusTemporaryRedirect)
		}), failure.TokenAnswer},
		"a huge answer": {tokens(http.StatusOK, strings.Repeat(" ", maxAnswer+1)),
			failure.Unreachable},
		"a broken server":              {tokens(http.StatusBadGateway, "leaked"), failure.Unreachable},
		"user info of the same person": {info(`{"sub":"sub-1","email":"jo@example.org"}`), ""},
		"user info of somebody else":   {info(`{"sub":"sub-2","email":"jo@example.org"}`), failure.UserInfoSubject},
		"user info of nobody":          {info(`{"email":"jo@example.org"}`), failure.UserInfoSubject},
		"user info of a number":        {info(`{"sub":1}`), failure.UserInfoSubject},
		"user info that is garbage":    {info(`leaked`), failure.UserInfo},
		"user info that is not needed": {func(w *world, _ *Provider, _ *Callback) {
			w.up.set(func(u *upstream) { u.user = "garbage" })
		}, ""},
		"a provider that changed its name": {func(w *world, p *Provider, _ *Callback) { p.Data.OIDC.Issuer += "/" },
			failure.Issuer},
		"a client secret that is gone": {func(w *world, p *Provider, _ *Callback) {
			p.ID = "idp_1"
			w.dropSecret()
		}, failure.Configuration},
		"a tenant although there are none": {func(_ *world, p *Provider, _ *Callback) {
			p.Data.OIDC.Tenants = []string{""}
		}, failure.Tenant},
		"a redirect of the user info to loopback": {func(w *world, p *Provider, cb *Callback) {
			info("")(w, p, cb)
			answers("/userinfo", toLoopback)(w, p, cb)
		}, failure.UserInfo},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.oidc(nil)
			cb := back(w.start(p, Attempt{}))
			c.change(w, p, &cb)
			_, err := w.Finish(t.Context(), p, cb)
			if got := refused(t, err); got != c.want {
				t.Errorf("it was refused by %q (%v), want %q", got, err, c.want)
			}
			if w.up.times("/authorize")+w.up.times("/inside") > 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

func promiseIss(u *upstream) {
	u.metadata = map[string]any{"authorization_response_iss_parameter_supported": true}
}

func toLoopback(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://127.0.0.2:1/inside", http.StatusFound)
}

func (w *world) dropSecret() {
	w.s.GivenRow(secretRowThatIsEmpty(w))
}

func TestThePromiseOfAnIssuerIsKept(t *testing.T) {
	w := newWorld(t)
	w.up.set(promiseIss)
	p := w.oidc(nil)
	for iss, want := range map[string]string{w.up.URL: "", w.up.URL + "/": failure.IssParameter,
		"": failure.IssParameter} {
		cb := back(w.start(p, Attempt{}))
		if iss != "" {
			cb.Query.Set("iss", iss)
		}
		before := w.up.times("/token")
		_, err := w.Finish(t.Context(), p, cb)
		if got := refused(t, err); got != want {
			t.Errorf("%q: got %q, want %q", iss, got, want)
		}
		if sent := w.up.times("/token") > before; sent != (want == "") {
			t.Errorf("%q: the code was sent: %t", iss, sent)
		}
	}
}

func TestHowTheClientProvesWhoItIs(t *testing.T) {
	w := newWorld(t)
	keys := signing.New(w.s, w.s.Master, w.s.Now)
	w.Signing = keys
	finish := func(p *Provider) (url.Values, [2]string) {
		t.Helper()
		_, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{})))
		must(t, err)
		return w.up.asked, w.up.basic
	}
	form, basic := finish(w.oidc(nil))
	if basic != [2]string{url.QueryEscape(clientID), url.QueryEscape("our secret/+")} || form.Has("client_secret") ||
		form.Get("redirect_uri") != external+"/login/idp/idp_1/callback" {
		t.Errorf("in the header: %v, %v", form, basic)
	}
	form, basic = finish(w.oidc(func(o *idp.OIDC) { o.ClientAuth = idp.SecretInBody }))
	if basic != [2]string{} || form.Get("client_id") != clientID || form.Get("client_secret") != "our secret/+" {
		t.Errorf("in the body: %v, %v", form, basic)
	}
	form, basic = finish(w.oidc(func(o *idp.OIDC) { o.HasClientSecret = false }))
	if basic != [2]string{} || form.Get("client_id") != clientID || form.Has("client_secret") ||
		form.Has("client_assertion") {
		t.Errorf("without a secret: %v, %v", form, basic)
	}
	for _, alg := range []string{"RS256", "ES256"} {
		w := newWorld(t)
		keys := signing.New(w.s, w.s.Master, w.s.Now)
		w.Signing = keys
		w.up.metadata = map[string]any{"token_endpoint_auth_signing_alg_values_supported": []string{alg}}
		p := w.oidc(func(o *idp.OIDC) { o.ClientAuth = idp.PrivateKeyJWT })
		_, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{})))
		must(t, err)
		var c struct {
			Iss, Sub, Aud, Jti string
			Iat, Exp           int64
		}
		must(t, keys.Verify(t.Context(), "JWT", w.up.asked.Get("client_assertion"), &c))
		if c.Iss != clientID || c.Sub != clientID || c.Aud != w.up.URL || c.Jti == "" || c.Iat != w.s.Now().Unix() ||
			c.Exp != c.Iat+60 || w.up.asked.Get("client_secret") != "" ||
			w.up.asked.Get("client_assertion_type") != assertionType {
			t.Errorf("got %+v", c)
		}
		parsed, err := jose.ParseSignedCompact(w.up.asked.Get("client_assertion"),
			[]jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
		if err != nil || parsed.Signatures[0].Header.KeyID == "" {
			t.Errorf("%s: %v", alg, err)
		}
	}
}

func appleP8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestApple(t *testing.T) {
	w := newWorld(t)
	p := w.oidc(func(o *idp.OIDC) { o.Preset, o.TeamID, o.KeyID = idp.ApplePreset, "TEAM", "KEY" })
	w.secret(appleP8(t, other))
	w.up.claims = map[string]any{"given_name": nil, "family_name": nil, "preferred_username": nil,
		"email_verified": "true"}
	w.up.metadata = map[string]any{"userinfo_endpoint": nil}
	q := w.start(p, Attempt{})
	if q.Get("response_mode") != "form_post" || q.Get("scope") != "openid name email" {
		t.Errorf("got %v", q)
	}
	cb := back(q)
	cb.Form, cb.Query = cb.Query, nil
	cb.Form.Set("user", `{"name":{"firstName":"Jo","lastName":"Doe\u0000"},"email":"other@example.org","sub":"x"}`)
	got, err := w.Finish(t.Context(), p, cb)
	must(t, err)
	if who := got.Identity; who.FirstName != "Jo" || who.LastName != "" || who.Email != "jo@example.org" ||
		!who.EmailVerified || who.Subject != "sub-1" {
		t.Errorf("got %+v", who)
	}
	made, err := jose.ParseSignedCompact(w.up.asked.Get("client_secret"), []jose.SignatureAlgorithm{jose.ES256})
	must(t, err)
	payload, err := made.Verify(&other.PublicKey)
	must(t, err)
	var c map[string]any
	must(t, json.Unmarshal(payload, &c))
	now := float64(w.s.Now().Unix())
	if !reflect.DeepEqual(c, map[string]any{"iss": "TEAM", "sub": clientID, "aud": "https://appleid.apple.com",
		"iat": now, "exp": now + 60}) || made.Signatures[0].Header.KeyID != "KEY" {
		t.Errorf("got %v", c)
	}
	for name, key := range map[string]string{"no key": "our secret", "an RSA key": appleP8(t, rsaKey),
		"another curve": appleP8(t, ec384)} {
		w.secret(key)
		if _, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{}))); refused(t, err) != failure.Configuration {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMicrosoftsTenants(t *testing.T) {
	for name, c := range map[string]struct {
		claims  map[string]any
		tenants []string
		preset  idp.Preset
		iss     string
		want    string
	}{
		"of any tenant": {map[string]any{"tid": "t-1", "iss": "%/t-1/v2.0"}, nil,
			idp.MicrosoftPreset, "", ""},
		"of one of ours": {map[string]any{"tid": "t-1", "iss": "%/t-1/v2.0"}, []string{"t-2", "t-1"},
			idp.MicrosoftPreset, "", ""},
		"of another one": {map[string]any{"tid": "t-3", "iss": "%/t-3/v2.0"}, []string{"t-2", "t-1"},
			idp.MicrosoftPreset, "", failure.Tenant},
		"the issuer of another tenant": {map[string]any{"tid": "t-1", "iss": "%/t-3/v2.0"}, nil, idp.MicrosoftPreset,
			"", failure.Issuer},
		"the template itself": {map[string]any{"tid": "{tenantid}", "iss": "%/{tenantid}/v2.0"}, nil,
			idp.MicrosoftPreset, "", failure.Issuer},
		"no tenant": {map[string]any{"iss": "%/t-1/v2.0"}, nil, idp.MicrosoftPreset, "",
			failure.Issuer},
		"a tenant with a path": {map[string]any{"tid": "a/b", "iss": "%/a/b/v2.0"}, nil, idp.MicrosoftPreset,
			"", failure.Issuer},
		"another preset": {map[string]any{"tid": "t-1", "iss": "%/t-1/v2.0"}, nil, "", "",
			failure.Issuer},
		"the answer names its tenant": {map[string]any{"tid": "t-1", "iss": "%/t-1/v2.0"}, nil, idp.MicrosoftPreset,
			"%/t-1/v2.0", ""},
		"the answer names another one": {map[string]any{"tid": "t-1", "iss": "%/t-1/v2.0"}, nil, idp.MicrosoftPreset,
			"%/t-2/v2.0", failure.IssParameter},
		"the answer names a path": {map[string]any{"tid": "t-1", "iss": "%/t-1/v2.0"}, nil, idp.MicrosoftPreset,
			"%/a/b/v2.0", failure.IssParameter},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			here := func(s string) string { return strings.Replace(s, "%", w.up.URL, 1) }
			c.claims["iss"] = here(c.claims["iss"].(string))
			w.up.claims = c.claims
			w.up.answers["/common/v2.0"+wellKnown] = func(rw http.ResponseWriter, r *http.Request) {
				r.URL.Path = wellKnown
				w.up.serve(rw, r)
			}
			w.up.metadata = map[string]any{"issuer": w.up.URL + "/{tenantid}/v2.0"}
			p := w.oidc(func(o *idp.OIDC) {
				o.Preset, o.Tenants, o.Issuer = idp.MicrosoftPreset, c.tenants, w.up.URL+"/common/v2.0"
			})
			cb := back(w.start(p, Attempt{}))
			if c.iss != "" {
				cb.Query.Set("iss", here(c.iss))
			}
			p.Data.OIDC.Preset = c.preset
			got, err := w.Finish(t.Context(), p, cb)
			if check := refused(t, err); check != c.want {
				t.Errorf("got %q (%v), want %q", check, err, c.want)
			}
			if err == nil && (got.Identity.Issuer != w.up.URL+"/t-1/v2.0" || got.Identity.Tenant != "t-1" ||
				got.Identity.EmailVerified) {
				t.Errorf("got %+v", got.Identity)
			}
		})
	}
}

func TestWhoseEmailCountsAsVerified(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		claims m
		user   string
		change func(o *idp.OIDC)
		email  string
		want   bool
	}{
		"said":             {nil, "", nil, "jo@example.org", true},
		"said as text":     {m{"email_verified": "true"}, "", nil, "jo@example.org", true},
		"denied":           {m{"email_verified": false}, "", nil, "jo@example.org", false},
		"not said":         {m{"email_verified": nil}, "", nil, "jo@example.org", false},
		"said as a number": {m{"email_verified": 1}, "", nil, "jo@example.org", false},
		"said in capitals": {m{"email_verified": "True"}, "", nil, "jo@example.org", false},
		"by user info": {m{"email": nil, "email_verified": nil},
			`{"sub":"sub-1","email":"a@b","email_verified":true}`, nil, "a@b", true},
		"by user info, of another address": {m{"given_name": nil, "email_verified": nil},
			`{"sub":"sub-1","email":"a@b","email_verified":true}`, nil, "jo@example.org", false},
		"by user info, of the same address": {m{"given_name": nil, "email_verified": nil},
			`{"sub":"sub-1","email":"jo@example.org","email_verified":true}`, nil, "jo@example.org", true},
		"of a token without an address": {m{"email": nil}, `{"sub":"sub-1","email":"a@b"}`, nil, "a@b", false},
		"of another claim": {m{"upn": "root@example.org"}, "",
			func(o *idp.OIDC) { o.Claims.Email = "upn" }, "root@example.org", false},
		"of a claim with the same address": {m{"upn": "jo@example.org"}, "",
			func(o *idp.OIDC) { o.Claims.Email = "upn" }, "jo@example.org", false},
		"no address": {m{"email": "Jo <jo@example.org>"}, "", nil, "", false},
		"by Microsoft": {nil, "", func(o *idp.OIDC) { o.Preset = idp.MicrosoftPreset },
			"jo@example.org", false},
		"by the owner of its domain": {m{"xms_edov": true}, "",
			func(o *idp.OIDC) { o.Preset = idp.MicrosoftPreset }, "jo@example.org", true},
		"by nobody at Microsoft": {m{"xms_edov": false}, "",
			func(o *idp.OIDC) { o.Preset = idp.MicrosoftPreset }, "jo@example.org", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.up.claims, w.up.user = c.claims, c.user
			if c.user == "" {
				w.up.metadata = m{"userinfo_endpoint": nil}
			}
			p := w.oidc(c.change)
			got, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{})))
			must(t, err)
			if got.Identity.Email != c.email || got.Identity.EmailVerified != c.want {
				t.Errorf("got %+v", got.Identity)
			}
		})
	}
	for issuer, want := range map[string]bool{"https://login.microsoftonline.com/x/v2.0": true,
		"https://LOGIN.microsoftonline.com/x": true, "https://a.ciamlogin.com/": true,
		"https://login.microsoftonline.com.evil.example": false, "https://accounts.google.com": false} {
		if isMicrosoft(&idp.OIDC{Issuer: issuer}) != want {
			t.Error(issuer)
		}
	}
}

func TestGooglesDomains(t *testing.T) {
	for hd, want := range map[any]string{"corp.example": "", "other.example": failure.Tenant, nil: failure.Tenant,
		"Corp.example": failure.Tenant} {
		w := newWorld(t)
		w.up.claims = map[string]any{"hd": hd}
		p := w.oidc(func(o *idp.OIDC) { o.Preset, o.Tenants = idp.GooglePreset, []string{"corp.example"} })
		got, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{})))
		if check := refused(t, err); check != want || err == nil && got.Identity.Tenant != "corp.example" {
			t.Errorf("%v: %q, %+v", hd, check, got.Identity)
		}
	}
}

func TestAProofIsFreshOnlyIfItWasAskedForAndJustGiven(t *testing.T) {
	for name, c := range map[string]struct {
		again bool
		at    any // seconds from the start; nil: not told
		want  bool
	}{
		"asked for and given":   {true, 5, true},
		"given within the skew": {true, -59, true},
		"given before":          {true, -61, false},
		"given in the future":   {true, 300, false},
		"not told":              {true, nil, false},
		"not asked for":         {false, 5, false},
		"told as a text":        {true, "now", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if s, ok := c.at.(int); ok {
				c.at = w.s.Now().Add(time.Duration(s) * time.Second).Unix()
			}
			w.up.claims = map[string]any{"auth_time": c.at}
			p := w.oidc(nil)
			got, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{Again: c.again})))
			must(t, err)
			if got.Identity.Fresh != c.want || got.Again != c.again {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestMappedClaims(t *testing.T) {
	w := newWorld(t)
	w.up.claims = map[string]any{"login": "jd", "vorname": strings.Repeat("ä", 200),
		"nachname": strings.Repeat("x", 201), "lang": "de", "nick": []string{"no"}, "groups": []string{"admin"}}
	w.up.user = `{"sub":"sub-1","nachname":"Doe","login":"other","nick":"jojo"}`
	p := w.oidc(func(o *idp.OIDC) {
		o.Claims = idp.Claims{UserName: "login", FirstName: "vorname", LastName: "nachname", NickName: "nick",
			Language: "lang"}
	})
	got, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{})))
	must(t, err)
	who := got.Identity
	if who.UserName != "jd" || who.FirstName != strings.Repeat("ä", 200) || who.LastName != "Doe" ||
		who.NickName != "jojo" || who.Language != "de" {
		t.Errorf("got %+v", who)
	}
}

func TestDiscoveryIsFetchedOnceAndKeptWhileItsServerIsAway(t *testing.T) {
	w := newWorld(t)
	p := w.oidc(nil)
	came := many(t, []*Federation{w.Federation}, 100, func(f *Federation, _ int) error {
		_, err := f.Start(t.Context(), p, Attempt{Browser: browser})
		return err
	})
	if came["ok"] != 100 || w.up.times(wellKnown) != 1 {
		t.Errorf("%v, fetched %d times", came, w.up.times(wellKnown))
	}
	w.up.set(func(u *upstream) {
		u.answers[wellKnown] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	w.s.Advance(2 * time.Hour)
	if _, err := w.Start(t.Context(), p, Attempt{Browser: browser}); err != nil {
		t.Error(err)
	}
	w.s.Advance(5 * time.Hour)
	if _, err := w.Start(t.Context(), p, Attempt{Browser: browser}); refused(t, err) != failure.Discovery {
		t.Errorf("got %v", err)
	}
}

func TestEndpointsThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"garbage": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "leaked") },
			failure.Discovery},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat(" ", maxAnswer+1))
		}, failure.Discovery},
		"nothing in it": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") },
			failure.Issuer},
		"a redirect to loopback": {toLoopback, failure.Address},
		"not there":              {http.NotFound, failure.Discovery},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.up.answers[wellKnown] = c.answer
			if _, err := w.Start(t.Context(), w.oidc(nil), Attempt{Browser: browser}); refused(t, err) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
	w := newWorld(t)
	if _, err := w.Start(t.Context(), w.oidc(func(o *idp.OIDC) { o.Issuer = "https://10.0.0.1" }),
		Attempt{Browser: browser}); refused(t, err) != failure.Address {
		t.Errorf("a private address: %v", err)
	}
	for _, issuer := range []string{"ftp://x", "https://x?a=b", "https://x#y", "", "https://"} {
		if _, err := w.Start(t.Context(), w.oidc(func(o *idp.OIDC) { o.Issuer = issuer }),
			Attempt{Browser: browser}); refused(t, err) != failure.Configuration {
			t.Errorf("%s: %v", issuer, err)
		}
	}
	w.up.metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"}
	if _, err := w.Start(t.Context(), w.oidc(nil),
		Attempt{Browser: browser}); refused(t, err) != failure.Configuration {
		t.Errorf("a script: %v", err)
	}
}

// TestAStrangerDoesNotBreakAProvider: codes that it does not know, and callers that leave, say nothing about the
// provider; failures do.
func TestAProviderThatFailsIsLeftAloneAndStrangersCannotMakeItLookBroken(t *testing.T) {
	w := newWorld(t)
	p := w.oidc(nil)
	finish := func(ctx context.Context, code string) string {
		cb := back(w.start(p, Attempt{}))
		cb.Query.Set("code", code)
		_, err := w.Finish(ctx, p, cb)
		return refused(t, err)
	}
	for range 10 {
		if got := finish(t.Context(), "made up"); got != failure.Code {
			t.Fatalf("got %q", got)
		}
	}
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	w.up.set(func(u *upstream) {
		u.answers["/token"] = func(http.ResponseWriter, *http.Request) { <-hold }
	})
	for range 10 {
		before := w.up.times("/token")
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			testkit.Await(t, "a call", func() bool { return w.up.times("/token") > before })
			leave()
		}()
		if got := finish(ctx, "the-code"); got != failure.Unreachable {
			t.Fatalf("got %q", got)
		}
	}
	release()
	w.up.set(func(u *upstream) {
		u.answers["/token"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	before := w.up.times("/token")
	for range 10 {
		if got := finish(t.Context(), "the-code"); got != failure.Unreachable {
			t.Fatalf("got %q", got)
		}
	}
	if asked := w.up.times("/token") - before; asked != 5 {
		t.Errorf("it was asked %d times", asked)
	}
	w.up.set(func(u *upstream) { delete(u.answers, "/token") })
	if got := finish(t.Context(), "the-code"); got != failure.Unreachable {
		t.Errorf("it was asked again at once: %q", got)
	}
	w.s.Advance(30 * time.Second)
	for range 2 {
		if got := finish(t.Context(), "the-code"); got != "" {
			t.Errorf("when it works again: %q", got)
		}
	}
}

func TestASlowProviderHoldsNobodyElseUp(t *testing.T) {
	const most = 6 // calls to one provider
	w := newWorld(t)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	w.up.set(func(u *upstream) { u.answers["/slow"] = func(http.ResponseWriter, *http.Request) { <-hold } })
	p, stalled := w.oidc(nil), w.oauth()
	stalled.ID, stalled.Data.OAuth.TokenEndpoint, stalled.Data.OAuth.HasClientSecret = "idp_slow",
		w.up.URL+"/slow", false
	done := make(chan map[string]int)
	go func() {
		done <- many(t, []*Federation{w.Federation}, 60, func(f *Federation, _ int) error {
			address, err := f.Start(t.Context(), stalled, Attempt{Browser: browser})
			if err != nil {
				return err
			}
			u, err := url.Parse(address)
			if err != nil {
				return err
			}
			cb := back(u.Query())
			cb.Provider = stalled.ID
			_, err = f.Finish(t.Context(), stalled, cb)
			return err
		})
	}()
	testkit.Await(t, "calls that stall", func() bool { return w.up.times("/slow") >= most })
	// Another provider, even of the same organization and at the same host, has room at once.
	began := time.Now()
	for range 20 {
		if _, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{}))); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("20 sign-ins beside a provider that stalls took %s", time.Since(began))
	if held, _ := w.Calls.Load(); held > most {
		t.Errorf("%d slots are held by a provider that stalls", held)
	}
	release()
	if came := testkit.Receive(t, done, "all that stalled are answered"); came["ok"] > 0 {
		t.Error(came)
	}
}
