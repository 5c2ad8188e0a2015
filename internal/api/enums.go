package api

import (
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
)

// enum pairs the numbers of the API with the words of an object's package.
type enum[N comparable, W comparable] map[N]W

// name gives the word of a number; the zero word where there is none.
func (e enum[N, W]) name(n N) W { return e[n] }

// number gives the number of a word; the zero number where there is none.
func (e enum[N, W]) number(w W) (n N) {
	for number, word := range e {
		if word == w {
			return number
		}
	}
	return n
}

var genders = enum[signetv1.Gender, user.Gender]{
	signetv1.Gender_GENDER_FEMALE:  user.Female,
	signetv1.Gender_GENDER_MALE:    user.Male,
	signetv1.Gender_GENDER_DIVERSE: user.Diverse,
}

var userStates = enum[signetv1.User_State, user.State]{
	signetv1.User_STATE_ACTIVE:   user.Active,
	signetv1.User_STATE_INACTIVE: user.Inactive,
	signetv1.User_STATE_LOCKED:   user.Locked,
}

var userTypes = enum[signetv1.UserType, user.Type]{
	signetv1.UserType_USER_TYPE_HUMAN:   user.IsHuman,
	signetv1.UserType_USER_TYPE_SERVICE: user.IsService,
}

var orgStates = enum[signetv1.Organization_State, org.State]{
	signetv1.Organization_STATE_ACTIVE:   org.Active,
	signetv1.Organization_STATE_INACTIVE: org.Inactive,
}

var appStates = enum[signetv1.Application_State, app.State]{
	signetv1.Application_STATE_ACTIVE:   app.Active,
	signetv1.Application_STATE_INACTIVE: app.Inactive,
}

var appTypes = enum[signetv1.ApplicationType, app.Type]{
	signetv1.ApplicationType_APPLICATION_TYPE_WEB:         app.Web,
	signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE: app.SPA,
	signetv1.ApplicationType_APPLICATION_TYPE_NATIVE:      app.Native,
	signetv1.ApplicationType_APPLICATION_TYPE_API:         app.API,
}

var authMethods = enum[signetv1.AuthMethod, app.AuthMethod]{
	signetv1.AuthMethod_AUTH_METHOD_NONE:                app.NoAuth,
	signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC: app.SecretBasic,
	signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_POST:  app.SecretPost,
	signetv1.AuthMethod_AUTH_METHOD_PRIVATE_KEY_JWT:     app.PrivateKeyJWT,
}

var grantTypes = enum[signetv1.GrantType, app.GrantType]{
	signetv1.GrantType_GRANT_TYPE_AUTHORIZATION_CODE: app.AuthorizationCode,
	signetv1.GrantType_GRANT_TYPE_REFRESH_TOKEN:      app.RefreshToken,
	signetv1.GrantType_GRANT_TYPE_DEVICE_CODE:        app.DeviceCode,
}

var tokenFormats = enum[signetv1.TokenFormat, app.TokenFormat]{
	signetv1.TokenFormat_TOKEN_FORMAT_OPAQUE: app.Opaque,
	signetv1.TokenFormat_TOKEN_FORMAT_JWT:    app.JWT,
}

var idTokenClaims = enum[signetv1.IDTokenClaims, app.IDTokenClaims]{
	signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_MINIMAL: app.MinimalClaims,
	signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_SCOPES:  app.ScopeClaims,
}

var signingAlgorithms = enum[signetv1.SigningAlgorithm, string]{
	signetv1.SigningAlgorithm_SIGNING_ALGORITHM_ES256: app.ES256,
	signetv1.SigningAlgorithm_SIGNING_ALGORITHM_RS256: app.RS256,
}
