package upstream

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func TestCheckFindsWhatIsWrong(t *testing.T) {
	type m = map[string]any
	jwt := func(change func(w *world, j *idp.JWT)) func(w *world) *Provider {
		return func(w *world) *Provider {
			p := w.jwt()
			change(w, p.Data.JWT)
			return p
		}
	}
	oidc := func(change func(o *idp.OIDC)) func(w *world) *Provider {
		return func(w *world) *Provider { return w.oidc(change) }
	}
	says := func(metadata m) func(w *world) *Provider {
		return func(w *world) *Provider {
			w.up.metadata = metadata
			return w.oidc(nil)
		}
	}
	answers := func(path string, h http.HandlerFunc) func(w *world) *Provider {
		return func(w *world) *Provider {
			w.up.answers[path] = h
			return w.oidc(nil)
		}
	}
	unknownClient := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		answer(w, m{"error": "invalid_client"})
	}
	for name, c := range map[string]struct {
		p    func(w *world) *Provider
		want []string // checks, with a ? behind a warning
		hint string
	}{
		"a portal": {jwt(func(*world, *idp.JWT) {}), nil, ""},
		"no address of a portal": {jwt(func(_ *world, j *idp.JWT) { j.Endpoint = "portal" }),
			[]string{failure.Configuration}, "https://"},
		"a header that is none": {jwt(func(_ *world, j *idp.JWT) { j.HeaderName = "x y" }),
			[]string{failure.Token}, ""},
		"no issuer of a portal": {jwt(func(_ *world, j *idp.JWT) { j.Issuer = "" }),
			[]string{failure.Issuer}, ""},
		"no key set": {jwt(func(w *world, j *idp.JWT) { j.KeysEndpoint = w.up.URL + "/nothing" }),
			[]string{failure.Keys}, "RFC 7517"},
		"a key set without a key": {jwt(func(w *world, _ *idp.JWT) { w.up.keys = nil }),
			[]string{failure.Keys}, ""},
		"a key set inside": {jwt(func(_ *world, j *idp.JWT) { j.KeysEndpoint = "https://10.0.0.1/keys" }),
			[]string{failure.Keys}, "--outbound-allow"},
		"a key set that is not there": {jwt(func(_ *world, j *idp.JWT) {
			j.KeysEndpoint = "https://signet.invalid/keys"
		}), []string{failure.Keys}, "written"},
		"a key set by ftp": {jwt(func(_ *world, j *idp.JWT) { j.KeysEndpoint = "ftp://x" }),
			[]string{failure.Keys}, "https://"},
		"a clock that is wrong": {jwt(func(w *world, _ *idp.JWT) {
			w.up.now = func() time.Time { return w.s.Now().Add(2 * time.Minute) }
		}), []string{"clock?"}, "NTP"},
		"a certificate of another": {jwt(func(w *world, j *idp.JWT) {
			j.KeysEndpoint = strings.Replace(w.up.URL, "127.0.0.1", "localhost", 1) + "/keys"
		}), []string{failure.Keys}, "certificate"},
		"OpenID Connect": {oidc(nil), nil, ""},
		"another issuer": {says(m{"issuer": "https://other.example"}), []string{failure.Issuer},
			"to the letter"},
		"a slash more": {func(w *world) *Provider {
			w.up.metadata = m{"issuer": w.up.URL + "/"}
			return w.oidc(nil)
		}, []string{failure.Issuer}, "slash"},
		"an issuer that is none": {oidc(func(o *idp.OIDC) { o.Issuer = "corp" }), []string{failure.Issuer}, ""},
		"no metadata":            {answers(wellKnown, http.NotFound), []string{failure.Discovery}, wellKnown},
		"metadata that is moved": {answers(wellKnown,
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/moved", http.StatusFound) }),
			[]string{"redirect?", failure.Discovery}, ""},
		"metadata that leads inside": {answers(wellKnown, toLoopback), []string{"redirect?", failure.Discovery},
			"--outbound-allow"},
		"huge metadata": {answers(wellKnown,
			func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxAnswer+1)) }),
			[]string{failure.Discovery}, ""},
		"no authorization endpoint": {says(m{"authorization_endpoint": nil}), []string{failure.Configuration}, ""},
		"a token endpoint inside": {says(m{"token_endpoint": "https://10.0.0.1/"}), []string{failure.Address},
			"--outbound-allow"},
		"a userinfo endpoint inside": {says(m{"userinfo_endpoint": "https://10.0.0.1/"}), []string{failure.Address},
			"--outbound-allow"},
		"no key set in the metadata": {says(m{"jwks_uri": nil}), []string{failure.Keys}, ""},
		"no algorithm of ours": {says(m{"id_token_signing_alg_values_supported": []string{"HS256", "none"}}),
			[]string{failure.Algorithm}, "RS256"},
		"no key of its algorithm": {func(w *world) *Provider {
			w.up.keys = w.up.keys[:1]
			w.up.metadata = m{"id_token_signing_alg_values_supported": []string{"RS256"}}
			return w.oidc(nil)
		}, []string{failure.Algorithm}, "announces (RS256)"},
		"no usable key": {answers("/keys",
			func(w http.ResponseWriter, _ *http.Request) { answer(w, m{"keys": []m{{"kty": "oct", "k": "AAAA"}}}) }),
			[]string{failure.Keys}, "Ed25519"},
		"a public client that nobody speaks of": {func(w *world) *Provider {
			w.up.metadata = m{"token_endpoint_auth_methods_supported": []string{"client_secret_basic",
				"client_secret_post"}}
			return w.oidc(func(o *idp.OIDC) { o.HasClientSecret = false })
		}, []string{failure.Client + "?"}, "public client"},
		"a secret that is missing": {func(w *world) *Provider {
			w.up.metadata = m{"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}}
			w.up.answers["/token"] = unknownClient
			return w.oidc(func(o *idp.OIDC) { o.ClientID, o.HasClientSecret = "later", false })
		}, []string{failure.Client}, "no client secret is set, and the provider requires one"},
		"a public client that there is not": {func(w *world) *Provider {
			w.up.metadata = m{"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "none"}}
			w.up.answers["/token"] = unknownClient
			return w.oidc(func(o *idp.OIDC) { o.HasClientSecret = false })
		}, []string{failure.Client}, "does not accept the client id without a client secret"},
		"no PKCE": {says(m{"code_challenge_methods_supported": nil}), []string{"pkce?"}, ""},
		"a secret in the body only": {says(m{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}),
			[]string{failure.Client}, "client authentication"},
		"ways that are not told": {oidc(func(o *idp.OIDC) { o.ClientAuth = idp.SecretInBody }), nil, ""},
		"no form": {func(w *world) *Provider {
			w.up.metadata = m{"response_modes_supported": []string{"query"}}
			return w.oidc(func(o *idp.OIDC) { o.FormPost = true })
		}, []string{"response_mode"}, "formPost"},
		"a secret that is wrong": {answers("/token", unknownClient), []string{failure.Client}, "id or secret"},
		"a token endpoint that breaks": {answers("/token",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), []string{failure.Unreachable}, ""},
		"a secret that is gone": {func(w *world) *Provider { p := w.oidc(nil); w.dropSecret(); return p },
			[]string{failure.Client}, "again"},
		"tenants of nobody": {oidc(func(o *idp.OIDC) { o.Tenants = []string{"x"} }),
			[]string{failure.Tenant}, ""},
		"Apple without its key": {oidc(func(o *idp.OIDC) {
			o.Preset, o.TeamID, o.KeyID = idp.ApplePreset, "T", "K"
		}), []string{failure.Client}, ".p8"},
		"Apple without its ids": {func(w *world) *Provider {
			p := w.oidc(func(o *idp.OIDC) { o.Preset = idp.ApplePreset })
			w.secret(appleP8(t, other))
			return p
		}, []string{failure.Client}, "ten"},
		"OAuth": {func(w *world) *Provider { return w.oauth() }, nil, ""},
		"OAuth without an endpoint": {func(w *world) *Provider {
			p := w.oauth()
			p.Data.OAuth.UserEndpoint = ""
			return p
		}, []string{failure.UserInfo}, ""},
		"nothing": {func(*world) *Provider { return provider(idp.Provider{}) },
			[]string{failure.Configuration}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := c.p(w)
			p.Data.Changer = nil // it is checked before anybody answers for it
			problems := w.Check(t.Context(), p)
			got, hints := []string{}, ""
			for _, found := range problems {
				check := found.Check
				if found.Warning {
					check += "?"
				}
				got = append(got, check)
				hints += found.Message + " " + found.Hint + "\n"
				if found.Message == "" || found.Hint == "" || strings.Contains(hints, "our secret") ||
					strings.Contains(hints, "127.0.0.2") {
					t.Errorf("got %+v", found)
				}
			}
			if !slices.Equal(got, append([]string{}, c.want...)) || !strings.Contains(hints, c.hint) {
				t.Errorf("got %q, want %q; hints:\n%s", got, c.want, hints)
			}
		})
	}
}

// TestCheckSeesTheProviderAsItIs: not as it was when somebody signed in.
func TestCheckSeesTheProviderAsItIs(t *testing.T) {
	w := newWorld(t)
	p := w.jwt()
	if _, err := w.Finish(t.Context(), p, carrying(w.start(p, Attempt{}), w.token(nil))); err != nil {
		t.Fatal(err)
	}
	w.up.set(func(u *upstream) { u.keys = []jose.JSONWebKey{} })
	if found := w.Check(t.Context(), p); len(found) != 1 {
		t.Errorf("got %v", found)
	}
}
