package session

import (
	"cmp"
	"net/netip"

	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/guessing"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// SignInThrottled is the reason of a refusal before any work is done.
const SignInThrottled = guessing.SignInThrottled

// accountOverNetwork is how many times as many attempts are free on an account as from one network under one name, at
// least: or a few guesses under two names would tell whether they are one person's after all.
const accountOverNetwork = 4

// throttle slows down attempts on one account from one network.
type throttle struct {
	*guessing.Throttle
	sessions *Sessions
	userID   string // empty: nobody has the name; counted all the same
	source   RequestSource

	method  Method
	purpose Purpose
	reason  Reason // of a failure
}

// tries says what is tried, and what for.
func (t *throttle) tries(m Method, p Purpose) *throttle {
	t.method, t.purpose = m, p
	return t
}

// Failed makes the attempt a failure and records why it is one.
func (t *throttle) Failed(tx *event.Tx, why Reason) error {
	t.reason = why
	return t.Throttle.Failed(tx)
}

// failed is Failed for a command that does nothing else.
func (t *throttle) failed(why Reason) func(tx *event.Tx) error {
	return func(tx *event.Tx) error { return t.Failed(tx, why) }
}

// throttle of an aim at a user, as strict as the rules say: how many attempts are free, and how long the waits are at
// most, is a matter of policy. userID is empty where nobody is meant.
func (s *Sessions) throttle(rules policy.Settings, a guessing.Aim, userID string, peer netip.Addr,
	source RequestSource) *throttle {
	t := &throttle{sessions: s, userID: userID, source: source}
	if a.Report == nil {
		a.Report = t.record
	}
	t.Throttle = guessing.New(s.Master, a, ratelimit.NetworkName(peer))
	t.Limits.Network = guessing.Limits{Free: rules.NetworkAttempts, Ceiling: rules.NetworkWait()}
	t.Limits.Account = guessing.Limits{Free: max(rules.AccountAttempts, accountOverNetwork*rules.NetworkAttempts),
		Ceiling: rules.AccountWait()}
	return t
}

// rows are what a command has to declare in which the attempt is decided. Where nobody has the name, they are those
// that it would be where somebody has it, and nothing is found in them.
func (t *throttle) rows() []event.RowKey {
	return append(t.Rows(), t.sessions.gatheredOf(t.aimedAt()).Row)
}

// aimedAt is the user, or what stands for nobody.
func (t *throttle) aimedAt() string { return cmp.Or(t.userID, "usr_"+t.Key()[:32]) }

// declare adds to a command what the throttle needs to decide the attempt, the same whether or not somebody has the
// name.
func (t *throttle) declare(c event.Command) event.Command {
	id := t.aimedAt()
	c.Rows = append(c.Rows, t.rows()...)
	c.Write = append(c.Write, Kind.Ref(IDFor(id)))
	c.Read = append(c.Read, userRef(id))
	return c
}
