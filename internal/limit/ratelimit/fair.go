package ratelimit

import (
	"maps"
	"math"
	"sync"
	"time"
)

// FairPool bounds what many together can begin, such as the networks that people of one organization come from, or the
// organizations of a node. Each pool can begin PerMinute at once, and gets them back evenly within a minute. While more
// than half of that is left, every caller gets what it asks for. After that, only callers with little recent use get
// something: less than an eighth of what is left, or than half of what the largest callers have had. So a caller that
// floods the pool waits until it is half full again, and one that comes now and then does not wait.
//
// Each node counts for itself, in memory.
type FairPool struct {
	PerMinute int
	Clock     func() time.Time

	mu    sync.Mutex
	all   buckets         // by pool
	had   map[string]had  // by pool and name
	pools map[string]pool // by name
}

// had is what somebody has had, as of a time. It is half as much after memory.
type had struct {
	n  float64
	at time.Duration
}

// pool is what all of a pool have had, and the sum of the squares. Their quotient is what was had by the one who had a
// start, on average over the starts: so it is near to what those have had who had most.
type pool struct{ sum, squares had }

const (
	memory = 10 * time.Minute
	shares = 8 // that of what is left one can have
)

func (h had) now(now time.Duration) float64 {
	return h.n * math.Exp2(-float64(max(0, now-h.at))/float64(memory))
}

func (p pool) largest(now time.Duration) float64 {
	sum, fade := p.sum.now(now), had{1, p.squares.at}.now(now)
	if sum < 1 {
		return 0
	}
	return p.squares.n * fade * fade / sum
}

// Take counts one more start of somebody in a pool, and says how long to wait where it is refused, which costs nothing.
func (f *FairPool) Take(in, name string) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := wall(f.Clock)
	if wait := f.wait(in, name, now); wait > 0 {
		return wait
	}
	f.all.take(in, now, perMinute(f.PerMinute), 1)
	f.makeRoom(now)
	key, of := in+"\x00"+name, f.pools[in]
	n, fade := f.had[key].now(now), had{1, of.squares.at}.now(now)
	f.had[key] = had{n + 1, now}
	f.pools[in] = pool{sum: had{of.sum.now(now) + 1, now}, squares: had{of.squares.n*fade*fade + 2*n + 1, now}}
	return 0
}

// Wait is how long somebody would have to wait for one more start.
func (f *FairPool) Wait(in, name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wait(in, name, wall(f.Clock))
}

func (f *FairPool) wait(in, name string, now time.Duration) time.Duration {
	rate, whole := perMinute(f.PerMinute), float64(f.PerMinute)
	left := whole * float64(now+rate.Per-f.all[in].full(now, rate)) / float64(rate.Per)
	back := func(starts float64) time.Duration { // until so many more are left
		return max(time.Second, time.Duration(starts/whole*float64(time.Minute)))
	}
	switch mine := f.had[in+"\x00"+name].now(now) + 1; {
	case left < 1:
		return back(1 - left)
	case left < whole/2 && mine > max(1, left/shares, f.pools[in].largest(now)/2):
		return back(whole/2 - left)
	}
	return 0
}

// makeRoom bounds the memory, as that of buckets.
func (f *FairPool) makeRoom(now time.Duration) {
	if f.had == nil {
		f.had, f.pools = map[string]had{}, map[string]pool{}
	}
	if len(f.had) >= maxNames {
		maps.DeleteFunc(f.pools, func(_ string, p pool) bool { return p.sum.now(now) < 1 })
	}
	if makeRoom(f.had, func(h had) bool { return h.now(now) < 1 }) {
		clear(f.pools)
	}
}
