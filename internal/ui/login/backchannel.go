// Back-channel logout (OpenID Connect Back-Channel Logout 1.0): the server of an identity provider calls when somebody
// has signed out there.

package login

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/transport/web"
)

const (
	logoutToken = "logout_token"
)

// LogoutReceiver takes what providers send.
type LogoutReceiver struct {
	Store      event.Store
	Federation *upstream.Federation
	Sessions   federated.Sessions
}

// errLogoutToken is what a request gets that is none of a provider.
var errLogoutToken = errs.Invalid(errs.Violation{Field: logoutToken, Message: "must be sent once, in a form"})

// Serve takes the request of a provider's server. What comes back is a status alone, and that tells strangers no more
// than whether a token was good.
func (l LogoutReceiver) Serve(w http.ResponseWriter, r *http.Request, provider string) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	err := l.end(r, provider)
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	shown := err
	if failed, ours := errors.AsType[*upstream.Failure](err); ours {
		shown = failed.Refusal()
	}
	web.Failed(r.Context(), shown)
	w.WriteHeader(logoutStatus(w, err))
}

func logoutStatus(w http.ResponseWriter, err error) int {
	if failed, ok := errors.AsType[*upstream.Failure](err); ok {
		if failed.Away() {
			return http.StatusServiceUnavailable // it could not be judged, and may be sent again
		}
		return http.StatusBadRequest
	}
	if e, ok := errors.AsType[*errs.Error](err); ok && e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())+1))
	}
	return web.AnswerTo(err).REST
}

func (l LogoutReceiver) end(r *http.Request, id string) error {
	info := call.From(r.Context())
	if err := l.Sessions.NetworkLimiter.Take(info.Peer, 1); err != nil { // the sender has proven nothing yet
		return err
	}
	if err := r.ParseForm(); err != nil {
		if e, full := errors.AsType[*errs.Error](err); full { // there is no room for it, see web.Budget
			return e
		}
		return errLogoutToken
	}
	text := r.PostForm[logoutToken]
	if len(text) != 1 || text[0] == "" || len(id) > event.MaxID {
		return errLogoutToken
	}
	p, err := idp.Kind.Read(r.Context(), l.Store, id)
	if err != nil {
		return err
	}
	if p == nil || !p.Data.Offered() { // its users are signed out already
		return errLogoutToken
	}
	return l.Federation.SignOut(r.Context(), p, text[0], info.RequestID,
		func(ctx context.Context, out upstream.SignedOut) error {
			return l.Sessions.EndThrough(ctx,
				federated.SignedOut{Provider: out.Provider, Issuer: out.Issuer, Subject: out.Subject,
					Session: out.Session, RequestID: info.RequestID})
		})
}
