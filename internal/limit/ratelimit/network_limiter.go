package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

// NetworkThrottled is the reason of a refusal to begin one more thing for a network.
const NetworkThrottled errs.Reason = "NETWORK_THROTTLED"

// DefaultPerNetwork is how much can be begun from one network within a minute, where nothing else is set: enough for
// the many people behind one address of a company.
const DefaultPerNetwork = 600

// NetworkLimiter bounds what strangers can have stored. A sign-in for an application, a sign-out, a device, a reset of
// a password or an answer of a passkey leaves rows in the database until they expire, and its sender has not
// authenticated yet. So each network can begin only PerMinute of them at once, and gets them back evenly within a
// minute. Sign-ins with a password need no such limit: the hashing of passwords already limits them.
//
// Each node counts for itself, in memory. Nil bounds nothing.
type NetworkLimiter struct {
	PerMinute int
	Clock     func() time.Time

	mu      sync.Mutex
	buckets buckets // by network
}

// Take counts one more start from the network of an address, as so many. Errors: ResourceExhausted (NETWORK_THROTTLED)
// when there were too many.
func (s *NetworkLimiter) Take(peer netip.Addr, as int) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := s.buckets.take(NetworkName(peer), wall(s.Clock), perMinute(s.PerMinute), as); wait > 0 {
		return errNetwork(wait)
	}
	return nil
}

func errNetwork(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: NetworkThrottled, RetryAfter: wait,
		Message: "too many requests came from this network within a minute: wait " + errs.Seconds(wait) +
			" s before the next try"}
}
