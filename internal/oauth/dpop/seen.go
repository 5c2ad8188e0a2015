package dpop

import (
	"crypto/sha256"
	"sync"
	"time"
)

// MostSeen is how many proofs of a minute a node remembers: a few megabytes.
const MostSeen = 1 << 16

// Seen remembers the proofs of the last minute that a node has taken. It is safe for concurrent use, and the zero value
// has seen none.
type Seen struct {
	mu        sync.Mutex
	since     time.Time
	now, last map[[16]byte]struct{} // of the current minute and of the one before
}

// First tells whether a proof has not been taken before, and remembers it. full: there are too many to remember this
// one, or there were a minute ago, so it has to be asked for and remembered elsewhere.
func (s *Seen) First(p *Proof, at time.Time) (first, full bool) {
	sum := sha256.Sum256([]byte(p.Key + "\x00" + p.ID))
	id := [16]byte(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	switch age := at.Sub(s.since); {
	case age >= 2*Life:
		s.since, s.now, s.last = at, map[[16]byte]struct{}{}, nil
	case age >= Life:
		s.since, s.now, s.last = s.since.Add(Life), map[[16]byte]struct{}{}, s.now
	}
	_, now := s.now[id]
	_, last := s.last[id]
	if now || last {
		return false, false
	}
	if full = len(s.now) == MostSeen; !full {
		s.now[id] = struct{}{}
	}
	return true, full || len(s.last) == MostSeen
}
