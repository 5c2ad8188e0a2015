// This file knows whether a node can serve requests: whether its reads and writes come to an end, and to a good one. It
// answers soon, whatever hangs.

package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	answerTime = 800 * time.Millisecond // after which Check says what is known by then
	hangs      = 3 * time.Second        // that something takes before it hangs: what is slow is in use
	fresh      = 5 * time.Second        // for which a write says that the next one will work
	pause      = 500 * time.Millisecond // between looks while something fails
	lookTime   = 30 * time.Second
)

// Readiness is told of every batch that a node writes, and looks by itself where there has been none for a while.
type Readiness struct {
	Read  func(ctx context.Context) error // something small
	Write func(ctx context.Context) error // likewise, on the way that all writes take, so that it is told of it
	Clock func() time.Time                // time.Now when nil

	mu     sync.Mutex
	begun  time.Time // since when a batch is on its way; zero: none is
	good   time.Time // when one was last written
	failed error     // with which the last one was not
	broken error     // for good
	look   *look     // the last one
	found  error     // by the last one that is done
}

type look struct {
	begun, ended time.Time
	done         chan struct{}
	err          error // once it is done
}

// Begin says that a batch is on its way.
func (r *Readiness) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = r.now()
}

// End says what has become of it. A batch that had nothing to write, or one with an error that does not say that
// storage is away, such as a conflict, says nothing about the next one.
func (r *Readiness) End(wrote bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = time.Time{}
	switch {
	case err == nil && wrote:
		r.good, r.failed = r.now(), nil
	case err != nil && isAway(err):
		r.failed = err
	}
}

// Break says that nothing is written any more before somebody has stepped in.
func (r *Readiness) Break(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

func isAway(err error) bool { return errs.KindOf(err) == errs.Unavailable }

func (r *Readiness) now() time.Time {
	if r.Clock != nil {
		return r.Clock()
	}
	return time.Now()
}

// Check tells whether requests can be served. It takes less than a second. Errors: an *errs.Error with a reason in
// words.
func (r *Readiness) Check(ctx context.Context) error {
	l := r.looking()
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	select {
	case <-l.done:
		return inWords(l.err)
	case <-timer.C:
	case <-ctx.Done():
	}
	return inWords(r.soFar(l))
}

// Known tells without any work whether the last batch was written, and none hangs.
func (r *Readiness) Known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken == nil && r.failed == nil && (r.begun.IsZero() || r.now().Sub(r.begun) <= hangs)
}

// looking gives the look that is on its way, or the last one where it has just failed, or a new one.
func (r *Readiness) looking() *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if l := r.look; l != nil && (l.ended.IsZero() || l.err != nil && now.Sub(l.ended) < pause) {
		return l
	}
	l := &look{begun: now, done: make(chan struct{})}
	r.look = l
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		defer cancel()
		err := r.Read(ctx)
		if err == nil && r.stale() { // by now: it may have taken long
			err = r.Write(ctx)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case r.broken != nil:
			err = r.broken
		case err == nil:
			err = r.failed // of somebody else meanwhile
		}
		l.err, l.ended, r.found = err, r.now(), err
		close(l.done)
	}()
	return l
}

// stale tells that the last write says nothing about the next one.
func (r *Readiness) stale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil || r.now().Sub(r.good) > fresh
}

// soFar is what is known while a look goes on.
func (r *Readiness) soFar(l *look) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := l.begun
	if !r.begun.IsZero() && r.begun.Before(since) {
		since = r.begun
	}
	switch waited := r.now().Sub(since); {
	case r.broken != nil:
		return r.broken
	case r.failed != nil:
		return r.failed
	case r.found != nil: // what has failed is not in use again before it has worked
		return r.found
	case waited > hangs:
		return away("the database has not answered for " + waited.Round(time.Second).String())
	}
	return nil
}

// inWords leaves of an error what is for everybody: what is wrong, without what callers should do about it.
func inWords(err error) error {
	if err == nil {
		return nil
	}
	said := "the database does not answer"
	if known, ok := errors.AsType[*errs.Error](err); ok && isAway(err) {
		said, _, _ = strings.Cut(known.Message, ": ")
	}
	return away(said).Because(err)
}

func away(said string) *errs.Error {
	return &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: time.Second, Message: said}
}
