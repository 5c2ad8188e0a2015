package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// AddHumanUser is not there yet.
func (s Users) AddHumanUser(ctx context.Context, r *signetv1.AddHumanUserRequest) (*signetv1.AddHumanUserResponse, error) {
	return nil, errNotYet
}

// AddServiceUser is not there yet.
func (s Users) AddServiceUser(ctx context.Context, r *signetv1.AddServiceUserRequest) (*signetv1.AddServiceUserResponse, error) {
	return nil, errNotYet
}

// ListUsers is not there yet.
func (s Users) ListUsers(ctx context.Context, r *signetv1.ListUsersRequest) (*signetv1.ListUsersResponse, error) {
	return nil, errNotYet
}

// UpdateUserProfile is not there yet.
func (s Users) UpdateUserProfile(ctx context.Context, r *signetv1.UpdateUserProfileRequest) (*signetv1.UpdateUserProfileResponse, error) {
	return nil, errNotYet
}

// UpdateServiceUser is not there yet.
func (s Users) UpdateServiceUser(ctx context.Context, r *signetv1.UpdateServiceUserRequest) (*signetv1.UpdateServiceUserResponse, error) {
	return nil, errNotYet
}

// SetUserName is not there yet.
func (s Users) SetUserName(ctx context.Context, r *signetv1.SetUserNameRequest) (*signetv1.SetUserNameResponse, error) {
	return nil, errNotYet
}
