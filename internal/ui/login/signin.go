package login

import (
	"context"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// chooseAccount lets somebody pick one of the accounts of the browser.
type chooseAccount struct{}

func (chooseAccount) promptNoneError() *errs.Error { return oauth.ErrSelectionRequired }

func (chooseAccount) show(v *visit, with pages.Frame) error {
	view := pages.ChooseAccount{Frame: v.frame(with)}
	for _, bearer := range v.able() {
		known, err := v.known(v.r.Context(), bearer)
		if err != nil {
			return err
		}
		view.Accounts = append(view.Accounts, known)
	}
	v.render(view, with.Problems)
	return nil
}

// known is how an account is shown that is signed in here.
func (v *visit) known(ctx context.Context, bearer *session.Bearer) (pages.KnownAccount, error) {
	u, err := user.Self(ctx, v.Store, bearer.Caller)
	if err != nil {
		return pages.KnownAccount{}, err
	}
	o, err := org.Mine(ctx, v.Store, bearer.Caller)
	if err != nil {
		return pages.KnownAccount{}, err
	}
	known := pages.KnownAccount{ID: bearer.Token.ID, LoginName: o.Data.LoginName(u.Data.UserName), Organization: o.Data.Name}
	if u.Data.Human != nil {
		known.Name = u.Data.Human.Profile.DisplayName
	}
	return known, nil
}

func (chooseAccount) take(v *visit) error {
	id := v.r.PostFormValue(pages.FieldID)
	if v.r.PostFormValue(pages.FieldDo) == pages.DoOther || v.accounts.Session(id) == nil {
		Redirect(v.w, v.other().String())
		return nil
	}
	if !v.trial() { // it leaves nothing behind
		v.accounts.Use(v.w, id)
	}
	return v.on(id)
}

// loginName asks who is there. With the name, its form goes on to the password, in one answer or in two.
type loginName struct {
	removed string // what a passkey answered that counts no more; the browser is told
}

func (loginName) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (l loginName) show(v *visit, with pages.Frame) error {
	name := v.r.PostFormValue(pages.FieldLoginName)
	if name == "" && v.pending != nil {
		name = v.pending.LoginHint
	}
	if v.wrongOrganization() {
		with.Problems = append(with.Problems, pages.Problem{Message: pages.OtherOrganization(v.pending.Org.Data.Name)})
	}
	if there, err := v.straight(); err != nil || there != nil && with.Problems == nil {
		if err != nil {
			return err
		}
		return v.lead(there, name)
	}
	options, err := v.passkeyToSignIn()
	if err != nil {
		return err
	}
	v.stranger()
	view := pages.LoginName{Frame: v.frame(with), LoginName: name, Passkey: options}
	if view.Providers, view.More, view.Only, err = v.buttons(); err != nil {
		return err
	}
	if view.Register, err = v.toRegister(); err != nil {
		return err
	}
	if l.removed != "" {
		used, err := factor.ReadAssertion(pages.FieldCredential, l.removed)
		if err != nil {
			return err
		}
		view.Signal = v.Sessions.Factors.SignalRemoved(used)
	}
	if view.Only {
		view.Other = v.link(url.Values{paramOther: {otherName}})
	}
	v.render(view, with.Problems)
	return nil
}

// wrongOrganization tells that the account that was chosen is not of the organization that the sign-in is for.
func (v *visit) wrongOrganization() bool {
	return v.bearer != nil && v.pending != nil && v.pending.Org != nil && v.pending.Request.Org != v.bearer.Caller.OrgID
}

// stranger forgets which account was chosen: whoever is asked for the name may be somebody else.
func (v *visit) stranger() { v.bearer, v.person, v.home = nil, nil, nil }

func (l loginName) take(v *visit) error {
	if credential := v.r.PostFormValue(pages.FieldCredential); credential != "" {
		return v.signInWithPasskey(credential)
	}
	name := strings.TrimSpace(v.r.PostFormValue(pages.FieldLoginName))
	if name == "" {
		return l.show(v, pages.Frame{Problems: []pages.Problem{{Field: pages.FieldLoginName, Message: pages.Required()}}})
	}
	v.stranger()
	there, err := v.byDomain(name)
	if err != nil {
		return err
	}
	if there != nil && !v.r.PostForm.Has(pages.FieldPassword) {
		return v.start(there, name)
	}
	if !v.r.PostForm.Has(pages.FieldPassword) {
		return v.askPassword(name, nil)
	}
	secret := v.r.PostFormValue(pages.FieldPassword)
	if secret == "" {
		return v.askPassword(name, []pages.Problem{{Field: pages.FieldPassword, Message: pages.Required()}})
	}
	info := call.From(v.r.Context())
	attempt := session.Attempt{LoginName: name, Password: secret, Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID}
	attempt.OrgID, attempt.AppOrg = v.pending.Place()
	in, err := v.Sessions.SignIn(v.r.Context(), attempt)
	if err != nil {
		problems, err := Problem(pages.FieldPassword, pages.WrongPassword(), err)
		if err != nil {
			return err
		}
		return v.askPassword(name, problems)
	}
	return v.enter(in)
}

// askPassword shows the same page whether or not somebody has this name.
func (v *visit) askPassword(name string, problems []pages.Problem) error {
	forgot := url.Values{}
	if v.pending != nil {
		forgot.Set(paramRequest, v.pending.ID)
	}
	buttons, more, _, err := v.buttons()
	if err != nil {
		return err
	}
	v.render(pages.Password{
		Frame: v.frame(pages.Frame{Problems: problems}), LoginName: name,
		Forgot: pages.To(PathForgot, forgot), Other: v.other(), Providers: buttons, More: more,
	}, problems)
	return nil
}

// enter goes on with a session that was just opened. with is as for on.
func (v *visit) enter(in session.SignedIn, with ...string) error {
	token, err := v.remembered().Enter(in)
	if err != nil {
		return err
	}
	if err := v.accounts.Enter(v.r.Context(), v.w, token); err != nil {
		return err
	}
	if v.trial() {
		if v.bearer = v.accounts.Session(in.SessionID); v.foreign() {
			return notOwn{}.show(v, pages.Frame{})
		}
	}
	return v.on(in.SessionID, with...)
}

// password asks somebody who is signed in to prove it once more.
type password struct{}

func (password) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (password) show(v *visit, with pages.Frame) error {
	v.render(pages.Password{Frame: v.frame(with), LoginName: v.loginName(), Again: true, Other: v.other()}, with.Problems)
	return nil
}

func (p password) take(v *visit) error {
	secret := v.r.PostFormValue(pages.FieldPassword)
	if secret == "" {
		return p.show(v, pages.Frame{Problems: []pages.Problem{{Field: pages.FieldPassword, Message: pages.Required()}}})
	}
	stepped, err := v.Sessions.Reauthenticate(v.r.Context(), v.bearer.Caller, secret, v.from())
	if err != nil {
		problems, err := Problem(pages.FieldPassword, pages.WrongCurrentPassword(), err)
		if err != nil {
			return err
		}
		return p.show(v, pages.Frame{Problems: problems})
	}
	return v.stepped(stepped)
}

// from is where a step comes from. Whoever knew the session's token before it must not gain by it.
func (v *visit) from() session.From {
	info := call.From(v.r.Context())
	return session.From{Peer: info.Peer, UserAgent: info.UserAgent, Rotate: true}
}

// stepped goes on in the same session, which has a new token.
func (v *visit) stepped(s session.Stepped) error {
	if s.Token != "" {
		if err := v.accounts.Enter(v.r.Context(), v.w, s.Token); err != nil {
			return err
		}
	}
	return v.on(v.bearer.Token.ID)
}

// notAllowed asks for another account, because the application is not for people of this one's organization.
type notAllowed struct{ loginName }

func (notAllowed) promptNoneError() *errs.Error { return oauth.ErrAccessDenied }

func (n notAllowed) show(v *visit, _ pages.Frame) error {
	return n.loginName.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.NotAllowed(v.pending.App.Data.Name)}}})
}

// noRole says that the application is for people with a role only, and leads back to it.
type noRole struct{}

func (noRole) promptNoneError() *errs.Error { return oauth.ErrNoRole }

func (noRole) show(v *visit, with pages.Frame) error {
	v.render(pages.NoRole{Frame: v.frame(with), LoginName: v.loginName(), Other: v.other()}, with.Problems)
	return nil
}

func (noRole) take(v *visit) error { return v.sayNo(oauth.ErrNoRole) }

// refused sends the person back to the application with an error.
type refused struct{ why *errs.Error }

func (r refused) promptNoneError() *errs.Error { return r.why }

func (r refused) show(v *visit, _ pages.Frame) error { return v.sayNo(r.why) }

func (r refused) take(v *visit) error { return v.sayNo(r.why) }

// newPassword asks for another password, because somebody else chose the one there is.
type newPassword struct{}

func (newPassword) promptNoneError() *errs.Error { return oauth.ErrInteractionRequired }

func (newPassword) show(v *visit, with pages.Frame) error {
	rules, err := v.rules()
	if err != nil {
		return err
	}
	v.render(pages.ChangePassword{Frame: v.frame(with), LoginName: v.loginName(), Current: !v.recentPassword(), Rules: PasswordRules(rules),
		EndTokens: v.r.PostFormValue(pages.FieldEndTokens) != ""}, with.Problems)
	return nil
}

// recentPassword tells whether the old password has just been typed, so that nobody is asked for it a second time.
func (v *visit) recentPassword() bool {
	return session.ReplacesWithoutCurrent(v.bearer.Caller, v.Clock())
}

func (n newPassword) take(v *visit) error {
	rules, err := v.rules()
	if err != nil {
		return err
	}
	change, problems := ChangedPassword(v.r, rules, !v.recentPassword())
	if problems == nil {
		info := call.From(v.r.Context())
		change.Peer, change.UserAgent = info.Peer, info.UserAgent
		stepped, err := v.Sessions.ChangePasswordHere(v.r.Context(), v.bearer.Caller, change)
		if err == nil {
			return v.stepped(stepped)
		}
		if problems, err = PasswordProblems(err); err != nil {
			return err
		}
	}
	return n.show(v, pages.Frame{Problems: problems})
}

// consent asks whether the application may have what it wants.
type consent struct{}

func (consent) promptNoneError() *errs.Error { return oauth.ErrConsentRequired }

func (consent) show(v *visit, with pages.Frame) error {
	publisher, err := org.Kind.Read(v.r.Context(), v.Store, v.pending.App.Org)
	if err != nil {
		return err
	}
	view := pages.Consent{Frame: v.frame(with), LoginName: v.loginName(), Scopes: claimset.SortedScopes(v.pending.Asks())}
	if publisher != nil {
		view.Publisher, view.Elsewhere = publisher.Data.Name, publisher.ID != v.bearer.Caller.OrgID
	}
	v.render(view, with.Problems)
	return nil
}

func (c consent) take(v *visit) error {
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoAllow:
		return v.approve(v.pending.Asks())
	case pages.DoDeny:
		return v.sayNo(oauth.ErrAccessDenied)
	}
	return c.show(v, pages.Frame{})
}

// finished is the end of the way: nothing is missing. It leaves the current account as it is, because anybody can have a
// browser open the address: who wants another one has said so by the form of chooseAccount, or has signed in.
type finished struct{}

func (finished) promptNoneError() *errs.Error { return nil }

func (finished) show(v *visit, with pages.Frame) error {
	switch {
	case v.pending != nil:
		return v.approve(nil)
	case v.elsewhere():
		return chooseAccount{}.show(v, with)
	}
	Redirect(v.w, v.to)
	return nil
}

func (f finished) take(v *visit) error {
	if v.pending == nil && v.elsewhere() {
		return chooseAccount{}.take(v)
	}
	return f.show(v, pages.Frame{})
}

// elsewhere tells whether the page that the sign-in leads to would be about another account than the one that was
// chosen.
func (v *visit) elsewhere() bool { return v.accounts.Current().Token.ID != v.bearer.Token.ID }

// approve sends the person to the application with a code.
func (v *visit) approve(consented []string) error {
	back, err := v.Grants.Approve(v.r.Context(), v.pending.ID, v.browser, v.bearer, consented)
	if err != nil {
		return err
	}
	return v.leave(back)
}
