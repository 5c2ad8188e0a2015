package user

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/syntax"
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
	ErrKeyExists   = errs.New(errs.AlreadyExists, KeyExists, "this service user already has this key: to change its expiry, remove it first")
	ErrTooManyKeys = errs.New(errs.FailedPrecondition, TooManyKeys, "this service user already has 20 keys: remove one that is no longer needed")
)

// Key is a public key that a service user proves itself with.
type Key struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"` // canonical PEM
	Created   int64  `json:"created"`
	Expires   int64  `json:"expires,omitempty"` // 0: never
}

// KeyAdded records a new key.
type KeyAdded struct {
	KeyID     string `json:"keyId"`
	PublicKey string `json:"publicKey"`
	Created   int64  `json:"created"`
	Expires   int64  `json:"expires,omitempty"`
}

// EventType implements event.Fact.
func (KeyAdded) EventType() event.Type { return "user.key_added.v1" }

// Apply implements event.Fact.
func (e KeyAdded) Apply(u *User) {
	if u.Service != nil {
		u.Service.Keys = append(slices.Clip(u.Service.Keys), Key{ID: e.KeyID, PublicKey: e.PublicKey, Created: e.Created, Expires: e.Expires})
	}
}

// KeyRemoved records that a key does not count any more.
type KeyRemoved struct {
	KeyID string `json:"keyId"`
}

// EventType implements event.Fact.
func (KeyRemoved) EventType() event.Type { return "user.key_removed.v1" }

// Apply implements event.Fact.
func (e KeyRemoved) Apply(u *User) {
	if u.Service != nil {
		u.Service.Keys = slices.DeleteFunc(slices.Clone(u.Service.Keys), func(k Key) bool { return k.ID == e.KeyID })
	}
}

// NewKey is a key to add.
type NewKey struct {
	PublicKey string     // PEM
	Expires   *time.Time // nil: never
}

// Violations lists what is wrong with it at a moment, in the names of the API.
func (n NewKey) Violations(now time.Time) []errs.Violation {
	var wrong []errs.Violation
	if _, problem := syntax.PublicKey(n.PublicKey); problem != "" {
		wrong = append(wrong, errs.Violation{Field: "publicKey", Message: problem})
	}
	if n.Expires != nil && event.Micros(*n.Expires) <= event.Micros(now) {
		wrong = append(wrong, errs.Violation{Field: "expirationDate", Message: "must be in the future, or be left out for a key that does not expire"})
	}
	return wrong
}

// AddKey adds a public key to a service user of the permit's organization, and takes away those that have expired. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotService; InvalidArgument with the violations of n at that moment; ErrTooManyKeys; ErrKeyExists; Aborted when
// match does not hold.
func AddKey(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, n NewKey) (details event.Details, keyID string, err error) {
	form, _ := syntax.PublicKey(n.PublicKey)
	keyID = event.NewID("pky")
	details, err = Covered(permit, id).And(MustBeService).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
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
func RemoveKey(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, keyID string) (event.Details, error) {
	return Covered(permit, id).And(MustBeService).Change(ctx, s, match, func(_ *event.Tx, u *event.Object[User]) error {
		if !slices.ContainsFunc(u.Data.Service.Keys, func(k Key) bool { return k.ID == keyID }) {
			return ErrKeyNotFound
		}
		return u.Append(KeyRemoved{KeyID: keyID})
	})
}

// GetService reads a service user within the permit's organization. Errors: ErrNotFound; ErrNotService.
func GetService(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[User], error) {
	return Within(permit, id).And(MustBeService).Read(ctx, r)
}
