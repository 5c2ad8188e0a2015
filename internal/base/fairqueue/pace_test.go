package fairqueue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestALineThatIsTooLongIsNotJoined(t *testing.T) {
	var p Pace
	if err := p.Admit(within(t, time.Nanosecond), 1000, ErrBusy); err != nil {
		t.Errorf("nothing is known of the line: %v", err)
	}
	for range 100 {
		p.Moved(2, 4*time.Second) // two seconds each
	}
	for _, c := range []struct {
		ahead  int
		within time.Duration
		retry  time.Duration // 0: it may wait
	}{{0, time.Millisecond, 0}, {4, time.Minute, 0}, {4, 5 * time.Second, 8 * time.Second},
		{1000, time.Minute, time.Minute}} {
		err := p.Admit(within(t, c.within), c.ahead, ErrBusy)
		if e, _ := errors.AsType[*errs.Error](err); (e != nil) != (c.retry > 0) ||
			e != nil && (!errors.Is(e, ErrBusy) || e.RetryAfter.Round(time.Second) != c.retry) {
			t.Errorf("%d ahead and %v left: %+v", c.ahead, c.within, e)
		}
	}
	if err := p.Admit(t.Context(), 1000, ErrBusy); err != nil {
		t.Errorf("who has all the time: %v", err)
	}
}

// Who is too late for a slot is told at once, and does not push others out of the line.
func TestWhoseTurnComesTooLateIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Bounds{Slots: 1, Waiting: 10, Public: 10})
		if err := p.Enter(t.Context(), Claim{Org: "a"}); err != nil {
			t.Fatal(err)
		}
		turn := make(chan error, 1)
		go func() { turn <- p.Enter(t.Context(), Claim{Org: "a"}) }()
		synctest.Wait()
		p.mu.Lock()
		for range 100 {
			p.pace.Moved(1, time.Hour)
		}
		p.mu.Unlock()
		ctx := within(t, time.Minute)
		e, _ := errors.AsType[*errs.Error](p.Enter(ctx, Claim{Org: "a"}))
		if e == nil || e.Reason != Busy || e.RetryAfter != time.Minute || ctx.Err() != nil {
			t.Errorf("behind another one of its organization: %v", e)
		}
		if p.Refused() != (Refused{Full: 1}) {
			t.Errorf("counted %+v", p.Refused())
		}
		// Nobody of the other organization waits, so its turn is not far.
		other := make(chan error, 1)
		go func() { other <- p.Enter(ctx, Claim{Org: "b"}) }()
		synctest.Wait()
		p.Leave(Claim{Org: "a"})
		if err := <-turn; err != nil {
			t.Errorf("who waited before: %v", err)
		}
		p.Leave(Claim{Org: "a"})
		if err := <-other; err != nil {
			t.Errorf("the other organization: %v", err)
		}
		p.Leave(Claim{Org: "b"})
		if p.pace.turn.Load() >= int64(time.Hour) {
			t.Error("the line moved on, and nobody noticed")
		}
	})
}
