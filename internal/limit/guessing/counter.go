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
	UnreportedFailures int64     `json:"n,omitempty"` // that a node of the version before has not reported yet
	UnreportedRefusals int64     `json:"t,omitempty"` // refusals not yet reported
}

// running is an attempt without a verdict.
type running struct {
	Started int64 `json:"s"`
	// Nothing is heard before, for so many attempts at once. It belongs to the place in the list: verdicts come in any
	// order, and the last attempt's makes nobody free while those before it may fail as well.
	Until int64 `json:"u,omitempty"`
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

// end forgets a running attempt. It may be gone already. One less is running, so what the last of them holds up is
// forgotten.
func (c *counter) end(started int64) {
	i := c.find(started)
	if i < 0 {
		return
	}
	for ; i < len(c.Running)-1; i++ {
		c.Running[i].Started = c.Running[i+1].Started
	}
	c.Running = c.Running[:i]
}

// fail makes a failure of a running attempt. No fewer are counted, so what any of them holds up stays.
func (c *counter) fail(started int64, l Limits) {
	if i := c.find(started); i >= 0 {
		for ; i > 0; i-- {
			c.Running[i].Started = c.Running[i-1].Started
		}
		c.Until = max(c.Until, c.Running[0].Until)
		c.Running = c.Running[1:]
	}
	c.Failures++
	if d := delay(c.Failures, l.Free, l.Ceiling); d > 0 {
		c.Until = max(c.Until, started+d)
	}
}

func (c *counter) find(started int64) int {
	return slices.IndexFunc(c.Running, func(r running) bool { return r.Started == started })
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
