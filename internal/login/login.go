// Package login is the way into applications and into one's own account: it asks people who they are, one page after the
// other, until nothing is missing, and lets them go on.
//
// There is one address, /login. Which page it shows is worked out anew with every request, from what is stored: the
// request of the application, the sessions of the browser, the state of the person. No address, no field of a form and no
// old session leads past a page that has to be seen:
//
//	choose account ─► login name ─► password ─► second factor ─► new password ─► consent ─► the application
//	                        └──────── passkey ────────┘
//
// A browser has one cookie with the sessions of all accounts that are signed in there. They are sessions like those of the
// API: they are listed and ended with the others, and end with whatever ends those. Every sign-in and every step up changes
// what the cookie holds.
//
// Around it are the pages for what people need besides: a forgotten password and the proof of an e-mail address (reset.go),
// devices without a browser (device.go), and signing out (logout.go).
package login

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/mail"
	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/share"
	"github.com/signet-idm/signet/internal/web"
)

// Paths of the pages of this package, besides those that package mail links to and pages.PathSignOut.
const (
	Path       = "/login"
	PathForgot = "/forgot"
	PathDevice = "/device"
)

// Login serves the pages of signing in.
type Login struct {
	Store    event.Store
	Sessions *session.Sessions
	Grants   *grant.Grants
	Pages    *pages.Pages
	Browsers Browsers
	Clock    func() time.Time
	Master   secret.MasterKey
	Mail     bool // this installation sends mail
}

// Mount registers the pages.
func (l *Login) Mount(site *web.Site) {
	for path, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		Path: l.signIn, PathForgot: l.forgot, mail.ResetPath: l.reset, mail.VerifyPath: l.verify, mail.RestorePath: l.restore, PathDevice: l.device, pages.PathSignOut: l.signOut,
		"/": wayIn,
	} {
		site.Handle(path, l.Pages.SameOrigin(l.page(serve)))
	}
	site.Handle(pages.AssetsPath, l.Pages.Assets())
}

// ErrorPage shows what is wrong with a request whose application cannot be told.
func ErrorPage(p *pages.Pages) func(w http.ResponseWriter, r *http.Request, status int, err error) {
	return func(w http.ResponseWriter, r *http.Request, status int, err error) {
		_, what := Failure(err)
		if status == http.StatusBadRequest {
			what = pages.BadRequest
		}
		view := pages.Failed{What: what, RequestID: call.From(r.Context()).RequestID}
		if e, ours := errors.AsType[*errs.Error](err); ours && status == http.StatusBadRequest {
			view.Detail = pages.Said(e.Message) // for whoever looks after the application
		}
		p.Render(w, r, status, view)
	}
}

// page refuses what no page takes, and shows the error that serve could not show itself.
func (l *Login) page(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
			w.Header().Set("Allow", "GET, HEAD, POST")
			l.fail(w, r, http.StatusMethodNotAllowed, pages.BadRequest)
			return
		}
		err := r.ParseForm()
		if _, full := errors.AsType[*errs.Error](err); full {
			l.refuse(w, r, err) // there is no room for it, see web.Budget
			return
		}
		if err != nil || !pages.Readable(r.Form) {
			l.fail(w, r, http.StatusBadRequest, pages.BadRequest)
			return
		}
		if err := serve(w, r); err != nil {
			l.refuse(w, r, err)
		}
	})
}

// wayIn leads people who open the bare address of the installation, which may be all that they were told, to their account.
func wayIn(w http.ResponseWriter, _ *http.Request) error {
	redirect(w, pages.PathAccount)
	return nil
}

// signIn shows what is to be done next, or takes what was done.
func (l *Login) signIn(w http.ResponseWriter, r *http.Request) error {
	v, err := l.visit(w, r)
	if err != nil {
		return err
	}
	if err := v.answer(); err != nil {
		return err
	}
	v.used()
	return nil
}

// fail answers with a page that says what went wrong.
func (l *Login) fail(w http.ResponseWriter, r *http.Request, status int, what pages.Failure) {
	l.Pages.Render(w, r, status, pages.Failed{What: what, RequestID: call.From(r.Context()).RequestID})
}

// refuse answers with the page for an error that no form can show.
func (l *Login) refuse(w http.ResponseWriter, r *http.Request, err error) {
	web.Failed(r.Context(), err)
	status, what := Failure(err)
	l.fail(w, r, status, what)
}

// Failure tells how an error is shown to people.
func Failure(err error) (status int, what pages.Failure) {
	e, ours := errors.AsType[*errs.Error](err)
	if !ours {
		return http.StatusInternalServerError, pages.Broken
	}
	switch {
	case e.Reason == grant.RequestNotFound:
		return http.StatusBadRequest, pages.Expired
	case e.Reason == grant.UnknownClient || e.Reason == grant.RedirectRefused:
		return http.StatusBadRequest, pages.BadRequest
	case e.Reason == share.UsedUp: // by whom is not for a person who signs in to know
		return http.StatusServiceUnavailable, pages.Unavailable
	}
	switch e.Kind {
	case errs.NotFound:
		return http.StatusNotFound, pages.NotFound
	case errs.PermissionDenied:
		return http.StatusForbidden, pages.NotPermitted
	case errs.ResourceExhausted:
		return http.StatusTooManyRequests, pages.TooMany
	case errs.Unavailable, errs.DeadlineExceeded, errs.Aborted:
		return http.StatusServiceUnavailable, pages.Unavailable
	case errs.Internal:
		return http.StatusInternalServerError, pages.Broken
	}
	return http.StatusBadRequest, pages.Expired
}

// redirect sends the browser on with a GET.
func redirect(w http.ResponseWriter, to string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address may hold a code
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// link leads to this page with some of its parameters changed; empty ones are left out.
func (v *visit) link(change url.Values) pages.Link {
	query := url.Values{}
	for _, name := range []string{paramRequest, paramTo, paramAccount, paramWith, paramOther, paramAgain} {
		value := v.r.URL.Query().Get(name)
		if changed, ok := change[name]; ok {
			value = changed[0]
		}
		if value != "" {
			query.Set(name, value)
		}
	}
	return pages.To(Path, query)
}

// other leads to this page for another account.
func (v *visit) other() pages.Link { return v.link(url.Values{paramOther: {"1"}, paramAccount: {""}}) }

// Parameters of the address.
const (
	paramRequest = "request" // the application's
	paramTo      = "to"      // the page of ours to go to, where there is no application
	paramAccount = "account" // the session that was chosen
	paramWith    = "with"    // the kind of factor to prove or to add
	paramOther   = "other"   // another account than those in the browser
	paramAgain   = "again"   // the page to go to needs a proof that is recent
)
