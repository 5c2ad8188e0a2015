package store

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// lab is a node that does as a test says, at a time that a test says. Its looks run in a bubble: they are done before
// the time for an answer is over, however busy the machine is.
type lab struct {
	Readiness
	now    atomic.Int64
	writes atomic.Int64
	fails  atomic.Pointer[errs.Error]
}

func newLab() *lab {
	l := &lab{}
	l.now.Store(time.Now().UnixNano())
	l.Clock = func() time.Time { return time.Unix(0, l.now.Load()) }
	l.Read = func(context.Context) error { return nil }
	l.Write = func(context.Context) error {
		l.writes.Add(1)
		return l.batch()
	}
	return l
}

func (l *lab) batch() error {
	l.Begin()
	var err error
	if e := l.fails.Load(); e != nil {
		err = e
	}
	l.End(true, err)
	return err
}

func (l *lab) pass(d time.Duration) { l.now.Add(int64(d)) }

func (l *lab) want(t *testing.T, said string) {
	t.Helper()
	err := l.Check(t.Context())
	if said == "" {
		if err != nil {
			t.Errorf("not ready: %v", err)
		}
		return
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind != errs.Unavailable || e.Message != said {
		t.Errorf("got %v, want %q", err, said)
	}
}

var full = &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway,
	Message: "the disk is full: read before you try again"}

func TestANodeIsNotReadyWhileItsWritesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab()
		l.want(t, "")
		l.fails.Store(full)
		_ = l.batch()
		l.want(t, "the disk is full")
		l.pass(pause)
		l.want(t, "the disk is full")
		l.fails.Store(errs.New(errs.Aborted, event.Contention, "somebody else was faster"))
		l.End(false, nil) // it has written nothing
		_ = l.batch()     // it says nothing: the write of somebody else may be the one that hangs
		l.pass(pause)
		l.want(t, "the database does not answer")
		l.fails.Store(full)
		l.pass(pause)
		l.want(t, "the disk is full")
		before := l.writes.Load()
		l.want(t, "the disk is full")
		if l.writes.Load() != before {
			t.Error("whoever asks again at once makes it write")
		}
		l.fails.Store(nil)
		l.pass(pause)
		l.want(t, "") // nobody has written: it comes back by itself
	})
}

func TestANodeWithoutWritesTriesOneNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab()
		for range 3 {
			l.want(t, "")
		}
		if n := l.writes.Load(); n != 1 {
			t.Errorf("%d writes", n)
		}
		l.fails.Store(full)
		l.want(t, "")
		l.pass(fresh + 1)
		l.want(t, "the disk is full")
		l.fails.Store(errs.New(errs.Aborted, event.Contention, "somebody else was faster"))
		l.pass(fresh + 1)
		l.want(t, "the database does not answer") // what else may be wrong is not for everybody
		l.pass(pause)
		l.fails.Store(nil)
		l.want(t, "")
	})
}

func TestAnAnswerComesWithinASecondWhateverHangs(t *testing.T) {
	for name, hang := range map[string]func(l *lab, ctx context.Context) error{
		"reading": func(l *lab, ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"writing": func(l *lab, ctx context.Context) error { l.Begin(); <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				stuck := func(context.Context) error { return hang(l, ctx) }
				if name == "reading" {
					l.Read = stuck
				} else {
					l.Write = stuck
				}
				began := time.Now()
				l.want(t, "") // it may just be slow
				l.pass(hangs + time.Second)
				l.want(t, "the database has not answered for 4s")
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("two answers took %v", took)
				}
			})
		})
	}
}

// A node that could not read is not ready before it has written: a new primary answers before it stores anything.
func TestWhatHasFailedIsNotReadyBeforeItHasWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab()
		l.want(t, "")
		reads := l.Read
		l.Read = func(context.Context) error { return errors.New("no route") }
		l.pass(fresh + 1)
		l.want(t, "the database does not answer")
		l.pass(pause)
		writes := l.Write
		let := make(chan struct{})
		l.Read, l.Write = reads, func(ctx context.Context) error { <-let; return writes(ctx) }
		l.want(t, "the database does not answer")
		close(let)
		l.want(t, "")
	})
}

// A pooler lets everybody wait for a new primary, which then answers before it stores anything.
func TestAReadThatHungIsNotEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab()
		l.want(t, "")
		let, never := make(chan struct{}), make(chan struct{})
		defer close(never)
		l.Read = func(context.Context) error { <-let; return nil }
		l.Write = func(context.Context) error { <-never; return nil }
		l.want(t, "")
		l.pass(fresh + time.Second)
		close(let)
		l.want(t, "the database has not answered for 6s")
	})
}

func TestADiskThatLosesWritesIsNotReadyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab()
		l.Break(&errs.Error{Kind: errs.Unavailable, Message: "the disk does not store what is written: fix it"})
		_ = l.batch()
		l.want(t, "the disk does not store what is written")
		l.pass(time.Hour)
		l.want(t, "the disk does not store what is written")
	})
}
