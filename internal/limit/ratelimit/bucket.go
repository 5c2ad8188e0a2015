package ratelimit

import (
	"maps"
	"time"
)

// Bucket is a bucket of tokens. A rate says how many it holds, and in what time an empty one fills evenly. All it needs
// to know is when it is full again, on a clock of its holder. The zero value is full.
type Bucket time.Duration

// Take takes n tokens. If there are too few, it takes none and says how long to wait for them.
func (b *Bucket) Take(now time.Duration, r Rate, n int) (wait time.Duration) {
	full := b.full(now, r) + r.cost(n)
	if wait := full - now - r.Per; wait > 0 {
		return wait
	}
	*b = Bucket(full)
	return 0
}

// GiveBack puts n tokens back.
func (b *Bucket) GiveBack(r Rate, n int) { *b -= Bucket(r.cost(min(n, r.Requests))) }

// full is when the bucket is full again: now, or later.
func (b Bucket) full(now time.Duration, r Rate) time.Duration {
	if time.Duration(b) > now+r.Per { // from a clock that was set back since: it says nothing
		return now
	}
	return max(time.Duration(b), now)
}

// cost is the time in which n tokens come back.
func (r Rate) cost(n int) time.Duration { return r.Per * time.Duration(n) / time.Duration(r.Requests) }

// buckets are those of many names. Their memory is bounded, see makeRoom.
type buckets map[string]Bucket

// take takes n tokens of a name, as Bucket.Take does.
func (s *buckets) take(name string, now time.Duration, r Rate, n int) (wait time.Duration) {
	b := (*s)[name]
	if wait := b.Take(now, r, n); wait > 0 {
		return wait
	}
	if *s == nil {
		*s = buckets{}
	}
	makeRoom(*s, func(b Bucket) bool { return time.Duration(b) <= now })
	(*s)[name] = b
	return 0
}

// maxNames bounds the memory: an entry has about a hundred bytes.
const maxNames = 50_000

// makeRoom makes room for one more name: it forgets those that are as good as new. If that is not enough, it forgets
// all and says so: a caller with that many networks is not held up by the limit of one.
func makeRoom[V any](of map[string]V, asNew func(V) bool) (all bool) {
	if len(of) < maxNames {
		return false
	}
	maps.DeleteFunc(of, func(_ string, v V) bool { return asNew(v) })
	if len(of) <= maxNames/2 {
		return false
	}
	clear(of)
	return true
}

// perMinute is the rate of so many in a minute.
func perMinute(n int) Rate { return Rate{Requests: n, Per: time.Minute} }

// wall is the time of day, as the clock of buckets.
func wall(clock func() time.Time) time.Duration { return time.Duration(clock().UnixNano()) }
