package login

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// consent asks whether the application may have what it wants.
type consent struct{}

func (consent) promptNoneError() *errs.Error { return oauth.ErrConsentRequired }

func (consent) show(v *signIn, with pages.Frame) error {
	publisher, err := org.Kind.Read(v.r.Context(), v.Store, v.pending.App.Org)
	if err != nil {
		return err
	}
	told, err := v.Grants.Told(v.r.Context(), v.pending.Asks())
	if err != nil {
		return err
	}
	view := pages.Consent{Frame: v.frame(with), LoginName: v.loginName(), Access: pages.Access(told)}
	if publisher != nil {
		view.Publisher, view.Elsewhere = publisher.Data.Name, publisher.ID != v.bearer.Caller.OrgID
	}
	v.render(view, with.Problems)
	return nil
}

func (c consent) take(v *signIn) error {
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoAllow:
		return v.approve(v.pending.Asks())
	case pages.DoDeny:
		if err := v.turnedAway(session.ConsentRefused); err != nil {
			return err
		}
		return v.sayNo(oauth.ErrAccessDenied)
	}
	return c.show(v, pages.Frame{})
}

// finished is the end of the sign-in: nothing is missing. It leaves the current account as it is, because anybody can
// have a browser open the address: a person who wants another one has said so by the form of chooseAccount, or has
// signed in.
type finished struct{}

func (finished) promptNoneError() *errs.Error { return nil }

func (f finished) show(v *signIn, with pages.Frame) error {
	switch {
	case v.pending != nil:
		return v.approve(nil)
	case f.elsewhere(v):
		return chooseAccount{}.show(v, with)
	}
	Redirect(v.w, v.to)
	return nil
}

func (f finished) take(v *signIn) error {
	if v.pending == nil && f.elsewhere(v) {
		return chooseAccount{}.take(v)
	}
	return f.show(v, pages.Frame{})
}

// elsewhere tells whether the page that the sign-in leads to would be about another account than the one that was
// chosen.
func (finished) elsewhere(v *signIn) bool { return v.accounts.Current().Token.ID != v.bearer.Token.ID }

// noRole says that the application is for people with a role only, and leads back to it.
type noRole struct{}

func (noRole) promptNoneError() *errs.Error { return oauth.ErrNoRole }

func (noRole) show(v *signIn, with pages.Frame) error {
	if err := v.turnedAway(session.RoleMissing); err != nil {
		return err
	}
	v.render(pages.NoRole{Frame: v.frame(with), LoginName: v.loginName(), Other: v.other()}, with.Problems)
	return nil
}

func (noRole) take(v *signIn) error { return v.sayNo(oauth.ErrNoRole) }

// refused sends the person back to the application with an error.
type refused struct{ why *errs.Error }

func (r refused) promptNoneError() *errs.Error { return r.why }

func (r refused) show(v *signIn, _ pages.Frame) error {
	if v.bearer != nil && r.why == oauth.ErrUnmetAuthentication {
		if err := v.turnedAway(session.FactorMissing); err != nil {
			return err
		}
	}
	return v.sayNo(r.why)
}

func (r refused) take(v *signIn) error { return r.show(v, pages.Frame{}) }
