package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Factors implements FactorService.
type Factors struct {
	Store    event.Store
	Sessions *session.Sessions
}

var _ signetv1connect.FactorServiceHandler = Factors{}

// ListMyFactors lists the caller's second factors.
func (s Factors) ListMyFactors(ctx context.Context,
	_ *signetv1.ListMyFactorsRequest) (*signetv1.ListMyFactorsResponse, error) {
	u, err := user.Self(ctx, s.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	factors, left := factorsOf(u, event.Micros(s.Sessions.Clock()))
	return &signetv1.ListMyFactorsResponse{Factors: factors, RecoveryCodesLeft: left}, nil
}

// StartMyTOTP makes a secret for an authenticator app.
func (s Factors) StartMyTOTP(ctx context.Context,
	_ *signetv1.StartMyTOTPRequest) (*signetv1.StartMyTOTPResponse, error) {
	made, err := s.Sessions.StartTOTP(ctx, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.StartMyTOTPResponse{Secret: made.Secret, Uri: made.URI}, nil
}

// ConfirmMyTOTP adds an authenticator app.
func (s Factors) ConfirmMyTOTP(ctx context.Context,
	r *signetv1.ConfirmMyTOTPRequest) (*signetv1.ConfirmMyTOTPResponse, error) {
	added, err := s.Sessions.ConfirmTOTP(ctx, call.From(ctx).Caller, r.GetName(), r.GetCode(), from(ctx))
	if err != nil {
		return nil, err
	}
	return &signetv1.ConfirmMyTOTPResponse{Details: changed(added.Details), FactorId: added.FactorID}, nil
}

// StartMyPasskey makes a challenge for a new passkey.
func (s Factors) StartMyPasskey(ctx context.Context,
	_ *signetv1.StartMyPasskeyRequest) (*signetv1.StartMyPasskeyResponse, error) {
	options, err := s.Sessions.StartPasskey(ctx, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.StartMyPasskeyResponse{CreationOptions: options}, nil
}

// ConfirmMyPasskey adds a passkey.
func (s Factors) ConfirmMyPasskey(ctx context.Context,
	r *signetv1.ConfirmMyPasskeyRequest) (*signetv1.ConfirmMyPasskeyResponse, error) {
	added, err := s.Sessions.ConfirmPasskey(ctx, call.From(ctx).Caller, r.GetName(), r.GetCredential(), from(ctx))
	if err != nil {
		return nil, err
	}
	return &signetv1.ConfirmMyPasskeyResponse{Details: changed(added.Details), FactorId: added.FactorID}, nil
}

// MakeMyRecoveryCodes gives the caller new recovery codes.
func (s Factors) MakeMyRecoveryCodes(ctx context.Context,
	_ *signetv1.MakeMyRecoveryCodesRequest) (*signetv1.MakeMyRecoveryCodesResponse, error) {
	codes, err := s.Sessions.MakeRecoveryCodes(ctx, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.MakeMyRecoveryCodesResponse{Codes: codes}, nil
}

// RemoveMyFactor takes one of the caller's second factors away.
func (s Factors) RemoveMyFactor(ctx context.Context,
	r *signetv1.RemoveMyFactorRequest) (*signetv1.RemoveMyFactorResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.RemoveFactor(ctx, info.Caller, info.IfMatch, r.GetFactorId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveMyFactorResponse{Details: changed(d)}, nil
}

// RenameMyFactor gives one of the caller's second factors another name.
func (s Factors) RenameMyFactor(ctx context.Context,
	r *signetv1.RenameMyFactorRequest) (*signetv1.RenameMyFactorResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.RenameFactor(ctx, info.Caller, info.IfMatch, r.GetFactorId(), r.GetName())
	if err != nil {
		return nil, err
	}
	return &signetv1.RenameMyFactorResponse{Details: changed(d)}, nil
}

// ListUserFactors lists the second factors of a user of the context organization.
func (s Factors) ListUserFactors(ctx context.Context,
	r *signetv1.ListUserFactorsRequest) (*signetv1.ListUserFactorsResponse, error) {
	u, err := user.Get(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	factors, left := factorsOf(u, event.Micros(s.Sessions.Clock()))
	return &signetv1.ListUserFactorsResponse{Factors: factors, RecoveryCodesLeft: left}, nil
}

// RequestUserFactorRemoval asks others to take one away.
func (s Factors) RequestUserFactorRemoval(ctx context.Context,
	r *signetv1.RequestUserFactorRemovalRequest) (*signetv1.RequestUserFactorRemovalResponse, error) {
	info := call.From(ctx)
	d, err := factor.RequestRemoval(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetFactorId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RequestUserFactorRemovalResponse{Details: changed(d)}, nil
}

// RemoveUserFactor takes a second factor of a user of the context organization away.
func (s Factors) RemoveUserFactor(ctx context.Context,
	r *signetv1.RemoveUserFactorRequest) (*signetv1.RemoveUserFactorResponse, error) {
	info := call.From(ctx)
	d, err := factor.RemoveFor(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetFactorId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveUserFactorResponse{Details: changed(d)}, nil
}

var kindTypes = map[user.FactorKind]signetv1.FactorType{
	user.TOTP:    signetv1.FactorType_FACTOR_TYPE_TOTP,
	user.Passkey: signetv1.FactorType_FACTOR_TYPE_PASSKEY,
}

// factorsOf shows the second factors of a user; a service user has none.
func factorsOf(u *event.Object[user.User], now int64) (factors []*signetv1.Factor, codesLeft int32) {
	if u.Data.Human == nil {
		return nil, 0
	}
	for _, f := range u.Data.Human.Factors {
		shown := &signetv1.Factor{FactorId: f.ID, Type: kindTypes[f.Kind], Name: f.Name,
			CreationDate: timestamppb.New(event.Time(f.Created))}
		if asked := f.RemovalAsked(now); asked != nil {
			shown.RemovalRequestedBy, shown.RemovalRequestDate = asked.By, timestamppb.New(event.Time(asked.At))
		}
		factors = append(factors, shown)
	}
	return factors, int32(u.Data.Human.RecoveryCodes)
}
