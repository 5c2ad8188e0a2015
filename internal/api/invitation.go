package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/signin/newcomer"
)

// Invitations implements InvitationService.
type Invitations struct {
	Invitations invitation.Invitations
	Newcomers   newcomer.Newcomers
	Clock       func() time.Time
}

var _ signetv1connect.InvitationServiceHandler = Invitations{}

// invitationStates pairs the numbers of the API with the words of the package.
var invitationStates = enum[signetv1.Invitation_State, invitation.State]{
	signetv1.Invitation_STATE_PENDING:   invitation.Pending,
	signetv1.Invitation_STATE_ACCEPTED:  invitation.Accepted,
	signetv1.Invitation_STATE_WITHDRAWN: invitation.Withdrawn,
	signetv1.Invitation_STATE_EXPIRED:   invitation.Expired,
}

// checkInvitation lists what is wrong with a request beyond the field rules of the definition.
func checkInvitation(req proto.Message) []errs.Violation {
	if r, is := req.(*signetv1.CreateInvitationRequest); is {
		n := wantedInvitation(r)
		return n.Violations()
	}
	return nil
}

func wantedInvitation(r *signetv1.CreateInvitationRequest) invitation.New {
	n := invitation.New{Email: r.GetEmail(), Roles: r.GetRoles(), Groups: r.GetGroupIds(), Language: r.GetLanguage(),
		Life: time.Duration(r.GetLifetimeSeconds()) * time.Second, App: r.GetAppId(), Target: r.GetTargetLinkUri()}
	for _, of := range r.GetAppRoles() {
		n.AppRoles = append(n.AppRoles, invitation.AppRoles{Project: of.GetProjectId(), Keys: of.GetRoleKeys()})
	}
	return n
}

// CreateInvitation invites somebody into the organization that the path names.
func (s Invitations) CreateInvitation(ctx context.Context,
	r *signetv1.CreateInvitationRequest) (*signetv1.CreateInvitationResponse, error) {
	made, err := s.Invitations.Create(ctx, call.From(ctx).Permit, wantedInvitation(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.CreateInvitationResponse{InvitationId: made.ID, Details: complete(made.Details),
		ExpirationDate: timestamppb.New(made.Expires), Link: made.Link}, nil
}

// ListInvitations reads a page of invitations.
func (s Invitations) ListInvitations(ctx context.Context,
	r *signetv1.ListInvitationsRequest) (*signetv1.ListInvitationsResponse, error) {
	found, next, err := pageOf(ctx, s.Invitations.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[invitation.Invitation], *event.Cursor, error) {
			return invitation.List(ctx, s.Invitations.Store, call.From(ctx).Permit,
				invitationStates[r.GetState()], after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListInvitationsResponse{NextPageToken: next}
	for _, i := range found {
		out.Invitations = append(out.Invitations, s.render(i))
	}
	return out, nil
}

// GetInvitation reads an invitation.
func (s Invitations) GetInvitation(ctx context.Context,
	r *signetv1.GetInvitationRequest) (*signetv1.GetInvitationResponse, error) {
	i, err := invitation.Get(ctx, s.Invitations.Store, call.From(ctx).Permit, r.GetInvitationId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetInvitationResponse{Invitation: s.render(i)}, nil
}

// ResendInvitation sends a new link.
func (s Invitations) ResendInvitation(ctx context.Context,
	r *signetv1.ResendInvitationRequest) (*signetv1.ResendInvitationResponse, error) {
	info := call.From(ctx)
	made, err := s.Invitations.Resend(ctx, info.Permit, r.GetInvitationId(), info.IfMatch,
		time.Duration(r.GetLifetimeSeconds())*time.Second)
	if err != nil {
		return nil, err
	}
	return &signetv1.ResendInvitationResponse{Details: changed(made.Details),
		ExpirationDate: timestamppb.New(made.Expires), Link: made.Link}, nil
}

// WithdrawInvitation takes an invitation back.
func (s Invitations) WithdrawInvitation(ctx context.Context,
	r *signetv1.WithdrawInvitationRequest) (*signetv1.WithdrawInvitationResponse, error) {
	info := call.From(ctx)
	d, err := s.Invitations.Withdraw(ctx, info.Permit, r.GetInvitationId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.WithdrawInvitationResponse{Details: changed(d)}, nil
}

// AcceptInvitation makes a user of somebody who has a link.
func (s Invitations) AcceptInvitation(ctx context.Context,
	r *signetv1.AcceptInvitationRequest) (*signetv1.AcceptInvitationResponse, error) {
	info := call.From(ctx)
	l, err := s.Invitations.Open(ctx, r.GetInvitationToken())
	if err != nil {
		return nil, err
	}
	in, err := l.AcceptNew(ctx, s.Newcomers, newcomer.Person{
		UserName:    r.GetUserName(),
		FirstName:   r.GetFirstName(),
		LastName:    r.GetLastName(),
		NickName:    r.GetNickName(),
		DisplayName: r.GetDisplayName(),
		Language:    r.GetPreferredLanguage(),
		Password:    r.GetPassword(),
		Peer:        info.Peer,
		UserAgent:   info.UserAgent,
		RequestID:   info.RequestID,
	})
	if err != nil {
		return nil, invitationAsSent(err)
	}
	return &signetv1.AcceptInvitationResponse{SessionId: in.SessionID, Token: in.Token,
		ExpirationDate: timestamppb.New(in.Expires), UserId: in.UserID,
		SecondFactorRequired: in.SecondFactorRequired}, nil
}

// invitationAsSent names the fields as the request has them.
func invitationAsSent(err error) error {
	e, ours := errors.AsType[*errs.Error](err)
	if !ours || len(e.Fields) == 0 {
		return err
	}
	named := *e
	named.Fields = slices.Clone(e.Fields)
	for i, f := range named.Fields {
		named.Fields[i].Field = f.Field[strings.LastIndexByte(f.Field, '.')+1:]
	}
	return &named
}

// AcceptMyInvitation accepts an invitation with the caller's account.
func (s Invitations) AcceptMyInvitation(ctx context.Context,
	r *signetv1.AcceptMyInvitationRequest) (*signetv1.AcceptMyInvitationResponse, error) {
	l, err := s.Invitations.Open(ctx, r.GetInvitationToken())
	if err != nil {
		return nil, err
	}
	d, err := s.Invitations.AcceptMine(ctx, call.From(ctx).Caller, l)
	if err != nil {
		return nil, err
	}
	return &signetv1.AcceptMyInvitationResponse{OrgId: l.Org.ID, Details: changed(d)}, nil
}

// SendPasswordSetup sends a user a link to set the password.
func (s Invitations) SendPasswordSetup(ctx context.Context,
	r *signetv1.SendPasswordSetupRequest) (*signetv1.SendPasswordSetupResponse, error) {
	info := call.From(ctx)
	made, err := s.Invitations.SendSetup(ctx, info.Permit, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.SendPasswordSetupResponse{Details: changed(made.Details),
		ExpirationDate: timestamppb.New(made.Expires), Link: made.Link}, nil
}

func (s Invitations) render(i *event.Object[invitation.Invitation]) *signetv1.Invitation {
	out := &signetv1.Invitation{
		InvitationId:   i.ID,
		Details:        complete(i.Details()),
		State:          invitationStates.number(i.Data.StateAt(s.Clock())),
		Email:          i.Data.Email,
		GroupIds:       i.Data.Groups,
		Language:       i.Data.Language,
		InviterId:      i.Data.Inviter,
		ExpirationDate: timestamppb.New(event.Time(i.Data.Expires)),
		LinkShown:      i.Data.Shown,
		UserId:         i.Data.UserID,
		AppId:          i.Data.App,
		TargetLinkUri:  i.Data.Target,
		Roles:          access.Names(i.Data.Roles),
	}
	for _, of := range i.Data.AppRoles {
		shown := &signetv1.InvitedAppRoles{ProjectId: of.Project}
		for _, role := range of.Roles {
			shown.RoleKeys = append(shown.RoleKeys, role.Key)
		}
		out.AppRoles = append(out.AppRoles, shown)
	}
	return out
}
