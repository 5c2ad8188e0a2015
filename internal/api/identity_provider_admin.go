package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// AddOIDCIdentityProvider is not there yet.
func (s IdentityProviders) AddOIDCIdentityProvider(ctx context.Context, r *signetv1.AddOIDCIdentityProviderRequest) (*signetv1.AddOIDCIdentityProviderResponse, error) {
	return nil, errNotYet
}

// ListIdentityProviders is not there yet.
func (s IdentityProviders) ListIdentityProviders(ctx context.Context, r *signetv1.ListIdentityProvidersRequest) (*signetv1.ListIdentityProvidersResponse, error) {
	return nil, errNotYet
}

// DeactivateIdentityProvider is not there yet.
func (s IdentityProviders) DeactivateIdentityProvider(ctx context.Context, r *signetv1.DeactivateIdentityProviderRequest) (*signetv1.DeactivateIdentityProviderResponse, error) {
	return nil, errNotYet
}

// ReactivateIdentityProvider is not there yet.
func (s IdentityProviders) ReactivateIdentityProvider(ctx context.Context, r *signetv1.ReactivateIdentityProviderRequest) (*signetv1.ReactivateIdentityProviderResponse, error) {
	return nil, errNotYet
}

// RemoveIdentityProvider is not there yet.
func (s IdentityProviders) RemoveIdentityProvider(ctx context.Context, r *signetv1.RemoveIdentityProviderRequest) (*signetv1.RemoveIdentityProviderResponse, error) {
	return nil, errNotYet
}

// ModifyIdentityProvider is not there yet.
func (s IdentityProviders) ModifyIdentityProvider(ctx context.Context, r *signetv1.ModifyIdentityProviderRequest) (*signetv1.ModifyIdentityProviderResponse, error) {
	return nil, errNotYet
}
