package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/federated"
)

// Links implements LinkService.
type Links struct {
	Store    event.Store
	Sessions federated.Sessions
}

var _ signetv1connect.LinkServiceHandler = Links{}

// ListMyLinks lists the caller's links.
func (s Links) ListMyLinks(ctx context.Context, _ *signetv1.ListMyLinksRequest) (*signetv1.ListMyLinksResponse, error) {
	u, err := user.Self(ctx, s.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	links, err := s.linksOf(ctx, u)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMyLinksResponse{Links: links}, nil
}

// ConfirmMyLink confirms one of the caller's links.
func (s Links) ConfirmMyLink(ctx context.Context,
	r *signetv1.ConfirmMyLinkRequest) (*signetv1.ConfirmMyLinkResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.ConfirmLink(ctx, info.Caller, info.IfMatch, r.GetLinkId())
	if err != nil {
		return nil, err
	}
	return &signetv1.ConfirmMyLinkResponse{Details: changed(d)}, nil
}

// RemoveMyLink removes one of the caller's links.
func (s Links) RemoveMyLink(ctx context.Context,
	r *signetv1.RemoveMyLinkRequest) (*signetv1.RemoveMyLinkResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.RemoveLink(ctx, info.Caller, info.IfMatch, r.GetLinkId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveMyLinkResponse{Details: changed(d)}, nil
}

// ListUserLinks lists the links of a user of the context organization.
func (s Links) ListUserLinks(ctx context.Context,
	r *signetv1.ListUserLinksRequest) (*signetv1.ListUserLinksResponse, error) {
	u, err := user.Get(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	links, err := s.linksOf(ctx, u)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListUserLinksResponse{Links: links}, nil
}

// ConfirmUserLink confirms a link of a user of the context organization.
func (s Links) ConfirmUserLink(ctx context.Context,
	r *signetv1.ConfirmUserLinkRequest) (*signetv1.ConfirmUserLinkResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.ConfirmLinkOf(ctx, info.Permit, r.GetUserId(), info.IfMatch, r.GetLinkId())
	if err != nil {
		return nil, err
	}
	return &signetv1.ConfirmUserLinkResponse{Details: changed(d)}, nil
}

// RemoveUserLink removes a link of a user of the context organization.
func (s Links) RemoveUserLink(ctx context.Context,
	r *signetv1.RemoveUserLinkRequest) (*signetv1.RemoveUserLinkResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.RemoveLinkOf(ctx, info.Permit, r.GetUserId(), info.IfMatch, r.GetLinkId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveUserLinkResponse{Details: changed(d)}, nil
}

// linksOf shows the links of a user. A service user has none.
func (s Links) linksOf(ctx context.Context, u *event.Object[user.User]) ([]*signetv1.Link, error) {
	if u.Data.Human == nil {
		return nil, nil
	}
	links, err := s.Sessions.Links(ctx, u)
	if err != nil {
		return nil, err
	}
	var shown []*signetv1.Link
	for _, l := range links {
		shown = append(shown, &signetv1.Link{
			LinkId:       l.ID,
			IdpId:        l.Provider,
			IdpName:      l.ProviderName,
			Issuer:       l.Issuer,
			Subject:      l.Subject,
			Name:         l.Name,
			CreationDate: timestamppb.New(event.Time(l.Created)),
			Suspended:    l.Suspended,
		})
	}
	return shown, nil
}
