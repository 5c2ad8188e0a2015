// Package remote is what the commands share that call the API of a running server.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// Server is one, and who calls it.
type Server struct {
	URL   string // https://id.example.org
	Token string
	Org   string // to work in; empty: that of the caller
}

// InFlight is how many requests are on their way at the same time: enough for the server never to wait.
const InFlight = 4

// NewHTTPClient makes one that goes where it was sent and nowhere else: the token is for that server.
func NewHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = InFlight
	return &http.Client{Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Call gives the context of a call as the server's caller, and the headers to add others to.
func (s Server) Call(ctx context.Context) (context.Context, http.Header) {
	ctx, info := connect.NewClientContext(ctx)
	h := info.RequestHeader()
	h.Set("Authorization", "Bearer "+s.Token)
	if s.Org != "" {
		h.Set("X-Service-Orgid", s.Org)
	}
	return ctx, h
}

// Details gives the reason of a refusal of Signet, empty where somebody else speaks, and how long it asks to wait.
func Details(err error) (reason string, wait time.Duration) {
	said, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return "", 0
	}
	for _, d := range said.Details() {
		value, err := d.Value()
		if err != nil {
			continue
		}
		switch v := value.(type) {
		case *errdetails.ErrorInfo:
			reason = v.GetReason()
		case *errdetails.RetryInfo:
			wait = v.GetRetryDelay().AsDuration()
		}
	}
	return reason, wait
}

// InWords says what the server refuses, and that it is no Signet where it does not speak like one.
func InWords(err error) error {
	said, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	if reason, _ := Details(err); reason != "" {
		return fmt.Errorf("%s (%s)", said.Message(), reason)
	}
	switch said.Code() {
	case connect.CodeUnavailable, connect.CodeUnknown, connect.CodeInternal, connect.CodeDeadlineExceeded,
		connect.CodeCanceled:
		return errors.New(said.Message())
	}
	return fmt.Errorf("%s: check that --server is the address of a Signet server", said.Message())
}
