package oauth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/trial"
)

const idTokenLife = time.Hour

// IDTokenType is the type of ID tokens, as their header has it.
const IDTokenType = "JWT"

// idToken tells an application who signed in; empty where it did not ask. made has everything else.
func (g *Grants) idToken(ctx context.Context, client *event.Object[app.App], w *whom, t *terms,
	made *Tokens) (string, error) {
	if !slices.Contains(made.Scopes, claimset.OpenID) {
		return "", nil
	}
	claims, always := claimset.New(t.trial), claimset.Why{Source: claimset.Always}
	for name, value := range map[string]any{"iss": g.Issuer, "sub": t.UserID, "iat": unix(made.Issued),
		"sid": t.Session, "at_hash": claimset.HalfHash(made.Access)} {
		claims.Put(name, value, always)
	}
	t.put(claims, "aud", client.ID, trial.Audience)
	t.put(claims, "azp", client.ID, trial.Audience)
	t.put(claims, "exp", unix(made.Issued+idTokenLife.Microseconds()), unix(made.Issued+trial.TokenLife.Microseconds()))
	if t.Nonce != "" {
		claims.Put("nonce", t.Nonce, claimset.Why{Source: claimset.Request, Of: "nonce"})
	} else {
		claims.Lacks(claimset.Missing{Lack: claimset.NotAsked, Of: "nonce"}, "nonce")
	}
	claims.AddProof(t.Proof)
	person := claimset.New(t.trial)
	person.AddPerson(w.user, w.org, made.Scopes, client.Org)
	claims.Take(person, inIDToken(&client.Data, t.Claims))
	claimset.AddRolesToToken(claims, w.held,
		claimset.Map(client.Data.ClaimMappings, app.InIDToken, w.subject(made.Scopes)))
	made.idClaims = claims
	token, err := g.Signer.Sign(ctx, client.Data.SigningAlgorithm, t.typ(IDTokenType), claims.Values)
	if err != nil {
		return "", fmt.Errorf("sign an ID token: %w", err)
	}
	return token, nil
}

// inIDToken tells whether a claim about a person, which the scopes allow, is in an application's ID tokens, and why.
func inIDToken(client *app.App, asked []string) func(string, claimset.Why) (claimset.Why, *claimset.Missing) {
	return func(name string, why claimset.Why) (claimset.Why, *claimset.Missing) {
		switch {
		case client.IDTokenClaims == app.ScopeClaims, name == claimset.OrgScope,
			name == claimset.RolesScope, name == "sub":
			return why, nil
		case slices.Contains(asked, name):
			return claimset.Why{Source: claimset.Request, Of: "claims"}, nil
		}
		return why, &claimset.Missing{Lack: claimset.NotSet, Of: "idTokenClaims"}
	}
}
