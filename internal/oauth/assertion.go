package oauth

import (
	"context"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/assertion"
)

// How far an assertion's times may be from now.
const (
	maxAssertionLife = time.Hour
	clockSkew        = time.Minute
	maxAssertionID   = 255 // bytes
)

// againWithin is how long after its first use an assertion without an identifier can be sent again. Two requests of one
// client in the same second carry the same assertion where the algorithm is deterministic, and libraries that send no
// jti also retry with it.
const againWithin = time.Minute

// identified tells whether an assertion needs an identifier of its own (jti).
type identified bool

const (
	needsID identified = true  // client assertions
	mayLack identified = false // the JWT bearer grant, where RFC 7523 makes it optional
)

// verify judges an assertion of somebody: signed by one of their keys with an algorithm of that key, about themselves,
// meant for us, short-lived, and used for the first time. Its jti tells that, or what is signed where there is none.
// Errors: those that refused makes of what the log says about them.
func (g *Grants) verify(ctx context.Context, a *assertion.Assertion, id string, keys []jose.JSONWebKey, ids identified,
	refused func(why string) *errs.Error) error {
	if !a.SignedBy(keys, app.MaxKeys) { // an application may publish more, and each costs up to some milliseconds
		return refused("is not signed with one of its keys")
	}
	now := g.Clock()
	switch {
	case a.Issuer != id || a.Subject != id:
		return refused("does not have its identifier as iss and sub")
	case !a.Audience.Contains(g.Issuer) && !a.Audience.Contains(g.TokenEndpoint()) &&
		!a.Audience.Contains(g.PushEndpoint()):
		return refused("is not meant for this server: aud must be the issuer or the token endpoint")
	case a.Expiry == nil || !now.Before(a.Expiry.Time()) || a.Expiry.Time().After(now.Add(maxAssertionLife+clockSkew)):
		return refused("has expired, has no exp, or one more than an hour away")
	case a.IssuedAt == nil || a.IssuedAt.Time().After(now.Add(clockSkew)) ||
		a.IssuedAt.Time().Before(now.Add(-maxAssertionLife-clockSkew)):
		return refused("has no iat, or one in the future or more than an hour ago")
	case a.NotBefore != nil && a.NotBefore.Time().After(now.Add(clockSkew)):
		return refused("is not valid yet: nbf")
	}
	// The client has signed with one of its keys, so the error may say what to mend.
	switch {
	case a.ID == "" && ids == needsID:
		return refusedFor(refused("has no jti"), "the assertion has no jti: add this claim with a unique identifier")
	case len(a.ID) > maxAssertionID:
		return refusedFor(refused("has a jti that is too long"), "the jti of the assertion is too long: it can have at most 255 bytes")
	}
	row, again, hint := usedRow("assertion", id, a.ID), time.Duration(0), "with another jti for every request"
	if a.ID == "" {
		row, again, hint = usedRow("signed", id, a.Signed()), againWithin, "with a new iat, or add a jti"
	}
	return g.useUp(ctx, id, row, again, a.Expiry.Time(), func() *errs.Error {
		return refusedFor(refused("was already used"), "the assertion has already been used: make a new one "+hint)
	})
}

// useUp remembers the first use of an assertion that expires, and refuses a later one than again after it.
func (g *Grants) useUp(ctx context.Context, id string, row event.RowKey, again time.Duration, expires time.Time,
	used func() *errs.Error) error {
	return g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: id},
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			stored, err := tx.Row(row)
			if err != nil {
				return err
			}
			if stored == nil {
				tx.PutRow(event.Row{RowKey: row, Value: firstUse(tx.Now()),
					Expires: event.Micros(expires.Add(clockSkew))})
				return nil
			}
			if again == 0 || tx.Now()-usedAt(stored.Value) >= again.Microseconds() {
				return used()
			}
			return nil
		},
	})
}

// usedRow remembers the use of an assertion. It is no event.Flow: the version before stores an empty value.
func usedRow(kind, by, what string) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: kind + "/" + secret.Digest(by+"\x00"+what)}
}

// firstUse is what is stored of an assertion: when it was first used.
func firstUse(at int64) []byte { return strconv.AppendInt(nil, at, 10) }

func usedAt(value []byte) int64 {
	at, _ := strconv.ParseInt(string(value), 10, 64) // unreadable: long ago
	return at
}

// refusedFor is the same refusal with other words for the client.
func refusedFor(refused *errs.Error, message string) *errs.Error {
	e := errs.New(refused.Kind, refused.Reason, message).Noting(refused.Note)
	e.Kept = refused.Kept
	return e
}
