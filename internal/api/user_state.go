package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/lifecycle"
)

// DeactivateUser switches off a user of the context organization.
func (s Users) DeactivateUser(ctx context.Context, r *signetv1.DeactivateUserRequest) (*signetv1.DeactivateUserResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.DeactivateUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeactivateUserResponse{Details: changed(d)}, nil
}

// ReactivateUser switches one on again.
func (s Users) ReactivateUser(ctx context.Context, r *signetv1.ReactivateUserRequest) (*signetv1.ReactivateUserResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.ReactivateUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.ReactivateUserResponse{Details: changed(d)}, nil
}

// LockUser locks a user of the context organization out.
func (s Users) LockUser(ctx context.Context, r *signetv1.LockUserRequest) (*signetv1.LockUserResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.LockUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.LockUserResponse{Details: changed(d)}, nil
}

// UnlockUser lets one in again.
func (s Users) UnlockUser(ctx context.Context, r *signetv1.UnlockUserRequest) (*signetv1.UnlockUserResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.UnlockUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.UnlockUserResponse{Details: changed(d)}, nil
}

// RemoveUser ends a user of the context organization.
func (s Users) RemoveUser(ctx context.Context, r *signetv1.RemoveUserRequest) (*signetv1.RemoveUserResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.RemoveUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveUserResponse{Details: changed(d)}, nil
}
