// Package breaker is a circuit breaker: it keeps calls away from servers that fail. After some failures in a row no
// call goes to the server for a while. Then one caller tries, and the result decides for all. Each server has only a
// few calls at a time, so that a slow one does not take the places of others.
package breaker

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	tolerated = 5                // failures in a row until calls are refused
	rest      = 30 * time.Second // how long they are
	atOnce    = 6                // calls to one server: fewer than package outbound has connections to a host
	maxKept   = 1000             // servers that are remembered
)

// ErrOpen refuses a call to a server that has failed too often.
var ErrOpen = errors.New("the last calls to this server failed: it is not called for a while")

// Outcome of a call.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota // it was not made, or its caller left
	Worked                 // the server answered, whatever it said
	Failed
)

// Circuit is what is known of one server. Its zero value lets calls through.
type Circuit struct {
	failures int
	until    time.Time // no calls before; zero: calls are let through
	trying   bool      // the one call after that is under way
}

// Enter tells whether a call may be made now. Where it may, Leave tells what came of it.
func (c *Circuit) Enter(now time.Time) bool {
	if c.until.IsZero() {
		return true
	}
	if c.trying || now.Before(c.until) {
		return false
	}
	c.trying = true
	return true
}

// Leave ends a call that Enter let through.
func (c *Circuit) Leave(now time.Time, o Outcome) {
	tried := c.trying
	c.trying = false
	switch o {
	case Worked:
		*c = Circuit{}
	case Failed:
		c.failures++
		// Calls that began before do not make the rest longer.
		if tried || c.until.IsZero() && c.failures >= tolerated {
			c.until = now.Add(rest)
		}
	}
}

// Breakers are the circuits of many servers. They are safe for concurrent use.
type Breakers struct {
	clock func() time.Time

	mu   sync.Mutex
	kept map[string]*server
}

type server struct {
	Circuit
	slots chan struct{}
	inUse int // callers, also those that wait
	used  time.Time
}

// New makes circuits that all let calls through.
func New(clock func() time.Time) *Breakers {
	return &Breakers{clock: clock, kept: map[string]*server{}}
}

// Do makes a call to a server. Errors: ErrOpen; ctx.Err() while it waits for its turn; those of call.
func (b *Breakers) Do(ctx context.Context, id string, call func() (Outcome, error)) error {
	s := b.take(id)
	defer b.put(s)
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mu.Lock()
	may := s.Enter(b.clock())
	b.mu.Unlock()
	if !may {
		return ErrOpen
	}
	outcome, err := Unknown, error(nil)
	defer func() { // also when call panics
		b.mu.Lock()
		defer b.mu.Unlock()
		s.Leave(b.clock(), outcome)
	}()
	outcome, err = call()
	return err
}

func (b *Breakers) take(id string) *server {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.kept[id]
	if s == nil {
		if len(b.kept) >= maxKept {
			b.forgetOldest()
		}
		s = &server{slots: make(chan struct{}, atOnce)}
		b.kept[id] = s
	}
	s.inUse++
	s.used = b.clock()
	return s
}

func (b *Breakers) put(s *server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.inUse--
}

// forgetOldest drops the server that nobody has called the longest. Those that are being called stay.
func (b *Breakers) forgetOldest() {
	oldest := ""
	for id, s := range b.kept {
		if s.inUse == 0 && (oldest == "" || s.used.Before(b.kept[oldest].used)) {
			oldest = id
		}
	}
	delete(b.kept, oldest)
}
