package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/oauth/trial"
)

// SignInTrials implements SignInTrialService.
type SignInTrials struct {
	Grants *oauth.Grants
}

var _ signetv1connect.SignInTrialServiceHandler = SignInTrials{}

// StartSignInTrial begins a trial of a sign-in to an application of the context organization.
func (s SignInTrials) StartSignInTrial(ctx context.Context,
	r *signetv1.StartSignInTrialRequest) (*signetv1.StartSignInTrialResponse, error) {
	info := call.From(ctx)
	t, err := s.Grants.StartTrial(ctx, info.Permit, info.Caller, request.Ask{
		ClientID:     r.GetAppId(),
		RedirectURI:  r.GetRedirectUri(),
		Scope:        r.GetScope(),
		Prompt:       r.GetPrompt(),
		MaxAge:       r.GetMaxAge(),
		ACRValues:    r.GetAcrValues(),
		LoginHint:    r.GetLoginHint(),
		ProviderHint: r.GetIdpHint(),
		Claims:       r.GetClaims(),
		UILocales:    r.GetUiLocales(),
	}, !r.GetWithoutPkce())
	if err != nil {
		return nil, err
	}
	out := &signetv1.StartSignInTrialResponse{TrialId: t.ID, Request: s.request(t), Refusal: trialRefusal(t.Refusal)}
	if t.ID != "" {
		out.Address = s.Grants.Issuer + trial.Start(t.ID)
		out.ExpirationDate = timestamppb.New(event.Time(t.Expires))
	}
	return out, nil
}

// GetSignInTrial shows how far a trial of the caller is.
func (s SignInTrials) GetSignInTrial(ctx context.Context,
	r *signetv1.GetSignInTrialRequest) (*signetv1.GetSignInTrialResponse, error) {
	t, err := s.Grants.GetTrial(ctx, call.From(ctx).Caller, r.GetTrialId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetSignInTrialResponse{Trial: s.trial(t)}, nil
}

// FinishSignInTrial says what the application of a trial of the caller would get.
func (s SignInTrials) FinishSignInTrial(ctx context.Context,
	r *signetv1.FinishSignInTrialRequest) (*signetv1.FinishSignInTrialResponse, error) {
	t, a, err := s.Grants.FinishTrial(ctx, call.From(ctx).Caller, r.GetTrialId())
	if err != nil {
		return nil, err
	}
	out := &signetv1.FinishSignInTrialResponse{Trial: s.trial(t)}
	if a != nil {
		out.Answer, err = s.answer(t, a)
	}
	return out, err
}

var trialStates = map[trial.State]signetv1.SignInTrialState{
	trial.Started:  signetv1.SignInTrialState_SIGN_IN_TRIAL_STATE_STARTED,
	trial.Running:  signetv1.SignInTrialState_SIGN_IN_TRIAL_STATE_RUNNING,
	trial.Approved: signetv1.SignInTrialState_SIGN_IN_TRIAL_STATE_APPROVED,
	trial.Refused:  signetv1.SignInTrialState_SIGN_IN_TRIAL_STATE_REFUSED,
}

var trialOutcomes = map[trial.Outcome]signetv1.SignInTrialOutcome{
	trial.Shown:   signetv1.SignInTrialOutcome_SIGN_IN_TRIAL_OUTCOME_SHOWN,
	trial.Done:    signetv1.SignInTrialOutcome_SIGN_IN_TRIAL_OUTCOME_DONE,
	trial.Failed:  signetv1.SignInTrialOutcome_SIGN_IN_TRIAL_OUTCOME_FAILED,
	trial.Skipped: signetv1.SignInTrialOutcome_SIGN_IN_TRIAL_OUTCOME_SKIPPED,
	trial.Ended:   signetv1.SignInTrialOutcome_SIGN_IN_TRIAL_OUTCOME_ENDED,
}

var trialSeverities = map[trial.Severity]signetv1.SignInTrialSeverity{
	trial.Info:    signetv1.SignInTrialSeverity_SIGN_IN_TRIAL_SEVERITY_INFO,
	trial.Warning: signetv1.SignInTrialSeverity_SIGN_IN_TRIAL_SEVERITY_WARNING,
	trial.Error:   signetv1.SignInTrialSeverity_SIGN_IN_TRIAL_SEVERITY_ERROR,
}

func (s SignInTrials) trial(t *oauth.Trial) *signetv1.SignInTrial {
	out := &signetv1.SignInTrial{
		TrialId:        t.ID,
		AppId:          t.App.ID,
		State:          trialStates[t.State],
		CreationDate:   timestamppb.New(event.Time(t.Created)),
		ExpirationDate: timestamppb.New(event.Time(t.Expires)),
		Request:        s.request(t),
		Refusal:        trialRefusal(t.Refusal),
	}
	for _, step := range t.Steps {
		out.Steps = append(out.Steps, &signetv1.SignInTrialStep{
			Step:    string(step.Page),
			Outcome: trialOutcomes[step.Outcome],
			Because: string(step.Because),
			Detail:  step.Detail,
			Message: step.Message(),
			Date:    timestamppb.New(event.Time(step.At)),
		})
	}
	return out
}

func trialRefusal(r *trial.Refusal) *signetv1.SignInTrialRefusal {
	if r == nil {
		return nil
	}
	return &signetv1.SignInTrialRefusal{Error: r.Error, Description: r.Description, Address: r.Address}
}
