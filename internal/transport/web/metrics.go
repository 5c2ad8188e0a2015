package web

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// Metrics counts requests per operation, protocol, code and reason, all from closed sets, and streams while they are
// open, for those are requests only when they end. The API and everything else share them. Nil counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
	sent     *prometheus.CounterVec
	limited  *prometheus.CounterVec

	counted table[way, *counted] // what was found of requests and duration
}

// way is what was asked for, and how.
type way struct{ operation, protocol string }

// ending is how a request ended.
type ending struct{ code, reason string }

type counted struct {
	duration prometheus.Observer
	requests table[ending, prometheus.Counter]
}

// NewMetrics registers the metrics, or finds those that are registered there already. Without a registerer it gives
// nil.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "requests_total", Help: "Requests answered.",
		}, []string{"operation", "protocol", "code", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "signet", Name: "request_duration_seconds",
			Help:    "Time from the start of a request to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation", "protocol"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "signet", Name: "streams_open", Help: "Open streams.",
		}, []string{"operation", "protocol"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "stream_events_total", Help: "Events sent on streams, without heartbeats.",
		}, []string{"operation", "protocol"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "signet", Name: "rate_limited_total",
			Help: "Requests refused above a rate limit: of the caller, the organization, the network, or the network on public paths.",
		}, []string{"kind"}),
	}
	for _, kind := range ratelimit.Kinds {
		m.limited.WithLabelValues(string(kind))
	}
	err := errors.Join(register(registerer, &m.limited), register(registerer, &m.requests),
		register(registerer, &m.duration), register(registerer, &m.streams), register(registerer, &m.sent))
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

// Count notes one request. reason is why it was refused; empty: it was not.
func (m *Metrics) Count(operation, protocol, code, reason string, took time.Duration) {
	if m == nil {
		return
	}
	c := m.counted.get(way{operation, protocol}, func(w way) *counted {
		return &counted{duration: m.duration.WithLabelValues(w.operation, w.protocol)}
	})
	c.requests.get(ending{code, reason}, func(e ending) prometheus.Counter {
		return m.requests.WithLabelValues(operation, protocol, e.code, e.reason)
	}).Inc()
	c.duration.Observe(took.Seconds())
}

// RateLimited notes a request above a limit.
func (m *Metrics) RateLimited(kind string) {
	if m != nil {
		m.limited.WithLabelValues(kind).Inc()
	}
}

// StreamBegins notes a stream whose first message goes out.
func (m *Metrics) StreamBegins(operation, protocol string) {
	if m != nil {
		m.streams.WithLabelValues(operation, protocol).Inc()
	}
}

// StreamEnds notes that it has ended.
func (m *Metrics) StreamEnds(operation, protocol string) {
	if m != nil {
		m.streams.WithLabelValues(operation, protocol).Dec()
	}
}

// StreamSent notes an event that was sent on it.
func (m *Metrics) StreamSent(operation, protocol string) {
	if m != nil {
		m.sent.WithLabelValues(operation, protocol).Inc()
	}
}

// table holds few values, which are read without a lock and stay.
type table[K comparable, V any] struct {
	values atomic.Pointer[map[K]V] // never altered
	adding sync.Mutex
}

// get gives a value, and makes it the first time.
func (t *table[K, V]) get(key K, create func(K) V) V {
	if all := t.values.Load(); all != nil {
		if v, there := (*all)[key]; there {
			return v
		}
	}
	t.adding.Lock()
	defer t.adding.Unlock()
	next := map[K]V{}
	if all := t.values.Load(); all != nil {
		if v, there := (*all)[key]; there {
			return v
		}
		maps.Copy(next, *all)
	}
	v := create(key)
	next[key] = v
	t.values.Store(&next)
	return v
}
