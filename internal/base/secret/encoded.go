package secret

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/secret/argon"
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
// allowed hash takes 256 MiB or a few seconds, and is costly: not all slots are there for such ones.
const (
	maxEncodedLength = 512
	minDigestLength  = 16 // in particular never 0: an empty digest would match every password
	maxDigestLength  = 64
	maxMemory        = 256 << 20 // bytes, argon2 and scrypt
	maxMemoryWork    = 1 << 30   // bytes written over all passes
	maxLanes         = 16
	minBcryptCost    = 4
	maxBcryptCost    = 15
	maxScryptLogN    = 20
	maxScryptBlocks  = 256       // r: usual is 8. What is kept for each p beside the table of N grows with it
	maxPBKDF2Rounds  = 4_000_000 // over all blocks of the digest

	// What is within these takes about a quarter of a second at most.
	usualMemory       = 64 << 20
	usualMemoryWork   = 256 << 20
	usualBcryptCost   = 12
	usualPBKDF2Rounds = 1_000_000
)

// What can be wrong with an encoded hash, in words that read on after the name of a field and never quote the hash.
const (
	problemForm = "must be a hash of argon2id, argon2i (version 19), bcrypt, scrypt or PBKDF2 in the PHC or modular crypt form, such as $2b$12$…, " +
		"with salt and digest in base64 and at most 512 characters"
	problemArgon2 = "is too expensive to verify, or too weak: argon2 may use up to 256 MiB, 1 GiB over all passes and 16 lanes, with a digest of 16 to 64 bytes"
	problemBcrypt = "is too expensive to verify, or too weak: the cost of bcrypt may be 4 to 15"
	problemScrypt = "is too expensive to verify, or too weak: scrypt may use up to 256 MiB (128 * r * N), 1 GiB over all p and an r of 256, with a digest of 16 to 64 bytes"
	problemPBKDF2 = "is too expensive to verify, or too weak: PBKDF2 may have up to 4,000,000 rounds over all blocks of its digest of 16 to 64 bytes"
)

// HashProblem says why a hash that another system has made cannot be stored, in words that read on after the name of a
// field and do not quote it. It is empty for what Verify can compute.
func HashProblem(encoded string) string {
	_, problem := inspect(encoded)
	return problem
}

// measured is what an encoded hash tells about itself.
type measured struct {
	algorithm algorithm
	current   bool // a hash made today would not be stronger
	costly    bool // verifying it takes much more than verifying one of ours
}

// inspect reads the algorithm and the cost of an encoded hash. There is a problem with what is malformed, unknown or
// beyond the bounds.
//
// It is stricter than the parsers that verify the hash, so that what it measured is what they compute.
func inspect(encoded string) (m measured, problem string) {
	if len(encoded) > maxEncodedLength || !strings.HasPrefix(encoded, "$") {
		return measured{}, problemForm
	}
	for i := range len(encoded) {
		if encoded[i] <= ' ' || encoded[i] > '~' {
			return measured{}, problemForm
		}
	}
	id, rest, _ := strings.Cut(encoded[1:], "$")
	fields := strings.Split(rest, "$")
	switch id {
	case "argon2id", "argon2i":
		m, problem = inspectArgon2(fields)
		m.current = m.current && id == "argon2id"
	case "2a", "2b", "2y":
		m, problem = inspectBcrypt(fields)
	case "scrypt", "7":
		m, problem = inspectScrypt(fields)
	case "pbkdf2":
		m, problem = inspectPBKDF2(fields, 20)
	case "pbkdf2-sha224":
		m, problem = inspectPBKDF2(fields, 28)
	case "pbkdf2-sha256":
		m, problem = inspectPBKDF2(fields, 32)
	case "pbkdf2-sha384":
		m, problem = inspectPBKDF2(fields, 48)
	case "pbkdf2-sha512":
		m, problem = inspectPBKDF2(fields, 64)
	default:
		problem = problemForm
	}
	return m, problem
}

// inspectArgon2 reads v=19, m=19456,t=2,p=1, salt, digest.
func inspectArgon2(fields []string) (m measured, problem string) {
	if len(fields) != 4 || fields[0] != "v=19" {
		return m, problemForm
	}
	n, ok := numbers(fields[1], "m", "t", "p")
	if !ok || !isBase64(fields[2]) || !isBase64(fields[3]) {
		return m, problemForm
	}
	kib, passes, lanes := n[0], n[1], n[2]
	salt, digest := decodedLength(fields[2]), decodedLength(fields[3])
	if kib > maxMemory>>10 || passes < 1 || kib*passes > maxMemoryWork>>10 || lanes < 1 || lanes > maxLanes ||
		!digestInBounds(digest) {
		return m, problemArgon2
	}
	return measured{
		algorithm: algorithmArgon2,
		// Fewer passes over more memory are as good: one pass over 64 MiB is not weaker than two over 19 MiB.
		current: kib >= argon.MemoryKiB && kib*passes >= argon.MemoryKiB*argon.Passes && salt >= saltLength &&
			digest >= argon.KeyLength,
		costly: kib > usualMemory>>10 || kib*passes > usualMemoryWork>>10,
	}, ""
}

// inspectBcrypt reads the cost, then salt and digest in one.
func inspectBcrypt(fields []string) (m measured, problem string) {
	if len(fields) != 2 || len(fields[0]) != 2 || len(fields[1]) != 53 || !within(fields[1], "./") {
		return m, problemForm
	}
	cost, err := strconv.ParseUint(fields[0], 10, 8)
	switch {
	case err != nil:
		return m, problemForm
	case cost < minBcryptCost || cost > maxBcryptCost:
		return m, problemBcrypt
	}
	return measured{algorithm: algorithmBcrypt, costly: cost > usualBcryptCost}, ""
}

// inspectScrypt reads ln=15,r=8,p=1, salt, digest.
func inspectScrypt(fields []string) (m measured, problem string) {
	if len(fields) != 3 {
		return m, problemForm
	}
	n, ok := numbers(fields[0], "ln", "r", "p")
	if !ok || !isBase64(fields[1]) || !isBase64(fields[2]) {
		return m, problemForm
	}
	logN, r, p := n[0], n[1], n[2]
	if logN < 1 || logN > maxScryptLogN || r < 1 || r > maxScryptBlocks || p < 1 || p > maxLanes {
		return m, problemScrypt
	}
	memory := 128 * r << logN
	if memory > maxMemory || memory*p > maxMemoryWork || !digestInBounds(decodedLength(fields[2])) {
		return m, problemScrypt
	}
	return measured{algorithm: algorithmScrypt, costly: memory > usualMemory || memory*p > usualMemoryWork}, ""
}

// inspectPBKDF2 reads the rounds, as a number or as i=1000,l=32, then salt, digest. Every block of the hash function's
// size takes all rounds again.
func inspectPBKDF2(fields []string, blockSize int) (m measured, problem string) {
	if len(fields) != 3 || !isLooseBase64(fields[1]) || !isLooseBase64(fields[2]) {
		return m, problemForm
	}
	digest := decodedLength(fields[2])
	rounds, ok := pbkdf2Rounds(fields[0], digest)
	if !ok {
		return m, problemForm
	}
	if rounds < 1 || !digestInBounds(digest) {
		return m, problemPBKDF2
	}
	all := rounds * uint64((digest+blockSize-1)/blockSize)
	if all > maxPBKDF2Rounds {
		return m, problemPBKDF2
	}
	return measured{algorithm: algorithmPBKDF2, costly: all > usualPBKDF2Rounds}, ""
}

// pbkdf2Rounds reads 1000 (the modular crypt form), i=1000 or i=1000,l=32 (the PHC form, perhaps with the digest's
// length).
func pbkdf2Rounds(text string, digest int) (rounds uint64, ok bool) {
	if n, ok := numbers(text, "i", "l"); ok {
		return n[0], n[1] == uint64(digest)
	}
	if n, ok := numbers(text, "i"); ok {
		return n[0], true
	}
	rounds, err := strconv.ParseUint(text, 10, 32)
	return rounds, err == nil
}

// isBase64 tells whether text is the one form of some bytes, at least one, in base64 without padding.
func isBase64(text string) bool {
	_, err := base64.RawStdEncoding.Strict().DecodeString(text)
	return err == nil && text != ""
}

// isLooseBase64 tells the same of the base64 of PBKDF2: with + or . for 62, perhaps padded, and with any bits at the
// end.
func isLooseBase64(text string) bool {
	text = strings.TrimRight(text, "=")
	if !strings.Contains(text, "+") {
		text = strings.ReplaceAll(text, ".", "+")
	}
	_, err := base64.RawStdEncoding.DecodeString(text)
	return err == nil && text != ""
}

// within tells whether text has letters, digits and these others only.
func within(text, others string) bool {
	for i := range len(text) {
		if c := text[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
			strings.IndexByte(others, c) >= 0) {
			return false
		}
	}
	return true
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
