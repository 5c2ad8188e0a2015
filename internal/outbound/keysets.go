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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/share"
)

// Bounds of the key sets that are kept.
const (
	maxSets    = 500      // sets in memory
	maxSetSize = 64 << 10 // bytes of one
	maxSetKeys = 50       // keys of one that count
	minRSA     = 2048     // bits: a shorter key proves nothing
	maxRSA     = 8192     // bits: checking a signature costs the square of them

	minSetAge    = 5 * time.Minute  // a set is asked for no more often, whatever its server says
	maxSetAge    = 6 * time.Hour    // and counts no longer, so that a key that was taken out is gone
	defSetAge    = time.Hour        // where its server says nothing
	refetchAfter = 30 * time.Second // how soon an unknown key, or a failure, makes us ask again
)

// KeySets are the public keys of others (RFC 7517), fetched where they publish them and kept for a while. They are safe for
// concurrent use.
type KeySets struct {
	client *Client
	clock  func() time.Time
	calls  *share.Places

	mu   sync.Mutex
	sets map[published]*keySet
}

// published is where an organization says that there are keys. Two that name the same URL do not share them: one's calls may stall.
type published struct{ org, address string }

// keySet is what is known of one URL. KeySets.mu guards it.
type keySet struct {
	keys    []jose.JSONWebKey
	fetched time.Time // zero: never
	fresh   time.Time // until then it is good without asking
	tried   time.Time // the last attempt
	problem error     // of the last attempt; nil: it worked
	used    time.Time
	running chan struct{} // closed when the attempt that is under way ends; nil: none is
}

// NewKeySets makes an empty collection. calls are what organizations share of those that are fetched at once.
func NewKeySets(client *Client, clock func() time.Time, calls *share.Places) *KeySets {
	return &KeySets{client: client, clock: clock, calls: calls, sets: map[published]*keySet{}}
}

// Find gives the public keys that are published at an address of an organization under a key id; all that could have signed something where
// the id is empty. None is an empty list. Errors: ErrRefused, ErrFailed, those of share.Places.
func (k *KeySets) Find(ctx context.Context, org, address, keyID string) ([]jose.JSONWebKey, error) {
	for attempt := 0; ; attempt++ {
		k.mu.Lock()
		now := k.clock()
		set := k.set(published{org, address}, now)
		found := matching(set.keys, keyID)
		usable := !set.fetched.IsZero() && now.Before(set.fetched.Add(maxSetAge))
		due := !usable || !now.Before(set.fresh) || len(found) == 0
		mayAsk := set.tried.IsZero() || now.Sub(set.tried) >= refetchAfter
		if attempt > 0 || !due || set.running == nil && !mayAsk {
			problem := set.problem
			k.mu.Unlock()
			switch {
			case usable:
				return found, nil
			case problem == nil: // it had to make room for others in the meantime
				return nil, ErrFailed
			}
			return nil, problem
		}
		if set.running == nil {
			set.running, set.tried = make(chan struct{}), now
			// It runs for everybody who waits, so nobody's leaving ends it. The client has a time limit of its own.
			go k.fetch(context.WithoutCancel(ctx), published{org, address}, set)
		}
		running := set.running
		k.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, ErrFailed.Because(ctx.Err())
		}
	}
}

// set gives the entry of an address, making room for it where it is new. What is being fetched stays.
func (k *KeySets) set(at published, now time.Time) *keySet {
	set := k.sets[at]
	if set == nil {
		for len(k.sets) >= maxSets && k.forgetOldest() {
		}
		set = &keySet{}
		k.sets[at] = set
	}
	set.used = now
	return set
}

// forgetOldest drops, of the organization that has the most, the set that nobody has asked for the longest; false where all are being fetched.
func (k *KeySets) forgetOldest() bool {
	of := map[string]int{}
	for at, set := range k.sets {
		if set.running == nil {
			of[at.org]++
		}
	}
	var oldest published
	found := false
	for at, set := range k.sets {
		if set.running != nil {
			continue
		}
		if !found || of[at.org] > of[oldest.org] || of[at.org] == of[oldest.org] && set.used.Before(k.sets[oldest].used) {
			oldest, found = at, true
		}
	}
	delete(k.sets, oldest)
	return found
}

func (k *KeySets) fetch(ctx context.Context, at published, set *keySet) {
	var keys []jose.JSONWebKey
	var age time.Duration
	asked := false
	err := k.calls.Do(ctx, share.Claim{Org: at.org}, func() (err error) {
		asked = true
		keys, age, err = k.ask(ctx, at.address)
		return err
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	if set.problem = err; err == nil {
		set.keys, set.fetched, set.fresh = keys, now, now.Add(age)
	}
	if !asked {
		set.tried = time.Time{}
	}
	close(set.running)
	set.running = nil
}

func (k *KeySets) ask(ctx context.Context, address string) ([]jose.JSONWebKey, time.Duration, error) {
	answer, err := k.client.Get(ctx, address, maxSetSize)
	if err != nil {
		return nil, 0, err
	}
	if answer.Status != http.StatusOK {
		return nil, 0, ErrFailed.Because(fmt.Errorf("the request for the key set was answered with status %d", answer.Status))
	}
	keys, err := parseKeys(answer.Body)
	if err != nil {
		return nil, 0, ErrFailed.Because(err)
	}
	return keys, ageOf(answer.Header), nil
}

// parseKeys reads a key set. Keys of a kind that nobody here knows, and those that could not have signed anything, are
// passed over, as RFC 7517 wants it. What is wrong never quotes the answer.
func parseKeys(body []byte) (keys []jose.JSONWebKey, err error) {
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

// ageOf tells how long an answer may be kept, inside our own bounds.
func ageOf(header http.Header) time.Duration {
	age := defSetAge
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			age = 0
		case "max-age":
			if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
				age = time.Duration(seconds) * time.Second
			}
		}
	}
	return min(max(age, minSetAge), maxSetAge)
}
