package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// ListMySessions is not there yet.
func (s Sessions) ListMySessions(ctx context.Context, r *signetv1.ListMySessionsRequest) (*signetv1.ListMySessionsResponse, error) {
	return nil, errNotYet
}

// EndMySessions is not there yet.
func (s Sessions) EndMySessions(ctx context.Context, r *signetv1.EndMySessionsRequest) (*signetv1.EndMySessionsResponse, error) {
	return nil, errNotYet
}

// ListUserSessions is not there yet.
func (s Sessions) ListUserSessions(ctx context.Context, r *signetv1.ListUserSessionsRequest) (*signetv1.ListUserSessionsResponse, error) {
	return nil, errNotYet
}

// EndUserSession is not there yet.
func (s Sessions) EndUserSession(ctx context.Context, r *signetv1.EndUserSessionRequest) (*signetv1.EndUserSessionResponse, error) {
	return nil, errNotYet
}

// EndUserSessions is not there yet.
func (s Sessions) EndUserSessions(ctx context.Context, r *signetv1.EndUserSessionsRequest) (*signetv1.EndUserSessionsResponse, error) {
	return nil, errNotYet
}
