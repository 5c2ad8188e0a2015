package ratelimit

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/test/testkit"
)

func newLimiter(t *testing.T, rate string) (*Limiter, *testkit.Clock) {
	t.Helper()
	r, err := Parse(rate)
	if err != nil {
		t.Fatal(err)
	}
	clock := testkit.NewClock(time.Unix(1_800_000_000, 0))
	return New(r, clock.Now), clock
}

// taken tells how many of so many requests at once are let through.
func taken(l *Limiter, key string, tries int) (n int) {
	for range tries {
		if !l.Take([]byte(key)).Refused {
			n++
		}
	}
	return n
}

func TestAKeySendsSoManyAndGetsThemBackEvenly(t *testing.T) {
	l, clock := newLimiter(t, "60/m")
	for _, step := range []struct {
		after time.Duration
		let   int
	}{{0, 60}, {999 * time.Millisecond, 0}, {time.Millisecond, 1}, {10 * time.Second, 10}, {time.Hour, 60},
		{-time.Hour, 60}, {time.Second, 1}} {
		clock.Advance(step.after)
		if n := taken(l, "a", 100); n != step.let {
			t.Errorf("after %v %d are let through, not %d", step.after, n, step.let)
		}
	}
	if taken(l, "b", 100) != 60 {
		t.Error("another key waits, too")
	}
	if off, _ := newLimiter(t, "off"); taken(off, "a", 1000) != 1000 {
		t.Error("there is a limit where none is set")
	}
}

func TestWhatIsLeftIsSaid(t *testing.T) {
	l, clock := newLimiter(t, "4/s")
	for i, want := range []Verdict{
		{Left: 3, Reset: 250 * time.Millisecond}, {Left: 2, Reset: 500 * time.Millisecond},
		{Left: 1, Reset: 750 * time.Millisecond},
		{Left: 0, Reset: 250 * time.Millisecond}, {Refused: true, Reset: 250 * time.Millisecond},
	} {
		want.Rate = Rate{4, time.Second}
		if v := l.Take([]byte("a")); v != want {
			t.Errorf("%d: %+v, not %+v", i, v, want)
		}
	}
	clock.Advance(100 * time.Millisecond)
	v := l.Take([]byte("a"))
	if v.Reset != 150*time.Millisecond || v.Item(Network) != `"network";r=0;t=1` ||
		v.Policy(Network) != `"network";q=4;w=1` {
		t.Errorf("%+v: %s, %s", v, v.Item(Network), v.Policy(Network))
	}
	e, _ := errors.AsType[*errs.Error](v.Err(Caller))
	if e == nil || e.Kind != errs.ResourceExhausted || e.Reason != RateLimited || e.RetryAfter != v.Reset ||
		!strings.Contains(e.Message, "at most 4 in 1 s") || !strings.Contains(e.Message, "Wait 1 s") {
		t.Errorf("the refusal is %+v", e)
	}
	clock.Advance(v.Reset)
	if v := l.Take([]byte("a")); v.Refused || v.Err(Caller) != nil {
		t.Errorf("who has waited is refused: %+v", v)
	}
}

func TestARequestIsGivenBack(t *testing.T) {
	l, _ := newLimiter(t, "2/h")
	taken(l, "a", 2)
	l.GiveBack([]byte("a"))
	l.GiveBack([]byte("b"))
	if n := taken(l, "a", 3); n != 1 {
		t.Errorf("%d are let through", n)
	}
	if n := taken(l, "b", 3); n != 2 {
		t.Errorf("%d are let through of a key that had nothing to get back", n)
	}
	var none *Limiter
	none.GiveBack([]byte("a"))
}

// Whoever has many keys, such as a large network, cannot make the limiter forget the one that is used up.
func TestAKeyThatIsUsedUpIsNotForgotten(t *testing.T) {
	l, _ := newLimiter(t, "20/h")
	if taken(l, "mine", 30) != 20 {
		t.Fatal("the limit does not hold")
	}
	for i := range uint64(10 * sets * ways) {
		l.Take(binary.BigEndian.AppendUint64(nil, i))
	}
	if taken(l, "mine", 1) != 0 {
		t.Error("a flood of other keys gave back what was used up")
	}
}

func TestNetworksAreKeys(t *testing.T) {
	key := func(addr string, programs bool) string { return string(Key(netip.MustParseAddr(addr), programs)) }
	if key("2001:db8::1", false) != key("2001:db8::ffff:2", false) ||
		key("2001:db8::1", false) == key("2001:db8:0:1::1", false) {
		t.Error("a network of IPv6 is not a /64")
	}
	if key("192.0.2.1", false) != key("::ffff:192.0.2.1", false) || key("192.0.2.1", false) == key("192.0.2.2", false) {
		t.Error("a network of IPv4 is not an address")
	}
	if key("192.0.2.1", false) == key("192.0.2.1", true) {
		t.Error("people and programs count together")
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"off": {}, "1/s": {1, time.Second}, "6000/m": {6000, time.Minute}, "1000000/h": {1_000_000, time.Hour},
	} {
		if r, err := Parse(text); err != nil || r != want || r.String() != text {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "0/s", "-1/s", "+1/s", "01/s", "1000001/s", "5", "5/", "/s", "5/d", "5 /s",
		"1/s/s", "OFF", "99999999999999999999/s"} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"off", "100/s", "1/m", "0/h", "9/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Parse(text); err == nil && r.String() != text {
			t.Errorf("%q is written as %q", text, r)
		}
	})
}

func BenchmarkTake(b *testing.B) {
	l := New(Rate{1000, time.Second}, time.Now)
	addr := netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		l.Take(Key(addr, false))
	}
}
