package webhook

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/eventlog/notify"
)

// Metrics are what a node tells about its webhooks: numbers, with labels from closed sets. Nil tells nothing.
type Metrics struct {
	delivered, failed prometheus.Counter

	waiting struct{ webhooks, retrying, failed atomic.Int64 } // see Waiting
}

// Waiting is what waits for webhooks that a node serves.
type Waiting struct {
	Webhooks int64 // with events that wait because one has failed
	Retrying int64 // objects whose events wait for a retry
	Failed   int64 // objects whose events wait because one has failed for good
}

// Waiting tells what the metrics tell.
func (m *Metrics) Waiting() Waiting {
	if m == nil {
		return Waiting{}
	}
	return Waiting{Webhooks: m.waiting.webhooks.Load(), Retrying: m.waiting.retrying.Load(),
		Failed: m.waiting.failed.Load()}
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "signet", Name: "webhook_messages_total",
		Help: "Messages about events that were sent to receivers of webhooks, every try for itself.",
	}, []string{"outcome"})
	m := &Metrics{delivered: messages.WithLabelValues("succeeded"), failed: messages.WithLabelValues("failed")}
	waiting := func(state string, of *atomic.Int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "signet", Name: "webhook_objects_waiting",
			Help:        "Objects whose events wait for a webhook that this node serves: one is tried again, or has failed for good.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(of.Load()) })
	}
	err := errors.Join(registerer.Register(messages), registerer.Register(waiting("retrying", &m.waiting.retrying)),
		registerer.Register(waiting("failed", &m.waiting.failed)))
	if err != nil {
		return nil, fmt.Errorf("webhook: register the metrics: %w", err)
	}
	return m, nil
}

// sent counts a message.
func (m *Metrics) sent(delivered bool) {
	switch {
	case m == nil:
	case delivered:
		m.delivered.Inc()
	default:
		m.failed.Inc()
	}
}

// put counts the objects that wait for a webhook, in place of those that were counted before. It gives what is counted
// then.
func (m *Metrics) put(parked map[string]*notify.Parked, before map[bool]int) map[bool]int {
	if m == nil {
		return nil
	}
	now := map[bool]int{}
	for _, p := range parked {
		if p.Tries > 0 {
			now[p.Failed]++
		}
	}
	m.waiting.retrying.Add(int64(now[false] - before[false]))
	m.waiting.failed.Add(int64(now[true] - before[true]))
	m.waiting.webhooks.Add(int64(min(len(now), 1) - min(len(before), 1)))
	return now
}
