package oidc

import (
	zitadel "github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/grant"
)

// discovery says what there is, and nothing else.
type discovery struct {
	zitadel.DiscoveryConfiguration
	Iss bool `json:"authorization_response_iss_parameter_supported"`
}

func (p *Provider) discovery() discovery {
	methods := []zitadel.AuthMethod{zitadel.AuthMethod(app.SecretBasic), zitadel.AuthMethod(app.SecretPost), zitadel.AuthMethod(app.PrivateKeyJWT)}
	algorithms := []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}
	return discovery{Iss: true, DiscoveryConfiguration: zitadel.DiscoveryConfiguration{
		Issuer:                      p.issuer,
		AuthorizationEndpoint:       p.issuer + authorizePath,
		TokenEndpoint:               p.issuer + tokenPath,
		IntrospectionEndpoint:       p.issuer + introspectPath,
		UserinfoEndpoint:            p.issuer + userinfoPath,
		RevocationEndpoint:          p.issuer + revokePath,
		EndSessionEndpoint:          p.issuer + logoutPath,
		DeviceAuthorizationEndpoint: p.issuer + devicePath,
		JwksURI:                     p.issuer + keysPath,
		ScopesSupported:             grant.Scopes,
		ResponseTypesSupported:      []string{"code"},
		ResponseModesSupported:      []string{"query"},
		GrantTypesSupported: []zitadel.GrantType{zitadel.GrantTypeCode, zitadel.GrantTypeRefreshToken, zitadel.GrantTypeClientCredentials,
			zitadel.GrantTypeBearer, zitadel.GrantTypeDeviceCode},
		ACRValuesSupported:                                 []string{grant.SingleFactor, grant.MultiFactor},
		SubjectTypesSupported:                              []string{"public"},
		IDTokenSigningAlgValuesSupported:                   []string{"ES256", "RS256"},
		TokenEndpointAuthMethodsSupported:                  append([]zitadel.AuthMethod{zitadel.AuthMethodNone}, methods...),
		TokenEndpointAuthSigningAlgValuesSupported:         algorithms,
		RevocationEndpointAuthMethodsSupported:             append([]zitadel.AuthMethod{zitadel.AuthMethodNone}, methods...),
		RevocationEndpointAuthSigningAlgValuesSupported:    algorithms,
		IntrospectionEndpointAuthMethodsSupported:          methods,
		IntrospectionEndpointAuthSigningAlgValuesSupported: algorithms,
		ClaimsSupported: []string{"sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "sid", "at_hash", "name", "given_name",
			"family_name", "nickname", "preferred_username", "gender", "locale", "updated_at", "email", "email_verified", "phone_number", "phone_number_verified",
			grant.OrgScope, grant.RolesScope},
		BackChannelLogoutSupported:        true,
		BackChannelLogoutSessionSupported: true,
		CodeChallengeMethodsSupported:     []zitadel.CodeChallengeMethod{zitadel.CodeChallengeMethodS256},
	}}
}
