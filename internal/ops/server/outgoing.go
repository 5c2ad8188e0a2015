package server

import (
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/webhook"
)

// Connections to one host, where many organizations may have what is called. No fewer than can be on their way at once,
// which organizations share: an organization that stalls there must not keep others from it.
const (
	webhookConns  = 640
	outboundConns = 256
)

// outgoing is the one way to addresses that others have chosen.
type outgoing struct {
	client   *outbound.Client
	webhooks *outbound.Client
	calls    *fairqueue.Slots // of both and of DNS that are waited for at once
	keySets  *outbound.KeySets
}

func newOutgoing(b *base) *outgoing {
	allow, calls := b.config.outbound, outbound.NewCalls()
	client := outbound.New(outbound.Config{Allow: allow, ConnsPerHost: outboundConns})
	return &outgoing{
		client: client,
		webhooks: outbound.New(outbound.Config{Allow: allow, Timeout: webhook.SendTime, MaxRedirects: -1,
			ConnsPerHost: webhookConns}),
		calls:   calls,
		keySets: outbound.NewKeySets(client, b.config.Clock, calls),
	}
}

func (o *outgoing) close() {
	o.client.Close()
	o.webhooks.Close()
}
