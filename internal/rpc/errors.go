package rpc

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/share"
	"github.com/signet-idm/signet/internal/web"
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
	Cancelled            errs.Reason = "CANCELLED"
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
		"this path does not take that HTTP method: the header allow lists those it takes")
	errNotJSON = errs.New(errs.Unimplemented, UnsupportedMediaType,
		"the body must be JSON in UTF-8: send content-type: application/json")
	errNotGRPC = errs.New(errs.Unimplemented, UnsupportedMediaType,
		"this path takes application/grpc and application/grpc-web+proto only: JSON has paths of its own, see /openapi.json")
	errEncoding = errs.New(errs.Unimplemented, UnsupportedEncoding,
		"the body must not be encoded: leave the header content-encoding out")
	errGRPCEncoding = errs.New(errs.Unimplemented, UnsupportedEncoding,
		"messages must be sent as they are or compressed with gzip")
	errDeadline = errs.New(errs.DeadlineExceeded, event.DeadlinePassed,
		"the request took too long and was given up: whether a change was made is not known, read before you try again")
	errNotStarted = errs.New(errs.DeadlineExceeded, event.DeadlinePassed,
		"the time for the request was over before the operation began: nothing was done")
	errCancelled = errs.New(errs.DeadlineExceeded, Cancelled, "the caller gave the request up")
	errNotReady  = &errs.Error{Kind: errs.Unavailable, Reason: NotReady, RetryAfter: time.Second,
		Message: "the server cannot serve requests at the moment"}
	errStopping = &errs.Error{Kind: errs.Unavailable, Reason: Stopping, RetryAfter: time.Second,
		Message: "the server is stopping: go on with the last cursor in a moment"}
	errStreamsHere = &errs.Error{Kind: errs.ResourceExhausted, Reason: TooManyStreams, RetryAfter: 10 * time.Second,
		Message: "this server has as many streams open as it can serve: try again later, or on another node"}
	errStreamsOfYours = &errs.Error{Kind: errs.ResourceExhausted, Reason: TooManyStreams, RetryAfter: 10 * time.Second,
		Message: "you have too many streams open on this server: end one of them first, or let one stream do for several by asking for more in it"}
	errStreamsOfOrganization = &errs.Error{Kind: errs.ResourceExhausted, Reason: share.UsedUp, RetryAfter: 10 * time.Second,
		Message: "your organization has as many streams open on this server as are its share: end some of them, or let one stream do for several by asking for more in it"}
	errTooSlow = errs.New(errs.DeadlineExceeded, ReaderTooSlow,
		"nothing of the stream was read for too long: go on with the last cursor, and read what comes without waiting")
	errInternal = errs.New(errs.Internal, Internal,
		"something went wrong inside the server: report the request id to its operator, who finds the cause in the log")
)

func errBodyTooLarge(limit int64) error {
	return errs.New(errs.ResourceExhausted, BodyTooLarge, "the request is too large: at most "+strconv.FormatInt(limit, 10)+" bytes are accepted")
}

// A standing is what a refusal is called in gRPC and in HTTP.
type standing struct {
	code code.Code
	http int
}

var byKind = map[errs.Kind]standing{
	errs.Internal:           {code.Code_INTERNAL, http.StatusInternalServerError},
	errs.InvalidArgument:    {code.Code_INVALID_ARGUMENT, http.StatusBadRequest},
	errs.Unauthenticated:    {code.Code_UNAUTHENTICATED, http.StatusUnauthorized},
	errs.PermissionDenied:   {code.Code_PERMISSION_DENIED, http.StatusForbidden},
	errs.NotFound:           {code.Code_NOT_FOUND, http.StatusNotFound},
	errs.AlreadyExists:      {code.Code_ALREADY_EXISTS, http.StatusConflict},
	errs.Aborted:            {code.Code_ABORTED, http.StatusConflict},
	errs.FailedPrecondition: {code.Code_FAILED_PRECONDITION, http.StatusBadRequest},
	errs.ResourceExhausted:  {code.Code_RESOURCE_EXHAUSTED, http.StatusTooManyRequests},
	errs.Unimplemented:      {code.Code_UNIMPLEMENTED, http.StatusNotImplemented},
	errs.Unavailable:        {code.Code_UNAVAILABLE, http.StatusServiceUnavailable},
	errs.DeadlineExceeded:   {code.Code_DEADLINE_EXCEEDED, http.StatusGatewayTimeout},
}

// byReason holds the few refusals that HTTP, or gRPC, tells apart more finely than the kinds do.
var byReason = map[errs.Reason]standing{
	MethodNotAllowed:     {code.Code_UNIMPLEMENTED, http.StatusMethodNotAllowed},
	UnsupportedMediaType: {code.Code_UNIMPLEMENTED, http.StatusUnsupportedMediaType},
	UnsupportedEncoding:  {code.Code_UNIMPLEMENTED, http.StatusUnsupportedMediaType},
	BodyTooLarge:         {code.Code_RESOURCE_EXHAUSTED, http.StatusRequestEntityTooLarge},
	Cancelled:            {code.Code_CANCELLED, 499}, // nobody is left to read it
}

func standingOf(e *errs.Error) standing {
	if s, ok := byReason[e.Reason]; ok {
		return s
	}
	if s, ok := byKind[e.Kind]; ok {
		return s
	}
	return byKind[errs.Internal]
}

// shown turns any error into what the caller may see of it. The original becomes the cause.
func shown(err error) *errs.Error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || standingOf(e).code == code.Code_INTERNAL {
		return errInternal.Because(err)
	}
	return e
}

// statusOf renders a refusal; it is the error body of all protocols.
func statusOf(e *errs.Error, requestID string) *status.Status {
	text := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	st := &status.Status{Code: int32(standingOf(e).code), Message: text(e.Message)}
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

// setErrorHeaders sets the headers that belong to a refusal, or the metadata under the same names.
func setErrorHeaders(h http.Header, e *errs.Error) {
	if e.Kind == errs.Unauthenticated {
		h.Set("Www-Authenticate", "Bearer")
	}
	web.RetryAfter(h, e)
}
