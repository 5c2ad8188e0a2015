package oidc

import (
	"time"

	zitadel "github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/grant"
)

// client shows a client of ours to the library. What the library does not decide here is left at its zero value.
type client struct{ *grant.Client }

var _ op.Client = client{}

func (c client) GetID() string { return c.ID() }

// AuthMethod lets the library refuse the client credentials of a client that has none.
func (c client) AuthMethod() zitadel.AuthMethod {
	if c.App == nil {
		return zitadel.AuthMethodBasic
	}
	return zitadel.AuthMethod(c.App.State.AuthMethod)
}

// GrantTypes are the ways to tokens that the client is registered for.
func (c client) GrantTypes() []zitadel.GrantType {
	if c.App == nil {
		return []zitadel.GrantType{zitadel.GrantTypeClientCredentials}
	}
	types := make([]zitadel.GrantType, 0, len(c.App.State.GrantTypes))
	for _, g := range c.App.State.GrantTypes {
		types = append(types, zitadel.GrantType(g))
	}
	return types
}

func (client) ResponseTypes() []zitadel.ResponseType {
	return []zitadel.ResponseType{zitadel.ResponseTypeCode}
}

func (c client) AccessTokenType() op.AccessTokenType {
	if c.App != nil && c.App.State.TokenFormat == app.JWT {
		return op.AccessTokenTypeJWT
	}
	return op.AccessTokenTypeBearer
}

func (client) RedirectURIs() []string                                   { return nil }
func (client) PostLogoutRedirectURIs() []string                         { return nil }
func (client) ApplicationType() op.ApplicationType                      { return op.ApplicationTypeWeb }
func (client) LoginURL(string) string                                   { return "" }
func (client) IDTokenLifetime() time.Duration                           { return idTokenLife }
func (client) DevMode() bool                                            { return false }
func (client) RestrictAdditionalIdTokenScopes() func([]string) []string { return keepAll }
func (client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return keepAll
}
func (client) IsScopeAllowed(string) bool           { return false }
func (client) IDTokenUserinfoClaimsAssertion() bool { return false }
func (client) ClockSkew() time.Duration             { return 0 }

func keepAll(scopes []string) []string { return scopes }
