package rpc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// timeLimit is a context that ends at a time, as context.WithDeadline makes one. But it sets a timer, and has its parent
// tell it of its end, only when somebody first waits for it: an operation that finds everything in memory never does.
type timeLimit struct {
	context.Context // the parent
	until           time.Time

	over  atomic.Bool
	begin sync.Mutex
	begun atomic.Pointer[begun]
}

// begun is the context that does the work once somebody waits.
type begun struct {
	context.Context
	cancel context.CancelFunc
}

func withTimeLimit(parent context.Context, d time.Duration) *timeLimit {
	until := time.Now().Add(d)
	if earlier, set := parent.Deadline(); set && earlier.Before(until) {
		until = earlier
	}
	return &timeLimit{Context: parent, until: until}
}

func (c *timeLimit) start() *begun {
	if b := c.begun.Load(); b != nil {
		return b
	}
	c.begin.Lock()
	defer c.begin.Unlock()
	b := c.begun.Load()
	if b == nil {
		b = &begun{}
		b.Context, b.cancel = context.WithDeadline(c.Context, c.until)
		c.begun.Store(b)
		if c.over.Load() {
			b.cancel()
		}
	}
	return b
}

// end cancels the context: the operation is over.
func (c *timeLimit) end() {
	c.over.Store(true)
	if b := c.begun.Load(); b != nil {
		b.cancel()
	}
}

func (c *timeLimit) Deadline() (time.Time, bool) { return c.until, true }

func (c *timeLimit) Done() <-chan struct{} { return c.start().Done() }

func (c *timeLimit) Err() error {
	if c.begun.Load() == nil && !c.over.Load() && c.Context.Err() == nil && time.Now().Before(c.until) {
		return nil
	}
	return c.start().Err() // from now on it stays the same
}

func (c *timeLimit) Value(key any) any {
	if b := c.begun.Load(); b != nil {
		return b.Value(key)
	}
	return c.Context.Value(key)
}
