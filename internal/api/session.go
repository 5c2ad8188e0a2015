package api

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Sessions implements SessionService.
type Sessions struct {
	Sessions *session.Sessions
	Master   secret.MasterKey
	OwnPages ownpage.Pages
}

var _ signetv1connect.SessionServiceHandler = Sessions{}

// CreateSession signs in.
func (s Sessions) CreateSession(ctx context.Context,
	r *signetv1.CreateSessionRequest) (*signetv1.CreateSessionResponse, error) {
	info := call.From(ctx)
	in, err := s.Sessions.SignIn(ctx, session.Attempt{
		LoginName: r.GetLoginName(),
		Password:  r.GetPassword(),
		OrgID:     r.GetOrgId(),
		Peer:      info.Peer,
		UserAgent: info.UserAgent,
		RequestID: info.RequestID,
	})
	if err != nil {
		return nil, err
	}
	out := &signetv1.CreateSessionResponse{
		SessionId:              in.SessionID,
		Token:                  in.Token,
		ExpirationDate:         timestamppb.New(in.Expires),
		UserId:                 in.UserID,
		PasswordChangeRequired: in.ChangeRequired,
		SecondFactorRequired:   in.SecondFactorRequired,
	}
	for _, way := range in.Ways {
		out.SecondFactors = append(out.SecondFactors, factorTypes[way])
	}
	return out, nil
}

// StartPasskeySignIn makes a challenge for a user who has a passkey.
func (s Sessions) StartPasskeySignIn(_ context.Context,
	_ *signetv1.StartPasskeySignInRequest) (*signetv1.StartPasskeySignInResponse, error) {
	options, err := s.Sessions.StartPasskeySignIn()
	if err != nil {
		return nil, err
	}
	return &signetv1.StartPasskeySignInResponse{RequestOptions: options}, nil
}

// CreateSessionWithPasskey signs in with nothing but a passkey.
func (s Sessions) CreateSessionWithPasskey(ctx context.Context,
	r *signetv1.CreateSessionWithPasskeyRequest) (*signetv1.CreateSessionWithPasskeyResponse, error) {
	info := call.From(ctx)
	in, err := s.Sessions.SignInWithPasskey(ctx, session.PasskeyAttempt{
		Assertion: r.GetAssertion(),
		OrgID:     r.GetOrgId(),
		Peer:      info.Peer,
		UserAgent: info.UserAgent,
		RequestID: info.RequestID,
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.CreateSessionWithPasskeyResponse{
		SessionId:              in.SessionID,
		Token:                  in.Token,
		ExpirationDate:         timestamppb.New(in.Expires),
		UserId:                 in.UserID,
		PasswordChangeRequired: in.ChangeRequired,
	}, nil
}

// StartProviderSignIn starts a sign-in for an application with a page of its own.
func (s Sessions) StartProviderSignIn(ctx context.Context,
	r *signetv1.StartProviderSignInRequest) (*signetv1.StartProviderSignInResponse, error) {
	started, err := s.OwnPages.Start(ctx,
		ownpage.Start{Client: client(ctx, r), Provider: r.GetIdpId(), ReturnAddress: r.GetReturnAddress(),
			Again: r.GetAgain(), Hint: r.GetLoginHint()})
	if err != nil {
		return nil, err
	}
	return &signetv1.StartProviderSignInResponse{Address: started.Address, AttemptToken: started.Token,
		ExpirationDate: timestamppb.New(started.Expires)}, nil
}

// CreateSessionThroughProvider opens a session for who has come back from a provider.
func (s Sessions) CreateSessionThroughProvider(ctx context.Context,
	r *signetv1.CreateSessionThroughProviderRequest) (*signetv1.CreateSessionThroughProviderResponse, error) {
	var register *ownpage.Registration
	if n := r.GetRegistration(); n != nil {
		register = &ownpage.Registration{UserName: n.GetUserName(), FirstName: n.GetFirstName(),
			LastName: n.GetLastName(), NickName: n.GetNickName(), Language: n.GetPreferredLanguage(),
			Email: n.GetEmail(), AcceptedTerms: n.GetAcceptedTermsUri()}
	}
	in, err := s.OwnPages.SignIn(ctx, redeem(ctx, r), register)
	if err != nil {
		return nil, registrationError(err)
	}
	out := &signetv1.CreateSessionThroughProviderResponse{
		SessionId:              in.SessionID,
		Token:                  in.Token,
		ExpirationDate:         timestamppb.New(in.Expires),
		UserId:                 in.UserID,
		PasswordChangeRequired: in.ChangeRequired,
		SecondFactorRequired:   in.SecondFactorRequired,
	}
	for _, way := range in.Ways {
		out.SecondFactors = append(out.SecondFactors, factorTypes[way])
	}
	return out, nil
}

// registrationError names the fields as the request has them.
func registrationError(err error) error {
	e, ours := errors.AsType[*errs.Error](err)
	if !ours || len(e.Fields) == 0 {
		return err
	}
	named := *e
	named.Fields = slices.Clone(e.Fields)
	for i, f := range named.Fields {
		named.Fields[i].Field = "registration." + f.Field[strings.LastIndexByte(f.Field, '.')+1:]
	}
	return &named
}

// LinkMyAccountThroughProvider links the caller's account.
func (s Sessions) LinkMyAccountThroughProvider(ctx context.Context,
	r *signetv1.LinkMyAccountThroughProviderRequest) (*signetv1.LinkMyAccountThroughProviderResponse, error) {
	linked, err := s.OwnPages.Link(ctx, call.From(ctx).Caller, redeem(ctx, r), from(ctx))
	if err != nil {
		return nil, err
	}
	return &signetv1.LinkMyAccountThroughProviderResponse{Details: changed(linked.Details), LinkId: linked.LinkID}, nil
}

// byClient is a request with the credential of an application.
type byClient interface {
	GetClientId() string
	GetClientSecret() string
}

func client(ctx context.Context, r byClient) ownpage.Client {
	info := call.From(ctx)
	return ownpage.Client{ID: r.GetClientId(), Secret: r.GetClientSecret(), Peer: info.Peer, UserAgent: info.UserAgent,
		RequestID: info.RequestID}
}

func redeem(ctx context.Context, r interface {
	byClient
	GetAttemptToken() string
	GetCode() string
}) ownpage.Redeem {
	return ownpage.Redeem{Client: client(ctx, r), Token: r.GetAttemptToken(), Code: r.GetCode()}
}

// StartPasskeyProof makes a challenge for the caller's passkeys.
func (s Sessions) StartPasskeyProof(ctx context.Context,
	_ *signetv1.StartPasskeyProofRequest) (*signetv1.StartPasskeyProofResponse, error) {
	options, err := s.Sessions.StartProof(ctx, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.StartPasskeyProofResponse{RequestOptions: options}, nil
}

// ProveSecondFactor proves a second factor in the caller's session.
func (s Sessions) ProveSecondFactor(ctx context.Context,
	r *signetv1.ProveSecondFactorRequest) (*signetv1.ProveSecondFactorResponse, error) {
	if _, err := s.Sessions.Prove(ctx, call.From(ctx).Caller, answerOf(r), from(ctx)); err != nil {
		return nil, err
	}
	return &signetv1.ProveSecondFactorResponse{}, nil
}

// Reauthenticate takes the caller's password once more.
func (s Sessions) Reauthenticate(ctx context.Context,
	r *signetv1.ReauthenticateRequest) (*signetv1.ReauthenticateResponse, error) {
	if _, err := s.Sessions.Reauthenticate(ctx, call.From(ctx).Caller, r.GetPassword(), from(ctx)); err != nil {
		return nil, err
	}
	return &signetv1.ReauthenticateResponse{}, nil
}

// proof is a request with ways to prove a second factor.
type proof interface {
	GetTotpCode() string
	GetRecoveryCode() string
	GetAssertion() string
}

func answerOf(r proof) session.Answer {
	return session.Answer{TOTPCode: r.GetTotpCode(), RecoveryCode: r.GetRecoveryCode(), Assertion: r.GetAssertion()}
}

// oneProof refuses more than one of the ways to prove a second factor, and none where one is needed.
func oneProof(r proof, needed bool) []errs.Violation {
	used, wrong := atMostOne("totpCode", r.GetTotpCode(), "recoveryCode", r.GetRecoveryCode(), "assertion",
		r.GetAssertion())
	if used == "" && needed {
		wrong = append(wrong, errs.Violation{Field: "totpCode",
			Message: "is missing: send a totpCode, a recoveryCode or an assertion"})
	}
	return wrong
}

// atMostOne refuses every field with a value but the first, and tells which that is.
func atMostOne(fieldsAndValues ...string) (used string, wrong []errs.Violation) {
	for field := range slices.Chunk(fieldsAndValues, 2) {
		switch {
		case field[1] == "":
		case used == "":
			used = field[0]
		default:
			wrong = append(wrong,
				errs.Violation{Field: field[0],
					Message: "cannot be used together with " + used + ": leave one of them out"})
		}
	}
	return used, wrong
}

// EndSession signs out.
func (s Sessions) EndSession(ctx context.Context, r *signetv1.EndSessionRequest) (*signetv1.EndSessionResponse, error) {
	if err := s.Sessions.End(ctx, session.Own(call.From(ctx).Caller), r.GetSessionId()); err != nil {
		return nil, err
	}
	return &signetv1.EndSessionResponse{}, nil
}

// from is where a request comes from. Who calls the API keeps the token through a step.
func from(ctx context.Context) session.From {
	info := call.From(ctx)
	return session.From{Peer: info.Peer, UserAgent: info.UserAgent}
}

var factorTypes = map[session.Method]signetv1.FactorType{
	session.ByTOTP:     signetv1.FactorType_FACTOR_TYPE_TOTP,
	session.ByPasskey:  signetv1.FactorType_FACTOR_TYPE_PASSKEY,
	session.ByRecovery: signetv1.FactorType_FACTOR_TYPE_RECOVERY_CODE,
}
