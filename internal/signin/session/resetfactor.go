package session

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ErrResetFactor tells somebody with the right code that a mail alone does not do yet.
var ErrResetFactor = errs.New(errs.PermissionDenied, access.SecondFactorRequired,
	"the e-mail address was changed in the last 24 hours: also prove a second factor (totpCode or assertion) that was added more than 24 hours before the change, or wait")

// resetFactor is the second factor that a reset by mail needs right after a change of the address that the mail went
// to. It is one from long enough before the change, and no recovery code: when those were made is not known. Nil asks
// for none.
type resetFactor struct {
	sessions  *Sessions
	answer    Answer
	assertion *factor.Assertion
	throttle  *throttle
	wrong     bool
}

// secondFactorOf lets a second factor be tried, where the reset needs one (see user.ResetDelay); guesses count with all
// others. Errors: ErrResetFactor where there is none; InvalidArgument where it cannot be read; ResourceExhausted when
// slowed down.
func (s *Sessions) secondFactorOf(ctx context.Context, r *Reset, orgID string, held int64) (*resetFactor, error) {
	if held == 0 {
		return nil, nil
	}
	if r.Answer == (Answer{}) || r.Answer.method() == ByRecovery {
		return nil, ErrResetFactor
	}
	f := &resetFactor{sessions: s, answer: r.Answer}
	var err error
	if f.answer.method() == ByPasskey {
		if f.assertion, err = factor.ReadAssertion(f.answer.field(), f.answer.Assertion); err != nil {
			return nil, err
		}
	}
	who := &access.Caller{UserID: r.UserID, OrgID: orgID}
	if f.throttle, err = s.factorThrottle(ctx, who, f.answer.method(),
		From{Peer: r.Peer, UserAgent: r.UserAgent}); err != nil {
		return nil, err
	}
	origin := event.Origin{Actor: event.System, RequestID: r.RequestID}
	if err := s.enter(ctx, f.throttle, origin); err != nil || f.assertion == nil {
		return f, err
	}
	u, err := user.Kind.Read(ctx, s.Store, r.UserID)
	if err == nil && u != nil {
		_, err = s.Factors.VerifySignIn(ctx, s.Store, f.assertion, u) // what comes out is asked for by Accept
	}
	if err != nil {
		return nil, s.withoutVerdict(ctx, f.throttle, origin, err)
	}
	return f, nil
}

// declare adds what proving needs to the command that resets the password.
func (f *resetFactor) declare(c event.Command) event.Command {
	if f == nil {
		return c
	}
	c.Rows = append(c.Rows, user.FactorsRow(f.throttle.userID))
	if f.assertion != nil {
		c.Rows = append(c.Rows, f.assertion.Row())
	}
	return f.throttle.declare(c)
}

// prove tells whether the second factor is right, where one is needed.
func (f *resetFactor) prove(tx *event.Tx, u *event.Object[user.User], held int64) (right bool, err error) {
	switch {
	case held == 0 && f == nil:
		return true, nil
	case f == nil:
		return false, ErrResetFactor // the pause has begun meanwhile
	}
	if held == 0 { // the pause has ended meanwhile
		held = tx.Now()
	}
	if factors := f.sessions.Factors; f.assertion == nil {
		right, err = factors.UseOlderTOTP(tx, u, f.answer.TOTPCode, held)
	} else {
		right, err = factors.AcceptOlder(tx, f.assertion, u, held)
	}
	if f.wrong = err == nil && !right; f.wrong {
		return false, f.throttle.Failed(tx, WrongFactor)
	}
	if err == nil {
		err = f.throttle.Succeeded(tx)
	}
	return right, err
}

// takenBack forgets an attempt that is not decided after all, inside the command.
func (f *resetFactor) takenBack(tx *event.Tx) error {
	if f == nil {
		return nil
	}
	return f.throttle.TakenBack(tx)
}

// withoutVerdict does the same about a command that err kept from deciding, and returns err.
func (f *resetFactor) withoutVerdict(ctx context.Context, origin event.Origin, err error) error {
	if f == nil {
		return err
	}
	return f.sessions.withoutVerdict(ctx, f.throttle, origin, err)
}

func (f *resetFactor) refused() bool { return f != nil && f.wrong }

func (f *resetFactor) refusal() error {
	return errs.Invalid(errs.Violation{Field: f.answer.field(), Message: "is wrong, already used or expired"})
}
