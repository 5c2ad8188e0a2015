package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant"
)

// How long what is signed counts.
const (
	idTokenLife     = time.Hour
	logoutTokenLife = 2 * time.Minute
)

const idTokenType = "JWT"

func has(scopes []string, scope string) bool { return slices.Contains(scopes, scope) }

// idToken tells an application who signed in; empty where it did not ask.
func (p *Provider) idToken(ctx context.Context, a *event.Object[app.App], t *grant.Tokens) (string, error) {
	if !has(t.Scopes, grant.OpenID) {
		return "", nil
	}
	issued := event.Time(t.Issued)
	claims := map[string]any{"iss": p.issuer, "sub": t.UserID, "aud": a.ID, "azp": a.ID, "iat": issued.Unix(), "exp": issued.Add(idTokenLife).Unix(),
		"sid": t.SessionID, "at_hash": halfHash(t.Access)}
	if t.Nonce != "" {
		claims["nonce"] = t.Nonce
	}
	grant.AddProof(claims, t.Proof)
	about, err := p.grants.Claims(ctx, t.UserID, a.Org, both(t.Scopes, grant.OrgScope, grant.RolesScope))
	if err != nil {
		return "", err
	}
	for name, value := range about {
		claims[name] = value
	}
	token, err := p.config.Keys.Sign(ctx, a.State.SigningAlgorithm, idTokenType, claims)
	if err != nil {
		return "", fmt.Errorf("sign an ID token: %w", err)
	}
	return token, nil
}

func both(scopes []string, among ...string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(among, s) })
}

// halfHash is what an ID token says about the access token beside it. ES256 and RS256 both mean SHA-256.
func halfHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}

// LogoutToken tells an application that a session has ended (OpenID Connect Back-Channel Logout).
func (p *Provider) LogoutToken(ctx context.Context, a *event.Object[app.App], sessionID, userID string) (string, error) {
	now := p.grants.Clock()
	return p.config.Keys.Sign(ctx, a.State.SigningAlgorithm, "logout+jwt", map[string]any{
		"iss": p.issuer, "aud": a.ID, "sub": userID, "sid": sessionID, "iat": now.Unix(), "exp": now.Add(logoutTokenLife).Unix(), "jti": event.NewID("lgo"),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	})
}
