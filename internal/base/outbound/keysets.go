package outbound

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/fairqueue"
)

// Bounds of the key sets that are kept.
const (
	maxSetSize = 64 << 10 // bytes of one
	maxSetKeys = 50       // keys of one that count
	minRSA     = 2048     // bits: a shorter key proves nothing
	maxRSA     = 8192     // bits: checking a signature costs the square of them
)

// KeySets are the public keys of others (RFC 7517), fetched where they publish them and kept for a while. They are safe
// for concurrent use.
type KeySets struct {
	client *Client
	*Kept[[]jose.JSONWebKey]
}

// NewKeySets makes an empty collection. calls are what organizations share of those that are fetched at once.
func NewKeySets(client *Client, clock func() time.Time, calls *fairqueue.Slots) *KeySets {
	k := &KeySets{client: client}
	k.Kept = NewKept(clock, calls, k.ask)
	return k
}

// Find gives the public keys that are published at an address of an organization under a key id; all that could have
// signed something where the id is empty. None is an empty list. Errors: ErrRefused, ErrFailed, those of fairqueue.Slots.
func (k *KeySets) Find(ctx context.Context, org, address, keyID string) ([]jose.JSONWebKey, error) {
	keys, err := k.Get(ctx, org, address, func(keys []jose.JSONWebKey) bool { return len(matching(keys, keyID)) > 0 })
	return matching(keys, keyID), err
}

func (k *KeySets) ask(ctx context.Context, address string) ([]jose.JSONWebKey, time.Duration, error) {
	answer, err := k.client.Get(ctx, address, maxSetSize)
	if err != nil {
		return nil, 0, err
	}
	if answer.Status != http.StatusOK {
		return nil, 0, ErrFailed.Because(fmt.Errorf("the request for the key set was answered with status %d",
			answer.Status))
	}
	keys, err := ParseKeys(answer.Body)
	if err != nil {
		return nil, 0, ErrFailed.Because(err)
	}
	return keys, AgeOf(answer.Header), nil
}

// ParseKeys reads a key set. Keys of a kind that nobody here knows, and those that could not have signed anything, are
// passed over, as RFC 7517 wants it. What is wrong never quotes the answer.
func ParseKeys(body []byte) (keys []jose.JSONWebKey, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(body, &set) != nil || set.Keys == nil {
		return nil, errors.New("the answer is not a key set")
	}
	for _, raw := range set.Keys[:min(len(set.Keys), maxSetKeys)] {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && canVerify(&key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// canVerify tells whether a key is a public one for signatures. A symmetric key that everybody can read proves nothing,
// and a private one that was published is everybody's, too.
func canVerify(key *jose.JSONWebKey) bool {
	if !key.Valid() || key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSA && public.N.BitLen() <= maxRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

func matching(keys []jose.JSONWebKey, keyID string) (found []jose.JSONWebKey) {
	for _, key := range keys {
		if keyID == "" || key.KeyID == keyID {
			found = append(found, key)
		}
	}
	return found
}
