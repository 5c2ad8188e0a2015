package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/api/mask"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
)

// ModifyApplication sets the named parts of an application of the context organization.
func (s Applications) ModifyApplication(ctx context.Context, r *signetv1.ModifyApplicationRequest) (*signetv1.ModifyApplicationResponse, error) {
	info := call.From(ctx)
	d, err := app.Modify(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, changeOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.ModifyApplicationResponse{Details: changed(d)}, nil
}

// modifiableApp are the fields that an update mask can name.
var modifiableApp = mask.Of(&signetv1.ModifyApplicationRequest{}, mask.Mask{NeverEmpty: []string{"name"}})

// changeOf keeps what the mask of a request names.
func changeOf(r *signetv1.ModifyApplicationRequest) app.SettingsChanged {
	fields, s := modifiableApp.Named(r), settingsOf(r)
	return app.SettingsChanged{
		Name:                 mask.Value(fields, "name", r.GetName()),
		AuthMethod:           mask.Value(fields, "auth_method", s.AuthMethod),
		GrantTypes:           mask.Value(fields, "grant_types", s.GrantTypes),
		RedirectURIs:         mask.Value(fields, "redirect_uris", s.RedirectURIs),
		PostLogoutURIs:       mask.Value(fields, "post_logout_uris", s.PostLogoutURIs),
		BackChannelLogoutURI: mask.Value(fields, "back_channel_logout_uri", s.BackChannelLogoutURI),
		KeySetURI:            mask.Value(fields, "key_set_uri", s.KeySetURI),
		TokenFormat:          mask.Value(fields, "token_format", s.TokenFormat),
		SigningAlgorithm:     mask.Value(fields, "signing_algorithm", s.SigningAlgorithm),
		AccessTokenSeconds:   mask.Value(fields, "access_token_seconds", s.AccessTokenSeconds),
		RefreshTokenSeconds:  mask.Value(fields, "refresh_token_seconds", s.RefreshTokenSeconds),
		ConsentRequired:      mask.Value(fields, "consent_required", s.ConsentRequired),
		AllOrganizations:     mask.Value(fields, "all_organizations", s.AllOrganizations),
		ExactAuthMethod:      mask.Value(fields, "exact_auth_method", s.ExactAuthMethod),
		IDTokenClaims:        mask.Value(fields, "id_token_claims", s.IDTokenClaims),
	}
}

// appSettings is a request that has the settings of an application.
type appSettings interface {
	GetAuthMethod() signetv1.AuthMethod
	GetGrantTypes() []signetv1.GrantType
	GetRedirectUris() []string
	GetPostLogoutUris() []string
	GetBackChannelLogoutUri() string
	GetKeySetUri() string
	GetTokenFormat() signetv1.TokenFormat
	GetSigningAlgorithm() signetv1.SigningAlgorithm
	GetAccessTokenSeconds() int32
	GetRefreshTokenSeconds() int32
	GetConsentRequired() bool
	GetAllOrganizations() bool
	GetExactAuthMethod() bool
	GetIdTokenClaims() signetv1.IDTokenClaims
}

// settingsOf gives the settings as they were sent; what was left out is empty.
func settingsOf(r appSettings) app.Settings {
	s := app.Settings{AuthMethod: authMethods.name(r.GetAuthMethod()), RedirectURIs: r.GetRedirectUris(), PostLogoutURIs: r.GetPostLogoutUris(),
		BackChannelLogoutURI: r.GetBackChannelLogoutUri(), KeySetURI: r.GetKeySetUri(), TokenFormat: tokenFormats.name(r.GetTokenFormat()),
		SigningAlgorithm: signingAlgorithms.name(r.GetSigningAlgorithm()), AccessTokenSeconds: int64(r.GetAccessTokenSeconds()),
		RefreshTokenSeconds: int64(r.GetRefreshTokenSeconds()), ConsentRequired: r.GetConsentRequired(), AllOrganizations: r.GetAllOrganizations(),
		ExactAuthMethod: r.GetExactAuthMethod(), IDTokenClaims: idTokenClaims.name(r.GetIdTokenClaims())}
	for _, g := range r.GetGrantTypes() {
		s.GrantTypes = append(s.GrantTypes, grantTypes.name(g))
	}
	return s
}
