package guessing

import (
	"fmt"
	"testing"
	"time"
)

const (
	pairFree       = 5
	pairCeiling    = 15 * time.Minute
	accountFree    = 50
	accountCeiling = 10 * time.Second
)

var pairLimits = Limits{pairFree, pairCeiling}

func TestDelaysDoubleUpToTheirCeiling(t *testing.T) {
	for _, c := range []struct {
		failures, free int64
		ceiling, want  time.Duration
	}{
		{1, pairFree, pairCeiling, 0},
		{4, pairFree, pairCeiling, 0},
		{5, pairFree, pairCeiling, time.Second},
		{6, pairFree, pairCeiling, 2 * time.Second},
		{7, pairFree, pairCeiling, 4 * time.Second},
		{14, pairFree, pairCeiling, 512 * time.Second},
		{15, pairFree, pairCeiling, 15 * time.Minute},
		{1 << 40, pairFree, pairCeiling, 15 * time.Minute},
		{49, accountFree, accountCeiling, 0},
		{50, accountFree, accountCeiling, time.Second},
		{53, accountFree, accountCeiling, 8 * time.Second},
		{54, accountFree, accountCeiling, 10 * time.Second},
		{1 << 40, accountFree, accountCeiling, 10 * time.Second},
	} {
		if got := delay(c.failures, c.free, c.ceiling); got != c.want.Microseconds() {
			t.Errorf("after %d failures with %d free: %d µs, want %v", c.failures, c.free, got, c.want)
		}
	}
}

func TestAttemptsOfOneMomentHoldUpOthersByTheirNumber(t *testing.T) {
	five := func() (c counter) {
		for range pairFree {
			c.begin(7, pairLimits, false)
		}
		return c
	}
	second := 7 + time.Second.Microseconds()
	c := five()
	if c.until() != second {
		t.Fatalf("five running: until %d", c.until())
	}
	c.end(7)
	if c.until() != 0 {
		t.Errorf("one of five taken back: until %d", c.until())
	}
	c = five()
	for i := range pairFree {
		c.fail(7, pairLimits)
		if c.until() != second {
			t.Errorf("%d of five failed: until %d", i+1, c.until())
		}
	}
}

func TestVerdictsInAnyOrderMakeRoomForNoMoreAttempts(t *testing.T) {
	for _, c := range []struct {
		name  string
		order [pairFree]int64
	}{
		{"the first first", [...]int64{1, 2, 3, 4, 5}},
		{"the last first", [...]int64{5, 4, 3, 2, 1}},
		{"mixed", [...]int64{3, 5, 1, 4, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var failing, ending counter
			for at := range int64(pairFree) {
				failing.begin(at+1, pairLimits, false)
				ending.begin(at+1, pairLimits, false)
			}
			second := pairFree + time.Second.Microseconds()
			for i, started := range c.order {
				failing.fail(started, pairLimits)
				if failing.until() < second {
					t.Errorf("%d of five failed: until %d, want %d", i+1, failing.until(), second)
				}
				ending.end(started)
				if ending.until() != 0 || len(ending.Running) != pairFree-1-i {
					t.Errorf("%d of five taken back: until %d, %d still running", i+1, ending.until(),
						len(ending.Running))
				}
			}
		})
	}
}

func TestAfterTheFreeFailuresOneIsHeardAtATime(t *testing.T) {
	c := counter{Failures: pairFree}
	c.begin(0, pairLimits, true)
	if c.until() != (2 * time.Second).Microseconds() {
		t.Errorf("while one runs nothing is heard for %d µs", c.until())
	}
}

// Right passwords that a program sends together are heard from where the owner has come in before, however few are
// free.
func TestTheOwnersNetworkHasRoomForRightPasswords(t *testing.T) {
	for _, free := range []int64{1, 5, goodRunning} {
		c := counter{}
		for i := range goodRunning {
			if until := c.until(); until != 0 {
				t.Fatalf("with %d free, attempt %d has to wait", free, i)
			}
			c.begin(7, Limits{free, time.Minute}, true)
		}
		if c.until() == 0 {
			t.Errorf("with %d free, any number may run", free)
		}
	}
}

func TestTheThrottledAreToldHowLongToWait(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Microsecond: "wait 1 s", time.Second: "wait 1 s",
		1500 * time.Millisecond: "wait 2 s", 15 * time.Minute: "wait 900 s"} {
		err := errThrottled(wait)
		if got := err.Error(); got != fmt.Sprintf("SIGN_IN_THROTTLED: too many failed attempts: %s before the next one", want) {
			t.Errorf("%v: %s", wait, got)
		}
	}
}
