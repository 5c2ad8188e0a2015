package secret

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/errs"
)

// ReasonHashingBusy says that so many passwords wait to be hashed that one more would not be served in time.
const ReasonHashingBusy errs.Reason = "PASSWORD_HASHING_BUSY"

// ErrBusy is the refusal of work that would wait behind too much other work.
var ErrBusy = &errs.Error{Kind: errs.Unavailable, Reason: ReasonHashingBusy, RetryAfter: time.Second,
	Message: "too many passwords are being checked; try again shortly"}

// class of work. What waits in a lower class goes first.
type class int

const (
	authorised class = iota // asked for by somebody whom we know
	public                  // asked for by anybody
	classes
)

// maxWaitingBytes bounds what the waiting of one class keep in memory.
const maxWaitingBytes = 8 << 20

// limiter runs expensive work a few at a time: the authorised before the public, each in the order of arrival. It refuses
// what would wait behind too many of its class or keep too much in memory meanwhile.
type limiter struct {
	mu     sync.Mutex
	free   int // slots; none is free while anybody waits
	queues [classes]queue
}

type queue struct {
	waiting list.List // of *waiter
	most    int
	bytes   int // of all that wait
}

type waiter struct {
	bytes int
	turn  chan struct{} // closed when the slot is the waiter's
}

func newLimiter(slots int, most [classes]int) *limiter {
	l := &limiter{free: slots}
	for c := range l.queues {
		l.queues[c].most = most[c]
	}
	return l
}

// do runs work when a slot is free. bytes is what the caller keeps in memory while it waits. It returns work's error;
// ErrBusy at once when the queue is full; or ctx.Err() without running work when ctx ends first. Work that has begun is
// not interrupted.
func (l *limiter) do(ctx context.Context, c class, bytes int, work func() error) error {
	if err := l.enter(ctx, &l.queues[c], bytes); err != nil {
		return err
	}
	defer l.leave()
	// When the slot and the end of ctx come together, the work would be for nobody.
	if err := ctx.Err(); err != nil {
		return err
	}
	return work()
}

func (l *limiter) enter(ctx context.Context, q *queue, bytes int) error {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil
	}
	if q.waiting.Len() >= q.most || bytes > maxWaitingBytes-q.bytes {
		l.mu.Unlock()
		return ErrBusy
	}
	w := &waiter{bytes: bytes, turn: make(chan struct{})}
	place := q.waiting.PushBack(w)
	q.bytes += bytes
	l.mu.Unlock()

	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn: // the slot came at the same moment, and is given back like any other
		return nil
	default:
		q.remove(place)
		return ctx.Err()
	}
}

// leave hands the slot to whoever is next.
func (l *limiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.queues {
		if first := l.queues[c].waiting.Front(); first != nil {
			close(l.queues[c].remove(first).turn)
			return
		}
	}
	l.free++
}

func (q *queue) remove(place *list.Element) *waiter {
	w := q.waiting.Remove(place).(*waiter)
	q.bytes -= w.bytes
	return w
}
