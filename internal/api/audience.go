package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ApproveAudience lets a client of another organization have tokens for an application of the context organization.
func (s Applications) ApproveAudience(ctx context.Context,
	r *signetv1.ApproveAudienceRequest) (*signetv1.ApproveAudienceResponse, error) {
	info := call.From(ctx)
	d, err := app.ApproveAudience(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, r.GetClientId())
	if err != nil {
		return nil, err
	}
	return &signetv1.ApproveAudienceResponse{Details: changed(d)}, nil
}

// WithdrawAudience ends such an approval.
func (s Applications) WithdrawAudience(ctx context.Context,
	r *signetv1.WithdrawAudienceRequest) (*signetv1.WithdrawAudienceResponse, error) {
	info := call.From(ctx)
	d, err := app.WithdrawAudience(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, r.GetClientId())
	if err != nil {
		return nil, err
	}
	return &signetv1.WithdrawAudienceResponse{Details: changed(d)}, nil
}

// ListAudienceApprovals reads a page of the approvals that the context organization has given, or got.
func (s Applications) ListAudienceApprovals(ctx context.Context,
	r *signetv1.ListAudienceApprovalsRequest) (*signetv1.ListAudienceApprovalsResponse, error) {
	list := app.ListApproving
	if r.GetReceived() {
		list = app.ListApproved
	}
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[app.App], *event.Cursor, error) {
			return list(ctx, s.Store, call.From(ctx).Permit, after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListAudienceApprovalsResponse{NextPageToken: next}
	for _, a := range found {
		approval := &signetv1.AudienceApproval{AppId: a.ID, Name: a.Data.Name, OrgId: a.Org}
		for _, given := range a.Data.Approvals {
			approval.Clients = append(approval.Clients,
				&signetv1.ApprovedClient{ClientId: given.Client, OrgId: given.Org,
					ApprovalDate: timestamppb.New(event.Time(given.At))})
		}
		out.Approvals = append(out.Approvals, approval)
	}
	return out, nil
}
