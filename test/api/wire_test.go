package api_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// wire is one content type.
type wire interface {
	name() string
	call(ctx context.Context, op *operation, req proto.Message, h Header) (*Answer, error)
}

// Answer is what came back, whatever way it came.
type Answer struct {
	wire    string
	message proto.Message // nil where it was refused
	status  *spb.Status   // nil where it was not
	header  http.Header   // metadata, over gRPC
	http    int           // REST only
	body    []byte        // REST only
}

func (a *Answer) code() codes.Code { return codes.Code(a.status.GetCode()) }

func (a *Answer) reason() string {
	if info := detail[*errdetails.ErrorInfo](a); info != nil {
		return info.GetReason()
	}
	return ""
}

func (a *Answer) fields() []string {
	var fields []string
	if bad := detail[*errdetails.BadRequest](a); bad != nil {
		for _, v := range bad.GetFieldViolations() {
			fields = append(fields, v.GetField())
		}
	}
	slices.Sort(fields)
	return fields
}

// summary is all of an answer that must not depend on the content type.
func (a *Answer) summary() string {
	if a.status == nil {
		return "OK"
	}
	var details []string
	for _, d := range a.status.GetDetails() {
		m, err := d.UnmarshalNew()
		switch m := m.(type) {
		case *errdetails.RequestInfo:
			details = append(details, "RequestInfo")
		case *errdetails.RetryInfo:
			details = append(details, "RetryInfo")
		case nil:
			details = append(details, err.Error())
		default:
			details = append(details, protojson.MarshalOptions{}.Format(m))
		}
	}
	return fmt.Sprintf("%v %q %s", a.code(), a.status.GetMessage(), strings.Join(details, " "))
}

// detail finds the detail of a type; nil where there is none.
func detail[M proto.Message](a *Answer) (found M) {
	for _, d := range a.status.GetDetails() {
		if m, err := d.UnmarshalNew(); err == nil {
			if m, is := m.(M); is {
				return m
			}
		}
	}
	return found
}

// send makes one call and looks at everything that must hold for any answer.
func (w *World) send(t *testing.T, over wire, as *Actor, req proto.Message, h Header) *Answer {
	t.Helper()
	op := operationFor(req)
	if op == nil {
		t.Fatalf("%s belongs to no operation", req.ProtoReflect().Descriptor().FullName())
	}
	all := merge([]Header{h})
	if as != nil && as.Token != "" && all["authorization"] == nil {
		all["authorization"] = []string{"Bearer " + as.Token}
	}
	w.requests.Add(1)
	a, err := over.call(t.Context(), op, req, all)
	if err != nil {
		t.Fatalf("%s %s: %v", over.name(), op.md.Name(), err)
	}
	a.wire = over.name()
	w.verify(t, op, a)
	w.remember(op, a)
	return a
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

// httpStatus is the contract's table; the codes with two rows are told apart by their reason.
var httpStatus = map[codes.Code]int{
	codes.OK: 200, codes.InvalidArgument: 400, codes.Unauthenticated: 401, codes.PermissionDenied: 403,
	codes.NotFound:      404,
	codes.AlreadyExists: 409, codes.Aborted: 409, codes.FailedPrecondition: 400, codes.ResourceExhausted: 429,
	codes.Internal: 500, codes.Unavailable: 503, codes.DeadlineExceeded: 504,
}

var httpStatusByReason = map[string]int{"METHOD_NOT_ALLOWED": 405, "UNSUPPORTED_MEDIA_TYPE": 415,
	"UNSUPPORTED_ENCODING": 415, "BODY_TOO_LARGE": 413}

// successor is the link of a provider that was updated in a deprecated way.
var successor = regexp.MustCompile(`^</v1/idps/[^/{}<>]+>; rel="successor-version"$`)

// verify checks what every answer promises.
func (w *World) verify(t *testing.T, op *operation, a *Answer) {
	t.Helper()
	w.verified.Add(1)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s %s: "+format, append([]any{a.wire, op.name()}, args...)...)
	}
	if a.header.Get("X-Request-Id") == "" {
		fail("no request id")
	}
	if a.header.Get("Cache-Control") != "no-store" {
		fail("may be cached: %q", a.header.Get("Cache-Control"))
	}
	deprecation := ""
	if since := op.rule.GetDeprecatedSince(); since != 0 {
		deprecation = "@" + strconv.FormatInt(since, 10)
	}
	if op.deprecated() != (deprecation != "") {
		fail("the definition is of two minds about whether it is deprecated")
	}
	if got := a.header.Get("Deprecation"); got != deprecation {
		fail("deprecation: %q, want %q", got, deprecation)
	}
	link := strings.Join(a.header.Values("Link"), "; ")
	told := a.status == nil || codes.Code(a.status.GetCode()) == codes.NotFound ||
		codes.Code(a.status.GetCode()) == codes.PermissionDenied
	if link != "" && op.rule.GetSuccessor() == "" ||
		told && op.rule.GetSuccessor() != "" && !successor.MatchString(link) {
		fail("link: %q", link)
	}
	if a.status != nil {
		w.verifyRefusal(fail, a)
		return
	}
	if a.http != 0 && a.http != http.StatusOK {
		fail("HTTP %d with a message", a.http)
	}
	etag := ""
	if d := readDetails(a.message); op.verb == "GET" && d != nil {
		etag = `"` + strconv.FormatUint(d.GetSequence(), 10) + `"`
	}
	if got := a.header.Get("Etag"); got != etag {
		fail("etag %s, want %s", got, etag)
	}
	if d, ok := a.message.(interface{ GetDetails() *signetv1.Details }); ok {
		if d.GetDetails().GetSequence() == 0 || d.GetDetails().GetChangeDate() == nil ||
			d.GetDetails().GetResourceOwner() == "" {
			fail("incomplete details: %v", d.GetDetails())
		}
		// which answer a secret, and so take no idempotency key
		created := op.rule.GetCreates() || op.name() == "AddApplication" || op.name() == "AddWebhook" ||
			op.name() == "CreateInvitation"
		if (d.GetDetails().GetCreationDate() != nil) != (created || op.verb == http.MethodGet) {
			fail("a creation date belongs to creations and reads only: %v", d.GetDetails())
		}
	}
}

func (w *World) verifyRefusal(fail func(string, ...any), a *Answer) {
	info := detail[*errdetails.ErrorInfo](a)
	if info == nil || info.GetDomain() != "signet" || !reasonForm.MatchString(info.GetReason()) {
		fail("ErrorInfo: %v", info)
	}
	if a.status.GetMessage() == "" {
		fail("says nothing")
	}
	if a.code() == codes.Internal {
		log := w.log.String()
		fail("a bug: %s (see the log below)\n%s", a.summary(), log[max(0, len(log)-3000):])
	}
	if id := detail[*errdetails.RequestInfo](a).GetRequestId(); id == "" || id != a.header.Get("X-Request-Id") {
		fail("RequestInfo has %q, the header %q", id, a.header.Get("X-Request-Id"))
	}
	seen := map[string]bool{}
	for _, v := range detail[*errdetails.BadRequest](a).GetFieldViolations() {
		if v.GetField() != "" && seen[v.GetField()] {
			fail("two violations of %s", v.GetField())
		}
		seen[v.GetField()] = true
		if v.GetDescription() == "" {
			fail("a violation of %s that says nothing", v.GetField())
		}
	}
	if len(seen) > 0 && a.code() != codes.InvalidArgument || len(seen) == 0 && a.code() == codes.InvalidArgument {
		fail("%v with %d violations", a.code(), len(seen))
	}
	if want := httpStatus[a.code()]; a.http != 0 {
		if special, ok := httpStatusByReason[a.reason()]; ok {
			want = special
		}
		if a.http != want {
			fail("HTTP %d, want %d for %v", a.http, want, a.code())
		}
	}
	challenge := ""
	if a.code() == codes.Unauthenticated {
		challenge = "Bearer"
	}
	if got := a.header.Get("Www-Authenticate"); got != challenge {
		fail("www-authenticate: %q, want %q", got, challenge)
	}
	retry := detail[*errdetails.RetryInfo](a)
	if limited := a.code() == codes.Unavailable ||
		a.code() == codes.ResourceExhausted && a.reason() != "BODY_TOO_LARGE"; limited != (retry != nil) {
		fail("RetryInfo: %v", retry)
	}
	if retry != nil {
		seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
		if d := retry.GetRetryDelay().AsDuration(); err != nil || d <= 0 || float64(seconds) < d.Seconds() ||
			float64(seconds) >= d.Seconds()+1 {
			fail("retry-after %q beside a RetryInfo of %v", a.header.Get("Retry-After"), d)
		}
	}
}

// readDetails gives the details of the object in the answer to a read: directly, or in the only message that it has.
func readDetails(m proto.Message) *signetv1.Details {
	type detailed interface{ GetDetails() *signetv1.Details }
	if d, is := m.(detailed); is {
		return d.GetDetails()
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	if fields.Len() == 0 || fields.Get(0).Message() == nil || fields.Get(0).IsList() {
		return nil
	}
	for i := 1; i < fields.Len(); i++ { // plain values may stand beside the object
		if fields.Get(i).Message() != nil || fields.Get(i).IsList() {
			return nil
		}
	}
	if d, is := m.ProtoReflect().Get(fields.Get(0)).Message().Interface().(detailed); is {
		return d.GetDetails()
	}
	return nil
}
