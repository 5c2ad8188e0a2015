package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
)

// SendPasswordReset has a mail sent to a user of the context organization by which the user chooses a new password.
func (s Users) SendPasswordReset(ctx context.Context,
	r *signetv1.SendPasswordResetRequest) (*signetv1.SendPasswordResetResponse, error) {
	if err := s.Sessions.SendReset(ctx, call.From(ctx).Permit, r.GetUserId(), s.Mail); err != nil {
		return nil, err
	}
	return &signetv1.SendPasswordResetResponse{}, nil
}

// SendEmailVerification has a code sent to the verified e-mail address of one.
func (s Users) SendEmailVerification(ctx context.Context,
	r *signetv1.SendEmailVerificationRequest) (*signetv1.SendEmailVerificationResponse, error) {
	err := user.SendVerification(ctx, s.Store, s.Master, call.From(ctx).Permit, r.GetUserId(), s.Mail)
	if err != nil {
		return nil, err
	}
	return &signetv1.SendEmailVerificationResponse{}, nil
}

// ClearSignInThrottle lets failed attempts at the credentials of one no longer count.
func (s Users) ClearSignInThrottle(ctx context.Context,
	r *signetv1.ClearSignInThrottleRequest) (*signetv1.ClearSignInThrottleResponse, error) {
	info := call.From(ctx)
	d, err := user.ClearThrottle(ctx, s.Store, s.Master, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.ClearSignInThrottleResponse{Details: changed(d)}, nil
}
