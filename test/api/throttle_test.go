package api_test

import (
	"regexp"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var throttledAnswer = refused(codes.ResourceExhausted, "SIGN_IN_THROTTLED")

// freeAttempts is how often a password may be wrong before the next attempt has to wait.
const freeAttempts = 5

// untilThrottled sends a request that fails until it is turned away unheard. The waiting time doubles from one second,
// so that happens soon, however slow the machine is.
func untilThrottled(t *testing.T, w *World, over wire, as *Actor, req proto.Message,
	heardAs Want) (a *Answer, heard int) {
	t.Helper()
	for ; heard < 20; heard++ {
		if a = w.send(t, over, as, req, nil); a.code() == codes.ResourceExhausted {
			a.mustBe(t, throttledAnswer)
			return a, heard
		}
		if a.mustBe(t, heardAs); t.Failed() {
			t.FailNow()
		}
	}
	t.Fatal("nobody is ever turned away")
	return nil, 0
}

var digits = regexp.MustCompile(`\d+`)

// throttled: guessing is slowed down alike for names that exist and names that do not, over every content type.
func throttled(t *testing.T, w *World) {
	s := w.scene(t)
	guess := w.secret("guess")
	var summary string
	for _, name := range []string{s.user.LoginName, unique("nobody") + "@" + s.domain,
		unique("nobody") + "@" + unique("nowhere") + ".example"} {
		for i, wire := range w.wires {
			a, heard := untilThrottled(t, w, wire, nil, signIn(name, guess), signInFailed)
			if i == 0 && heard < freeAttempts {
				t.Errorf("%s: turned away after %d attempts", name, heard)
			}
			got := digits.ReplaceAllString(a.summary(), "n")
			if summary == "" {
				summary = got
			}
			same(t, wire.name()+" "+name, got, summary)
		}
	}
	// It ends no session, and neither changes the user.
	c := &Client{w, w.rest}
	same(t, "state", c.me(t, s.user).GetState(), signetv1.User_STATE_ACTIVE)
	// Somebody else is not held up.
	c.session(t, s.owner)
}

// timeless is a world of its own in which no time passes, so no wait is over before somebody has looked at it.
func (w *World) timeless(t *testing.T) *World {
	t.Helper()
	clock := testkit.NewClock(time.Now())
	return openWorld(t, testdb.New(t, w.db.Engine), func(c *server.Config) { c.Clock = clock.Now })
}

// throttleParallel: guesses at the same time count each other.
func throttleParallel(t *testing.T, w *World) {
	s := w.scene(t)
	for _, name := range []string{s.user.LoginName, unique("nobody") + "@" + s.domain} {
		answers := make([]*Answer, 24)
		begun := time.Now()
		var wait sync.WaitGroup
		for i := range answers {
			wait.Go(func() { answers[i] = w.send(t, w.wires[i%len(w.wires)], nil, signIn(name, "guess"), nil) })
		}
		wait.Wait()
		// On a slow machine the first waits may be over before the last guess comes.
		most := freeAttempts
		for wait := time.Second; time.Since(begun) > wait; wait = 2*wait + time.Second {
			most++
		}
		heard := 0
		for _, a := range answers {
			if a.code() == codes.Unauthenticated {
				a.mustBe(t, signInFailed)
				heard++
			} else {
				a.mustBe(t, throttledAnswer)
			}
		}
		if heard < freeAttempts || heard > most {
			t.Errorf("%s: %d guesses were heard, want %d to %d", name, heard, freeAttempts, most)
		}
	}
}

// throttleChange: a wrong current password counts like a failed sign-in, and the right one does not help then.
func throttleChange(t *testing.T, w *World) {
	w = w.timeless(t)
	s := w.newScene(t)
	as := w.signedIn(t, w.addUser(t, person{Org: s.org, Domain: s.domain}))
	for range freeAttempts {
		w.send(t, w.rest, as, changePassword("wrong", "kettle-brume"), nil).mustBe(t, invalid("currentPassword"))
	}
	w.send(t, w.grpc, as, changePassword(as.Password, "kettle-brume"), nil).mustBe(t, throttledAnswer)
	w.send(t, w.rest, nil, signIn(as.LoginName, as.Password), nil).mustBe(t, throttledAnswer)
	w.send(t, w.rest, as, profile(), nil).mustBe(t, ok) // all else goes on
}

// throttleCleared: who gets a new password need not wait for the old one's guesses.
func throttleCleared(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	as := w.addUser(t, person{Org: s.org, Domain: s.domain})
	for range 2 {
		untilThrottled(t, w, w.rest, nil, signIn(as.LoginName, "guess"), signInFailed)
		as.Password = w.secret("cleared")
		done[*signetv1.SetUserPasswordResponse](t, c, s.owner,
			with(setPassword(as.UserID, as.Password), "noChangeRequired", true))
		c.session(t, as)
	}
}
