//go:build cost

package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/assertion"
	"github.com/signet-idm/signet/test/costtest"
)

// Everything here is read before anybody knows who sends it.
func TestNothingThatAStrangerSendsCostsMuchToRead(t *testing.T) {
	const form = 64 << 10 // of the endpoints
	w := newWorld(t)
	ctx := call.With(t.Context(), &call.Info{Peer: home})
	spa := &w.client("app_spa").App.Data
	for i := range user.MaxWorkloadRules {
		w.trust(fmt.Sprint("wlr_", i), func(r *user.Workload) {
			r.Claims = []user.WorkloadClaim{{Name: "sub", Value: strings.Repeat("*:", 249) + "x"}}
		})
	}
	for name, read := range map[string]func(text string){
		"a scope of a sign-in":    func(s string) { _, _ = w.Begin(ctx, ask("app_spa", s)) },
		"the domain of a sign-in": func(s string) { _, _ = w.Begin(ctx, ask("app_spa", orgByDomain+s)) },
		"the domains of a sign-in": func(s string) {
			_, _ = w.Begin(ctx, ask("app_spa", strings.Repeat(orgByDomain+s[:min(len(s), 600)]+" ", maxScopes)))
		},
		"the domain of a device": func(s string) {
			_, _ = w.BeginDevice(ctx, w.client("app_tv"), strings.Fields(orgByDomain+s))
		},
		"an assertion": func(s string) { _, _ = assertion.Read(s) },
		"a header of an assertion": func(s string) {
			_, _ = assertion.Read(base64.RawURLEncoding.EncodeToString([]byte(s)) + ".e30.AAAA")
		},
		"the claims of an assertion": func(s string) {
			_, _ = assertion.Read("eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(s)) + ".AAAA")
		},
		"the claims of a workload": func(s string) {
			claims := w.of()
			claims["sub"] = strings.Repeat("a:", min(len(s), 5000)/2) + s[:min(len(s), 500)]
			text, _ := json.Marshal(claims)
			_, _ = w.ByAssertion(ctx, "usr_robot",
				"eyJhbGciOiJFUzI1NiJ9."+base64.RawURLEncoding.EncodeToString(text)+".AAAA", nil, nil)
		},
		"a client": func(s string) {
			_, _ = w.Authenticate(ctx, Credentials{Method: app.SecretPost, ClientID: s, Secret: s})
		},
		"a user code":    func(s string) { _ = CanonicalUserCode(s) },
		"a redirect URI": func(s string) { app.RedirectAllowed(spa, s) },
		"languages":      func(s string) { request.Locales(strings.Fields(s)) },
		"other parameters": func(s string) {
			a := ask("app_spa", "openid")
			a.Prompt, a.MaxAge, a.CodeChallenge = s, s, s
			_, _ = w.Begin(ctx, a)
		},
		"claims": func(s string) {
			a := ask("app_spa", "openid")
			a.Claims = `{"id_token":{"` + s
			_, _ = w.Begin(ctx, a)
		},
		"a state": func(s string) { _, _ = withState("https://example.org/?"+url.QueryEscape(s), s) },
		"a code": func(s string) {
			_, _ = w.Exchange(context.Background(), w.client("app_spa"), Code{Text: s, RedirectURI: s, Verifier: s})
		},
	} {
		t.Run(name, func(t *testing.T) { costtest.Bounded(t, form, read) })
	}
}
