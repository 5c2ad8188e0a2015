package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// DeactivateOrganization is not there yet.
func (s Organizations) DeactivateOrganization(ctx context.Context, r *signetv1.DeactivateOrganizationRequest) (*signetv1.DeactivateOrganizationResponse, error) {
	return nil, errNotYet
}

// ReactivateOrganization is not there yet.
func (s Organizations) ReactivateOrganization(ctx context.Context, r *signetv1.ReactivateOrganizationRequest) (*signetv1.ReactivateOrganizationResponse, error) {
	return nil, errNotYet
}

// RemoveOrganization is not there yet.
func (s Organizations) RemoveOrganization(ctx context.Context, r *signetv1.RemoveOrganizationRequest) (*signetv1.RemoveOrganizationResponse, error) {
	return nil, errNotYet
}
