package oauth

import (
	"context"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/assertion"
	"github.com/signet-idm/signet/internal/signin/session"
)

// ClientCredentials gives a service user, which has proven who it is, an access token for itself. Errors:
// ErrUnauthorizedClient for an application: nobody signed in to it.
func (g *Grants) ClientCredentials(ctx context.Context, client *Client, scopes []string) (*Tokens, error) {
	if client.Service == nil {
		return nil, ErrUnauthorizedClient
	}
	return g.serve(ctx, client, scopes)
}

// ByAssertion gives the service user who signed an assertion an access token, or the one of this clientID, if an issuer
// that it trusts has signed it. It is bound to a key where there is one. Errors: ErrInvalidGrant, whatever is wrong with
// the assertion.
func (g *Grants) ByAssertion(ctx context.Context, clientID, text string, scopes []string, key *Key) (*Tokens, error) {
	said, err := assertion.Read(text)
	if err != nil {
		return nil, grantOfService("the assertion cannot be read").Because(err)
	}
	if ofWorkload(clientID, said.Issuer) {
		u, until, err := g.workload(ctx, clientID, text, grantOfService)
		if err != nil {
			return nil, err
		}
		return g.serve(ctx, &Client{Service: u, Key: key, until: until}, scopes)
	}
	u, _, err := g.service(ctx, said.Issuer)
	if err != nil {
		return nil, err
	}
	if err := g.verify(ctx, said, said.Issuer, g.serviceKeys(u), mayLack, serviceRefused(u, grantOfService)); err != nil {
		return nil, err
	}
	if text, _ := said.Scope.(string); len(scopes) == 0 {
		scopes = strings.Fields(text)
	}
	return g.serve(ctx, &Client{Service: u, Key: key}, scopes)
}

// serve makes an access token of a service user. It can do with Signet's API what its scopes and the user's roles
// allow, and it gets every scope that is asked for: nobody else acts with it. It lives no longer than the assertion of an
// outside issuer that was shown for it.
func (g *Grants) serve(ctx context.Context, client *Client, asked []string) (*Tokens, error) {
	u := client.Service
	if len(asked) > maxScopes {
		return nil, ErrInvalidScope
	}
	aud, scopes, err := g.meantFor(ctx, u.ID, u.Org, askable(asked, access.APIScopeNames, false))
	if err != nil {
		return nil, err
	}
	text, hash := secret.NewToken(secret.Access)
	made := &Tokens{Access: text, Life: serviceLife, Scopes: scopes, Key: client.Key.print()}
	err = g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: u.ID},
		Read:   []event.Ref{user.Kind.Ref(u.ID), org.Kind.Ref(u.Org)},
		Rows:   client.Key.rows(),
		Decide: func(tx *event.Tx) error {
			now, err := user.Kind.Get(tx, u.ID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, u.Org)
			if err != nil {
				return err
			}
			if now == nil || now.Data.State != user.Active || o == nil || o.Data.State != org.Active {
				return grantOfService("%s, or its organization, has just been deactivated", u.ID)
			}
			if !client.until.IsZero() {
				left := time.Duration(event.Micros(client.until)-tx.Now()) * time.Microsecond
				if made.Life = min(serviceLife, left); left <= 0 {
					return grantOfService("%s sent an assertion that has just expired", u.ID)
				}
			}
			if err := client.Key.use(tx); err != nil {
				return err
			}
			made.Issued = tx.Now()
			tx.PutToken(event.Token{
				ID:       event.NewID("oat"),
				Hash:     hash,
				Kind:     string(secret.Access),
				UserID:   u.ID,
				Epoch:    now.Data.TokenEpoch,
				OrgEpoch: o.Data.Epoch,
				Created:  tx.Now(),
				Expires:  tx.Now() + made.Life.Microseconds(),
				Data:     session.Given{Scopes: scopes, Audience: aud, Key: made.Key}.Text(),
			})
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}
