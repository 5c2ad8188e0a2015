package session

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/policy"
)

// How guessing is slowed down. An account together with the caller's network is slowed down first, and steeply. The
// account alone follows much later and with a low ceiling, so that guesses from many networks cost time but a
// stranger cannot keep the owner out; a network the owner has come in from is not held up by it at all.
//
// Attempts that are still running count like failures, so that parallel guesses count each other. Where the owner has
// come in before, so many may run at once that right passwords sent together are all heard.
//
// How many attempts are free, and how long the waits are at most, is a matter of policy.
const (
	goodRunning   = 20
	forgetAfter   = time.Hour // without an attempt
	rememberGood  = 90 * 24 * time.Hour
	mergeWindow   = time.Minute
	runningAtMost = time.Minute // then whoever ran the attempt is gone
)

// SignInThrottled is the reason of a refusal before any work is done.
const SignInThrottled errs.Reason = "SIGN_IN_THROTTLED"

func errThrottled(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: SignInThrottled, RetryAfter: wait,
		Message: "too many failed attempts: wait " + strconv.Itoa(int((wait+time.Second-1)/time.Second)) + " s before the next one"}
}

// counter is what a throttle row holds.
type counter struct {
	Failures  int64     `json:"f,omitempty"` // wrong attempts
	Until     int64     `json:"u,omitempty"` // nothing is heard before, for the failures
	Running   []running `json:"r,omitempty"` // attempts without a verdict yet
	Last      int64     `json:"l,omitempty"` // the last attempt
	Good      bool      `json:"g,omitempty"` // somebody signed in from here
	Unsaid    int64     `json:"n,omitempty"` // failures not yet in an event
	Turned    int64     `json:"t,omitempty"` // refusals not yet in an event
	LastEvent int64     `json:"e,omitempty"`
}

// running is an attempt without a verdict. What it holds up is forgotten with it.
type running struct {
	Started int64 `json:"s"`
	Until   int64 `json:"u,omitempty"` // nothing is heard before, for this attempt
}

// limits of a counter.
type limits struct {
	free    int64
	ceiling time.Duration
}

// until tells before when nothing is heard.
func (c *counter) until() int64 {
	until := c.Until
	for _, r := range c.Running {
		until = max(until, r.Until)
	}
	return until
}

// begin counts an attempt as running.
func (c *counter) begin(now int64, l limits) {
	attempts := int64(len(c.Running)) + 1
	if c.Good && c.Failures < l.free {
		attempts = max(0, attempts-max(0, goodRunning-l.free))
	}
	r := running{Started: now}
	if d := delay(c.Failures+attempts, l.free, l.ceiling); d > 0 {
		r.Until = now + d
	}
	c.Running = append(c.Running, r)
}

// end forgets a running attempt. It may be gone already. Of those that began at the same moment it is the last, which
// holds up the most: one less is running.
func (c *counter) end(started int64) {
	for i, r := range slices.Backward(c.Running) {
		if r.Started == started {
			c.Running = slices.Delete(c.Running, i, i+1)
			return
		}
	}
}

// fail makes a failure of a running attempt. Of those that began at the same moment it is the first: what the others hold
// up stays, since no fewer are counted.
func (c *counter) fail(started int64, l limits) {
	if i := slices.IndexFunc(c.Running, func(r running) bool { return r.Started == started }); i >= 0 {
		c.Running = slices.Delete(c.Running, i, i+1)
	}
	c.Failures++
	if d := delay(c.Failures, l.free, l.ceiling); d > 0 {
		c.Until = max(c.Until, started+d)
	}
}

// throttle slows down attempts on one account from one network.
type throttle struct {
	pair, account event.RowKey
	userID        string // empty: nobody has the name; counted all the same
	place         Place
	started       int64 // when the attempt was counted

	pairLimits, accountLimits limits
}

// throttle of an account, as strict as the rules say. What stands for the account is the user and the version of the
// password, so that a new password starts afresh, or the name as typed where nobody has it. Only MACs are stored.
func (s *Sessions) throttle(rules policy.Settings, account []string, userID string, peer netip.Addr, place Place) *throttle {
	parts := make([][]byte, 0, len(account)+1)
	for _, p := range account {
		parts = append(parts, []byte(p))
	}
	key := func(parts ...[]byte) event.RowKey {
		return event.RowKey{Shelf: event.Throttle, Key: hex.EncodeToString(s.Master.MAC("throttle", parts...))}
	}
	return &throttle{account: key(parts...), pair: key(append(parts, []byte(Network(peer)))...), userID: userID, place: place,
		pairLimits:    limits{rules.NetworkAttempts, rules.NetworkWait()},
		accountLimits: limits{rules.AccountAttempts, rules.AccountWait()}}
}

// Network of an address, by which what strangers do is counted, as text.
func Network(a netip.Addr) string {
	network := call.Network(a)
	if network.Is6() {
		return netip.PrefixFrom(network, 64).String()
	}
	return network.String()
}

func (t *throttle) rows() []event.RowKey { return []event.RowKey{t.pair, t.account} }

func (t *throttle) load(tx *event.Tx) (pair, account counter, err error) {
	for key, into := range map[event.RowKey]*counter{t.pair: &pair, t.account: &account} {
		row, err := tx.Row(key)
		if err != nil {
			return pair, account, err
		}
		if row != nil {
			if err := json.Unmarshal(row.Value, into); err != nil {
				return pair, account, err
			}
			if tx.Now() >= into.Last+forgetAfter.Microseconds() { // the row may live on because it is a good one
				into.Failures, into.Until, into.Running = 0, 0, nil
			}
			into.Running = slices.DeleteFunc(into.Running, func(r running) bool { return tx.Now() >= r.Started+runningAtMost.Microseconds() })
		}
	}
	return pair, account, nil
}

func (t *throttle) save(tx *event.Tx, pair, account counter) error {
	return errors.Join(put(tx, t.pair, pair), put(tx, t.account, account))
}

// put keeps a counter as long as it is good for anything.
func put(tx *event.Tx, key event.RowKey, c counter) error {
	if c.Failures == 0 && len(c.Running) == 0 && !c.Good && c.Unsaid == 0 && c.Turned == 0 && c.LastEvent == 0 {
		tx.DropRow(key)
		return nil
	}
	value, err := json.Marshal(c)
	if err != nil {
		return err
	}
	keep := forgetAfter
	if c.Good {
		keep = rememberGood
	}
	tx.PutRow(event.Row{RowKey: key, Value: value, Expires: tx.Now() + keep.Microseconds()})
	return nil
}

// enter counts an attempt before it is made, so that parallel guesses count each other, or says how long to wait.
func (t *throttle) enter(tx *event.Tx) (wait time.Duration, err error) {
	pair, account, err := t.load(tx)
	if err != nil {
		return 0, err
	}
	now := tx.Now()
	pair.Last, account.Last = now, now
	until := pair.until()
	if !pair.Good {
		until = max(until, account.until())
	}
	if now < until {
		account.Turned++
		if err := t.say(tx, &account); err != nil {
			return 0, err
		}
		return time.Duration(until-now) * time.Microsecond, t.save(tx, pair, account)
	}
	t.started = now
	pair.begin(now, t.pairLimits)
	account.begin(now, t.accountLimits)
	return 0, t.save(tx, pair, account)
}

// delay doubles with every failure beyond the free ones.
func delay(failures, free int64, ceiling time.Duration) int64 {
	over := failures - free
	if over < 0 {
		return 0
	}
	d := time.Second << min(over, 20)
	return min(d, ceiling).Microseconds()
}

// failed makes the attempt a failure and records it.
func (t *throttle) failed(tx *event.Tx) error {
	pair, account, err := t.load(tx)
	if err != nil {
		return err
	}
	pair.fail(t.started, t.pairLimits)
	account.fail(t.started, t.accountLimits)
	account.Unsaid++
	if err := t.say(tx, &account); err != nil {
		return err
	}
	return t.save(tx, pair, account)
}

// takenBack undoes the count of an attempt that was not made after all.
func (t *throttle) takenBack(tx *event.Tx) error {
	pair, account, err := t.load(tx)
	if err != nil {
		return err
	}
	pair.end(t.started)
	account.end(t.started)
	return t.save(tx, pair, account)
}

// succeeded takes the attempt back and forgives the network its failures, not what is still running.
func (t *throttle) succeeded(tx *event.Tx) error {
	pair, account, err := t.load(tx)
	if err != nil {
		return err
	}
	pair.end(t.started)
	account.end(t.started)
	pair = counter{Good: true, Last: pair.Last, Running: pair.Running}
	last := account.LastEvent
	account.LastEvent = 0 // whatever is unsaid is said before the success
	if err := t.say(tx, &account); err != nil {
		return err
	}
	account.LastEvent = max(account.LastEvent, last)
	return t.save(tx, pair, account)
}

// markGood remembers the network under the key of a password that is only now being set. The command declared the row.
func (t *throttle) markGood(tx *event.Tx) error { return put(tx, t.pair, counter{Good: true}) }

// say turns what has gathered into events, at most once a minute. Names nobody has are only counted.
func (t *throttle) say(tx *event.Tx, c *counter) error {
	if t.userID == "" || (c.Unsaid == 0 && c.Turned == 0) || tx.Now() < c.LastEvent+mergeWindow.Microseconds() {
		return nil
	}
	var facts []event.Fact[SignIns]
	if c.Unsaid > 0 {
		facts = append(facts, Failed{Count: c.Unsaid, Personal: t.place})
	}
	if c.Turned > 0 {
		facts = append(facts, Throttled{Count: c.Turned, Personal: t.place})
	}
	c.Unsaid, c.Turned, c.LastEvent = 0, 0, tx.Now()
	return record(tx, t.userID, facts...)
}

// declare adds to a command what the throttle needs.
func (t *throttle) declare(c event.Command) event.Command {
	c.Rows = append(c.Rows, t.rows()...)
	if t.userID != "" {
		c.Write = append(c.Write, Kind.Ref(IDFor(t.userID)))
		c.Read = append(c.Read, userRef(t.userID))
	}
	return c
}
