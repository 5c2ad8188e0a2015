// Package lifecycle deactivates and reactivates users and organizations, removes them, and gives people their account
// back. It clears away what a removed organization leaves behind in the background, in small steps.
package lifecycle

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Reasons of this package.
const (
	UserWrongState         errs.Reason = "USER_WRONG_STATE"
	OrganizationWrongState errs.Reason = "ORGANIZATION_WRONG_STATE"
	DefaultOrganization    errs.Reason = "DEFAULT_ORGANIZATION"
)

// userStep is one step in a user's life.
type userStep struct {
	from user.State // where it starts; empty: anywhere
	to   string     // in the words of a refusal
	fact event.Fact[user.User]
	ends bool // the user cannot act afterwards
}

// DeactivateUser switches off a user in the permit's organization, and ends all sessions and tokens for good. Errors,
// here and below: user.ErrNotFound; access.ErrTargetHoldsMore; FailedPrecondition in the wrong state;
// member.ErrLastOwner; member.ErrLastOrgOwner; Aborted when match does not hold.
func DeactivateUser(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return userStep{user.Active, "deactivated", user.Deactivated{}, true}.do(ctx, s, permit, id, match)
}

// ReactivateUser switches a user on again.
func ReactivateUser(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return userStep{user.Inactive, "reactivated", user.Reactivated{}, false}.do(ctx, s, permit, id, match)
}

// LockUser locks a user out, and ends all sessions and tokens for good. Somebody who is more than support takes over a
// lock of support's.
func LockUser(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	lock := user.WasLocked{BySupport: permit.Supports()}
	return userStep{user.Active, "locked", lock, true}.do(ctx, s, permit, id, match)
}

// UnlockUser lets a locked user in again. Errors: also user.ErrNotLockedBySupport.
func UnlockUser(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return userStep{user.Locked, "unlocked", user.Unlocked{}, false}.do(ctx, s, permit, id, match)
}

// RemoveUser ends a user for good and erases the person: nothing secret and nothing personal is left that could be
// read, or made again from the log.
func RemoveUser(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return userStep{"", "removed", user.WasRemoved{}, true}.do(ctx, s, permit, id, match)
}

func (step userStep) removes() bool { return step.fact == user.WasRemoved{} }

func (step userStep) do(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (details event.Details, err error) {
	target := user.GivesAccess(permit, id)
	if permit.Supports() { // it gives back no more than what support has taken, see decide
		target = user.TakesAway(permit, id)
	}
	var e *ending // nil: the user goes on
	var needs event.Command
	if step.ends {
		target = user.TakesAway(permit, id)
		e = &ending{reader: s, orgOwners: member.OrgOwners{}, mayLeave: permit.ForInstallation(access.UserWrite),
			owners: member.OwnersBut(s, func(u *event.Object[user.User]) bool { return u.ID == id })}
	}
	if step.removes() {
		needs.Write = companions(id)
	}
	details, err = target.Needs(needs).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[user.User]) error {
		return step.decide(tx, u, e, permit.Supports())
	})
	if err == nil && step.removes() {
		err = forgetLater(ctx, s, id)
	}
	return details, err
}

// ending is what the end of a user touches beyond the user.
type ending struct {
	reader      event.Reader
	owners      *member.Owners
	orgOwners   member.OrgOwners
	mayLeave    bool        // the organization without an owner
	looked      bool        // for the invitations
	invitations []event.Ref // that the user has accepted
}

// forgetLater erases what somebody has accepted at the very moment before they were removed.
func forgetLater(ctx context.Context, s event.Store, id string) error {
	refs, err := invitation.OfUser(ctx, s, id)
	if err != nil || len(refs) == 0 {
		return err
	}
	return s.Do(event.WritesMany(ctx), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  refs,
		Decide: func(tx *event.Tx) error {
			for _, i := range refs {
				if err := invitation.Erase(tx, i.ID); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func (step userStep) decide(tx *event.Tx, u *event.Object[user.User], e *ending, support bool) error {
	takesOver := step.fact == user.WasLocked{} && u.Data.LockedBySupport
	if err := step.starts(u.Data.State); err != nil && !takesOver {
		return err
	}
	if support && !step.ends && !u.Data.LockedBySupport {
		return user.ErrNotLockedBySupport
	}
	if e != nil {
		if err := e.orgOwners.EndOf(tx, e.reader, u, e.mayLeave); err != nil {
			return err
		}
		if member.IsOwner(&u.Data) {
			if err := e.owners.Remain(tx); err != nil {
				return err
			}
		}
	}
	if !step.removes() {
		return u.Append(step.fact)
	}
	if !e.looked {
		return event.Look(func(ctx context.Context) (event.Command, error) {
			var err error
			e.looked = true
			e.invitations, err = invitation.OfUser(ctx, e.reader, u.ID)
			return event.Command{Write: e.invitations}, err // they may be very many
		})
	}
	return end(tx, u, e.invitations)
}

// starts refuses where the step does not start from the user's state.
func (step userStep) starts(state user.State) error {
	if step.from == "" || step.from == state {
		return nil
	}
	return errs.New(errs.FailedPrecondition, UserWrongState,
		wrongState("user", string(state), string(step.from), step.to))
}

func wrongState(what, is, from, to string) string {
	return "this " + what + " is " + strings.ToUpper(is) + ": only one that is " + strings.ToUpper(from) +
		" can be " + to
}

// companions are the objects that stand beside a user and go with it.
func companions(id string) []event.Ref {
	return []event.Ref{session.Companion(id), oauth.Companion(id)}
}

// end removes a user inside a command that declared it and its companions for writing, and the invitations that the user
// has accepted. Whatever records something personal of a user
// declares one of them as well, so it comes before and is erased, or comes after and finds that the user is gone.
func end(tx *event.Tx, u *event.Object[user.User], invitations []event.Ref) error {
	for _, i := range invitations {
		if err := invitation.Erase(tx, i.ID); err != nil {
			return err
		}
	}
	if member.IsOwner(&u.Data) {
		i, err := installation.Kind.FollowToWrite(tx, installation.ID)
		if err != nil {
			return err
		}
		if i != nil && slices.Contains(i.Data.Owners, u.ID) {
			if err := i.Append(installation.OwnerRemoved{UserID: u.ID}); err != nil {
				return err
			}
		}
	}
	for _, row := range user.SecretRows(u.ID) {
		tx.DropRow(row)
	}
	tx.DropUser(u.ID)
	if err := session.Erase(tx, u.ID); err != nil {
		return err
	}
	if err := oauth.Erase(tx, u.ID); err != nil {
		return err
	}
	if err := u.Erase(); err != nil {
		return err
	}
	return u.Append(user.WasRemoved{})
}
