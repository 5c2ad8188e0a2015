//go:build rolling

package rolling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The protocols that callers use.
const (
	rest    = "REST"
	grpc    = "gRPC"
	grpcWeb = "gRPC-Web"
)

// way is one to the cluster: a proxy and a protocol.
type way struct {
	*proxy
	protocol string
	host     string // that clients believe to talk to
}

func (w way) String() string { return w.protocol + " through " + w.name }

// operation is one of the API.
type operation struct{ procedure, method, path string }

// refusal is how a request failed.
type refusal struct {
	code, reason, text string
	repeat             repeat
	after              time.Duration // how long to wait before the next try, if it says so
}

func (r *refusal) String() string {
	return strings.TrimSpace(r.code + " " + r.reason)
}

// repeat is what the documented rule says about a failed request.
type repeat int

const (
	never       repeat = iota
	nothingDone        // it may be sent again
	unknown            // it may be sent again if it can be done twice, or carries if-match or idempotency-key
)

// judge is the rule of docs/api/errors.md.
func judge(code, reason string) repeat {
	switch {
	case reason == "STOPPING", reason == "NOT_READY", reason == "SERVER_BUSY", reason == "PASSWORD_HASHING_BUSY",
		reason == "TOO_MUCH_AT_ONCE", reason == "CONTENTION", reason == "NODE_OUTDATED":
		return nothingDone
	case code == "unavailable", code == "deadline_exceeded", reason == "proxy", reason == "connection":
		return unknown
	}
	return never
}

func refused(code, reason, text string) *refusal {
	return &refusal{code: code, reason: reason, text: text, repeat: judge(code, reason)}
}

// call sends one request.
func call[Q, A any](ctx context.Context, w way, op operation, token string, request *Q,
	header ...string) (*A, *refusal) {
	ctx, cancel := context.WithTimeout(ctx, 35*time.Second)
	defer cancel()
	if w.protocol == rest {
		answer := new(A)
		text, err := protojson.Marshal(any(request).(proto.Message))
		if err != nil {
			return nil, refused("", "", err.Error())
		}
		if op.method == http.MethodGet {
			text = nil
		}
		raw, refusal := w.send(ctx, op.method, op.path, text,
			append([]string{"Authorization", bearer(token), "Content-Type", "application/json"}, header...)...)
		if refusal == nil {
			if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw,
				any(answer).(proto.Message)); err != nil {
				return nil, refused("", "", err.Error())
			}
		}
		return answer, refusal
	}
	protocol := connect.WithGRPC()
	if w.protocol == grpcWeb {
		protocol = connect.WithGRPCWeb()
	}
	sent := connect.NewRequest(request)
	sent.Header().Set("Authorization", bearer(token))
	for i := 0; i < len(header); i += 2 {
		sent.Header().Set(header[i], header[i+1])
	}
	answer, err := connect.NewClient[Q, A](w.client, w.url+"/signet.v1."+op.procedure, protocol).CallUnary(ctx, sent)
	if err != nil {
		return nil, ofConnect(err)
	}
	return answer.Msg, nil
}

func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// ofConnect tells a refusal of Signet, which has a reason, from one that a proxy or the connection made.
func ofConnect(err error) *refusal {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return refused("", "connection", err.Error())
	}
	refusal := refused(failed.Code().String(), "proxy", err.Error())
	var after time.Duration
	for _, d := range failed.Details() {
		value, _ := d.Value()
		switch value := value.(type) {
		case *errdetails.ErrorInfo:
			refusal = refused(failed.Code().String(), value.GetReason(), failed.Message())
		case *errdetails.RetryInfo:
			after = value.GetRetryDelay().AsDuration()
		}
	}
	refusal.after = after
	return refusal
}

// send sends one request of HTTP.
func (w way) send(ctx context.Context, method, path string, body []byte, header ...string) ([]byte, *refusal) {
	raw, _, refusal := w.exchange(ctx, method, path, body, header...)
	return raw, refusal
}

func (w way) exchange(ctx context.Context, method, path string, body []byte,
	header ...string) ([]byte, *http.Response, *refusal) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, refused("", "", err.Error())
	}
	r.Host = w.host
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, nil, refused("", "connection", err.Error())
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, refused("", "connection", err.Error())
	}
	if resp.StatusCode < 400 {
		return raw, resp, nil
	}
	refusal := ofREST(resp.StatusCode, raw)
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		refusal.after = time.Duration(seconds) * time.Second
	}
	return nil, resp, refusal
}

func ofREST(status int, raw []byte) *refusal {
	var said struct {
		Code    int
		Message string
		Details []struct{ Reason string }
		Reason  string // of the console
	}
	if json.Unmarshal(raw, &said) != nil || said.Code == 0 && said.Reason == "" {
		return refused(fmt.Sprint(status), "proxy", fmt.Sprintf("%.300s", raw))
	}
	for _, d := range said.Details {
		if d.Reason != "" {
			said.Reason = d.Reason
		}
	}
	code := connect.Code(said.Code).String()
	if said.Code == 0 && status == http.StatusServiceUnavailable {
		code = "unavailable"
	}
	return refused(code, said.Reason, said.Message)
}
