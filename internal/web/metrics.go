package web

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts requests per procedure, protocol and code, all from closed sets, and streams while they are open, for those are
// requests only when they end. The API and everything else share them. Nil counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
	sent     *prometheus.CounterVec
	limited  *prometheus.CounterVec
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
			Namespace: "signet", Name: "request_duration_seconds", Help: "Time from the start of a request to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"procedure", "protocol"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "signet", Name: "streams_open", Help: "Open streams.",
		}, []string{"procedure", "protocol"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "stream_events_total", Help: "Events sent on streams, without heartbeats.",
		}, []string{"procedure", "protocol"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "rate_limited_total", Help: "Requests refused above a rate limit: of the caller, the organization, the network, or the network on public paths.",
		}, []string{"kind"}),
	}
	err := errors.Join(register(registerer, &m.limited), register(registerer, &m.requests), register(registerer, &m.duration), register(registerer, &m.streams), register(registerer, &m.sent))
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

// RateLimited notes a request above a limit.
func (m *Metrics) RateLimited(kind string) {
	if m != nil {
		m.limited.WithLabelValues(kind).Inc()
	}
}

// StreamBegins notes a stream whose first message goes out.
func (m *Metrics) StreamBegins(procedure, protocol string) {
	if m != nil {
		m.streams.WithLabelValues(procedure, protocol).Inc()
	}
}

// StreamEnds notes that it has ended.
func (m *Metrics) StreamEnds(procedure, protocol string) {
	if m != nil {
		m.streams.WithLabelValues(procedure, protocol).Dec()
	}
}

// StreamSent notes an event that was sent on it.
func (m *Metrics) StreamSent(procedure, protocol string) {
	if m != nil {
		m.sent.WithLabelValues(procedure, protocol).Inc()
	}
}
