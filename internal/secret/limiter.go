package secret

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/errs"
)

// ReasonHashingBusy says that so many passwords wait to be hashed that one more would not be served in time.
const ReasonHashingBusy errs.Reason = "PASSWORD_HASHING_BUSY"

// ErrBusy is the refusal of work that would wait behind too much other work.
var ErrBusy = &errs.Error{Kind: errs.Unavailable, Reason: ReasonHashingBusy, RetryAfter: time.Second,
	Message: "too many passwords are being checked; try again shortly"}

// limiter runs expensive work a few at a time, in the order of arrival, and refuses what would wait behind too many.
type limiter struct {
	slots chan struct{} // holds one element per running work
	queue chan struct{} // holds one element per waiting caller
}

func newLimiter(slots, queue int) *limiter {
	return &limiter{slots: make(chan struct{}, slots), queue: make(chan struct{}, queue)}
}

// do runs work when a slot is free. It returns work's error; ReasonHashingBusy at once when the queue is full; or
// ctx.Err() without running work when ctx ends first. Work that has begun is not interrupted.
func (l *limiter) do(ctx context.Context, work func() error) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer func() { <-l.slots }()
	// When the slot and the end of ctx come together, the work would be for nobody.
	if err := ctx.Err(); err != nil {
		return err
	}
	return work()
}

func (l *limiter) enter(ctx context.Context) error {
	// A slot that is released goes to the first caller blocked on the channel, so this cannot overtake the queue.
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.queue <- struct{}{}:
		defer func() { <-l.queue }()
	default:
		return ErrBusy
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
