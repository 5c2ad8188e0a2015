package server

import (
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/transport/rpc"
)

// limits say how much this node does at once, and how much of it for one caller.
type limits struct {
	bulk   *fairqueue.Slots
	hasher *secret.Hasher
	rates  *ratelimit.Limits
}

func newLimits(b *base) limits {
	c, bulk := b.config, rpc.NewBulk()
	return limits{
		bulk:   bulk,
		hasher: b.gauges.timed(c.Hasher).Before(bulk, rpc.BulkPerProcessor), // each takes one processor
		rates:  ratelimit.NewLimits(c.caller, c.organization, c.network, c.public, c.Clock),
	}
}

// newStarts limits what a network can begin without having signed in.
func newStarts(b *base) *ratelimit.NetworkLimiter {
	return &ratelimit.NetworkLimiter{PerMinute: b.config.StartsPerMinute, Clock: b.config.Clock}
}
