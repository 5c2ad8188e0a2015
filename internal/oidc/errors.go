package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	zitadel "github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/web"
)

// words are the reasons that OAuth has a word for: the same in lower case.
var words = map[errs.Reason]int{
	errs.InvalidRequest: http.StatusBadRequest, grant.InvalidClient: http.StatusUnauthorized, grant.InvalidGrant: http.StatusBadRequest,
	grant.InvalidScope: http.StatusBadRequest, grant.UnauthorizedClient: http.StatusBadRequest, grant.AccessDenied: http.StatusBadRequest,
	grant.AuthorizationPending: http.StatusBadRequest, grant.SlowDown: http.StatusBadRequest, grant.ExpiredToken: http.StatusBadRequest,
}

// oauth is what a program is told about an error. What is not its fault stays unsaid: the request id leads to the log.
func oauth(err error) (status int, code, description string) {
	e, ours := errors.AsType[*errs.Error](err)
	if ours {
		if status, known := words[e.Reason]; known {
			return status, strings.ToLower(string(e.Reason)), e.Message
		}
		switch e.Kind {
		case errs.Unavailable, errs.DeadlineExceeded, errs.Aborted:
			return http.StatusServiceUnavailable, "temporarily_unavailable", "the server cannot answer at the moment: try again shortly"
		case errs.ResourceExhausted:
			return http.StatusTooManyRequests, "temporarily_unavailable", e.Message
		}
	}
	return http.StatusInternalServerError, "server_error", "something went wrong inside the server: report the request id to its operator"
}

// failed hands an error to the library, and tells the log.
func failed(ctx context.Context, err error) error {
	web.Failed(ctx, err)
	status, code, description := oauth(err)
	return told(status, code, description)
}

// told makes the library tell a program this.
func told(status int, code, description string) error {
	e := zitadel.ErrServerError().WithDescription("%s", description)
	reflect.ValueOf(&e.ErrorType).Elem().SetString(code) // its type has no name outside of the library
	return op.NewStatusError(e, status)
}

// refuse answers a program without the library.
func refuse(w http.ResponseWriter, r *http.Request, err error, status int) {
	web.Failed(r.Context(), err)
	_, code, description := oauth(err)
	writeJSON(w, status, map[string]string{"error": code, "error_description": description})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // nobody is left to tell
}
