package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// GetMyOrganization reads the caller's organization.
func (s Organizations) GetMyOrganization(ctx context.Context,
	_ *signetv1.GetMyOrganizationRequest) (*signetv1.GetMyOrganizationResponse, error) {
	o, err := org.Mine(ctx, s.Setup.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetMyOrganizationResponse{Org: showOrganization(o)}, nil
}

// ListOrganizations reads a page of the installation's organizations.
func (s Organizations) ListOrganizations(ctx context.Context,
	r *signetv1.ListOrganizationsRequest) (*signetv1.ListOrganizationsResponse, error) {
	filter := org.Filter{Name: r.GetName(), Domain: r.GetDomain(), State: orgStates.name(r.GetState())}
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[org.Org], *event.Cursor, error) {
			return org.List(ctx, s.Setup.Store, call.From(ctx).Permit, filter, after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListOrganizationsResponse{NextPageToken: next}
	for _, o := range found {
		out.Orgs = append(out.Orgs, showOrganization(o))
	}
	return out, nil
}

// UpdateOrganization renames the organization the path names.
func (s Organizations) UpdateOrganization(ctx context.Context,
	r *signetv1.UpdateOrganizationRequest) (*signetv1.UpdateOrganizationResponse, error) {
	info := call.From(ctx)
	d, err := org.Rename(ctx, s.Setup.Store, info.Permit, info.IfMatch, r.GetName())
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateOrganizationResponse{Details: changed(d)}, nil
}

func showOrganization(o *event.Object[org.Org]) *signetv1.Organization {
	return &signetv1.Organization{OrgId: o.ID, Details: complete(o.Details()), State: orgStates.number(o.Data.State),
		Name: o.Data.Name, PrimaryDomain: o.Data.PrimaryDomain()}
}
