package api

import (
	"context"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/secret"
)

// IdentityProviders implements IdentityProviderService.
type IdentityProviders struct {
	Store  event.Store
	Master secret.MasterKey
	Clock  func() time.Time
}

var _ signetv1connect.IdentityProviderServiceHandler = IdentityProviders{}

// UpdateJWTIdentityProvider replaces the JWT configuration of a provider of the context organization.
func (s IdentityProviders) UpdateJWTIdentityProvider(ctx context.Context, r *signetv1.UpdateJWTIdentityProviderRequest) (*signetv1.UpdateJWTIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.ReplaceJWT(ctx, s.Store, info.Permit, r.GetIdpId(), info.IfMatch, idp.JWT{
		Endpoint: r.GetJwtEndpoint(), Issuer: r.GetIssuer(), KeysEndpoint: r.GetKeysEndpoint(), HeaderName: r.GetHeaderName(),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateJWTIdentityProviderResponse{Details: changed(d)}, nil
}

// UpdateIdentityProvider replaces the general configuration of a provider, wherever it belongs.
func (s IdentityProviders) UpdateIdentityProvider(ctx context.Context, r *signetv1.UpdateIdentityProviderRequest) (*signetv1.UpdateIdentityProviderResponse, error) {
	info := call.From(ctx)
	permit, err := idp.PermitByOwner(ctx, s.Store, info.Caller, r.GetIdpId(), info.OrgHeader)
	if err != nil {
		return nil, err
	}
	d, err := idp.Replace(ctx, s.Store, permit, r.GetIdpId(), info.IfMatch, idp.General{
		Name: r.GetName(), Styling: stylings.name(r.GetStylingType()), AutoRegister: r.GetAutoRegister(),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateIdentityProviderResponse{Details: changed(d)}, nil
}

// AddJWTIdentityProvider creates a provider in the context organization.
func (s IdentityProviders) AddJWTIdentityProvider(ctx context.Context, r *signetv1.AddJWTIdentityProviderRequest) (*signetv1.AddJWTIdentityProviderResponse, error) {
	once, err := once(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	added, err := idp.AddJWT(ctx, s.Store, call.From(ctx).Permit, once,
		idp.General{Name: r.GetName(), Styling: stylings.name(r.GetStylingType()), AutoRegister: r.GetAutoRegister()},
		idp.JWT{Endpoint: r.GetJwtEndpoint(), Issuer: r.GetIssuer(), KeysEndpoint: r.GetKeysEndpoint(), HeaderName: r.GetHeaderName(), Audience: r.GetAudience()})
	if err != nil {
		return nil, err
	}
	return &signetv1.AddJWTIdentityProviderResponse{Details: complete(added.Details), IdpId: added.ID}, nil
}

// GetIdentityProvider reads a provider of the context organization.
func (s IdentityProviders) GetIdentityProvider(ctx context.Context, r *signetv1.GetIdentityProviderRequest) (*signetv1.GetIdentityProviderResponse, error) {
	p, err := idp.Get(ctx, s.Store, call.From(ctx).Permit, r.GetIdpId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetIdentityProviderResponse{Idp: showProvider(p)}, nil
}

func showProvider(p *event.Object[idp.Provider]) *signetv1.IdentityProvider {
	g := p.Data.General
	out := &signetv1.IdentityProvider{IdpId: p.ID, Details: complete(p.Details()), State: idpStates.number(p.Data.State),
		Name: g.Name, StylingType: stylings.number(g.Styling), AutoRegister: g.AutoRegister}
	if j := p.Data.JWT; j != nil {
		out.Config = &signetv1.IdentityProvider_Jwt{Jwt: &signetv1.IdentityProvider_JWT{
			JwtEndpoint: j.Endpoint, Issuer: j.Issuer, KeysEndpoint: j.KeysEndpoint, HeaderName: j.HeaderName, Audience: j.Audience}}
	} else if o := p.Data.OIDC; o != nil {
		out.Config = &signetv1.IdentityProvider_Oidc{Oidc: &signetv1.IdentityProvider_OIDC{
			Issuer: o.Issuer, ClientId: o.ClientID, HasClientSecret: o.HasClientSecret, Scopes: o.Scopes}}
	}
	return out
}
