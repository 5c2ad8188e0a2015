package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// GetMyOrganization is not there yet.
func (s Organizations) GetMyOrganization(ctx context.Context, r *signetv1.GetMyOrganizationRequest) (*signetv1.GetMyOrganizationResponse, error) {
	return nil, errNotYet
}

// ListOrganizations is not there yet.
func (s Organizations) ListOrganizations(ctx context.Context, r *signetv1.ListOrganizationsRequest) (*signetv1.ListOrganizationsResponse, error) {
	return nil, errNotYet
}

// UpdateOrganization is not there yet.
func (s Organizations) UpdateOrganization(ctx context.Context, r *signetv1.UpdateOrganizationRequest) (*signetv1.UpdateOrganizationResponse, error) {
	return nil, errNotYet
}
