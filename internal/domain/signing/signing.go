// Package signing holds the keys that tokens are signed with.
//
// There is one object, the installation's list of keys. A new key is published first and signs some time later, so that
// clients that cache the published set have loaded it by then. The key that signs is the latest one whose time has
// come. The key before it stays published until everything that it signed has expired. Then it is retired: its private
// key, a row of a side table, is destroyed.
//
//	made and published ── lead ──▶ signs ── the next one signs ──▶ published only ── keep ──▶ retired
//
// The list contains the times of all these steps from the start, and every node follows them on its own. Making and
// destroying keys is decided inside a command, so that it happens once, no matter how many nodes try.
package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ID of the one object.
const ID = "signing"

// Times of a key.
const (
	Period = 90 * 24 * time.Hour // how long a key signs before the next one is made
	Lead   = 24 * time.Hour      // how long one is published before it signs

	// LongestToken is how long something that was signed may count. Nothing that lives longer is to be signed.
	LongestToken = 24 * time.Hour
	// Keep is how long a key stays published after the next one signs. It is more than LongestToken: an ID token that
	// is sent back as a hint may have expired.
	Keep = 7 * 24 * time.Hour

	// settle is how old what a node knows of the list can be at most, so how long it takes until all nodes sign with a
	// key that is needed at once.
	settle = 10 * time.Second
)

// Algorithm of signatures, in the words of RFC 7518.
type Algorithm = jose.SignatureAlgorithm

// The algorithms. Everybody who speaks OpenID Connect knows the second one.
const (
	ES256 = jose.ES256
	RS256 = jose.RS256
)

const rsaBits = 2048

// Signing is the state: the keys that are published, the oldest first.
type Signing struct {
	Keys []Key `json:"keys,omitempty"`
}

// Key is a key that tokens are signed with. Times are in microseconds.
type Key struct {
	ID        string    `json:"id"`
	Algorithm Algorithm `json:"algorithm"`
	Public    []byte    `json:"public"`          // PKIX
	Made      int64     `json:"made"`            // published since then
	SignsFrom int64     `json:"signsFrom"`       //
	Until     int64     `json:"until,omitempty"` // published until then; 0: until another one follows
}

// Published tells whether signatures of the key count at a time.
func (k *Key) Published(now int64) bool { return k.Until == 0 || now < k.Until }

// Kind of the object of this package.
var Kind = event.Define(event.Schema[Signing]{
	Name: "signing", Table: "signing", Prefix: "sig", Shape: 1,
	Facts: []event.Fact[Signing]{KeyAdded{}, KeyRetired{}},
})

// Ref points at the one object.
var Ref = Kind.Ref(ID)

// KeyAdded records a new key. Those of its algorithm that have no end yet, or a later one, end at EndOthers.
type KeyAdded struct {
	ID        string    `json:"id"`
	Algorithm Algorithm `json:"algorithm"`
	Public    []byte    `json:"public"`
	Made      int64     `json:"made"`
	SignsFrom int64     `json:"signsFrom"`
	EndOthers int64     `json:"endOthers"`
}

// EventType implements event.Fact.
func (KeyAdded) EventType() event.Type { return "signing.key_added.v1" }

// Apply implements event.Fact.
func (e KeyAdded) Apply(s *Signing) {
	keys := slices.Clone(s.Keys)
	for i := range keys {
		if k := &keys[i]; k.Algorithm == e.Algorithm && (k.Until == 0 || k.Until > e.EndOthers) {
			k.Until = e.EndOthers
		}
	}
	s.Keys = append(keys, Key{ID: e.ID, Algorithm: e.Algorithm, Public: e.Public, Made: e.Made, SignsFrom: e.SignsFrom})
}

// KeyRetired records that a key counts no longer and that its private half is gone.
type KeyRetired struct {
	ID string `json:"id"`
}

// EventType implements event.Fact.
func (KeyRetired) EventType() event.Type { return "signing.key_retired.v1" }

// Apply implements event.Fact.
func (e KeyRetired) Apply(s *Signing) {
	s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(k Key) bool { return k.ID == e.ID })
}

// PrivateRow is where the private half of a key lives, wrapped by the master key.
func PrivateRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: ID + "/" + id}
}

// algorithms of the keys there are, in order.
func (s *Signing) algorithms() (all []Algorithm) {
	for _, k := range s.Keys {
		if !slices.Contains(all, k.Algorithm) {
			all = append(all, k.Algorithm)
		}
	}
	slices.Sort(all)
	return all
}

// newest key of an algorithm; nil where there is none.
func (s *Signing) newest(alg Algorithm) *Key { return Newest(s.Keys, alg) }

// Newest is the latest of the keys of an algorithm; nil where there is none. The next one is made when it has signed
// for Period.
func Newest(keys []Key, alg Algorithm) *Key {
	for i := range slices.Backward(keys) {
		if keys[i].Algorithm == alg {
			return &keys[i]
		}
	}
	return nil
}

// due lists the algorithms that need a new key.
func (s *Signing) due(now int64) (all []Algorithm) {
	if s.newest(ES256) == nil {
		all = append(all, ES256)
	}
	for _, alg := range s.algorithms() {
		if now >= s.newest(alg).SignsFrom+Period.Microseconds() {
			all = append(all, alg)
		}
	}
	return all
}

// ended tells whether there is a key to retire.
func (s *Signing) ended(now int64) bool {
	return slices.ContainsFunc(s.Keys, func(k Key) bool { return !k.Published(now) })
}

// Reasons of this package.
const (
	Rotating errs.Reason = "SIGNING_KEYS_ROTATING"
	NotOurs  errs.Reason = "TOKEN_NOT_OURS"
	NoKey    errs.Reason = "SIGNING_KEY_MISSING"
)

// Errors that the rules of this package refuse with.
var (
	ErrRotating = errs.New(errs.FailedPrecondition, Rotating,
		"a rotation of the signing keys is already in progress: the list of keys shows when the new ones sign")
	ErrNotOurs = errs.New(errs.Unauthenticated, NotOurs,
		"this token is damaged, was not signed by a valid key of this server, or is for another purpose")
	ErrNoKey = &errs.Error{Kind: errs.Unavailable, Reason: NoKey, RetryAfter: time.Second,
		Message: "there is no signing key at the moment: try again shortly"}
)

// fresh is a key that is not in the list yet. Making one takes long, so it is made before the command that may need it.
type fresh struct {
	id      string
	alg     Algorithm
	public  []byte
	private []byte // wrapped
}

const purpose = "signing key"

// makeKey makes a key. Its id is the hash of its public half: nobody has to keep ids apart.
func makeKey(master secret.MasterKey, alg Algorithm) (*fresh, error) {
	var private crypto.Signer
	var err error
	switch alg {
	case ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RS256:
		private, err = rsa.GenerateKey(rand.Reader, rsaBits)
	default:
		return nil, fmt.Errorf("signing: there are no keys for %q", alg)
	}
	if err != nil {
		return nil, err
	}
	f := &fresh{alg: alg}
	if f.public, err = x509.MarshalPKIXPublicKey(private.Public()); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(f.public)
	f.id = base64.RawURLEncoding.EncodeToString(sum[:16])
	plain, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	f.private = master.Wrap(purpose, plain, []byte(f.id))
	return f, nil
}

// add puts a key into the list. The first one of its algorithm signs at once, since nobody could wait for it. An urgent
// one takes the place of those before it as soon as all nodes know of it, and what they have signed counts no longer.
func (f *fresh) add(tx *event.Tx, o **event.Object[Signing], urgent bool) error {
	now := tx.Now()
	fact := KeyAdded{ID: f.id, Algorithm: f.alg, Public: f.public, Made: now, SignsFrom: now + Lead.Microseconds()}
	switch {
	case *o == nil || (*o).Data.newest(f.alg) == nil:
		fact.SignsFrom = now
	case urgent:
		fact.SignsFrom = now + settle.Microseconds()
	}
	fact.EndOthers = fact.SignsFrom
	if !urgent {
		fact.EndOthers += Keep.Microseconds()
	}
	tx.PutRow(event.Row{RowKey: PrivateRow(f.id), Value: f.private})
	if *o != nil {
		return (*o).Append(fact)
	}
	var err error
	*o, err = Kind.Create(tx, ID, access.Installation, fact)
	return err
}

// retire takes the keys that are over out of the list and destroys their private halves.
func retire(tx *event.Tx, o *event.Object[Signing]) error {
	if o == nil {
		return nil
	}
	for _, k := range slices.Clone(o.Data.Keys) {
		if k.Published(tx.Now()) {
			continue
		}
		tx.DropRow(PrivateRow(k.ID))
		if err := o.Append(KeyRetired{ID: k.ID}); err != nil {
			return err
		}
	}
	return nil
}
