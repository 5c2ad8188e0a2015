package webhook

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/notify"
)

// Metrics are what a node tells about its webhooks: numbers, with labels from closed sets. Nil tells nothing.
type Metrics struct {
	delivered, failed prometheus.Counter
	waiting           map[bool]prometheus.Gauge // by whether they have failed for good
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "signet", Name: "webhook_messages_total", Help: "Messages about events that were sent to receivers of webhooks, every try for itself.",
	}, []string{"outcome"})
	waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "signet", Name: "webhook_objects_waiting", Help: "Objects whose events wait for a webhook that this node serves: one is tried again, or has failed for good.",
	}, []string{"state"})
	if err := errors.Join(registerer.Register(messages), registerer.Register(waiting)); err != nil {
		return nil, fmt.Errorf("webhook: register the metrics: %w", err)
	}
	return &Metrics{delivered: messages.WithLabelValues("delivered"), failed: messages.WithLabelValues("failed"),
		waiting: map[bool]prometheus.Gauge{false: waiting.WithLabelValues("retrying"), true: waiting.WithLabelValues("failed")}}, nil
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

// put counts the objects that wait for a webhook, in place of those that were counted before. It gives what is counted then.
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
	for failed, gauge := range m.waiting {
		gauge.Add(float64(now[failed] - before[failed]))
	}
	return now
}
