package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// ListDomains is not there yet.
func (s Organizations) ListDomains(ctx context.Context, r *signetv1.ListDomainsRequest) (*signetv1.ListDomainsResponse, error) {
	return nil, errNotYet
}

// AddDomain is not there yet.
func (s Organizations) AddDomain(ctx context.Context, r *signetv1.AddDomainRequest) (*signetv1.AddDomainResponse, error) {
	return nil, errNotYet
}

// VerifyDomain is not there yet.
func (s Organizations) VerifyDomain(ctx context.Context, r *signetv1.VerifyDomainRequest) (*signetv1.VerifyDomainResponse, error) {
	return nil, errNotYet
}

// SetPrimaryDomain is not there yet.
func (s Organizations) SetPrimaryDomain(ctx context.Context, r *signetv1.SetPrimaryDomainRequest) (*signetv1.SetPrimaryDomainResponse, error) {
	return nil, errNotYet
}

// RemoveDomain is not there yet.
func (s Organizations) RemoveDomain(ctx context.Context, r *signetv1.RemoveDomainRequest) (*signetv1.RemoveDomainResponse, error) {
	return nil, errNotYet
}
