package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Users implements UserService.
type Users struct {
	Store    event.Store
	Hasher   *secret.Hasher
	Sessions *session.Sessions
	Master   secret.MasterKey
	Clock    func() time.Time

	// Mail tells that the installation can send mail.
	Mail bool
	// Deliver brings a code to a person's phone. Nil: the installation cannot.
	Deliver func(context.Context, user.Delivery) error
}

var _ signetv1connect.UserServiceHandler = Users{}

// UpdateMyProfile replaces the caller's profile.
func (s Users) UpdateMyProfile(ctx context.Context,
	r *signetv1.UpdateMyProfileRequest) (*signetv1.UpdateMyProfileResponse, error) {
	info := call.From(ctx)
	d, err := user.ReplaceProfile(ctx, s.Store, info.Caller, info.IfMatch, user.Profile{
		FirstName: r.GetFirstName(), LastName: r.GetLastName(), NickName: r.GetNickName(),
		DisplayName:       r.GetDisplayName(),
		PreferredLanguage: r.GetPreferredLanguage(), Gender: genders.name(r.GetGender()),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateMyProfileResponse{Details: changed(d)}, nil
}

// SetUserPassword sets the password of a user in the context organization.
func (s Users) SetUserPassword(ctx context.Context,
	r *signetv1.SetUserPasswordRequest) (*signetv1.SetUserPasswordResponse, error) {
	info := call.From(ctx)
	d, err := user.SetPassword(ctx, s.Store, s.Hasher.For(info.Org()), info.Permit, r.GetUserId(), info.IfMatch,
		user.NewPassword{Password: r.GetPassword(), ChangeRequired: !r.GetNoChangeRequired()})
	if err != nil {
		return nil, err
	}
	return &signetv1.SetUserPasswordResponse{Details: changed(d)}, nil
}

// ChangeMyPassword replaces the caller's password.
func (s Users) ChangeMyPassword(ctx context.Context,
	r *signetv1.ChangeMyPasswordRequest) (*signetv1.ChangeMyPasswordResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.ChangePassword(ctx, info.Caller, info.IfMatch, session.ChangePassword{
		Current: r.GetCurrentPassword(), New: r.GetNewPassword(), EndTokens: r.GetEndTokens(), Peer: info.Peer,
		UserAgent: info.UserAgent,
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.ChangeMyPasswordResponse{Details: changed(d)}, nil
}

// RequestPasswordReset has a mail sent to somebody who has forgotten the password.
func (s Users) RequestPasswordReset(ctx context.Context,
	r *signetv1.RequestPasswordResetRequest) (*signetv1.RequestPasswordResetResponse, error) {
	if !s.Mail {
		return nil, user.ErrDeliveryNotConfigured
	}
	info := call.From(ctx)
	err := s.Sessions.RequestReset(ctx, session.ResetRequest{LoginName: r.GetLoginName(), OrgID: r.GetOrgId(),
		Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID})
	if err != nil {
		return nil, err
	}
	return &signetv1.RequestPasswordResetResponse{}, nil
}

// ResetPassword replaces a password on the word of a code.
func (s Users) ResetPassword(ctx context.Context,
	r *signetv1.ResetPasswordRequest) (*signetv1.ResetPasswordResponse, error) {
	info := call.From(ctx)
	d, err := s.Sessions.Reset(ctx, session.Reset{
		UserID:    r.GetUserId(),
		Code:      r.GetCode(),
		Password:  r.GetNewPassword(),
		Answer:    answerOf(r),
		Peer:      info.Peer,
		UserAgent: info.UserAgent,
		RequestID: info.RequestID,
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.ResetPasswordResponse{Details: changed(d)}, nil
}

// GetMyUser reads the caller.
func (s Users) GetMyUser(ctx context.Context, _ *signetv1.GetMyUserRequest) (*signetv1.GetMyUserResponse, error) {
	u, err := user.Self(ctx, s.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	out, err := s.render(ctx, u)
	return &signetv1.GetMyUserResponse{User: out}, err
}

// GetUser reads a user of the context organization.
func (s Users) GetUser(ctx context.Context, r *signetv1.GetUserRequest) (*signetv1.GetUserResponse, error) {
	u, err := user.Get(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	out, err := s.render(ctx, u)
	if err != nil {
		return nil, err
	}
	answer := &signetv1.GetUserResponse{User: out}
	// This is part of how a user signs in. It is for those who may read the user's second factors, too.
	if u.Data.Service != nil {
		answer.HasSecret = proto.Bool(u.Data.Service.HasSecret)
	} else {
		answer.HasPassword = proto.Bool(u.Data.Password.Version > 0)
	}
	return answer, nil
}

// render shows a user. Login names follow from the organization's domains, so that is read along.
func (s Users) render(ctx context.Context, u *event.Object[user.User]) (*signetv1.User, error) {
	o, err := org.Owning(ctx, s.Store, call.From(ctx).Caller, u.Org)
	if err != nil {
		return nil, err
	}
	return showUser(u, o), nil
}

// showUser is a user beside the organization that it belongs to; nil where there is none.
func showUser(u *event.Object[user.User], o *event.Object[org.Org]) *signetv1.User {
	out := &signetv1.User{UserId: u.ID, Details: complete(u.Details()), State: userStates.number(u.Data.State),
		UserName: u.Data.UserName}
	if o != nil {
		out.LoginNames = o.Data.LoginNames(u.Data.UserName)
	}
	if h := u.Data.Human; h != nil {
		p := h.Profile
		human := &signetv1.User_Human{
			Profile: &signetv1.User_Profile{FirstName: p.FirstName, LastName: p.LastName, NickName: p.NickName,
				DisplayName: p.DisplayName, PreferredLanguage: p.PreferredLanguage, Gender: genders.number(p.Gender)},
			Email: h.Email.Address, IsEmailVerified: h.Email.Verified,
			PasswordChangeRequired: u.Data.Password.ChangeRequired, AcceptedTerms: showTerms(h.Terms),
		}
		if h.Phone != nil {
			human.Phone, human.IsPhoneVerified = h.Phone.Number, h.Phone.Verified
		}
		out.Type = &signetv1.User_Human_{Human: human}
	} else if v := u.Data.Service; v != nil {
		out.Type = &signetv1.User_Service_{Service: &signetv1.User_Service{Name: v.Name, Description: v.Description}}
	}
	return out
}
