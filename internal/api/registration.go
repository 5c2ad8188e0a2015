package api

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/registration"
)

// Registrations implements RegistrationService.
type Registrations struct{ Registrations *registration.Registrations }

var _ signetv1connect.RegistrationServiceHandler = Registrations{}

// StartRegistration has a mail sent.
func (s Registrations) StartRegistration(ctx context.Context,
	r *signetv1.StartRegistrationRequest) (*signetv1.StartRegistrationResponse, error) {
	info := call.From(ctx)
	in := startRegistration(r)
	in.OrgID, in.Peer, in.RequestID = cmp.Or(in.OrgID, s.Registrations.Sessions.DefaultOrg), info.Peer, info.RequestID
	if err := s.Registrations.Start(ctx, in); err != nil {
		return nil, err
	}
	return &signetv1.StartRegistrationResponse{}, nil
}

func startRegistration(r *signetv1.StartRegistrationRequest) registration.Start {
	return registration.Start{OrgID: r.GetOrgId(), Email: r.GetEmail(), Language: r.GetPreferredLanguage()}
}

// checkStartRegistration lists what is wrong with a start.
func checkStartRegistration(r *signetv1.StartRegistrationRequest) []errs.Violation {
	in := startRegistration(r)
	return in.Violations()
}

// StartRegistrationPasskey makes a challenge for the first passkey.
func (s Registrations) StartRegistrationPasskey(ctx context.Context,
	r *signetv1.StartRegistrationPasskeyRequest) (*signetv1.StartRegistrationPasskeyResponse, error) {
	options, err := s.Registrations.StartPasskey(ctx, call.From(ctx).Peer, r.GetToken())
	if err != nil {
		return nil, err
	}
	return &signetv1.StartRegistrationPasskeyResponse{CreationOptions: options}, nil
}

// FinishRegistration creates the user and a session.
func (s Registrations) FinishRegistration(ctx context.Context,
	r *signetv1.FinishRegistrationRequest) (*signetv1.FinishRegistrationResponse, error) {
	info, p := call.From(ctx), r.GetProfile()
	in, err := s.Registrations.Finish(ctx, registration.Finish{
		Link:          r.GetToken(),
		UserName:      r.GetUserName(),
		FirstName:     p.GetFirstName(),
		LastName:      p.GetLastName(),
		NickName:      p.GetNickName(),
		DisplayName:   p.GetDisplayName(),
		Language:      p.GetPreferredLanguage(),
		Password:      r.GetPassword(),
		Credential:    r.GetCredential(),
		PasskeyName:   r.GetPasskeyName(),
		AcceptedTerms: r.GetAcceptedTermsUri(),
		Peer:          info.Peer,
		UserAgent:     info.UserAgent,
		RequestID:     info.RequestID,
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.FinishRegistrationResponse{SessionId: in.SessionID, Token: in.Token,
		ExpirationDate: timestamppb.New(in.Expires), UserId: in.UserID,
		SecondFactorRequired: in.SecondFactorRequired}, nil
}

// showTerms shows what somebody has accepted; nil for nothing.
func showTerms(t *user.Terms) *signetv1.User_AcceptedTerms {
	if t == nil {
		return nil
	}
	return &signetv1.User_AcceptedTerms{Uri: t.URI, AcceptanceDate: timestamppb.New(event.Time(t.At))}
}
