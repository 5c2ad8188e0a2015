package grant

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant/assertion"
)

// How far an assertion's times may be from now.
const (
	maxAssertionLife = time.Hour
	clockSkew        = time.Minute
	maxAssertionID   = 255 // bytes
)

// verify judges an assertion of somebody: signed by one of their keys with an algorithm of that key, about themselves,
// meant for us, short-lived, and used for the first time, which its id tells. Errors: refused.
func (g *Grants) verify(ctx context.Context, a *assertion.Assertion, id string, keys []jose.JSONWebKey, refused *errs.Error) error {
	if !a.SignedBy(keys, app.MaxKeys) { // an application may publish more, and each costs up to some milliseconds
		return refused
	}
	now := g.Clock()
	switch {
	case a.Issuer != id || a.Subject != id,
		!a.Audience.Contains(g.Issuer) && !a.Audience.Contains(g.TokenEndpoint()),
		a.Expiry == nil || !now.Before(a.Expiry.Time()) || a.Expiry.Time().After(now.Add(maxAssertionLife+clockSkew)),
		a.IssuedAt == nil || a.IssuedAt.Time().After(now.Add(clockSkew)) || a.IssuedAt.Time().Before(now.Add(-maxAssertionLife-clockSkew)),
		a.NotBefore != nil && a.NotBefore.Time().After(now.Add(clockSkew)):
		return refused
	}
	// Whoever gets here holds a key: they are told what to mend.
	switch {
	case a.ID == "":
		return refusedFor(refused, "the assertion has no jti: add this claim with a unique identifier")
	case len(a.ID) > maxAssertionID:
		return refusedFor(refused, "the jti of the assertion is too long: it can have at most 255 bytes")
	}
	row := flow("assertion", digest(id+"\x00"+a.ID))
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: id}, Rows: []event.RowKey{row}, Decide: func(tx *event.Tx) error {
		used, err := tx.Row(row)
		if err != nil {
			return err
		}
		if used != nil {
			return refusedFor(refused, "the assertion has already been used: make a new one with another jti for every request")
		}
		tx.PutRow(event.Row{RowKey: row, Expires: event.Micros(a.Expiry.Time().Add(clockSkew))})
		return nil
	}})
}

// refusedFor is the same refusal with other words.
func refusedFor(refused *errs.Error, message string) *errs.Error {
	return errs.New(refused.Kind, refused.Reason, message)
}
