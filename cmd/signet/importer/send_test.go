package importer

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/signet-idm/signet/cmd/signet/remote"
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/progress"
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

func TestACertificateThatIsNotTrustedEndsItAtOnce(t *testing.T) {
	err := connect.NewError(connect.CodeUnavailable,
		&tls.CertificateVerificationError{Err: errors.New("signed by nobody")})
	if _, again := judge(err, 0); again {
		t.Error("it is tried again")
	}
}

// network is one that is away at times, to a server that refuses or imports everybody.
type network struct {
	signetv1connect.UserServiceClient
	away    func() bool
	refuses error
}

func (n network) ImportUsers(_ context.Context, r *signetv1.ImportUsersRequest) (*signetv1.ImportUsersResponse, error) {
	if n.away() {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("connection refused"))
	}
	if n.refuses != nil {
		return nil, n.refuses
	}
	return &signetv1.ImportUsersResponse{Results: make([]*signetv1.ImportUsersResponse_Result, len(r.GetUsers()))}, nil
}

// TestAServerThatIsAwayIsTalkedAboutOnce: whoever sits there learns soon what is waited for, and not from every request
// again.
func TestAServerThatIsAwayIsTalkedAboutOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		outage []time.Duration // from when the sending began, each
		lines  int
	}{
		{"never", []time.Duration{0}, 0},
		{"for a moment", []time.Duration{500 * time.Millisecond}, 0},
		{"for a minute", []time.Duration{time.Minute}, 1},
		{"twice", []time.Duration{time.Minute, time.Minute}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				var until time.Time
				r := &run{
					Import: Import{GiveUp: 5 * time.Minute},
					notes:  &notebook{},
					bar:    progress.New(&out, false, "lines", 0),
					client: network{away: func() bool { return time.Now().Before(until) }},
				}
				for _, outage := range c.outage {
					until = time.Now().Add(outage)
					var all sync.WaitGroup
					for range remote.InFlight {
						all.Go(func() {
							if a := r.send(t.Context(), &chunk{people: []*person{ada()}}); a.err != nil ||
								len(a.results) != 1 {
								t.Errorf("%+v", a)
							}
						})
					}
					all.Wait()
				}
				const line = "the server does not accept requests (connection refused): retrying for up to 5m0s\n"
				if out.String() != strings.Repeat(line, c.lines) {
					t.Errorf("it says %q", out.String())
				}
			})
		})
	}
}

// TestARefusalAfterABrokenConnectionIsNotForgotten: the state of an import is, when the server refuses it at once.
func TestARefusalAfterABrokenConnectionIsNotForgotten(t *testing.T) {
	for outage, want := range map[time.Duration]bool{0: true, time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			until := time.Now().Add(outage)
			r := &run{
				Import: Import{GiveUp: time.Minute},
				notes:  &notebook{},
				client: network{away: func() bool { return time.Now().Before(until) },
					refuses: said(t, connect.CodeUnauthenticated, "UNAUTHENTICATED", 0)},
			}
			a := r.send(t.Context(), &chunk{people: []*person{ada()}})
			if _, refused := errors.AsType[*refusal](a.err); a.err == nil || refused != want {
				t.Errorf("after %s: %v, a refusal %t", outage, a.err, refused)
			}
		})
	}
}
