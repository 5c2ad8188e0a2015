package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	refused "github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Credentials implements CredentialService.
type Credentials struct {
	Store    event.Store
	Sessions *session.Sessions
	Master   secret.MasterKey
	// Refusals are those of this node.
	Refusals *refused.Book
}

var _ signetv1connect.CredentialServiceHandler = Credentials{}

// CreateMyToken makes a personal access token for the caller.
func (s Credentials) CreateMyToken(ctx context.Context,
	r *signetv1.CreateMyTokenRequest) (*signetv1.CreateMyTokenResponse, error) {
	t, err := s.Sessions.IssueOwn(ctx, call.From(ctx).Caller, newToken(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.CreateMyTokenResponse{TokenId: t.TokenID, Token: t.Token,
		ExpirationDate: timestamppb.New(t.Expires)}, nil
}

// ListMyTokens lists the caller's personal access tokens.
func (s Credentials) ListMyTokens(ctx context.Context,
	r *signetv1.ListMyTokensRequest) (*signetv1.ListMyTokensResponse, error) {
	tokens, next, err := s.tokens(ctx, session.Own(call.From(ctx).Caller), r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMyTokensResponse{Tokens: tokens, NextPageToken: next}, nil
}

// RevokeMyToken revokes one of the caller's tokens.
func (s Credentials) RevokeMyToken(ctx context.Context,
	r *signetv1.RevokeMyTokenRequest) (*signetv1.RevokeMyTokenResponse, error) {
	if err := s.Sessions.Revoke(ctx, session.Own(call.From(ctx).Caller), r.GetTokenId()); err != nil {
		return nil, err
	}
	return &signetv1.RevokeMyTokenResponse{}, nil
}

// CreateUserToken makes a personal access token for a service user of the context organization.
func (s Credentials) CreateUserToken(ctx context.Context,
	r *signetv1.CreateUserTokenRequest) (*signetv1.CreateUserTokenResponse, error) {
	t, err := s.Sessions.IssueFor(ctx, call.From(ctx).Permit, r.GetUserId(), newToken(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.CreateUserTokenResponse{TokenId: t.TokenID, Token: t.Token,
		ExpirationDate: timestamppb.New(t.Expires)}, nil
}

// ListUserTokens lists the tokens of a user of the context organization.
func (s Credentials) ListUserTokens(ctx context.Context,
	r *signetv1.ListUserTokensRequest) (*signetv1.ListUserTokensResponse, error) {
	tokens, next, err := s.tokens(ctx, session.Of(call.From(ctx).Permit, r.GetUserId()), r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListUserTokensResponse{Tokens: tokens, NextPageToken: next}, nil
}

// RevokeUserToken revokes a token of a user of the context organization.
func (s Credentials) RevokeUserToken(ctx context.Context,
	r *signetv1.RevokeUserTokenRequest) (*signetv1.RevokeUserTokenResponse, error) {
	if err := s.Sessions.Revoke(ctx, session.Of(call.From(ctx).Permit, r.GetUserId()), r.GetTokenId()); err != nil {
		return nil, err
	}
	return &signetv1.RevokeUserTokenResponse{}, nil
}

// tokens renders a page of tokens.
func (s Credentials) tokens(ctx context.Context, whose session.Whose,
	r pageRequest) ([]*signetv1.Token, string, error) {
	shown, next, err := listed(ctx, s.Sessions, s.Master, whose, secret.PAT, r)
	var out []*signetv1.Token
	for _, t := range shown {
		out = append(out, &signetv1.Token{TokenId: t.ID, Name: t.Name, CreationDate: timestamppb.New(t.Created),
			ExpirationDate: timestamppb.New(t.Expires), IsCurrent: t.ID == call.From(ctx).Caller.TokenID})
	}
	return out, next, err
}

// listed reads a page of sessions or tokens.
func listed(ctx context.Context, sessions *session.Sessions, master secret.MasterKey, whose session.Whose,
	kind secret.TokenKind, r pageRequest) ([]session.Shown, string, error) {
	return pageOf(ctx, master, r, func(after event.Cursor, limit int) ([]session.Shown, *event.Cursor, error) {
		return sessions.List(ctx, whose, kind, after, limit)
	})
}

// SetServiceSecret makes a secret for a service user of the context organization.
func (s Credentials) SetServiceSecret(ctx context.Context,
	r *signetv1.SetServiceSecretRequest) (*signetv1.SetServiceSecretResponse, error) {
	info := call.From(ctx)
	d, text, err := user.SetSecret(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.SetServiceSecretResponse{Details: changed(d), Secret: text}, nil
}

// RemoveServiceSecret removes the secret of a service user of the context organization.
func (s Credentials) RemoveServiceSecret(ctx context.Context,
	r *signetv1.RemoveServiceSecretRequest) (*signetv1.RemoveServiceSecretResponse, error) {
	info := call.From(ctx)
	d, err := user.RemoveSecret(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveServiceSecretResponse{Details: changed(d)}, nil
}

// AddServiceKey adds a public key to a service user of the context organization.
func (s Credentials) AddServiceKey(ctx context.Context,
	r *signetv1.AddServiceKeyRequest) (*signetv1.AddServiceKeyResponse, error) {
	info := call.From(ctx)
	d, id, err := user.AddKey(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, newKey(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.AddServiceKeyResponse{Details: changed(d), KeyId: id}, nil
}

// ListServiceKeys lists the keys of a service user of the context organization.
func (s Credentials) ListServiceKeys(ctx context.Context,
	r *signetv1.ListServiceKeysRequest) (*signetv1.ListServiceKeysResponse, error) {
	u, err := user.GetService(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListServiceKeysResponse{Details: complete(u.Details())}
	for _, k := range u.Data.Service.Keys {
		key := &signetv1.ServiceKey{KeyId: k.ID, CreationDate: timestamppb.New(event.Time(k.Created)),
			PublicKey: k.PublicKey}
		if k.Expires != 0 {
			key.ExpirationDate = timestamppb.New(event.Time(k.Expires))
		}
		out.Keys = append(out.Keys, key)
	}
	return out, nil
}

// RemoveServiceKey removes a key of a service user of the context organization.
func (s Credentials) RemoveServiceKey(ctx context.Context,
	r *signetv1.RemoveServiceKeyRequest) (*signetv1.RemoveServiceKeyResponse, error) {
	info := call.From(ctx)
	d, err := user.RemoveKey(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetKeyId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveServiceKeyResponse{Details: changed(d)}, nil
}

// AddServiceWorkloadRule lets a service user of the context organization trust an outside issuer.
func (s Credentials) AddServiceWorkloadRule(ctx context.Context,
	r *signetv1.AddServiceWorkloadRuleRequest) (*signetv1.AddServiceWorkloadRuleResponse, error) {
	info := call.From(ctx)
	d, id, err := user.AddWorkloadRule(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, workloadOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.AddServiceWorkloadRuleResponse{Details: changed(d), RuleId: id}, nil
}

// workloadOf is what a new rule says.
func workloadOf(r *signetv1.AddServiceWorkloadRuleRequest) user.Workload {
	w := user.Workload{Issuer: r.GetIssuer(), Audience: r.GetAudience(), MaxLife: int64(r.GetMaxLifeSeconds()),
		KeySet: r.GetKeySet(), Once: r.GetOneTime()}
	for _, c := range r.GetClaims() {
		w.Claims = append(w.Claims, user.WorkloadClaim{Name: c.GetName(), Value: c.GetValue()})
	}
	return w
}

// ListServiceWorkloadRules lists the outside issuers that a service user of the context organization trusts.
func (s Credentials) ListServiceWorkloadRules(ctx context.Context,
	r *signetv1.ListServiceWorkloadRulesRequest) (*signetv1.ListServiceWorkloadRulesResponse, error) {
	u, err := user.GetService(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListServiceWorkloadRulesResponse{Details: complete(u.Details())}
	for _, w := range u.Data.Service.Workloads {
		rule := &signetv1.WorkloadRule{RuleId: w.ID, CreationDate: timestamppb.New(event.Time(w.Created)),
			Issuer: w.Issuer, Audience: w.Audience, MaxLifeSeconds: int32(w.MaxLife), KeySet: w.KeySet,
			OneTime: w.Once}
		for _, c := range w.Claims {
			rule.Claims = append(rule.Claims, &signetv1.WorkloadClaim{Name: c.Name, Value: c.Value})
		}
		out.Rules = append(out.Rules, rule)
	}
	return out, nil
}

// RemoveServiceWorkloadRule removes a rule of a service user of the context organization.
func (s Credentials) RemoveServiceWorkloadRule(ctx context.Context,
	r *signetv1.RemoveServiceWorkloadRuleRequest) (*signetv1.RemoveServiceWorkloadRuleResponse, error) {
	info := call.From(ctx)
	d, err := user.RemoveWorkloadRule(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetRuleId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveServiceWorkloadRuleResponse{Details: changed(d)}, nil
}

// ListServiceWorkloadRefusals reads what this node keeps of refused assertions for a service user.
func (s Credentials) ListServiceWorkloadRefusals(ctx context.Context,
	r *signetv1.ListServiceWorkloadRefusalsRequest) (*signetv1.ListServiceWorkloadRefusalsResponse, error) {
	u, err := user.GetService(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	last, _, since := s.Refusals.Read(u.ID)
	out := &signetv1.ListServiceWorkloadRefusalsResponse{Since: timestamppb.New(since)}
	for _, n := range last {
		out.Refusals = append(out.Refusals, &signetv1.WorkloadRefusal{Cause: string(n.Cause), Issuer: n.Address,
			Count: n.Count, LastDate: timestamppb.New(n.Last)})
	}
	return out, nil
}
