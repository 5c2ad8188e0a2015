package server

import (
	"context"

	"github.com/signet-idm/signet/internal/base/tracing"
)

// tracer decides which requests are traced; nil: none.
func (s *Server) tracer() *tracing.Tracer {
	if s.traces == nil {
		return nil
	}
	return s.traces.Tracer
}

// traced lets work in the background be traced.
func (s *Server) traced(work func(context.Context)) func(context.Context) {
	return func(ctx context.Context) { work(tracing.With(ctx, s.tracer())) }
}
