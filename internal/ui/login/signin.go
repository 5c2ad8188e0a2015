package login

import (
	"cmp"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/life/registration"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// signIn is a request to the sign-in, with what all of its steps share.
type signIn struct {
	browserRequest
	address address
	browser string
	to      string   // the page of ours that the sign-in leads to; empty: to an application
	arrival *Arrival // whom a provider has brought; nil: nobody
}

// openSignIn reads what is stored of the sign-in at an address: that of the request, or the one that the browser left
// for a provider.
func (l *Login) openSignIn(w http.ResponseWriter, r *http.Request, at address) (*signIn, error) {
	v := &signIn{browserRequest: browserRequest{Login: l, w: w, r: r}, address: at, browser: web.KnownBrowser(r)}
	var err error
	if at.request != "" {
		if v.pending, err = l.Grants.Pending(r.Context(), at.request, v.browser); err != nil {
			return nil, err
		}
	} else if v.to = ownPage(at.to); v.to == "" {
		v.to = pages.PathAccount
	}
	if v.accounts, err = l.Browsers.Accounts(r); err != nil {
		return nil, err
	}
	if at.arrival != "" {
		if v.arrival, err = l.arrivals().Read(r.Context(), v.browser, at.arrival); err != nil {
			return nil, err
		}
		if v.arrival.Attempt != "" || v.trial() { // for an application alone; a trial makes no account and no link
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
func (v *signIn) choose() *session.Bearer {
	if picked := v.accounts.Session(v.address.account); picked != nil && v.mayLink(picked) {
		return picked
	}
	if able := v.able(); len(able) == 1 && v.address.other == "" && !v.mustChoose() {
		return able[0]
	}
	return nil
}

// mustChoose tells whether the application wants the person to pick an account.
func (v *signIn) mustChoose() bool {
	return v.pending != nil && slices.Contains(v.pending.Prompt, request.PromptSelect)
}

// able are the accounts of the browser that could go on to where the sign-in leads.
func (v *signIn) able() []*session.Bearer {
	var able []*session.Bearer
	for _, has := range v.accounts.all {
		if v.mayLink(has.bearer) && (v.pending == nil || mayUse(v.pending, has.bearer)) {
			able = append(able, has.bearer)
		}
	}
	return able
}

// mayUse tells whether an account could be the one that an application's request is about.
func mayUse(p *oauth.Pending, bearer *session.Bearer) bool {
	return oauth.Fits(p.App, p.Request.Org, bearer.Caller) && (p.Subject == "" || p.Subject == bearer.Caller.UserID)
}

// mayLink tells whether a session can go on with whom a provider has brought: one that wanted to link, or one that was
// opened since. Who finds an account open in this browser does not link their own with it.
func (v *signIn) mayLink(bearer *session.Bearer) bool {
	a := v.arrival
	return a == nil || a.Linking == bearer.Token.ID || a.Linking == "" && bearer.Token.Created >= a.At
}

// stranger forgets which account was chosen: the person who is asked for a name may be somebody else.
func (v *signIn) stranger() { v.bearer, v.person, v.home = nil, nil, nil }

// answer takes the form that was sent, or shows the next page.
func (v *signIn) answer() error {
	f, err := v.facts()
	if err != nil {
		return err
	}
	next := f.next()
	if v.r.Method == http.MethodPost {
		if err := next.take(v); err != nil {
			return err
		}
		v.notes().took(next)
		return nil
	}
	if err := v.notes().shown(f, next); err != nil {
		return err
	}
	return next.show(v, pages.Frame{})
}

// on sends the browser to the next page, about this account.
func (v *signIn) on(account string) error {
	Redirect(v.w, v.address.about(account).link().String())
	return nil
}

// enter goes on with a session that was just opened.
func (v *signIn) enter(in session.SignedIn) error {
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
	return v.on(in.SessionID)
}

// remembered is the browser, in which the second factor may be remembered.
func (v *signIn) remembered() RememberedBrowser {
	return RememberedBrowser{Devices: session.Devices{Sessions: v.Sessions}, W: v.w, R: v.r}
}

// stepped goes on in the same session, which has a new token.
func (v *signIn) stepped(s session.Stepped) error {
	if s.Token != "" {
		if err := v.accounts.Enter(v.r.Context(), v.w, s.Token); err != nil {
			return err
		}
	}
	return v.on(v.bearer.Token.ID)
}

// approve sends the person to the application with a code.
func (v *signIn) approve(consented []string) error {
	back, err := v.Grants.Approve(v.r.Context(), v.pending.ID, v.browser, v.bearer, consented)
	if err != nil {
		return err
	}
	return v.leave(back)
}

// sayNo sends the person back to the application, which is told why.
func (v *signIn) sayNo(why *errs.Error) error {
	back, err := v.Grants.Refuse(v.r.Context(), v.pending.ID, v.browser, why)
	if err != nil {
		return err
	}
	return v.leave(back)
}

// leave sends the browser to the application. After a form, which always leads to an address with an account, browsers
// would hold the application's own redirects against our policy for forms: a page in between ends that.
func (v *signIn) leave(with request.Answer) error {
	if with.Form != nil {
		return PostBack(v.Pages, v.w, v.r, v.frame(pages.Frame{}), with)
	}
	to := with.Address
	if v.trial() || v.r.Method != http.MethodPost && v.address.account == "" { // a trial leads to a page of ours
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

// presumedOrg is the organization that people are taken to be of until they say who they are.
func (v *signIn) presumedOrg() string {
	bound, ofApplication := v.pending.NameScope()
	return cmp.Or(bound, ofApplication, v.Sessions.DefaultOrg)
}

// toRegister leads to making an account, where the organization that the sign-in is for lets people do that.
func (v *signIn) toRegister() (pages.Link, error) {
	if v.Registrations == nil || v.arrival != nil || v.trial() {
		return pages.Link{}, nil
	}
	_, err := v.Registrations.Open(v.r.Context(), v.presumedOrg())
	if is(err, registration.Off) || is(err, registration.NoMail) {
		return pages.Link{}, nil
	}
	if err != nil {
		return pages.Link{}, err
	}
	kept := v.address.about("")
	kept.again, kept.linking = false, false
	return pages.To(PathRegister, kept.parameters()), nil
}

// other leads to this page for another account.
func (v *signIn) other() pages.Link { return v.address.forOther().link() }

// dropArrival forgets whom a provider has brought: the sign-in goes on without.
func (v *signIn) dropArrival() error {
	err := v.arrivals().Drop(v.r.Context(), v.arrival)
	v.arrival, v.address.arrival = nil, ""
	return err
}

// is tells whether an error has a reason.
func is(err error, reason errs.Reason) bool {
	e, ours := errors.AsType[*errs.Error](err)
	return ours && e.Reason == reason
}
