package api

import (
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/idp"
)

var stylings = enum[signetv1.StylingType, idp.Styling]{
	signetv1.StylingType_STYLING_TYPE_GOOGLE: idp.Google,
}

var providerStates = enum[signetv1.IdentityProvider_State, idp.State]{
	signetv1.IdentityProvider_STATE_ACTIVE:   idp.Active,
	signetv1.IdentityProvider_STATE_INACTIVE: idp.Inactive,
	signetv1.IdentityProvider_STATE_DRAFT:    idp.Draft,
}

var providerTypes = enum[signetv1.IdentityProviderType, idp.Type]{
	signetv1.IdentityProviderType_IDENTITY_PROVIDER_TYPE_JWT:   idp.IsJWT,
	signetv1.IdentityProviderType_IDENTITY_PROVIDER_TYPE_OIDC:  idp.IsOIDC,
	signetv1.IdentityProviderType_IDENTITY_PROVIDER_TYPE_OAUTH: idp.IsOAuth,
}

var providerPresets = enum[signetv1.IdentityProviderPreset, idp.Preset]{
	signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GOOGLE:    idp.GooglePreset,
	signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_MICROSOFT: idp.MicrosoftPreset,
	signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_APPLE:     idp.ApplePreset,
	signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GITLAB:    idp.GitLabPreset,
	signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GITHUB:    idp.GitHubPreset,
}

var clientAuths = enum[signetv1.IdentityProviderClientAuth, idp.ClientAuth]{
	signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_CLIENT_SECRET_POST: idp.SecretInBody,
	signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_PRIVATE_KEY_JWT:    idp.PrivateKeyJWT,
}

// stylingOf gives the word of a number.
func stylingOf(n signetv1.StylingType) idp.Styling { return stylings[n] }

// providerFilter says which providers a request lists.
func providerFilter(r *signetv1.ListIdentityProvidersRequest) idp.Filter {
	return idp.Filter{Name: r.GetName(), State: providerStates[r.GetState()], Type: providerTypes[r.GetType()]}
}
