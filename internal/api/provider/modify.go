package provider

import (
	"slices"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/api/mask"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/idp"
)

// modifiable are the fields that an update mask can name. A secret is only ever meant by its own name: who replaces a
// configuration as it was shown has no secret to send along.
var modifiable = mask.Of(&signetv1.ModifyIdentityProviderRequest{}, mask.Mask{
	NeverEmpty: []string{"name", "jwt.jwt_endpoint", "jwt.issuer", "jwt.keys_endpoint", "oidc.issuer", "oidc.client_id",
		"oauth.authorization_endpoint", "oauth.token_endpoint", "oauth.user_endpoint", "oauth.client_id"},
	ByNameOnly: []string{oidcSecret, oauthSecret},
})

const oidcSecret, oauthSecret = "oidc.client_secret", "oauth.client_secret"

// checkModification relates the mask to the values, and judges those it names.
func checkModification(r *signetv1.ModifyIdentityProviderRequest) []errs.Violation {
	m := Modification(r)
	wrong := slices.Concat(modifiable.Check(r), repeatedNames("oidc.parameters", r.GetOidc().GetParameters()), repeatedNames("oauth.parameters", r.GetOauth().GetParameters()))
	for _, v := range m.Violations() {
		if !slices.ContainsFunc(wrong, func(known errs.Violation) bool { return known.Field == v.Field }) {
			wrong = append(wrong, v)
		}
	}
	return wrong
}

// Modification keeps what the mask of a request names.
func Modification(r *signetv1.ModifyIdentityProviderRequest) idp.Modification {
	fields := modifiable.Named(r)
	jwt, oidc, oauth := r.GetJwt(), r.GetOidc(), r.GetOauth()
	m := idp.Modification{
		General: idp.Changed{
			Name:         mask.Value(fields, "name", r.GetName()),
			Styling:      mask.Value(fields, "styling_type", stylings[r.GetStylingType()]),
			AutoRegister: mask.Value(fields, "auto_register", r.GetAutoRegister()),
			LinkByEmail:  mask.Value(fields, "link_by_email", r.GetLinkByEmail()),
		},
		OIDCSecret:  mask.Value(fields, oidcSecret, oidc.GetClientSecret()),
		OAuthSecret: mask.Value(fields, oauthSecret, oauth.GetClientSecret()),
	}
	ofJWT := idp.JWTChanged{
		Endpoint:     mask.Value(fields, "jwt.jwt_endpoint", jwt.GetJwtEndpoint()),
		Issuer:       mask.Value(fields, "jwt.issuer", jwt.GetIssuer()),
		KeysEndpoint: mask.Value(fields, "jwt.keys_endpoint", jwt.GetKeysEndpoint()),
		HeaderName:   mask.Value(fields, "jwt.header_name", jwt.GetHeaderName()),
		Audience:     mask.Value(fields, "jwt.audience", jwt.GetAudience()),
	}
	if ofJWT != (idp.JWTChanged{}) {
		m.JWT = &ofJWT
	}
	ofOIDC := idp.OIDCChanged{
		Issuer:        mask.Value(fields, "oidc.issuer", oidc.GetIssuer()),
		ClientChanged: clientOf(fields, "oidc.", oidc),
		FormPost:      mask.Value(fields, "oidc.form_post", oidc.GetFormPost()),
		Tenants:       mask.Value(fields, "oidc.tenants", oidc.GetTenants()),
		TeamID:        mask.Value(fields, "oidc.team_id", oidc.GetTeamId()),
		KeyID:         mask.Value(fields, "oidc.key_id", oidc.GetKeyId()),
	}
	if ofOIDC != (idp.OIDCChanged{}) {
		m.OIDC = &ofOIDC
	}
	ofOAuth := idp.OAuthChanged{
		AuthorizationEndpoint: mask.Value(fields, "oauth.authorization_endpoint", oauth.GetAuthorizationEndpoint()),
		TokenEndpoint:         mask.Value(fields, "oauth.token_endpoint", oauth.GetTokenEndpoint()),
		UserEndpoint:          mask.Value(fields, "oauth.user_endpoint", oauth.GetUserEndpoint()),
		EmailsEndpoint:        mask.Value(fields, "oauth.emails_endpoint", oauth.GetEmailsEndpoint()),
		ClientChanged:         clientOf(fields, "oauth.", oauth),
		Subject:               mask.Value(fields, "oauth.subject", oauth.GetSubject()),
	}
	if ofOAuth != (idp.OAuthChanged{}) {
		m.OAuth = &ofOAuth
	}
	return m
}

// clientOf keeps what the mask names of what both kinds of clients have.
func clientOf(fields map[string]bool, prefix string, r interface {
	GetClientId() string
	GetScopes() []string
	GetPreset() signetv1.IdentityProviderPreset
	GetClientAuth() signetv1.IdentityProviderClientAuth
	GetParameters() []*signetv1.IdentityProviderParameter
	GetClaims() *signetv1.IdentityProviderClaims
}) idp.ClientChanged {
	changed := idp.ClientChanged{
		ClientID:   mask.Value(fields, prefix+"client_id", r.GetClientId()),
		Scopes:     mask.Value(fields, prefix+"scopes", r.GetScopes()),
		Preset:     mask.Value(fields, prefix+"preset", presets[r.GetPreset()]),
		ClientAuth: mask.Value(fields, prefix+"client_auth", clientAuths[r.GetClientAuth()]),
		Parameters: mask.Value(fields, prefix+"parameters", parametersOf(r.GetParameters())),
	}
	claims := idp.ClaimsChanged{
		UserName:  mask.Value(fields, prefix+"claims.user_name", r.GetClaims().GetUserName()),
		FirstName: mask.Value(fields, prefix+"claims.first_name", r.GetClaims().GetFirstName()),
		LastName:  mask.Value(fields, prefix+"claims.last_name", r.GetClaims().GetLastName()),
		NickName:  mask.Value(fields, prefix+"claims.nick_name", r.GetClaims().GetNickName()),
		Email:     mask.Value(fields, prefix+"claims.email", r.GetClaims().GetEmail()),
		Language:  mask.Value(fields, prefix+"claims.language", r.GetClaims().GetLanguage()),
	}
	if claims != (idp.ClaimsChanged{}) {
		changed.Claims = &claims
	}
	return changed
}
