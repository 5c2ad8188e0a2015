package secret

import (
	"strings"

	"golang.org/x/crypto/argon2"
)

// cheapPrefix starts every hash of NewCheapHasher: argon2id over 8 KiB.
const cheapPrefix = "$argon2id$v=19$m=8,t=1,p=1$"

var cheapNothing = strings.Replace(nothing, currentPrefix, cheapPrefix, 1)

// NewCheapHasher makes a Hasher for tests of something else than hashing: its hashes cost next to nothing and protect
// no password. A test makes sure that the program does not use it. It does everything else like NewHasher, and takes
// its own hashes for as strong as new ones.
func NewCheapHasher() *Hasher {
	h := NewHasher(0, 0)
	h.cheap = true
	h.hash = func(password string) []byte {
		return salted(cheapPrefix,
			func(password, salt []byte) []byte { return argon2.IDKey(password, salt, 1, 8, 1, 32) }, password)
	}
	return h
}
