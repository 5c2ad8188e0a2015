package group

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// SetRoles says which roles of this API a group of the permit's organization gives, in place of those before. All its
// members hold them from the same moment on. Errors: InvalidArgument for unknown roles; access.ErrDenied;
// member.ErrGrantsMore; ErrNotFound; access.ErrTargetHoldsMore; ErrTooLarge; member.ErrLastOrgOwner; Aborted when match
// does not hold.
func SetRoles(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, names []string) (details event.Details, err error) {
	if wrong := access.RoleViolations(permit.Org(), names); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	var roles []access.Role
	for _, name := range names {
		roles = append(roles, access.Role(name))
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	if err := mayGive(permit); err != nil {
		return event.Details{}, err
	}
	if permit.Covers(access.Memberships{permit.Org(): roles}) != nil {
		return event.Details{}, member.ErrGrantsMore
	}
	unasked, err := member.Unasked(ctx, s, permit)
	if err != nil {
		return event.Details{}, err
	}
	target := Giving(permit, id)
	err = member.Settle(func() error {
		g, err := target.Read(ctx, s)
		if err != nil {
			return err
		}
		if slices.Equal(g.Data.Roles, roles) {
			details, err = target.Change(ctx, s, match, func(_ *event.Tx, now *event.Object[Group]) error {
				if !slices.Equal(now.Data.Roles, roles) {
					return member.ErrMoved
				}
				return nil
			})
			return err
		}
		// Who joins a group without roles does not move it. Before it gives any, it has to know who joins.
		if !g.Data.counts() {
			all, err := Members(ctx, s, id)
			if err != nil {
				return err
			}
			d, err := target.Change(ctx, s, match, func(_ *event.Tx, g *event.Object[Group]) error {
				if g.Data.counts() {
					return member.ErrMoved
				}
				return g.Append(MembersCounted{Members: int64(len(all))})
			})
			if err != nil {
				return err
			}
			match.Sequence, g.Sequence = d.Sequence, d.Sequence
		}
		all, err := AllOf(ctx, s, g, permit, roles)
		if err != nil {
			return err
		}
		set := func(org string) error {
			details, err = target.Needs(all.Needs()).Change(ctx, s, match, func(tx *event.Tx, g *event.Object[Group]) error {
				members, err := all.Settled(tx, g)
				if err != nil {
					return err
				}
				for _, u := range members {
					if err := member.Give(u, g.Org, roles, unasked); err != nil {
						return err
					}
					if err := u.Append(user.GroupRolesSet{Org: org, Group: g.ID, Roles: roles}); err != nil {
						return err
					}
				}
				return g.Append(RolesSet{Roles: roles, Members: counted(roles, members)})
			})
			return err
		}
		err = set("")
		if e, _ := errors.AsType[*errs.Error](err); e != nil && e.Reason == event.OlderNodes { // they know the long form only
			err = set(g.Org)
		}
		return err
	})
	if err != nil {
		return event.Details{}, err
	}
	return details, nil
}

// counted is how many members a group with these roles has: without roles nobody counts.
func counted(roles []access.Role, members []*event.Object[user.User]) int64 {
	if len(roles) == 0 {
		return 0
	}
	return int64(len(members))
}

// Giving is a group whose roles the caller may take: the caller holds all that it gives. Errors: ErrNotFound;
// access.ErrTargetHoldsMore.
func Giving(permit access.Permit, id string) event.Target[Group] {
	return Within(permit, id).And(func(g *Group) error {
		if len(g.Roles) == 0 {
			return nil
		}
		if err := mayGive(permit); err != nil {
			return err
		}
		return permit.Covers(access.Memberships{permit.Org(): g.Roles})
	})
}

// All are the members of a group whose roles are about to change for all of them together.
type All struct {
	sequence uint64 // of the group before they were read: whoever joins or leaves moves it
	users    []*event.Object[user.User]
	owners   *member.Owners // nil: nobody stops to own the organization by it
	ends     func(*event.Object[user.User]) bool
	mayLeave bool // the organization without an owner
}

// AllOf reads the members of a group that knows who joins and leaves, and is going to give these roles. Errors:
// ErrTooLarge.
func AllOf(ctx context.Context, r event.Reader, g *event.Object[Group], permit access.Permit, roles []access.Role) (*All, error) {
	users, err := Members(ctx, r, g.ID)
	if err != nil {
		return nil, err
	}
	ownsBy := slices.Contains(g.Data.Roles, access.OrgOwner) && !slices.Contains(roles, access.OrgOwner)
	all := &All{sequence: g.Sequence, users: users, mayLeave: mayLeave(permit), ends: func(u *event.Object[user.User]) bool {
		return ownsBy && !slices.Contains(u.Data.Without(g.Org, g.ID), access.OrgOwner)
	}}
	if slices.ContainsFunc(users, all.ends) {
		all.owners, err = member.OwnersWithout(ctx, r, g.Org, g.ID)
	}
	return all, err
}

// Needs is what a command has to declare that changes them.
func (a *All) Needs() (needs event.Command) {
	for _, u := range a.users {
		needs.Write = append(needs.Write, user.Kind.Ref(u.ID))
	}
	if a.owners != nil {
		for _, ref := range a.owners.Reads() {
			if !slices.Contains(needs.Write, ref) {
				needs.Read = append(needs.Read, ref)
			}
		}
	}
	return needs
}

// Settled gives those who are in the group at the moment of the command. Errors: member.ErrMoved;
// member.ErrLastOrgOwner.
func (a *All) Settled(tx *event.Tx, g *event.Object[Group]) (members []*event.Object[user.User], err error) {
	if g.Sequence != a.sequence {
		return nil, member.ErrMoved
	}
	for _, known := range a.users {
		u, err := user.Kind.Get(tx, known.ID)
		if err != nil {
			return nil, err
		}
		if u != nil && u.Data.In(g.Org, g.ID) { // a user may have been removed, or have left the organization, without the group
			members = append(members, u)
		}
	}
	if slices.ContainsFunc(members, a.ends) {
		ended := slices.DeleteFunc(slices.Clone(members), func(u *event.Object[user.User]) bool { return !a.ends(u) })
		err = a.owners.Stop(tx, g.Org, a.mayLeave, ended...)
	}
	return members, err
}
