package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/session"
)

// Credentials implements CredentialService.
type Credentials struct {
	Store    event.Store
	Sessions *session.Sessions
	Master   secret.MasterKey
}

var _ signetv1connect.CredentialServiceHandler = Credentials{}

// CreateMyToken is not there yet.
func (s Credentials) CreateMyToken(ctx context.Context, r *signetv1.CreateMyTokenRequest) (*signetv1.CreateMyTokenResponse, error) {
	return nil, errNotYet
}

// ListMyTokens is not there yet.
func (s Credentials) ListMyTokens(ctx context.Context, r *signetv1.ListMyTokensRequest) (*signetv1.ListMyTokensResponse, error) {
	return nil, errNotYet
}

// RevokeMyToken is not there yet.
func (s Credentials) RevokeMyToken(ctx context.Context, r *signetv1.RevokeMyTokenRequest) (*signetv1.RevokeMyTokenResponse, error) {
	return nil, errNotYet
}

// CreateUserToken is not there yet.
func (s Credentials) CreateUserToken(ctx context.Context, r *signetv1.CreateUserTokenRequest) (*signetv1.CreateUserTokenResponse, error) {
	return nil, errNotYet
}

// ListUserTokens is not there yet.
func (s Credentials) ListUserTokens(ctx context.Context, r *signetv1.ListUserTokensRequest) (*signetv1.ListUserTokensResponse, error) {
	return nil, errNotYet
}

// RevokeUserToken is not there yet.
func (s Credentials) RevokeUserToken(ctx context.Context, r *signetv1.RevokeUserTokenRequest) (*signetv1.RevokeUserTokenResponse, error) {
	return nil, errNotYet
}

// SetServiceSecret is not there yet.
func (s Credentials) SetServiceSecret(ctx context.Context, r *signetv1.SetServiceSecretRequest) (*signetv1.SetServiceSecretResponse, error) {
	return nil, errNotYet
}

// RemoveServiceSecret is not there yet.
func (s Credentials) RemoveServiceSecret(ctx context.Context, r *signetv1.RemoveServiceSecretRequest) (*signetv1.RemoveServiceSecretResponse, error) {
	return nil, errNotYet
}

// AddServiceKey is not there yet.
func (s Credentials) AddServiceKey(ctx context.Context, r *signetv1.AddServiceKeyRequest) (*signetv1.AddServiceKeyResponse, error) {
	return nil, errNotYet
}

// ListServiceKeys is not there yet.
func (s Credentials) ListServiceKeys(ctx context.Context, r *signetv1.ListServiceKeysRequest) (*signetv1.ListServiceKeysResponse, error) {
	return nil, errNotYet
}

// RemoveServiceKey is not there yet.
func (s Credentials) RemoveServiceKey(ctx context.Context, r *signetv1.RemoveServiceKeyRequest) (*signetv1.RemoveServiceKeyResponse, error) {
	return nil, errNotYet
}
