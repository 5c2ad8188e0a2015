package secret

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/zitadel/passwap/argon2"
	"github.com/zitadel/passwap/bcrypt"
	"github.com/zitadel/passwap/pbkdf2"
	"github.com/zitadel/passwap/scrypt"
	"github.com/zitadel/passwap/verifier"

	"github.com/signet-idm/signet/internal/secret/argon"
)

// ErrUnusableHash is returned by Verify for a stored hash that is malformed, of an unknown algorithm or so costly that
// it must not be computed. No password can match it.
var ErrUnusableHash = errors.New("secret: the stored password hash cannot be used")

// currentPrefix starts every new hash: argon2id over 19 MiB, the smallest of the settings that OWASP recommends.
var currentPrefix = fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$", argon.MemoryKiB, argon.Passes, argon.Lanes)

const saltLength = 16

// nothing is a well-formed hash of the current cost that is compared with when there is no user.
var nothing = currentPrefix + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)

// bcryptLength is the number of bytes that bcrypt looks at.
const bcryptLength = 72

// Hasher makes and verifies password hashes.
//
// A hash takes tens of milliseconds of a core and 19 MiB, so a flood of sign-ins could take the whole server. All
// methods share one limiter: at most slots of them work at the same time. The others wait, in one queue for callers who
// are authorised and, see Public, in another for everybody else; a free slot goes to the authorised first. Who finds the
// queue full, or 8 MiB waiting in it, gets ErrBusy at once. A caller whose ctx ends while it waits gets ctx.Err().
//
// A hash of another system may take a hundred times as long, and more memory. Those that do get half of the slots at most, and
// wait for these in queues of their own: whoever can import users cannot keep everybody else from signing in.
//
// Passwords may have any length and hold any bytes; all of them count. A Hasher is safe for concurrent use.
type Hasher struct {
	limit     *limiter
	costly    *limiter // in front of limit
	class     class
	held      int // bytes that a caller keeps in memory besides the password
	hash      func(password string) []byte
	verifiers map[algorithm]verifier.Verifier
}

// NewHasher makes a Hasher for authorised callers. Numbers below one mean the default: a slot per processor, a queue of
// 1024. The public queue has a quarter of the places, so that what is in it waits for a few seconds at most.
func NewHasher(slots, queue int) *Hasher {
	if slots < 1 {
		slots = runtime.GOMAXPROCS(0)
	}
	if queue < 1 {
		queue = 1024
	}
	waiting := [classes]int{authorised: queue, public: max(1, queue/4)}
	return &Hasher{
		limit:  newLimiter(slots, waiting),
		costly: newLimiter(max(1, slots/2), waiting),
		hash:   hash,
		verifiers: map[algorithm]verifier.Verifier{
			algorithmArgon2: verifier.VerifyFunc(verifyArgon2),
			algorithmBcrypt: bcrypt.Verifier,
			algorithmScrypt: scrypt.Verifier,
			algorithmPBKDF2: verifier.VerifyFunc(verifyPBKDF2),
		},
	}
}

// Public is the same Hasher for work that anybody can ask for, such as signing in: it stands back behind authorised work,
// however much there is of it. held is how many bytes the request keeps in memory besides the password.
func (h *Hasher) Public(held int) *Hasher {
	view := *h
	view.class, view.held = public, held
	return &view
}

func (h *Hasher) do(ctx context.Context, password string, work func() error) error {
	return h.limit.do(ctx, h.class, h.held+len(password), work)
}

// Hash returns the hash to store for password, in the PHC string format.
func (h *Hasher) Hash(ctx context.Context, password string) ([]byte, error) {
	var encoded []byte
	err := h.do(ctx, password, func() error {
		encoded = h.hash(password)
		return nil
	})
	return encoded, err
}

// Verify says whether password is the one that encoded was made of: by Hash, or by another system with argon2, bcrypt,
// scrypt or PBKDF2. A wrong password is not an error.
//
// When the password is right and encoded is weaker than what Hash makes now, upgraded is a new hash of the same
// password to store instead. An argon2id hash that is as strong or stronger is left alone.
//
// ErrUnusableHash comes after the work of a wrong password, so that a caller may answer as for one.
func (h *Hasher) Verify(ctx context.Context, encoded []byte, password string) (ok bool, upgraded []byte, err error) {
	m, problem := inspect(string(encoded))
	if problem != "" {
		if err := h.VerifyNothing(ctx, password); err != nil {
			return false, nil, err
		}
		return false, nil, ErrUnusableHash
	}
	work := func() error {
		return h.do(ctx, password, func() (err error) {
			ok, upgraded, err = h.verify(m, string(encoded), password)
			return err
		})
	}
	if m.costly {
		err = h.costly.do(ctx, h.class, h.held+len(password), work)
	} else {
		err = work()
	}
	return ok, upgraded, err
}

// VerifyNothing does the work of a Verify that fails. It is for sign-ins of users who do not exist or have no password,
// so that the time of the answer does not tell. It returns the limiter's errors only.
func (h *Hasher) VerifyNothing(ctx context.Context, password string) error {
	return h.do(ctx, password, func() error {
		h.spend(password)
		return nil
	})
}

func hash(password string) []byte {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // it never fails: crypto/rand ends the program instead
	encoding := base64.RawStdEncoding
	encoded := encoding.AppendEncode([]byte(currentPrefix), salt)
	return encoding.AppendEncode(append(encoded, '$'), argon.Key([]byte(password), salt))
}

// verifyArgon2 computes what Hash makes in memory that is used again, and leaves every other cost to the library.
func verifyArgon2(encoded, password string) (verifier.Result, error) {
	if rest, ok := strings.CutPrefix(encoded, currentPrefix); ok {
		salt, want, _ := strings.Cut(rest, "$")
		salted, saltErr := base64.RawStdEncoding.DecodeString(salt)
		digest, digestErr := base64.RawStdEncoding.DecodeString(want)
		if saltErr == nil && digestErr == nil && len(digest) == argon.KeyLength {
			if subtle.ConstantTimeCompare(digest, argon.Key([]byte(password), salted)) == 1 {
				return verifier.OK, nil
			}
			return verifier.Fail, nil
		}
	}
	return argon2.Verifier.Verify(encoded, password)
}

// verifyPBKDF2 gives the library, which knows the modular crypt form only, both forms.
func verifyPBKDF2(encoded, password string) (verifier.Result, error) {
	fields := strings.Split(encoded, "$") // the first one is empty
	rounds, _, _ := strings.Cut(strings.TrimPrefix(fields[2], "i="), ",")
	fields[2] = rounds
	return pbkdf2.Verify(strings.Join(fields, "$"), password)
}

// verify checks a password against a hash that inspect has nothing against.
func (h *Hasher) verify(m measured, encoded, password string) (ok bool, upgraded []byte, err error) {
	// The verifier's error is dropped because it may quote the hash.
	result, err := h.verifiers[m.algorithm].Verify(encoded, password)
	switch {
	case err != nil:
		h.spend(password)
		return false, nil, ErrUnusableHash
	case result != verifier.OK || !allBytesCount(m.algorithm, password):
		if !m.current {
			h.spend(password) // or a hash that is cheaper than ours would tell by its time that there is a user
		}
		return false, nil, nil
	case m.current:
		return true, nil, nil
	}
	return true, h.hash(password), nil
}

func (h *Hasher) spend(password string) {
	_, _ = h.verifiers[algorithmArgon2].Verify(nothing, password)
}

// allBytesCount is false for passwords of which an older algorithm does not see everything: bcrypt stops after 72
// bytes, and bcrypt and HMAC do not tell a zero byte from the padding. Such a password would match the hash of another
// one and then be stored as the user's own, so it matches none. The user whose old system cut the password off signs
// in with its first 72 bytes or has it reset.
func allBytesCount(alg algorithm, password string) bool {
	switch alg {
	case algorithmArgon2:
		return true
	case algorithmBcrypt:
		return len(password) <= bcryptLength && !strings.Contains(password, "\x00")
	default:
		return !strings.Contains(password, "\x00")
	}
}

// passwordAlphabet leaves out the characters that are mistaken for each other: 0 and O, 1 and l and I, and o.
const passwordAlphabet = "23456789abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"

const passwordLength = 20

// NewPassword returns a random password for a person to type once: 20 letters and digits, 116 bits.
func NewPassword() string { return randomText(passwordAlphabet, passwordLength) }

// codeAlphabet is what is left of it for those who type in any case.
const codeAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"

const (
	codeLength     = 8
	linkCodeLength = 20
)

// NewCode returns a random code for a person to copy: 8 capital letters and digits, 40 bits. That is little, so whoever
// checks it counts the wrong attempts.
func NewCode() string { return randomText(codeAlphabet, codeLength) }

// NewLinkCode returns a random code for a link: 20 capital letters and digits, 100 bits, which nobody guesses.
func NewLinkCode() string { return randomText(codeAlphabet, linkCodeLength) }

// randomText picks characters of an alphabet, each as likely as the others.
func randomText(alphabet string, length int) string {
	unbiased := 256 - 256%len(alphabet)
	text := make([]byte, 0, length)
	random := make([]byte, 2*length)
	for {
		_, _ = rand.Read(random) // it never fails: crypto/rand ends the program instead
		for _, b := range random {
			if int(b) >= unbiased {
				continue
			}
			text = append(text, alphabet[int(b)%len(alphabet)])
			if len(text) == length {
				return string(text)
			}
		}
	}
}
