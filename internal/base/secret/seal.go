package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
)

// ErrCannotOpen is returned for data that was sealed with another key or for another purpose or owner, or was changed.
// It does not say which.
var ErrCannotOpen = errors.New("secret: the data cannot be opened: other key, other owner, or damaged")

const (
	keyLength = 32

	// sealedFormat is the first byte of everything sealed, so that another cipher or key can come later and tell old
	// data from new.
	sealedFormat = 1
	sealedNonce  = 12
	sealedTag    = 16
)

// DataKey encrypts what belongs to one person. It is stored wrapped by the master key; when it is destroyed, what it
// sealed is gone in every copy and backup.
//
// It holds the prepared cipher, so keep a DataKey rather than its wrapped form where it is used again. A DataKey is
// safe for concurrent use, prints as [secret], and is a key only when made by NewDataKey, UnwrapDataKey or DataKeyOf.
type DataKey struct {
	redacted
	k hidden[dataKey]
}

type dataKey struct {
	raw  [keyLength]byte
	aead cipher.AEAD
}

// NewDataKey makes a random key.
func NewDataKey() DataKey {
	var raw [keyLength]byte
	_, _ = rand.Read(raw[:]) // it never fails: crypto/rand ends the program instead
	return dataKeyOf(raw)
}

func dataKeyOf(raw [keyLength]byte) DataKey {
	return DataKey{k: hide(&dataKey{raw: raw, aead: newAEAD(raw[:])})}
}

// DataKeyOf gives the key that belongs to something secret which is not stored here: nobody opens what it sealed
// without it.
func (m MasterKey) DataKeyOf(purpose string, owned []byte) DataKey {
	return dataKeyOf([keyLength]byte(m.MAC(purpose, owned)))
}

// Seal encrypts plain with AES-256-GCM under a random nonce. aad says what the data is and whose; Open needs the same,
// so that sealed data cannot be moved to another place. The result is 29 bytes longer than plain. A key is good for
// 2^32 seals.
func (d DataKey) Seal(plain, aad []byte) []byte { return seal(d.k().aead, plain, aad) }

// Open returns what Seal was given, or ErrCannotOpen.
func (d DataKey) Open(sealed, aad []byte) ([]byte, error) { return open(d.k().aead, sealed, aad) }

const purposeDataKey = "data key"

// WrapDataKey encrypts a data key for storage under its id.
func (m MasterKey) WrapDataKey(k DataKey, id string) []byte {
	return m.Wrap(purposeDataKey, k.k().raw[:], []byte(id))
}

// UnwrapDataKey returns the key that WrapDataKey was given for the same id, or ErrCannotOpen.
func (m MasterKey) UnwrapDataKey(wrapped []byte, id string) (DataKey, error) {
	raw, err := m.Unwrap(purposeDataKey, wrapped, []byte(id))
	if err != nil {
		return DataKey{}, err
	}
	if len(raw) != keyLength {
		return DataKey{}, ErrCannotOpen
	}
	return dataKeyOf([keyLength]byte(raw)), nil
}

// newAEAD makes AES-256-GCM that chooses its nonces itself and puts them in front.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for a wrong key length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for a block that is not AES
	}
	return aead
}

func seal(aead cipher.AEAD, plain, aad []byte) []byte {
	sealed := make([]byte, 1, 1+sealedNonce+len(plain)+sealedTag)
	sealed[0] = sealedFormat
	return aead.Seal(sealed, nil, plain, aad)
}

func open(aead cipher.AEAD, sealed, aad []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != sealedFormat {
		return nil, ErrCannotOpen
	}
	plain, err := aead.Open(nil, nil, sealed[1:], aad)
	if err != nil {
		return nil, ErrCannotOpen
	}
	return plain, nil
}
