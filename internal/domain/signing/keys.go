package signing

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	rereadAfter = 5 * time.Second // how old what is known may be before it is read again
	askAfter    = time.Second     // how soon a key nobody knows makes us read again

	// setAge is how long others may keep the published set: a small part of Lead, and short enough that a key that was
	// withdrawn does not count much longer.
	setAge = 15 * time.Minute

	maxToken = 16 << 10 // bytes
)

// Keys signs and verifies. What it needs for that it keeps in memory, and reads the list again every few seconds:
// another node may have changed it. What it goes by is never older than settle. It is safe for concurrent use.
type Keys struct {
	store  event.Store
	master secret.MasterKey
	clock  func() time.Time

	reading sync.Mutex // held by who reads the list
	making  sync.Mutex // the first key of an algorithm
	known   atomic.Pointer[known]
}

// known is the list as it was at a time. It does not change.
type known struct {
	at      time.Time
	keys    []Key
	public  map[string]crypto.PublicKey // by key id
	private map[string]crypto.Signer    // of keys that sign, or will
}

// New makes Keys.
func New(s event.Store, master secret.MasterKey, clock func() time.Time) *Keys {
	return &Keys{store: s, master: master, clock: clock}
}

// forget makes the next one who needs the list read it.
func (k *Keys) forget() { k.known.Store(nil) }

// list gives what is known, reading it again where it is older than age. Who finds another one reading goes on with
// what there is, as long as that is not too old.
func (k *Keys) list(ctx context.Context, age time.Duration) (*known, error) {
	have := k.known.Load()
	if have != nil && k.age(have) < age {
		return have, nil
	}
	good := have != nil && k.age(have) < settle
	switch {
	case k.reading.TryLock():
	case good && age > 0: // who wants it as it is now waits
		return have, nil
	default:
		k.reading.Lock()
	}
	defer k.reading.Unlock()
	if now := k.known.Load(); now != nil && now != have && k.age(now) < age {
		return now, nil // another one has read it
	}
	read, err := k.read(ctx, have)
	if err != nil {
		if good {
			return have, nil
		}
		return nil, err
	}
	k.known.Store(read)
	return read, nil
}

func (k *Keys) age(have *known) time.Duration { return k.clock().Sub(have.at) }

// read reads the list, and the halves of keys that were not known before.
func (k *Keys) read(ctx context.Context, before *known) (*known, error) {
	if before == nil {
		before = &known{}
	}
	now := &known{at: k.clock(), public: map[string]crypto.PublicKey{}, private: map[string]crypto.Signer{}}
	o, err := Kind.Read(ctx, k.store, ID)
	if err != nil || o == nil {
		return now, err
	}
	now.keys = o.Data.Keys
	for i := range now.keys {
		key := &now.keys[i]
		if now.public[key.ID] = before.public[key.ID]; now.public[key.ID] == nil {
			if now.public[key.ID], err = x509.ParsePKIXPublicKey(key.Public); err != nil {
				return nil, fmt.Errorf("signing key %s: %w", key.ID, err)
			}
		}
		if k.isOver(now, key) {
			continue
		}
		if now.private[key.ID] = before.private[key.ID]; now.private[key.ID] == nil {
			private, err := k.private(ctx, key.ID)
			if err != nil {
				return nil, err
			}
			now.private[key.ID] = private
		}
	}
	return now, nil
}

// isOver tells whether a key will not sign again: the one that signs now came after it.
func (k *Keys) isOver(now *known, key *Key) bool {
	signs := Signs(now.keys, key.Algorithm, event.Micros(now.at))
	return signs != nil && key.SignsFrom < signs.SignsFrom
}

// private opens the private half of a key; nil where it was destroyed since the list was read.
func (k *Keys) private(ctx context.Context, id string) (crypto.Signer, error) {
	row, err := k.store.Row(ctx, PrivateRow(id))
	if err != nil || row == nil {
		return nil, err
	}
	plain, err := k.master.Unwrap(purpose, row.Value, []byte(id))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", id, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return nil, fmt.Errorf("signing key %s cannot be read", id) // err could quote it
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("signing key %s cannot sign", id)
	}
	return signer, nil
}

// Sign makes a token (RFC 7515, compact) of claims: typ says what it is for, such as JWT or at+jwt, and Verify wants
// the same. The first call for an algorithm makes its key. Errors: ErrNoKey, and those of event.Store.
func (k *Keys) Sign(ctx context.Context, alg, typ string, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	key, private, err := k.signer(ctx, Algorithm(alg))
	if err != nil {
		return "", err
	}
	options := (&jose.SignerOptions{}).WithType(jose.ContentType(typ))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: key.Algorithm,
		Key: jose.JSONWebKey{Key: private, KeyID: key.ID}}, options)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// signer gives the key that signs now.
func (k *Keys) signer(ctx context.Context, alg Algorithm) (*Key, crypto.Signer, error) {
	if alg != ES256 && alg != RS256 {
		return nil, nil, fmt.Errorf("signing: there are no keys for %q", alg)
	}
	have, err := k.withKey(ctx, alg)
	if err != nil {
		return nil, nil, err
	}
	key := Signs(have.keys, alg, event.Micros(k.clock()))
	if key == nil || have.private[key.ID] == nil {
		return nil, nil, ErrNoKey
	}
	return key, have.private[key.ID], nil
}

// withKey gives the list with at least one key of an algorithm.
func (k *Keys) withKey(ctx context.Context, alg Algorithm) (*known, error) {
	have, err := k.list(ctx, rereadAfter)
	if err != nil {
		return nil, err
	}
	if (&Signing{Keys: have.keys}).newest(alg) != nil {
		return have, nil
	}
	k.making.Lock() // one makes it, which takes long, and the others wait
	defer k.making.Unlock()
	if have, err = k.list(ctx, 0); err != nil || (&Signing{Keys: have.keys}).newest(alg) != nil {
		return have, err
	}
	if err := k.ensure(ctx, alg); err != nil {
		return nil, err
	}
	return k.list(ctx, 0)
}

// KeySet gives the public keys that signatures of ours are verified with, and how long others may keep them. Errors:
// those of event.Store.
func (k *Keys) KeySet(ctx context.Context) (jose.JSONWebKeySet, time.Duration, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	have, err := k.withKey(ctx, ES256)
	if err != nil {
		return set, 0, err
	}
	now := event.Micros(k.clock())
	for _, key := range have.keys {
		if key.Published(now) {
			set.Keys = append(set.Keys,
				jose.JSONWebKey{Key: have.public[key.ID], KeyID: key.ID, Algorithm: string(key.Algorithm), Use: "sig"})
		}
	}
	return set, setAge, nil
}

// Verify reads a token that Sign made for the same purpose and whose key still counts. What the claims say, when it
// expires above all, is for the caller to judge. Errors: ErrNotOurs, and those of event.Store.
func (k *Keys) Verify(ctx context.Context, typ, token string, into any) error {
	if len(token) > maxToken {
		return ErrNotOurs
	}
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{ES256, RS256})
	if err != nil || len(parsed.Signatures) != 1 {
		return ErrNotOurs
	}
	header := parsed.Signatures[0].Protected
	if is, _ := header.ExtraHeaders[jose.HeaderType].(string); is != typ {
		return ErrNotOurs
	}
	key, public, err := k.verifier(ctx, header.KeyID)
	if err != nil {
		return err
	}
	if key == nil || string(key.Algorithm) != header.Algorithm { // a key is for one algorithm
		return ErrNotOurs
	}
	payload, err := parsed.Verify(public)
	if err != nil {
		return ErrNotOurs
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return ErrNotOurs.Because(errors.New("the claims are of another form"))
	}
	return nil
}

// verifier finds a published key by its id; nil where there is none. One that is not known may be another node's.
func (k *Keys) verifier(ctx context.Context, id string) (*Key, crypto.PublicKey, error) {
	for _, age := range []time.Duration{rereadAfter, askAfter} {
		have, err := k.list(ctx, age)
		if err != nil {
			return nil, nil, err
		}
		for i := range have.keys {
			if key := &have.keys[i]; key.ID == id {
				if !key.Published(event.Micros(k.clock())) {
					return nil, nil, nil
				}
				return key, have.public[key.ID], nil
			}
		}
	}
	return nil, nil, nil
}
