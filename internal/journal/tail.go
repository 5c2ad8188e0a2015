package journal

import (
	"context"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/event"
)

// How much of the end of the log is kept in memory for those who follow it.
const (
	keptEvents = 1000
	keptBytes  = 8 << 20
	readEvents = 200 // at once
)

// tails is the end of the log as the followers of this node share it: it is read once for all of them, and only while there
// are any.
type tails struct {
	mu        sync.Mutex
	followers int
	current   *tail
}

// join gives the tail to a follower.
func (t *tails) join(j *Journal) *tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers++; t.followers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		t.current = &tail{cancel: cancel, done: make(chan struct{}), end: unknown}
		go t.current.run(ctx, j)
	}
	return t.current
}

// leave ends the reading with the last follower.
func (t *tails) leave(left *tail) {
	t.mu.Lock()
	t.followers--
	last := t.followers == 0
	t.mu.Unlock()
	if last {
		left.cancel()
		<-left.done
	}
}

// unknown is where a tail ends that has not been read yet.
const unknown = -1

// tail is the last of the log.
type tail struct {
	cancel context.CancelFunc
	done   chan struct{}
	bell   event.Bell // rings when it has grown

	mu     sync.Mutex
	end    int64         // up to here the log was read
	recent []event.Event // the last of it, without a gap; elements are never changed
	size   int           // of recent, about
}

// run reads the log as it grows.
func (t *tail) run(ctx context.Context, j *Journal) {
	defer close(t.done)
	ticker := time.NewTicker(j.pace.poll)
	defer ticker.Stop()
	for {
		written := j.store.Written()
		more := t.read(ctx, j.store)
		if more && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			continue
		case <-written:
		}
		gathered := time.NewTimer(j.pace.gather)
		select {
		case <-ctx.Done():
			gathered.Stop()
			return
		case <-gathered.C:
		}
	}
}

// read takes what is new. Where the store is away it is tried again soon; followers learn of that when they are judged.
func (t *tail) read(ctx context.Context, store event.Log) (more bool) {
	t.mu.Lock()
	end := t.end
	t.mu.Unlock()
	if end == unknown {
		end, err := store.Position(ctx)
		if err == nil {
			t.mu.Lock()
			t.end = end
			t.mu.Unlock()
			t.bell.Ring()
		}
		return err == nil
	}
	events, err := store.Events(ctx, end, readEvents)
	if err != nil || len(events) == 0 {
		return false
	}
	t.mu.Lock()
	for i := range events {
		t.size += weight(&events[i])
	}
	t.recent = append(t.recent, events...)
	drop := 0
	for len(t.recent)-drop > keptEvents || t.size > keptBytes && drop < len(t.recent)-1 {
		t.size -= weight(&t.recent[drop])
		drop++
	}
	// What is dropped must not be kept alive by what is not: a follower may hold on to a part of it.
	if t.recent = t.recent[drop:]; drop > 0 {
		t.recent = append(make([]event.Event, 0, len(t.recent)+len(events)), t.recent...)
	}
	t.end = t.recent[len(t.recent)-1].Position
	t.mu.Unlock()
	t.bell.Ring()
	return len(events) == readEvents
}

func weight(e *event.Event) int { return len(e.Payload) + len(e.Sealed) + 500 }

// after gives what is known behind a position, and up to where that is. Where that is not all there is, it is not covered.
func (t *tail) after(position int64) (events []event.Event, upTo int64, covered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == unknown || position >= t.end {
		return nil, position, true // it rings when there is more
	}
	if len(t.recent) == 0 || t.recent[0].Position > position+1 {
		return nil, 0, false
	}
	return t.recent[position+1-t.recent[0].Position:], t.end, true
}
