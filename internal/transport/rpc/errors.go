package rpc

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Reasons of this package.
const (
	UnknownPath          errs.Reason = "UNKNOWN_PATH"
	UnknownMethod        errs.Reason = "UNKNOWN_METHOD"
	MethodNotAllowed     errs.Reason = "METHOD_NOT_ALLOWED"
	UnsupportedMediaType errs.Reason = "UNSUPPORTED_MEDIA_TYPE"
	UnsupportedEncoding  errs.Reason = "UNSUPPORTED_ENCODING"
	BodyTooLarge         errs.Reason = "BODY_TOO_LARGE"
	NotReady             errs.Reason = "NOT_READY"
	Internal             errs.Reason = "INTERNAL"
	Stopping             errs.Reason = "STOPPING"
	TooManyStreams       errs.Reason = "TOO_MANY_STREAMS"
	ReaderTooSlow        errs.Reason = "READER_TOO_SLOW"
)

var (
	errUnknownPath = errs.New(errs.NotFound, UnknownPath,
		"there is nothing at this path: check its spelling against /openapi.json")
	errUnknownMethod = errs.New(errs.Unimplemented, UnknownMethod,
		"there is no such method: check the names of package, service and method")
	errMethodNotAllowed = errs.New(errs.Unimplemented, MethodNotAllowed,
		"this path does not support that HTTP method: the header allow lists the supported ones").WithStatus(http.StatusMethodNotAllowed)
	errNotJSON = errs.New(errs.Unimplemented, UnsupportedMediaType,
		"the body must be JSON in UTF-8: send content-type: application/json").WithStatus(http.StatusUnsupportedMediaType)
	errNotGRPC  = notGRPC("application/grpc, application/grpc-web+proto and application/grpc-web-text")
	errNotText  = notGRPC("application/grpc and application/grpc-web+proto")
	errEncoding = errs.New(errs.Unimplemented, UnsupportedEncoding,
		"the body must not be encoded: leave the header content-encoding out").WithStatus(http.StatusUnsupportedMediaType)
	errGRPCEncoding = errs.New(errs.Unimplemented, UnsupportedEncoding,
		"messages must be uncompressed or compressed with gzip").WithStatus(http.StatusUnsupportedMediaType)
	errDeadline = errs.New(errs.DeadlineExceeded, event.DeadlinePassed,
		"the request took too long and was cancelled: the outcome may be unknown, so read before you try again")
	errNotStarted = errs.New(errs.DeadlineExceeded, event.DeadlinePassed,
		"the deadline passed before the operation started: nothing was done")
	errNotReady = &errs.Error{Kind: errs.Unavailable, Reason: NotReady, RetryAfter: time.Second,
		Message: "the server cannot serve requests at the moment"}
	errStopping = &errs.Error{Kind: errs.Unavailable, Reason: Stopping, RetryAfter: time.Second,
		Message: "the server is stopping: resume with the last cursor in a moment"}
	errStreamsHere = &errs.Error{Kind: errs.ResourceExhausted, Reason: TooManyStreams, RetryAfter: 10 * time.Second,
		Message: "this server has no free stream: try again later, or on another node"}
	errStreamsOfYours = &errs.Error{Kind: errs.ResourceExhausted, Reason: TooManyStreams, RetryAfter: 10 * time.Second,
		Message: "you have too many streams open on this server: end one first, or request more events in one stream"}
	errStreamsOfOrganization = &errs.Error{
		Kind:       errs.ResourceExhausted,
		Reason:     fairqueue.UsedUp,
		RetryAfter: 10 * time.Second,
		Message:    "your organization has used up its share of streams on this server: end some of them, or request more events in one stream",
	}
	errTooSlow = errs.New(errs.DeadlineExceeded, ReaderTooSlow,
		"the client did not read the stream for too long: resume with the last cursor, and read without pauses")
	errInternal = errs.New(errs.Internal, Internal,
		"an internal error occurred: give the request id to the operator, who can find the cause in the log")
)

func errBodyTooLarge(limit int64) error {
	return errs.New(errs.ResourceExhausted, BodyTooLarge,
		"the request is too large: at most "+strconv.FormatInt(limit, 10)+" bytes are accepted").
		WithStatus(http.StatusRequestEntityTooLarge)
}

func notGRPC(types string) *errs.Error {
	return errs.New(errs.Unimplemented, UnsupportedMediaType,
		"this path supports only "+types+": see /openapi.json for the paths for JSON").
		WithStatus(http.StatusUnsupportedMediaType)
}

// shown turns any error into what the caller may see of it. The original becomes the cause.
func shown(err error) *errs.Error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind == errs.Internal {
		return errInternal.Because(err)
	}
	return e
}

// statusOf renders a refusal; it is the error body of all protocols.
func statusOf(e *errs.Error, requestID string) *status.Status {
	text := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	st := &status.Status{Code: int32(web.AnswerTo(e).GRPC), Message: text(e.Message)}
	add := func(m proto.Message) {
		if detail, err := anypb.New(m); err == nil { // it would fail only for text that is not UTF-8
			st.Details = append(st.Details, detail)
		}
	}
	add(&errdetails.ErrorInfo{Reason: string(e.Reason), Domain: "signet"})
	add(&errdetails.RequestInfo{RequestId: requestID})
	if len(e.Fields) > 0 {
		bad := &errdetails.BadRequest{}
		for _, f := range e.Fields {
			bad.FieldViolations = append(bad.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: text(f.Field), Description: text(f.Message)})
		}
		add(bad)
	}
	if e.RetryAfter > 0 {
		add(&errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	return st
}
