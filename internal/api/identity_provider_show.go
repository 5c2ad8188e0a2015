// Identity providers as requests and answers have them, and those of package idp.

package api

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// generalOf is the general configuration in a request that creates a provider.
func generalOf(r interface {
	GetName() string
	GetStylingType() signetv1.StylingType
	GetAutoRegister() bool
	GetLinkByEmail() bool
}) idp.General {
	return idp.General{Name: r.GetName(), Styling: stylings[r.GetStylingType()], AutoRegister: r.GetAutoRegister(),
		LinkByEmail: r.GetLinkByEmail()}
}

// oidcOf is the configuration in a request that creates a provider.
func oidcOf(r *signetv1.AddOIDCIdentityProviderRequest) idp.OIDC {
	return idp.OIDC{
		Issuer:     r.GetIssuer(),
		ClientID:   r.GetClientId(),
		Scopes:     r.GetScopes(),
		Preset:     providerPresets[r.GetPreset()],
		ClientAuth: clientAuths[r.GetClientAuth()],
		FormPost:   r.GetFormPost(),
		Parameters: providerParameters(r.GetParameters()),
		Claims:     providerClaims(r.GetClaims()),
		Tenants:    r.GetTenants(),
		TeamID:     r.GetTeamId(),
		KeyID:      r.GetKeyId(),
	}
}

// oauthOf is the configuration in a request that creates a provider.
func oauthOf(r *signetv1.AddOAuthIdentityProviderRequest) idp.OAuth {
	return idp.OAuth{
		AuthorizationEndpoint: r.GetAuthorizationEndpoint(),
		TokenEndpoint:         r.GetTokenEndpoint(),
		UserEndpoint:          r.GetUserEndpoint(),
		EmailsEndpoint:        r.GetEmailsEndpoint(),
		ClientID:              r.GetClientId(),
		Scopes:                r.GetScopes(),
		Preset:                providerPresets[r.GetPreset()],
		ClientAuth:            clientAuths[r.GetClientAuth()],
		Parameters:            providerParameters(r.GetParameters()),
		Subject:               r.GetSubject(),
		Claims:                providerClaims(r.GetClaims()),
	}
}

func providerClaims(c *signetv1.IdentityProviderClaims) idp.Claims {
	return idp.Claims{UserName: c.GetUserName(), FirstName: c.GetFirstName(), LastName: c.GetLastName(),
		NickName: c.GetNickName(), Email: c.GetEmail(), Language: c.GetLanguage()}
}

func showProviderClaims(c idp.Claims) *signetv1.IdentityProviderClaims {
	if c == (idp.Claims{}) {
		return nil
	}
	return &signetv1.IdentityProviderClaims{UserName: c.UserName, FirstName: c.FirstName, LastName: c.LastName,
		NickName: c.NickName, Email: c.Email, Language: c.Language}
}

func providerParameters(list []*signetv1.IdentityProviderParameter) idp.Parameters {
	out := idp.Parameters{}
	for _, p := range list {
		out[p.GetName()] = p.GetValue()
	}
	return out
}

func showProviderParameters(p idp.Parameters) (list []*signetv1.IdentityProviderParameter) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		list = append(list, &signetv1.IdentityProviderParameter{Name: name, Value: p[name]})
	}
	return list
}

// repeatedNames refuses a parameter that is there twice: only one of its values could count.
func repeatedNames(field string, list []*signetv1.IdentityProviderParameter) (wrong []errs.Violation) {
	seen := map[string]bool{}
	for i, p := range list {
		if seen[p.GetName()] {
			wrong = append(wrong,
				errs.Violation{Field: fmt.Sprintf("%s[%d].name", field, i), Message: "must not be there twice"})
		}
		seen[p.GetName()] = true
	}
	return wrong
}

// showProvider gives a provider as reads show it.
func showProvider(p *event.Object[idp.Provider], details *signetv1.Details) *signetv1.IdentityProvider {
	g := p.Data.General
	out := &signetv1.IdentityProvider{
		IdpId:        p.ID,
		Details:      details,
		State:        providerStates.number(p.Data.State),
		Name:         g.Name,
		StylingType:  stylings.number(g.Styling),
		AutoRegister: g.AutoRegister,
		LinkByEmail:  g.LinkByEmail,
		Offered:      p.Data.Offered(),
	}
	if c := p.Data.Changer; c != nil {
		out.VouchedBy = c.UserID
	}
	for _, a := range p.Data.Unconfirmed() {
		left := &signetv1.UnconfirmedSettings{UserId: a.UserID, Settings: a.Fields}
		for _, role := range slices.Concat(a.Roles[p.Org], a.Roles[access.Installation]) {
			left.Roles = append(left.Roles, role.Name())
		}
		out.Unconfirmed = append(out.Unconfirmed, left)
	}
	if j := p.Data.JWT; j != nil {
		out.Config = &signetv1.IdentityProvider_Jwt{Jwt: &signetv1.IdentityProvider_JWT{
			JwtEndpoint: j.Endpoint, Issuer: j.Issuer, KeysEndpoint: j.KeysEndpoint, HeaderName: j.HeaderName,
			Audience: j.Audience}}
	} else if o := p.Data.OIDC; o != nil {
		out.Config = &signetv1.IdentityProvider_Oidc{Oidc: &signetv1.IdentityProvider_OIDC{
			Issuer: o.Issuer, ClientId: o.ClientID, HasClientSecret: o.HasClientSecret, Scopes: o.Scopes,
			Preset: providerPresets.number(o.Preset), ClientAuth: clientAuths.number(o.ClientAuth),
			FormPost: o.FormPost, Parameters: showProviderParameters(o.Parameters),
			Claims: showProviderClaims(o.Claims), Tenants: o.Tenants, TeamId: o.TeamID, KeyId: o.KeyID}}
	} else if o := p.Data.OAuth; o != nil {
		out.Config = &signetv1.IdentityProvider_Oauth{Oauth: &signetv1.IdentityProvider_OAuth{
			AuthorizationEndpoint: o.AuthorizationEndpoint, TokenEndpoint: o.TokenEndpoint,
			UserEndpoint: o.UserEndpoint, EmailsEndpoint: o.EmailsEndpoint,
			ClientId: o.ClientID, HasClientSecret: o.HasClientSecret, Scopes: o.Scopes,
			Preset: providerPresets.number(o.Preset), ClientAuth: clientAuths.number(o.ClientAuth),
			Parameters: showProviderParameters(o.Parameters), Subject: o.Subject, Claims: showProviderClaims(o.Claims)}}
	}
	return out
}

// checkProvider lists what is wrong with a request about providers beyond the field rules of the definition.
func checkProvider(req proto.Message) []errs.Violation {
	switch r := req.(type) {
	case *signetv1.AddOIDCIdentityProviderRequest:
		return append(repeatedNames("parameters", r.GetParameters()),
			idp.OIDCViolations(generalOf(r), oidcOf(r), r.GetClientSecret())...)
	case *signetv1.AddOAuthIdentityProviderRequest:
		return append(repeatedNames("parameters", r.GetParameters()),
			idp.OAuthViolations(generalOf(r), oauthOf(r), r.GetClientSecret())...)
	case *signetv1.ModifyIdentityProviderRequest:
		return checkProviderModification(r)
	}
	return nil
}
