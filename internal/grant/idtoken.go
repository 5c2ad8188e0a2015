package grant

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant/told"
)

const idTokenLife = time.Hour

// IDTokenType is the type of ID tokens, as their header has it.
const IDTokenType = "JWT"

// idToken tells an application who signed in; empty where it did not ask. made has everything else.
func (g *Grants) idToken(ctx context.Context, client *event.Object[app.App], w *whom, t *terms, made *Tokens) (string, error) {
	if !slices.Contains(made.Scopes, OpenID) {
		return "", nil
	}
	issued := event.Time(made.Issued)
	claims := map[string]any{"iss": g.Issuer, "sub": t.UserID, "aud": client.ID, "azp": client.ID, "iat": issued.Unix(), "exp": issued.Add(idTokenLife).Unix(),
		"sid": t.Session, "at_hash": halfHash(made.Access)}
	if t.Nonce != "" {
		claims["nonce"] = t.Nonce
	}
	AddProof(claims, t.Proof)
	for name, value := range about(w.user, w.org, made.Scopes, client.Org) {
		if inIDToken(name, &client.Data, t.Claims) {
			claims[name] = value
		}
	}
	told.AddToToken(claims, w.held)
	token, err := g.Signer.Sign(ctx, client.Data.SigningAlgorithm, IDTokenType, claims)
	if err != nil {
		return "", fmt.Errorf("sign an ID token: %w", err)
	}
	return token, nil
}

// inIDToken tells whether a claim about a person, which the scopes allow, is in an application's ID tokens.
func inIDToken(name string, client *app.App, asked []string) bool {
	return client.IDTokenClaims == app.ScopeClaims || name == OrgScope || name == RolesScope || slices.Contains(asked, name)
}

// halfHash is what an ID token says about the access token beside it. ES256 and RS256 both mean SHA-256.
func halfHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}
