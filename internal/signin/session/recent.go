package session

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// recentFor is how long a proof counts as recent.
const recentFor = 15 * time.Minute

// RecentProofRequired is the reason of ErrNotRecent.
const RecentProofRequired = access.RecentProofRequired

// Errors of those who do not prove enough of who they are.
var (
	ErrNotRecent = errs.New(errs.PermissionDenied, RecentProofRequired,
		"this needs a proof of your identity that is at most 15 minutes old: sign in again, or renew the proof of this session with a second factor (POST /v1/sessions/_prove), or if you have none, with your password (POST /v1/sessions/_reauthenticate)")

	errSessionOnly = errs.New(errs.PermissionDenied, SessionRequired,
		"this needs a session: sign in and send the session's token")
)

// Proven refuses people who want to change how they sign in by anything but a session of their own; recent asks for a
// session with a recent proof as well. Service users need no more than their token, unless it takes a person. Errors:
// PermissionDenied; ErrNotRecent; user.ErrNotFound.
func (s *Sessions) Proven(ctx context.Context, caller *access.Caller, recent, person bool) error {
	if caller.TokenKind != string(secret.Session) {
		u, err := user.Self(ctx, s.Store, caller)
		if err != nil || u.Data.Human == nil && !person {
			return err
		}
		return errSessionOnly
	}
	if recent && !Recent(caller, s.Clock()) {
		return ErrNotRecent
	}
	return nil
}

// Recent tells whether the person of a session proved to be there a short while ago: with a second factor where there
// is one, for who signs in with two factors must not get by with one of them later.
func Recent(caller *access.Caller, now time.Time) bool {
	if caller == nil || caller.Session == nil || caller.TokenKind != string(secret.Session) {
		return false
	}
	proof, err := ProofOf(caller.Session)
	return err == nil && proof.recent(event.Micros(now), caller.SecondFactor)
}

// first notes that the first factor was proven at a moment: the password here, or something else to a provider that
// says when.
func (p *Proof) first(at int64) {
	if p.SecondFactor {
		p.FactorAt = cmp.Or(p.FactorAt, p.At)
	}
	p.FirstAt, p.At = 0, at
	p.known()
}

// known notes that it is known from now on when the first factor was proven, whatever the provider said that the
// session came through.
func (p *Proof) known() {
	if p.Upstream != nil {
		up := *p.Upstream
		up.Fresh, up.Said = true, 0
		p.Upstream = &up
	}
}

// second notes that a second factor was.
func (p *Proof) second(now int64) {
	p.FirstAt, p.FactorAt, p.At, p.SecondFactor = cmp.Or(p.FirstAt, p.At), 0, now, true
}

// Known is what is known of the person of a session: what was proven, when, and by whose word. All that asks for a
// proof asks it: applications (auth_time, amr, acr, prompt, max_age, acr_values), sensitive changes, and organizations
// about their guests.
type Known struct {
	First  int64 // when the first factor was proven, in microseconds; zero: nobody knows
	Second int64 // when a second factor was; zero: it was not, or nobody knows when
	Factor bool  // a second factor was proven at all
	device bool  // a remembered device took the place of the second factor
}

// Known judges a proof. It never says that something was proven later than is known. What a person proved to a provider
// was proven when the provider says so; if it does not say, nobody knows. Who then proves a second factor here has
// shown to be there all the same.
func (p Proof) Known() Known {
	k := Known{First: cmp.Or(p.FirstAt, p.At), Factor: p.SecondFactor, device: p.Device != ""}
	if p.SecondFactor {
		k.Second = cmp.Or(p.FactorAt, p.At)
	}
	// Sessions from before Said was kept have a password among their methods once it was typed.
	if up := p.Upstream; up != nil && (up.Said != 0 || !up.Fresh && !slices.Contains(p.Methods, ByPassword)) {
		k.First = up.Said
		switch own := slices.ContainsFunc(p.Methods,
			func(m Method) bool { return m != ByProvider && m != ByPassword }); {
		case p.SecondFactor && own:
			k.First = max(k.First, k.Second)
		case p.SecondFactor:
			k.Second = up.Said // it is the provider's, too
		}
	}
	return k
}

// At is when the person proved anything last (auth_time); zero: nobody knows.
func (k Known) At() int64 { return max(k.First, k.Second) }

// Proven tells when each factor was proven last. Of somebody who has no second factor, the second is the first; of
// somebody who has one and did not prove it, it is zero.
func (k Known) Proven(secondFactor bool) (first, second int64) {
	if secondFactor {
		return k.First, k.Second
	}
	return k.First, k.At()
}

// Last is when the person proved last to be there, with the second factor if they have one; zero: nobody knows.
func (k Known) Last(secondFactor bool) int64 {
	switch {
	case secondFactor && k.Factor:
		return k.Second
	case secondFactor && k.device:
		return 0 // nobody has proven it here
	}
	return k.At()
}

func (p Proof) recent(now int64, secondFactor bool) bool {
	return now <= p.Known().Last(secondFactor)+recentFor.Microseconds()
}

// shown is what others may know of it.
func (p Proof) shown(secondFactor bool) access.Shown {
	k := p.Known()
	return access.Shown{SecondFactor: k.Factor, At: k.Last(secondFactor)}
}

// recent asks the same inside a step.
func (s *InSession) recent() bool { return s.proof.recent(s.tx.Now(), s.user.Data.SecondFactor) }
