package login

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// visit is one request of a browser to a page, with what is read for it.
type visit struct {
	*Login
	w http.ResponseWriter
	r *http.Request

	browser  string
	pending  *oauth.Pending // nil: to a page of ours
	to       string
	accounts *Accounts
	arrival  *Arrival // whom a provider has brought; nil: nobody

	// Of the account that was chosen; nil where none is.
	bearer *session.Bearer
	person *event.Object[user.User]
	home   *event.Object[org.Org]

	problem bool // the page that was shown says what is wrong with a form
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
	if id := query.Get(paramArrival); id != "" {
		if v.arrival, err = l.arrivals().Read(r.Context(), v.browser, id); err != nil {
			return nil, err
		}
		if v.arrival.Attempt != "" || v.trial() { // for an application, and for nothing here; a trial makes no account and no link
			return nil, oauth.ErrRequestNotFound
		}
	}
	return v, v.as(v.choose())
}

// ownPage gives an address that people may be sent to after they have signed in: one of our own pages, written plainly.
// Everything else is nothing.
func ownPage(to string) string {
	u := pages.PlainPath(to)
	if u == nil {
		return ""
	}
	if to := pages.ConsolePage(to); to != "" {
		return to
	}
	if path.Clean(u.Path) != u.Path {
		return ""
	}
	for _, known := range []string{pages.PathAccount, PathDevice, mail.VerifyPath, invitation.Path} {
		if u.Path == known || strings.HasPrefix(u.Path, known+"/") {
			return u.RequestURI()
		}
	}
	return ""
}

// choose finds the account that the sign-in is about: the one that was picked, or the only one that it can be; nil for
// none.
func (v *visit) choose() *session.Bearer {
	query := v.r.URL.Query()
	if picked := v.accounts.Session(query.Get(paramAccount)); picked != nil && v.mayLink(picked) {
		return picked
	}
	if able := v.able(); len(able) == 1 && query.Get(paramOther) == "" && !v.mustChoose() {
		return able[0]
	}
	return nil
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
	return v.pending != nil && slices.Contains(v.pending.Prompt, request.PromptSelect)
}

// able are the accounts of the browser that could go on to where the sign-in leads.
func (v *visit) able() []*session.Bearer {
	var able []*session.Bearer
	for _, has := range v.accounts.all {
		caller := has.bearer.Caller
		if !v.mayLink(has.bearer) {
			continue
		}
		if p := v.pending; p == nil || oauth.Fits(p.App, p.Request.Org, caller) && (p.Subject == "" || p.Subject == caller.UserID) {
			able = append(able, has.bearer)
		}
	}
	return able
}

// mayLink tells whether a session can go on with whom a provider has brought: one that wanted to link, or one that was
// opened since. Whoever finds an account open in this browser does not link their own with it.
func (v *visit) mayLink(bearer *session.Bearer) bool {
	return v.arrival == nil || v.arrival.Linking == bearer.Token.ID || v.arrival.Linking == "" && bearer.Token.Created >= v.arrival.At
}

// answer takes the form that was sent, or shows the next page.
func (v *visit) answer() error {
	f, err := v.facts()
	if err != nil {
		return err
	}
	next := f.next()
	if v.r.Method == http.MethodPost {
		if err := next.take(v); err != nil {
			return err
		}
		v.took(next)
		return nil
	}
	if err := v.shown(f, next); err != nil {
		return err
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

// leave sends the browser to the application. After a form, which always leads to an address with an account, browsers
// would hold the application's own redirects against our policy for forms: a page in between ends that.
func (v *visit) leave(with request.Answer) error {
	if with.Form != nil {
		return PostBack(v.Pages, v.w, v.r, v.frame(pages.Frame{}), with)
	}
	to := with.Address
	if v.trial() || v.r.Method != http.MethodPost && v.r.URL.Query().Get(paramAccount) == "" { // a trial leads to a page of ours
		Redirect(v.w, to)
		return nil
	}
	link, err := pages.Outward(to)
	if err != nil {
		return err
	}
	v.render(pages.Onward{Frame: v.frame(pages.Frame{}), To: link}, nil)
	return nil
}

// frame is what every page of this visit shows.
func (v *visit) frame(with pages.Frame) pages.Frame {
	if p := v.pending; p != nil {
		with.Application, with.RedirectURI = p.App.Data.Name, p.RedirectURI
		with.Locales = strings.Join(p.UILocales, " ")
		if p.Org != nil {
			with.Organization = p.Org.Data.Name
		}
	}
	if v.person != nil && v.person.Data.Human != nil {
		with.Language = v.person.Data.Human.Profile.PreferredLanguage
	}
	if v.home != nil && with.Organization == "" {
		with.Organization = v.home.Data.Name
	}
	return with
}

// render shows a page, with the status that fits what is wrong.
func (v *visit) render(view pages.View, problems []pages.Problem) {
	status := http.StatusOK
	if v.problem = len(problems) > 0; v.problem {
		status = http.StatusUnprocessableEntity
	}
	v.Pages.Render(v.w, v.r, status, view)
}

// on sends the browser to the next page, about this account. with are parameters that are set from now on.
func (v *visit) on(account string, with ...string) error {
	change := url.Values{paramAccount: {account}, paramWith: {""}, paramOther: {""}}
	for _, name := range with {
		change.Set(name, "1")
	}
	Redirect(v.w, v.link(change).String())
	return nil
}

// loginName of the person, as others would write it.
func (v *visit) loginName() string {
	if v.person == nil {
		return ""
	}
	if v.home == nil {
		return v.person.Data.UserName
	}
	return v.home.Data.LoginName(v.person.Data.UserName)
}
