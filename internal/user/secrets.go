package user

import (
	"context"
	"crypto/subtle"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
)

// SecretNotFound is the reason of ErrSecretNotFound.
const SecretNotFound errs.Reason = "SECRET_NOT_FOUND"

// ErrSecretNotFound: there is no secret to remove.
var ErrSecretNotFound = errs.New(errs.NotFound, SecretNotFound, "this service user has no secret")

// SecretRow is where the hash of a service user's secret lives.
func SecretRow(id string) event.RowKey { return event.SecretOf(id) }

// PlacesRow is where it is kept from where a user has signed in, as MACs.
func PlacesRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/sign_in_places"}
}

// SecretRows are all rows that may hold a secret of a user: they go when the user goes.
func SecretRows(id string) []event.RowKey {
	return []event.RowKey{PasswordRow(id), SecretRow(id), CodeRow(id, ByEmail), CodeRow(id, ByPhone), ResetRow(id), PlacesRow(id), FactorsRow(id), BeforeRow(id)}
}

// SecretSet records that a service user got a new secret. The hash itself is a secret, not a fact.
type SecretSet struct{}

// EventType implements event.Fact.
func (SecretSet) EventType() event.Type { return "user.secret_set.v1" }

// Apply implements event.Fact.
func (SecretSet) Apply(u *User) {
	if u.Service != nil {
		u.Service.HasSecret = true
	}
}

// SecretRemoved records that a service user has no secret any more.
type SecretRemoved struct{}

// EventType implements event.Fact.
func (SecretRemoved) EventType() event.Type { return "user.secret_removed.v1" }

// Apply implements event.Fact.
func (SecretRemoved) Apply(u *User) {
	if u.Service != nil {
		u.Service.HasSecret = false
	}
}

// SetSecret makes a new secret for a service user of the permit's organization, in place of an earlier one. It is
// shown this once: only its hash is kept, and a fast one is enough for what cannot be guessed. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotService; Aborted when match does not hold.
func SetSecret(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, string, error) {
	text, hash := secret.NewToken(secret.Client)
	details, err := Covered(permit, id).And(MustBeService).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		tx.PutRow(event.Row{RowKey: SecretRow(id), Value: hash})
		return u.Append(SecretSet{})
	})
	if err != nil {
		return event.Details{}, "", err
	}
	return details, text, nil
}

// RemoveSecret takes the secret of a service user away. Errors: as SetSecret, and ErrSecretNotFound.
func RemoveSecret(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return Covered(permit, id).And(MustBeService).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		if !u.Data.Service.HasSecret {
			return ErrSecretNotFound
		}
		tx.DropRow(SecretRow(id))
		return u.Append(SecretRemoved{})
	})
}

// SecretMatches tells whether text is the secret of a service user who may use it: an active one. stored is what
// SecretRow leads to, nil where there is nothing. How long it takes says nothing about what is stored.
func SecretMatches(u *User, stored *event.Row, text string) bool {
	kind, hash, ok := secret.ParseToken(text)
	if !ok || kind != secret.Client {
		return false
	}
	want := make([]byte, len(hash))
	if stored != nil {
		want = stored.Value
	}
	same := subtle.ConstantTimeCompare(want, hash) == 1
	return same && u != nil && u.State == Active && u.Service != nil && u.Service.HasSecret
}
