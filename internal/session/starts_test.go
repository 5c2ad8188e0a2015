package session

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/eventtest"
)

// clock is one that a test sets.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func newStarts(perMinute int) (*Starts, *clock) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	return &Starts{PerMinute: perMinute, Clock: c.read}, c
}

// taken tells how many of so many starts at once are let through.
func taken(s *Starts, peer netip.Addr, tries int) (n int) {
	for range tries {
		if s.Take(peer, 1) == nil {
			n++
		}
	}
	return n
}

func TestANetworkBeginsSoMuchAMinute(t *testing.T) {
	s, clock := newStarts(60)
	if n := taken(s, home, 100); n != 60 {
		t.Errorf("%d were let through at once", n)
	}
	e, ours := errors.AsType[*errs.Error](s.Take(home, 1))
	if !ours || e.Kind != errs.ResourceExhausted || e.Reason != NetworkThrottled || e.RetryAfter != time.Second {
		t.Errorf("the next one is told %+v", e)
	}
	if s.Take(away, 1) != nil {
		t.Error("another network waits, too")
	}
	clock.now = clock.now.Add(e.RetryAfter)
	if n := taken(s, home, 100); n != 1 {
		t.Errorf("%d were let through after the wait", n)
	}
	clock.now = clock.now.Add(10 * time.Second)
	if n := taken(s, home, 100); n != 10 {
		t.Errorf("%d were let through after ten seconds", n)
	}
	clock.now = clock.now.Add(time.Hour)
	if s.Take(home, 61) == nil || s.Take(home, 60) != nil || s.Take(home, 1) == nil {
		t.Error("what counts as many is not counted as many")
	}
	clock.now = clock.now.Add(time.Hour)
	if n := taken(s, home, 100); n != 60 {
		t.Errorf("%d were let through after an hour", n)
	}
	clock.now = clock.now.Add(-time.Hour)
	if e, _ := errors.AsType[*errs.Error](s.Take(home, 1)); e == nil || e.RetryAfter != time.Second {
		t.Errorf("a clock that was set back lets it wait %+v", e)
	}
	if taken(nil, home, 1000) != 1000 {
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
			s, _ := newStarts(1)
			must(t, s.Take(netip.MustParseAddr(c.first), 1))
			if refused := s.Take(netip.MustParseAddr(c.second), 1) != nil; refused != c.same {
				t.Errorf("counted together: %t", refused)
			}
		})
	}
}

func TestTheMemoryForNetworksIsBounded(t *testing.T) {
	s, clock := newStarts(1)
	peer := netip.MustParseAddr("10.0.0.0")
	take := func(n int) {
		for range n {
			peer = peer.Next()
			must(t, s.Take(peer, 1))
		}
	}
	take(maxNetworks)
	clock.now = clock.now.Add(time.Minute)
	take(1)
	if len(s.whole) != 1 {
		t.Errorf("%d networks are remembered that have their allowance back", len(s.whole))
	}
	take(2 * maxNetworks)
	if len(s.whole) > maxNetworks {
		t.Errorf("%d networks are remembered", len(s.whole))
	}
}

func TestStrangersAreBoundedInWhatTheyBegin(t *testing.T) {
	a := arm(t)
	before := a.Fingerprint()
	_, err := a.sessions.StartPasskeySignIn()
	must(t, err)
	if a.Fingerprint() != before {
		t.Error("something is stored for a challenge")
	}
	for name, begin := range map[string]func(peer netip.Addr) error{
		"a reset is asked for": func(peer netip.Addr) error {
			return a.sessions.RequestReset(t.Context(), ResetRequest{LoginName: "nobody", Peer: peer})
		},
		"a code is tried": func(peer netip.Addr) error {
			_, err := a.sessions.Reset(t.Context(), Reset{UserID: "usr_nobody", Code: "X", Password: right, Peer: peer})
			return err
		},
		"a passkey is answered": func(peer netip.Addr) error {
			_, err := a.signInByPasskey(t, func(p *PasskeyAttempt) { p.Peer = peer })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			a.sessions.Starts = &Starts{PerMinute: 10, Clock: a.Now}
			must(t, a.sessions.Starts.Take(home, 10))
			before := a.Fingerprint()
			eventtest.Refused(t, begin(home), errs.ResourceExhausted, NetworkThrottled)
			if a.Fingerprint() != before {
				t.Error("something is stored")
			}
			if err := begin(away); errs.KindOf(err) == errs.ResourceExhausted {
				t.Errorf("another network is refused: %v", err)
			}
		})
	}
}
