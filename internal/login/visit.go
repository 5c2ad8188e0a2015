package login

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/mail"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/user"
	"github.com/signet-idm/signet/internal/web"
)

// visit is one request on the way through the sign-in, with everything that decides what comes next.
type visit struct {
	*Login
	w http.ResponseWriter
	r *http.Request

	browser  string
	pending  *grant.Pending // nil: to a page of ours
	to       string
	accounts *Accounts

	// Of the account that was chosen; nil where none is.
	bearer *session.Bearer
	person *event.Object[user.User]
	home   *event.Object[org.Org]
}

// visit reads what is stored.
func (l *Login) visit(w http.ResponseWriter, r *http.Request) (*visit, error) {
	v := &visit{Login: l, w: w, r: r, browser: web.KnownBrowser(r)}
	query := r.URL.Query()
	var err error
	if id := query.Get(paramRequest); id != "" {
		if v.pending, err = l.Grants.Pending(r.Context(), id, v.browser); err != nil {
			return nil, err
		}
	} else if v.to = ownPage(query.Get(paramTo)); v.to == "" {
		v.to = pages.PathAccount
	}
	if v.accounts, err = l.Browsers.Accounts(r); err != nil {
		return nil, err
	}
	return v, v.choose()
}

// ownPage gives an address that people may be sent to after they have signed in: one of our own pages, written plainly.
// Everything else is nothing.
func ownPage(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || u.Fragment != "" ||
		path.Clean(u.Path) != u.Path || strings.ContainsAny(to, "\\\r\n\t") {
		return ""
	}
	for _, known := range []string{pages.PathAccount, PathDevice, mail.VerifyPath} {
		if u.Path == known || strings.HasPrefix(u.Path, known+"/") {
			return u.RequestURI()
		}
	}
	return ""
}

// choose finds the account that the sign-in is about: the one that was picked, or the only one that it can be.
func (v *visit) choose() error {
	query := v.r.URL.Query()
	chosen := v.accounts.Session(query.Get(paramAccount))
	if chosen == nil && query.Get(paramOther) == "" && !v.mustChoose() {
		if able := v.able(); len(able) == 1 {
			chosen = able[0]
		}
	}
	return v.as(chosen)
}

// as makes a visit about an account; nil for none.
func (v *visit) as(bearer *session.Bearer) (err error) {
	if v.bearer = bearer; bearer == nil {
		return nil
	}
	if v.person, err = user.Self(v.r.Context(), v.Store, v.bearer.Caller); err != nil {
		return err
	}
	v.home, err = org.Mine(v.r.Context(), v.Store, v.bearer.Caller)
	return err
}

// used lets a session that ends when it is not used live on.
func (v *visit) used() {
	if v.bearer != nil && v.bearer.Caller.Used != nil {
		v.bearer.Caller.Used()
	}
}

// mustChoose tells whether the application wants the person to pick an account.
func (v *visit) mustChoose() bool {
	return v.pending != nil && slices.Contains(v.pending.Prompt, "select_account")
}

// able are the accounts of the browser that could go on to where the sign-in leads.
func (v *visit) able() []*session.Bearer {
	var able []*session.Bearer
	for _, has := range v.accounts.all {
		caller := has.bearer.Caller
		if p := v.pending; p == nil || (p.Request.Org == "" || p.Request.Org == caller.OrgID) && (p.Subject == "" || p.Subject == caller.UserID) {
			able = append(able, has.bearer)
		}
	}
	return able
}

// answer takes the form that was sent, or shows the next page.
func (v *visit) answer() error {
	next, err := v.next()
	if err != nil {
		return v.beyond(err)
	}
	if v.pending != nil && v.pending.Silent() {
		return v.silent(next)
	}
	if v.r.Method == http.MethodPost {
		return next.take(v)
	}
	return next.show(v, pages.Frame{})
}

// step is one page of the sign-in.
type step interface {
	// show renders the page; with says what is wrong or done already.
	show(v *visit, with pages.Frame) error
	// take handles the page's form.
	take(v *visit) error
	// silently is what the application is told that wants nobody to be asked.
	silently() *errs.Error
}

// next finds the first thing that is missing.
func (v *visit) next() (step, error) {
	if v.bearer == nil {
		if len(v.able()) > 0 && v.r.URL.Query().Get(paramOther) == "" {
			return chooseAccount{}, nil
		}
		return loginName{}, nil
	}
	caller := v.bearer.Caller
	switch {
	case caller.MustProveSecondFactor && !v.person.State.SecondFactor && !session.Recent(v.bearer.Caller, v.Clock()):
		return password{}, nil
	case caller.MustProveSecondFactor && !v.person.State.SecondFactor:
		return enrol{}, nil
	case caller.MustProveSecondFactor:
		return secondFactor{}, nil
	case caller.MustChangePassword:
		return newPassword{}, nil
	}
	if v.pending == nil {
		if v.r.URL.Query().Get(paramAgain) != "" && !session.Recent(v.bearer.Caller, v.Clock()) {
			return v.again(), nil
		}
		return arrived{}, nil
	}
	need, err := v.Grants.Needs(v.r.Context(), v.pending, v.bearer)
	if err != nil {
		return nil, err
	}
	switch need {
	case grant.NeedsOtherPerson:
		return somebodyElse{}, nil
	case grant.NeedsOtherAccount:
		return loginName{}, nil
	case grant.NeedsSignIn:
		return password{}, nil
	case grant.NeedsConsent:
		return consent{}, nil
	}
	return arrived{}, nil
}

// again is how somebody proves once more to be there: by a second factor where there is one, else by the password.
func (v *visit) again() step {
	if v.person.State.SecondFactor {
		return secondFactor{}
	}
	return password{}
}

// silent answers an application that wants nobody to be asked anything.
func (v *visit) silent(next step) error {
	if why := next.silently(); why != nil {
		return v.sayNo(why)
	}
	return next.show(v, pages.Frame{})
}

// sayNo sends the person back to the application, which is told why.
func (v *visit) sayNo(why *errs.Error) error {
	back, err := v.Grants.Refuse(v.r.Context(), v.pending.ID, v.browser, why)
	if err != nil {
		return err
	}
	return v.leave(back)
}

// leave sends the browser to the application. After a form, which always leads to an address with an account, browsers would hold
// the application's own redirects against our policy for forms: a page in between ends that.
func (v *visit) leave(to string) error {
	if v.r.Method != http.MethodPost && v.r.URL.Query().Get(paramAccount) == "" {
		redirect(v.w, to)
		return nil
	}
	link, err := pages.Outward(to)
	if err != nil {
		return err
	}
	v.render(pages.Onward{Frame: v.frame(pages.Frame{}), To: link}, nil)
	return nil
}

// beyond handles what keeps the account that was chosen from going on: another one may.
func (v *visit) beyond(err error) error {
	e, ours := errors.AsType[*errs.Error](err)
	if !ours || e.Reason != grant.AccessDenied || v.pending == nil {
		return err
	}
	if v.pending.Silent() {
		return v.sayNo(grant.ErrAccessDenied)
	}
	if v.r.Method == http.MethodPost {
		return loginName{}.take(v)
	}
	return loginName{}.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.NotAllowed(v.pending.App.State.Name)}}})
}

// frame is what every page of this visit shows.
func (v *visit) frame(with pages.Frame) pages.Frame {
	if p := v.pending; p != nil {
		with.Application, with.RedirectURI = p.App.State.Name, p.RedirectURI
		with.Locales = strings.Join(p.UILocales, " ")
		if p.Org != nil {
			with.Organization = p.Org.State.Name
		}
	}
	if v.person != nil && v.person.State.Human != nil {
		with.Language = v.person.State.Human.Profile.PreferredLanguage
	}
	if v.home != nil && with.Organization == "" {
		with.Organization = v.home.State.Name
	}
	return with
}

// render shows a page, with the status that fits what is wrong.
func (v *visit) render(view pages.View, problems []pages.Problem) {
	status := http.StatusOK
	if len(problems) > 0 {
		status = http.StatusUnprocessableEntity
	}
	v.Pages.Render(v.w, v.r, status, view)
}

// on sends the browser to the next page, about this account.
func (v *visit) on(account string) error {
	redirect(v.w, v.link(url.Values{paramAccount: {account}, paramWith: {""}, paramOther: {""}}).String())
	return nil
}

// loginName of the person, as others would write it.
func (v *visit) loginName() string {
	if v.person == nil {
		return ""
	}
	if v.home == nil {
		return v.person.State.UserName
	}
	return v.home.State.LoginName(v.person.State.UserName)
}
