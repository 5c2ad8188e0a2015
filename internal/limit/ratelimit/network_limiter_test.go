package ratelimit

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/test/testkit"
)

var home, away = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.7")

func newNetworkLimiter(perMinute int) (*NetworkLimiter, *testkit.Clock) {
	c := testkit.NewClock(time.Unix(1_800_000_000, 0))
	return &NetworkLimiter{PerMinute: perMinute, Clock: c.Now}, c
}

// taken tells how many of so many starts at once are let through.
func takenBy(s *NetworkLimiter, peer netip.Addr, tries int) (n int) {
	for range tries {
		if s.Take(peer, 1) == nil {
			n++
		}
	}
	return n
}

func TestANetworkBeginsSoMuchAMinute(t *testing.T) {
	s, clock := newNetworkLimiter(60)
	if n := takenBy(s, home, 100); n != 60 {
		t.Errorf("%d were let through at once", n)
	}
	e, ours := errors.AsType[*errs.Error](s.Take(home, 1))
	if !ours || e.Kind != errs.ResourceExhausted || e.Reason != NetworkThrottled || e.RetryAfter != time.Second {
		t.Errorf("the next one is told %+v", e)
	}
	if s.Take(away, 1) != nil {
		t.Error("another network waits, too")
	}
	clock.Advance(e.RetryAfter)
	if n := takenBy(s, home, 100); n != 1 {
		t.Errorf("%d were let through after the wait", n)
	}
	clock.Advance(10 * time.Second)
	if n := takenBy(s, home, 100); n != 10 {
		t.Errorf("%d were let through after ten seconds", n)
	}
	clock.Advance(time.Hour)
	if s.Take(home, 61) == nil || s.Take(home, 60) != nil || s.Take(home, 1) == nil {
		t.Error("what counts as many is not counted as many")
	}
	clock.Advance(time.Hour)
	if n := takenBy(s, home, 100); n != 60 {
		t.Errorf("%d were let through after an hour", n)
	}
	clock.Advance(-time.Hour)
	if err := s.Take(home, 1); err != nil {
		t.Errorf("after the clock was set back: %v", err)
	}
	if takenBy(nil, home, 1000) != 1000 {
		t.Error("there is a limit where none is set")
	}
}

func TestWhatIsOneNetwork(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		same                bool
	}{
		{"two addresses", "192.0.2.1", "192.0.2.2", false},
		{"one address in both forms", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"two addresses of one /64", "2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true},
		{"two /64", "2001:db8:0:1::1", "2001:db8:0:2::1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newNetworkLimiter(1)
			if err := s.Take(netip.MustParseAddr(c.first), 1); err != nil {
				t.Fatal(err)
			}
			if refused := s.Take(netip.MustParseAddr(c.second), 1) != nil; refused != c.same {
				t.Errorf("counted together: %t", refused)
			}
		})
	}
}

func TestTheMemoryForNetworksIsBounded(t *testing.T) {
	s, clock := newNetworkLimiter(1)
	peer := netip.MustParseAddr("10.0.0.0")
	take := func(n int) {
		for range n {
			peer = peer.Next()
			if err := s.Take(peer, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(maxNames)
	clock.Advance(time.Minute)
	take(1)
	if len(s.buckets) != 1 {
		t.Errorf("%d networks are remembered that have their allowance back", len(s.buckets))
	}
	take(2 * maxNames)
	if len(s.buckets) > maxNames {
		t.Errorf("%d networks are remembered", len(s.buckets))
	}
}
