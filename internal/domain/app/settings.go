package app

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Bounds and defaults of the lives of tokens, in seconds.
const (
	minTokenSeconds     = 300
	maxAccessSeconds    = 24 * 60 * 60
	maxRefreshSeconds   = 90 * 24 * 60 * 60
	defaultAccessToken  = 60 * 60
	defaultRefreshToken = 30 * 24 * 60 * 60
)

// Bounds of addresses.
const (
	maxURIs = 20   // in a list
	MaxURI  = 2000 // characters
)

// The algorithms that tokens are signed with.
const (
	ES256 = "ES256"
	RS256 = "RS256"
)

// KeepsSecret tells whether a program of this type can keep something from those who run it.
func (t Type) KeepsSecret() bool { return t == Web || t == API }

// signsIn tells whether people sign in to applications of this type.
func (t Type) signsIn() bool { return t != API }

// BySecret tells whether the method proves an application by a secret that is sent along.
func (m AuthMethod) BySecret() bool { return m == SecretBasic || m == SecretPost }

// Accepts tells whether an application may prove itself by a method. A secret may come in the header or in the body,
// whichever the client's library prefers, unless the settings demand one of them.
func (s *Settings) Accepts(m AuthMethod) bool {
	return s.AuthMethod == m || !s.ExactAuthMethod && s.AuthMethod.BySecret() && m.BySecret()
}

// completed gives the settings with a default for whatever is left out, and the grant types in one order.
func (s Settings) completed(t Type) Settings {
	if s.AuthMethod == "" {
		s.AuthMethod = NoAuth
		if t.KeepsSecret() {
			s.AuthMethod = SecretBasic
		}
	}
	if s.GrantTypes = slices.Compact(slices.Sorted(slices.Values(s.GrantTypes))); len(s.GrantTypes) == 0 && t.signsIn() {
		s.GrantTypes = []GrantType{AuthorizationCode}
	}
	if s.TokenFormat == "" {
		s.TokenFormat = Opaque
	}
	if s.SigningAlgorithm == "" {
		s.SigningAlgorithm = ES256
		if t.signsIn() { // many libraries take nothing else unless they are told
			s.SigningAlgorithm = RS256
		}
	}
	if s.IDTokenClaims == "" {
		s.IDTokenClaims = MinimalClaims
		if t.signsIn() { // many of them read the name and the e-mail address there and nowhere else
			s.IDTokenClaims = ScopeClaims
		}
	}
	if s.AccessTokenSeconds == 0 {
		s.AccessTokenSeconds = defaultAccessToken
	}
	if s.RefreshTokenSeconds == 0 {
		s.RefreshTokenSeconds = defaultRefreshToken
	}
	return s
}

// Violations lists what is wrong with the settings of an application of a type, in the names of the API. Without a type
// it lists what would be wrong with every one.
func (s Settings) Violations(t Type) (wrong errs.Violations) {
	for i, g := range s.GrantTypes {
		if g == "" {
			wrong.Add(fmt.Sprintf("grantTypes[%d]", i), errs.Plain("must be GRANT_TYPE_AUTHORIZATION_CODE, "+
				"GRANT_TYPE_REFRESH_TOKEN or GRANT_TYPE_DEVICE_CODE"))
		}
	}
	for _, list := range []struct {
		field string
		uris  []string
	}{{"redirectUris", s.RedirectURIs}, {"postLogoutUris", s.PostLogoutURIs}} {
		if len(list.uris) > maxURIs {
			wrong.Add(list.field, syntax.TooMany(maxURIs, "elements"))
		}
		for i, uri := range list.uris {
			problem := cmp.Or(syntax.Text(uri, MaxURI), errs.Plain(uriProblem(t, uri)))
			if problem == nil && slices.Contains(list.uris[:i], uri) {
				problem = errs.Plain("is already in the list")
			}
			wrong.Add(fmt.Sprintf("%s[%d]", list.field, i), problem)
		}
	}
	for _, called := range []struct{ field, uri string }{{"backChannelLogoutUri", s.BackChannelLogoutURI},
		{"initiateLoginUri", s.InitiateLoginURI}, {"keySetUri", s.KeySetURI}} {
		if called.uri != "" {
			// Signet calls there, or a page leads there, whatever the application is.
			problem := errs.Plain(uriProblem(Web, called.uri))
			wrong.Add(called.field, cmp.Or(syntax.Text(called.uri, MaxURI), problem))
		}
	}
	wrong.Add("accessTokenSeconds", outside(s.AccessTokenSeconds, maxAccessSeconds))
	wrong.Add("refreshTokenSeconds", outside(s.RefreshTokenSeconds, maxRefreshSeconds))
	if t != "" {
		wrong = append(wrong, s.completed(t).unfit(t)...)
	}
	return wrong
}

func outside(seconds, most int64) *errs.Problem {
	if seconds == 0 || minTokenSeconds <= seconds && seconds <= most {
		return nil
	}
	return errs.Plain(fmt.Sprintf("must be %d to %d, or be left out", minTokenSeconds, most))
}

// unfit lists which settings do not go with the type, or with each other.
func (s Settings) unfit(t Type) (wrong errs.Violations) {
	add := func(bad bool, field, problem string) {
		if bad {
			wrong.Add(field, errs.Plain(problem))
		}
	}
	add(!t.KeepsSecret() && s.AuthMethod != NoAuth, "authMethod",
		"must be AUTH_METHOD_NONE: an application in a browser or on a device cannot have a secret")
	add(t.KeepsSecret() && s.AuthMethod == NoAuth, "authMethod",
		"must not be AUTH_METHOD_NONE: an application of this type can have a secret")
	if !t.signsIn() {
		const none = "must be left out: nobody signs in to an application of this type"
		add(len(s.GrantTypes) > 0, "grantTypes", none)
		add(len(s.RedirectURIs) > 0, "redirectUris", none)
		add(len(s.PostLogoutURIs) > 0, "postLogoutUris", none)
		add(s.BackChannelLogoutURI != "", "backChannelLogoutUri", none)
		add(s.InitiateLoginURI != "", "initiateLoginUri", none)
		add(s.PushedRequired, "pushedRequestsRequired", none)
		add(s.DPoPRequired, "dpopRequired", none)
		return wrong
	}
	byCode := slices.Contains(s.GrantTypes, AuthorizationCode)
	add(byCode && len(s.RedirectURIs) == 0, "redirectUris",
		"must not be empty: GRANT_TYPE_AUTHORIZATION_CODE needs a redirect URI")
	add(!byCode && !slices.Contains(s.GrantTypes, DeviceCode), "grantTypes",
		"must have GRANT_TYPE_AUTHORIZATION_CODE or GRANT_TYPE_DEVICE_CODE: otherwise nobody could sign in")
	return wrong
}
