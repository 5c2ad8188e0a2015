package server

import (
	"context"

	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/base/tracing/otlp"
)

// newTraces sends traces to the collector; nil: nothing is traced.
func newTraces(b *base) (*otlp.Exporter, error) {
	if b.config.traces == nil {
		return nil, nil
	}
	return otlp.Start(b.config.traces, b.config.Version, b.log, b.metrics)
}

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
