package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// SetUserEmail is not there yet.
func (s Users) SetUserEmail(ctx context.Context, r *signetv1.SetUserEmailRequest) (*signetv1.SetUserEmailResponse, error) {
	return nil, errNotYet
}

// CreateEmailCode is not there yet.
func (s Users) CreateEmailCode(ctx context.Context, r *signetv1.CreateEmailCodeRequest) (*signetv1.CreateEmailCodeResponse, error) {
	return nil, errNotYet
}

// SetMyEmail is not there yet.
func (s Users) SetMyEmail(ctx context.Context, r *signetv1.SetMyEmailRequest) (*signetv1.SetMyEmailResponse, error) {
	return nil, errNotYet
}

// RequestMyEmailCode is not there yet.
func (s Users) RequestMyEmailCode(ctx context.Context, r *signetv1.RequestMyEmailCodeRequest) (*signetv1.RequestMyEmailCodeResponse, error) {
	return nil, errNotYet
}

// VerifyMyEmail is not there yet.
func (s Users) VerifyMyEmail(ctx context.Context, r *signetv1.VerifyMyEmailRequest) (*signetv1.VerifyMyEmailResponse, error) {
	return nil, errNotYet
}

// SetUserPhone is not there yet.
func (s Users) SetUserPhone(ctx context.Context, r *signetv1.SetUserPhoneRequest) (*signetv1.SetUserPhoneResponse, error) {
	return nil, errNotYet
}

// CreatePhoneCode is not there yet.
func (s Users) CreatePhoneCode(ctx context.Context, r *signetv1.CreatePhoneCodeRequest) (*signetv1.CreatePhoneCodeResponse, error) {
	return nil, errNotYet
}

// SetMyPhone is not there yet.
func (s Users) SetMyPhone(ctx context.Context, r *signetv1.SetMyPhoneRequest) (*signetv1.SetMyPhoneResponse, error) {
	return nil, errNotYet
}

// RequestMyPhoneCode is not there yet.
func (s Users) RequestMyPhoneCode(ctx context.Context, r *signetv1.RequestMyPhoneCodeRequest) (*signetv1.RequestMyPhoneCodeResponse, error) {
	return nil, errNotYet
}

// VerifyMyPhone is not there yet.
func (s Users) VerifyMyPhone(ctx context.Context, r *signetv1.VerifyMyPhoneRequest) (*signetv1.VerifyMyPhoneResponse, error) {
	return nil, errNotYet
}

// RemoveUserPhone is not there yet.
func (s Users) RemoveUserPhone(ctx context.Context, r *signetv1.RemoveUserPhoneRequest) (*signetv1.RemoveUserPhoneResponse, error) {
	return nil, errNotYet
}

// RemoveMyPhone is not there yet.
func (s Users) RemoveMyPhone(ctx context.Context, r *signetv1.RemoveMyPhoneRequest) (*signetv1.RemoveMyPhoneResponse, error) {
	return nil, errNotYet
}
