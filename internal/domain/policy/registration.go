package policy

import (
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Openness says who can register in an organization.
type Openness string

// The values. An organization that says nothing registers nobody.
const (
	ToNobody Openness = ""
	ToAll    Openness = "open"
	// people with an e-mail address in a domain that the organization has proven by DNS
	ToDomains Openness = "proven_domains"
)

// Registering is how people make accounts of their own in an organization. Only organizations have it.
type Registering struct {
	Registration Openness `json:"registration,omitempty"`
	TermsURI     string   `json:"termsUri,omitempty"`   // what a new person has to accept; none: nothing
	PrivacyURI   string   `json:"privacyUri,omitempty"` // what is shown beside it
}

// MaxURI bounds the addresses.
const MaxURI = 500

// RegisteringViolations lists what is wrong with it, each field under the given prefix.
func (r Registering) RegisteringViolations(prefix string) (wrong errs.Violations) {
	wrong.Add(prefix+"termsUri", shownAddress(r.TermsURI))
	wrong.Add(prefix+"privacyUri", shownAddress(r.PrivacyURI))
	return wrong
}

// shownAddress is what is wrong with an address that people are led to.
func shownAddress(text string) *errs.Problem {
	if text == "" {
		return nil
	}
	if problem := syntax.Text(text, MaxURI); problem != nil {
		return problem
	}
	u, err := url.Parse(text)
	if err != nil || !strings.HasPrefix(text, "https://") || u.Host == "" || u.User != nil ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return errs.Plain("must be an address that begins with https://, in ASCII and without a user")
	}
	return nil
}

// RegisteringDiff is what differs between two of them.
type RegisteringDiff struct {
	Registration *Openness `json:"registration,omitempty"`
	TermsURI     *string   `json:"termsUri,omitempty"`
	PrivacyURI   *string   `json:"privacyUri,omitempty"`
}

func (r Registering) diffTo(next Registering) RegisteringDiff {
	return RegisteringDiff{Registration: changed(r.Registration, next.Registration),
		TermsURI: changed(r.TermsURI, next.TermsURI), PrivacyURI: changed(r.PrivacyURI, next.PrivacyURI)}
}

func (d RegisteringDiff) apply(r *Registering) {
	set(&r.Registration, d.Registration)
	set(&r.TermsURI, d.TermsURI)
	set(&r.PrivacyURI, d.PrivacyURI)
}
