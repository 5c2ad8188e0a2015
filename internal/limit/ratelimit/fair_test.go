package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

func newFair(perMinute int) (*FairPool, *testkit.Clock) {
	c := testkit.NewClock(time.Unix(1_800_000_000, 0))
	return &FairPool{PerMinute: perMinute, Clock: c.Now}, c
}

// getsOf tells how many of so many starts at once somebody gets.
func getsOf(f *FairPool, pool, name string, tries int) (n int) {
	for range tries {
		if f.Take(pool, name) == 0 {
			n++
		}
	}
	return n
}

func TestWhoFloodsAPoolLeavesAPartOfItToOthers(t *testing.T) {
	f, clock := newFair(600)
	if n := getsOf(f, "org", "flood", 1000); n < 300 || n > 350 {
		t.Errorf("one gets %d of 600 at once", n)
	}
	if n := getsOf(f, "org", "another", 10); n != 10 {
		t.Errorf("another one gets %d of 10", n)
	}
	if n := getsOf(f, "other org", "flood", 300); n != 300 {
		t.Errorf("in another pool the same one gets %d", n)
	}
	wait := f.Wait("org", "flood")
	if wait < time.Second || wait > time.Minute {
		t.Errorf("it waits for %v", wait)
	}
	clock.Advance(wait + time.Second)
	if f.Take("org", "flood") != 0 {
		t.Error("it gets nothing when it comes again at the time that it was told")
	}
	clock.Advance(time.Hour)
	if n := getsOf(f, "org", "flood", 300); n != 300 {
		t.Errorf("an hour later it gets %d", n)
	}
}

func TestAPoolGivesNoMoreThanItHas(t *testing.T) {
	f, clock := newFair(60)
	n := 0
	for i := range 1000 {
		n += getsOf(f, "org", fmt.Sprint("network ", i), 1)
	}
	if n != 60 {
		t.Errorf("%d at once", n)
	}
	clock.Advance(10 * time.Second)
	for i := range 1000 {
		n += getsOf(f, "org", fmt.Sprint("another ", i), 1)
	}
	if n != 70 {
		t.Errorf("%d after ten seconds", n)
	}
}

func TestTheMemoryOfSharesIsBounded(t *testing.T) {
	f, clock := newFair(1_000_000)
	for i := range 2 * maxNames {
		f.Take("org", fmt.Sprint(i))
		if i%1000 == 0 {
			clock.Advance(time.Second)
		}
	}
	if len(f.had) > maxNames {
		t.Errorf("%d are remembered", len(f.had))
	}
}
