package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/session"
)

// Sessions implements SessionService.
type Sessions struct {
	Sessions *session.Sessions
	Master   secret.MasterKey
}

var _ signetv1connect.SessionServiceHandler = Sessions{}

// CreateSession signs in.
func (s Sessions) CreateSession(ctx context.Context, r *signetv1.CreateSessionRequest) (*signetv1.CreateSessionResponse, error) {
	info := call.From(ctx)
	in, err := s.Sessions.SignIn(ctx, session.Attempt{LoginName: r.GetLoginName(), Password: r.GetPassword(), OrgID: r.GetOrgId(),
		Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID})
	if err != nil {
		return nil, err
	}
	return &signetv1.CreateSessionResponse{SessionId: in.SessionID, Token: in.Token, ExpirationDate: timestamppb.New(in.Expires),
		UserId: in.UserID, PasswordChangeRequired: in.ChangeRequired}, nil
}

// EndSession signs out.
func (s Sessions) EndSession(ctx context.Context, r *signetv1.EndSessionRequest) (*signetv1.EndSessionResponse, error) {
	if err := s.Sessions.End(ctx, session.Own(call.From(ctx).Caller), r.GetSessionId()); err != nil {
		return nil, err
	}
	return &signetv1.EndSessionResponse{}, nil
}
