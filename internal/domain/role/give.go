package role

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Resolve gives the roles with these names, which access.GivenViolations has accepted, sorted, each once: custom ones
// with the permissions of this moment. The command is run by event.Do. Errors: InvalidArgument on roles for custom
// ones that are not there in the scope.
func Resolve(tx *event.Tx, scope string, names []string) (roles []access.Role, err error) {
	var needs event.Command
	for _, name := range names {
		if access.Role(name).IsCustom() {
			needs.Read = append(needs.Read, Kind.Ref(name))
		}
	}
	if err := tx.Require(needs); err != nil {
		return nil, err
	}
	var wrong errs.Violations
	for i, name := range names {
		r, there, err := current(scope, access.Role(name), func(id string) (*event.Object[Role], error) {
			return Kind.Get(tx, id)
		})
		if err != nil {
			return nil, err
		}
		if !there {
			wrong.Add(fmt.Sprintf("roles[%d]", i), errs.Plain("is not the identifier of a custom role there: list the roles"))
			continue
		}
		roles = append(roles, r)
	}
	slices.Sort(roles)
	return slices.Compact(roles), wrong.Err()
}

// Current gives roles that were recorded earlier as they are at this moment; false where one is there no longer. find
// finds a custom role by its identifier.
func Current(scope string, recorded []access.Role,
	find func(id string) (*event.Object[Role], error)) (roles []access.Role, all bool, err error) {
	for _, r := range recorded {
		r, there, err := current(scope, r, find)
		if err != nil || !there {
			return nil, false, err
		}
		roles = append(roles, r)
	}
	slices.Sort(roles)
	return slices.Compact(roles), true, nil
}

func current(scope string, r access.Role,
	find func(id string) (*event.Object[Role], error)) (now access.Role, there bool, err error) {
	if !r.IsCustom() {
		return r, true, nil
	}
	o, err := find(r.Name())
	if err != nil || o == nil || o.Data.State == Removed || o.Org != scope {
		return "", false, err
	}
	return Now(o), true, nil
}

// GiveTo tells the custom ones among roles that a user is about to get them in a scope, unless the user has them
// there. Errors: as for Give.
func GiveTo(tx *event.Tx, s event.Store, u *event.Object[user.User], scope string, roles []access.Role) error {
	var fresh []access.Role
	for _, r := range roles {
		if !u.Data.HasRole(scope, r.Name()) {
			fresh = append(fresh, r)
		}
	}
	return Give(tx, s, fresh, 1)
}

// Give tells the custom ones among roles that so many users more are about to get them, so that a change of their
// permissions misses nobody. The command is run by event.Do; the roles are those of Resolve or Current in it. Errors:
// ErrTooManyHolders.
func Give(tx *event.Tx, s event.Store, roles []access.Role, users int64) error {
	var needs event.Command
	for _, r := range roles {
		if r.IsCustom() {
			needs.Write = append(needs.Write, Kind.Ref(r.Name()))
		}
	}
	if err := tx.Require(needs); err != nil {
		return err
	}
	for _, ref := range needs.Write {
		o, err := Kind.Get(tx, ref.ID)
		if err != nil {
			return err
		}
		if o.Data.Holders+users > MaxHolders {
			sequence := o.Sequence
			return event.Look(func(ctx context.Context) (event.Command, error) {
				return event.Command{}, recount(ctx, s, ref.ID, sequence, users)
			})
		}
		if err := o.Append(HoldersCounted{Holders: o.Data.Holders + users}); err != nil {
			return err
		}
	}
	return nil
}

// recount counts the holders of a role that seems to have no room for so many more: those who have lost it since it
// was counted still count. It does nothing where the role has changed from a sequence. Errors: ErrTooManyHolders.
func recount(ctx context.Context, s event.Store, id string, sequence uint64, users int64) error {
	all, err := Holders(ctx, s, id)
	if err != nil {
		return err
	}
	held := int64(len(all))
	if held+users > MaxHolders {
		return ErrTooManyHolders
	}
	return s.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Write: []event.Ref{Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			o, err := Kind.Get(tx, id)
			if err != nil || o == nil || o.Sequence != sequence {
				return err
			}
			return o.Append(HoldersCounted{Holders: held})
		}})
}

// Holders reads all users who were given a role.
func Holders(ctx context.Context, r event.Reader, id string) (holders []*event.Object[user.User], err error) {
	const page = 500
	for after := (&event.Cursor{}); after != nil; {
		var users []*event.Object[user.User]
		if users, after, err = user.Kind.List(ctx, r,
			event.Query{Group: user.HoldersOf(id), After: *after, Limit: page}); err != nil {
			return nil, err
		}
		holders = append(holders, users...)
	}
	return holders, nil
}
