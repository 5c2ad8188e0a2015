package secret

import (
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/secret/argon"
)

// The algorithms of stored hashes. New hashes are always argon2id; the others come with imported users.
type algorithm string

const (
	algorithmArgon2 algorithm = "argon2"
	algorithmBcrypt algorithm = "bcrypt"
	algorithmScrypt algorithm = "scrypt"
	algorithmPBKDF2 algorithm = "pbkdf2"
)

// A stored hash names its own cost, and an imported one was written by somebody else: verifying it must neither take
// the server's memory nor hold a slot for long. The bounds leave room for what the usual systems produce; the worst
// allowed hash takes 256 MiB or a few seconds.
const (
	maxEncodedLength = 512
	minDigestLength  = 16 // in particular never 0: an empty digest would match every password
	maxDigestLength  = 64
	maxMemory        = 256 << 20 // bytes, argon2 and scrypt
	maxMemoryWork    = 1 << 30   // bytes written over all passes
	maxLanes         = 16
	maxBcryptCost    = 15
	maxScryptLogN    = 20
	maxPBKDF2Rounds  = 4_000_000 // over all blocks of the digest
)

// inspect reads the algorithm and the cost of an encoded hash. current says that a hash made today would not be
// stronger. ok is false for what is malformed, unknown or beyond the bounds.
//
// It is stricter than the parsers that verify the hash, so that what it measured is what they compute.
func inspect(encoded string) (alg algorithm, current, ok bool) {
	if len(encoded) > maxEncodedLength || !strings.HasPrefix(encoded, "$") {
		return "", false, false
	}
	for i := range len(encoded) {
		if encoded[i] <= ' ' || encoded[i] > '~' {
			return "", false, false
		}
	}
	id, rest, _ := strings.Cut(encoded[1:], "$")
	fields := strings.Split(rest, "$")
	switch id {
	case "argon2id", "argon2i":
		current, ok = inspectArgon2(fields)
		return algorithmArgon2, current && id == "argon2id", ok
	case "2a", "2b", "2y":
		return algorithmBcrypt, false, inspectBcrypt(fields)
	case "scrypt", "7":
		return algorithmScrypt, false, inspectScrypt(fields)
	case "pbkdf2":
		return algorithmPBKDF2, false, inspectPBKDF2(fields, 20)
	case "pbkdf2-sha224":
		return algorithmPBKDF2, false, inspectPBKDF2(fields, 28)
	case "pbkdf2-sha256":
		return algorithmPBKDF2, false, inspectPBKDF2(fields, 32)
	case "pbkdf2-sha384":
		return algorithmPBKDF2, false, inspectPBKDF2(fields, 48)
	case "pbkdf2-sha512":
		return algorithmPBKDF2, false, inspectPBKDF2(fields, 64)
	}
	return "", false, false
}

// inspectArgon2 reads v=19, m=19456,t=2,p=1, salt, digest.
func inspectArgon2(fields []string) (current, ok bool) {
	if len(fields) != 4 || fields[0] != "v=19" {
		return false, false
	}
	n, ok := numbers(fields[1], "m", "t", "p")
	if !ok {
		return false, false
	}
	kib, passes, lanes := n[0], n[1], n[2]
	salt, digest := decodedLength(fields[2]), decodedLength(fields[3])
	if kib > maxMemory>>10 || passes < 1 || kib*passes > maxMemoryWork>>10 || lanes < 1 || lanes > maxLanes ||
		!digestInBounds(digest) {
		return false, false
	}
	// Fewer passes over more memory are as good: one pass over 64 MiB is not weaker than two over 19 MiB.
	current = kib >= argon.MemoryKiB && kib*passes >= argon.MemoryKiB*argon.Passes && salt >= saltLength && digest >= argon.KeyLength
	return current, true
}

// inspectBcrypt reads the cost, then salt and digest in one.
func inspectBcrypt(fields []string) bool {
	if len(fields) != 2 || len(fields[0]) != 2 || len(fields[1]) != 53 {
		return false
	}
	cost, err := strconv.ParseUint(fields[0], 10, 8)
	return err == nil && cost <= maxBcryptCost
}

// inspectScrypt reads ln=15,r=8,p=1, salt, digest.
func inspectScrypt(fields []string) bool {
	if len(fields) != 3 {
		return false
	}
	n, ok := numbers(fields[0], "ln", "r", "p")
	if !ok {
		return false
	}
	logN, r, p := n[0], n[1], n[2]
	if logN < 1 || logN > maxScryptLogN || r < 1 || r > maxMemory || p < 1 || p > maxLanes {
		return false
	}
	memory := 128 * r << logN
	return memory <= maxMemory && memory*p <= maxMemoryWork && digestInBounds(decodedLength(fields[2]))
}

// inspectPBKDF2 reads the rounds, salt, digest. Every block of the hash function's size takes all rounds again.
func inspectPBKDF2(fields []string, blockSize int) bool {
	if len(fields) != 3 {
		return false
	}
	rounds, err := strconv.ParseUint(fields[0], 10, 32)
	digest := decodedLength(fields[2])
	if err != nil || rounds < 1 || !digestInBounds(digest) {
		return false
	}
	blocks := (digest + blockSize - 1) / blockSize
	return rounds*uint64(blocks) <= maxPBKDF2Rounds
}

func digestInBounds(length int) bool { return length >= minDigestLength && length <= maxDigestLength }

// decodedLength is the number of bytes that base64 text of any alphabet stands for.
func decodedLength(text string) int { return len(strings.TrimRight(text, "=")) * 6 / 8 }

// numbers reads text of the form a=1,b=2 with exactly these names in this order.
func numbers(text string, names ...string) ([]uint64, bool) {
	fields := strings.Split(text, ",")
	if len(fields) != len(names) {
		return nil, false
	}
	values := make([]uint64, len(names))
	for i, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		n, err := strconv.ParseUint(value, 10, 32)
		if name != names[i] || err != nil {
			return nil, false
		}
		values[i] = n
	}
	return values, true
}
