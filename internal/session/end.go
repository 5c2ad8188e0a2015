package session

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

// Reasons when there is nothing to end.
const (
	NotFound      errs.Reason = "SESSION_NOT_FOUND"
	TokenNotFound errs.Reason = "TOKEN_NOT_FOUND"
)

// Errors that the rules of ending refuse with.
var (
	ErrNotFound      = errs.New(errs.NotFound, NotFound, "there is no such session of this user, or it has ended already")
	ErrTokenNotFound = errs.New(errs.NotFound, TokenNotFound, "there is no such token of this user, or it does not count any more")

	errSessionsMoved = errs.New(errs.Aborted, event.Contention, "your sessions were ended at the same moment: try again, or sign in again")
	errBusy          = errs.New(errs.Aborted, event.Contention, "too much happens to this user's sessions and tokens at the same moment: try again")
)

// Whose says whose sessions and tokens something is about. The zero value is nobody.
type Whose struct {
	userID, orgID string
	origin        event.Origin
	permit        access.Permit
	own           bool
}

// Own are the caller's.
func Own(caller *access.Caller) Whose {
	return Whose{userID: caller.UserID, orgID: caller.OrgID, origin: caller.Origin(), own: true}
}

// Of are those of a user in the permit's organization.
func Of(permit access.Permit, userID string) Whose {
	return Whose{userID: userID, orgID: permit.Org(), origin: permit.Origin(), permit: permit}
}

// reached gives the user, if there is one that is within reach. Errors: user.ErrNotFound.
func (w Whose) reached(u *event.Object[user.User], err error) (*event.Object[user.User], error) {
	switch {
	case err != nil:
		return nil, err
	case !w.own:
		return user.Reachable(u, w.permit)
	case u == nil || u.State.State == user.Removed:
		return nil, user.ErrNotFound
	}
	return u, nil
}

// changeable is reached for whoever wants to end something. Errors: access.ErrTargetHoldsMore too.
func (w Whose) changeable(u *event.Object[user.User], err error) (*event.Object[user.User], error) {
	if u, err = w.reached(u, err); err != nil || w.own {
		return u, err
	}
	return u, w.permit.Covers(u.State.Memberships)
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

// drop removes a token that counts. Of several calls at once one succeeds: whatever removes a token adds an event to
// the companion, so a token that was there while the companion has not moved is still there.
func (s *Sessions) drop(ctx context.Context, w Whose, kind secret.TokenKind, id string, notFound *errs.Error, fact event.Fact[SignIns]) error {
	const tries = 10
	for range tries {
		companion, err := Kind.Read(ctx, s.Store, IDFor(w.userID))
		if err != nil {
			return err
		}
		t, err := s.Store.TokenByID(ctx, id)
		if err != nil {
			return err
		}
		moved := false
		err = s.Store.Do(ctx, event.Command{
			Origin: w.origin,
			Write:  []event.Ref{Kind.Ref(IDFor(w.userID))},
			Read:   []event.Ref{userRef(w.userID), org.Kind.Ref(w.orgID)},
			Decide: func(tx *event.Tx) error {
				moved = false
				u, err := w.changeable(user.Kind.Get(tx, w.userID))
				if err != nil {
					return err
				}
				o, err := org.Kind.Get(tx, w.orgID)
				if err != nil {
					return err
				}
				if t == nil || t.UserID != w.userID || o == nil || !alive(t, kind, &u.State.Standing, &o.State.Standing, tx.Now()) {
					return notFound
				}
				now, err := Kind.Get(tx, IDFor(w.userID))
				if err != nil {
					return err
				}
				if moved = sequence(now) != sequence(companion); moved {
					return nil
				}
				tx.DropToken(id)
				return record(tx, w.userID, fact)
			},
		})
		if err != nil || !moved {
			return err
		}
	}
	return errBusy
}

func sequence(companion *event.Object[SignIns]) uint64 {
	if companion == nil {
		return 0
	}
	return companion.Sequence
}

// EndOthers ends all sessions of the caller but the one it calls with; with a token, all of them. Errors: Aborted when
// match does not hold, or when the caller's sessions were ended meanwhile: what has ended does not end others.
func (s *Sessions) EndOthers(ctx context.Context, caller *access.Caller, match event.IfMatch) (event.Details, error) {
	bySession := caller.TokenKind == string(secret.Session)
	return s.endAll(ctx, Own(caller), match, func(tx *event.Tx, u *event.Object[user.User]) error {
		epoch := u.State.SessionEpoch
		if bySession && epoch != caller.SessionEpoch {
			return errSessionsMoved
		}
		if bySession {
			tx.AdvanceToken(caller.TokenID, epoch, epoch+1)
		}
		return nil
	})
}

// EndAll ends all sessions of a user; personal access tokens stay. Errors: user.ErrNotFound;
// access.ErrTargetHoldsMore; Aborted when match does not hold.
func (s *Sessions) EndAll(ctx context.Context, permit access.Permit, userID string, match event.IfMatch) (event.Details, error) {
	return s.endAll(ctx, Of(permit, userID), match, func(*event.Tx, *event.Object[user.User]) error { return nil })
}

func (s *Sessions) endAll(ctx context.Context, w Whose, match event.IfMatch, before func(*event.Tx, *event.Object[user.User]) error) (event.Details, error) {
	var details event.Details
	err := s.Store.Do(ctx, event.Command{
		Origin: w.origin,
		Write:  []event.Ref{userRef(w.userID)},
		Decide: func(tx *event.Tx) error {
			u, err := w.changeable(user.Kind.Get(tx, w.userID))
			if err != nil {
				return err
			}
			if err := match.Check(u.Sequence); err != nil {
				return err
			}
			if err := before(tx, u); err != nil {
				return err
			}
			err = u.Append(user.SessionsEnded{})
			details = u.Details()
			return err
		},
	})
	return details, err
}
