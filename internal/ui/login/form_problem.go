// What the forms of the sign-in share with those of the account.

package login

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// Problem says what keeps a form from being accepted. Errors that no form can show are given back.
func Problem(field string, wrong pages.Message, err error) ([]pages.Problem, error) {
	e, ours := errors.AsType[*errs.Error](err)
	switch {
	case !ours:
		return nil, err
	case e.Kind == errs.ResourceExhausted && e.Reason != fairqueue.UsedUp:
		return []pages.Problem{{Field: field, Message: pages.Throttled(e.RetryAfter)}}, nil
	case e.Kind == errs.Unauthenticated && e.Reason == session.SignInFailed, e.Kind == errs.InvalidArgument:
		return []pages.Problem{{Field: field, Message: wrong}}, nil
	case e.Kind == errs.Aborted:
		return []pages.Problem{{Message: pages.Changed()}}, nil
	}
	return nil, err
}

// Redirect sends the browser on with a GET.
func Redirect(w http.ResponseWriter, to string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address may hold a code
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// Shown is a request for the page of a form instead of the form itself, for a form that was shown for something else.
func Shown(r *http.Request) *http.Request {
	shown := *r
	shown.Method, shown.PostForm, shown.Form = http.MethodGet, url.Values{}, shown.URL.Query()
	return &shown
}
