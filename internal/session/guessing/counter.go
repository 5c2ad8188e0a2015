package guessing

import (
	"slices"
	"time"
)

// counter is what a throttle row holds.
type counter struct {
	Failures           int64     `json:"f,omitempty"` // wrong attempts
	Until              int64     `json:"u,omitempty"` // nothing is heard before, for the failures
	Running            []running `json:"r,omitempty"` // attempts without a verdict yet
	Last               int64     `json:"l,omitempty"` // the last attempt
	UnreportedFailures int64     `json:"n,omitempty"` // failures not yet in an event
	UnreportedRefusals int64     `json:"t,omitempty"` // refusals not yet in an event
	LastEvent          int64     `json:"e,omitempty"`
}

// running is an attempt without a verdict. What it holds up is forgotten with it.
type running struct {
	Started int64 `json:"s"`
	Until   int64 `json:"u,omitempty"` // nothing is heard before, for this attempt
}

// Limits of a counter.
type Limits struct {
	Free    int64         // attempts, before the next one has to wait
	Ceiling time.Duration // of the waits
}

// until tells before when nothing is heard.
func (c *counter) until() int64 {
	until := c.Until
	for _, r := range c.Running {
		until = max(until, r.Until)
	}
	return until
}

// begin counts an attempt as running. Good is a network that somebody signed in from.
func (c *counter) begin(now int64, l Limits, good bool) {
	attempts := int64(len(c.Running)) + 1
	if good && c.Failures < l.Free {
		attempts = max(0, attempts-max(0, goodRunning-l.Free))
	}
	r := running{Started: now}
	if d := delay(c.Failures+attempts, l.Free, l.Ceiling); d > 0 {
		r.Until = now + d
	}
	c.Running = append(c.Running, r)
}

// end forgets a running attempt. It may be gone already. Of those that began at the same moment it is the last, which
// holds up the most: one less is running.
func (c *counter) end(started int64) {
	for i, r := range slices.Backward(c.Running) {
		if r.Started == started {
			c.Running = slices.Delete(c.Running, i, i+1)
			return
		}
	}
}

// fail makes a failure of a running attempt. Of those that began at the same moment it is the first: what the others hold
// up stays, since no fewer are counted.
func (c *counter) fail(started int64, l Limits) {
	if i := slices.IndexFunc(c.Running, func(r running) bool { return r.Started == started }); i >= 0 {
		c.Running = slices.Delete(c.Running, i, i+1)
	}
	c.Failures++
	if d := delay(c.Failures, l.Free, l.Ceiling); d > 0 {
		c.Until = max(c.Until, started+d)
	}
}

// delay doubles with every failure beyond the free ones.
func delay(failures, free int64, ceiling time.Duration) int64 {
	over := failures - free
	if over < 0 {
		return 0
	}
	d := time.Second << min(over, 20)
	return min(d, ceiling).Microseconds()
}
