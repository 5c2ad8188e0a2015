package session

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

// recentFor is how long a proof counts as recent.
const recentFor = 15 * time.Minute

// RecentProofRequired is the reason of ErrNotRecent.
const RecentProofRequired = access.RecentProofRequired

// Errors of those who do not prove enough of who they are.
var (
	ErrNotRecent = errs.New(errs.PermissionDenied, RecentProofRequired,
		"this needs a proof of your identity that is at most 15 minutes old: sign in again, or renew the proof of this session with a second factor (POST /v1/sessions/_prove), or if you have none, with your password (POST /v1/sessions/_reauthenticate)")

	errSessionOnly = errs.New(errs.PermissionDenied, SessionRequired, "this needs a session: sign in and send the session's token")
)

// Proven refuses people who want to change how they sign in by anything but a session of their own; recent asks for a session
// with a recent proof as well. Service users need no more than their token. Errors: PermissionDenied; ErrNotRecent;
// user.ErrNotFound.
func (s *Sessions) Proven(ctx context.Context, caller *access.Caller, recent bool) error {
	if caller.TokenKind != string(secret.Session) {
		u, err := user.Self(ctx, s.Store, caller)
		if err != nil || u.Data.Human == nil {
			return err
		}
		return errSessionOnly
	}
	if recent && !Recent(caller, s.Clock()) {
		return ErrNotRecent
	}
	return nil
}

// Recent tells whether the person of a session proved to be there a short while ago: with a second factor where there is one, for
// who signs in with two factors must not get by with one of them later.
func Recent(caller *access.Caller, now time.Time) bool {
	if caller == nil || caller.Session == nil || caller.TokenKind != string(secret.Session) {
		return false
	}
	proof, err := ProofOf(caller.Session)
	return err == nil && proof.recent(event.Micros(now), caller.SecondFactor)
}

// first notes that the first factor was proven: the password, or what a provider says.
func (p *Proof) first(now int64) {
	if p.SecondFactor {
		p.FactorAt = cmp.Or(p.FactorAt, p.At)
	}
	p.FirstAt, p.At = 0, now
}

// second notes that a second factor was.
func (p *Proof) second(now int64) {
	p.FirstAt, p.FactorAt, p.At, p.SecondFactor = cmp.Or(p.FirstAt, p.At), 0, now, true
}

// Proven tells when each factor was proven last. Of somebody who has no second factor, the second is the first; of somebody who has one and did not prove it,
// it is zero.
func (p Proof) Proven(secondFactor bool) (first, second int64) {
	first, second = cmp.Or(p.FirstAt, p.At), p.At
	if secondFactor {
		if second = cmp.Or(p.FactorAt, p.At); !p.SecondFactor {
			second = 0
		}
	}
	return first, second
}

func (p Proof) recent(now int64, secondFactor bool) bool {
	return now <= p.lastAt(secondFactor)+recentFor.Microseconds()
}

// lastAt is when the person proved last to be there; 0: nobody knows.
func (p Proof) lastAt(secondFactor bool) int64 {
	if p.Upstream != nil && !p.Upstream.Fresh && !slices.ContainsFunc(p.Methods, func(m Method) bool { return m != ByProvider }) {
		return 0 // the provider may have known the person from long before
	}
	if secondFactor && !p.SecondFactor && p.Device != "" {
		return 0 // nobody has proven it here
	}
	if secondFactor {
		return cmp.Or(p.FactorAt, p.At)
	}
	return p.At
}

// shown is what others may know of it.
func (p Proof) shown(secondFactor bool) access.Shown {
	return access.Shown{SecondFactor: p.SecondFactor, At: p.lastAt(secondFactor)}
}

// recent asks the same inside a step.
func (s *state) recent() bool { return s.proof.recent(s.tx.Now(), s.user.Data.SecondFactor) }
