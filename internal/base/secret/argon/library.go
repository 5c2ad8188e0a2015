//go:build argon_library

package argon

import "golang.org/x/crypto/argon2"

// Key is argon2.IDKey with the cost of this package.
func Key(password, salt []byte) []byte {
	return argon2.IDKey(password, salt, Passes, MemoryKiB, Lanes, KeyLength)
}
