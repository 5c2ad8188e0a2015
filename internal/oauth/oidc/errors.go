package oidc

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/transport/web"
)

// The reasons of this package: words of OAuth in upper case.
const (
	UnsupportedGrantType errs.Reason = "UNSUPPORTED_GRANT_TYPE"
	InvalidToken         errs.Reason = "INVALID_TOKEN"
	InsufficientScope    errs.Reason = "INSUFFICIENT_SCOPE"
)

// words are the reasons that OAuth has a word for: the same in lower case.
var words = map[errs.Reason]int{
	errs.InvalidRequest: http.StatusBadRequest, oauth.InvalidClient: http.StatusUnauthorized,
	oauth.InvalidGrant: http.StatusBadRequest,
	oauth.InvalidScope: http.StatusBadRequest, oauth.UnauthorizedClient: http.StatusBadRequest,
	oauth.AccessDenied:         http.StatusBadRequest,
	oauth.AuthorizationPending: http.StatusBadRequest, oauth.SlowDown: http.StatusBadRequest,
	oauth.ExpiredToken: http.StatusBadRequest,
	// of authorization requests that are pushed
	request.UnsupportedResponseType: http.StatusBadRequest, request.RequestNotSupported: http.StatusBadRequest,
	oauth.LoginRequired: http.StatusBadRequest, oauth.UnmetAuthentication: http.StatusBadRequest,
	access.InvalidProof: http.StatusBadRequest, access.NonceNeeded: http.StatusBadRequest,
	UnsupportedGrantType: http.StatusBadRequest, InvalidToken: http.StatusUnauthorized,
	InsufficientScope: http.StatusForbidden,
}

// invalid refuses what is wrong with a request.
func invalid(message string) *errs.Error {
	return errs.New(errs.InvalidArgument, errs.InvalidRequest, message)
}

// badClient refuses what a client sent about itself before it is judged.
func badClient(message string) error {
	return errs.New(errs.Unauthenticated, oauth.InvalidClient, message).WithStatus(http.StatusBadRequest)
}

// oauth is what a program is told about an error. What is not its fault stays unsaid: the request id leads to the log.
func refusalOf(err error) web.OAuth {
	if e, ours := errors.AsType[*errs.Error](err); ours && words[e.Reason] != 0 {
		return web.OAuth{Status: cmp.Or(e.Status, words[e.Reason]), Error: strings.ToLower(string(e.Reason)),
			Description: e.Message}
	}
	return web.AnswerTo(err).OAuth
}

// writeJSON answers with a body, or with a status alone where it is nil.
func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body) // nobody is left to tell
	}
}
