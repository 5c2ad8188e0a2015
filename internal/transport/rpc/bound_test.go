package rpc

import (
	"context"
	"net/http"
	"strings"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
)

// A token that is bound to a key counts with a proof of the key, in every protocol, and every other without one.
func TestBoundTokensNeedAProof(t *testing.T) {
	type asked struct {
		token, key, proof, method, path string
		reads                           bool
	}
	var last *asked
	l := newLab(t, func(c *Config) {
		c.Authenticate = func(ctx context.Context, token string) (*access.Caller, error) {
			who, bound := strings.CutPrefix(token, "bound-")
			caller, err := lookup(ctx, who)
			if err != nil || !bound {
				return caller, err
			}
			own := *caller
			own.Key = "the-key"
			return &own, nil
		}
		c.Prove = func(_ context.Context, r *http.Request, token, key string, reads bool) (string, error) {
			last = &asked{token, key, r.Header.Get("DPoP"), r.Method, r.URL.Path, reads}
			switch r.Header.Get("DPoP") {
			case "right":
				return "next", nil
			case "stale":
				return "next", errs.New(errs.Unauthenticated, access.NonceNeeded, "stale")
			}
			return "next", errs.New(errs.Unauthenticated, access.InvalidProof, "wrong")
		}
	})
	header := func(authorization, proof string) http.Header {
		h := http.Header{"Authorization": {authorization}}
		if proof != "" {
			h.Set("DPoP", proof)
		}
		return h
	}
	const algorithms = `, algs="ES256 EdDSA PS256"`
	for _, tt := range []struct {
		name             string
		header           http.Header
		reason           errs.Reason // empty: it goes through
		challenge, nonce string
	}{
		{"a bound token with a proof", header("DPoP bound-owner", "right"), "", "", "next"},
		{"the scheme in another case", header("dpop bound-owner", "right"), "", "", "next"},
		{"a proof with a nonce of long ago", header("DPoP bound-owner", "stale"), access.NonceNeeded,
			`DPoP error="use_dpop_nonce"` + algorithms, "next"},
		{"a wrong proof", header("DPoP bound-owner", "wrong"), access.InvalidProof,
			`DPoP error="invalid_dpop_proof"` + algorithms, "next"},
		{"no proof", header("DPoP bound-owner", ""), access.InvalidProof,
			`DPoP error="invalid_dpop_proof"` + algorithms, "next"},
		{"a bound token as every other", header("Bearer bound-owner", ""), access.TokenBound,
			`DPoP error="invalid_token"` + algorithms, ""},
		{"a bound token as every other, with a proof", header("Bearer bound-owner", "right"), access.TokenBound,
			`DPoP error="invalid_token"` + algorithms, ""},
		{"another token as bound", header("DPoP owner", "right"), access.TokenNotBound, "Bearer", ""},
		{"another token with a proof that nobody asked for", header("Bearer owner", "wrong"), "", "", ""},
		{"an unknown token as bound", header("DPoP bound-x", "right"), access.Unauthenticated, "Bearer", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, a := range []ask{getMe, putProfile} {
				l.everywhere(t, a.with(tt.header), func(t *testing.T, o outcome) {
					if o.reason != string(tt.reason) || (tt.reason != "") != (o.code == 16) ||
						o.header.Get("Www-Authenticate") != tt.challenge || o.header.Get("DPoP-Nonce") != tt.nonce {
						t.Errorf("got %d %s, %v", o.code, o.reason, o.header)
					}
				})
				if tt.nonce == "" {
					continue
				}
				if last == nil || last.token != "bound-owner" || last.key != "the-key" || last.reads != (a.verb == "GET") ||
					last.path != a.path && !strings.HasSuffix(last.path, a.procedure) {
					t.Errorf("asked about %+v", last)
				}
			}
		})
		last = nil
	}
	// A stream asks the same of its caller.
	radio, playing := newRadio(t, StreamLimits{})
	playing.play = forever
	radio.handler.config.Authenticate, radio.handler.config.Prove = l.handler.config.Authenticate, l.handler.config.Prove
	for _, tt := range []struct {
		header http.Header
		reason errs.Reason
	}{
		{header("DPoP bound-owner", "right"), ""},
		{header("DPoP bound-owner", "wrong"), access.InvalidProof},
		{header("DPoP bound-owner", ""), access.InvalidProof},
		{header("Bearer bound-owner", ""), access.TokenBound},
		{header("DPoP owner", ""), access.TokenNotBound},
	} {
		o := radio.rest(t, radio.h1, "HEAD", "/v1/events/_stream", "", tt.header)
		want := http.StatusUnauthorized
		if tt.reason == "" {
			want = http.StatusOK
		}
		if o.http != want {
			t.Errorf("a stream with %v: %d", tt.header, o.http)
		}
		for door, tune := range doors {
			if tt.reason != "" {
				t.Run(door, func(t *testing.T) {
					expectEnd(t, tune(t, radio, &signetv1.StreamEventsRequest{}, tt.header), string(tt.reason))
				})
			}
		}
	}
	off := newLab(t, func(c *Config) {
		c.Authenticate = func(context.Context, string) (*access.Caller, error) {
			return &access.Caller{UserID: "usr_1", OrgID: "org_own", Key: "the-key"}, nil
		}
	})
	if o := off.rest(t, off.h1, "GET", "/v1/users/me", "", header("DPoP x", "right")); o.reason != string(access.TokenBound) {
		t.Errorf("where nobody checks proofs: %d %s", o.code, o.reason)
	}
}
