package server

import (
	"github.com/signet-idm/signet/internal/domain/webhook"
)

// webhooks are what is sent to programs of others about events.
type webhooks struct {
	*webhook.Webhooks
	counts *webhook.Metrics
}

func newWebhooks(b *base, out *outgoing) (webhooks, error) {
	counts, err := webhook.NewMetrics(b.metrics)
	return webhooks{&webhook.Webhooks{Store: b.store, Root: b.master, Clock: b.config.Clock, Calls: out.calls,
		Outbound: out.webhooks}, counts}, err
}

// newDispatcher sends them.
func newDispatcher(b *base, w webhooks) *webhook.Dispatcher {
	return &webhook.Dispatcher{Webhooks: w.Webhooks, Log: b.log, Metrics: w.counts, Meters: b.gauges.followers,
		Lease: b.config.WebhookLease, FirstPause: b.config.WebhookRetry}
}
