// Package guessing slows down whoever guesses passwords and codes.
//
// What was typed, together with the caller's network, is slowed down first, and steeply: so what is seen after a few
// guesses does not tell which names are one person's. The account alone, over all its names, follows much later and
// with a low ceiling, so that guesses from many networks cost time but a stranger cannot keep the owner out; a network
// the owner has come in from is not held up by it at all.
//
// Attempts that are still running count like failures, so that parallel guesses count each other. Where the owner has
// come in before, so many may run at once that right passwords sent together are all heard.
//
// An attempt is Entered in a command of its own before anything is checked, and ends as Failed, Succeeded or TakenBack.
package guessing

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	goodRunning   = 20
	forgetAfter   = time.Hour // without an attempt
	rememberGood  = 90 * 24 * time.Hour
	renewGood     = 24 * time.Hour // what is remembered is written again when it is so old
	mergeWindow   = time.Minute
	runningAtMost = time.Minute // then whoever ran the attempt is gone
)

// SignInThrottled is the reason of a refusal before any work is done.
const SignInThrottled errs.Reason = "SIGN_IN_THROTTLED"

func errThrottled(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: SignInThrottled, RetryAfter: wait,
		Message: "too many failed attempts: wait " + seconds(wait) + " s before the next one"}
}

// seconds gives a wait in whole seconds, rounded up.
func seconds(wait time.Duration) string {
	return strconv.Itoa(int((wait + time.Second - 1) / time.Second))
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
	// Report records what has gathered. Nil: it is only counted.
	Report func(tx *event.Tx, r Report) error
}

// At is an aim at something that has only one name.
func At(account ...string) Aim { return Aim{Typed: account, Account: account, Trusted: account} }

// Report is what happened since the last one.
type Report struct {
	Failed  int64 // wrong attempts
	Refused int64 // attempts that were turned away unheard
	Guessed int64 // wrong codes of a day, when no more of them are heard
}

// Throttle slows down attempts on one account from one network.
type Throttle struct {
	Limits struct{ Network, Account Limits }

	pairRow    event.RowKey // what was typed, with the network
	accountRow event.RowKey
	goodRow    event.RowKey // whether somebody came in from the network
	day        *allowance   // what is counted by the day besides; nil: nothing
	report     func(tx *event.Tx, r Report) error
	started    int64 // when the attempt was counted
}

// New gives a throttle for an attempt from a network. Only MACs are stored.
func New(master secret.MasterKey, a Aim, network string) *Throttle {
	return &Throttle{report: a.Report,
		pairRow:    rowOf(master, "throttle typed", a.Typed, network),
		accountRow: rowOf(master, "throttle", a.Account),
		goodRow:    rowOf(master, "throttle", a.Trusted, network),
	}
}

func rowOf(master secret.MasterKey, purpose string, of []string, more ...string) event.RowKey {
	parts := make([][]byte, 0, len(of)+len(more))
	for _, p := range append(slices.Clip(of), more...) {
		parts = append(parts, []byte(p))
	}
	return event.RowKey{Table: event.Throttle, Key: hex.EncodeToString(master.MAC(purpose, parts...))}
}

// Key stands for the account, and tells nothing about it.
func (t *Throttle) Key() string { return t.accountRow.Key }

// remembered is what the row of an account and a network holds that somebody signed in from.
type remembered struct {
	Good bool `json:"g"`
}

// Rows are what a command has to declare.
func (t *Throttle) Rows() []event.RowKey {
	rows := []event.RowKey{t.pairRow, t.accountRow, t.goodRow}
	if t.day != nil {
		rows = append(rows, t.day.row)
	}
	return rows
}

// counted is what the rows of a throttle hold.
type counted struct {
	pair, account counter
	good          bool
	goodUntil     int64
	day           guesses
}

func (t *Throttle) load(tx *event.Tx) (c counted, err error) {
	for _, of := range []struct {
		key  event.RowKey
		into *counter
	}{{t.pairRow, &c.pair}, {t.accountRow, &c.account}} {
		if err := readRow(tx, of.key, of.into); err != nil {
			return c, err
		}
		if tx.Now() >= of.into.Last+forgetAfter.Microseconds() {
			of.into.Failures, of.into.Until, of.into.Running = 0, 0, nil
		}
		of.into.Running = slices.DeleteFunc(of.into.Running, func(r running) bool { return tx.Now() >= r.Started+runningAtMost.Microseconds() })
	}
	row, err := tx.Row(t.goodRow)
	if err != nil {
		return c, err
	}
	if row != nil {
		var kept remembered
		if err := json.Unmarshal(row.Value, &kept); err != nil {
			return c, err
		}
		c.good, c.goodUntil = kept.Good, row.Expires
	}
	if t.day != nil {
		c.day, err = t.day.load(tx)
	}
	return c, err
}

// readRow reads what a row holds, if there is one.
func readRow(tx *event.Tx, key event.RowKey, into any) error {
	row, err := tx.Row(key)
	if err != nil || row == nil {
		return err
	}
	return json.Unmarshal(row.Value, into)
}

func (t *Throttle) save(tx *event.Tx, c counted) error {
	err := errors.Join(put(tx, t.pairRow, c.pair), put(tx, t.accountRow, c.account))
	if t.day != nil {
		err = errors.Join(err, t.day.save(tx, c.day))
	}
	return err
}

// put keeps a counter as long as it is good for anything.
func put(tx *event.Tx, key event.RowKey, c counter) error {
	if c.Failures == 0 && len(c.Running) == 0 && c.UnreportedFailures == 0 && c.UnreportedRefusals == 0 && c.LastEvent == 0 {
		tx.DropRow(key)
		return nil
	}
	value, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: key, Value: value, Expires: tx.Now() + forgetAfter.Microseconds()})
	return nil
}

// Enter counts an attempt before it is made, so that parallel guesses count each other, or says how long to wait. It
// needs the Rows and nothing else, and reports nothing: so whoever is turned away cannot tell from the time that takes
// whether there is such an account. What was turned away is reported with the next attempt that is heard.
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
		refusal = t.day.enter(&c.day, now)
	}
	if refusal != nil {
		c.account.UnreportedRefusals++
		return refusal, t.save(tx, c)
	}
	t.started = now
	c.pair.begin(now, t.Limits.Network, c.good)
	c.account.begin(now, t.Limits.Account, false)
	return nil, t.save(tx, c)
}

// Failed makes the attempt a failure and records it.
func (t *Throttle) Failed(tx *event.Tx) error {
	c, err := t.load(tx)
	if err != nil {
		return err
	}
	c.pair.fail(t.started, t.Limits.Network)
	c.account.fail(t.started, t.Limits.Account)
	c.account.UnreportedFailures++
	if err := t.say(tx, &c.account); err != nil {
		return err
	}
	if t.day != nil {
		if err := t.day.failed(tx, &c.day, t); err != nil {
			return err
		}
	}
	return t.save(tx, c)
}

// TakenBack undoes the count of an attempt that was not made after all.
func (t *Throttle) TakenBack(tx *event.Tx) error {
	c, err := t.load(tx)
	if err != nil {
		return err
	}
	t.forget(&c)
	return t.save(tx, c)
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
	last := c.account.LastEvent
	c.account.LastEvent = 0 // whatever is unsaid is said before the success
	if err := t.say(tx, &c.account); err != nil {
		return err
	}
	c.account.LastEvent = max(c.account.LastEvent, last)
	if c.good && c.goodUntil > tx.Now()+(rememberGood-renewGood).Microseconds() {
		return t.save(tx, c)
	}
	return errors.Join(t.MarkGood(tx), t.save(tx, c))
}

// MarkGood remembers the network. The command need not have declared the row.
func (t *Throttle) MarkGood(tx *event.Tx) error {
	value, err := json.Marshal(remembered{Good: true})
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: t.goodRow, Value: value, Expires: tx.Now() + rememberGood.Microseconds()})
	return nil
}

// say reports what has gathered, at most once a minute.
func (t *Throttle) say(tx *event.Tx, c *counter) error {
	if t.report == nil || (c.UnreportedFailures == 0 && c.UnreportedRefusals == 0) || tx.Now() < c.LastEvent+mergeWindow.Microseconds() {
		return nil
	}
	r := Report{Failed: c.UnreportedFailures, Refused: c.UnreportedRefusals}
	c.UnreportedFailures, c.UnreportedRefusals, c.LastEvent = 0, 0, tx.Now()
	return t.report(tx, r)
}
