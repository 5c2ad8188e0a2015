package login

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// step is one page of the sign-in.
type step interface {
	// show renders the page; with says what is wrong or done already.
	show(v *signIn, with pages.Frame) error
	// take handles the page's form.
	take(v *signIn) error
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

	brought  bool // a provider has brought somebody who is not signed in by that: an arrival
	register bool // who can have a new account
	linking  bool // and wants to link one there is
	ask      bool // and did not choose to come
	tried    bool // the provider was asked for the proof that the application wants

	application bool        // the sign-in leads to an application, not to a page of ours
	again       bool        // the page of ours needs a recent proof
	unmet       oauth.Unmet // the condition of the application's request that is not met
	denied      bool        // the application is not for people of this organization
	silent      bool        // the application wants nobody to be asked
	mustChoose  bool        // the application wants the person to pick an account
	foreign     bool        // the sign-in is a trial of somebody else
}

// facts reads what decides which page comes next.
func (v *signIn) facts() (facts, error) {
	f := facts{
		able: len(v.able()) > 0, other: v.address.other != "", mustChoose: v.mustChoose(), again: v.address.again,
		tried: v.address.tried, application: v.pending != nil, silent: v.pending != nil && v.pending.Silent(),
	}
	if a := v.arrival; a != nil {
		f.brought, f.ask, f.register, f.linking = true, a.Ask, a.Register, v.address.linking || a.Linking != ""
	}
	if v.bearer == nil {
		return f, nil
	}
	caller := v.bearer.Caller
	f.chosen, f.foreign = true, v.foreign()
	f.enrolled, f.recent = v.person.Data.SecondFactor, session.Recent(caller, v.Clock())
	f.mustProve, f.mustChangePassword = caller.MustProveSecondFactor, caller.MustChangePassword
	var err error
	if f.passwordless, f.linked, err = v.passwordless(); err != nil {
		return f, err
	}
	if f.application && isWhole(v.bearer) { // nothing is approved by other sessions
		f.unmet, err = v.Grants.Needs(v.r.Context(), v.pending, v.bearer)
		if f.denied = is(err, oauth.AccessDenied); err != nil && !f.denied {
			return f, err
		}
	}
	return f, nil
}

// next is the page for the first thing that is missing, or the refusal of an application that wants nobody to be asked
// for it.
func (f facts) next() step {
	page := f.page()
	if refusal := page.promptNoneError(); f.silent && refusal != nil {
		return refused{refusal}
	}
	return page
}

func (f facts) page() step {
	switch {
	case !f.chosen:
		return f.account()
	case f.foreign:
		return notOwn{}
	case f.mustProve && !f.enrolled && f.recent:
		return enrol{}
	case f.mustProve:
		return f.proof()
	case f.mustChangePassword:
		return newPassword{}
	case f.brought && !f.recent:
		return f.proof()
	case f.brought:
		return confirmLink{}
	case f.again && !f.application && !f.recent:
		return f.proof()
	case f.denied:
		return notAllowed{}
	}
	return f.met()
}

// account asks whose account it is.
func (f facts) account() step {
	switch {
	case f.brought && !f.linking && f.ask:
		return confirmArrival{}
	case f.brought && !f.linking && f.register:
		return register{}
	case f.brought && !f.linking:
		return unlinked{}
	case f.able && !f.other:
		return chooseAccount{}
	}
	return loginName{}
}

// met asks for what the application's request needs, until it has all.
func (f facts) met() step {
	switch f.unmet.Need() {
	case oauth.NeedsOtherPerson:
		return refused{oauth.ErrLoginRequired}
	case oauth.NeedsOtherAccount:
		return loginName{}
	case oauth.NeedsRole:
		return noRole{}
	case oauth.NeedsSignIn:
		return f.anew()
	case oauth.NeedsFactorAgain:
		return secondFactor{again: true}
	case oauth.NeedsFactor:
		if f.enrolled {
			return secondFactor{}
		}
		return refused{oauth.ErrUnmetAuthentication}
	case oauth.NeedsConsent:
		return consent{}
	}
	return finished{}
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
		return proveAtProvider{}
	case f.passwordless && f.enrolled:
		return secondFactor{again: true}
	}
	return password{}
}

// passwordless tells whether the person of the session cannot prove with a password, and whether they can through a
// provider.
func (v *signIn) passwordless() (without, linked bool, err error) {
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
