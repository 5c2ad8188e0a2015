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
