package ratelimit

import (
	"maps"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// NetworkThrottled is the reason of a refusal to begin one more thing for a network.
const NetworkThrottled errs.Reason = "NETWORK_THROTTLED"

// DefaultPerNetwork is how much can be begun from one network within a minute, where nothing else is set: enough for
// the many people behind one address of a company.
const DefaultPerNetwork = 600

// NetworkLimiter bounds what strangers can have stored. A sign-in for an application, a sign-out, a device, a reset of
// a password or an answer of a passkey leaves rows in the database until they expire, and whoever sends it has proven
// nothing yet: so only so many are taken from one network. It can begin PerMinute at once, and gets them back evenly
// within a minute. Sign-ins with a password need none of this: no more of them are heard than passwords can be hashed.
//
// Each node counts for itself, in memory. Nil bounds nothing.
type NetworkLimiter struct {
	PerMinute int
	Clock     func() time.Time

	mu    sync.Mutex
	whole map[string]int64 // when a network has its whole allowance again; at once where it is not named
}

// maxNetworks bounds the memory: an entry has about a hundred bytes.
const maxNetworks = 50_000

// Take counts one more start from the network of an address, as so many. Errors: ResourceExhausted (NETWORK_THROTTLED)
// when there were too many.
func (s *NetworkLimiter) Take(peer netip.Addr, as int) error {
	if wait := s.TakeNamed(NetworkName(peer), as); wait > 0 {
		return errNetwork(wait)
	}
	return nil
}

// TakeNamed counts one more start for something else that has a name, such as an organization, and says how long to
// wait where there were too many.
func (s *NetworkLimiter) TakeNamed(from string, as int) (wait time.Duration) {
	if s == nil {
		return 0
	}
	minute, now := time.Minute.Microseconds(), event.Micros(s.Clock())
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := max(s.whole[from], now)
	if whole > now+minute { // of a clock that was set back since: it says nothing
		whole = now
	}
	whole += int64(as) * minute / int64(s.PerMinute)
	if late := whole - now - minute; late > 0 {
		return time.Duration(late) * time.Microsecond
	}
	s.makeRoom(now)
	s.whole[from] = whole
	return 0
}

// left is how many starts a name has now.
func (s *NetworkLimiter) left(from string) float64 {
	minute, now := time.Minute.Microseconds(), event.Micros(s.Clock())
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := max(s.whole[from], now)
	if whole > now+minute {
		whole = now
	}
	return float64(s.PerMinute) * float64(now+minute-whole) / float64(minute)
}

// makeRoom forgets networks that have their whole allowance. Where that is not enough all are forgotten: whoever has
// that many networks is not held up by what one of them may do.
func (s *NetworkLimiter) makeRoom(now int64) {
	if s.whole == nil {
		s.whole = map[string]int64{}
	}
	if len(s.whole) < maxNetworks {
		return
	}
	maps.DeleteFunc(s.whole, func(_ string, whole int64) bool { return whole <= now })
	if len(s.whole) > maxNetworks/2 {
		clear(s.whole)
	}
}

func errNetwork(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: NetworkThrottled, RetryAfter: wait,
		Message: "too many requests came from this network within a minute: wait " + strconv.Itoa(int((wait+time.Second-1)/time.Second)) + " s before the next try"}
}
