package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// A Limiter lets so many requests of each key through in a time. A key can have all of them at once, and gets them back
// evenly within that time.
//
// Its memory is fixed: a table of 65,536 buckets, in sets of eight. A key has its place in one set, which nobody
// outside can find out or choose. If the set is full, the bucket that has been used least makes room. So nobody gets a
// new bucket by filling the table with other keys: the bucket that is used up is the last to be forgotten.
//
// Nil lets everything through.
type Limiter struct {
	rate  Rate
	clock func() time.Time
	start time.Time
	seed  maphash.Seed
	sets  []set
}

const (
	sets = 8192
	ways = 8
)

type set struct {
	mu      sync.Mutex
	buckets [ways]bucket
}

type bucket struct {
	key    uint64
	tokens Bucket // on a clock that began with the limiter
}

// New makes a limiter; nil for no limit.
func New(rate Rate, clock func() time.Time) *Limiter {
	if rate.Requests == 0 {
		return nil
	}
	return &Limiter{rate: rate, clock: clock, start: clock(), seed: maphash.MakeSeed(), sets: make([]set, sets)}
}

// Verdict is what a limit says about one request. Its zero value is that of no limit.
type Verdict struct {
	Rate    Rate
	Refused bool
	Left    int           // requests that the key can send at once
	Reset   time.Duration // until there is one more, if none is left; else until all are back
}

// Take counts a request of a key. A refused one costs nothing.
func (l *Limiter) Take(key []byte) Verdict {
	if l == nil {
		return Verdict{}
	}
	now, cost := l.clock().Sub(l.start), l.rate.cost(1)
	s, id := l.find(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(id)
	wait := b.tokens.Take(now, l.rate, 1)
	full := b.tokens.full(now, l.rate)
	v := Verdict{Rate: l.rate, Refused: wait > 0, Left: int((now + l.rate.Per - full) / cost)}
	if v.Reset = full - now; v.Left == 0 {
		v.Reset += cost - l.rate.Per
	}
	return v
}

// GiveBack takes a request back that turned out to be somebody else's.
func (l *Limiter) GiveBack(key []byte) {
	if l == nil {
		return
	}
	s, id := l.find(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.buckets {
		if s.buckets[i].key == id {
			s.buckets[i].tokens.GiveBack(l.rate, 1)
		}
	}
}

func (l *Limiter) find(key []byte) (*set, uint64) {
	id := maphash.Bytes(l.seed, key)
	return &l.sets[id%sets], id
}

// bucket gives the bucket of a key. If it has none, the least used one becomes its own.
func (s *set) bucket(id uint64) *bucket {
	least := &s.buckets[0]
	for i := range s.buckets {
		b := &s.buckets[i]
		if b.key == id {
			return b
		}
		if b.tokens < least.tokens {
			least = b
		}
	}
	*least = bucket{key: id}
	return least
}
