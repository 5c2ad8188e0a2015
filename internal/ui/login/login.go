// Package login signs users in to applications and to their own account: it asks for what is missing, one page after
// the other, and then lets the user go on.
//
// There is one address, /login. Every request works out anew which page to show, from what is stored: the request of
// the application, the sessions of the browser, the state of the user. So no address, no form field and no old session
// leads past a page that the user has to see:
//
//	choose account ─► login name ─► password ─► second factor ─► new password ─► consent ─► the application
//	                        ├──────── passkey ────────┤
//	                        └─ provider ─► register ──┘
//
// A browser has one cookie with the sessions of all accounts that are signed in there. They are sessions like those of
// the API: they are listed together, and they end for the same reasons. Every sign-in and every step up changes what
// the cookie holds.
//
// A user who comes back from a provider is signed in, or kept as an arrival until they have registered or linked an
// existing account (brought.go).
//
// The package also has the pages around the sign-in: a forgotten password and the verification of an e-mail address
// (reset.go), devices without a browser (device.go), and signing out (logout.go).
package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/life/registration"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Paths of the pages of this package, besides those that package mail links to and pages.PathSignOut.
const (
	Path       = "/login"
	PathForgot = "/forgot"
	PathDevice = "/device"

	PathRegister = "/login/register" // registration.go
)

// Login serves the pages of signing in.
type Login struct {
	Store    event.Store
	Sessions *session.Sessions
	Grants   *oauth.Grants
	Pages    *pages.Pages
	Browsers Browsers
	Clock    func() time.Time
	Master   secret.MasterKey
	Mail     bool // this installation sends mail
	// Federation lets people in through identity providers. Nil: nobody comes in that way.
	Federation *upstream.Federation
	Federated  federated.Sessions
	OwnPages   ownpage.Pages // for applications with sign-in pages of their own
	// Invitations has those that people accept who come through a provider.
	Invitations invitation.Invitations
	// Registrations lets people make accounts of their own. Nil: nobody can.
	Registrations *registration.Registrations
	Console       bool // there is a console at pages.PathConsole
}

func (l *Login) arrivals() Arrivals { return Arrivals{Store: l.Store, Master: l.Master} }

// Mount registers the pages.
func (l *Login) Mount(site *web.Site) {
	for path, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		Path: l.signIn, PathForgot: l.forgot, mail.ResetPath: l.reset, mail.VerifyPath: l.verify,
		mail.RestorePath: l.restore, PathDevice: l.device, pages.PathSignOut: l.signOut,
		"/": l.wayIn,
	} {
		site.Handle(path, l.Pages.SameOrigin(l.page(serve)))
	}
	site.Handle(trial.Path, l.Pages.SameOrigin(l.page(l.try)))
	site.Handle(pages.AssetsPath, web.Entry{Handler: l.Pages.Assets(), Counted: web.AsStatic})
	site.HandleRefused(func(w http.ResponseWriter, r *http.Request, err error) { Refuse(l.Pages, w, r, err) })
	l.mountProviders(site)
}

// Lost is the page for people who ask for one that is not there.
func Lost(p *pages.Pages) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Render(w, r, http.StatusNotFound, pages.Failed{What: pages.NotFound, Next: pages.To(pages.PathAccount, nil)})
	})
}

// PostBack has the browser post an answer to its application (form_post). The page shows nothing that a stranger has
// chosen, so it keeps only the language of the frame.
func PostBack(p *pages.Pages, w http.ResponseWriter, r *http.Request, frame pages.Frame, with request.Answer) error {
	to, err := pages.Outward(with.Address)
	if err != nil {
		return err
	}
	p.Render(w, r, http.StatusOK, pages.NewPostBack(frame, to, with.Form))
	return nil
}

// ErrorPage shows what is wrong with a request whose application cannot be told.
func ErrorPage(p *pages.Pages) func(w http.ResponseWriter, r *http.Request, err error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		page := pageOf(err)
		view := pages.Failed{What: page.What, RequestID: call.From(r.Context()).RequestID}
		if e, ours := errors.AsType[*errs.Error](err); ours && page.Status == http.StatusBadRequest {
			view.What, view.Detail = pages.BadRequest, pages.Said(e.Message) // for the application's developers
		}
		p.Render(w, r, page.Status, view)
	}
}

// page shows the error that serve could not show itself.
func (l *Login) page(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ReadForm(l.Pages, w, r, pages.BadRequest) {
			return
		}
		if err := serve(w, r); err != nil {
			Refuse(l.Pages, w, r, err)
		}
	})
}

// ReadForm reads the form of a request. If no page takes it, it answers with a page that says what is wrong, and
// returns false.
func ReadForm(p *pages.Pages, w http.ResponseWriter, r *http.Request, wrong pages.Failure) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		fail(p, w, r, web.Page{Status: http.StatusMethodNotAllowed, What: wrong})
		return false
	}
	err := r.ParseForm()
	if _, full := errors.AsType[*errs.Error](err); full {
		Refuse(p, w, r, err) // there is no room for it, see web.Budget
		return false
	}
	if err != nil || !pages.Readable(r.Form) {
		fail(p, w, r, web.Page{Status: http.StatusBadRequest, What: wrong})
		return false
	}
	return true
}

// wayIn leads people who open the bare address of the installation, which may be all that they were told, to the
// console, or where there is none, to their account.
func (l *Login) wayIn(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept")
	if l.Console && strings.Contains(r.Header.Get("Accept"), "text/html") {
		Redirect(w, pages.PathConsole)
		return nil
	}
	Redirect(w, pages.PathAccount)
	return nil
}

// signIn shows what is to be done next, or takes what was done.
func (l *Login) signIn(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if l.noCookie(w, r, query.Has(paramRequest) || r.Method == http.MethodPost, query) {
		return nil
	}
	v, err := l.openSignIn(w, r, readAddress(query))
	if err != nil {
		return err
	}
	if v.pending != nil && v.pending.Creates() && r.Method == http.MethodGet && !query.Has(paramAccount) &&
		!query.Has(paramOther) && !query.Has(paramArrival) {
		to, err := v.toRegister()
		if err != nil {
			return err
		}
		if !to.IsNone() {
			Redirect(w, to.String())
			return nil
		}
	}
	if err := v.answer(); err != nil {
		return err
	}
	v.used()
	return nil
}

// noCookie answers a browser that keeps no cookies with a page that says so, and returns true. A browser that has begun
// something was given a cookie on the way. Without the page, one that has lost it would be asked to sign in over and
// over.
func (l *Login) noCookie(w http.ResponseWriter, r *http.Request, begun bool, query url.Values) bool {
	if web.KnownBrowser(r) != "" {
		return false
	}
	if !begun {
		web.Browser(w, r)
		return false
	}
	view := pages.Failed{What: pages.NoCookie, RequestID: call.From(r.Context()).RequestID}
	if !query.Has(paramRequest) && r.URL.Path == Path {
		view.Next = pages.To(Path, nil)
		if to := ownPage(query.Get(paramTo)); to != "" {
			view.Next = pages.To(Path, url.Values{paramTo: {to}})
		}
	}
	l.Pages.Render(w, r, http.StatusBadRequest, view)
	return true
}

// fail answers with a page that says what went wrong.
func fail(p *pages.Pages, w http.ResponseWriter, r *http.Request, page web.Page) {
	p.Render(w, r, page.Status, pages.Failed{What: page.What, RequestID: call.From(r.Context()).RequestID})
}

// Refuse answers with the page for an error that no form can show.
func Refuse(p *pages.Pages, w http.ResponseWriter, r *http.Request, err error) {
	web.Failed(r.Context(), err)
	fail(p, w, r, pageOf(err))
}

// byReason are the pages for errors that people see differently from others of their kind.
var byReason = map[errs.Reason]web.Page{
	oauth.RequestNotFound:   {Status: http.StatusBadRequest, What: pages.Expired},
	trial.NotFound:          {Status: http.StatusBadRequest, What: pages.Expired},
	oauth.UnknownClient:     {Status: http.StatusBadRequest, What: pages.BadRequest},
	oauth.RedirectRefused:   {Status: http.StatusBadRequest, What: pages.BadRequest},
	oauth.InvalidRequestURI: {Status: http.StatusBadRequest, What: pages.BadRequest},
	// by whom is not for a person who signs in to know
	fairqueue.UsedUp: {Status: http.StatusServiceUnavailable, What: pages.Unavailable},
}

func pageOf(err error) web.Page {
	if e, ours := errors.AsType[*errs.Error](err); ours {
		if page, own := byReason[e.Reason]; own {
			return page
		}
	}
	return web.AnswerTo(err).Page
}
