package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// DeactivateOrganization switches off the organization the path names.
func (s Organizations) DeactivateOrganization(ctx context.Context,
	_ *signetv1.DeactivateOrganizationRequest) (*signetv1.DeactivateOrganizationResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.DeactivateOrganization(ctx, s.Setup.Store, info.Permit, info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeactivateOrganizationResponse{Details: changed(d)}, nil
}

// ReactivateOrganization switches it on again.
func (s Organizations) ReactivateOrganization(ctx context.Context,
	_ *signetv1.ReactivateOrganizationRequest) (*signetv1.ReactivateOrganizationResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.ReactivateOrganization(ctx, s.Setup.Store, info.Permit, info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.ReactivateOrganizationResponse{Details: changed(d)}, nil
}

// RemoveOrganization ends it. What belonged to it is cleared away in the background.
func (s Organizations) RemoveOrganization(ctx context.Context,
	_ *signetv1.RemoveOrganizationRequest) (*signetv1.RemoveOrganizationResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.RemoveOrganization(ctx, s.Setup.Store, info.Permit, info.IfMatch)
	if err != nil {
		return nil, err
	}
	s.Cleaner.Wake()
	return &signetv1.RemoveOrganizationResponse{Details: changed(d)}, nil
}
