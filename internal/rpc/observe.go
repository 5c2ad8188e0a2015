package rpc

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/errs"
)

// observe writes the one line of log that every request gets, and counts it. Nothing a caller sends gets into either,
// except a request id of harmless characters: no path, header, body or token.
func (x *exchange) observe() {
	took := x.h.config.Now().Sub(x.start)
	procedure := x.known
	if procedure == "" {
		procedure = "-"
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs,
		slog.String("requestId", x.info.RequestID),
		slog.String("procedure", procedure),
		slog.String("protocol", x.protocol),
		slog.String("code", x.code.String()),
		slog.Duration("duration", took),
		slog.String("peer", x.info.Peer.String()))
	if x.info.Caller != nil {
		attrs = append(attrs, slog.String("user", x.info.Caller.UserID))
	}
	level := slog.LevelInfo
	if x.quiet {
		level = slog.LevelDebug
	}
	if e := x.failure; e != nil {
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
		switch e.Kind {
		case errs.Internal:
			level = slog.LevelError
		case errs.Unavailable:
			level = slog.LevelWarn
		}
		// The cause of a refusal may speak of what the caller sent; that of a failure is what the operator needs.
		if e.Cause != nil && (level > slog.LevelInfo || e.Kind == errs.DeadlineExceeded) {
			attrs = append(attrs, slog.String("cause", e.Cause.Error()))
		}
		if p, ok := errors.AsType[*panicked](e.Cause); ok {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	}
	x.h.config.Log.LogAttrs(x.r.Context(), level, "request", attrs...)
	if !x.quiet {
		x.h.metrics.count(x, took)
	}
}

// metrics are kept per procedure, protocol and code, all from closed sets.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "requests_total", Help: "Requests answered.",
		}, []string{"procedure", "protocol", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "signet", Name: "request_duration_seconds", Help: "Time from the first byte of a request's handling to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"procedure", "protocol"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("rpc: register the metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) count(x *exchange, took time.Duration) {
	if m == nil {
		return
	}
	procedure := x.known
	if procedure == "" {
		procedure = "unknown"
	}
	m.requests.WithLabelValues(procedure, x.protocol, x.code.String()).Inc()
	m.duration.WithLabelValues(procedure, x.protocol).Observe(took.Seconds())
}
