package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/api/mask"
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
var modifiable = mask.Of(&signetv1.ModifyIdentityProviderRequest{}, mask.Mask{
	NeverEmpty: []string{"name", "jwt.jwt_endpoint", "jwt.issuer", "jwt.keys_endpoint", "oidc.issuer", "oidc.client_id"},
	ByNameOnly: []string{clientSecret},
})

const clientSecret = "oidc.client_secret"

// modificationOf keeps what the mask of a request names.
func modificationOf(r *signetv1.ModifyIdentityProviderRequest) idp.Modification {
	fields := modifiable.Named(r)
	jwt, oidc := r.GetJwt(), r.GetOidc()
	m := idp.Modification{
		General: idp.Changed{
			Name:         mask.Value(fields, "name", r.GetName()),
			Styling:      mask.Value(fields, "styling_type", stylings.name(r.GetStylingType())),
			AutoRegister: mask.Value(fields, "auto_register", r.GetAutoRegister()),
		},
		ClientSecret: mask.Value(fields, clientSecret, oidc.GetClientSecret()),
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
		Issuer:   mask.Value(fields, "oidc.issuer", oidc.GetIssuer()),
		ClientID: mask.Value(fields, "oidc.client_id", oidc.GetClientId()),
		Scopes:   mask.Value(fields, "oidc.scopes", oidc.GetScopes()),
	}
	if ofOIDC != (idp.OIDCChanged{}) {
		m.OIDC = &ofOIDC
	}
	return m
}
