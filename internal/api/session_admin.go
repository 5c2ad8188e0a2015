package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/signin/session"
)

// ListMySessions lists the caller's sessions.
func (s Sessions) ListMySessions(ctx context.Context,
	r *signetv1.ListMySessionsRequest) (*signetv1.ListMySessionsResponse, error) {
	sessions, next, err := s.sessions(ctx, session.Own(call.From(ctx).Caller), r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMySessionsResponse{Sessions: sessions, NextPageToken: next}, nil
}

// EndMySessions ends the caller's other sessions.
func (s Sessions) EndMySessions(ctx context.Context,
	_ *signetv1.EndMySessionsRequest) (*signetv1.EndMySessionsResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.EndOthers(ctx, info.Caller, info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.EndMySessionsResponse{Details: changed(d)}, nil
}

// ListUserSessions lists the sessions of a user of the context organization.
func (s Sessions) ListUserSessions(ctx context.Context,
	r *signetv1.ListUserSessionsRequest) (*signetv1.ListUserSessionsResponse, error) {
	sessions, next, err := s.sessions(ctx, session.Of(call.From(ctx).Permit, r.GetUserId()), r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListUserSessionsResponse{Sessions: sessions, NextPageToken: next}, nil
}

// EndUserSession ends a session of a user of the context organization.
func (s Sessions) EndUserSession(ctx context.Context,
	r *signetv1.EndUserSessionRequest) (*signetv1.EndUserSessionResponse, error) {
	if err := s.Sessions.End(ctx, session.Of(call.From(ctx).Permit, r.GetUserId()), r.GetSessionId()); err != nil {
		return nil, err
	}
	return &signetv1.EndUserSessionResponse{}, nil
}

// EndUserSessions ends all sessions of a user of the context organization.
func (s Sessions) EndUserSessions(ctx context.Context,
	r *signetv1.EndUserSessionsRequest) (*signetv1.EndUserSessionsResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.EndAll(ctx, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.EndUserSessionsResponse{Details: changed(d)}, nil
}

// sessions renders a page of sessions.
func (s Sessions) sessions(ctx context.Context, whose session.Whose,
	r pageRequest) ([]*signetv1.Session, string, error) {
	shown, next, err := listed(ctx, s.Sessions, s.Master, whose, secret.Session, r)
	var out []*signetv1.Session
	for _, t := range shown {
		out = append(out, &signetv1.Session{SessionId: t.ID, CreationDate: timestamppb.New(t.Created),
			ExpirationDate: timestamppb.New(t.Expires), IsCurrent: t.ID == call.From(ctx).Caller.TokenID})
	}
	return out, next, err
}
