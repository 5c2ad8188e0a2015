// Package testkit holds what tests of many packages need: a clock that the test sets, a log that it can read, and ways
// to stop and to wait. It imports nothing of this program, so that every package can use it.
package testkit

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Patience is how long a test waits for something that should come at once. It only bounds how long a test that fails
// takes: on a machine that does much else, the race detector and a thousand messages together have taken 45 seconds.
const Patience = 3 * time.Minute

// Await waits until other goroutines have brought something about.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(Patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Receive takes the next value from a channel; the zero value, if the channel is closed. It ends the test if nothing
// comes.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	var got T
	select {
	case got = <-from:
	case <-patience.C:
		t.Fatalf("waited in vain: %s", what)
	}
	return got
}

// Clock stands still until the test moves it. Safe for concurrent use.
type Clock struct {
	// Step is how far a look at the clock moves it.
	Step time.Duration

	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock that shows a time.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now is the time on the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.Step)
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Log keeps what is written to it. Safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// String is everything that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// Has tells whether a text was written.
func (l *Log) Has(text string) bool { return strings.Contains(l.String(), text) }
