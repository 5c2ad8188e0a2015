package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/eventtest"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

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

func TestWhatCountsAsOneNetwork(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		if got := network(netip.MustParseAddr(c.a)) == network(netip.MustParseAddr(c.b)); got != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

// answer is what somebody who guesses sees.
func answer(err error) string {
	if err == nil {
		return "in"
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err.Error()
	}
	if e.RetryAfter != 0 {
		return fmt.Sprintf("%s %v", e.Reason, e.RetryAfter)
	}
	return string(e.Reason)
}

func TestGuessesFromOneNetworkAreHeardLessAndLess(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for i, c := range []struct {
		wait     time.Duration // before the attempt
		password string
		peer     netip.Addr
		want     string
	}{
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_THROTTLED 1s"},
		{0, right, home, "SIGN_IN_THROTTLED 1s"}, // the right one is not heard either
		{0, "wrong", away, "SIGN_IN_FAILED"},     // another network is
		{time.Second - time.Microsecond, "wrong", home, "SIGN_IN_THROTTLED 1µs"},
		{time.Microsecond, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_THROTTLED 2s"},
		{2 * time.Second, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_THROTTLED 4s"}, // being turned away does not make it longer
		{3 * time.Second, "wrong", home, "SIGN_IN_THROTTLED 1s"},
		{time.Second, right, home, "in"},
		{0, "wrong", home, "SIGN_IN_FAILED"}, // a success forgives the network
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_FAILED"},
		{0, "wrong", home, "SIGN_IN_THROTTLED 1s"},
	} {
		s.Advance(c.wait)
		_, err := sessions.SignIn(t.Context(), try("jo", c.password, c.peer))
		if got := answer(err); got != c.want {
			t.Errorf("attempt %d: %s, want %s", i+1, got, c.want)
		}
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == SignInThrottled && e.Kind != errs.ResourceExhausted {
			t.Errorf("attempt %d: kind %d", i+1, e.Kind)
		}
	}
}

func TestAnUnknownNameIsThrottledLikeAKnownOne(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	// Six attempts in every spelling there is, then the waiting.
	attempts := func(name string) (seen []string) {
		for _, a := range []Attempt{{LoginName: name}, {LoginName: name + "@def.test"}, {LoginName: name, OrgID: "org_def"}, {LoginName: name}, {LoginName: name},
			{LoginName: name}, {LoginName: name + "@def.test"}, {LoginName: name, OrgID: "org_def"}} {
			a.Password, a.Peer = "wrong", home
			_, err := sessions.SignIn(t.Context(), a)
			seen = append(seen, answer(err))
		}
		s.Advance(time.Second)
		_, err := sessions.SignIn(t.Context(), try(name, "wrong", home))
		seen = append(seen, answer(err))
		_, err = sessions.SignIn(t.Context(), try(name, "wrong", home))
		return append(seen, answer(err))
	}
	known := attempts("jo")
	mark := s.Mark()
	unknown := attempts("nobody")
	s.Then(t, mark) // what nobody is called is counted, and recorded nowhere
	if fmt.Sprint(known) != fmt.Sprint(unknown) {
		t.Errorf("known:   %q\nunknown: %q", known, unknown)
	}
	if known[5] != "SIGN_IN_THROTTLED 1s" || known[9] != "SIGN_IN_THROTTLED 2s" {
		t.Errorf("known: %q", known)
	}
}

func TestParallelGuessesCountEachOther(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	var wg sync.WaitGroup
	answers := make([]string, 64)
	for i := range answers {
		wg.Go(func() {
			_, err := sessions.SignIn(t.Context(), try("jo", "wrong", home))
			answers[i] = answer(err)
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	if count["SIGN_IN_FAILED"] != pairFree || count["SIGN_IN_THROTTLED 1s"] != 64-pairFree {
		t.Errorf("got %v", count)
	}
}

// net gives the n-th of many networks.
func net(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }

func TestGuessesFromManyNetworksSlowDownTheAccountButNotItsOwner(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	signIn(t, sessions) // from home
	s.GivenRow(joRow(cheap()))
	for i := range accountFree {
		if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", net(i))); answer(err) != "SIGN_IN_FAILED" {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
	}
	_, err := sessions.SignIn(t.Context(), try("jo", right, net(1000)))
	if answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("a new network: %s", answer(err))
	}
	longest := time.Duration(0)
	for i := range 20 {
		s.Advance(accountCeiling)
		if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", net(2000+i))); answer(err) != "SIGN_IN_FAILED" {
			t.Fatalf("attempt %d after waiting: %v", i+1, err)
		}
		_, err := sessions.SignIn(t.Context(), try("jo", "wrong", net(3000+i)))
		if e, ok := errors.AsType[*errs.Error](err); ok {
			longest = max(longest, e.RetryAfter)
		}
	}
	if longest != accountCeiling {
		t.Errorf("the longest wait was %v, want %v", longest, accountCeiling)
	}
	in, err := sessions.SignIn(t.Context(), try("jo", right, home))
	if err != nil || in.UserID != "usr_jo" {
		t.Errorf("the owner from home: %v", err)
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", right, net(4000))); answer(err) != "in" {
		s.Advance(accountCeiling)
		if _, err := sessions.SignIn(t.Context(), try("jo", right, net(4000))); err != nil {
			t.Errorf("the owner from a new network after the longest wait: %v", err)
		}
	}
}

func TestFailuresNeverTouchTheUserOrASession(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	s.GivenRow(joRow(cheap()))
	before, err := s.Record(t.Context(), user.Kind.Ref("usr_jo"))
	must(t, err)
	for i := range 80 {
		_, err := sessions.SignIn(t.Context(), try("jo", "wrong", net(i/8)))
		if err == nil {
			t.Fatal("it went in")
		}
	}
	after, err := s.Record(t.Context(), user.Kind.Ref("usr_jo"))
	must(t, err)
	if !bytes.Equal(before.Doc, after.Doc) || before.Sequence != after.Sequence {
		t.Errorf("the user changed from %s to %s", before.Doc, after.Doc)
	}
	if _, err := sessions.Authenticate(t.Context(), in.Token); err != nil {
		t.Errorf("the session ended: %v", err)
	}
}

func TestASetPasswordClearsTheThrottle(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for range pairFree + 1 {
		_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home))
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", right, home)); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Fatalf("not throttled: %v", err)
	}
	_, err := user.SetPassword{UserID: "usr_jo", Password: "new one"}.Do(t.Context(), s, hasher, access.SystemPermit("org_def"))
	must(t, err)
	if _, err := sessions.SignIn(t.Context(), try("jo", "new one", home)); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestFailuresAreForgottenAfterAnHourWithoutAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name string
		good bool
	}{{"on a network nobody has signed in from", false}, {"on a network the owner has signed in from", true}} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, usual())
			if c.good {
				signIn(t, sessions)
			}
			s.GivenRow(joRow(cheap()))
			for range pairFree {
				_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home))
			}
			s.Advance(forgetAfter - time.Microsecond)
			_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home)) // the sixth: still remembered
			if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_THROTTLED 2s" {
				t.Errorf("just before: %s", answer(err))
			}
			s.Advance(forgetAfter)
			for i := range pairFree {
				if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
					t.Errorf("attempt %d after an hour: %s", i+1, answer(err))
				}
			}
		})
	}
}

func TestFailuresAreMergedIntoOneEventAMinute(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	companion := IDFor("usr_jo")
	failed := func(n int) eventtest.Fact {
		return eventtest.Fact{Object: companion, Type: "sign_in.failed.v1", Payload: fmt.Sprintf(`{"count":%d}`, n), Personal: place}
	}
	throttled := func(n int) eventtest.Fact {
		return eventtest.Fact{Object: companion, Type: "sign_in.throttled.v1", Payload: fmt.Sprintf(`{"count":%d}`, n), Personal: place}
	}
	wrong := func() { _, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home)) }

	mark := s.Mark()
	wrong()
	s.Then(t, mark, failed(1))
	wrong()
	wrong()
	s.Advance(mergeWindow - time.Microsecond)
	wrong()
	s.Then(t, mark, failed(1))

	mark = s.Mark()
	s.Advance(time.Microsecond)
	wrong() // the fifth: three were waiting
	s.Then(t, mark, failed(4))

	mark = s.Mark()
	wrong()
	wrong() // turned away, both
	s.Then(t, mark)
	s.Advance(mergeWindow)
	wrong() // heard again
	s.Then(t, mark, failed(1), throttled(2))

	// What has gathered is said before a success, so that the log tells the story in order.
	mark = s.Mark()
	s.Advance(10 * time.Second)
	wrong()
	s.Advance(20 * time.Second)
	in := signIn(t, sessions)
	s.Then(t, mark, failed(1), eventtest.Fact{Object: companion, Type: "sign_in.succeeded.v1", Payload: `{"sessionId":"` + in.SessionID + `"}`, Personal: place})

	// And a success does not open the way for more events than one a minute.
	mark = s.Mark()
	in = signIn(t, sessions)
	wrong()
	s.Then(t, mark, eventtest.Fact{Object: companion, Type: "sign_in.succeeded.v1", Payload: `{"sessionId":"` + in.SessionID + `"}`, Personal: place})

	if state := eventtest.State(t, s, Kind, companion).State; state.Failed != 7 || state.Throttled != 2 || state.Succeeded != 2 {
		t.Errorf("all in all %+v", state)
	}
}

func TestAnAttemptNobodyHadTimeToCheckIsNotHeldAgainstAnybody(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	sessions.Hasher = secret.NewHasher(1, 1)
	flood, stop := context.WithCancel(t.Context())
	var flooders sync.WaitGroup
	for range 4 {
		flooders.Go(func() {
			for flood.Err() == nil {
				_, _ = sessions.Hasher.Hash(flood, "flood")
			}
		})
	}
	defer flooders.Wait()
	defer stop()
	for busy := 0; busy < 3*pairFree; {
		_, err := sessions.SignIn(t.Context(), Attempt{LoginName: "jo", Password: right, Peer: home})
		switch {
		case errors.Is(err, secret.ErrBusy):
			busy++
		case err != nil:
			t.Fatalf("after %d busy answers: %v", busy, err)
		}
	}
}
