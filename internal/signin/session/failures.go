package session

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/guessing"
	"github.com/signet-idm/signet/internal/limit/stored"
)

// Reason is why somebody whom a sign-in was about did not get in, in the words of events. Nothing but administrators
// reads it: who signs in learns no more than the page says.
type Reason string

// The reasons. They are part of events and never change their meaning; docs/api/events.md explains them, and the
// console says what to do (web/console/src/texts/*/events.json).
const (
	WrongPassword        Reason = "wrong_password"
	NoPassword           Reason = "no_password" // the account has none
	PasskeyRefused       Reason = "passkey_refused"
	PasskeyIsRemoved     Reason = "passkey_removed"
	WrongFactor          Reason = "second_factor_failed"
	FactorMissing        Reason = "second_factor_missing" // the application demands one, and the person has none
	UserLocked           Reason = "user_locked"
	UserInactive         Reason = "user_inactive"
	NotAPerson           Reason = "not_a_person" // service users do not sign in
	OrgInactive          Reason = "organization_inactive"
	WayNotAllowed        Reason = "way_not_allowed"
	ProviderRefused      Reason = "provider_changed"    // or switched off, since the person went there
	LinkIsSuspended      Reason = "link_suspended"      // it has to be confirmed
	WrongOrganization    Reason = "wrong_organization"  // the sign-in was for people of another one
	ApplicationNotTheirs Reason = "application_refused" // the application is not for people of the organization
	RoleMissing          Reason = "role_missing"
	ConsentRefused       Reason = "consent_refused"
)

// Purpose is what a sign-in is for.
type Purpose struct {
	Application string // empty: none, or none that is known
	Org         string // the organization that it is bound to; empty: any
}

// FailedAs counts the failures that have the same method, application and reason.
type FailedAs struct {
	Method      Method `json:"method,omitempty"`
	Application string `json:"application,omitempty"`
	Reason      Reason `json:"reason"`
	Count       int64  `json:"count"`
}

const (
	mergedFor = time.Minute // at most one event about an account in this time
	mostCause = 8           // method, application and reason together that one event tells apart
)

// gathered is what a person's failures and refusals are until they are in an event.
type gathered struct {
	By        []FailedAs `json:"b,omitempty"`
	Others    int64      `json:"o,omitempty"` // failures beyond mostCause, or without a reason
	Refused   int64      `json:"t,omitempty"` // attempts that were turned away unheard
	LastEvent int64      `json:"e,omitempty"`
}

// gatheredOf is where the failures of a user gather, whatever way was tried. So there is one event a minute about all
// of them.
func (s *Sessions) gatheredOf(userID string) stored.Counter[gathered] {
	return stored.Of[gathered](s.Master, "failed sign-ins", userID)
}

func (g *gathered) add(f FailedAs) {
	i := slices.IndexFunc(g.By, func(has FailedAs) bool {
		return has.Method == f.Method && has.Application == f.Application && has.Reason == f.Reason
	})
	switch {
	case i >= 0:
		g.By[i].Count += f.Count
	case f.Reason == "" || len(g.By) == mostCause:
		g.Others += f.Count
	default:
		g.By = append(g.By, f)
	}
}

// count is how many failures and refusals have gathered.
func (g *gathered) count() int64 {
	n := g.Others + g.Refused
	for _, f := range g.By {
		n += f.Count
	}
	return n
}

// report takes what is due out of g: all of it where a minute has passed since the last event, or where it has to be
// said now.
func (g *gathered) report(now int64, source RequestSource, atOnce bool) (facts []event.Fact[SignIns]) {
	failed := g.count() - g.Refused
	if failed+g.Refused == 0 || !atOnce && now < g.LastEvent+mergedFor.Microseconds() {
		return nil
	}
	if failed > 0 {
		facts = append(facts, Failed{Count: failed, By: g.By, Others: g.Others, Personal: source})
	}
	if g.Refused > 0 {
		facts = append(facts, Throttled{Count: g.Refused, Personal: source})
	}
	*g = gathered{LastEvent: now}
	return facts
}

// gather adds to what has gathered about a user, and records what is due. atOnce says that all of it is: the log tells
// the story in order. The command declared the row of the gathered failures, the companion for writing and the user for
// reading. Where nobody is meant, it counts alike, so that names take the same work, and records nothing.
//
// The system is the actor of every failure: nobody has proven to be the person whom it is about. Who guesses a second
// factor has shown no more than a password, which may be stolen.
func (s *Sessions) gather(tx *event.Tx, userID string, source RequestSource, atOnce bool,
	add func(g *gathered)) error {
	in := s.gatheredOf(userID)
	g, err := in.Get(tx)
	if err != nil {
		return err
	}
	before := g.count()
	add(&g)
	facts := g.report(tx.Now(), source, atOnce)
	if len(facts) > 0 || g.count() != before {
		in.Put(tx, g, forgetGathered)
	}
	if g.count() > 0 {
		u, err := user.Kind.Get(tx, userID)
		if err != nil {
			return err
		}
		if u != nil { // strangers must not fill it with names that nobody has
			s.Unsaid.put(userID, unsaid{event.Time(g.LastEvent).Add(mergedFor), source})
		}
	}
	return recordBy(tx, event.System, userID, facts...)
}

const (
	forgetGathered = time.Hour // failures that no node says any more
	mostUnsaid     = 10_000    // accounts whose failures wait on a node for their minute to end
	sayEvery       = 10 * time.Second
)

// Unsaid is the accounts whose failures this node has gathered and not recorded, because the last event is less than a
// minute old. Without it they would wait for the next attempt. Nil knows none. It is safe for concurrent use.
type Unsaid struct {
	mu    sync.Mutex
	users map[string]unsaid
}

type unsaid struct {
	due    time.Time
	source RequestSource // of the last attempt
}

// put notes an account. Beyond mostUnsaid the next attempt says it.
func (u *Unsaid) put(userID string, what unsaid) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.users[userID]; !there && len(u.users) >= mostUnsaid {
		return
	}
	if u.users == nil {
		u.users = map[string]unsaid{}
	}
	u.users[userID] = what
}

// take gives those that are due, and forgets them.
func (u *Unsaid) take(now time.Time) map[string]unsaid {
	due := map[string]unsaid{}
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, what := range u.users {
		if !now.Before(what.due) {
			due[id] = what
			delete(u.users, id)
		}
	}
	return due
}

// SayFailures records the failures of accounts whose minute is over. Errors: those of event.Store; what could not be
// recorded is tried again.
func (s *Sessions) SayFailures(ctx context.Context) error {
	var failed error
	for id, what := range s.Unsaid.take(s.Clock()) {
		err := s.gatherAlone(ctx, id, event.Origin{Actor: event.System}, what.source, func(*gathered) {})
		if err != nil {
			s.Unsaid.put(id, what)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// KeepSayingFailures does so until ctx ends.
func (s *Sessions) KeepSayingFailures(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.SayFailures(ctx); err != nil && ctx.Err() == nil {
				log.Warn("recording failed sign-ins did not work: the server tries again in a few seconds", "error", err)
			}
		}
	}
}

// gatherAlone is gather in a command that does nothing else.
func (s *Sessions) gatherAlone(ctx context.Context, userID string, origin event.Origin, source RequestSource,
	add func(g *gathered)) error {
	return s.Store.Do(ctx, event.Command{
		Origin: origin,
		Write:  []event.Ref{Companion(userID)},
		Read:   []event.Ref{userRef(userID)},
		Rows:   []event.RowKey{s.gatheredOf(userID).Row},
		Decide: func(tx *event.Tx) error { return s.gather(tx, userID, source, false, add) },
	})
}

// record gathers what a throttle tells about an attempt at a user.
func (t *throttle) record(tx *event.Tx, r guessing.Report) error {
	return t.sessions.gather(tx, t.aimedAt(), t.source, !r.Failed, func(g *gathered) {
		g.Others += r.Earlier
		g.Refused += r.Refused
		if r.Failed {
			g.add(FailedAs{Method: t.method, Application: t.purpose.Application, Reason: t.reason, Count: 1})
		}
	})
}

// Refused is somebody who was not let in, or not let through to an application, after it was clear whose account it is
// about.
type Refused struct {
	UserID    string
	Method    Method
	Reason    Reason
	Purpose   Purpose
	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// Refused records it, merged with all other failures of the account.
func (s *Sessions) Refused(ctx context.Context, r Refused) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return s.gatherAlone(ctx, r.UserID, event.Origin{Actor: event.System, RequestID: r.RequestID},
		RequestSourceOf(r.Peer, r.UserAgent), func(g *gathered) {
			g.add(FailedAs{Method: r.Method, Application: r.Purpose.Application, Reason: r.Reason, Count: 1})
		})
}

// WhyNot tells what keeps a person from signing in at all; empty: nothing does. o is nil where nothing is known of the
// organization.
func WhyNot(u *user.User, o *event.Object[org.Org]) Reason {
	switch {
	case u.State == user.Locked:
		return UserLocked
	case u.State != user.Active:
		return UserInactive
	case u.Human == nil:
		return NotAPerson
	case o != nil && o.Data.State != org.Active:
		return OrgInactive
	}
	return ""
}

// whyNoPassword is why a password did not open an account. It reads nothing: names that nobody has take the same work.
// there are the rules of the organization that the name led to.
func whyNoPassword(u *event.Object[user.User], there policy.Policy, in string) Reason {
	if u == nil {
		return ""
	}
	if why := WhyNot(&u.Data, nil); why != "" {
		return why
	}
	owner := slices.Contains(u.Data.Memberships[u.Org], access.OrgOwner) // see keepsPassword
	switch {
	case u.Org == in && !owner && !there.Allows(policy.WithPassword):
		return WayNotAllowed
	case u.Data.Password.Version == 0:
		return NoPassword
	}
	return WrongPassword
}
