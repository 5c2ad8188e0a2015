package event

import (
	"context"
	"slices"
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
	MaxEvents int // that are kept
	MaxBytes  int // of them, about

	mu     sync.Mutex
	begun  bool
	blocks [][]Event // the last of the log, without a gap; elements are never changed
	count  int       // of the events in blocks
	size   int
	end    int64 // up to here the log was read
}

// blockEvents is how many events lie together: who reads some of one block shares its memory.
const blockEvents = 512

// Begin forgets everything: the tail grows from this position on.
func (t *Tail) Begin(position int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.blocks, t.count, t.size, t.end = true, nil, 0, 0, position
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
	t.count, t.end = t.count+len(events), events[len(events)-1].Position
	for rest := events; len(rest) > 0; {
		last := len(t.blocks) - 1
		if last < 0 || len(t.blocks[last]) == cap(t.blocks[last]) {
			t.blocks = append(t.blocks, make([]Event, 0, blockEvents))
			last++
		}
		block := t.blocks[last]
		n := min(len(rest), cap(block)-len(block))
		t.blocks[last], rest = append(block, rest[:n]...), rest[n:]
	}
	for t.count > t.MaxEvents || t.size > t.MaxBytes && t.count > 0 {
		first := t.blocks[0]
		t.size -= first[0].Size()
		t.count--
		if t.blocks[0] = first[1:]; len(first) == 1 {
			t.blocks = slices.Delete(t.blocks, 0, 1)
		}
	}
}

// Size is how much memory an event takes, about.
func (e *Event) Size() int { return len(e.Payload) + len(e.Sealed) + 500 }

// After gives up to limit events behind a position; false where there are some that are not here. Before Begin nothing
// is known to be there.
func (t *Tail) After(position int64, limit int) (events []Event, covered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.end - int64(t.count) // position before the first one here
	switch {
	case position >= t.end: // which is 0 before Begin
		return nil, true
	case position < first:
		return nil, false
	}
	skip := int(position - first)
	limit = min(limit, t.count-skip)
	for _, block := range t.blocks {
		switch wanted := min(limit-len(events), len(block)-skip); {
		case skip >= len(block):
			skip -= len(block)
			continue
		case wanted == limit: // all in one block
			return block[skip : skip+wanted : skip+wanted], true
		default:
			if events == nil {
				events = make([]Event, 0, limit)
			}
			events, skip = append(events, block[skip:skip+wanted]...), 0
		}
	}
	return events, true
}
