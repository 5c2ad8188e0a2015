package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

// The defaults.
const (
	pairFree       = 5
	pairCeiling    = 15 * time.Minute
	accountFree    = 50
	accountCeiling = 10 * time.Second
)

// What package guessing counts by.
const (
	goodRunning   = 20
	forgetAfter   = time.Hour
	mergeWindow   = mergedFor
	runningAtMost = time.Minute
)

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
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == SignInThrottled &&
			e.Kind != errs.ResourceExhausted {
			t.Errorf("attempt %d: kind %d", i+1, e.Kind)
		}
	}
}

func TestAnUnknownNameIsThrottledLikeAKnownOne(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	// Six attempts in every spelling there is, then the waiting.
	attempts := func(name string) (seen []string) {
		for _, a := range []Attempt{{LoginName: name}, {LoginName: name + "@def.test"},
			{LoginName: name, OrgID: "org_def"}, {LoginName: name}, {LoginName: name},
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
	permit, err := (&access.Caller{UserID: "usr_boss",
		Memberships: access.Memberships{"org_def": {access.OrgOwner}}}).In("org_def", access.CredentialWrite)
	must(t, err)
	_, err = user.SetPassword(t.Context(), s, hasher, permit, "usr_jo", event.IfMatch{},
		user.NewPassword{Password: "new one"})
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
		return eventtest.Fact{Object: companion, Type: "sign_in.failed.v1",
			Payload: failedAs(ByPassword, WrongPassword, n), Personal: place}
	}
	throttled := func(n int) eventtest.Fact {
		return eventtest.Fact{Object: companion, Type: "sign_in.throttled.v1", Payload: fmt.Sprintf(`{"count":%d}`, n),
			Personal: place}
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
	s.Then(t, mark, failed(1),
		eventtest.Fact{Object: companion, Type: "sign_in.succeeded.v1", Payload: `{"sessionId":"` + in.SessionID + `","method":"pwd"}`,
			Personal: place})

	// And a success does not open the way for more events than one a minute.
	mark = s.Mark()
	in = signIn(t, sessions)
	wrong()
	s.Then(t, mark, eventtest.Fact{Object: companion, Type: "sign_in.succeeded.v1",
		Payload: `{"sessionId":"` + in.SessionID + `","method":"pwd"}`, Personal: place})

	if state := eventtest.State(t, s, Kind, companion).Data; state.Failed != 7 || state.Throttled != 2 ||
		state.Succeeded != 2 {
		t.Errorf("all in all %+v", state)
	}
}

// flood lets strangers keep the only slot for hashing busy until the test ends. It returns when they find the line
// full.
func flood(t *testing.T, sessions *Sessions) {
	t.Helper()
	sessions.Hasher = secret.NewHasher(1, 1)
	ctx, stop := context.WithCancel(t.Context())
	var flooders sync.WaitGroup
	t.Cleanup(flooders.Wait)
	t.Cleanup(stop)
	full := make(chan struct{})
	var once sync.Once
	for range 4 {
		flooders.Go(func() {
			for ctx.Err() == nil {
				if err := sessions.Hasher.Public("org_a", "", 0).VerifyNothing(ctx, "flood"); errors.Is(err,
					secret.ErrBusy) {
					once.Do(func() { close(full) })
				}
			}
		})
	}
	testkit.Receive(t, full, "the line is full")
}

func TestAnAttemptNobodyHadTimeToCheckIsNotHeldAgainstAnybody(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	flood(t, sessions)
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

// Six attempts on one spelling, then one on each of the others: whoever exists must not look different.
func TestAVerifiedEmailIsThrottledLikeAnUnknownOneInEverySpelling(t *testing.T) {
	for _, c := range []struct {
		name, domain string
		spellings    []string
	}{
		{"a domain nobody has", "acme.example",
			[]string{"ａnna@acme.example", "anna＠acme.example", "ANNA﹫Acme.Example", "anna@acme\u3002example",
				"anna@ac\u00adme.example"}},
		{"the domain of the organization", "def.test",
			[]string{"ａnna@def.test", "anna＠def.test", "anna@de\u00adf.test", "anna@DEF\u3002test"}},
		{"the domain of another one", "b.test", []string{"ａnna@b.test", "anna＠b.test", "anna@b\u00ad.test"}},
		{"a domain with ss", "strasse.example", []string{"anna@straße.example", "ａnna＠STRAẞE.example"}},
		{"an owned domain with ss", "gasse.test", []string{"anna@gaße.test", "ａnna＠GAẞE.test"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := func(known string) (seen []string) {
				s, sessions := world(t)
				eventtest.Given(t, s, org.Kind, "org_b", "",
					[]event.Claim{org.DomainClaim("b.test"), org.DomainClaim("gasse.test")},
					org.DomainAdded{Domain: "gasse.test", Verified: true})
				person(t, s, "usr_anna", "org_def", "someone", known)
				password(t, s, "usr_anna", cheap(), user.PasswordSet{})
				first := "anna@" + c.domain
				for _, name := range append([]string{first, first, first, first, first, first}, c.spellings...) {
					_, err := sessions.SignIn(t.Context(), try(name, "wrong", home))
					seen = append(seen, answer(err))
				}
				return seen
			}
			known, unknown := answers("anna@"+c.domain), answers("else@mail.test")
			if !slices.Equal(known, unknown) {
				t.Errorf("known:   %q\nunknown: %q", known, unknown)
			}
			if known[5] != "SIGN_IN_THROTTLED 1s" {
				t.Errorf("the sixth: %s", known[5])
			}
		})
	}
}

// gate holds attempts between being counted and being checked.
type gate struct {
	event.Store
	arrived chan struct{}
	open    chan struct{}
}

func (g *gate) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	g.arrived <- struct{}{}
	<-g.open
	return g.Store.Row(ctx, key)
}

// together makes attempts of which every one is counted or turned away before the first is checked.
func together(t *testing.T, sessions *Sessions, attempts int, a Attempt) map[string]int {
	t.Helper()
	g := &gate{Store: sessions.Store, arrived: make(chan struct{}), open: make(chan struct{})}
	gated := *sessions
	gated.Store = g
	answers := make(chan string)
	for range attempts {
		go func() {
			_, err := gated.SignIn(t.Context(), a)
			answers <- answer(err)
		}()
	}
	count := map[string]int{}
	for range attempts {
		select {
		case <-g.arrived:
		case a := <-answers:
			count[a]++
		}
	}
	close(g.open)
	for range attempts - count["SIGN_IN_THROTTLED 1s"] {
		count[testkit.Receive(t, answers, "an attempt is answered")]++
	}
	return count
}

func TestRightPasswordsSentTogetherAreAllHeardWhereTheOwnerHasSignedInBefore(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	signIn(t, sessions)
	if got := together(t, sessions, 8, try("jo", right, home)); got["in"] != 8 {
		t.Errorf("got %v", got)
	}
	// Nothing of it remains.
	for range pairFree - 1 {
		_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home))
	}
	if got := together(t, sessions, 8, try("jo", right, home)); got["in"] != 8 {
		t.Errorf("after a few failures: got %v", got)
	}
}

func TestWrongPasswordsSentTogetherAreHeardInABoundedNumber(t *testing.T) {
	for _, c := range []struct {
		name   string
		failed int // before
		good   bool
		heard  int
		next   string // for whoever comes after them
	}{
		{"from a network never seen", 0, false, pairFree, "SIGN_IN_THROTTLED 1s"},
		{"from a network never seen, after failures", 3, false, pairFree - 3, "SIGN_IN_THROTTLED 1s"},
		{"from a network of the owner", 0, true, goodRunning, "SIGN_IN_THROTTLED 15m0s"},
		{"from a network of the owner, after failures", 3, true, goodRunning - 3, "SIGN_IN_THROTTLED 15m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, usual())
			if c.good {
				signIn(t, sessions)
			}
			s.GivenRow(joRow(cheap()))
			for range c.failed {
				_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home))
			}
			got := together(t, sessions, 64, try("jo", "wrong", home))
			if got["SIGN_IN_FAILED"] != c.heard || got["SIGN_IN_THROTTLED 1s"] != 64-c.heard {
				t.Errorf("got %v", got)
			}
			if _, err := sessions.SignIn(t.Context(), try("jo", right, home)); answer(err) != c.next {
				t.Errorf("the next one: %s", answer(err))
			}
		})
	}
}

func TestASuccessForgivesFailuresAndNotWhatIsStillRunning(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	signIn(t, sessions)
	g := &gate{Store: s, arrived: make(chan struct{}), open: make(chan struct{})}
	gated := *sessions
	gated.Store = g
	var guesses sync.WaitGroup
	const running = 12
	for range running {
		guesses.Go(func() { _, _ = gated.SignIn(t.Context(), try("jo", "wrong", home)) })
		testkit.Receive(t, g.arrived, "a guess is counted")
	}
	signIn(t, sessions)
	s.GivenRow(joRow(cheap()))
	if got := together(t, sessions, 64, try("jo", "wrong", home)); got["SIGN_IN_FAILED"] != goodRunning-running {
		t.Errorf("%d are running, and then: %v", running, got)
	}
	close(g.open)
	guesses.Wait()
}

func TestAfterTheFreeFailuresANetworkOfTheOwnerIsHeardOneAtATime(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	signIn(t, sessions)
	s.GivenRow(joRow(cheap()))
	for range pairFree {
		_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home))
	}
	s.Advance(time.Second)
	if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
		t.Errorf("got %s", answer(err))
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_THROTTLED 2s" {
		t.Errorf("got %s", answer(err))
	}
}

// broken fails some of what is asked of the store.
type broken struct {
	event.Store
	row func() error
	do  func(nth int) error // counted from one
	dos int
}

var errBroken = errors.New("the disk is on fire")

func (b *broken) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	if b.row != nil {
		if err := b.row(); err != nil {
			return nil, err
		}
	}
	return b.Store.Row(ctx, key)
}

func (b *broken) Do(ctx context.Context, c event.Command) error {
	b.dos++
	if b.do != nil {
		if err := b.do(b.dos); err != nil {
			return err
		}
	}
	return b.Store.Do(ctx, c)
}

func TestAnAttemptWithoutAVerdictIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		password string
		store    func(s event.Store, hangUp func()) event.Store
		want     error
	}{
		{"the caller hangs up before the check", "wrong", func(s event.Store, hangUp func()) event.Store {
			return &broken{Store: s, row: func() error { hangUp(); return nil }}
		}, context.Canceled},
		{"the hash cannot be read", "wrong", func(s event.Store, _ func()) event.Store {
			return &broken{Store: s, row: func() error { return errBroken }}
		}, errBroken},
		{"the session of a right password cannot be written", right, func(s event.Store, _ func()) event.Store {
			return &broken{Store: s, do: func(nth int) error {
				if nth == 2 {
					return errBroken
				}
				return nil
			}}
		}, errBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			unheard := func() {
				t.Helper()
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				failing := *sessions
				failing.Store = c.store(s, hangUp)
				if _, err := failing.SignIn(ctx, try("jo", c.password, home)); !errors.Is(err, c.want) {
					t.Fatalf("got %v", err)
				}
			}
			before := s.Fingerprint()
			for range 2 * pairFree {
				unheard()
			}
			if s.Fingerprint() != before {
				t.Error("something of it remains")
			}
			// The wait it would have led to is taken back as well, and the one that was there is not.
			for range pairFree {
				_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", home))
			}
			s.Advance(time.Second)
			unheard()
			if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
				t.Errorf("after it: %s", answer(err))
			}
			if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_THROTTLED 2s" {
				t.Errorf("after a failure: %s", answer(err))
			}
		})
	}
}

func TestAWrongPasswordCountsThoughTheCallerHangsUpOnTheAnswer(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for range pairFree {
		ctx, hangUp := context.WithCancel(t.Context())
		leaving := *sessions
		leaving.Store = &broken{Store: s, do: func(nth int) error {
			if nth == 2 { // the password has been checked
				hangUp()
			}
			return nil
		}}
		if _, err := leaving.SignIn(ctx, try("jo", "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", right, home)); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("got %s", answer(err))
	}
}

func TestAnAttemptWhoseServerDiedIsForgottenSoon(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for range pairFree {
		dying := *sessions
		dying.Store = &broken{Store: s, do: func(nth int) error {
			if nth > 1 {
				return errBroken
			}
			return nil
		}}
		_, _ = dying.SignIn(t.Context(), try("jo", "wrong", home))
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", right, home)); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("at first: %s", answer(err))
	}
	s.Advance(runningAtMost)
	for i := range pairFree {
		if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
			t.Errorf("attempt %d a minute later: %s", i+1, answer(err))
		}
	}
}
