package lifecycle

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Errors of taking an address back where the account itself is out of use. The link stays good.
var (
	errRestoreInactive = errs.New(errs.FailedPrecondition, session.UserNotActive,
		"this user is not active: an administrator must reactivate or unlock the user first")
	errRestoreOrg = errs.New(errs.FailedPrecondition, session.OrgNotActive,
		"the user's organization is not active: reactivate it first")
)

// Restore is somebody with the link of a mail about a changed e-mail address.
type Restore struct {
	UserID    string
	Code      string
	RequestID string
}

// Do gives a user the oldest verified address of the last days back. It ends sessions and tokens, voids the password,
// and takes back what may not have been the owner's doing since a day before: second factors and links to identity
// providers that were added, all recovery codes, for when those were made is not known, and what applications were let
// have. It works once, and gives a code that lets a new password be chosen, by session.Reset. Errors: InvalidArgument
// on code, whatever is wrong with it; FailedPrecondition where the user or the organization is not active.
func (r Restore) Do(ctx context.Context, s event.Store, master secret.MasterKey,
	factors *factor.Factors) (code string, err error) {
	known, err := user.Kind.Read(ctx, s, r.UserID)
	if err != nil {
		return "", err
	}
	if known == nil {
		return "", user.ErrWrongCode()
	}
	err = s.Do(ctx, event.Command{
		Origin: event.Origin{Actor: r.UserID, RequestID: r.RequestID},
		Write:  []event.Ref{user.Kind.Ref(r.UserID), oauth.Companion(r.UserID)},
		Read:   []event.Ref{org.Kind.Ref(known.Org)},
		Rows:   []event.RowKey{user.BeforeRow(r.UserID), user.FactorsRow(r.UserID)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, r.UserID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, known.Org)
			if err != nil {
				return err
			}
			back, since, right, err := user.Restorable(tx, master, r.UserID, r.Code)
			switch {
			case err != nil:
				return err
			case !right || u == nil || u.Data.Human == nil:
				return user.ErrWrongCode()
			case u.Data.State != user.Active:
				return errRestoreInactive
			case o == nil || o.Data.State != org.Active:
				return errRestoreOrg
			}
			if err := factors.RemoveSince(tx, u, since); err != nil {
				return err
			}
			if err := user.RemoveLinksSince(u, since); err != nil {
				return err
			}
			if err := oauth.WithdrawSince(tx, u.ID, since); err != nil {
				return err
			}
			code, err = user.RestoreEmail(tx, master, u, back)
			return err
		},
	})
	if err != nil {
		return "", err
	}
	return code, nil
}
