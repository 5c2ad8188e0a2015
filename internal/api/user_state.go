package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// DeactivateUser is not there yet.
func (s Users) DeactivateUser(ctx context.Context, r *signetv1.DeactivateUserRequest) (*signetv1.DeactivateUserResponse, error) {
	return nil, errNotYet
}

// ReactivateUser is not there yet.
func (s Users) ReactivateUser(ctx context.Context, r *signetv1.ReactivateUserRequest) (*signetv1.ReactivateUserResponse, error) {
	return nil, errNotYet
}

// LockUser is not there yet.
func (s Users) LockUser(ctx context.Context, r *signetv1.LockUserRequest) (*signetv1.LockUserResponse, error) {
	return nil, errNotYet
}

// UnlockUser is not there yet.
func (s Users) UnlockUser(ctx context.Context, r *signetv1.UnlockUserRequest) (*signetv1.UnlockUserResponse, error) {
	return nil, errNotYet
}

// RemoveUser is not there yet.
func (s Users) RemoveUser(ctx context.Context, r *signetv1.RemoveUserRequest) (*signetv1.RemoveUserResponse, error) {
	return nil, errNotYet
}
