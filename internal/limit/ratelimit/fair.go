package ratelimit

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// FairPool bounds what many together can begin, such as the networks that people of one organization come from, or the
// organizations of a node. Each pool can begin PerMinute at once, and gets them back evenly within a minute. While more
// than half of that is left, everybody gets what they ask for. From then on those go first who have had little lately:
// less than an eighth of what is left, or than half of what the largest callers have had. Whoever floods a pool is held
// up until it is half full again, and whoever comes now and then is not.
//
// Each node counts for itself, in memory.
type FairPool struct {
	PerMinute int
	Clock     func() time.Time

	mu    sync.Mutex
	all   NetworkLimiter
	had   map[string]had  // by pool and name
	pools map[string]pool // by name
}

// had is what somebody has had, as of a time. It is half as much after memory.
type had struct {
	n  float64
	at int64
}

// pool is what all of a pool have had, and the sum of the squares. Their quotient is what was had by the one who had a
// start, on average over the starts: so it is near to what those have had who had most.
type pool struct{ sum, squares had }

const (
	memory = 10 * time.Minute
	shares = 8 // that of what is left one can have
)

func (h had) now(now int64) float64 {
	return h.n * math.Exp2(-float64(max(0, now-h.at))/float64(memory.Microseconds()))
}

func (p pool) largest(now int64) float64 {
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
	if wait := f.wait(in, name); wait > 0 {
		return wait
	}
	now := event.Micros(f.Clock())
	f.all.TakeNamed(in, 1)
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
	return f.wait(in, name)
}

func (f *FairPool) wait(in, name string) time.Duration {
	f.all.PerMinute, f.all.Clock = f.PerMinute, f.Clock
	left, whole, now := f.all.left(in), float64(f.PerMinute), event.Micros(f.Clock())
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

// makeRoom bounds the memory, as that of a Limiter.
func (f *FairPool) makeRoom(now int64) {
	if f.had == nil {
		f.had, f.pools = map[string]had{}, map[string]pool{}
	}
	if len(f.had) < maxNetworks {
		return
	}
	maps.DeleteFunc(f.had, func(_ string, h had) bool { return h.now(now) < 1 })
	maps.DeleteFunc(f.pools, func(_ string, p pool) bool { return p.sum.now(now) < 1 })
	if len(f.had) > maxNetworks/2 {
		clear(f.had)
		clear(f.pools)
	}
}
