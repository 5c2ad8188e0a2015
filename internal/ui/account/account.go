// Package account serves the pages on which users manage their own account: their profile, e-mail address and phone
// number, password, second factors, sessions, tokens, applications and organizations.
//
// Every page is an address that shows the current state and takes the forms that it shows. The rules of the objects
// decide what a user may do, as for the API. A user who is not signed in, or not fully, or not recently where a rule
// asks for that, is sent to the sign-in (package login) and comes back. The page that follows a form says what was
// done.
//
// A browser may have several accounts. Pages are shown for the one that was used last; a form acts on the account that
// its page was shown for.
package account

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/login"
)

// Paths of the pages of this package, besides those of package pages.
const (
	PathTOTP    = pages.PathSecurity + "/totp"
	PathPasskey = pages.PathSecurity + "/passkey"
)

// Account serves the pages.
type Account struct {
	Store    event.Store
	Sessions *session.Sessions
	Grants   *oauth.Grants
	Pages    *pages.Pages
	Browsers login.Browsers
	Clock    func() time.Time
	Master   secret.MasterKey
	Mail     bool // this installation sends mail
	Console  bool // there is a console at pages.PathConsole
	// Federated knows the accounts at identity providers.
	Federated federated.Sessions
	Deliver   func(context.Context, user.Delivery) error // brings codes to phones; nil: nobody does
}

// page is one of them.
type page interface {
	// show renders it; with says what is wrong or done already.
	show(v *browserRequest, with pages.Frame) error
	// take handles its forms.
	take(v *browserRequest) error
}

// Handlers gives what to serve, by its path.
func (a *Account) Handlers() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for path, p := range map[string]page{
		pages.PathAccount:      profile{},
		pages.PathPassword:     password{},
		pages.PathSecurity:     security{},
		PathTOTP:               enrolTOTP{},
		PathPasskey:            enrolPasskey{},
		pages.PathSessions:     sessions{},
		pages.PathTokens:       tokens{},
		pages.PathApplications: applications{},
		pages.PathOrgs:         organizations{},
		pages.PathContact:      contact{},
	} {
		handlers[path] = a.Pages.SameOrigin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.serve(w, r, p)
		}))
	}
	return handlers
}

func (a *Account) serve(w http.ResponseWriter, r *http.Request, p page) {
	if !login.ReadForm(a.Pages, w, r, pages.FromElsewhere) {
		return
	}
	v := &browserRequest{Account: a, w: w, r: r}
	err := v.enter()
	switch {
	case err != nil:
	case r.Method == http.MethodPost:
		err = p.take(v)
	default:
		err = p.show(v, noticeFromQuery(r.URL.Query()))
	}
	switch {
	case err != nil:
		v.refuse(err)
	case !v.refused && v.bearer.Caller.Used != nil:
		v.bearer.Caller.Used()
	}
}

// browserRequest is one request of a browser to a page, with what is read for it.
type browserRequest struct {
	*Account
	w        http.ResponseWriter
	r        *http.Request
	accounts *login.Accounts
	bearer   *session.Bearer
	me       *event.Object[user.User]
	home     *event.Object[org.Org]
	refused  bool   // what was asked for was not done
	to       string // the page to come back to after a sign-in; empty: this one
}

// enter finds out who is there. Errors: access.ErrUnauthenticated and those of sessions that are not full ones.
func (v *browserRequest) enter() (err error) {
	if v.accounts, err = v.Browsers.Accounts(v.r); err != nil {
		return err
	}
	v.bearer = v.accounts.Current()
	if v.r.Method == http.MethodPost {
		// A form acts on the account that its page was shown for, even if another account has become the current one
		// since.
		v.bearer = v.accounts.Session(v.r.PostFormValue(pages.FieldAccount))
	}
	switch {
	case v.bearer == nil:
		return access.ErrUnauthenticated
	case v.bearer.Caller.MustProveSecondFactor:
		return access.ErrSecondFactor
	case v.bearer.Caller.MustChangePassword:
		return access.ErrPasswordChange
	}
	v.accounts.Use(v.w, v.bearer.Token.ID)
	call.From(v.r.Context()).Caller = v.bearer.Caller
	if v.me, err = user.Self(v.r.Context(), v.Store, v.bearer.Caller); err != nil {
		return err
	}
	if v.me.Data.Human == nil {
		return user.ErrNotHuman
	}
	v.home, err = org.Mine(v.r.Context(), v.Store, v.bearer.Caller)
	return err
}

// refuse answers where no page of the account can: with the sign-in where that helps, else with a page that says what
// is wrong.
func (v *browserRequest) refuse(err error) {
	wish := login.Wish{To: cmp.Or(v.to, v.r.URL.Path)}
	if v.bearer != nil {
		wish.Account = v.bearer.Token.ID
	}
	e, ours := errors.AsType[*errs.Error](err)
	switch {
	case ours && e.Is(session.ErrNotRecent):
		wish.Again = true
	case ours && (e.Kind == errs.Unauthenticated || e.Is(access.ErrSecondFactor) || e.Is(access.ErrPasswordChange)):
	default:
		login.Refuse(v.Pages, v.w, v.r, err)
		return
	}
	web.Failed(v.r.Context(), err)
	v.redirect(wish.Link())
}

// redirect sends the browser on with a GET.
func (v *browserRequest) redirect(to pages.Link) {
	h := v.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to.String())
	v.w.WriteHeader(http.StatusSeeOther)
}

// paramDone is the parameter of the address that says what was done, one of the keys of said.
const paramDone = "done"

type done string

const (
	profileSaved    done = "saved"
	passwordChanged done = "password"
	factorAdded     done = "factor-added"
	factorRemoved   done = "factor-removed"
	sessionEnded    done = "session"
	othersEnded     done = "sessions"
	deviceForgotten done = "device"
	tokenRevoked    done = "token"
	appDisconnected done = "application"
	phoneProven     done = "phone"
	accountLinked   done = "linked"
	accountUnlinked done = "unlinked"

	organizationLeft done = "organization"
	offerAccepted    done = "accepted"
	offerDeclined    done = "declined"
)

var said = map[string]pages.Message{
	string(profileSaved):    pages.Saved(),
	string(passwordChanged): pages.PasswordChanged(),
	string(factorAdded):     pages.FactorAdded(),
	string(factorRemoved):   pages.FactorRemoved(),
	string(sessionEnded):    pages.SessionEnded(),
	string(othersEnded):     pages.OtherSessionsEnded(),
	string(deviceForgotten): pages.DeviceForgotten(),
	string(tokenRevoked):    pages.TokenRevoked(),
	string(appDisconnected): pages.Disconnected(),
	string(phoneProven):     pages.PhoneProven(),
	string(accountLinked):   pages.AccountLinked(),
	string(accountUnlinked): pages.AccountUnlinked(),

	string(organizationLeft): pages.OrganizationLeft(),
	string(offerAccepted):    pages.OfferAccepted(),
	string(offerDeclined):    pages.OfferDeclined(),
}

// paramFull is the parameter of the address that says that there is no room for another second factor.
const paramFull = "full"

// noticeFromQuery is what the address says that a page was asked for with.
func noticeFromQuery(query url.Values) pages.Frame {
	f := pages.Frame{Done: said[query.Get(paramDone)]}
	if query.Has(paramFull) {
		f.Problems = []pages.Problem{{Message: pages.TooManyFactors()}}
	}
	return f
}

// on leads to a page that says what was done.
func (v *browserRequest) on(path string, d done) error {
	v.redirect(pages.To(path, url.Values{paramDone: {string(d)}}))
	return nil
}

// account is what every page shows of whose it is.
func (v *browserRequest) account(with pages.Frame) pages.Account {
	h := v.me.Data.Human
	shown := pages.Account{
		Frame:     v.frame(with),
		Name:      h.Profile.DisplayName,
		LoginName: v.home.Data.LoginName(v.me.Data.UserName),
		Switch:    login.Wish{To: pages.PathAccount, Other: !v.accounts.Several()}.Link(),
	}
	if v.Console && len(v.bearer.Caller.Memberships) > 0 {
		shown.Console = pages.To(pages.PathConsole, nil)
	}
	return shown
}

func (v *browserRequest) frame(with pages.Frame) pages.Frame {
	with.Organization, with.Language, with.Session = v.home.Data.Name, v.me.Data.Human.Profile.PreferredLanguage,
		v.bearer.Token.ID
	return with
}

// render shows a page, with the status that fits what is wrong.
func (v *browserRequest) render(view pages.View, problems []pages.Problem) error {
	status := http.StatusOK
	if v.refused = len(problems) > 0; v.refused {
		status = http.StatusUnprocessableEntity
	}
	v.Pages.Render(v.w, v.r, status, view)
	return nil
}

// back shows a page once more, as things are now, and says what kept something from being done. Errors that it cannot
// say are given back.
func (v *browserRequest) back(p page, err error) error {
	e, ours := errors.AsType[*errs.Error](err)
	var m pages.Message
	switch {
	case !ours:
		return err
	case e.Is(session.ErrLastFactor):
		m = pages.FactorNeeded()
	case e.Is(user.ErrPasswordGiven):
		m = pages.OwnPasswordFirst()
	case e.Is(member.ErrGiverMayNot):
		m = pages.OfferInvalid()
	case e.Is(member.ErrOfferNotOpen) || e.Is(member.ErrRolesChanged): // since the page was shown
		m = pages.Changed()
	case e.Kind == errs.Aborted || e.Kind == errs.NotFound || e.Is(factor.ErrNoSecondFactor) || e.Is(member.ErrOwnOrganization): // somebody was faster, perhaps in another window
		m = pages.Changed()
	default:
		return err
	}
	return p.show(v, pages.Frame{Problems: []pages.Problem{{Message: m}}})
}
