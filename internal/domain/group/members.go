package group

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// page is how many members are read at a time.
const page = 500

// ListMembers reads a page of the users in a group of the permit's organization, ordered by identifier. Errors:
// ErrNotFound.
func ListMembers(ctx context.Context, r event.Reader, permit access.Permit, id string, after event.Cursor,
	limit int) ([]*event.Object[user.User], *event.Cursor, error) {
	if _, err := Get(ctx, r, permit, id); err != nil {
		return nil, nil, err
	}
	return user.Kind.List(ctx, r, event.Query{Group: user.InGroupOf(id), After: after, Limit: limit})
}

// Members reads all members of a group that gives roles. Errors: ErrTooLarge where there are more than such a group can
// have.
func Members(ctx context.Context, r event.Reader, id string) (members []*event.Object[user.User], err error) {
	for after := (&event.Cursor{}); after != nil; {
		var users []*event.Object[user.User]
		if users, after, err = user.Kind.List(ctx, r,
			event.Query{Group: user.InGroupOf(id), After: *after, Limit: page}); err != nil {
			return nil, err
		}
		if members = append(members, users...); len(members) > MaxRoleMembers {
			return nil, ErrTooLarge
		}
	}
	return members, nil
}

// OfUser reads a page of the groups of a user, in one organization or, where org is empty, in all of them, ordered by
// identifier. Groups that were removed are not among them.
func OfUser(ctx context.Context, r event.Reader, u *user.User, org string, after event.Cursor,
	limit int) (groups []*event.Object[Group], next *event.Cursor, err error) {
	var ids []string
	for owner, in := range u.Groups {
		for _, g := range in {
			if (org == "" || owner == org) && g.ID > after.ID {
				ids = append(ids, g.ID)
			}
		}
	}
	slices.Sort(ids)
	if len(ids) > limit {
		ids, next = ids[:limit], &event.Cursor{ID: ids[limit-1]}
	}
	refs := make([]event.Ref, len(ids))
	for i, id := range ids {
		refs[i] = Kind.Ref(id)
	}
	found, err := r.Records(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	for _, ref := range refs {
		rec, there := found[ref]
		if !there {
			continue
		}
		g, err := Kind.Open(rec)
		if err != nil {
			return nil, nil, err
		}
		if g.Data.State == Active {
			groups = append(groups, g)
		}
	}
	return groups, next, nil
}

// OfMember is OfUser for the permit's organization: a user of it, or a guest. Errors: user.ErrNotFound.
func OfMember(ctx context.Context, r event.Reader, permit access.Permit, userID string, after event.Cursor,
	limit int) ([]*event.Object[Group], *event.Cursor, error) {
	u, err := inside(permit, userID).Read(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return OfUser(ctx, r, &u.Data, permit.Org(), after, limit)
}

// inside is somebody who belongs to the permit's organization, or is a guest there. Errors: user.ErrNotFound.
func inside(permit access.Permit, id string) event.Target[user.User] {
	return event.Target[user.User]{
		Kind:   user.Kind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(o *event.Object[user.User]) error {
			if o == nil || o.Data.State == user.Removed || !permit.Reaches(o.Org) && !user.IsGuest(o, permit.Org()) {
				return user.ErrNotFound
			}
			return nil
		},
	}
}

// AddMember puts a user of the permit's organization, or a guest, into a group. Who is in it stays in it. A group that
// gives roles takes the permission to give them. Errors: user.ErrNotFound; ErrNotFound; access.ErrDenied;
// member.ErrGrantsMore; ErrTooManyGroups; ErrTooLarge; role.ErrTooManyHolders; Aborted when match does not hold, which
// is about the user.
func AddMember(ctx context.Context, s event.Store, permit access.Permit, id, userID string,
	match event.IfMatch) (event.Details, error) {
	return change(ctx, s, permit, id, userID, match, membership.join)
}

// RemoveMember takes a user out of a group. Errors: user.ErrNotFound; ErrNotFound; access.ErrDenied;
// access.ErrTargetHoldsMore; ErrMemberNotFound; member.ErrLastOrgOwner; Aborted when match does not hold, which is
// about the user.
func RemoveMember(ctx context.Context, s event.Store, permit access.Permit, id, userID string,
	match event.IfMatch) (event.Details, error) {
	return change(ctx, s, permit, id, userID, match, membership.leave)
}

// membership is a change of who is in a group, inside its command.
type membership struct {
	permit  access.Permit
	store   event.Store
	unasked string // whose people are not asked, see member.Unasked
	owners  *member.Owners
	recount *recount

	tx    *event.Tx
	user  *event.Object[user.User]
	group *event.Object[Group]
}

// recount is how many members a group really has.
type recount struct {
	members  int64
	sequence uint64 // of the group when it was counted; 0: not counted
}

func change(ctx context.Context, s event.Store, permit access.Permit, id, userID string, match event.IfMatch,
	decide func(membership) error) (event.Details, error) {
	unasked, err := member.Unasked(ctx, s, permit)
	if err != nil {
		return event.Details{}, err
	}
	c := membership{permit: permit, store: s, unasked: unasked, owners: member.OwnersOfBut(s, permit.Org(), userID),
		recount: &recount{}}
	needs := event.Command{Read: []event.Ref{Kind.Ref(id)}}
	return inside(permit, userID).Needs(needs).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[user.User]) error {
			c := c // a command may be decided more than once
			c.tx, c.user = tx, u
			var err error
			if c.group, err = Within(permit, id).Get(tx); err != nil {
				return err
			}
			return decide(c)
		})
}

// endsOwner tells whether the user would own the organization no longer without the group.
func (c membership) endsOwner(u *event.Object[user.User], g *event.Object[Group]) bool {
	return slices.Contains(u.Data.Memberships[g.Org], access.OrgOwner) &&
		!slices.Contains(u.Data.Without(g.Org, g.ID), access.OrgOwner)
}

// mayLeave tells whether the caller may leave the organization without an owner: only callers with a role in the
// installation may.
func mayLeave(permit access.Permit) bool { return permit.ForInstallation(access.MemberWrite) }

// gives are the roles that the group gives.
func (c membership) gives() access.Memberships {
	return access.Memberships{c.group.Org: c.group.Data.Roles}
}

// mayGive refuses who may not give or take the roles of this API.
func mayGive(permit access.Permit) error {
	if !permit.Holds(access.MemberWrite, permit.Org()) {
		return access.ErrDenied
	}
	return nil
}

func (c membership) join() error {
	g := &c.group.Data
	if len(g.Roles) > 0 {
		if err := mayGive(c.permit); err != nil {
			return err
		}
		if c.permit.Covers(c.gives()) != nil {
			return member.ErrGrantsMore
		}
	}
	if g.HasAppRoles() && !c.permit.Holds(access.AppRoleWrite, c.group.Org) {
		return access.ErrDenied
	}
	if c.user.Data.In(c.group.Org, c.group.ID) {
		return nil
	}
	if err := c.room(); err != nil {
		return err
	}
	if err := c.counted(MemberAdded{UserID: c.user.ID}); err != nil {
		return err
	}
	if err := role.GiveTo(c.tx, c.store, c.user, c.group.Org, g.Roles); err != nil {
		return err
	}
	if err := member.Give(c.user, c.group.Org, g.Roles, c.unasked); err != nil {
		return err
	}
	return c.user.Append(user.GroupJoined{Org: c.group.Org, Group: c.group.ID, Roles: g.Roles})
}

// room refuses one group too many for the user, after groups that are gone have been forgotten, and one member too many
// for the group.
func (c membership) room() error {
	if in := c.user.Data.Groups[c.group.Org]; len(in) >= user.MaxGroups {
		if err := c.forgetRemoved(in); err != nil {
			return err
		}
		if len(c.user.Data.Groups[c.group.Org]) >= user.MaxGroups {
			return ErrTooManyGroups
		}
	}
	g := c.group
	if !g.Data.counts() || g.Data.Members < MaxRoleMembers {
		return nil
	}
	if sequence := g.Sequence; c.recount.sequence != sequence {
		return event.Look(func(ctx context.Context) (event.Command, error) {
			all, err := Members(ctx, c.store, g.ID)
			*c.recount = recount{int64(len(all)), sequence}
			return event.Command{}, err
		})
	}
	if c.recount.members >= MaxRoleMembers {
		return ErrTooLarge
	}
	return c.counted(MembersCounted{Members: c.recount.members})
}

// forgetRemoved takes the user out of those groups that have been removed.
func (c membership) forgetRemoved(in []user.InGroup) error {
	var needs event.Command
	for _, had := range in {
		needs.Read = append(needs.Read, Kind.Ref(had.ID))
	}
	if err := c.tx.Require(needs); err != nil {
		return err
	}
	for _, had := range slices.Clone(in) {
		g, err := Kind.Get(c.tx, had.ID)
		if err != nil {
			return err
		}
		if g != nil && g.Data.State != Removed {
			continue
		}
		if err := c.user.Append(user.GroupLeft{Org: c.group.Org, Group: had.ID}); err != nil {
			return err
		}
	}
	return nil
}

// counted tells a group that counts its members.
func (c membership) counted(fact event.Fact[Group]) error {
	if !c.group.Data.counts() {
		return nil
	}
	if err := c.tx.Require(event.Command{Write: []event.Ref{Kind.Ref(c.group.ID)}}); err != nil {
		return err
	}
	return c.group.Append(fact)
}

func (c membership) leave() error {
	if len(c.group.Data.Roles) > 0 {
		if err := mayGive(c.permit); err != nil {
			return err
		}
		if err := c.permit.Covers(c.gives()); err != nil {
			return err
		}
	}
	if !c.user.Data.In(c.group.Org, c.group.ID) {
		return ErrMemberNotFound
	}
	if c.endsOwner(c.user, c.group) {
		if err := c.owners.Stop(c.tx, c.group.Org, mayLeave(c.permit), c.user); err != nil {
			return err
		}
	}
	if err := c.counted(MemberRemoved{UserID: c.user.ID}); err != nil {
		return err
	}
	return c.user.Append(user.GroupLeft{Org: c.group.Org, Group: c.group.ID})
}
