package web

import (
	"cmp"
	"net/netip"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// TooMuchAtOnce is the reason to refuse a body for which there is no room.
const TooMuchAtOnce errs.Reason = "TOO_MUCH_AT_ONCE"

var (
	errTooMuchHere = &errs.Error{Kind: errs.Unavailable, Reason: TooMuchAtOnce, RetryAfter: time.Second,
		Message: "the server has reached its limit for request bodies: try again in a moment"}
	errTooMuchOfYours = &errs.Error{Kind: errs.ResourceExhausted, Reason: TooMuchAtOnce, RetryAfter: time.Second,
		Message: "your network has reached its limit for concurrent request bodies: wait for some of the answers, then try again"}
)

// What bodies may take up. A body costs up to three times its bytes (a buffer that doubles, and what the collector has
// not taken away yet), so that a full budget is some 200 MiB. Half of it for one network lets six of the largest
// requests come from there at once. A quarter is for small requests alone: they get through while large ones are stuck.
// So that a few networks cannot take that, too, the first bytes of requests from one of them get an eighth of what the
// rest of all bodies leaves: two thousand requests where few are large.
const (
	budgetHere      = 64 << 20
	budgetOfNetwork = budgetHere / 2
	leastBody       = 4 << 10 // what a body costs before anything of it has come: a buffer, a stream, a goroutine
)

// Budget bounds the bytes of requests that are in memory at the same time: on this server, and of one network. Nothing
// is taken for what is only promised, beyond what waiting for it costs. The zero value has our limits.
type Budget struct {
	Here, OfNetwork int64 // 0: our limits

	mu    sync.Mutex
	held  int64
	of    map[netip.Addr]int64
	begun int64                // of what is held, the first bytes of requests
	first map[netip.Addr]int64 // the same of each network, of IPv6 by /48: who has one has 65,536 networks
}

const firstShare = 8

func wide(network netip.Addr) netip.Addr {
	if network.Is6() {
		p, _ := network.Prefix(48)
		return p.Addr()
	}
	return network
}

// take takes n bytes for a request; first are those of one that has taken nothing yet.
func (b *Budget) take(network netip.Addr, n int64, first bool) error {
	here, ofNetwork := cmp.Or(b.Here, budgetHere), cmp.Or(b.OfNetwork, budgetOfNetwork)
	if !first {
		here, ofNetwork = here-here/4, ofNetwork-ofNetwork/4
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.of[network]+n > ofNetwork,
		first && b.first[wide(network)]+n > max(leastBody, (here-(b.held-b.begun))/firstShare):
		return errTooMuchOfYours
	case b.held+n > here:
		return errTooMuchHere
	}
	if b.of == nil {
		b.of, b.first = map[netip.Addr]int64{}, map[netip.Addr]int64{}
	}
	b.held += n
	b.of[network] += n
	if first {
		b.begun += n
		b.first[wide(network)] += n
	}
	return nil
}

// giveBack gives back all n bytes of a request.
func (b *Budget) giveBack(network netip.Addr, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	lower(b.of, network, n)
	b.begun -= leastBody
	lower(b.first, wide(network), leastBody)
}

// Held tells how many bytes are taken, and how many can be.
func (b *Budget) Held() (held, limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, cmp.Or(b.Here, budgetHere)
}

func lower(of map[netip.Addr]int64, network netip.Addr, n int64) {
	if of[network] -= n; of[network] == 0 {
		delete(of, network)
	}
}

// reservation is what one request has taken.
type reservation struct {
	budget   *Budget
	network  netip.Addr
	received int64
	taken    int64
}

// add takes for bytes that have come.
func (s *reservation) add(n int) error {
	if s.received += int64(n); s.received <= s.taken {
		return nil
	}
	more := (s.received - s.taken + leastBody - 1) / leastBody * leastBody
	if err := s.budget.take(s.network, more, false); err != nil {
		return err
	}
	s.taken += more
	return nil
}

// begin takes what a body costs that has yet to come.
func (s *reservation) begin(peer netip.Addr) error {
	s.network = ratelimit.NetworkOf(peer)
	if err := s.budget.take(s.network, leastBody, true); err != nil {
		return err
	}
	s.taken = leastBody
	return nil
}

func (s *reservation) end() {
	if s.taken > 0 {
		s.budget.giveBack(s.network, s.taken)
	}
}
