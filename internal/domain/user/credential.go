// Credentials of service users: a secret and public keys.

package user

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxKeys is how many keys a service user may have. Those that have expired go when another one comes.
const MaxKeys = 20

// Reasons of a service user's keys.
const (
	KeyNotFound errs.Reason = "KEY_NOT_FOUND"
	KeyExists   errs.Reason = "KEY_EXISTS"
	TooManyKeys errs.Reason = "TOO_MANY_KEYS"
)

// Errors that the rules of keys refuse with.
var (
	ErrKeyNotFound = errs.New(errs.NotFound, KeyNotFound, "this service user has no key with this identifier")
	ErrKeyExists   = errs.New(errs.AlreadyExists, KeyExists,
		"this service user already has this key: to change its expiry, remove it first")
	ErrTooManyKeys = errs.New(errs.FailedPrecondition, TooManyKeys,
		"this service user already has 20 keys: remove one that is no longer needed")
)

// SecretNotFound is the reason of ErrSecretNotFound.
const SecretNotFound errs.Reason = "SECRET_NOT_FOUND"

// ErrSecretNotFound: there is no secret to remove.
var ErrSecretNotFound = errs.New(errs.NotFound, SecretNotFound, "this service user has no secret")

// NewKey is a key to add.
type NewKey struct {
	PublicKey string     // PEM
	Expires   *time.Time // nil: never
}

// Violations lists what is wrong with it at a moment, in the names of the API.
func (n NewKey) Violations(now time.Time) []errs.Violation {
	var wrong errs.Violations
	_, problem := syntax.PublicKey(n.PublicKey)
	wrong.Add("publicKey", problem)
	if n.Expires != nil && event.Micros(*n.Expires) <= event.Micros(now) {
		wrong = append(wrong, errs.Violation{Field: "expirationDate",
			Message: "must be in the future, or be left out for a key that does not expire"})
	}
	return wrong
}

// AddKey adds a public key to a service user of the permit's organization, and takes away those that have expired.
// Errors: ErrNotFound; access.ErrTargetHoldsMore; ErrNotService; InvalidArgument with the violations of n at that
// moment; ErrTooManyKeys; ErrKeyExists; Aborted when match does not hold.
func AddKey(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	n NewKey) (details event.Details, keyID string, err error) {
	form, _ := syntax.PublicKey(n.PublicKey)
	keyID = event.NewID("pky")
	details, err = GivesAccess(permit, id).And(MustBeService).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[User]) error {
			if wrong := n.Violations(event.Time(tx.Now())); len(wrong) > 0 {
				return errs.Invalid(wrong...)
			}
			var facts []event.Fact[User]
			var live []Key
			for _, k := range u.Data.Service.Keys {
				if k.Expires == 0 || tx.Now() < k.Expires {
					live = append(live, k)
				} else {
					facts = append(facts, KeyRemoved{KeyID: k.ID})
				}
			}
			if len(live) >= MaxKeys {
				return ErrTooManyKeys
			}
			if slices.ContainsFunc(live, func(k Key) bool { return k.PublicKey == form }) {
				return ErrKeyExists
			}
			fact := KeyAdded{KeyID: keyID, PublicKey: form, Created: tx.Now()}
			if n.Expires != nil {
				fact.Expires = event.Micros(*n.Expires)
			}
			return u.Append(append(facts, fact)...)
		})
	return details, keyID, err
}

// RemoveKey takes a key away from a service user. Errors: as AddKey, and ErrKeyNotFound.
func RemoveKey(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	keyID string) (event.Details, error) {
	return TakesAway(permit, id).And(MustBeService).Change(ctx, s, match,
		func(_ *event.Tx, u *event.Object[User]) error {
			if !slices.ContainsFunc(u.Data.Service.Keys, func(k Key) bool { return k.ID == keyID }) {
				return ErrKeyNotFound
			}
			return u.Append(KeyRemoved{KeyID: keyID})
		})
}

// SetSecret makes a new secret for a service user of the permit's organization, in place of an earlier one. It is
// shown this once: only its hash is kept, and a fast one is enough for what cannot be guessed. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotService; Aborted when match does not hold.
func SetSecret(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, string, error) {
	text, hash := secret.NewToken(secret.Client)
	details, err := GivesAccess(permit, id).And(MustBeService).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[User]) error {
			tx.PutRow(event.Row{RowKey: SecretRow(id), Value: hash})
			return u.Append(SecretSet{})
		})
	if err != nil {
		return event.Details{}, "", err
	}
	return details, text, nil
}

// RemoveSecret takes the secret of a service user away. Errors: as SetSecret, and ErrSecretNotFound.
func RemoveSecret(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return TakesAway(permit, id).And(MustBeService).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[User]) error {
			if !u.Data.Service.HasSecret {
				return ErrSecretNotFound
			}
			tx.DropRow(SecretRow(id))
			return u.Append(SecretRemoved{})
		})
}

// SecretMatches tells whether text is the secret of a service user who may use it: an active one. stored is what
// user.SecretRow leads to, nil where there is nothing. How long it takes says nothing about what is stored.
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
