package oauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Tokens is what an application is given. The texts are shown this once.
type Tokens struct {
	Access  string
	Life    time.Duration // of the access token
	Refresh string        // empty: none
	Scopes  []string      // of the access token
	IDToken string        // empty: none
	Key     string        // thumbprint of the key that the access token is bound to; empty: none
	Issued  int64

	stored           event.Token
	claims, idClaims claimset.Set // of a trial, with their reasons
}

// prepare makes an access token and an ID token for an application, to be given by a command that finds the terms to
// hold. What it is not approved for, or not any more, is left out.
func (g *Grants) prepare(ctx context.Context, asking *Client, t *terms, scopes []string) (*Tokens, error) {
	client := asking.App
	_, scopes, err := g.meantFor(ctx, client.ID, client.Org, scopes)
	if err != nil {
		return nil, err
	}
	now := g.now()
	life := seconds(client.Data.AccessTokenSeconds)
	if t.trial {
		life = trial.TokenLife
	}
	made := &Tokens{Life: life, Scopes: scopes, Issued: now, Key: asking.Key.print()}
	aud := g.narrowed(t.Audience, scopes)
	made.stored = event.Token{
		ID:       event.NewID("oat"),
		Kind:     string(secret.Access),
		UserID:   t.UserID,
		Epoch:    t.TokenEpoch,
		OrgEpoch: t.OrgEpoch,
		Created:  now,
		Expires:  now + life.Microseconds(),
		Client:   t.Client,
		Family:   t.Family,
		Provider: t.Proof.Upstream.Of(),
		Data: session.Given{
			Scopes:         scopes,
			Audience:       aud,
			ClientEpoch:    t.ClientEpoch,
			ClientOrgEpoch: t.ClientOrgEpoch,
			APIEpoch:       t.APIEpoch,
			Proof:          t.Proof,
			Key:            made.Key,
			Basis:          session.Basis{Bound: t.BoundTo(t.Scopes, t.OrgID), Place: t.Place, Told: t.Told},
		}.Text(),
	}
	if !t.offline() {
		made.stored.Session = t.Session
	}
	w, err := g.whose(ctx, client, t)
	if err != nil {
		return nil, err
	}
	if client.Data.TokenFormat != app.JWT {
		made.Access, made.stored.Hash = secret.NewToken(secret.Access)
	} else if err := g.sign(ctx, client, w, t, aud, made); err != nil {
		return nil, err
	}
	made.IDToken, err = g.idToken(ctx, client, w, t, made)
	return made, err
}

// sign makes the access token a JWT.
func (g *Grants) sign(ctx context.Context, client *event.Object[app.App], w *whom, t *terms, aud []string,
	made *Tokens) error {
	claims, always := claimset.New(t.trial), claimset.Why{Source: claimset.Always}
	for name, value := range map[string]any{
		"iss":       g.Issuer,
		"sub":       t.UserID,
		"client_id": t.Client,
		"jti":       made.stored.ID,
		"iat":       unix(made.Issued),
		"scope":     strings.Join(made.Scopes, " "),
	} {
		claims.Put(name, value, always)
	}
	t.put(claims, "aud", aud, trial.Audience)
	t.put(claims, "exp", unix(made.Issued+seconds(client.Data.AccessTokenSeconds).Microseconds()),
		unix(made.stored.Expires))
	if made.Key != "" {
		claims.Put("cnf", confirmation(made.Key), always)
	}
	claims.AddProof(t.Proof)
	readers, err := g.readers(ctx, aud)
	if err != nil {
		return err
	}
	orgs, together := []string{client.Org}, true
	for _, a := range readers {
		orgs, together = append(orgs, a.Org),
			together && claimset.SameProject(a, client.Org, client.Data.RoleSettings.Project)
	}
	claims.AddOrganization(w.user, w.org, made.Scopes, orgs...)
	var held project.Held
	mapped := claimset.Withheld(client.Data.ClaimMappings, app.InAccessToken)
	if together {
		mappings := client.Data.ClaimMappings
		if held = w.held; len(readers) > 0 {
			held.Metadata, mappings = nil, claimset.Shared(mappings) // each application has its own list of keys
		}
		mapped = claimset.Map(mappings, app.InAccessToken, w.subject(made.Scopes))
	}
	claimset.AddRolesToToken(claims, held, mapped)
	claimset.WithholdRoles(claims, w.held, held)
	made.claims = claims
	if made.Access, err = g.Signer.Sign(ctx, client.Data.SigningAlgorithm, t.typ("at+jwt"), claims.Values); err != nil {
		return fmt.Errorf("sign an access token: %w", err)
	}
	sum := sha256.Sum256([]byte(made.Access))
	made.stored.Hash = sum[:]
	return nil
}

// readers lists the applications besides the client that a token is meant for, which everybody can read.
func (g *Grants) readers(ctx context.Context, aud []string) ([]*event.Object[app.App], error) {
	var apps []*event.Object[app.App]
	for _, id := range aud[1:] {
		if id == g.Issuer {
			continue
		}
		a, err := app.Kind.Read(ctx, g.Store, id)
		if err != nil {
			return nil, err
		}
		if a != nil {
			apps = append(apps, a)
		}
	}
	return apps, nil
}

// narrowed leaves out of an audience what it got by scopes that are not among these.
func (g *Grants) narrowed(aud, scopes []string) []string {
	api := slices.ContainsFunc(scopes, access.IsAPIScope)
	var kept []string
	for i, a := range aud {
		if i == 0 || a == g.Issuer && api || slices.Contains(scopes, audience+a+":aud") {
			kept = append(kept, a)
		}
	}
	return kept
}

// Introspect tells a client about an access token: only about one that it was given, or that is meant for it. Nil: it
// does not count, or is none of the client's business. authenticate tells which client asks; the token is read
// meanwhile. Errors: those of authenticate.
func (g *Grants) Introspect(ctx context.Context, text string,
	authenticate func() (*Client, error)) (*session.Bearer, error) {
	var b *session.Bearer
	var reading errgroup.Group
	reading.Go(func() (err error) {
		b, err = g.Bearer(ctx, text)
		return err
	})
	client, err := authenticate()
	if err != nil {
		return nil, err
	}
	if err := reading.Wait(); err != nil || b == nil {
		return nil, err
	}
	if !client.reads(b) {
		return nil, nil
	}
	return b, nil
}

// Bearer reads an access token that counts; nil where it does not, or is something else.
func (g *Grants) Bearer(ctx context.Context, text string) (*session.Bearer, error) {
	b, err := g.Sessions.Bearer(ctx, text)
	if errors.Is(err, access.ErrUnauthenticated) {
		return nil, nil
	}
	if err != nil || b.Token.Kind != string(secret.Access) {
		return nil, err
	}
	return b, nil
}

// Revoke ends an access token of the client, or a refresh token with all that belongs to it. What is unknown, or not
// the client's, is left alone: it is not an error.
func (g *Grants) Revoke(ctx context.Context, client *Client, text string) error {
	found, _, err := g.familyOf(ctx, client, text)
	if err != nil && !errors.Is(err, ErrInvalidGrant) {
		return err
	}
	if found != nil {
		row := families.Key(found.Family)
		return g.Store.Do(ctx, event.Command{
			Origin: event.Origin{Actor: found.UserID},
			Rows:   []event.RowKey{row},
			Decide: func(tx *event.Tx) error {
				if _, err := tx.Row(row); err != nil {
					return err
				}
				tx.DropRow(row)
				tx.DropFamily(found.Family)
				return nil
			},
		})
	}
	if kind, _, ok := secret.ParseToken(text); ok && kind != secret.Access {
		return nil
	}
	sum := sha256.Sum256([]byte(text))
	b, err := g.Store.AppTokenContext(ctx, sum[:])
	if err != nil || b == nil || b.Token.Kind != string(secret.Access) || !client.owns(&b.Token) {
		return err
	}
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: b.Token.UserID}, Decide: func(tx *event.Tx) error {
		tx.DropToken(b.Token.ID)
		return nil
	}})
}
