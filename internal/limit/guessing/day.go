package guessing

import (
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/stored"
)

// An attacker who has the password and many networks soon guesses a code of six digits: a wait that ends, and a count
// that is forgotten, only spread the guesses over the day. So from networks that nobody has proven a second factor of
// the user from before, only so many wrong codes are checked within a day, all of these networks together, and the
// owner is told. Each kind of code has its own count, so that guesses at one kind do not keep the owner from using
// another.
const (
	GuessesADay = 10
	guessedDay  = 24 * time.Hour
)

// ByTheDay gives the throttle an allowance for the day, besides, of attempts from networks that are not known.
func (t *Throttle) ByTheDay(master secret.MasterKey, a Aim) {
	day := stored.Of[guesses](master, "guesses of a day", a.Account...)
	t.day = &day
}

// guesses are those of one kind from networks that are not known.
type guesses struct {
	Failed  stored.Window `json:"f,omitempty"` // the wrong ones of the last day
	Running stored.Window `json:"r,omitempty"` // when those without a verdict yet began
	Told    int64         `json:"t,omitempty"` // when the owner was told the last time
}

func (g *guesses) forget(now int64) {
	g.Failed = g.Failed.Since(now, guessedDay)
	g.Running = g.Running.Since(now, runningAtMost)
}

// enter counts a guess before it is made, or refuses it.
func (g *guesses) enter(now int64) error {
	if wait := g.Failed.Wait(now, GuessesADay, guessedDay); wait > 0 {
		return errGuesses(wait)
	}
	if len(g.Failed)+len(g.Running) >= GuessesADay { // all the others may be wrong
		return errThrottled(time.Second)
	}
	g.Running = append(g.Running, now)
	return nil
}

// end forgets a running guess. It is not there where the network is a known one.
func (g *guesses) end(started int64) (found bool) {
	i := slices.Index(g.Running, started)
	if i < 0 {
		return false
	}
	g.Running = slices.Delete(g.Running, i, i+1)
	return true
}

// failed makes a failure of a running guess, and records the last one that is heard.
func (g *guesses) failed(tx *event.Tx, t *Throttle) error {
	if !g.end(t.started) {
		return nil
	}
	g.Failed = append(g.Failed, t.started)
	slices.Sort(g.Failed)
	if len(g.Failed) < GuessesADay || t.report == nil || (g.Told != 0 && tx.Now() < g.Told+guessedDay.Microseconds()) {
		return nil
	}
	g.Told = tx.Now()
	return t.report(tx, Report{Guessed: int64(len(g.Failed))})
}

func errGuesses(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: SignInThrottled, RetryAfter: wait,
		Message: "too many wrong codes came today from networks on which this user has not proven a second factor: use another second factor, " +
			"use a network on which you have proven one, or wait " + errs.Seconds(wait) + " s"}
}
