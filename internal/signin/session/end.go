package session

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Reasons when there is nothing to end.
const (
	NotFound       errs.Reason = "SESSION_NOT_FOUND"
	TokenNotFound  errs.Reason = "TOKEN_NOT_FOUND"
	DeviceNotFound errs.Reason = "REMEMBERED_DEVICE_NOT_FOUND"
)

// Errors that the rules of ending refuse with.
var (
	ErrNotFound       = errs.New(errs.NotFound, NotFound, "this user has no such session, or it has already ended")
	ErrTokenNotFound  = errs.New(errs.NotFound, TokenNotFound, "this user has no such token, or it is no longer valid")
	ErrDeviceNotFound = errs.New(errs.NotFound, DeviceNotFound,
		"this user has no such remembered device, or it is no longer remembered")

	errSessionsMoved = errs.New(errs.Aborted, event.Contention,
		"your sessions were ended at the same time: try again, or sign in again")
)

// Whose says whose sessions and tokens something is about. The zero value is nobody.
type Whose struct {
	userID, orgID  string
	origin         event.Origin
	within, ending event.Target[user.User] // for who looks at something, and for who ends it
}

// Own are the caller's.
func Own(caller *access.Caller) Whose {
	mine := user.Mine(caller)
	return Whose{mine.ID, caller.OrgID, mine.Origin, mine, mine}
}

// Of are those of a user in the permit's organization.
func Of(permit access.Permit, userID string) Whose {
	return Whose{userID, permit.Org(), permit.Origin(), user.Within(permit, userID), user.TakesAway(permit, userID)}
}

// changeable returns the user if the caller may end something of theirs. Errors: user.ErrNotFound;
// access.ErrTargetHoldsMore.
func (w Whose) changeable(u *event.Object[user.User], err error) (*event.Object[user.User], error) {
	if err == nil {
		err = w.ending.Reach(u)
	}
	return u, err
}

// End ends a session at once. Errors: user.ErrNotFound; access.ErrTargetHoldsMore; ErrNotFound, also for somebody
// else's.
func (s *Sessions) End(ctx context.Context, w Whose, id string) error {
	return s.drop(ctx, w, secret.Session, id, ErrNotFound, Ended{SessionID: id})
}

// Revoke revokes a personal access token at once. Errors: as End, with ErrTokenNotFound.
func (s *Sessions) Revoke(ctx context.Context, w Whose, id string) error {
	return s.drop(ctx, w, secret.PAT, id, ErrTokenNotFound, TokenRevoked{TokenID: id})
}

// EndDevice lets a device be forgotten at once. Sessions that were opened on it go on. Errors: as End, with
// ErrDeviceNotFound.
func (s *Sessions) EndDevice(ctx context.Context, w Whose, id string) error {
	return s.drop(ctx, w, secret.Device, id, ErrDeviceNotFound, DeviceEnded{DeviceID: id})
}

// drop removes a token that counts. Of several calls at once one succeeds.
func (s *Sessions) drop(ctx context.Context, w Whose, kind secret.TokenKind, id string, notFound *errs.Error,
	fact event.Fact[SignIns]) error {
	provider := ""
	if known, err := s.Store.TokenByID(ctx, id); err != nil {
		return err
	} else if known != nil {
		provider = known.Provider
	}
	return s.Store.Do(ctx, event.Command{
		Origin: w.origin,
		Write:  []event.Ref{Kind.Ref(IDFor(w.userID))},
		Read:   append([]event.Ref{userRef(w.userID), org.Kind.Ref(w.orgID)}, providerRef(provider)...),
		Tokens: []string{id},
		Decide: func(tx *event.Tx) error {
			u, err := w.changeable(user.Kind.Get(tx, w.userID))
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, w.orgID)
			if err != nil {
				return err
			}
			t, err := tx.Token(id)
			if err != nil {
				return err
			}
			p, err := providerIn(tx, provider)
			if err != nil {
				return err
			}
			if t == nil || t.UserID != w.userID || o == nil ||
				!alive(t, kind, &u.Data.Standing, &o.Data.Standing, p, tx.Now()) {
				return notFound
			}
			tx.DropToken(id)
			return record(tx, w.userID, fact)
		},
	})
}

// EndOthers ends all sessions of the caller but the one it calls with; with a token, all of them. Errors: Aborted when
// match does not hold, or when the caller's sessions were ended meanwhile: what has ended does not end others.
func (s *Sessions) EndOthers(ctx context.Context, caller *access.Caller, match event.IfMatch) (event.Details, error) {
	return user.Mine(caller).Change(ctx, s.Store, match, func(tx *event.Tx, u *event.Object[user.User]) error {
		if caller.TokenKind == string(secret.Session) {
			epoch := u.Data.SessionEpoch
			if epoch != caller.SessionEpoch {
				return errSessionsMoved
			}
			tx.AdvanceToken(caller.TokenID, epoch, epoch+1)
		}
		return u.Append(user.SessionsEnded{})
	})
}

// EndAll ends all sessions of a user; personal access tokens stay. Errors: user.ErrNotFound;
// access.ErrTargetHoldsMore; Aborted when match does not hold.
func (s *Sessions) EndAll(ctx context.Context, permit access.Permit, userID string,
	match event.IfMatch) (event.Details, error) {
	return user.TakesAway(permit, userID).Change(ctx, s.Store, match,
		func(_ *event.Tx, u *event.Object[user.User]) error {
			return u.Append(user.SessionsEnded{})
		})
}
