package api

import (
	"context"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// IdentityProviders implements IdentityProviderService.
type IdentityProviders struct {
	Store  event.Store
	Master secret.MasterKey
	Clock  func() time.Time

	// Checker judges configurations; nil: this server cannot.
	Checker idp.Checker
}

var _ signetv1connect.IdentityProviderServiceHandler = IdentityProviders{}

// UpdateJWTIdentityProvider replaces the JWT configuration of a provider of the context organization.
func (s IdentityProviders) UpdateJWTIdentityProvider(ctx context.Context,
	r *signetv1.UpdateJWTIdentityProviderRequest) (*signetv1.UpdateJWTIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.ReplaceJWT(ctx, s.Store, info.Permit, r.GetIdpId(), info.IfMatch, idp.JWT{
		Endpoint: r.GetJwtEndpoint(), Issuer: r.GetIssuer(), KeysEndpoint: r.GetKeysEndpoint(),
		HeaderName: r.GetHeaderName(),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateJWTIdentityProviderResponse{Details: changed(d)}, nil
}

// UpdateIdentityProvider replaces the general configuration of a provider, wherever it belongs.
func (s IdentityProviders) UpdateIdentityProvider(ctx context.Context,
	r *signetv1.UpdateIdentityProviderRequest) (*signetv1.UpdateIdentityProviderResponse, error) {
	info := call.From(ctx)
	permit, err := idp.PermitByOwner(ctx, s.Store, info.Caller, r.GetIdpId(), info.OrgHeader, s.Clock())
	if err != nil {
		return nil, err
	}
	d, err := idp.Replace(ctx, s.Store, permit, r.GetIdpId(), info.IfMatch, idp.General{
		Name: r.GetName(), Styling: stylingOf(r.GetStylingType()), AutoRegister: r.GetAutoRegister(),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateIdentityProviderResponse{Details: changed(d)}, nil
}

// AddJWTIdentityProvider creates a provider in the context organization.
func (s IdentityProviders) AddJWTIdentityProvider(ctx context.Context,
	r *signetv1.AddJWTIdentityProviderRequest) (*signetv1.AddJWTIdentityProviderResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	added, err := idp.AddJWT(ctx, s.Store, call.From(ctx).Permit, once,
		generalOf(r), idp.JWT{Endpoint: r.GetJwtEndpoint(), Issuer: r.GetIssuer(), KeysEndpoint: r.GetKeysEndpoint(),
			HeaderName: r.GetHeaderName(), Audience: r.GetAudience()}, r.GetDraft())
	if err != nil {
		return nil, err
	}
	return &signetv1.AddJWTIdentityProviderResponse{Details: complete(added.Details), IdpId: added.ID}, nil
}

// GetIdentityProvider reads a provider of the context organization.
func (s IdentityProviders) GetIdentityProvider(ctx context.Context,
	r *signetv1.GetIdentityProviderRequest) (*signetv1.GetIdentityProviderResponse, error) {
	p, err := idp.Get(ctx, s.Store, call.From(ctx).Permit, r.GetIdpId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetIdentityProviderResponse{Idp: showProvider(p, complete(p.Details()))}, nil
}

// ModifyIdentityProvider sets the named parts of a provider of the context organization.
func (s IdentityProviders) ModifyIdentityProvider(ctx context.Context,
	r *signetv1.ModifyIdentityProviderRequest) (*signetv1.ModifyIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.Modify(ctx, s.Store, s.Master, info.Permit, r.GetIdpId(), info.IfMatch, providerModification(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.ModifyIdentityProviderResponse{Details: changed(d)}, nil
}
