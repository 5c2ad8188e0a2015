package user

import (
	"fmt"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
)

// Verifier says on whose word an e-mail address counts as a person's.
type Verifier string

// The verifiers. Before they were recorded there were none of these in facts.
const (
	VerifiedByOwner         Verifier = "owner"         // by a code that was sent to the address
	VerifiedByInstallation  Verifier = "installation"  // somebody who may change the users of every organization, or set one up, said so
	VerifiedByAdministrator Verifier = "administrator" // somebody of the organization said so, or handed over the code
)

// Verification is on whose word an e-mail address counts, and since when.
type Verification struct {
	By Verifier `json:"by,omitempty"`
	At int64    `json:"at,omitempty"`
}

// verifierOf is what the word of a caller is worth who changes users.
func verifierOf(permit access.Permit) Verifier {
	if permit.Holds(access.UserWrite, access.Installation) {
		return VerifiedByInstallation
	}
	return VerifiedByAdministrator
}

// order is what users with the same verified address are sorted by: whoever comes first is found by it. That is the one whose
// address was verified first, owners before those whom an administrator vouches for, so that nobody takes somebody's
// way in away by adding a twin. What was verified before this was recorded comes before everything since.
func (e *Email) order() string {
	if !e.Verified {
		return ""
	}
	rank := 1
	if e.Verification.By == VerifiedByOwner || e.Verification == (Verification{}) {
		rank = 0
	}
	return fmt.Sprintf("%d%020d", rank, e.Verification.At)
}

// FirstByEmail is the lookup column that sorts users with the same VerifiedEmail.
const (
	VerifiedEmail = "verified_email"
	FirstByEmail  = "email_order"
)

// said is the verification of an address that somebody says is verified, from now on; nil where nobody does.
func said(tx *event.Tx, verified bool, by Verifier) *Verification {
	if !verified {
		return nil
	}
	return &Verification{By: by, At: tx.Now()}
}
