package login

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// step is one page of the sign-in.
type step interface {
	// show renders the page; with says what is wrong or done already.
	show(v *visit, with pages.Frame) error
	// take handles the page's form.
	take(v *visit) error
	// promptNoneError is the answer to an application that sent prompt=none; nil: the page needs nobody.
	promptNoneError() *errs.Error
}

// facts decide which page comes next.
type facts struct {
	chosen bool // the account is known that the sign-in is about
	able   bool // the browser has accounts that could go on
	other  bool // the person wants to use another account than those

	// Of the account that was chosen.
	mustProve          bool // the session has yet to prove a second factor
	enrolled           bool // the person has a second factor
	recent             bool // the person proved a short while ago who they are
	mustChangePassword bool

	passwordless bool // there is no password that could be asked for, or it is not allowed
	linked       bool // and there is a provider

	arrived  bool // a provider has brought somebody who is not signed in by that
	register bool // who can have a new account
	linking  bool // and wants to link one there is
	ask      bool // and did not choose to come
	tried    bool // the provider was asked for the proof that the application wants

	application bool       // the sign-in leads to an application, not to a page of ours
	again       bool       // the page of ours needs a recent proof
	need        oauth.Need // what the application's request lacks
	denied      bool       // the application is not for people of this organization
	silent      bool       // the application wants nobody to be asked
	why         trial.Why  // why the request lacks it
	mustChoose  bool       // the application wants the person to pick an account
	foreign     bool       // the sign-in is a trial of somebody else
}

// next reads the facts and finds the page that comes next.
func (v *visit) next() (step, trial.Why, error) {
	query := v.r.URL.Query()
	f := facts{arrived: v.arrival != nil, ask: v.arrival != nil && v.arrival.Ask, tried: query.Get(paramTried) != "", register: v.arrival != nil && v.arrival.Register, linking: v.arrival != nil && (query.Get(paramLink) != "" || v.arrival.Linking != ""), able: len(v.able()) > 0, other: query.Get(paramOther) != "", application: v.pending != nil, again: query.Get(paramAgain) != "",
		silent: v.pending != nil && v.pending.Silent(), mustChoose: v.mustChoose()}
	if v.bearer == nil {
		next, why := f.next()
		return next, why, nil
	}
	caller := v.bearer.Caller
	f.foreign = v.foreign()
	f.chosen, f.enrolled, f.recent = true, v.person.Data.SecondFactor, session.Recent(caller, v.Clock())
	var err error
	if f.passwordless, f.linked, err = v.passwordless(); err != nil {
		return nil, trial.Why{}, err
	}
	f.mustProve, f.mustChangePassword = caller.MustProveSecondFactor, caller.MustChangePassword
	if f.application && isWhole(v.bearer) { // nothing is approved by other sessions
		f.need, f.why, err = v.Grants.Needs(v.r.Context(), v.pending, v.bearer)
		if f.denied = is(err, oauth.AccessDenied); err != nil && !f.denied {
			return nil, trial.Why{}, err
		}
	}
	next, why := f.next()
	return next, why, nil
}

// next is the page for the first thing that is missing and why it comes, or the refusal of an application that wants
// nobody to be asked for it.
func (f facts) next() (step, trial.Why) {
	page, why := f.page()
	if refusal := page.promptNoneError(); f.silent && refusal != nil {
		return refused{refusal}, why
	}
	return page, why
}

func because(b trial.Because) trial.Why { return trial.Why{Because: b} }

func (f facts) page() (step, trial.Why) {
	switch {
	case f.chosen && f.foreign:
		return notOwn{}, because(trial.ForeignAccount)
	case !f.chosen && f.arrived && !f.linking && f.ask:
		return confirmArrival{}, because(trial.Newcomer)
	case !f.chosen && f.arrived && !f.linking && f.register:
		return register{}, because(trial.Newcomer)
	case !f.chosen && f.arrived && !f.linking:
		return unlinked{}, because(trial.Newcomer)
	case !f.chosen && f.able && !f.other && f.mustChoose:
		return chooseAccount{}, trial.Why{Because: trial.ByPrompt, Detail: "select_account"}
	case !f.chosen && f.able && !f.other:
		return chooseAccount{}, because(trial.SeveralAccounts)
	case !f.chosen && f.other:
		return loginName{}, because(trial.OtherWanted)
	case !f.chosen:
		return loginName{}, because(trial.NobodyThere)
	case f.mustProve && !f.enrolled && f.recent:
		return enrol{}, because(trial.ByPolicy)
	case f.mustProve && f.enrolled:
		return f.proof(), because(trial.HasFactor)
	case f.mustProve:
		return f.proof(), because(trial.NotRecent)
	case f.mustChangePassword:
		return newPassword{}, because(trial.OldPassword)
	case f.arrived && !f.recent:
		return f.proof(), because(trial.NotRecent)
	case f.arrived:
		return confirmLink{}, because(trial.Newcomer)
	case f.again && !f.application && !f.recent:
		return f.proof(), because(trial.NotRecent)
	case f.denied:
		return notAllowed{}, because(trial.NotForThem)
	}
	switch f.need {
	case oauth.NeedsOtherPerson:
		return refused{oauth.ErrLoginRequired}, f.why
	case oauth.NeedsOtherAccount:
		return loginName{}, f.why
	case oauth.NeedsRole:
		return noRole{}, f.why
	case oauth.NeedsSignIn:
		return f.anew(), f.why
	case oauth.NeedsFactorAgain:
		return secondFactor{again: true}, f.why
	case oauth.NeedsFactor:
		if f.enrolled {
			return secondFactor{}, f.why
		}
		return refused{oauth.ErrUnmetAuthentication}, because(trial.NoFactor)
	case oauth.NeedsConsent:
		return consent{}, f.why
	}
	return arrived{}, f.why
}

// proof asks who is there: for a second factor where there is one, else for the password.
func (f facts) proof() step {
	if f.enrolled {
		return secondFactor{}
	}
	return f.first()
}

// anew asks for what an application wants to be proven anew. A provider that could not say that it was is not asked
// again: a second factor shows as well that the person is there, and of whom nothing can be asked the application is
// told so.
func (f facts) anew() step {
	switch {
	case !f.tried || !f.passwordless:
		return f.first()
	case f.enrolled:
		return secondFactor{again: true}
	}
	return refused{oauth.ErrUnmetAuthentication}
}

// first asks for the password, or where there is none, for a sign-in at a provider, or for a passkey that is all that
// the person needs.
func (f facts) first() step {
	switch {
	case f.passwordless && f.linked:
		return proveThrough{}
	case f.passwordless && f.enrolled:
		return secondFactor{again: true}
	}
	return password{}
}

// passwordless tells whether the person of the session cannot prove with a password, and whether they can through a
// provider.
func (v *visit) passwordless() (without, linked bool, err error) {
	linked = v.Federation != nil && len(v.person.Data.Human.Links) > 0
	if !linked && !v.person.Data.Human.Has(user.Passkey) {
		return false, false, nil
	}
	if v.person.Data.Password.Version == 0 {
		return true, linked, nil
	}
	asked, _, err := org.ReadPolicy(v.r.Context(), v.Store, v.person.Org)
	return !asked.Allows(policy.WithPassword), linked, err
}
