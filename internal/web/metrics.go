package web

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts requests per procedure, protocol and code, all from closed sets. The API and everything else share them.
// Nil counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics, or finds those that are registered there already. Without a registerer it gives nil.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "requests_total", Help: "Requests answered.",
		}, []string{"procedure", "protocol", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "signet", Name: "request_duration_seconds", Help: "Time from the first byte of a request's handling to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"procedure", "protocol"}),
	}
	err := errors.Join(register(registerer, &m.requests), register(registerer, &m.duration))
	return m, err
}

func register[C prometheus.Collector](registerer prometheus.Registerer, collector *C) error {
	err := registerer.Register(*collector)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := there.ExistingCollector.(C); ok {
			*collector = same
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("web: register the metrics: %w", err)
	}
	return nil
}

// Count notes one request.
func (m *Metrics) Count(procedure, protocol, code string, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(procedure, protocol, code).Inc()
	m.duration.WithLabelValues(procedure, protocol).Observe(took.Seconds())
}
