package event

import (
	"context"
	"sync"
	"time"
)

// Gather is how long to let events gather, so that a busy log is not read once for each.
const Gather = 20 * time.Millisecond

// Await returns once this node has written and more has had the time to gather, or with the next tick: what other nodes
// write is looked for then. It returns false when ctx ends first. written is to be asked for before the log is read.
func Await(ctx context.Context, written <-chan struct{}, tick <-chan time.Time, gather time.Duration) bool {
	select {
	case <-written:
	case <-tick:
		return true
	case <-ctx.Done():
		return false
	}
	gathered := time.NewTimer(gather)
	defer gathered.Stop()
	select {
	case <-gathered.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Tail is the end of the log in memory, read once for all who follow it on a node. Safe for concurrent use.
type Tail struct {
	MaxEvents int // that are kept, at most a quarter more
	MaxBytes  int // of them, about, likewise

	mu     sync.Mutex
	begun  bool
	events []Event // the last of the log, without a gap; elements are never changed
	size   int
	end    int64 // up to here the log was read
}

// Begin forgets everything: the tail grows from this position on.
func (t *Tail) Begin(position int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.events, t.size, t.end = true, nil, 0, position
}

// End is up to where the log was read; false before Begin.
func (t *Tail) End() (position int64, begun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end, t.begun
}

// Add takes the events behind the end.
func (t *Tail) Add(events []Event) {
	if len(events) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range events {
		t.size += events[i].Size()
	}
	t.events, t.end = append(t.events, events...), events[len(events)-1].Position
	if len(t.events) <= t.MaxEvents+t.MaxEvents/4 && t.size <= t.MaxBytes+t.MaxBytes/4 {
		return // dropping copies what is kept, so it is done now and then
	}
	drop := 0
	for len(t.events)-drop > t.MaxEvents || t.size > t.MaxBytes && drop < len(t.events) {
		t.size -= t.events[drop].Size()
		drop++
	}
	if drop > 0 { // into new memory: others may be reading the old, and would keep all of it alive
		t.events = append(make([]Event, 0, len(t.events)-drop+len(events)), t.events[drop:]...)
	}
}

// Size is how much memory an event takes, about.
func (e *Event) Size() int { return len(e.Payload) + len(e.Sealed) + 500 }

// After gives up to limit events behind a position; false where there are some that are not here. Before Begin nothing
// is known to be there.
func (t *Tail) After(position int64, limit int) (events []Event, covered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.end - int64(len(t.events)) // position before the first one here
	switch {
	case position >= t.end: // which is 0 before Begin
		return nil, true
	case position < first:
		return nil, false
	}
	found := t.events[position-first:]
	return found[:min(limit, len(found)):min(limit, len(found))], true
}
