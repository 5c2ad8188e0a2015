package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
)

// ModifyApplication sets the named parts of an application of the context organization.
func (s Applications) ModifyApplication(ctx context.Context,
	r *signetv1.ModifyApplicationRequest) (*signetv1.ModifyApplicationResponse, error) {
	info := call.From(ctx)
	d, err := app.Modify(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, changeOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.ModifyApplicationResponse{Details: changed(d)}, nil
}

// modifiableApp are the fields that an update mask can name.
var modifiableApp = maskOf(&signetv1.ModifyApplicationRequest{}, mask{NeverEmpty: []string{"name"}})

// changeOf keeps what the mask of a request names.
func changeOf(r *signetv1.ModifyApplicationRequest) app.SettingsChanged {
	fields, s := modifiableApp.Named(r), settingsOf(r)
	return app.SettingsChanged{
		Name:                 masked(fields, "name", r.GetName()),
		AuthMethod:           masked(fields, "auth_method", s.AuthMethod),
		GrantTypes:           masked(fields, "grant_types", s.GrantTypes),
		RedirectURIs:         masked(fields, "redirect_uris", s.RedirectURIs),
		PostLogoutURIs:       masked(fields, "post_logout_uris", s.PostLogoutURIs),
		BackChannelLogoutURI: masked(fields, "back_channel_logout_uri", s.BackChannelLogoutURI),
		InitiateLoginURI:     masked(fields, "initiate_login_uri", s.InitiateLoginURI),
		KeySetURI:            masked(fields, "key_set_uri", s.KeySetURI),
		TokenFormat:          masked(fields, "token_format", s.TokenFormat),
		SigningAlgorithm:     masked(fields, "signing_algorithm", s.SigningAlgorithm),
		AccessTokenSeconds:   masked(fields, "access_token_seconds", s.AccessTokenSeconds),
		RefreshTokenSeconds:  masked(fields, "refresh_token_seconds", s.RefreshTokenSeconds),
		ConsentRequired:      masked(fields, "consent_required", s.ConsentRequired),
		AllOrganizations:     masked(fields, "all_organizations", s.AllOrganizations),
		ExactAuthMethod:      masked(fields, "exact_auth_method", s.ExactAuthMethod),
		IDTokenClaims:        masked(fields, "id_token_claims", s.IDTokenClaims),
		PushedRequired:       masked(fields, "pushed_requests_required", s.PushedRequired),
		DPoPRequired:         masked(fields, "dpop_required", s.DPoPRequired),
	}
}

// appSettings is a request that has the settings of an application.
type appSettings interface {
	GetAuthMethod() signetv1.AuthMethod
	GetGrantTypes() []signetv1.GrantType
	GetRedirectUris() []string
	GetPostLogoutUris() []string
	GetBackChannelLogoutUri() string
	GetInitiateLoginUri() string
	GetKeySetUri() string
	GetTokenFormat() signetv1.TokenFormat
	GetSigningAlgorithm() signetv1.SigningAlgorithm
	GetAccessTokenSeconds() int32
	GetRefreshTokenSeconds() int32
	GetConsentRequired() bool
	GetAllOrganizations() bool
	GetExactAuthMethod() bool
	GetIdTokenClaims() signetv1.IDTokenClaims
	GetPushedRequestsRequired() bool
	GetDpopRequired() bool
}

// settingsOf gives the settings as they were sent; what was left out is empty.
func settingsOf(r appSettings) app.Settings {
	s := app.Settings{
		AuthMethod:           authMethods.name(r.GetAuthMethod()),
		RedirectURIs:         r.GetRedirectUris(),
		PostLogoutURIs:       r.GetPostLogoutUris(),
		BackChannelLogoutURI: r.GetBackChannelLogoutUri(),
		InitiateLoginURI:     r.GetInitiateLoginUri(),
		KeySetURI:            r.GetKeySetUri(),
		TokenFormat:          tokenFormats.name(r.GetTokenFormat()),
		SigningAlgorithm:     signingAlgorithms.name(r.GetSigningAlgorithm()),
		AccessTokenSeconds:   int64(r.GetAccessTokenSeconds()),
		RefreshTokenSeconds:  int64(r.GetRefreshTokenSeconds()),
		ConsentRequired:      r.GetConsentRequired(),
		AllOrganizations:     r.GetAllOrganizations(),
		ExactAuthMethod:      r.GetExactAuthMethod(),
		IDTokenClaims:        idTokenClaims.name(r.GetIdTokenClaims()),
		PushedRequired:       r.GetPushedRequestsRequired(),
		DPoPRequired:         r.GetDpopRequired(),
	}
	for _, g := range r.GetGrantTypes() {
		s.GrantTypes = append(s.GrantTypes, grantTypes.name(g))
	}
	return s
}
