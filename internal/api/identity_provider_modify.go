package api

import (
	"slices"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/idp"
)

// modifiableProvider are the fields that an update mask can name. A secret is only ever meant by its own name: who
// replaces a configuration as it was shown has no secret to send along.
var modifiableProvider = maskOf(&signetv1.ModifyIdentityProviderRequest{}, mask{
	NeverEmpty: []string{"name", "jwt.jwt_endpoint", "jwt.issuer", "jwt.keys_endpoint", "oidc.issuer", "oidc.client_id",
		"oauth.authorization_endpoint", "oauth.token_endpoint", "oauth.user_endpoint", "oauth.client_id"},
	ByNameOnly: []string{oidcSecret, oauthSecret},
})

const oidcSecret, oauthSecret = "oidc.client_secret", "oauth.client_secret"

// checkProviderModification relates the mask to the values, and judges those it names.
func checkProviderModification(r *signetv1.ModifyIdentityProviderRequest) []errs.Violation {
	m := providerModification(r)
	wrong := slices.Concat(modifiableProvider.Check(r), repeatedNames("oidc.parameters", r.GetOidc().GetParameters()),
		repeatedNames("oauth.parameters", r.GetOauth().GetParameters()))
	for _, v := range m.Violations() {
		if !slices.ContainsFunc(wrong, func(known errs.Violation) bool { return known.Field == v.Field }) {
			wrong = append(wrong, v)
		}
	}
	return wrong
}

// providerModification keeps what the mask of a request names.
func providerModification(r *signetv1.ModifyIdentityProviderRequest) idp.Modification {
	fields := modifiableProvider.Named(r)
	jwt, oidc, oauth := r.GetJwt(), r.GetOidc(), r.GetOauth()
	m := idp.Modification{
		General: idp.Changed{
			Name:         masked(fields, "name", r.GetName()),
			Styling:      masked(fields, "styling_type", stylings[r.GetStylingType()]),
			AutoRegister: masked(fields, "auto_register", r.GetAutoRegister()),
			LinkByEmail:  masked(fields, "link_by_email", r.GetLinkByEmail()),
		},
		OIDCSecret:  masked(fields, oidcSecret, oidc.GetClientSecret()),
		OAuthSecret: masked(fields, oauthSecret, oauth.GetClientSecret()),
	}
	ofJWT := idp.JWTChanged{
		Endpoint:     masked(fields, "jwt.jwt_endpoint", jwt.GetJwtEndpoint()),
		Issuer:       masked(fields, "jwt.issuer", jwt.GetIssuer()),
		KeysEndpoint: masked(fields, "jwt.keys_endpoint", jwt.GetKeysEndpoint()),
		HeaderName:   masked(fields, "jwt.header_name", jwt.GetHeaderName()),
		Audience:     masked(fields, "jwt.audience", jwt.GetAudience()),
	}
	if ofJWT != (idp.JWTChanged{}) {
		m.JWT = &ofJWT
	}
	ofOIDC := idp.OIDCChanged{
		Issuer:        masked(fields, "oidc.issuer", oidc.GetIssuer()),
		ClientChanged: providerClient(fields, "oidc.", oidc),
		FormPost:      masked(fields, "oidc.form_post", oidc.GetFormPost()),
		Tenants:       masked(fields, "oidc.tenants", oidc.GetTenants()),
		TeamID:        masked(fields, "oidc.team_id", oidc.GetTeamId()),
		KeyID:         masked(fields, "oidc.key_id", oidc.GetKeyId()),
	}
	if ofOIDC != (idp.OIDCChanged{}) {
		m.OIDC = &ofOIDC
	}
	ofOAuth := idp.OAuthChanged{
		AuthorizationEndpoint: masked(fields, "oauth.authorization_endpoint", oauth.GetAuthorizationEndpoint()),
		TokenEndpoint:         masked(fields, "oauth.token_endpoint", oauth.GetTokenEndpoint()),
		UserEndpoint:          masked(fields, "oauth.user_endpoint", oauth.GetUserEndpoint()),
		EmailsEndpoint:        masked(fields, "oauth.emails_endpoint", oauth.GetEmailsEndpoint()),
		ClientChanged:         providerClient(fields, "oauth.", oauth),
		Subject:               masked(fields, "oauth.subject", oauth.GetSubject()),
	}
	if ofOAuth != (idp.OAuthChanged{}) {
		m.OAuth = &ofOAuth
	}
	return m
}

// providerClient keeps what the mask names of what both kinds of clients have.
func providerClient(fields map[string]bool, prefix string, r interface {
	GetClientId() string
	GetScopes() []string
	GetPreset() signetv1.IdentityProviderPreset
	GetClientAuth() signetv1.IdentityProviderClientAuth
	GetParameters() []*signetv1.IdentityProviderParameter
	GetClaims() *signetv1.IdentityProviderClaims
}) idp.ClientChanged {
	changed := idp.ClientChanged{
		ClientID:   masked(fields, prefix+"client_id", r.GetClientId()),
		Scopes:     masked(fields, prefix+"scopes", r.GetScopes()),
		Preset:     masked(fields, prefix+"preset", providerPresets[r.GetPreset()]),
		ClientAuth: masked(fields, prefix+"client_auth", clientAuths[r.GetClientAuth()]),
		Parameters: masked(fields, prefix+"parameters", providerParameters(r.GetParameters())),
	}
	claims := idp.ClaimsChanged{
		UserName:  masked(fields, prefix+"claims.user_name", r.GetClaims().GetUserName()),
		FirstName: masked(fields, prefix+"claims.first_name", r.GetClaims().GetFirstName()),
		LastName:  masked(fields, prefix+"claims.last_name", r.GetClaims().GetLastName()),
		NickName:  masked(fields, prefix+"claims.nick_name", r.GetClaims().GetNickName()),
		Email:     masked(fields, prefix+"claims.email", r.GetClaims().GetEmail()),
		Language:  masked(fields, prefix+"claims.language", r.GetClaims().GetLanguage()),
	}
	if claims != (idp.ClaimsChanged{}) {
		changed.Claims = &claims
	}
	return changed
}
