// Package guessing slows down attackers who guess passwords and codes.
//
// The first limit counts attempts for the typed name together with the caller's network, and its waits grow steeply. It
// counts what was typed and not the account, so that an attacker does not learn after a few guesses which names belong
// to one person. The second limit counts attempts for the account, over all its names. It starts much later and has a
// low ceiling: guesses from many networks cost time, but a stranger cannot lock the owner out. It does not apply to
// networks from which the owner has signed in before.
//
// Attempts that are still running count as failures, so that parallel guesses count each other. From a network where
// the owner has signed in before, several attempts may run at once, so that right passwords sent together all succeed.
//
// An attempt is Entered in a command of its own before anything is checked, and ends as Failed, Succeeded or TakenBack.
package guessing

import (
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/stored"
)

const (
	goodRunning   = 20
	forgetAfter   = time.Hour // without an attempt
	rememberGood  = 90 * 24 * time.Hour
	renewGood     = 24 * time.Hour // what is remembered is written again when it is so old
	runningAtMost = time.Minute    // an attempt that runs longer was abandoned
)

// SignInThrottled is the reason of a refusal before any work is done.
const SignInThrottled errs.Reason = "SIGN_IN_THROTTLED"

func errThrottled(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: SignInThrottled, RetryAfter: wait,
		Message: "too many failed attempts: wait " + errs.Seconds(wait) + " s before the next one"}
}

// Aim is what an attempt is made at.
type Aim struct {
	// Typed is what the caller has sent, in a form that follows from nothing else: not from the user that it leads to.
	// The version of the password is the one exception: a new password starts afresh.
	Typed []string
	// Account is what counts over all networks and names: the user and the version of the password, or what was typed
	// where nobody has it.
	Account []string
	// Trusted is what a network is remembered for that somebody has come in from.
	Trusted []string
	// Report is told of every attempt that was decided, in its command. Nil: it is only counted.
	Report func(tx *event.Tx, r Report) error
}

// At is an aim at something that has only one name.
func At(account ...string) Aim { return Aim{Typed: account, Account: account, Trusted: account} }

// Report is what became of an attempt, and what happened since the last report.
type Report struct {
	Failed  bool  // it was wrong; else it was right
	Earlier int64 // wrong attempts that a node of the version before has counted and not reported
	Refused int64 // attempts that were turned away unheard
	Guessed int64 // wrong codes of a day, when no more of them are heard: nothing else is reported with it
}

// Throttle slows down attempts on one account from one network.
type Throttle struct {
	Limits struct{ Network, Account Limits }

	pair    stored.Counter[counter] // what was typed, with the network
	account stored.Counter[counter]
	good    stored.Counter[remembered] // whether somebody came in from the network
	day     *stored.Counter[guesses]   // what is counted by the day besides; nil: nothing
	report  func(tx *event.Tx, r Report) error
	started int64 // when the attempt was counted
}

// New gives a throttle for an attempt from a network. Only MACs are stored.
func New(master secret.MasterKey, a Aim, network string) *Throttle {
	return &Throttle{report: a.Report,
		pair:    stored.Of[counter](master, "throttle typed", append(slices.Clip(a.Typed), network)...),
		account: stored.Of[counter](master, "throttle", a.Account...),
		good:    stored.Of[remembered](master, "throttle", append(slices.Clip(a.Trusted), network)...),
	}
}

// Key stands for the account, and tells nothing about it.
func (t *Throttle) Key() string { return t.account.Row.Key }

// remembered is what the row of an account and a network holds that somebody signed in from.
type remembered struct {
	Good bool `json:"g"`
}

// Rows are what a command has to declare.
func (t *Throttle) Rows() []event.RowKey {
	rows := []event.RowKey{t.pair.Row, t.account.Row, t.good.Row}
	if t.day != nil {
		rows = append(rows, t.day.Row)
	}
	return rows
}

// counted is what the rows of a throttle hold.
type counted struct {
	pair, account counter
	good          bool
	day           guesses
}

func (t *Throttle) load(tx *event.Tx) (c counted, err error) {
	if c.pair, err = load(tx, t.pair); err != nil {
		return c, err
	}
	if c.account, err = load(tx, t.account); err != nil {
		return c, err
	}
	kept, err := t.good.Get(tx)
	if c.good = kept.Good; err != nil || t.day == nil {
		return c, err
	}
	c.day, err = t.day.Get(tx)
	c.day.forget(tx.Now())
	return c, err
}

func load(tx *event.Tx, from stored.Counter[counter]) (c counter, err error) {
	c, err = from.Get(tx)
	if tx.Now() >= c.Last+forgetAfter.Microseconds() {
		c.Failures, c.Until, c.Running = 0, 0, nil
	}
	c.Running = slices.DeleteFunc(c.Running, func(r running) bool {
		return tx.Now() >= r.Started+runningAtMost.Microseconds()
	})
	return c, err
}

func (t *Throttle) save(tx *event.Tx, c counted) {
	save(tx, t.pair, c.pair)
	save(tx, t.account, c.account)
	switch {
	case t.day == nil:
	case len(c.day.Failed) == 0 && len(c.day.Running) == 0:
		t.day.Drop(tx)
	default:
		t.day.Put(tx, c.day, guessedDay)
	}
}

// save keeps a counter as long as it is good for anything.
func save(tx *event.Tx, in stored.Counter[counter], c counter) {
	if c.Failures == 0 && len(c.Running) == 0 && c.UnreportedFailures == 0 && c.UnreportedRefusals == 0 {
		in.Drop(tx)
		return
	}
	in.Put(tx, c, forgetAfter)
}

// Enter counts an attempt before it is made, so that parallel guesses count each other, or says how long to wait. It
// needs the Rows and nothing else, and reports nothing: so a caller who is refused cannot tell from the time of the
// answer whether there is such an account. Refused attempts are reported with the next attempt that is let through.
func (t *Throttle) Enter(tx *event.Tx) (refusal error, err error) {
	c, err := t.load(tx)
	if err != nil {
		return nil, err
	}
	now := tx.Now()
	c.pair.Last, c.account.Last = now, now
	until := c.pair.until()
	if !c.good {
		until = max(until, c.account.until())
	}
	switch {
	case now < until:
		refusal = errThrottled(time.Duration(until-now) * time.Microsecond)
	case t.day != nil && !c.good:
		refusal = c.day.enter(now)
	}
	if refusal != nil {
		c.account.UnreportedRefusals++
		t.save(tx, c)
		return refusal, nil
	}
	t.started = now
	c.pair.begin(now, t.Limits.Network, c.good)
	c.account.begin(now, t.Limits.Account, false)
	t.save(tx, c)
	return nil, nil
}

// Failed makes the attempt a failure and records it.
func (t *Throttle) Failed(tx *event.Tx) error {
	c, err := t.load(tx)
	if err != nil {
		return err
	}
	c.pair.fail(t.started, t.Limits.Network)
	c.account.fail(t.started, t.Limits.Account)
	if err := t.say(tx, &c.account, true); err != nil {
		return err
	}
	if err := c.day.failed(tx, t); err != nil {
		return err
	}
	t.save(tx, c)
	return nil
}

// TakenBack undoes the count of an attempt that was not made after all.
func (t *Throttle) TakenBack(tx *event.Tx) error {
	c, err := t.load(tx)
	if err != nil {
		return err
	}
	t.forget(&c)
	t.save(tx, c)
	return nil
}

// forget takes a running attempt out of all counts.
func (t *Throttle) forget(c *counted) {
	c.pair.end(t.started)
	c.account.end(t.started)
	c.day.end(t.started)
}

// Succeeded takes the attempt back and forgives what was typed its failures in this network, not what is still running.
func (t *Throttle) Succeeded(tx *event.Tx) error {
	c, err := t.load(tx)
	if err != nil {
		return err
	}
	t.forget(&c)
	c.pair = counter{Last: c.pair.Last, Running: c.pair.Running}
	if err := t.say(tx, &c.account, false); err != nil {
		return err
	}
	t.save(tx, c)
	row, err := tx.Row(t.good.Row)
	if err != nil || c.good && row.Expires > tx.Now()+(rememberGood-renewGood).Microseconds() {
		return err
	}
	t.MarkGood(tx)
	return nil
}

// MarkGood remembers the network. The command need not have declared the row.
func (t *Throttle) MarkGood(tx *event.Tx) { t.good.Put(tx, remembered{Good: true}, rememberGood) }

// say reports how an attempt ended.
func (t *Throttle) say(tx *event.Tx, c *counter, failed bool) error {
	if t.report == nil {
		return nil
	}
	r := Report{Failed: failed, Earlier: c.UnreportedFailures, Refused: c.UnreportedRefusals}
	c.UnreportedFailures, c.UnreportedRefusals = 0, 0
	return t.report(tx, r)
}
