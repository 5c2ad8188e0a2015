package guessing

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Codes of six digits are soon guessed by whoever has the password and many networks: a wait that ends, and a count
// that is forgotten, only spread the guesses over the day. So from networks that nobody has proven a second factor of
// the user from before, only so many wrong codes are heard within a day, all of these networks together, and the owner
// is told. Each kind of code has its own count, so that guesses at one kind do not keep the owner from using another.
const (
	GuessesADay = 10
	guessedDay  = 24 * time.Hour
)

// allowance is how many wrong codes of one kind are heard within a day from networks that are not known.
type allowance struct {
	row event.RowKey
}

// ByTheDay gives the throttle an allowance for the day, besides, of attempts from networks that are not known.
func (t *Throttle) ByTheDay(master secret.MasterKey, a Aim) {
	t.day = &allowance{row: rowOf(master, "guesses of a day", a.Account)}
}

// guesses is what the row of an allowance holds.
type guesses struct {
	Failed  []int64 `json:"f,omitempty"` // when the wrong ones of the last day were made, the first one first
	Running []int64 `json:"r,omitempty"` // when those without a verdict yet began
	Told    int64   `json:"t,omitempty"` // when the owner was told the last time
}

func (a *allowance) load(tx *event.Tx) (g guesses, err error) {
	if err := readRow(tx, a.row, &g); err != nil {
		return g, err
	}
	g.Failed = slices.DeleteFunc(g.Failed, func(at int64) bool { return tx.Now() >= at+guessedDay.Microseconds() })
	g.Running = slices.DeleteFunc(g.Running, func(at int64) bool { return tx.Now() >= at+runningAtMost.Microseconds() })
	return g, nil
}

func (a *allowance) save(tx *event.Tx, g guesses) error {
	if len(g.Failed) == 0 && len(g.Running) == 0 {
		tx.DropRow(a.row)
		return nil
	}
	value, err := json.Marshal(g)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: a.row, Value: value, Expires: tx.Now() + guessedDay.Microseconds()})
	return nil
}

// enter counts a guess before it is made, or refuses it.
func (a *allowance) enter(g *guesses, now int64) error {
	if len(g.Failed) >= GuessesADay {
		return errGuesses(time.Duration(g.Failed[0]+guessedDay.Microseconds()-now) * time.Microsecond)
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
func (a *allowance) failed(tx *event.Tx, g *guesses, t *Throttle) error {
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
			"use a network on which you have proven one, or wait " + seconds(wait) + " s"}
}
