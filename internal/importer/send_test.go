package importer

import (
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
)

// said makes an error as Signet sends it; without a reason, as a proxy or a broken connection does.
func said(t *testing.T, code connect.Code, reason string, wait time.Duration) error {
	t.Helper()
	err := connect.NewError(code, errors.New("the message"))
	if reason != "" {
		detail, problem := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: reason, Domain: "signet"})
		if problem != nil {
			t.Fatal(problem)
		}
		err.AddDetail(detail)
	}
	if wait > 0 {
		detail, problem := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
		if problem != nil {
			t.Fatal(problem)
		}
		err.AddDetail(detail)
	}
	return err
}

func TestWhatIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   connect.Code
		reason string
		wait   time.Duration
		again  bool
	}{
		{"a connection that is refused", connect.CodeUnavailable, "", 0, true},
		{"a connection that breaks", connect.CodeUnknown, "", 0, true},
		{"a proxy that fails", connect.CodeInternal, "", 0, true},
		{"a server that is stopping", connect.CodeUnavailable, "STORAGE_UNAVAILABLE", time.Second, true},
		{"a server that has too much to do", connect.CodeResourceExhausted, "TOO_MUCH", 3 * time.Second, true},
		{"a proxy that has too much to do", connect.CodeResourceExhausted, "", 0, true},
		{"others who change the same", connect.CodeAborted, "CONTENTION", 0, true},
		{"a time limit", connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED", 0, true},
		{"a request that is too large", connect.CodeResourceExhausted, "BODY_TOO_LARGE", 0, false},
		{"a bug", connect.CodeInternal, "INTERNAL", 0, false},
		{"a bad token", connect.CodeUnauthenticated, "UNAUTHENTICATED", 0, false},
		{"no permission", connect.CodePermissionDenied, "PERMISSION_DENIED", 0, false},
		{"no such organization", connect.CodeNotFound, "ORGANIZATION_NOT_FOUND", 0, false},
		{"a key of another import", connect.CodeInvalidArgument, "IDEMPOTENCY_KEY_REUSED", 0, false},
		{"a server that is no Signet", connect.CodeUnimplemented, "", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := said(t, c.code, c.reason, c.wait)
			before := time.Duration(0)
			for attempt := range 100 {
				wait, again := judge(err, attempt)
				if again != c.again || again && (wait < leastWait || wait < c.wait || wait > mostWait*5/4) {
					t.Fatalf("attempt %d: %v, %t", attempt, wait, again)
				}
				if again && attempt < 5 && c.wait == 0 && wait <= before {
					t.Errorf("attempt %d waits %v, the one before %v", attempt, wait, before)
				}
				before = wait
			}
		})
	}
}
