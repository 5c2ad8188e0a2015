package user

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Terms are what a person has accepted, and when.
type Terms struct {
	URI string `json:"uri"`
	At  int64  `json:"at"`
}

// TermsAccepted records that the person has accepted the terms of the organization.
type TermsAccepted struct {
	URI string `json:"uri"`
	At  int64  `json:"at"`
}

// EventType implements event.Fact.
func (TermsAccepted) EventType() event.Type { return "user.terms_accepted.v1" }

// Since implements event.Gated: a node of before does not know the fact.
func (TermsAccepted) Since() int { return groupVersion }

// Apply implements event.Fact.
func (e TermsAccepted) Apply(u *User) {
	if u.Human != nil {
		u.Human.Terms = &Terms{URI: e.URI, At: e.At}
	}
}

// TermsField is the field that says which terms somebody accepts.
const TermsField = "acceptedTermsUri"

// AcceptTerms records that a new person accepts the terms of the organization, which are asked for at this moment;
// none: nothing is recorded. Errors: InvalidArgument on TermsField where the person has accepted others, or none.
func AcceptTerms(tx *event.Tx, u *event.Object[User], asked, accepted string) error {
	if asked == "" {
		return nil
	}
	if accepted != asked {
		return TermsNotAccepted(asked)
	}
	return u.Append(TermsAccepted{URI: asked, At: tx.Now()})
}

// TermsNotAccepted says that others were accepted than those that are asked for, or none.
func TermsNotAccepted(asked string) error {
	return errs.Invalid(errs.Violation{Field: TermsField,
		Message: "must be " + asked + ": the person has to accept the terms at this address"})
}
