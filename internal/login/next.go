package login

import (
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/policy"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/user"
)

// step is one page of the sign-in.
type step interface {
	// show renders the page; with says what is wrong or done already.
	show(v *visit, with pages.Frame) error
	// take handles the page's form.
	take(v *visit) error
	// silently is the answer to an application that wants nobody to be asked; nil where nobody has to be.
	silently() *errs.Error
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

	application bool       // the sign-in leads to an application, not to a page of ours
	again       bool       // the page of ours needs a recent proof
	need        grant.Need // what the application's request lacks
	denied      bool       // the application is not for people of this organization
	silent      bool       // the application wants nobody to be asked
}

// next reads the facts and finds the page that comes next.
func (v *visit) next() (step, error) {
	query := v.r.URL.Query()
	f := facts{arrived: v.arrival != nil, register: v.arrival != nil && v.arrival.Register, linking: v.arrival != nil && (query.Get(paramLink) != "" || v.arrival.Linking != ""), able: len(v.able()) > 0, other: query.Get(paramOther) != "", application: v.pending != nil, again: query.Get(paramAgain) != "",
		silent: v.pending != nil && v.pending.Silent()}
	if v.bearer == nil {
		return f.next(), nil
	}
	caller := v.bearer.Caller
	f.chosen, f.enrolled, f.recent = true, v.person.Data.SecondFactor, session.Recent(caller, v.Clock())
	var err error
	if f.passwordless, f.linked, err = v.passwordless(); err != nil {
		return nil, err
	}
	f.mustProve, f.mustChangePassword = caller.MustProveSecondFactor, caller.MustChangePassword
	if f.application && isWhole(v.bearer) { // nothing is approved by other sessions
		f.need, err = v.Grants.Needs(v.r.Context(), v.pending, v.bearer)
		if f.denied = is(err, grant.AccessDenied); err != nil && !f.denied {
			return nil, err
		}
	}
	return f.next(), nil
}

// next is the page for the first thing that is missing, or the refusal of an application that wants nobody to be asked for it.
func (f facts) next() step {
	page := f.page()
	if why := page.silently(); f.silent && why != nil {
		return refused{why}
	}
	return page
}

func (f facts) page() step {
	switch {
	case !f.chosen && f.arrived && !f.linking && f.register:
		return register{}
	case !f.chosen && f.arrived && !f.linking:
		return unlinked{}
	case !f.chosen && f.able && !f.other:
		return chooseAccount{}
	case !f.chosen:
		return loginName{}
	case f.mustProve && !f.enrolled && f.recent:
		return enrol{}
	case f.mustProve:
		return f.proof()
	case f.mustChangePassword:
		return newPassword{}
	case f.arrived && !f.recent:
		return f.proof()
	case f.arrived:
		return confirmLink{}
	case f.again && !f.application && !f.recent:
		return f.proof()
	case f.denied:
		return notAllowed{}
	}
	switch f.need {
	case grant.NeedsOtherPerson:
		return refused{grant.ErrLoginRequired}
	case grant.NeedsOtherAccount:
		return loginName{}
	case grant.NeedsRole:
		return noRole{}
	case grant.NeedsSignIn:
		return f.first()
	case grant.NeedsFactorAgain:
		return secondFactor{again: true}
	case grant.NeedsFactor:
		if f.enrolled {
			return secondFactor{}
		}
		return refused{grant.ErrUnmetAuthentication}
	case grant.NeedsConsent:
		return consent{}
	}
	return arrived{}
}

// proof asks who is there: for a second factor where there is one, else for the password.
func (f facts) proof() step {
	if f.enrolled {
		return secondFactor{}
	}
	return f.first()
}

// first asks for the password, or where there is none, for a sign-in at a provider, or for a passkey that is all that the person needs.
func (f facts) first() step {
	switch {
	case f.passwordless && f.linked:
		return proveThrough{}
	case f.passwordless && f.enrolled:
		return secondFactor{again: true}
	}
	return password{}
}

// passwordless tells whether the person of the session cannot prove with a password, and whether they can through a provider.
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
