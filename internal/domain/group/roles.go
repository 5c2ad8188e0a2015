package group

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// SetRoles says which roles of this API a group of the permit's organization gives, in place of those before. All its
// members hold them from the same moment on. Errors: InvalidArgument for unknown roles; access.ErrDenied;
// member.ErrGrantsMore; ErrNotFound; access.ErrTargetHoldsMore; ErrTooLarge; role.ErrTooManyHolders;
// member.ErrLastOrgOwner; Aborted when match does not hold.
func SetRoles(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	names []string) (event.Details, error) {
	if wrong := access.GivenViolations(permit.Org(), names); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	if err := mayGive(permit); err != nil {
		return event.Details{}, err
	}
	covers := func(roles ...access.Role) error {
		if permit.Covers(access.Memberships{permit.Org(): roles}) != nil {
			return member.ErrGrantsMore
		}
		return nil
	}
	for _, name := range names { // what custom roles bring is known in the command only
		if err := covers(access.Role(name)); err != nil {
			return event.Details{}, err
		}
	}
	unasked, err := member.Unasked(ctx, s, permit)
	if err != nil {
		return event.Details{}, err
	}
	target := Giving(permit, id)
	// Who joins a group without roles does not change the group. Before it gives any, it has to know who joins.
	count := func(ctx context.Context) (event.Command, error) {
		all, err := Members(ctx, s, id)
		if err != nil {
			return event.Command{}, err
		}
		counting, err := target.Change(ctx, s, match, func(_ *event.Tx, g *event.Object[Group]) error {
			if g.Data.counts() {
				return nil
			}
			return g.Append(MembersCounted{Members: int64(len(all))})
		})
		match.Sequence = counting.Sequence
		return event.Command{}, err
	}
	set := func(orgOfFact string) (event.Details, error) {
		all := AllOf(s, permit, id) // anew: a second command declares nothing that the first one has found
		return target.Change(ctx, s, match, func(tx *event.Tx, g *event.Object[Group]) error {
			g.Expect(match)
			roles, err := role.Resolve(tx, g.Org, names)
			if err != nil {
				return err
			}
			if err := covers(roles...); err != nil {
				return err
			}
			switch {
			case slices.Equal(g.Data.Roles, roles):
				return nil
			case !g.Data.counts():
				return event.Look(count)
			}
			members, err := all.In(tx, g, roles)
			if err != nil {
				return err
			}
			// one at least: a change of a custom role has to find the group, too
			if err := role.Give(tx, s, fresh(g.Data.Roles, roles), max(int64(len(members)), 1)); err != nil {
				return err
			}
			for _, u := range members {
				if err := member.Give(u, g.Org, roles, unasked); err != nil {
					return err
				}
				fact := user.GroupRolesSet{Org: orgOfFact, Group: g.ID, Roles: roles}
				if user.IsGuest(u, g.Org) {
					fact.Org = g.Org // by which the log knows that it is not the business of the user's own organization
				}
				if err := u.Append(fact); err != nil {
					return err
				}
			}
			return g.Append(RolesSet{Roles: roles, Members: counted(roles, members)})
		})
	}
	details, err := set("")
	// they know the long form only
	if e, _ := errors.AsType[*errs.Error](err); e != nil && e.Reason == event.OlderNodes {
		details, err = set(permit.Org())
	}
	return details, err
}

// fresh are those of the roles that a group does not give yet.
func fresh(before, roles []access.Role) []access.Role {
	return slices.DeleteFunc(slices.Clone(roles), func(r access.Role) bool { return slices.Contains(before, r) })
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
	reader   event.Reader
	sequence uint64 // of the group when its members were listed: it changes with everybody who joins or leaves
	listed   []event.Ref
	owners   *member.Owners
	mayLeave bool // the organization without an owner
}

// AllOf are the members of a group whose roles are about to change.
func AllOf(r event.Reader, permit access.Permit, id string) *All {
	return &All{reader: r, owners: member.OwnersWithout(r, permit.Org(), id), mayLeave: mayLeave(permit)}
}

// In gives the members, for writing, inside a command that has not changed the group yet and will have it give other
// roles. The group counts its members, and the command is run by event.Do. Errors: ErrTooLarge; member.ErrLastOrgOwner.
func (a *All) In(tx *event.Tx, g *event.Object[Group],
	roles []access.Role) (members []*event.Object[user.User], err error) {
	if sequence := g.Sequence; a.sequence != sequence {
		return nil, event.Look(func(ctx context.Context) (event.Command, error) {
			users, err := Members(ctx, a.reader, g.ID)
			a.sequence, a.listed = sequence, nil
			for _, u := range users {
				a.listed = append(a.listed, user.Kind.Ref(u.ID))
			}
			return event.Command{Write: a.listed}, err
		})
	}
	for _, ref := range a.listed {
		u, err := user.Kind.Get(tx, ref.ID)
		if err != nil {
			return nil, err
		}
		// a user may have been removed, or have left the organization, without the group
		if u != nil && u.Data.In(g.Org, g.ID) {
			members = append(members, u)
		}
	}
	if !slices.Contains(g.Data.Roles, access.OrgOwner) || slices.Contains(roles, access.OrgOwner) {
		return members, nil
	}
	var ended []*event.Object[user.User] // they own the organization by this group alone
	for _, u := range members {
		if !slices.Contains(u.Data.Without(g.Org, g.ID), access.OrgOwner) {
			ended = append(ended, u)
		}
	}
	if len(ended) > 0 {
		err = a.owners.Stop(tx, g.Org, a.mayLeave, ended...)
	}
	return members, err
}
