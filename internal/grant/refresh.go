package grant

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
)

// family is what refresh tokens lead to. Each of them is a row that names its family; the family knows which of them is
// the current one.
type family struct {
	terms
	Current string `json:"current"` // digest of the refresh token that counts
}

func familyRow(id string) event.RowKey { return flow("family", id) }

func refreshRow(digest string) event.RowKey { return flow("refresh", digest) }

// refresh is a new refresh token.
type refresh struct {
	text   string
	digest string
	life   time.Duration
}

func newRefresh(client *event.Object[app.App], t *terms) *refresh {
	text, hash := secret.NewToken(secret.Refresh)
	return &refresh{text: text, digest: hex.EncodeToString(hash), life: seconds(client.State.RefreshTokenSeconds)}
}

// put makes the token the current one of its family. Nil puts nothing.
func (r *refresh) put(tx *event.Tx, t *terms) {
	if r == nil {
		return
	}
	put(tx, familyRow(t.Family), &family{terms: *t, Current: r.digest}, r.life)
	put(tx, refreshRow(r.digest), t.Family, r.life)
}

// Refresh gives new tokens for a refresh token, which is replaced. One that was replaced before ends its family, and so does one
// of an application of another organization that the person was never asked about. scopes are those that the new access token is
// for, at most those given at first; none: all of them. Errors: ErrInvalidGrant; ErrInvalidScope; ErrUnauthorizedClient.
func (g *Grants) Refresh(ctx context.Context, client *Client, text string, scopes []string) (*Tokens, error) {
	if err := client.may(app.RefreshToken); err != nil {
		return nil, err
	}
	read, digest, err := g.familyOf(ctx, client, text)
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, ErrInvalidGrant
	}
	if len(scopes) == 0 {
		scopes = read.Scopes
	}
	if !subset(scopes, read.Scopes) {
		return nil, ErrInvalidScope
	}
	t := &read.terms
	made, err := g.prepare(ctx, client.App, t, slices.Clone(scopes))
	if err != nil {
		return nil, err
	}
	next := newRefresh(client.App, t)
	made.Refresh = next.text
	row := familyRow(t.Family)
	var reused bool
	var unasked error
	err = g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: t.UserID}, Read: refs(t.reads()...), Rows: []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			unasked = nil
			now, err := decode[family](tx.Row(row))
			if err != nil {
				return err
			}
			if now == nil {
				return ErrInvalidGrant
			}
			if reused = now.Current != digest; reused {
				return nil
			}
			if err := t.holds(tx); err != nil {
				if !errors.Is(err, errUnasked) {
					return err
				}
				unasked = err
				tx.DropRow(row)
				tx.DropFamily(t.Family)
				return nil
			}
			tx.PutToken(made.stored)
			next.put(tx, t)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	if unasked != nil {
		return nil, unasked
	}
	if reused {
		return nil, g.end(ctx, t, "refresh_token", row)
	}
	return made, nil
}

// familyOf finds the family of a refresh token of a client, also of one that was replaced; nil where there is none.
func (g *Grants) familyOf(ctx context.Context, client *Client, text string) (found *family, digest string, err error) {
	kind, hash, ok := secret.ParseToken(text)
	if !ok || kind != secret.Refresh {
		return nil, "", nil
	}
	digest = hex.EncodeToString(hash)
	id, err := decode[string](g.Store.Row(ctx, refreshRow(digest)))
	if err != nil || id == nil {
		return nil, "", err
	}
	found, err = decode[family](g.Store.Row(ctx, familyRow(*id)))
	if err != nil || found == nil || found.Client != client.ID() {
		return nil, "", err
	}
	return found, digest, nil
}
