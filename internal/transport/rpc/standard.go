package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/genproto/googleapis/rpc/code"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/web"
)

// mountStandard adds what every such server has: probes, the description of the API, gRPC reflection and health. They
// are public and tell nothing that the product's documentation does not.
func (h *Handler) mountStandard() (problems []error) {
	add := func(method, path string, serve serveFunc) {
		if err := h.root.add(method, path, serve); err != nil {
			problems = append(problems, err)
		}
	}
	add(http.MethodGet, "/healthz", func(c *Call, _ []string) {
		c.Quiet = true
		c.answer(http.StatusOK, []byte(`{"status":"ok"}`))
	})
	add(http.MethodGet, "/readyz", func(c *Call, _ []string) { c.serveReady() })
	if h.config.OpenAPI != nil {
		add(http.MethodGet, "/openapi.json", func(c *Call, _ []string) { c.answer(http.StatusOK, h.config.OpenAPI) })
	}

	// Nothing here is worth compressing, and unpacking is how small requests become large.
	options := connect.WithHandlerOptions(connect.WithReadMaxBytes(64<<10), connect.WithCompression("gzip", nil, nil))
	names := make([]string, 0, len(h.config.Services)+1)
	for _, s := range h.config.Services {
		names = append(names, string(s.Name))
	}
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	path, handler := grpcreflect.NewHandlerV1(reflector, options)
	add(http.MethodPost, path+"ServerReflectionInfo", foreign(path[1:]+"ServerReflectionInfo", handler, brief))
	path, handler = grpcreflect.NewHandlerV1Alpha(reflector, options)
	add(http.MethodPost, path+"ServerReflectionInfo", foreign(path[1:]+"ServerReflectionInfo", handler, brief))
	path, handler = grpchealth.NewHandler(&health{h: h, names: names, watchers: map[*watcher]bool{}}, options)
	add(http.MethodPost, path+"Check", foreign(path[1:]+"Check", handler, brief))
	add(http.MethodPost, path+"Watch", foreign(path[1:]+"Watch", handler, watch))
	return problems
}

// serveReady tells whether requests can be served, and what the operator should know all the same. What exactly has
// failed is for the operator, so only the log says it.
func (c *Call) serveReady() {
	c.Quiet = true
	if err := c.h.ready(c.Request.Context()); err != nil {
		refusal := *errNotReady.Because(err)
		if known, ok := errors.AsType[*errs.Error](err); ok {
			refusal.Message += ": " + known.Message
		}
		c.refuse(&refusal)
		return
	}
	var details map[string]string
	if c.h.config.Details != nil {
		details = c.h.config.Details()
	}
	body, err := json.Marshal(struct {
		Status  string            `json:"status"`
		Details map[string]string `json:"details,omitempty"`
	}{"ok", details})
	if err != nil {
		c.refuse(err)
		return
	}
	c.answer(http.StatusOK, body)
}

// readyTime bounds the check whether the server is ready. A load balancer that gets no answer within a second or two
// takes the server for not ready.
const readyTime = 900 * time.Millisecond

// ready logs when the answer changes, and not each time that somebody asks.
func (h *Handler) ready(ctx context.Context) error {
	if h.config.Ready == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err := h.config.Ready(limited)
	switch {
	case err != nil && ctx.Err() != nil: // the client has gone
	case err != nil && !h.unready.Swap(true):
		h.config.Log.WarnContext(ctx, "not ready", "error", err.Error(), "cause", errors.Unwrap(err))
	case err == nil && h.unready.Swap(false):
		h.config.Log.InfoContext(ctx, "ready again")
	}
	return err
}

// foreign serves a gRPC method that is not ours, under the limits of ours: content type, size, and those that begin
// sets.
func foreign(procedure string, handler http.Handler,
	begin func(c *Call) (ctx context.Context, end func(), err error)) serveFunc {
	return func(c *Call, _ []string) {
		c.Info.Procedure, c.Quiet = procedure, true
		protocol, contentType := grpcProtocol(c.Request.Header)
		if c.Protocol = protocol; protocol == "" || isText(contentType) {
			c.Protocol = "http"
			c.refuse(errNotText)
			return
		}
		ctx, end, err := begin(c)
		if err != nil {
			c.endGRPC(contentType, new(bytes.Buffer), err)
			return
		}
		defer end()
		r := c.Request.WithContext(ctx)
		r.Body = newCheckedBody(http.MaxBytesReader(c.ResponseWriter, r.Body, maxBody),
			func(err error) error { return broken(ctx, err) })
		handler.ServeHTTP(c.ResponseWriter, r)
		if n, err := strconv.Atoi(c.Header().Get(http.TrailerPrefix + "Grpc-Status")); err == nil {
			c.Code = code.Code(n).String()
		}
	}
}

// broken is what the library answers to a body that cannot be read. By itself it would call that an internal error.
func broken(ctx context.Context, err error) error {
	if err = readError(ctx, err); ctx.Err() != nil {
		return err
	}
	e := shown(err)
	return connect.NewError(connect.Code(web.AnswerTo(e).GRPC), errors.New(e.Message))
}

// brief gives a call as much time as any other.
func brief(c *Call) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), c.limit)
	stop := c.interruptible(ctx)
	return ctx, func() { stop(); cancel() }, nil
}
