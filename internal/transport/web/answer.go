package web

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/code"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// Answer says how callers see an error.
type Answer struct {
	GRPC  code.Code // over gRPC and gRPC-Web, and in the body over REST
	REST  int       // HTTP status
	OAuth OAuth     // at the OAuth endpoints for programs, if OAuth has no word for the reason
	Page  Page
}

// OAuth is an error of RFC 6749.
type OAuth struct {
	Status             int
	Error, Description string
}

// Page is the page that shows an error to a person.
type Page struct {
	Status int
	What   pages.Failure
}

var (
	serverError = OAuth{500, "server_error", "an internal error occurred: give the request id to the operator"}
	tryAgain    = OAuth{503, "temporarily_unavailable", "the server cannot answer at the moment: try again shortly"}
	tooMany     = OAuth{429, "temporarily_unavailable", ""} // the message of the error

	expired     = Page{400, pages.Expired}
	unavailable = Page{503, pages.Unavailable}
)

// answers is the one table from errors to answers. A few reasons have an answer of their own: the words of OAuth in
// package oidc, pages of package login, and errors with a Status.
var answers = [errs.Kinds]Answer{
	errs.Internal:           {code.Code_INTERNAL, 500, serverError, Page{500, pages.Broken}},
	errs.InvalidArgument:    {code.Code_INVALID_ARGUMENT, 400, serverError, expired},
	errs.Unauthenticated:    {code.Code_UNAUTHENTICATED, 401, serverError, expired},
	errs.PermissionDenied:   {code.Code_PERMISSION_DENIED, 403, serverError, Page{403, pages.NotPermitted}},
	errs.NotFound:           {code.Code_NOT_FOUND, 404, serverError, Page{404, pages.NotFound}},
	errs.AlreadyExists:      {code.Code_ALREADY_EXISTS, 409, serverError, expired},
	errs.Aborted:            {code.Code_ABORTED, 409, tryAgain, unavailable},
	errs.FailedPrecondition: {code.Code_FAILED_PRECONDITION, 400, serverError, expired},
	errs.ResourceExhausted:  {code.Code_RESOURCE_EXHAUSTED, 429, tooMany, Page{429, pages.TooMany}},
	errs.Unimplemented:      {code.Code_UNIMPLEMENTED, 501, serverError, expired},
	errs.Unavailable:        {code.Code_UNAVAILABLE, 503, tryAgain, unavailable},
	errs.DeadlineExceeded:   {code.Code_DEADLINE_EXCEEDED, 504, tryAgain, unavailable},
	// nobody is left to read it, but the log and the metrics say it
	errs.Cancelled: {code.Code_CANCELLED, 499, OAuth{499, tryAgain.Error, tryAgain.Description},
		Page{499, pages.Unavailable}},
}

// known gives an error its kind: the end of a request that its caller has left, while it waited for something, is the
// caller's own doing.
func known(err error) error {
	if _, ours := errors.AsType[*errs.Error](err); !ours && errors.Is(err, context.Canceled) {
		return errs.ErrGone.Because(err)
	}
	return err
}

// AnswerTo gives the answer to an error. An error that is not an *errs.Error is Internal.
func AnswerTo(err error) Answer {
	e, ours := errors.AsType[*errs.Error](known(err))
	if !ours {
		return answers[errs.Internal]
	}
	a := answers[e.Kind]
	a.REST, a.Page.Status = cmp.Or(e.Status, a.REST), cmp.Or(e.Status, a.Page.Status)
	a.OAuth.Description = cmp.Or(a.OAuth.Description, e.Message)
	return a
}
