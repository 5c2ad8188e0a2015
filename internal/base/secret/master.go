package secret

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"
)

// MasterKey is the one key that Signet is given from outside. It is never used itself: every purpose has its own key,
// derived by HKDF-SHA-256, so that what one use gives away is of no use to another.
//
// A purpose is a constant of the program, never data: derived keys are kept for good. A MasterKey is safe for
// concurrent use, prints as [secret], and is a key only when made by one of the functions here.
type MasterKey struct {
	redacted
	k hidden[masterKey]
}

type masterKey struct {
	raw      [keyLength]byte
	macKeys  sync.Map // purpose -> []byte
	wrapKeys sync.Map // purpose -> cipher.AEAD
}

// NewMasterKey makes a random key.
func NewMasterKey() MasterKey {
	var raw [keyLength]byte
	_, _ = rand.Read(raw[:]) // it never fails: crypto/rand ends the program instead
	return masterKeyOf(raw)
}

func masterKeyOf(raw [keyLength]byte) MasterKey { return MasterKey{k: hide(&masterKey{raw: raw})} }

var (
	errEmptyKey     = errors.New("the master key is empty")
	errMalformedKey = errors.New("the master key must be the base64 text of 32 bytes: 44 characters, the last one =")
)

// ParseMasterKey reads the form that Text writes; one newline at the end is allowed. Errors do not quote the text.
func ParseMasterKey(text []byte) (MasterKey, error) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	text = bytes.TrimSuffix(text, []byte("\r"))
	if len(text) == 0 {
		return MasterKey{}, errEmptyKey
	}
	if len(text) != base64.StdEncoding.EncodedLen(keyLength) {
		return MasterKey{}, errMalformedKey
	}
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(raw) != keyLength {
		return MasterKey{}, errMalformedKey
	}
	return masterKeyOf([keyLength]byte(raw)), nil
}

// Text returns the key in base64, to be stored where the operator keeps secrets. It is the only way to see the key.
func (m MasterKey) Text() []byte { return base64.StdEncoding.AppendEncode(nil, m.k().raw[:]) }

// MAC returns the HMAC-SHA-256 of parts under the purpose's key. Each part counts with its length: "ab", "c" and "a",
// "bc" differ. Compare results with hmac.Equal.
func (m MasterKey) MAC(purpose string, parts ...[]byte) []byte {
	key, ok := m.k().macKeys.Load(purpose)
	if !ok {
		key, _ = m.k().macKeys.LoadOrStore(purpose, m.derive("mac", purpose))
	}
	mac := hmac.New(sha256.New, key.([]byte))
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// CheckValue identifies the key without giving it away. It is stored in the database, so that a start with another key
// is refused before it does harm.
func (m MasterKey) CheckValue() []byte { return m.MAC("check value") }

// Wrap encrypts plaintext for storage under the purpose's key. aad says what the plaintext is and whose; Unwrap needs
// the same.
func (m MasterKey) Wrap(purpose string, plaintext, aad []byte) []byte {
	return seal(m.aead(purpose), plaintext, aad)
}

// Unwrap returns what Wrap was given, or ErrCannotOpen.
func (m MasterKey) Unwrap(purpose string, wrapped, aad []byte) ([]byte, error) {
	return open(m.aead(purpose), wrapped, aad)
}

// WrapKey encrypts another key for storage.
func (m MasterKey) WrapKey(other MasterKey) []byte { return m.Wrap("root key", other.k().raw[:], nil) }

// UnwrapKey returns what WrapKey was given, or ErrCannotOpen.
func (m MasterKey) UnwrapKey(wrapped []byte) (MasterKey, error) {
	raw, err := m.Unwrap("root key", wrapped, nil)
	if err != nil || len(raw) != keyLength {
		return MasterKey{}, ErrCannotOpen
	}
	return masterKeyOf([keyLength]byte(raw)), nil
}

func (m MasterKey) aead(purpose string) cipher.AEAD {
	aead, ok := m.k().wrapKeys.Load(purpose)
	if !ok {
		aead, _ = m.k().wrapKeys.LoadOrStore(purpose, newAEAD(m.derive("wrap", purpose)))
	}
	return aead.(cipher.AEAD)
}

// derive makes the key of a purpose. The use is part of it: the same purpose has unrelated keys for MAC and Wrap.
func (m MasterKey) derive(use, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, m.k().raw[:], nil, "signet v1 "+use+": "+purpose, keyLength)
	if err != nil {
		panic(err) // only for a key longer than HKDF can make
	}
	return key
}
