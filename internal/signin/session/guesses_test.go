package session

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/guessing"
)

// guess sends an answer in a session, from the n-th of many networks, and tells what comes of it.
func (a *armed) guess(t *testing.T, me *access.Caller, what Answer, n int) string {
	t.Helper()
	_, err := a.sessions.Prove(t.Context(), me, what, From{Peer: net(n)})
	return answer(err)
}

// exhaust makes as many wrong guesses as are heard within a day.
func (a *armed) exhaust(t *testing.T, me *access.Caller, wrong Answer) {
	t.Helper()
	for i := range guessing.GuessesADay {
		if got := a.guess(t, me, wrong, i); got != "INVALID_REQUEST" {
			t.Fatalf("guess %d: %s", i+1, got)
		}
	}
}

func TestAFewWrongCodesADayAreHeardFromAllNetworksThatAreNotKnown(t *testing.T) {
	for name, wrongOf := range map[string]func(*armed) Answer{"app": wrongApp, "recovery code": wrongRecovery} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			wrong := wrongOf(a)
			me := as(t, a.sessions, signIn(t, a.sessions).Token)
			a.exhaust(t, me, wrong)
			right := map[string]Answer{"totpCode": a.code(), "recoveryCode": {RecoveryCode: a.codes[0]}}[wrong.field()]
			for _, sent := range []Answer{wrong, right} {
				if got := a.guess(t, me, sent, 1000); got != "SIGN_IN_THROTTLED 24h0m0s" {
					t.Errorf("one more: %s", got)
				}
			}
			// What is forgotten after an hour is forgotten, and this is not.
			a.Advance(23 * time.Hour)
			me = as(t, a.sessions, signIn(t, a.sessions).Token)
			if got := a.guess(t, me, wrong, 1001); got != "SIGN_IN_THROTTLED 1h0m0s" {
				t.Errorf("an hour before: %s", got)
			}
			a.Advance(time.Hour)
			wrong = wrongOf(a)
			a.exhaust(t, me, wrong)
			if got := a.guess(t, me, wrong, 1002); got != "SIGN_IN_THROTTLED 24h0m0s" {
				t.Errorf("on the next day: %s", got)
			}
		})
	}
}

func TestGuessesFromManyNetworksAtOnceCountEachOther(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, signIn(t, a.sessions).Token)
	wrong := wrongApp(a)
	count := atOnce(64, func(i int) string { return a.guess(t, me, wrong, i) })
	if count["INVALID_REQUEST"] != guessing.GuessesADay ||
		count["SIGN_IN_THROTTLED 1s"]+count["SIGN_IN_THROTTLED 24h0m0s"] != 64-guessing.GuessesADay {
		t.Errorf("got %v", count)
	}
}

// Whoever guesses must not be able to keep the owner out.
func TestWaysInThatGuessesAtCodesLeaveToTheOwner(t *testing.T) {
	stranger := From{Peer: net(1000)}
	for _, c := range []struct {
		name string
		want string
		try  func(t *testing.T, a *armed, me *access.Caller) error
	}{
		{"the same kind of code", "SIGN_IN_THROTTLED 24h0m0s", func(t *testing.T, a *armed, me *access.Caller) error {
			_, err := a.sessions.Prove(t.Context(), me, a.code(), stranger)
			return err
		}},
		{"a passkey", "in", func(t *testing.T, a *armed, me *access.Caller) error {
			_, err := a.sessions.Prove(t.Context(), me, a.assertion(t, me), stranger)
			return err
		}},
		{"a recovery code", "in", func(t *testing.T, a *armed, me *access.Caller) error {
			_, err := a.sessions.Prove(t.Context(), me, Answer{RecoveryCode: a.codes[0]}, stranger)
			return err
		}},
		{"a network where a code was proven before", "in", func(t *testing.T, a *armed, me *access.Caller) error {
			_, err := a.sessions.Prove(t.Context(), me, a.code(), fromHome)
			return err
		}},
		{"a network where a passkey let somebody in", "in", func(t *testing.T, a *armed, me *access.Caller) error {
			options, err := a.sessions.StartPasskeySignIn()
			must(t, err)
			assertion, err := a.device.Get(options)
			must(t, err)
			_, err = a.sessions.SignInWithPasskey(t.Context(),
				PasskeyAttempt{Assertion: assertion, Peer: stranger.Peer})
			must(t, err)
			_, err = a.sessions.Prove(t.Context(), me, a.code(), stranger)
			return err
		}},
		{"a network where only the password was right", "SIGN_IN_THROTTLED 24h0m0s",
			func(t *testing.T, a *armed, _ *access.Caller) error {
				in, err := a.sessions.SignIn(t.Context(), try("jo", right, stranger.Peer))
				must(t, err)
				_, err = a.sessions.Prove(t.Context(), as(t, a.sessions, in.Token), a.code(), stranger)
				return err
			}},
		{"a new password", "in", func(t *testing.T, a *armed, _ *access.Caller) error {
			must(t, reset(t, a.sessions, "usr_jo", resetCode(t, a.Store), stranger.Peer))
			in, err := a.sessions.SignIn(t.Context(), try("jo", next, stranger.Peer))
			must(t, err)
			_, err = a.sessions.Prove(t.Context(), as(t, a.sessions, in.Token), a.code(), stranger)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := arm(t)
			known := as(t, a.sessions, signIn(t, a.sessions).Token)
			_, err := a.sessions.Prove(t.Context(), known, a.code(), fromHome)
			must(t, err)
			a.Advance(time.Minute) // each code counts once
			me := as(t, a.sessions, signIn(t, a.sessions).Token)
			a.exhaust(t, me, wrongApp(a))
			if got := answer(c.try(t, a, me)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheOwnerIsToldOnceADayThatCodesAreGuessed(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, signIn(t, a.sessions).Token)
	told := func(mark int64) (n int) {
		for _, e := range a.Since(t, mark) {
			if e.Type == "sign_in.second_factor_guessed.v1" {
				n++
			}
		}
		return n
	}
	mark := a.Mark()
	// Six digits would be found in identifiers by chance.
	unmistakable := Answer{TOTPCode: "a guess that is no code"}
	a.guess(t, me, unmistakable, 99)
	for i := range guessing.GuessesADay - 2 {
		a.guess(t, me, wrongApp(a), i)
	}
	if n := told(mark); n != 0 {
		t.Errorf("told %d times before the last guess", n)
	}
	a.Advance(11 * time.Hour)
	a.guess(t, me, wrongApp(a), 50)
	if n := told(mark); n != 1 {
		t.Errorf("told %d times after the last guess", n)
	}
	before := eventtest.State(t, a.Store, user.Kind, "usr_jo")
	a.Advance(13*time.Hour + time.Minute) // a day after the first ones
	me = as(t, a.sessions, signIn(t, a.sessions).Token)
	for i := range guessing.GuessesADay {
		a.guess(t, me, wrongApp(a), 100+i)
	}
	if n := told(mark); n != 1 {
		t.Errorf("told %d times within a day", n)
	}
	if after := eventtest.State(t, a.Store, user.Kind, "usr_jo"); after.Sequence != before.Sequence {
		t.Error("the user has changed")
	}
	if a.Stored(t, unmistakable.TOTPCode) {
		t.Error("the guess is stored")
	}
}
