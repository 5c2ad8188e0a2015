// Package failure describes why a sign-in through an identity provider failed, and records it for the administrators of
// that provider.
package failure

import (
	"fmt"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Failure is a sign-in that a check refused. Nothing in it was written by the provider or by the person.
type Failure struct {
	Check string // which check, one of the constants
	Hint  string // what an administrator can do about it
	Cause error  // for the log
}

func (f *Failure) Error() string {
	if f.Cause != nil {
		return fmt.Sprintf("%s: %s (%v)", f.Check, f.Hint, f.Cause)
	}
	return f.Check + ": " + f.Hint
}

func (f *Failure) Unwrap() error { return f.Cause }

// New makes a failure.
func New(check, hint string) *Failure { return &Failure{Check: check, Hint: hint} }

// Because gives the failure with its cause.
func (f *Failure) Because(cause error) *Failure {
	return &Failure{Check: f.Check, Hint: f.Hint, Cause: cause}
}

// LogoutPrefix begins the checks of logout tokens.
const LogoutPrefix = "logout_"

// SignInRefused is the reason of a sign-in that a check refused, as the log and the metrics tell it.
const SignInRefused errs.Reason = "PROVIDER_SIGN_IN_REFUSED"

// Refusal is the failure as the log tells it. A user who comes back from a provider can cause it, and so can an
// attacker who pretends to: it is no fault of the server. A provider that cannot be reached needs attention, so that
// failure is Unavailable.
func (f *Failure) Refusal() *errs.Error {
	refused := &errs.Error{Kind: errs.FailedPrecondition, Reason: SignInRefused,
		Message: "a check refused what came from the identity provider", Note: f.Check + ": " + f.Hint}
	if f.Away() {
		refused.Kind, refused.Cause = errs.Unavailable, f
	}
	return refused
}

// Away tells whether nothing could be judged, because the provider could not be reached. It does so for logout tokens,
// too, whose checks have a prefix.
func (f *Failure) Away() bool {
	switch strings.TrimPrefix(f.Check, LogoutPrefix) {
	case Unreachable, Discovery, Keys, Busy:
		return true
	}
	return false
}

// The checks. Their names are part of events and never change their meaning.
const (
	State        = "state"         // the state is missing, damaged or not ours
	StateExpired = "state_expired" //
	StateUsed    = "state_used"    //
	Provider     = "provider"      // the attempt was started for another provider
	Browser      = "browser"       // the attempt was started in another browser
	Changed      = "changed"       // the provider was changed since
	Inactive     = "inactive"      // the provider is switched off, or nobody answers for it

	Denied       = "denied"        // the person or the provider said no
	Refused      = "refused"       // the provider did not understand the request
	IssParameter = "iss_parameter" // the answer is of another issuer (RFC 9207)
	Code         = "code"          // there is no code, or the provider does not accept it
	Client       = "client"        // the provider does not accept our client id or secret
	TokenAnswer  = "token_answer"  // the token endpoint answered something else

	Token           = "token" // the token is missing, sent twice, too long or none
	Algorithm       = "algorithm"
	Key             = "key" // no key of the provider has the id that the token names
	Signature       = "signature"
	Issuer          = "issuer"
	Audience        = "audience"
	AuthorizedParty = "azp"
	Expired         = "expired"
	IssuedAt        = "issued_at"
	NotBefore       = "not_before"
	Replayed        = "replayed"
	Subject         = "subject"
	Nonce           = "nonce"
	AccessTokenHash = "at_hash"
	Tenant          = "tenant"

	TokenID = "jti"    // of a logout token
	Event   = "events" // the token is no logout token
	Session = "sid"

	UserInfo        = "userinfo"
	UserInfoSubject = "userinfo_subject"

	Configuration = "configuration" // something that only an administrator can mend
	Address       = "address"       // the server does not call this address
	Discovery     = "discovery"
	Keys          = "keys" // the key set cannot be fetched
	Unreachable   = "unreachable"
	Busy          = "busy"
)
