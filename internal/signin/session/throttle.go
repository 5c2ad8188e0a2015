package session

import (
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
	userID string // empty: nobody has the name, or nothing is to be recorded; counted all the same
	source RequestSource
}

// throttle of an aim at a user, as strict as the rules say: how many attempts are free, and how long the waits are at
// most, is a matter of policy. userID is empty where nobody is meant, or nothing is to be recorded.
func (s *Sessions) throttle(rules policy.Settings, a guessing.Aim, userID string, peer netip.Addr,
	source RequestSource) *throttle {
	t := &throttle{userID: userID, source: source}
	if userID != "" && a.Report == nil {
		a.Report = t.record
	}
	t.Throttle = guessing.New(s.Master, a, ratelimit.NetworkName(peer))
	t.Limits.Network = guessing.Limits{Free: rules.NetworkAttempts, Ceiling: rules.NetworkWait()}
	t.Limits.Account = guessing.Limits{Free: max(rules.AccountAttempts, accountOverNetwork*rules.NetworkAttempts),
		Ceiling: rules.AccountWait()}
	return t
}

// record turns a report into events.
func (t *throttle) record(tx *event.Tx, r guessing.Report) error {
	var facts []event.Fact[SignIns]
	if r.Failed > 0 {
		facts = append(facts, Failed{Count: r.Failed, Personal: t.source})
	}
	if r.Refused > 0 {
		facts = append(facts, Throttled{Count: r.Refused, Personal: t.source})
	}
	return record(tx, t.userID, facts...)
}

// declare adds to a command what the throttle needs. Where nobody has the name, it looks for the same that it looks for
// where somebody has it, and finds nothing.
func (t *throttle) declare(c event.Command) event.Command {
	id := t.userID
	if id == "" {
		id = "usr_" + t.Key()[:32]
	}
	c.Rows = append(c.Rows, t.Rows()...)
	c.Write = append(c.Write, Kind.Ref(IDFor(id)))
	c.Read = append(c.Read, userRef(id))
	return c
}
