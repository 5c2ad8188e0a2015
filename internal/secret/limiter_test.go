package secret

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zitadel/passwap/verifier"

	"github.com/signet-idm/signet/internal/errs"
)

func TestLimiterRunsInOrderAndRefusesBeyondTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 2)
		finish := make(chan struct{})
		var order []int
		start := func(n int) {
			go func() {
				if err := l.do(t.Context(), func() error { <-finish; order = append(order, n); return nil }); err != nil {
					t.Errorf("work %d: %v", n, err)
				}
			}()
			synctest.Wait() // until it runs or waits
		}
		start(0)
		start(1)
		start(2)

		err := l.do(t.Context(), func() error { t.Error("work ran beyond the queue"); return nil })
		refusal, ok := errors.AsType[*errs.Error](err)
		if !ok || refusal.Kind != errs.Unavailable || refusal.Reason != ReasonHashingBusy || refusal.RetryAfter != time.Second {
			t.Fatalf("with a full queue: got %#v", err)
		}

		for range 3 {
			finish <- struct{}{}
			synctest.Wait()
		}
		for i, n := range order {
			if i != n {
				t.Fatalf("order of work: got %v", order)
			}
		}
		if err := l.do(t.Context(), func() error { return nil }); err != nil {
			t.Fatalf("after all work is done: %v", err)
		}
	})
}

func TestLimiterLetsACallerLeaveTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 1)
		finish := make(chan struct{})
		go func() { _ = l.do(t.Context(), func() error { <-finish; return nil }) }()
		synctest.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- l.do(ctx, func() error { t.Error("work ran for nobody"); return nil }) }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}

		// The place is free again.
		next := make(chan error)
		go func() { next <- l.do(t.Context(), func() error { return nil }) }()
		synctest.Wait()
		close(finish)
		if err := <-next; err != nil {
			t.Fatalf("the next caller: %v", err)
		}
	})
}

func TestLimiterDoesNoWorkForAContextThatHasEnded(t *testing.T) {
	l := newLimiter(1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 { // more often than there are slots, so that a slot kept would show
		if err := l.do(ctx, func() error { t.Error("work ran for nobody"); return nil }); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestLimiterFreesTheSlotOfWorkThatPanics(t *testing.T) {
	l := newLimiter(1, 1)
	func() {
		defer func() { _ = recover() }()
		_ = l.do(t.Context(), func() error { panic("broken") })
	}()
	if len(l.slots) != 0 {
		t.Fatal("the slot is still taken")
	}
}

// meter stands for the algorithms and measures how many of them run together.
type meter struct {
	running, most atomic.Int32
	release       chan struct{}
}

func (m *meter) work() {
	n := m.running.Add(1)
	for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
	}
	<-m.release
	m.running.Add(-1)
}

func (m *meter) Hash(string) (string, error) { m.work(); return "hash", nil }

func (m *meter) Verify(string, string) (verifier.Result, error) { m.work(); return verifier.OK, nil }

func TestAllHashWorkSharesTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, calls = 3, 30
		m := &meter{release: make(chan struct{})}
		h := NewHasher(slots, calls)
		h.current = m
		for alg := range h.verifiers {
			h.verifiers[alg] = m
		}

		var done sync.WaitGroup
		for i := range calls {
			done.Go(func() {
				var err error
				switch i % 3 {
				case 0:
					_, err = h.Hash(t.Context(), "password")
				case 1: // verifies, then hashes for the upgrade
					_, _, err = h.Verify(t.Context(), []byte(importedBcrypt), "password")
				case 2:
					err = h.VerifyNothing(t.Context(), "password")
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := m.running.Load(); n != slots {
			t.Errorf("%d run at first, want %d", n, slots)
		}
		if n := len(h.limit.queue); n != calls-slots {
			t.Errorf("%d wait at first, want %d", n, calls-slots)
		}
		for range calls + calls/3 {
			m.release <- struct{}{}
			synctest.Wait()
		}
		done.Wait()
		if most := m.most.Load(); most != slots {
			t.Errorf("%d ran together, want %d", most, slots)
		}
	})
}

func TestNewHasherFillsInDefaults(t *testing.T) {
	if h := NewHasher(0, 0); cap(h.limit.slots) < 1 || cap(h.limit.queue) != 1024 {
		t.Errorf("got %d slots and a queue of %d", cap(h.limit.slots), cap(h.limit.queue))
	}
	if h := NewHasher(3, 5); cap(h.limit.slots) != 3 || cap(h.limit.queue) != 5 {
		t.Errorf("got %d slots and a queue of %d", cap(h.limit.slots), cap(h.limit.queue))
	}
}
