package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
)

// ListApplicationRefusals reads what this node keeps of refused requests of an application.
func (s Applications) ListApplicationRefusals(ctx context.Context,
	r *signetv1.ListApplicationRefusalsRequest) (*signetv1.ListApplicationRefusalsResponse, error) {
	a, err := app.Get(ctx, s.Store, call.From(ctx).Permit, r.GetAppId())
	if err != nil {
		return nil, err
	}
	last, totals, since := s.Refusals.Read(a.ID)
	out := &signetv1.ListApplicationRefusalsResponse{Since: timestamppb.New(since)}
	for _, n := range last {
		out.Refusals = append(out.Refusals, &signetv1.ApplicationRefusal{Cause: string(n.Cause), Address: n.Address,
			Count: n.Count, LastDate: timestamppb.New(n.Last)})
	}
	for _, n := range totals {
		out.Counts = append(out.Counts, &signetv1.ApplicationRefusalCount{Cause: string(n.Cause), Count: n.Count})
	}
	return out, nil
}
