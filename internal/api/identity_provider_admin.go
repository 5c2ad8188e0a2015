package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// AddOIDCIdentityProvider creates a provider in the context organization.
func (s IdentityProviders) AddOIDCIdentityProvider(ctx context.Context,
	r *signetv1.AddOIDCIdentityProviderRequest) (*signetv1.AddOIDCIdentityProviderResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	added, err := idp.AddOIDC(ctx, s.Store, s.Master, call.From(ctx).Permit, once,
		generalOf(r), oidcOf(r), r.GetClientSecret(), r.GetDraft())
	if err != nil {
		return nil, err
	}
	return &signetv1.AddOIDCIdentityProviderResponse{Details: complete(added.Details), IdpId: added.ID}, nil
}

// AddOAuthIdentityProvider creates a provider in the context organization.
func (s IdentityProviders) AddOAuthIdentityProvider(ctx context.Context,
	r *signetv1.AddOAuthIdentityProviderRequest) (*signetv1.AddOAuthIdentityProviderResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	added, err := idp.AddOAuth(ctx, s.Store, s.Master, call.From(ctx).Permit, once,
		generalOf(r), oauthOf(r), r.GetClientSecret(), r.GetDraft())
	if err != nil {
		return nil, err
	}
	return &signetv1.AddOAuthIdentityProviderResponse{Details: complete(added.Details), IdpId: added.ID}, nil
}

// CheckIdentityProvider judges the configuration of a provider of the context organization.
func (s IdentityProviders) CheckIdentityProvider(ctx context.Context,
	r *signetv1.CheckIdentityProviderRequest) (*signetv1.CheckIdentityProviderResponse, error) {
	info := call.From(ctx)
	checked, err := idp.Check(ctx, s.Store, s.Checker, info.Permit, r.GetIdpId(), info.IfMatch, r.GetAdopt())
	if err != nil {
		return nil, err
	}
	out := &signetv1.CheckIdentityProviderResponse{Details: changed(checked.Details), Ok: checked.Passed}
	for _, p := range checked.Problems {
		out.Problems = append(out.Problems,
			&signetv1.CheckIdentityProviderResponse_Problem{Check: p.Check, Message: p.Message, Hint: p.Hint,
				Warning: p.Warning})
	}
	return out, nil
}

// ListIdentityProviders reads a page of the providers of the context organization.
func (s IdentityProviders) ListIdentityProviders(ctx context.Context,
	r *signetv1.ListIdentityProvidersRequest) (*signetv1.ListIdentityProvidersResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[idp.Provider], *event.Cursor, error) {
			return idp.List(ctx, s.Store, call.From(ctx).Permit, providerFilter(r), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListIdentityProvidersResponse{NextPageToken: next}
	for _, p := range found {
		out.Idps = append(out.Idps, showProvider(p, complete(p.Details())))
	}
	return out, nil
}

// DeactivateIdentityProvider switches a provider of the context organization off.
func (s IdentityProviders) DeactivateIdentityProvider(ctx context.Context,
	r *signetv1.DeactivateIdentityProviderRequest) (*signetv1.DeactivateIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.Deactivate(ctx, s.Store, info.Permit, r.GetIdpId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeactivateIdentityProviderResponse{Details: changed(d)}, nil
}

// ReactivateIdentityProvider switches a provider of the context organization on again.
func (s IdentityProviders) ReactivateIdentityProvider(ctx context.Context,
	r *signetv1.ReactivateIdentityProviderRequest) (*signetv1.ReactivateIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.Reactivate(ctx, s.Store, info.Permit, r.GetIdpId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.ReactivateIdentityProviderResponse{Details: changed(d)}, nil
}

// RemoveIdentityProvider ends a provider of the context organization.
func (s IdentityProviders) RemoveIdentityProvider(ctx context.Context,
	r *signetv1.RemoveIdentityProviderRequest) (*signetv1.RemoveIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.Remove(ctx, s.Store, info.Permit, r.GetIdpId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveIdentityProviderResponse{Details: changed(d)}, nil
}
