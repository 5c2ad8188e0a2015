package user

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Verifier says on whose word an e-mail address counts as a person's.
type Verifier string

// The verifiers.
const (
	VerifiedByOwner    Verifier = "owner"    // by a code or a link that was sent to the address
	VerifiedByProvider Verifier = "provider" // an identity provider said so
	// somebody with a role in the installation said so, or was shown the code
	VerifiedByInstallation  Verifier = "installation"
	VerifiedByAdministrator Verifier = "administrator" // somebody of the organization said so, or was shown the code
)

// Verification is on whose word an e-mail address counts, and since when.
type Verification struct {
	By  Verifier `json:"by,omitempty"`
	At  int64    `json:"at,omitempty"`
	Org string   `json:"org,omitempty"` // that owns the provider, where it is a provider's word

	// Assumed says that the event did not record it, as the first ones did not.
	Assumed bool `json:"assumed,omitempty"`
}

// VerifierOf is what the word of a caller is worth who changes users.
func VerifierOf(permit access.Permit) Verifier {
	if permit.ForInstallation(access.UserWrite) {
		return VerifiedByInstallation
	}
	return VerifiedByAdministrator
}

// assume is for an event that says that the address is verified and does not say on whose word.
func (e *Email) assume(by Verifier, at *event.Event) {
	if e.Verified {
		e.Verification = Verification{By: by, At: at.Time, Assumed: true}
	}
}

// order is the sort key of users with the same verified address: a lookup by the address finds the first of them. That
// is the user whose address was verified first; addresses that their owners proved come before those that somebody else
// vouches for. So nobody can take away a user's way to sign in by adding a second user with the same address.
func (e *Email) order() string {
	if !e.Verified {
		return ""
	}
	rank := 1
	if e.Verification.By == VerifiedByOwner {
		rank = 0
	}
	return fmt.Sprintf("%d%020d", rank, e.Verification.At)
}

// Lookup columns of verified addresses. FirstByEmail sorts users with the same VerifiedEmail, or EmailWord.
const (
	VerifiedEmail = "verified_email"
	FirstByEmail  = "email_order"
	EmailWord     = "email_word"
)

// word is what a verified address is found by over the whole installation: the address with the organization on whose
// word it counts, if it is the word of one.
func (e *Email) word(org string) string {
	switch v := e.Verification; {
	case v.By == VerifiedByOwner, v.By == VerifiedByInstallation:
		return EmailDigest(e.Key)
	case v.By == VerifiedByProvider && v.Org != "":
		return wordOf(v.By, v.Org, e.Key)
	case v.By == VerifiedByAdministrator:
		return wordOf(v.By, org, e.Key)
	}
	return ""
}

// emailColumns are the values of the lookup columns of a verified address, and what they were worked out from. That
// takes as long as encoding a state does, and most changes are about something else.
type emailColumns struct {
	email Email
	org   string
	short bool

	verified, order, word string
}

func (u *User) emailColumns(org string, short bool) *emailColumns {
	if u.Human == nil || !u.Human.Email.Verified {
		return &emailColumns{}
	}
	e := u.Human.Email
	if c := u.Human.emailColumns; c != nil && c.email == e && c.org == org && c.short == short {
		return c
	}
	c := &emailColumns{email: e, org: org, short: short, verified: EmailDigest(e.Key), order: e.order(),
		word: e.word(org)}
	if short {
		c.verified, c.word = shortDigest(c.verified), shortDigest(c.word)
	}
	u.Human.emailColumns = c
	return c
}

func wordOf(by Verifier, org, key string) string {
	return EmailDigest(string(by) + "\x00" + org + "\x00" + key)
}

// TrustedWords are values of EmailWord: those of an address that is verified on a word which counts in all
// organizations. That is the owner's; that of a provider of the default organization or of the one that has proven the
// address's domain by DNS; that of somebody with a role in the installation; and that of an administrator of the
// organization that has proven the domain. prover is empty where none has.
func TrustedWords(key, defaultOrg, prover string) []string {
	words := []string{EmailDigest(key), wordOf(VerifiedByProvider, defaultOrg, key)}
	if prover != "" && prover != defaultOrg {
		words = append(words, wordOf(VerifiedByProvider, prover, key))
	}
	if prover != "" {
		words = append(words, wordOf(VerifiedByAdministrator, prover, key))
	}
	return words
}

// Trusted tells whether the address of a person is verified on a word that counts in all organizations.
func Trusted(u *event.Object[User], defaultOrg, prover string) bool {
	if u.Data.Human == nil || !u.Data.Human.Email.Verified {
		return false
	}
	email := &u.Data.Human.Email
	return slices.Contains(TrustedWords(email.Key, defaultOrg, prover), email.word(u.Org))
}

// Said is the verification of an address that somebody says is verified, from now on; nil where nobody does.
func Said(tx *event.Tx, verified bool, by Verifier) *Verification {
	if !verified {
		return nil
	}
	return &Verification{By: by, At: tx.Now()}
}

// saidOver is said for an address in the place of another one. One that is found by the same form and stays verified
// keeps its verification: the older word counts for more. But the word of the installation takes the place of an
// administrator's, from the same time on.
func saidOver(tx *event.Tx, old Email, key string, verified bool, by Verifier) *Verification {
	if !verified || !old.Verified || old.Key != key {
		return Said(tx, verified, by)
	}
	if by == VerifiedByInstallation && old.Verification.By == VerifiedByAdministrator {
		return &Verification{By: by, At: old.Verification.At}
	}
	return nil
}

// WithEmail reads up to limit users of an organization who have an address in its comparison form, whether or not it is
// verified.
func WithEmail(ctx context.Context, r event.Reader, org, key string,
	limit int) (found []*event.Object[User], err error) {
	records, err := r.RecordsWhere(ctx, Kind.Name(), org, byEmail, event.LookupText(key), FirstByEmail, limit)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		u, err := Kind.Open(rec)
		if err != nil {
			return nil, err
		}
		if u.Data.State != Removed && u.Data.key(byEmail) == key { // the column holds the beginning of it
			found = append(found, u)
		}
	}
	return found, nil
}
