package oauth

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
)

// errNoSession refuses an approval by a user who is not fully signed in.
var errNoSession = access.ErrUnauthenticated

// terms is what a person lets an application have. Tokens are made from it, as long as it holds.
type terms struct {
	Client         string `json:"client"`
	ClientEpoch    int64  `json:"clientEpoch,omitempty"`
	ClientOrg      string `json:"clientOrg"`
	ClientOrgEpoch int64  `json:"clientOrgEpoch,omitempty"`
	// of the application; it counts for scopes of Signet's API only
	APIEpoch   int64         `json:"apiEpoch,omitempty"`
	UserID     string        `json:"userId"`
	OrgID      string        `json:"orgId"`
	TokenEpoch int64         `json:"tokenEpoch,omitempty"`
	OrgEpoch   int64         `json:"orgEpoch,omitempty"`
	Session    string        `json:"session"`
	Consent    int64         `json:"consent"` // Consent.Since
	Scopes     []string      `json:"scopes,omitempty"`
	Audience   []string      `json:"audience,omitempty"`
	Nonce      string        `json:"nonce,omitempty"`
	Claims     []string      `json:"claims,omitempty"` // Request.Claims
	Proof      session.Proof `json:"proof"`
	Family     string        `json:"family"`
	RefreshKey string        `json:"refreshKey,omitempty"` // thumbprint of the key that refresh tokens are bound to
	session.Basis

	places *project.Places // that the basis names, see look
	trial  bool            // of a trial, see trial.go
	passed []trial.Step    // of a trial: why nothing was missing
}

// offline tells whether the tokens outlive the session.
func (t *terms) offline() bool { return slices.Contains(t.Scopes, claimset.OfflineAccess) }

// reads are the objects that holds asks about.
func (t *terms) reads() []event.Ref {
	return slices.Concat(audiences(t.Scopes), []event.Ref{app.Kind.Ref(t.Client), org.Kind.Ref(t.ClientOrg),
		user.Kind.Ref(t.UserID), org.Kind.Ref(t.OrgID), Kind.Ref(IDFor(t.UserID))},
		t.Proof.Upstream.Reads(), t.places.Reads())
}

// holds refuses inside a command where anything that the terms rest on has gone: the application, the user, one of
// their organizations, the consent, the identity provider that the person came through, the access of an organization,
// a role that is required. look was called before. Errors: ErrInvalidGrant.
func (t *terms) holds(tx *event.Tx) error {
	client, err := app.Kind.Get(tx, t.Client)
	if err != nil {
		return err
	}
	owner, err := org.Kind.Get(tx, t.ClientOrg)
	if err != nil {
		return err
	}
	u, err := user.Kind.Get(tx, t.UserID)
	if err != nil {
		return err
	}
	o, err := org.Kind.Get(tx, t.OrgID)
	if err != nil {
		return err
	}
	c, err := Kind.Get(tx, IDFor(t.UserID))
	if err != nil {
		return err
	}
	ended := ""
	switch {
	case client == nil || client.Data.State != app.Active || client.Data.Epoch != t.ClientEpoch:
		ended = "the application is not active, or its tokens were ended"
	case client.Data.APIEpoch != t.APIEpoch && hasAPI(t.Scopes):
		ended = "tokens of the application for the API were ended"
	case owner == nil || owner.Data.State != org.Active || owner.Data.Epoch != t.ClientOrgEpoch:
		ended = "the application's organization is not active, or was not for a time"
	case u == nil || u.Data.State != user.Active || u.Data.TokenEpoch != t.TokenEpoch:
		ended = "the user is not active, or the user's sessions and tokens were ended"
	case o == nil || o.Data.State != org.Active || o.Data.Epoch != t.OrgEpoch:
		ended = "the user's organization is not active, or was not for a time"
	case c == nil || c.Data.Apps[t.Client].Since != t.Consent:
		ended = "the user has withdrawn the consent"
	}
	if ended != "" {
		return refusedTerms(t, ended)
	}
	verdict, place, err := t.places.JudgeIn(tx, project.ClientOf(client), project.PersonOf(u), t.Place)
	if err != nil || !t.Basis.Holds(verdict, place) {
		return orElse(err, refusedTerms(t, "the user may not use the application any more"))
	}
	if holds, err := t.Proof.Upstream.Holds(tx, &u.Data.Standing); err != nil || !holds {
		return orElse(err,
			refusedTerms(t, "the identity provider that the user came through is not active, or the link to it has ended"))
	}
	if client.Org == o.ID {
		return nil
	}
	own, err := ownOf(client, t.Scopes, inCommand(tx))
	if err != nil {
		return err
	}
	wanted := own.leaves(client, slices.Concat(t.Scopes, t.Told))
	if !(asksLess(client) && len(wanted) == 0) && !c.Data.Apps[t.Client].covers(wanted, client.Data.APIEpoch) {
		return refusedTerms(t, errUnasked.Error()).Because(errUnasked)
	}
	return nil
}

// inCommand finds applications that a command has declared.
func inCommand(tx *event.Tx) func(id string) (*event.Object[app.App], error) {
	return func(id string) (*event.Object[app.App], error) { return app.Kind.Get(tx, id) }
}

// refusedTerms is ErrInvalidGrant for terms that do not hold any more.
func refusedTerms(t *terms, ended string) *errs.Error {
	return refusedOf(t.Client, refusal.Ended, "what %s sent was given for %s, and ended since: %s", t.Client, t.UserID,
		ended)
}

// errUnasked is why terms do not hold that an application of another organization was given without asking the person,
// as it could be before that was a rule.
var errUnasked = errors.New("the person was never asked, and the application belongs to another organization")

// Approve lets the application of a request have what it asked for, on behalf of the person of a session, and gives the
// answer that the browser takes there, with a code. It works once. consented are the scopes that the person agreed to;
// nil where nobody was asked. Everything that Needs tells is asked again at that moment.
//
// Errors: ErrRequestNotFound; access.ErrUnauthenticated when the session has ended, or is restricted; ErrWrongOrg;
// ErrLoginRequired; ErrConsentRequired; ErrAccessDenied; ErrUnknownClient; Aborted.
func (g *Grants) Approve(ctx context.Context, id, browser string, bearer *session.Bearer,
	consented []string) (request.Answer, error) {
	p, err := g.Pending(ctx, id, browser)
	if err != nil {
		return request.Answer{}, err
	}
	if p.Trial != "" {
		return g.approveTrial(ctx, p, browser, bearer, consented)
	}
	text, hash := secret.NewToken(secret.Code)
	err = g.agree(ctx, bearer, p.agreement(consented), []event.RowKey{requests.Key(id)},
		func(tx *event.Tx, t terms) error {
			r, err := requests.For(g.Master, browser).Use(tx, id)
			if err != nil {
				return err
			}
			if r == nil {
				return ErrRequestNotFound
			}
			t.Nonce, t.Claims = r.Nonce, r.Claims
			codes.Put(tx, hex.EncodeToString(hash), &code{terms: t, RedirectURI: r.RedirectURI,
				Challenge: r.Challenge, For: r.Key})
			return nil
		})
	if err != nil {
		return request.Answer{}, err
	}
	return g.answer(p.RedirectURI, p.Mode, p.State, "code", text), nil
}

// Refuse ends a request and gives the answer that tells the application why. Errors: ErrRequestNotFound.
func (g *Grants) Refuse(ctx context.Context, id, browser string, because *errs.Error) (request.Answer, error) {
	p, err := g.Pending(ctx, id, browser)
	if err != nil {
		return request.Answer{}, err
	}
	if p.Trial != "" {
		return g.refuseTrial(ctx, p, browser, because)
	}
	row := requests.Key(id)
	err = g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			if r, err := tx.Row(row); err != nil || r == nil {
				return orElse(err, ErrRequestNotFound)
			}
			tx.DropRow(row)
			return nil
		},
	})
	if err != nil {
		return request.Answer{}, err
	}
	return g.answer(p.RedirectURI, p.Mode, p.State, oauthError(because)...), nil
}

func orElse(err error, otherwise *errs.Error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// agree settles an agreement with the person of a session in one command, in which then uses up what led to it.
func (g *Grants) agree(ctx context.Context, bearer *session.Bearer, a agreement, rows []event.RowKey,
	then func(*event.Tx, terms) error) error {
	if err := unrestricted(bearer); err != nil {
		return err
	}
	caller := bearer.Caller
	client, err := g.active(ctx, a.client)
	if err != nil {
		return err
	}
	if client == nil {
		return ErrUnknownClient
	}
	wanted := a.scopes
	if a.asked {
		// agreeing to more than was asked for gives no more
		wanted, a.told = both(a.scopes, a.consented), both(a.told, a.consented)
	}
	if a.places, _, err = g.look(ctx, client, caller, a.org); err != nil {
		return err
	}
	aud, scopes, err := g.meantFor(ctx, a.client, client.Org, wanted)
	if err != nil {
		return err
	}
	in := session.RefOf(caller)
	return event.Do(ctx, g.Store, event.Command{
		Origin: caller.Origin(),
		Write:  []event.Ref{Kind.Ref(IDFor(caller.UserID))},
		Read: refs(slices.Concat(in.Reads(), []event.Ref{app.Kind.Ref(a.client), org.Kind.Ref(client.Org)},
			a.places.Reads(), audiences(a.scopes))...),
		Rows:   rows,
		Tokens: []string{in.ID},
		Decide: func(tx *event.Tx) error {
			_, proof, err := in.Counts(tx)
			if err != nil {
				return err
			}
			t, err := a.settle(tx, caller, proof, scopes)
			if err != nil {
				return err
			}
			t.Audience, t.Session = aud, in.ID
			return then(tx, t)
		},
	})
}

// refusals of an agreement, by what is missing.
var refusals = map[Need]*errs.Error{
	NeedsOtherAccount: ErrWrongOrg,
	NeedsOtherPerson:  ErrLoginRequired,
	NeedsSignIn:       ErrLoginRequired,
	NeedsRole:         ErrNoRole,
	NeedsFactorAgain:  ErrLoginRequired,
	NeedsFactor:       ErrUnmetAuthentication,
	NeedsConsent:      ErrConsentRequired,
}

// settle judges an agreement inside its command, and records the consent.
func (a agreement) settle(tx *event.Tx, caller *access.Caller, proof session.Proof, scopes []string) (terms, error) {
	client, err := app.Kind.Get(tx, a.client)
	if err != nil {
		return terms{}, err
	}
	c, err := Kind.Get(tx, IDFor(caller.UserID))
	if err != nil {
		return terms{}, err
	}
	u, err := user.Kind.Get(tx, caller.UserID)
	if err != nil {
		return terms{}, err
	}
	if client == nil || client.Data.State != app.Active {
		return terms{}, ErrUnknownClient
	}
	verdict, place, err := a.places.JudgeIn(tx, project.ClientOf(client), project.PersonOf(u), "")
	if err != nil {
		return terms{}, err
	}
	if a.own, err = ownOf(client, a.scopes, inCommand(tx)); err != nil {
		return terms{}, err
	}
	unmet, err := a.unmet(client, caller, verdict, proof, givenTo(a.client, c), tx.Now())
	if err != nil {
		return terms{}, err
	}
	if refused := refusals[unmet.Need()]; refused != nil {
		return terms{}, refused
	}
	owner, err := org.Kind.Get(tx, client.Org)
	if err != nil {
		return terms{}, err
	}
	if owner == nil || owner.Data.State != org.Active {
		return terms{}, ErrUnknownClient
	}
	o, err := org.Kind.Get(tx, caller.OrgID)
	if err != nil {
		return terms{}, err
	}
	var since int64
	var passed []trial.Step
	if a.trial {
		passed = trial.Passed(client, caller.OrgID, proof, a.asked, a.asks(client, caller.OrgID) != NothingUnmet)
	} else if since, err = give(tx, u.ID, client, slices.Concat(scopes, a.told), a.asked); err != nil {
		return terms{}, err
	}
	return terms{
		passed:         passed,
		Client:         a.client,
		ClientEpoch:    client.Data.Epoch,
		ClientOrg:      client.Org,
		ClientOrgEpoch: owner.Data.Epoch,
		APIEpoch:       client.Data.APIEpoch,
		UserID:         u.ID,
		OrgID:          o.ID,
		TokenEpoch:     u.Data.TokenEpoch,
		OrgEpoch:       o.Data.Epoch,
		Consent:        since,
		Scopes:         scopes,
		Proof:          proof,
		Family:         event.NewID("fam"),
		Basis:          session.Basis{Bound: a.org, Place: place, Told: a.told},
	}, nil
}
