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
	"time"

	"github.com/zitadel/passwap/argon2"
	"github.com/zitadel/passwap/bcrypt"
	"github.com/zitadel/passwap/pbkdf2"
	"github.com/zitadel/passwap/scrypt"
	"github.com/zitadel/passwap/verifier"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret/argon"
	"github.com/signet-idm/signet/internal/base/tracing"
)

// ReasonHashingBusy says that so many passwords wait to be hashed that one more would not be served in time.
const ReasonHashingBusy errs.Reason = "PASSWORD_HASHING_BUSY"

// ErrBusy is the refusal of work that would wait behind too much other work.
var ErrBusy = &errs.Error{Kind: errs.Unavailable, Reason: ReasonHashingBusy, RetryAfter: time.Second,
	Message: "too many passwords are being checked: try again shortly"}

// maxWaitingBytes bounds what those who wait keep in memory: those whom we know, and the public.
const maxWaitingBytes = 8 << 20

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
// methods share slots: at most so many of them work at the same time. The others wait, and the organizations that they
// work for take turns, see package fairqueue and For. Within an organization, callers who are authorised go first in
// three turns of four, see Public, and those go by the networks they come from. Who finds the line full, or 8 MiB
// waiting in it, gets ErrBusy or fairqueue.ErrUsedUp. So does whose deadline passes in it; a caller who leaves gets
// ctx.Err().
//
// A hash of another system may take a hundred times as long, and more memory. Such hashes get at most half of the
// slots, and wait for them in queues of their own. So a caller who may import users cannot keep everybody else from
// signing in.
//
// Passwords may have any length and hold any bytes; all of them count. A Hasher is safe for concurrent use.
type Hasher struct {
	limit     *fairqueue.Slots
	costly    *fairqueue.Slots // in front of limit
	claim     fairqueue.Claim  // Bytes are those that a caller keeps in memory besides the password
	cheap     bool             // see NewCheapHasher
	timed     func(waited, worked time.Duration)
	turns     func(org string) // see Turns
	others    *fairqueue.Slots // see Before
	room      int              // of others that a password takes
	hash      func(password string) []byte
	verifiers map[algorithm]verifier.Verifier
}

// NewHasher makes a Hasher for authorised callers. Numbers below one mean the default: a slot per processor, a queue of
// 1024. The public queue has room for a quarter of them, so that what is in it waits for a few seconds at most.
func NewHasher(slots, queue int) *Hasher {
	if slots < 1 {
		slots = runtime.GOMAXPROCS(0)
	}
	if queue < 1 {
		queue = 1024
	}
	bounds := fairqueue.Bounds{Slots: slots, Waiting: queue, Public: max(1, queue/4),
		Bytes: maxWaitingBytes, Full: ErrBusy}
	half := bounds
	half.Slots = max(1, slots/2)
	return &Hasher{
		limit:  fairqueue.New(bounds),
		costly: fairqueue.New(half),
		hash:   hash,
		timed:  func(time.Duration, time.Duration) {},
		turns:  func(string) {},
		verifiers: map[algorithm]verifier.Verifier{
			algorithmArgon2: verifier.VerifyFunc(verifyArgon2),
			algorithmBcrypt: bcrypt.Verifier,
			algorithmScrypt: scrypt.Verifier,
			algorithmPBKDF2: verifier.VerifyFunc(verifyPBKDF2),
		},
	}
}

// For is the same Hasher for work that an organization's people ask for.
func (h *Hasher) For(org string) *Hasher {
	view := *h
	view.claim = fairqueue.Claim{Org: org}
	return &view
}

// Public is the same Hasher for work that anybody can ask for, such as signing in to an organization from a network: it
// has every fourth turn where the organization's own people ask for more. held is how many bytes the request keeps in
// memory besides the password.
func (h *Hasher) Public(org, network string, held int) *Hasher {
	view := *h
	view.claim = fairqueue.Claim{Org: org, Network: network, Public: true, Bytes: held}
	return &view
}

// Timed is the same Hasher that tells how long each password waited for its slot, and how long the work took.
func (h *Hasher) Timed(tell func(waited, worked time.Duration)) *Hasher {
	view := *h
	view.timed = tell
	return &view
}

// Before is the same Hasher whose work goes before that of others: while a password is hashed, so many of their slots
// stay empty.
func (h *Hasher) Before(others *fairqueue.Slots, slots int) *Hasher {
	view := *h
	view.others, view.room = others, slots
	return &view
}

// Turns is the same Hasher that tells whose turn it is, in the slot. Tests follow by it in which order passwords are
// hashed.
func (h *Hasher) Turns(tell func(org string)) *Hasher {
	view := *h
	view.turns = tell
	return &view
}

// Slots are those of all hashes, and those of hashes that take long.
func (h *Hasher) Slots() (all, costly *fairqueue.Slots) { return h.limit, h.costly }

func (h *Hasher) do(ctx context.Context, slots *fairqueue.Slots, password string, work func() error) error {
	claim := h.claim
	claim.Bytes += len(password)
	_, waiting := tracing.Start(ctx, "password.queue")
	err := slots.Do(ctx, claim, func() error {
		waiting.End(nil)
		return work()
	})
	waiting.End(err)
	return err
}

// inSlot is do for the work itself.
func (h *Hasher) inSlot(ctx context.Context, password string, work func() error) error {
	queued := time.Now()
	return h.do(ctx, h.limit, password, func() error {
		h.turns(h.claim.Org)
		begun := time.Now()
		_, hashing := tracing.Start(ctx, "password.hash")
		defer hashing.End(nil)
		defer func() { h.timed(begun.Sub(queued), time.Since(begun)) }()
		return h.others.Lend(h.room, work)
	})
}

// Hash returns the hash to store for password, in the PHC string format.
func (h *Hasher) Hash(ctx context.Context, password string) ([]byte, error) {
	var encoded []byte
	err := h.inSlot(ctx, password, func() error {
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
	m.current = m.current || h.cheap && strings.HasPrefix(string(encoded), cheapPrefix)
	if problem != "" {
		if err := h.VerifyNothing(ctx, password); err != nil {
			return false, nil, err
		}
		return false, nil, ErrUnusableHash
	}
	work := func() error {
		return h.inSlot(ctx, password, func() (err error) {
			ok, upgraded, err = h.verify(m, string(encoded), password)
			return err
		})
	}
	if m.costly {
		err = h.do(ctx, h.costly, password, work)
	} else {
		err = work()
	}
	return ok, upgraded, err
}

// VerifyNothing does the work of a Verify that fails. It is for sign-ins of users who do not exist or have no password,
// so that the time of the answer does not tell. It returns the limiter's errors only.
func (h *Hasher) VerifyNothing(ctx context.Context, password string) error {
	return h.inSlot(ctx, password, func() error {
		h.spend(password)
		return nil
	})
}

func hash(password string) []byte { return salted(currentPrefix, argon.Key, password) }

// salted is the hash of a password with a new salt, in the PHC string format.
func salted(prefix string, key func(password, salt []byte) []byte, password string) []byte {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // it never fails: crypto/rand ends the program instead
	encoding := base64.RawStdEncoding
	encoded := encoding.AppendEncode([]byte(prefix), salt)
	return encoding.AppendEncode(append(encoded, '$'), key([]byte(password), salt))
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
	compared := nothing
	if h.cheap {
		compared = cheapNothing
	}
	_, _ = h.verifiers[algorithmArgon2].Verify(compared, password)
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

// NewCode returns a random code for a person to copy: 8 capital letters and digits, 40 bits. 40 bits can be guessed, so
// the caller that checks a code must limit the wrong attempts.
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
