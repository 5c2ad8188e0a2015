package app

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxKeys is how many keys an application may have. Those that have expired go when another one comes.
const MaxKeys = 20

// SecretRow is where the hashes of an application's secrets live.
func SecretRow(id string) event.RowKey { return event.SecretOf(id) }

// kept is what the row of secrets holds: the hash of the secret and, while it works beside it, of the one before.
type kept struct {
	current, old []byte
	oldUntil     int64
}

const hashLength = sha256.Size

// row lays the hashes one after the other, so that reading them takes as long whatever they are.
func (k kept) row(id string) event.Row {
	value := slices.Clone(k.current)
	if k.old != nil {
		value = binary.BigEndian.AppendUint64(append(value, k.old...), uint64(k.oldUntil))
	}
	return event.Row{RowKey: SecretRow(id), Value: value}
}

// keptIn reads a row; nil or another form is a row of hashes that nothing has.
func keptIn(row *event.Row) kept {
	k := kept{current: make([]byte, hashLength), old: make([]byte, hashLength)}
	if row == nil {
		return k
	}
	if v := row.Value; len(v) == hashLength || len(v) == 2*hashLength+8 {
		copy(k.current, v)
		copy(k.old, v[hashLength:min(len(v), 2*hashLength)])
		if len(v) > hashLength {
			k.oldUntil = int64(binary.BigEndian.Uint64(v[2*hashLength:]))
		}
	}
	return k
}

// GenerateSecret makes a new secret for an application. It is shown this once. The one before it works on for keepOld,
// or not at all. Errors: ErrNotFound; access.ErrMoreScopes where another application does it to one that may do more;
// ErrOpensWaysIn; ErrIsFirstParty; ErrKeepsNoSecret; Aborted when match does not hold.
func GenerateSecret(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	keepOld time.Duration) (event.Details, string, error) {
	text, hash := secret.NewToken(secret.Client)
	key := SecretRow(id)
	row := event.Command{Rows: []event.RowKey{key}}
	details, err := Within(permit, id).And(mayActAs(permit)).Needs(row).Change(ctx, s, match,
		func(tx *event.Tx, a *event.Object[App]) error {
			if !a.Data.Type.KeepsSecret() {
				return ErrKeepsNoSecret
			}
			stored, err := tx.Row(key)
			if err != nil {
				return err
			}
			next, fact := kept{current: hash}, SecretSet{ByOwner: byOwner(permit)}
			if keepOld > 0 && a.Data.HasSecret && stored != nil {
				fact.OldUntil = tx.Now() + keepOld.Microseconds()
				next.old, next.oldUntil = keptIn(stored).current, fact.OldUntil
			}
			tx.PutRow(next.row(id))
			return Append(permit, a, append([]event.Fact[App]{fact}, vouchSecret(permit, &a.Data, fact)...)...)
		})
	if err != nil {
		return event.Details{}, "", err
	}
	return details, text, nil
}

// RemoveSecret takes an application's secret away, with one that is kept beside it. Errors: ErrNotFound;
// ErrSecretNotFound; Aborted when match does not hold.
func RemoveSecret(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(tx *event.Tx, a *event.Object[App]) error {
		if !a.Data.HasSecret {
			return ErrSecretNotFound
		}
		tx.DropRow(SecretRow(id))
		return Append(permit, a, SecretRemoved{})
	})
}

// SecretMatches tells whether text is a secret by which an application may prove itself at a moment: an active one
// whose method is to send a secret. stored is what SecretRow leads to, nil where there is nothing. How long it takes
// says nothing about what is stored.
func SecretMatches(a *App, stored *event.Row, text string, now time.Time) bool {
	kind, hash, ok := secret.ParseToken(text)
	if !ok || kind != secret.Client {
		return false
	}
	k := keptIn(stored)
	current, old := subtle.ConstantTimeCompare(k.current, hash), subtle.ConstantTimeCompare(k.old, hash)
	same := current == 1 || old == 1 && event.Micros(now) < k.oldUntil
	return same && a != nil && a.State == Active && a.HasSecret && a.AuthMethod.BySecret()
}

func (k Key) counts(now int64) bool { return k.Expires == 0 || now < k.Expires }

// KeysAt gives the keys that count at a moment.
func (a *App) KeysAt(now time.Time) []Key {
	var keys []Key
	for _, k := range a.Keys {
		if k.counts(event.Micros(now)) {
			keys = append(keys, k)
		}
	}
	return keys
}

// AddKey adds a public key to an application, and takes away those that have expired. Errors: ErrNotFound;
// access.ErrMoreScopes, ErrOpensWaysIn and ErrIsFirstParty as GenerateSecret; InvalidArgument with the violations of n
// at that moment; ErrKeepsNoSecret; ErrTooManyKeys; ErrKeyExists; Aborted when match does not hold.
func AddKey(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	n user.NewKey) (details event.Details, keyID string, err error) {
	form, _ := syntax.PublicKey(n.PublicKey)
	keyID = event.NewID("pky")
	details, err = Within(permit, id).And(mayActAs(permit)).Change(ctx, s, match,
		func(tx *event.Tx, a *event.Object[App]) error {
			now := event.Time(tx.Now())
			if wrong := n.Violations(now); len(wrong) > 0 {
				return errs.Invalid(wrong...)
			}
			live := a.Data.KeysAt(now)
			switch {
			case !a.Data.Type.KeepsSecret():
				return ErrKeepsNoSecret
			case len(live) >= MaxKeys:
				return ErrTooManyKeys
			case slices.ContainsFunc(live, func(k Key) bool { return k.Public == form }):
				return ErrKeyExists
			}
			var facts []event.Fact[App]
			for _, k := range a.Data.Keys {
				if !k.counts(tx.Now()) {
					facts = append(facts, KeyRemoved{KeyID: k.ID})
				}
			}
			fact := KeyAdded{KeyID: keyID, Public: form, Created: tx.Now(), ByOwner: byOwner(permit)}
			if n.Expires != nil {
				fact.Expires = event.Micros(*n.Expires)
			}
			return Append(permit, a, append(facts, fact)...)
		})
	if err != nil {
		return event.Details{}, "", err
	}
	return details, keyID, nil
}

// RemoveKey takes a key away from an application. Errors: ErrNotFound; ErrKeyNotFound; Aborted when match does not
// hold.
func RemoveKey(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	keyID string) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if !slices.ContainsFunc(a.Data.Keys, func(k Key) bool { return k.ID == keyID }) {
			return ErrKeyNotFound
		}
		return Append(permit, a, KeyRemoved{KeyID: keyID})
	})
}
