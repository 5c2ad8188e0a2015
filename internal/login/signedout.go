package login

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/federation"
	"github.com/signet-idm/signet/internal/federation/failure"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/session/federated"
	"github.com/signet-idm/signet/internal/web"
)

const (
	// logoutPart is what follows the id of a provider in the address that it calls when somebody signs out there.
	logoutPart  = "logout"
	logoutToken = "logout_token"
)

// errLogoutToken is what a request gets that is none of a provider.
var errLogoutToken = errs.Invalid(errs.Violation{Field: logoutToken, Message: "must be sent once, in a form"})

// signedOutAtProvider is called by the server of a provider, not by a browser: somebody has signed out there (OpenID Connect Back-Channel Logout 1.0). What
// comes back is a status alone, and that tells strangers no more than whether a token was good.
func (l *Login) signedOutAtProvider(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	err := l.endSignedOut(r)
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	web.Failed(r.Context(), err)
	w.WriteHeader(logoutStatus(w, err))
}

func logoutStatus(w http.ResponseWriter, err error) int {
	if failed, ok := errors.AsType[*federation.Failure](err); ok {
		switch failed.Check {
		case logoutPart + "_" + failure.Unreachable, logoutPart + "_" + failure.Discovery, logoutPart + "_" + failure.Keys, logoutPart + "_" + failure.Busy:
			return http.StatusServiceUnavailable // it could not be judged, and may be sent again
		}
		return http.StatusBadRequest
	}
	if e, ok := errors.AsType[*errs.Error](err); ok && e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())+1))
	}
	return web.AnswerTo(err).REST
}

func (l *Login) endSignedOut(r *http.Request) error {
	info := call.From(r.Context())
	if err := l.Sessions.NetworkLimiter.Take(info.Peer, 1); err != nil { // whoever sends it has proven nothing yet
		return err
	}
	if err := r.ParseForm(); err != nil {
		if e, full := errors.AsType[*errs.Error](err); full { // there is no room for it, see web.Budget
			return e
		}
		return errLogoutToken
	}
	text := r.PostForm[logoutToken]
	id := providerIn(r)
	if len(text) != 1 || text[0] == "" || len(id) > event.MaxID {
		return errLogoutToken
	}
	p, err := idp.Kind.Read(r.Context(), l.Store, id)
	if err != nil {
		return err
	}
	if p == nil || !p.Data.Offered() { // whoever came through it is out already
		return errLogoutToken
	}
	return l.Federation.SignOut(r.Context(), p, text[0], info.RequestID, func(ctx context.Context, out federation.SignedOut) error {
		return l.Federated.EndThrough(ctx, federated.SignedOut{Provider: out.Provider, Issuer: out.Issuer, Subject: out.Subject, Session: out.Session, RequestID: info.RequestID})
	})
}
