package api

import (
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/policy"
)

var registrationModes = enum[signetv1.RegistrationMode, policy.Openness]{
	signetv1.RegistrationMode_REGISTRATION_MODE_UNSPECIFIED:    policy.ToNobody,
	signetv1.RegistrationMode_REGISTRATION_MODE_OPEN:           policy.ToAll,
	signetv1.RegistrationMode_REGISTRATION_MODE_PROVEN_DOMAINS: policy.ToDomains,
}

// registrationPolicy reads what a policy says about registration.
func registrationPolicy(p *signetv1.Policy) policy.Registering {
	return policy.Registering{Registration: registrationModes[p.GetRegistration()], TermsURI: p.GetTermsUri(),
		PrivacyURI: p.GetPrivacyUri()}
}

// showRegistrationPolicy puts it into a policy.
func showRegistrationPolicy(r policy.Registering, into *signetv1.Policy) *signetv1.Policy {
	into.Registration, into.TermsUri, into.PrivacyUri = registrationModes.number(r.Registration),
		r.TermsURI, r.PrivacyURI
	return into
}

// registrationWarning is about a policy under which nobody can register all the same; nil where there is nothing to
// say.
func registrationWarning(p *signetv1.Policy, mail bool) *signetv1.PolicyWarning {
	if mail || registrationPolicy(p).Registration == policy.ToNobody {
		return nil
	}
	return &signetv1.PolicyWarning{Reason: signetv1.PolicyWarning_REASON_NO_MAIL,
		Message: "nobody can register yet, because this installation sends no mail: the operator has to set --smtp-url and --smtp-from first"}
}
