package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
)

// A trial is a sign-in that leads back to the console:
//
//	StartTrial ──► Trials().Open in the browser ──► pages: Pending, Needs, Trials().Note ──► Approve or Refuse ──► FinishTrial
//
// The agreement is judged like any other, but Approve makes neither a consent nor a code: it keeps the terms.
// FinishTrial makes tokens of them by the same code as for applications, and stores none: so nothing here takes them.

// Trial is a trial of a sign-in as its person sees it.
type Trial struct {
	ID string
	trial.Record
	Findings []trial.Finding
	App      *event.Object[app.App]
}

// Trials keeps the trials.
func (g *Grants) Trials() trial.Keeper { return trial.Keeper{Store: g.Store, Master: g.Master} }

// walked is the request of a trial that goes on in this browser. Errors: ErrRequestNotFound.
func (g *Grants) walked(ctx context.Context, id, browser string) (*Request, error) {
	k, err := g.Trials().Read(ctx, id)
	if err == nil {
		err = k.In(browser)
	}
	if err != nil {
		return nil, gone(err)
	}
	r := &Request{Trial: k.UserID}
	if err := json.Unmarshal(k.Request, r); err != nil {
		return nil, fmt.Errorf("request of a trial: %w", err)
	}
	r.Created = k.Since
	return r, nil
}

// gone is what the pages are told of a trial that is not there.
func gone(err error) error {
	if errors.Is(err, trial.ErrNotFound) {
		return ErrRequestNotFound
	}
	return err
}

// StartTrial begins a trial of a sign-in to an application of the permit's organization, for the person of a session.
// If the request is refused at once, there is nothing to walk: the trial has no ID. Without an address to go back to,
// it is the first one that is registered. Errors: app.ErrNotFound; trial.ErrSession for an application, a token and a
// service user; ResourceExhausted.
func (g *Grants) StartTrial(ctx context.Context, permit access.Permit, caller *access.Caller, a request.Ask,
	pkce bool) (*Trial, error) {
	client, err := app.Get(ctx, g.Store, permit, a.ClientID)
	if err != nil {
		return nil, err
	}
	if caller.TokenKind != string(secret.Session) {
		return nil, trial.ErrSession
	}
	if a.RedirectURI == "" && len(client.Data.RedirectURIs) > 0 {
		a.RedirectURI = client.Data.RedirectURIs[0]
	}
	k := &trial.Kept{Record: trial.Record{UserID: caller.UserID, Session: session.RefOf(caller).ID}}
	a.ResponseType, a.State, a.Nonce = "code", rand.Text(), rand.Text()
	if pkce {
		k.Verifier = rand.Text() + rand.Text()
		sum := sha256.Sum256([]byte(k.Verifier))
		a.CodeChallenge, a.CodeChallengeMethod = base64.RawURLEncoding.EncodeToString(sum[:]), "S256"
	}
	k.Ask = a
	t := &Trial{App: client}
	r, found, refusal, err := g.examine(ctx, client, a)
	if err != nil {
		return nil, err
	}
	if t.Findings = found; refusal != nil {
		k.State, k.Refusal = trial.Refused, refusal
		t.Record = k.Record
		return t, nil
	}
	if k.Request, err = json.Marshal(r); err != nil {
		return nil, fmt.Errorf("request of a trial: %w", err)
	}
	t.ID = trial.Prefix + rand.Text()
	err = g.Trials().Start(ctx, caller, t.ID, k)
	t.Record = k.Record
	return t, err
}

// examine judges the request of a trial as Begin would, and says what stands out about it.
func (g *Grants) examine(ctx context.Context, client *event.Object[app.App],
	a request.Ask) (*Request, []trial.Finding, *trial.Refusal, error) {
	switch _, err := g.asking(ctx, a); {
	case errors.Is(err, ErrRedirectRefused):
		return nil, []trial.Finding{{Severity: trial.Error, Code: trial.RedirectRefused, Parameter: "redirect_uri",
			Value: a.RedirectURI}}, new(trial.RefusalOf(ErrRedirectRefused, "")), nil
	case errors.Is(err, ErrUnknownClient):
		code := trial.OrgInactive
		if client.Data.State != app.Active {
			code = trial.AppInactive
		} else if !slices.Contains(client.Data.GrantTypes, app.AuthorizationCode) {
			code = trial.NoCodeGrant
		}
		return nil, []trial.Finding{{Severity: trial.Error, Code: code}},
			new(trial.RefusalOf(ErrUnknownClient, "")), nil
	case err != nil:
		return nil, nil, nil, err
	}
	found := trial.StandsOut(a, func(scope string) trial.Code {
		return unaskable(scope, client.Data.APIScopes, slices.Contains(client.Data.GrantTypes, app.RefreshToken))
	})
	r, err := g.read(ctx, client, a)
	if refused, ours := asRefusal(err); ours {
		f := trial.Finding{Severity: trial.Error, Code: trial.ParameterRefused, Said: refused.Message}
		if len(refused.Fields) > 0 {
			f.Parameter = refused.Fields[0].Field
		}
		return nil, append(found, f),
			new(trial.RefusalOf(refused,
				g.answer(a.RedirectURI, a.ModeBack(), a.StateBack(), oauthError(refused)...).Address)), nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range strings.Fields(a.Scope) {
		if audienceOf(s) != "" && !slices.Contains(r.Scopes, s) {
			found = append(found,
				trial.Finding{Severity: trial.Warning, Code: trial.AudienceNotApproved, Parameter: "scope", Value: s})
		}
	}
	return r, found, nil, nil
}

// Why says what a trial shows of a condition of the request that is not met.
func (r *Request) Why(u Unmet) trial.Why {
	switch u {
	case UnmetSubject:
		return trial.Why{Because: trial.ByHint}
	case UnmetOrg:
		return trial.Why{Because: trial.OtherOrg, Detail: r.Org}
	case UnmetRole:
		return trial.Why{Because: trial.NoRole}
	case UnmetPrompt, UnmetFactorPrompt:
		return trial.Why{Because: trial.ByPrompt, Detail: request.PromptLogin}
	case UnmetMaxAge, UnmetFactorMaxAge:
		return trial.Why{Because: trial.ByMaxAge, Detail: strconv.FormatInt(*r.MaxAge, 10)}
	case UnmetAuthTime, UnmetFactor:
		return trial.Why{Because: trial.ByClaims}
	case UnmetPreferredFactor:
		return trial.Why{Because: trial.ByACR}
	case UnmetConsentPrompt:
		return trial.Why{Because: trial.ByPrompt, Detail: request.PromptConsent}
	case UnmetConsentElsewhere:
		return trial.Why{Because: trial.AppOfOtherOrg}
	case UnmetConsentSetting:
		return trial.Why{Because: trial.BySetting, Detail: "consentRequired"}
	case UnmetConsentScope:
		return trial.Why{Because: trial.ByScope, Detail: alwaysAsked(r.Scopes)[0]}
	case UnmetConsentChanged:
		return trial.Why{Because: trial.AppChanged}
	}
	return trial.Why{Because: trial.NothingMissing}
}

// EndTrial ends a trial that cannot go on, and gives the address to send the browser to. Nothing is kept of who else
// was there. Errors: ErrRequestNotFound.
func (g *Grants) EndTrial(ctx context.Context, p *Pending, browser, problem string,
	why trial.Why) (redirect string, err error) {
	return trial.Address(p.Client, p.ID),
		gone(g.Trials().Refuse(ctx, p.ID, browser, trial.Refusal{Error: problem, Description: why.Message()}, why))
}

// refuseTrial is Refuse for a trial.
func (g *Grants) refuseTrial(ctx context.Context, p *Pending, browser string,
	because *errs.Error) (request.Answer, error) {
	r := trial.RefusalOf(because, g.answer(p.RedirectURI, p.Mode, p.State, oauthError(because)...).Address)
	return request.Answer{Address: trial.Address(p.Client, p.ID)},
		gone(g.Trials().Refuse(ctx, p.ID, browser, r, trial.Why{Because: trial.SaidNo, Detail: r.Error}))
}

// approveTrial is Approve for a trial: it keeps the terms, and makes neither a consent nor a code.
func (g *Grants) approveTrial(ctx context.Context, p *Pending, browser string, bearer *session.Bearer,
	consented []string) (request.Answer, error) {
	a := p.agreement(consented)
	a.trial = true
	return request.Answer{Address: trial.Address(p.Client, p.ID)},
		g.agree(ctx, bearer, a, []event.RowKey{trial.Row(p.ID)}, func(tx *event.Tx, t terms) error {
			t.Nonce, t.Claims = p.Nonce, p.Claims
			return gone(g.Trials().Approve(tx, p.ID, browser, t.UserID, t.passed,
				func() (json.RawMessage, error) { return json.Marshal(t) }))
		})
}

// GetTrial reads a trial of the caller. Errors: trial.ErrNotFound.
func (g *Grants) GetTrial(ctx context.Context, caller *access.Caller, id string) (*Trial, error) {
	t, _, err := g.ownTrial(ctx, caller, id)
	return t, err
}

func (g *Grants) ownTrial(ctx context.Context, caller *access.Caller, id string) (*Trial, *trial.Kept, error) {
	k, err := g.Trials().Read(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if k.UserID != caller.UserID {
		return nil, nil, trial.ErrNotFound
	}
	t := &Trial{ID: id, Record: k.Record}
	if t.App, err = app.Kind.Read(ctx, g.Store, k.Ask.ClientID); err != nil || t.App == nil {
		return nil, nil, orElse(err, trial.ErrNotFound)
	}
	_, t.Findings, _, err = g.examine(ctx, t.App, k.Ask)
	return t, k, err
}

// TrialAnswer is what an application would get after the sign-in.
type TrialAnswer struct {
	*Tokens
	Address       string // that the browser would take to the application
	RealLife      time.Duration
	Refreshes     bool // it would get a refresh token
	IDClaims      claimset.Set
	AccessClaims  claimset.Set // of a JWT
	UserInfo      claimset.Set
	Introspection claimset.Set
}

// FinishTrial says what the application would get, if it would get a code, and forgets the trial. Errors:
// trial.ErrNotFound; trial.ErrNotEnded.
func (g *Grants) FinishTrial(ctx context.Context, caller *access.Caller, id string) (*Trial, *TrialAnswer, error) {
	t, k, err := g.ownTrial(ctx, caller, id)
	if err != nil {
		return nil, nil, err
	}
	if !k.Ended() {
		return nil, nil, trial.ErrNotEnded
	}
	var answer *TrialAnswer
	if k.State == trial.Approved {
		agreed := terms{trial: true}
		if err := json.Unmarshal(k.Terms, &agreed); err != nil {
			return nil, nil, fmt.Errorf("terms of a trial: %w", err)
		}
		if answer, err = g.trialAnswer(ctx, caller, t, &agreed); err != nil {
			return nil, nil, err
		}
	}
	return t, answer, g.Trials().Forget(ctx, id, caller.UserID)
}

// trialAnswer makes the tokens of a trial and what would be said of them. None of it is stored.
func (g *Grants) trialAnswer(ctx context.Context, caller *access.Caller, of *Trial, t *terms) (*TrialAnswer, error) {
	client := of.App
	made, err := g.prepare(ctx, &Client{App: client}, t, t.Scopes)
	if err != nil {
		return nil, err
	}
	a := &TrialAnswer{
		Tokens:       made,
		Address:      g.answer(of.Ask.RedirectURI, of.Ask.ResponseMode, of.Ask.State, "code", "CODE").Address,
		RealLife:     seconds(client.Data.AccessTokenSeconds),
		Refreshes:    t.offline() && slices.Contains(client.Data.GrantTypes, app.RefreshToken),
		IDClaims:     made.idClaims,
		AccessClaims: made.claims,
	}
	b := &session.Bearer{Token: made.stored, Caller: caller, ClientOrg: client.Org, Client: project.ClientOf(client)}
	if err := json.Unmarshal([]byte(made.stored.Data), &b.Given); err != nil {
		return nil, err
	}
	if a.UserInfo, err = g.addClaims(ctx, claimset.New(true), b, nil); err != nil {
		return nil, err
	}
	a.Introspection = g.Introspection(b, a.UserInfo)
	t.put(a.Introspection, "aud", b.Given.Audience, []string{trial.Audience})
	t.put(a.Introspection, "exp", unix(made.Issued+a.RealLife.Microseconds()), unix(made.stored.Expires))
	return a, nil
}

// put adds a claim that is another one in a trial: nobody takes its tokens.
func (t *terms) put(claims claimset.Set, name string, real, tried any) {
	why := claimset.Why{Source: claimset.Always}
	if t.trial {
		why.Real, real = real, tried
	}
	claims.Put(name, real, why)
}

// typ is the type of a token.
func (t *terms) typ(real string) string {
	if t.trial {
		return trial.TokenType
	}
	return real
}
