package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// SigningKeys implements SigningKeyService.
type SigningKeys struct {
	Keys  *signing.Keys
	Clock func() time.Time
}

var _ signetv1connect.SigningKeyServiceHandler = SigningKeys{}

// ListSigningKeys shows the keys that are published.
func (s SigningKeys) ListSigningKeys(ctx context.Context,
	_ *signetv1.ListSigningKeysRequest) (*signetv1.ListSigningKeysResponse, error) {
	keys, details, err := s.Keys.List(ctx, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	now := event.Micros(s.Clock())
	out := &signetv1.ListSigningKeysResponse{Details: complete(details)}
	for _, k := range keys {
		if !k.Published(now) {
			continue
		}
		signs := signing.Signs(keys, k.Algorithm, now)
		shown := &signetv1.SigningKey{
			KeyId:        k.ID,
			Algorithm:    string(k.Algorithm),
			Signs:        signs != nil && signs.ID == k.ID,
			CreationDate: timestamppb.New(event.Time(k.Made)),
			SignsFrom:    timestamppb.New(event.Time(k.SignsFrom)),
		}
		if k.Until != 0 {
			shown.PublishedUntil = timestamppb.New(event.Time(k.Until))
		}
		out.Keys = append(out.Keys, shown)
	}
	return out, nil
}

// RotateSigningKeys makes new keys.
func (s SigningKeys) RotateSigningKeys(ctx context.Context,
	r *signetv1.RotateSigningKeysRequest) (*signetv1.RotateSigningKeysResponse, error) {
	info := call.From(ctx)
	d, err := s.Keys.Rotate(ctx, info.Permit, info.IfMatch, r.GetNow())
	if err != nil {
		return nil, err
	}
	return &signetv1.RotateSigningKeysResponse{Details: changed(d)}, nil
}
