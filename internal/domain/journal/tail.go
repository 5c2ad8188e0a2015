package journal

import (
	"context"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// How much of the end of the log is kept in memory for those who follow it.
const (
	keptEvents = 1000
	keptBytes  = 8 << 20
	readEvents = 200 // at once
)

// tails is the end of the log as the followers of this node share it: it is read once for all of them, and only while
// there are any.
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
		t.current = &tail{Tail: event.Tail{MaxEvents: keptEvents, MaxBytes: keptBytes}, cancel: cancel,
			done: make(chan struct{})}
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

// tail is the last of the log, and rings when it has grown.
type tail struct {
	event.Tail
	cancel context.CancelFunc
	done   chan struct{}
	bell   event.Bell
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
		if !event.Await(ctx, written, ticker.C, j.pace.gather) {
			return
		}
	}
}

// read takes what is new. Where the store is away it is tried again soon; followers learn of that when they are judged.
func (t *tail) read(ctx context.Context, store event.Log) (more bool) {
	end, begun := t.End()
	if !begun {
		end, err := store.Position(ctx)
		if err == nil {
			t.Begin(end)
			t.bell.Ring()
		}
		return err == nil
	}
	events, err := store.Events(ctx, end, readEvents)
	if err != nil || len(events) == 0 {
		return false
	}
	t.Add(events)
	t.bell.Ring()
	return len(events) == readEvents
}
