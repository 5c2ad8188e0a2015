package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// DeactivateUser switches off a user of the context organization.
func (s Users) DeactivateUser(ctx context.Context,
	r *signetv1.DeactivateUserRequest) (*signetv1.DeactivateUserResponse, error) {
	info := call.From(ctx)
	held, err := s.held(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	d, err := lifecycle.DeactivateUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeactivateUserResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx, held)}, nil
}

// ReactivateUser switches one on again.
func (s Users) ReactivateUser(ctx context.Context,
	r *signetv1.ReactivateUserRequest) (*signetv1.ReactivateUserResponse, error) {
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
	held, err := s.held(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	d, err := lifecycle.LockUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.LockUserResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx, held)}, nil
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
	held, err := s.held(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	d, err := lifecycle.RemoveUser(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveUserResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx, held)}, nil
}

// held is what a user holds before it ends, for somebody who may leave organizations without an owner, see ownerless.
func (s Users) held(ctx context.Context, id string) (access.Memberships, error) {
	permit := call.From(ctx).Permit
	if !permit.ForInstallation(access.UserWrite) {
		return nil, nil
	}
	u, err := user.Get(ctx, s.Store, permit, id)
	if err != nil {
		return nil, err
	}
	return u.Data.Memberships, nil
}

// ownerless tells which organizations of a user who has ended have no owner any more. What was changed stays so if that
// cannot be read.
func (s Users) ownerless(ctx context.Context, held access.Memberships) []string {
	ids, _ := member.Ownerless(ctx, s.Store, held)
	return ids
}
