package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
)

// notAnAddress says what is wrong with the address in a field, by its grammar. That it must not be empty is a rule of
// the definition.
func notAnAddress(field, value string, grammar func(string) (string, *errs.Problem)) (wrong errs.Violations) {
	if value != "" {
		_, problem := grammar(value)
		wrong.Add(field, problem)
	}
	return wrong
}

func notAnEmail(value string) []errs.Violation { return notAnAddress("email", value, syntax.Email) }
func notAPhone(value string) []errs.Violation  { return notAnAddress("phone", value, syntax.Phone) }

// SetUserEmail replaces the e-mail address of a user of the context organization.
func (s Users) SetUserEmail(ctx context.Context,
	r *signetv1.SetUserEmailRequest) (*signetv1.SetUserEmailResponse, error) {
	info := call.From(ctx)
	d, err := user.SetEmail(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetEmail(),
		r.GetIsEmailVerified())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetUserEmailResponse{Details: changed(d)}, nil
}

// CreateEmailCode makes a code for the e-mail address of a user of the context organization.
func (s Users) CreateEmailCode(ctx context.Context,
	r *signetv1.CreateEmailCodeRequest) (*signetv1.CreateEmailCodeResponse, error) {
	c, err := user.CreateCode(ctx, s.Store, s.Master, call.From(ctx).Permit, r.GetUserId(), user.ByEmail)
	if err != nil {
		return nil, err
	}
	return &signetv1.CreateEmailCodeResponse{Code: c.Text, ExpirationDate: timestamppb.New(c.Expires)}, nil
}

// SetMyEmail replaces the caller's e-mail address.
func (s Users) SetMyEmail(ctx context.Context, r *signetv1.SetMyEmailRequest) (*signetv1.SetMyEmailResponse, error) {
	info := call.From(ctx)
	d, err := user.SetMyEmail(ctx, s.Store, info.Caller, info.IfMatch, r.GetEmail())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetMyEmailResponse{Details: changed(d)}, nil
}

// RequestMyEmailCode has a mail with a code sent to the caller.
func (s Users) RequestMyEmailCode(ctx context.Context,
	_ *signetv1.RequestMyEmailCodeRequest) (*signetv1.RequestMyEmailCodeResponse, error) {
	if !s.Mail {
		return nil, user.ErrDeliveryNotConfigured
	}
	expires, err := user.RequestMyEmailCode(ctx, s.Store, s.Master, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.RequestMyEmailCodeResponse{ExpirationDate: timestamppb.New(expires)}, nil
}

// VerifyMyEmail takes the code for the caller's e-mail address.
func (s Users) VerifyMyEmail(ctx context.Context,
	r *signetv1.VerifyMyEmailRequest) (*signetv1.VerifyMyEmailResponse, error) {
	info := call.From(ctx)
	d, err := user.VerifyMine(ctx, s.Store, s.Master, info.Caller, user.ByEmail, info.IfMatch, r.GetCode())
	if err != nil {
		return nil, err
	}
	return &signetv1.VerifyMyEmailResponse{Details: changed(d)}, nil
}

// SetUserPhone replaces the phone number of a user of the context organization.
func (s Users) SetUserPhone(ctx context.Context,
	r *signetv1.SetUserPhoneRequest) (*signetv1.SetUserPhoneResponse, error) {
	info := call.From(ctx)
	d, err := user.SetPhone(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetPhone(),
		r.GetIsPhoneVerified())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetUserPhoneResponse{Details: changed(d)}, nil
}

// CreatePhoneCode makes a code for the phone number of a user of the context organization.
func (s Users) CreatePhoneCode(ctx context.Context,
	r *signetv1.CreatePhoneCodeRequest) (*signetv1.CreatePhoneCodeResponse, error) {
	c, err := user.CreateCode(ctx, s.Store, s.Master, call.From(ctx).Permit, r.GetUserId(), user.ByPhone)
	if err != nil {
		return nil, err
	}
	return &signetv1.CreatePhoneCodeResponse{Code: c.Text, ExpirationDate: timestamppb.New(c.Expires)}, nil
}

// SetMyPhone replaces the caller's phone number.
func (s Users) SetMyPhone(ctx context.Context, r *signetv1.SetMyPhoneRequest) (*signetv1.SetMyPhoneResponse, error) {
	info := call.From(ctx)
	d, err := user.SetMyPhone(ctx, s.Store, info.Caller, info.IfMatch, r.GetPhone())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetMyPhoneResponse{Details: changed(d)}, nil
}

// RequestMyPhoneCode sends the caller a code.
func (s Users) RequestMyPhoneCode(ctx context.Context,
	_ *signetv1.RequestMyPhoneCodeRequest) (*signetv1.RequestMyPhoneCodeResponse, error) {
	expires, err := user.SendMyCode(ctx, s.Store, s.Master, call.From(ctx).Caller, user.ByPhone, s.Deliver)
	if err != nil {
		return nil, err
	}
	return &signetv1.RequestMyPhoneCodeResponse{ExpirationDate: timestamppb.New(expires)}, nil
}

// VerifyMyPhone takes the code for the caller's phone number.
func (s Users) VerifyMyPhone(ctx context.Context,
	r *signetv1.VerifyMyPhoneRequest) (*signetv1.VerifyMyPhoneResponse, error) {
	info := call.From(ctx)
	d, err := user.VerifyMine(ctx, s.Store, s.Master, info.Caller, user.ByPhone, info.IfMatch, r.GetCode())
	if err != nil {
		return nil, err
	}
	return &signetv1.VerifyMyPhoneResponse{Details: changed(d)}, nil
}

// RemoveUserPhone takes the phone number from a user of the context organization.
func (s Users) RemoveUserPhone(ctx context.Context,
	r *signetv1.RemoveUserPhoneRequest) (*signetv1.RemoveUserPhoneResponse, error) {
	info := call.From(ctx)
	d, err := user.RemovePhone(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveUserPhoneResponse{Details: changed(d)}, nil
}

// RemoveMyPhone takes the phone number from the caller.
func (s Users) RemoveMyPhone(ctx context.Context,
	_ *signetv1.RemoveMyPhoneRequest) (*signetv1.RemoveMyPhoneResponse, error) {
	info := call.From(ctx)
	d, err := user.RemoveMyPhone(ctx, s.Store, info.Caller, info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveMyPhoneResponse{Details: changed(d)}, nil
}
