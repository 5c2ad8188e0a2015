package trial

import (
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
)

// Code is a stable name of something that stands out about an authorization request.
type Code string

// The codes.
const (
	AppInactive      Code = "application_inactive"
	OrgInactive      Code = "organization_inactive"
	NoCodeGrant      Code = "no_authorization_code"
	RedirectRefused  Code = "redirect_not_registered"
	ParameterRefused Code = "parameter_refused"

	ScopeUnknown        Code = "scope_unknown"
	ScopeNotAllowed     Code = "scope_not_allowed"
	NoRefreshTokens     Code = "no_refresh_tokens"
	AudienceNotApproved Code = "audience_not_approved"
	NoOpenID            Code = "no_openid"
	ACRUnknown          Code = "acr_unknown"

	NoPKCE         Code = "no_pkce"
	NoRegistration Code = "no_registration"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error" // the request is refused because of it
)

// Finding is something that stands out about an authorization request.
type Finding struct {
	Severity  Severity
	Code      Code
	Parameter string // that it is about; empty: the application
	Value     string // the part of it that it is about
	Said      string // by the rule that refuses; empty: the text of the code
}

// findings say the codes in English. % stands for the value.
var findings = map[Code]string{
	AppInactive:         "The application is inactive: nobody can sign in to it.",
	OrgInactive:         "The application's organization is inactive: nobody can sign in to its applications.",
	NoCodeGrant:         "The application does not have the grant type authorization_code: nobody can sign in to it in a browser.",
	RedirectRefused:     "% is not registered with the application. The person would see an error page.",
	ScopeUnknown:        "The scope % means nothing here and is ignored.",
	ScopeNotAllowed:     "The application is not allowed to have the scope %. It is ignored.",
	NoRefreshTokens:     "The application does not have the grant type refresh_token. The scope % is ignored.",
	AudienceNotApproved: "The application in the scope % does not exist, is inactive, or has not approved this application. The scope is ignored.",
	NoOpenID:            "Without the scope openid there is no ID token and no user info.",
	ACRUnknown:          "The value % of acr_values means nothing here and is ignored.",
	NoPKCE:              "The request has no code_challenge. PKCE protects the code also for applications with a secret.",
	NoRegistration:      "A trial makes no account: the page for new accounts is left out.",
}

// Message says a finding in English.
func (f Finding) Message() string {
	if f.Said != "" {
		return f.Said
	}
	return strings.ReplaceAll(findings[f.Code], "%", f.Value)
}

// StandsOut says what is ignored of a request, or is probably not meant. unaskable tells why a scope cannot be given;
// empty where it can.
func StandsOut(a request.Ask, unaskable func(scope string) Code) (found []Finding) {
	scopes := strings.Fields(a.Scope)
	for _, s := range scopes {
		if code := unaskable(s); code != "" {
			found = append(found, Finding{Severity: Warning, Code: code, Parameter: "scope", Value: s})
		}
	}
	if !slices.Contains(scopes, claimset.OpenID) {
		found = append(found, Finding{Severity: Warning, Code: NoOpenID, Parameter: "scope"})
	}
	for _, level := range strings.Fields(a.ACRValues) {
		if level != claimset.SingleFactor && level != claimset.MultiFactor {
			found = append(found, Finding{Severity: Warning, Code: ACRUnknown, Parameter: "acr_values", Value: level})
		}
	}
	if a.CodeChallenge == "" {
		found = append(found, Finding{Severity: Info, Code: NoPKCE, Parameter: "code_challenge"})
	}
	if slices.Contains(strings.Fields(a.Prompt), request.PromptCreate) {
		found = append(found, Finding{Severity: Info, Code: NoRegistration, Parameter: "prompt",
			Value: request.PromptCreate})
	}
	return found
}
