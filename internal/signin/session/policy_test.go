package session

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// strictWorld is world with a policy of the installation, and a policy for each organization that has one.
func strictWorld(t *testing.T, everywhere policy.Policy, orgs map[string]policy.Policy) (*eventtest.Store, *Sessions) {
	t.Helper()
	s, sessions := world(t)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_def", nil, installation.Added{DefaultOrg: "org_def"},
		installation.PolicySet{Diff: policy.Policy{}.DiffTo(everywhere)})
	for id, p := range orgs {
		eventtest.Given(t, s, org.Kind, id, "", nil, org.PolicySet{Diff: policy.Policy{}.DiffTo(p)})
	}
	return s, sessions
}

func TestASessionLivesAsLongAsThePolicySays(t *testing.T) {
	for _, c := range []struct {
		name             string
		everywhere, here policy.Policy
		life, shown      time.Duration // at most; when nobody uses it
	}{
		{"by default", policy.Policy{}, policy.Policy{}, Life, Life},
		{"longer in the installation", policy.Policy{SessionSeconds: 86400}, policy.Policy{}, 24 * time.Hour,
			24 * time.Hour},
		{"shorter in the organization", policy.Policy{SessionSeconds: 86400}, policy.Policy{SessionSeconds: 600},
			10 * time.Minute, 10 * time.Minute},
		{"not longer in the organization", policy.Policy{}, policy.Policy{SessionSeconds: 86400}, Life, Life},
		{"unused", policy.Policy{SessionIdleSeconds: 600}, policy.Policy{}, Life, 10 * time.Minute},
		{"unused, shorter in the organization", policy.Policy{SessionIdleSeconds: 600},
			policy.Policy{SessionIdleSeconds: 60}, Life, time.Minute},
		{"unused for longer than it lives", policy.Policy{SessionIdleSeconds: 86400},
			policy.Policy{SessionSeconds: 600}, 10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := strictWorld(t, c.everywhere, map[string]policy.Policy{"org_def": c.here})
			withPassword(t, s, usual())
			in := signIn(t, sessions)
			if got := in.Expires.Sub(s.Now()); got != c.shown {
				t.Errorf("it lives for %v, want %v", got, c.shown)
			}
			proof := proofOf(t, s, in)
			if (proof.Idle != 0) != (c.shown != c.life) ||
				proof.Idle != 0 && proof.Until != event.Micros(s.Now().Add(c.life)) {
				t.Errorf("kept %+v", proof)
			}
			s.Advance(c.shown - time.Microsecond)
			_, err := sessions.Authenticate(t.Context(), in.Token)
			must(t, err)
			s.Advance(time.Microsecond)
			_, err = sessions.Authenticate(t.Context(), in.Token)
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
}

func proofOf(t *testing.T, s *eventtest.Store, in SignedIn) Proof {
	t.Helper()
	token, err := s.TokenByID(t.Context(), in.SessionID)
	must(t, err)
	proof, err := ProofOf(token)
	must(t, err)
	return proof
}

// A session of twenty minutes that ends after ten without a use. Each step waits, then calls; some calls are refused
// later on.
func TestASessionThatIsUsedLivesOn(t *testing.T) {
	s, sessions := strictWorld(t, policy.Policy{SessionSeconds: 1200, SessionIdleSeconds: 600}, nil)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	began := s.Now()
	for i, step := range []struct {
		wait    time.Duration
		refused bool          // the request is
		expires time.Duration // afterwards, from the beginning on
	}{
		{30 * time.Second, false, 10 * time.Minute}, // less than a tenth is won: nothing is written
		{30 * time.Second, false, 11 * time.Minute},
		{0, false, 11 * time.Minute},
		{5 * time.Minute, true, 11 * time.Minute}, // a refused request is no use
		{4 * time.Minute, false, 20 * time.Minute},
		{9 * time.Minute, false, 20 * time.Minute}, // never longer than it lives
	} {
		s.Advance(step.wait)
		caller, err := sessions.Authenticate(t.Context(), in.Token)
		must(t, err)
		if caller.Used != nil && !step.refused {
			caller.Used()
		}
		token, err := s.TokenByID(t.Context(), in.SessionID)
		must(t, err)
		if got := event.Time(token.Expires).Sub(began); got.Round(time.Millisecond) != step.expires {
			t.Errorf("step %d: it expires after %v, want %v", i, got, step.expires)
		}
	}
	s.Advance(time.Minute)
	_, err := sessions.Authenticate(t.Context(), in.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
}

func TestTheLastTenthOfALifeIsNotLost(t *testing.T) {
	s, sessions := strictWorld(t, policy.Policy{SessionSeconds: 630, SessionIdleSeconds: 600}, nil)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	s.Advance(40 * time.Second) // only 30 of them are won
	caller, err := sessions.Authenticate(t.Context(), in.Token)
	must(t, err)
	caller.Used()
	token, err := s.TokenByID(t.Context(), in.SessionID)
	must(t, err)
	if want := proofOf(t, s, in).Until; token.Expires != want {
		t.Errorf("it expires %d µs before its end", want-token.Expires)
	}
	caller, err = sessions.Authenticate(t.Context(), in.Token)
	must(t, err)
	if caller.Used != nil {
		t.Error("there is something left to do")
	}
}

func TestWhatHasEndedIsNotRevived(t *testing.T) {
	for name, ends := range map[string]func(*testing.T, *eventtest.Store, *Sessions, SignedIn){
		"it expired": func(_ *testing.T, s *eventtest.Store, _ *Sessions, _ SignedIn) { s.Advance(2 * time.Minute) },
		"it was ended": func(t *testing.T, _ *eventtest.Store, sessions *Sessions, in SignedIn) {
			must(t, sessions.End(t.Context(), Own(&access.Caller{UserID: "usr_jo", OrgID: "org_def"}), in.SessionID))
		},
		"all were ended": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ SignedIn) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.SessionsEnded{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, sessions := strictWorld(t, policy.Policy{SessionIdleSeconds: 600}, nil)
			withPassword(t, s, usual())
			in := signIn(t, sessions)
			s.Advance(9 * time.Minute)
			caller, err := sessions.Authenticate(t.Context(), in.Token)
			must(t, err)
			ends(t, s, sessions, in) // while the request runs
			caller.Used()
			_, err = sessions.Authenticate(t.Context(), in.Token)
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
}

// counting counts the commands of a store, and holds them up until they may go on.
type counting struct {
	event.Store
	mu   sync.Mutex
	n    int
	gate chan struct{}
}

func (c *counting) Do(ctx context.Context, command event.Command) error {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	if c.gate != nil {
		<-c.gate
	}
	return c.Store.Do(ctx, command)
}

func TestWhereThereIsNoIdleLifeAUseWritesNothing(t *testing.T) {
	s, sessions := strictWorld(t, policy.Policy{}, nil)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	s.Advance(11 * time.Hour)
	caller, err := sessions.Authenticate(t.Context(), in.Token)
	must(t, err)
	if caller.Used != nil {
		t.Error("there is something to do after every request")
	}
	person(t, s, "usr_ann", "org_def", "ann", "")
	// sessions from before there was a proof, and tokens
	for _, kind := range []secret.TokenKind{secret.Session, secret.PAT} {
		caller, err := sessions.Authenticate(t.Context(), give(s, "tok_"+string(kind), "usr_ann", kind))
		must(t, err)
		if caller.Used != nil {
			t.Errorf("%s: there is something to do", kind)
		}
	}
}

func TestManyUsesAtOnceRenewOnce(t *testing.T) {
	s, sessions := strictWorld(t, policy.Policy{SessionIdleSeconds: 600}, nil)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	began := s.Now()
	s.Advance(5 * time.Minute)
	slow := &counting{Store: s, gate: make(chan struct{})}
	beside := *sessions
	beside.Store, beside.Renewals = slow, &Renewals{}
	for range 100 {
		caller, err := beside.Authenticate(t.Context(), in.Token)
		must(t, err)
		caller.Used() // does not wait for the store
	}
	close(slow.gate)
	beside.Renewals.Stop()
	if slow.n != 1 {
		t.Errorf("%d commands", slow.n)
	}
	token, err := s.TokenByID(t.Context(), in.SessionID)
	must(t, err)
	if got := event.Time(token.Expires).Sub(began).Round(time.Millisecond); got != 15*time.Minute {
		t.Errorf("it expires after %v", got)
	}
}

func TestAStopWaitsForRenewalsAndIsTheLastOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Renewals{}
		gate, renewed, stopped := make(chan struct{}), 0, make(chan struct{})
		renew := func() {
			<-gate
			renewed++
		}
		r.Run("ses_1", renew)
		go func() {
			r.Stop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("it did not wait")
		default:
		}
		close(gate)
		<-stopped
		r.Run("ses_2", renew)
		synctest.Wait()
		if renewed != 1 {
			t.Errorf("%d were renewed", renewed)
		}
	})
}

// heard counts the attempts that are heard before one has to wait, from one network or from one after the other.
func heard(t *testing.T, sessions *Sessions, a Attempt, manyNetworks bool) int {
	t.Helper()
	for n := range 2000 {
		if manyNetworks {
			a.Peer = netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
		}
		switch _, err := sessions.SignIn(t.Context(), a); errs.KindOf(err) {
		case errs.ResourceExhausted:
			return n
		case errs.Unauthenticated:
		default:
			t.Fatal(err)
		}
	}
	return -1
}

func TestThePolicyOfTheOrganizationThatANameLeadsToSlowsGuessesDown(t *testing.T) {
	for _, c := range []struct {
		name, loginName, orgID string
		want                   int
	}{
		{"a user of the default organization", "jo", "", 3},
		{"by its domain", "jo@def.test", "", 3},
		{"nobody there", "nobody", "", 3},
		{"nobody there, by its domain", "nobody@def.test", "", 3},
		{"a user of another organization", "ann@b.test", "", 2},
		{"a user of another organization that is named", "ann", "org_b", 2},
		{"nobody there, which is named", "nobody", "org_b", 2},
		{"nobody at its domain", "nobody@b.test", "", 2},
		{"somebody of the default organization, by an address at its domain", "bob@b.test", "", 2},
		{"in an organization that is not there", "jo", "org_x", 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := strictWorld(t, policy.Policy{NetworkAttempts: 8},
				map[string]policy.Policy{"org_def": {NetworkAttempts: 3}, "org_b": {NetworkAttempts: 2}})
			for id, who := range map[string][3]string{"usr_jo": {"org_def", "jo", ""}, "usr_ann": {"org_b", "ann", ""},
				"usr_bob": {"org_def", "bob", "bob@b.test"}} {
				person(t, s, id, who[0], who[1], who[2])
				password(t, s, id, cheap(), user.PasswordSet{})
			}
			a := try(c.loginName, "wrong", home)
			a.OrgID = c.orgID
			if got := heard(t, sessions, a, false); got != c.want {
				t.Errorf("%d attempts were heard, want %d", got, c.want)
			}
		})
	}
}

func TestAllNumbersOfTheThrottleComeFromThePolicy(t *testing.T) {
	s, sessions := strictWorld(t,
		policy.Policy{AccountAttempts: 12, AccountWaitSeconds: 2, NetworkAttempts: 1, NetworkWaitSeconds: 60}, nil)
	withPassword(t, s, cheap())
	if got := heard(t, sessions, try("jo", "wrong", home), true); got != 12 {
		t.Errorf("%d attempts from many networks were heard", got)
	}
	longest := func(peer netip.Addr) (longest time.Duration) {
		for range 60 {
			_, err := sessions.SignIn(t.Context(), try("jo", "wrong", peer))
			if wait := retryAfter(err); wait > 0 {
				longest = max(longest, wait)
				s.Advance(wait)
			}
		}
		return longest
	}
	if got := longest(home); got != time.Minute {
		t.Errorf("a network waits for %v", got)
	}
	s.Advance(2 * time.Second)
	var waits time.Duration
	for i := range 20 {
		_, err := sessions.SignIn(t.Context(), try("jo", "wrong", netip.AddrFrom4([4]byte{10, 9, 0, byte(i)})))
		waits = max(waits, retryAfter(err))
	}
	if waits != 2*time.Second {
		t.Errorf("an account waits for %v", waits)
	}
}

func retryAfter(err error) time.Duration {
	if e, ours := err.(*errs.Error); ours {
		return e.RetryAfter
	}
	return 0
}

func TestAChangeOfThePasswordFollowsThePolicy(t *testing.T) {
	s, sessions := strictWorld(t, policy.Policy{PasswordMinLength: 8, NetworkAttempts: 2},
		map[string]policy.Policy{"org_def": {PasswordMinLength: 10, CommonPasswordsRefused: true}})
	withPassword(t, s, usual())
	jo := &access.Caller{UserID: "usr_jo", OrgID: "org_def"}
	before := s.Fingerprint()
	for _, next := range []string{"123456789", "Password123"} {
		_, err := sessions.ChangePassword(t.Context(), jo, event.IfMatch{},
			ChangePassword{Current: "wrong", New: next, Peer: home})
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "newPassword")
	}
	if s.Fingerprint() != before {
		t.Error("something was written: a password that nobody may have is no guess at the current one")
	}
	for range 2 {
		_, err := sessions.ChangePassword(t.Context(), jo, event.IfMatch{},
			ChangePassword{Current: "wrong", New: "harder to guess", Peer: home})
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "currentPassword")
	}
	_, err := sessions.ChangePassword(t.Context(), jo, event.IfMatch{},
		ChangePassword{Current: right, New: "harder to guess", Peer: home})
	eventtest.Refused(t, err, errs.ResourceExhausted, SignInThrottled)
	s.Advance(time.Second)
	_, err = sessions.ChangePassword(t.Context(), jo, event.IfMatch{},
		ChangePassword{Current: right, New: "harder to guess", Peer: home})
	must(t, err)
}

// What is required counts from the next request on, and no longer than it is required.
func TestASecondFactorThatIsRequiredRestrictsOpenSessionsAtOnce(t *testing.T) {
	s, sessions := strictWorld(t, policy.Policy{}, nil)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	required, not := policy.Policy{}.DiffTo(policy.Policy{SecondFactorRequired: true}),
		policy.Policy{SecondFactorRequired: true}.DiffTo(policy.Policy{})
	everywhere := func(c policy.Diff) func() {
		return func() {
			eventtest.Given(t, s, installation.Kind, installation.ID, "", nil, installation.PolicySet{Diff: c})
		}
	}
	at := func(id string, c policy.Diff) func() {
		return func() { eventtest.Given(t, s, org.Kind, id, "", nil, org.PolicySet{Diff: c}) }
	}
	for i, step := range []struct {
		happens    func()
		restricted bool
	}{
		{func() {}, false},
		{everywhere(required), true},
		{at("org_def", required), true},
		{everywhere(not), true},
		{at("org_def", not), false},
		{at("org_b", required), false}, // somebody else's
	} {
		step.happens()
		caller, err := sessions.Authenticate(t.Context(), in.Token)
		must(t, err)
		if caller.MustProveSecondFactor != step.restricted {
			t.Error(fmt.Sprint("step ", i, ": restricted: ", caller.MustProveSecondFactor))
		}
	}
}
