package session

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// ResetNotPossible is the reason of a reset that a mail cannot begin.
const ResetNotPossible errs.Reason = "RESET_NOT_POSSIBLE"

var errResetNotPossible = errs.New(errs.FailedPrecondition, ResetNotPossible,
	"this user cannot reset a password: the user or the organization is not active, or no password is allowed there")

// SendReset has the mail sent to a person that RequestReset sends, for somebody who sees whether there is such a user.
// mail: this installation sends mail. Errors: user.ErrNotFound; access.ErrTargetHoldsMore; access.ErrNotForSupport;
// user.ErrNotHuman; user.ErrEmailNotVerified; FailedPrecondition where no password can be reset;
// user.ErrDeliveryNotConfigured; ResourceExhausted when there were too many mails.
func (s *Sessions) SendReset(ctx context.Context, permit access.Permit, id string, mail bool) error {
	whom := user.TakesAway(permit, id).And(user.MustBeHuman)
	known, err := whom.Read(ctx, s.Store)
	if err != nil {
		return err
	}
	kept, err := s.keepsPassword(ctx, known)
	if err != nil {
		return err
	}
	count := resetMails(s.Master, id)
	return s.Store.Do(ctx, event.Command{
		Origin: permit.Origin(),
		Write:  []event.Ref{Kind.Ref(IDFor(id))},
		Read:   []event.Ref{userRef(id), org.Kind.Ref(permit.Org())},
		Rows:   []event.RowKey{count.Row},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, id)
			if err == nil {
				err = whom.Reach(u)
			}
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, permit.Org())
			switch {
			case err != nil:
				return err
			case !u.Data.Human.Email.Verified:
				return user.ErrEmailNotVerified
			case !MaySignIn(&u.Data, o) || !kept && !o.Data.Policy.Allows(policy.WithPassword):
				return errResetNotPossible
			case !mail:
				return user.ErrDeliveryNotConfigured
			}
			wait, err := count.Take(tx)
			if err != nil {
				return err
			}
			if wait > 0 {
				return mailcount.TooMany(wait)
			}
			return record(tx, id, PasswordResetRequested{})
		},
	})
}
