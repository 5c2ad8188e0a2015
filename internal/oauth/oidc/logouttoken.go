package oidc

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const logoutTokenLife = 2 * time.Minute

func has(scopes []string, scope string) bool { return slices.Contains(scopes, scope) }

// LogoutToken tells an application that a session has ended (OpenID Connect Back-Channel Logout).
func (p *Provider) LogoutToken(ctx context.Context, a *event.Object[app.App],
	sessionID, userID string) (string, error) {
	now := p.grants.Clock()
	return p.config.Keys.Sign(ctx, a.Data.SigningAlgorithm, "logout+jwt", map[string]any{
		"iss": p.issuer, "aud": a.ID, "sub": userID, "sid": sessionID, "iat": now.Unix(),
		"exp": now.Add(logoutTokenLife).Unix(), "jti": event.NewID("lgo"),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	})
}
