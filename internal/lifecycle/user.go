// Package lifecycle switches users and organizations off and on, removes them, and gives people their account back. What a removed organization leaves
// behind is cleared away in the background, in small steps.
package lifecycle

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/member"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/user"
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

// DeactivateUser switches off a user in the permit's organization, and ends all sessions and tokens for good. Errors, here
// and below: user.ErrNotFound; access.ErrTargetHoldsMore; FailedPrecondition in the wrong state; member.ErrLastOwner; Aborted
// when match does not hold.
func DeactivateUser(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return userStep{user.Active, "deactivated", user.Deactivated{}, true}.do(ctx, s, permit, id, match)
}

// ReactivateUser switches a user on again.
func ReactivateUser(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return userStep{user.Inactive, "reactivated", user.Reactivated{}, false}.do(ctx, s, permit, id, match)
}

// LockUser locks a user out, and ends all sessions and tokens for good.
func LockUser(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return userStep{user.Active, "locked", user.WasLocked{}, true}.do(ctx, s, permit, id, match)
}

// UnlockUser lets a locked user in again.
func UnlockUser(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return userStep{user.Locked, "unlocked", user.Unlocked{}, false}.do(ctx, s, permit, id, match)
}

// RemoveUser ends a user for good and erases the person: nothing secret and nothing personal is left that could be read, or
// made again from the log.
func RemoveUser(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return userStep{"", "removed", user.WasRemoved{}, true}.do(ctx, s, permit, id, match)
}

func (step userStep) removes() bool { return step.fact == user.WasRemoved{} }

func (step userStep) do(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	var details event.Details
	err := member.Settle(func() error {
		u, err := user.Get(ctx, s, permit, id)
		if err != nil {
			return err
		}
		command := event.Command{Origin: permit.Origin(), Write: []event.Ref{user.Kind.Ref(id)}}
		var owners *member.Owners
		if step.ends && member.IsOwner(&u.State) {
			if owners, err = member.OwnersBut(ctx, s, func(o *event.Object[user.User]) bool { return o.ID == id }); err != nil {
				return err
			}
			command.Read = owners.Reads()
			if step.removes() {
				command.Write = append(command.Write, installation.Ref)
			}
		}
		if step.removes() {
			command.Write = append(command.Write, companions(id)...)
		}
		command.Decide = func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, id)
			if err != nil {
				return err
			}
			if u, err = user.Reachable(u, permit); err != nil {
				return err
			}
			if err := permit.Covers(u.State.Memberships); err != nil {
				return err
			}
			if err := step.starts(u.State.State); err != nil {
				return err
			}
			if step.ends && member.IsOwner(&u.State) {
				if err := owners.Remain(tx); err != nil {
					return err
				}
			}
			if err := match.Check(u.Sequence); err != nil {
				return err
			}
			if step.removes() {
				err = end(tx, u)
			} else {
				err = u.Append(step.fact)
			}
			details = u.Details()
			return err
		}
		return s.Do(ctx, command)
	})
	return details, err
}

// starts refuses where the step does not start from the user's state.
func (step userStep) starts(state user.State) error {
	if step.from == "" || step.from == state {
		return nil
	}
	return errs.New(errs.FailedPrecondition, UserWrongState, wrongState("user", string(state), string(step.from), step.to))
}

func wrongState(what, is, from, to string) string {
	return "this " + what + " is " + strings.ToUpper(is) + ": only one that is " + strings.ToUpper(from) + " can be " + to
}

// companions are the objects that stand beside a user and go with it.
func companions(id string) []event.Ref {
	return []event.Ref{session.Companion(id), grant.Companion(id)}
}

// end removes a user inside a command that declared it and its companions for writing and, where the user owns the
// installation, that too. Whatever records something personal of a user declares one of them as well, so it comes before and is
// erased, or comes after and finds that the user is gone.
func end(tx *event.Tx, u *event.Object[user.User]) error {
	if member.IsOwner(&u.State) {
		i, err := installation.Kind.Get(tx, installation.ID)
		if err != nil {
			return err
		}
		if i != nil && slices.Contains(i.State.Owners, u.ID) {
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
	if err := grant.Erase(tx, u.ID); err != nil {
		return err
	}
	if err := u.Erase(); err != nil {
		return err
	}
	return u.Append(user.WasRemoved{})
}
