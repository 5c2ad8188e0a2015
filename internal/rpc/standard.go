package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/genproto/googleapis/rpc/code"
)

// mountStandard adds what every such server has: probes, the description of the API, gRPC reflection and health. They
// are public and tell nothing that the product's documentation does not.
func (h *Handler) mountStandard() (problems []error) {
	add := func(method, path string, serve serveFunc) {
		if err := h.root.add(method, path, serve); err != nil {
			problems = append(problems, err)
		}
	}
	add(http.MethodGet, "/healthz", func(x *exchange, _ []string) {
		x.quiet = true
		x.answer(http.StatusOK, []byte(`{"status":"ok"}`))
	})
	add(http.MethodGet, "/readyz", func(x *exchange, _ []string) { x.serveReady() })
	if h.config.OpenAPI != nil {
		add(http.MethodGet, "/openapi.json", func(x *exchange, _ []string) { x.answer(http.StatusOK, h.config.OpenAPI) })
	}

	// Nothing here is worth compressing, and unpacking is how small requests become large.
	options := connect.WithHandlerOptions(connect.WithReadMaxBytes(64<<10), connect.WithCompression("gzip", nil, nil))
	names := make([]string, 0, len(h.config.Services)+1)
	for _, s := range h.config.Services {
		names = append(names, string(s.Name))
	}
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	path, handler := grpcreflect.NewHandlerV1(reflector, options)
	add(http.MethodPost, path+"ServerReflectionInfo", foreign(path[1:]+"ServerReflectionInfo", handler))
	path, handler = grpcreflect.NewHandlerV1Alpha(reflector, options)
	add(http.MethodPost, path+"ServerReflectionInfo", foreign(path[1:]+"ServerReflectionInfo", handler))
	path, handler = grpchealth.NewHandler(health{h, names}, options)
	add(http.MethodPost, path+"Check", foreign(path[1:]+"Check", handler))
	add(http.MethodPost, path+"Watch", foreign(path[1:]+"Watch", handler))
	return problems
}

// serveReady tells whether requests can be served, and which parts the operator has left out. Why they cannot be is for the
// operator, so only the log says it.
func (x *exchange) serveReady() {
	x.quiet = true
	ctx, cancel := context.WithTimeout(x.r.Context(), x.limit)
	defer cancel()
	if err := x.h.ready(ctx); err != nil {
		x.refuse(errNotReady.Because(err))
		return
	}
	body, err := json.Marshal(struct {
		Status  string            `json:"status"`
		Details map[string]string `json:"details,omitempty"`
	}{"ok", x.h.config.Lacking})
	if err != nil {
		x.refuse(err)
		return
	}
	x.answer(http.StatusOK, body)
}

func (h *Handler) ready(ctx context.Context) error {
	if h.config.Ready == nil {
		return nil
	}
	return h.config.Ready(ctx)
}

// foreign serves a gRPC method that is not ours, under the same limits: content type, size, time.
func foreign(procedure string, handler http.Handler) serveFunc {
	return func(x *exchange, _ []string) {
		x.known, x.quiet = procedure, true
		if x.protocol, _ = grpcProtocol(x.r.Header); x.protocol == "" {
			x.protocol = "http"
			x.refuse(errNotGRPC)
			return
		}
		ctx, cancel := context.WithTimeout(x.r.Context(), x.limit)
		defer cancel()
		defer x.interruptible(ctx)()
		r := x.r.WithContext(ctx)
		r.Body = http.MaxBytesReader(x.w, r.Body, maxBody)
		x.answered = true
		handler.ServeHTTP(x.w, r)
		if n, err := strconv.Atoi(x.w.Header().Get(http.TrailerPrefix + "Grpc-Status")); err == nil {
			x.code = code.Code(n)
		}
	}
}

// health answers gRPC health checks, for the server as a whole and for each of its services.
type health struct {
	h     *Handler
	names []string
}

// Check implements grpchealth.Checker.
func (c health) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	known := req.Service == ""
	for _, name := range c.names {
		known = known || name == req.Service
	}
	if !known {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such service"))
	}
	if err := c.h.ready(ctx); err != nil {
		c.h.config.Log.WarnContext(ctx, "not ready", "cause", err.Error())
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
