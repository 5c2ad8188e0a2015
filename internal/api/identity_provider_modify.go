package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/idp"
)

// ModifyIdentityProvider sets the named parts of a provider of the context organization.
func (s IdentityProviders) ModifyIdentityProvider(ctx context.Context, r *signetv1.ModifyIdentityProviderRequest) (*signetv1.ModifyIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.Modify(ctx, s.Store, s.Master, info.Permit, r.GetIdpId(), info.IfMatch, modificationOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.ModifyIdentityProviderResponse{Details: changed(d)}, nil
}

// modifiable are the fields that an update mask can name. A secret is only ever meant by its own name: who replaces a
// configuration as it was shown has no secret to send along.
var modifiable = maskOf(&signetv1.ModifyIdentityProviderRequest{}, mask{
	neverEmpty: []string{"name", "jwt.jwt_endpoint", "jwt.issuer", "jwt.keys_endpoint", "oidc.issuer", "oidc.client_id"},
	byNameOnly: []string{clientSecret},
})

const clientSecret = "oidc.client_secret"

// modificationOf keeps what the mask of a request names.
func modificationOf(r *signetv1.ModifyIdentityProviderRequest) idp.Modification {
	fields := modifiable.named(r)
	jwt, oidc := r.GetJwt(), r.GetOidc()
	m := idp.Modification{
		General: idp.Changed{
			Name:         named(fields, "name", r.GetName()),
			Styling:      named(fields, "styling_type", stylings.name(r.GetStylingType())),
			AutoRegister: named(fields, "auto_register", r.GetAutoRegister()),
		},
		ClientSecret: named(fields, clientSecret, oidc.GetClientSecret()),
	}
	ofJWT := idp.JWTChanged{
		Endpoint:     named(fields, "jwt.jwt_endpoint", jwt.GetJwtEndpoint()),
		Issuer:       named(fields, "jwt.issuer", jwt.GetIssuer()),
		KeysEndpoint: named(fields, "jwt.keys_endpoint", jwt.GetKeysEndpoint()),
		HeaderName:   named(fields, "jwt.header_name", jwt.GetHeaderName()),
		Audience:     named(fields, "jwt.audience", jwt.GetAudience()),
	}
	if ofJWT != (idp.JWTChanged{}) {
		m.JWT = &ofJWT
	}
	ofOIDC := idp.OIDCChanged{
		Issuer:   named(fields, "oidc.issuer", oidc.GetIssuer()),
		ClientID: named(fields, "oidc.client_id", oidc.GetClientId()),
		Scopes:   named(fields, "oidc.scopes", oidc.GetScopes()),
	}
	if ofOIDC != (idp.OIDCChanged{}) {
		m.OIDC = &ofOIDC
	}
	return m
}
