// Package customrole changes custom roles together with their holders, and the groups that give them.
//
// A change of the permissions is a change for everybody who holds the role: it takes what it would take to give the
// role to each of them, and all of them have the new permissions from the same moment on.
package customrole

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// HoldersHoldMore is the reason of a refusal for what holders hold besides the role.
const HoldersHoldMore errs.Reason = "ROLE_HOLDERS_HOLD_MORE"

// Change gives a role of the permit's scope another name, description and permissions. The caller holds all
// permissions that the role has before and after, and may give roles to each of its holders. People of other
// organizations keep what they have accepted; what goes beyond it waits until they accept it. Errors: InvalidArgument
// with the violations of n; role.ErrHoldsMore; role.ErrNotFound; role.ErrNameTaken; PermissionDenied,
// ROLE_HOLDERS_HOLD_MORE, with their names; Aborted when match does not hold.
func Change(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	n role.New) (event.Details, error) {
	if err := n.Violations(permit.Org()).Err(); err != nil {
		return event.Details{}, err
	}
	held := n.Held()
	if err := role.MayHave(permit, held); err != nil {
		return event.Details{}, err
	}
	unasked, err := member.Unasked(ctx, s, permit)
	if err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(n.Name)
	claim := event.Command{Claims: []event.Claim{role.NameClaim(permit.Org(), key)}}
	change := &change{permit: permit, reader: s, unasked: unasked}
	return changeable(permit, id).Needs(claim).Change(ctx, s, match,
		func(tx *event.Tx, o *event.Object[role.Role]) error {
			if err := role.Free(tx, o.Org, key, o.ID); err != nil {
				return err
			}
			if !slices.Equal(held, o.Data.Permissions) {
				holders, err := change.tell(tx, o, access.Custom(o.ID, held))
				if err != nil {
					return err
				}
				if err := o.Append(role.PermissionsSet{Permissions: held, Holders: holders}); err != nil {
					return err
				}
			}
			return o.Append(role.Changed{
				Name:        event.Changed(o.Data.Name, n.Name),
				NameKey:     event.Changed(o.Data.NameKey, key),
				Description: event.Changed(o.Data.Description, n.Description),
			})
		})
}

// Remove ends a role of the permit's scope, and all its holders lose it in the same moment. Errors: role.ErrNotFound;
// role.ErrHoldsMore; PermissionDenied, ROLE_HOLDERS_HOLD_MORE, with their names; Aborted when match does not hold.
func Remove(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	change := &change{permit: permit, reader: s}
	return changeable(permit, id).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[role.Role]) error {
		if _, err := change.tell(tx, o, access.Custom(o.ID, nil)); err != nil {
			return err
		}
		return o.Append(role.WasRemoved{})
	})
}

// changeable is a role the permit reaches whose permissions the caller holds. Errors: role.ErrNotFound;
// role.ErrHoldsMore.
func changeable(permit access.Permit, id string) event.Target[role.Role] {
	return role.Within(permit, id).And(func(r *role.Role) error { return role.MayHave(permit, r.Permissions) })
}

// change is a change of a role's permissions.
type change struct {
	permit  access.Permit
	reader  event.Reader
	unasked string // whose people are not asked, see member.Unasked

	sequence uint64 // of the role when its holders were listed: it changes with everybody who gets it
	users    []event.Ref
	groups   []event.Ref
}

// tell gives all who hold a role, and the groups that give it, the role as it is from now on, and says how many hold
// it. The command is run by event.Do.
func (c *change) tell(tx *event.Tx, o *event.Object[role.Role], now access.Role) (holders int64, err error) {
	if sequence := o.Sequence; c.sequence != sequence {
		return 0, event.Look(func(ctx context.Context) (event.Command, error) { return c.look(ctx, o.ID, sequence) })
	}
	var users []*event.Object[user.User]
	for _, ref := range c.users {
		u, err := user.Kind.Get(tx, ref.ID)
		if err != nil {
			return 0, err
		}
		if u != nil && u.Data.HasRole(o.Org, o.ID) { // it may have been taken away
			users = append(users, u)
		}
	}
	if err := c.covers(o.Org, users); err != nil {
		return 0, err
	}
	for _, ref := range c.groups {
		if err := tellGroup(tx, ref.ID, now); err != nil {
			return 0, err
		}
	}
	before, _ := now.Only(o.Data.Permissions)
	for _, u := range users {
		if o.Org != access.Installation && before != now { // it widens
			if err := member.Give(u, o.Org, []access.Role{now}, c.unasked); err != nil {
				return 0, err
			}
		}
		if err := u.Append(user.CustomRoleChanged{Scope: o.Org, Role: now, Stays: user.IsGuest(u, o.Org)}); err != nil {
			return 0, err
		}
	}
	if o.Org == access.Installation && len(users) > 0 {
		i, err := installation.Kind.Get(tx, installation.ID)
		if err != nil {
			return 0, err
		}
		if err := i.Append(installation.MembersChanged{Role: o.ID}); err != nil {
			return 0, err
		}
	}
	return int64(len(users)), nil
}

// look lists who holds a role, and which groups give it, when the role has a sequence.
func (c *change) look(ctx context.Context, id string, sequence uint64) (needs event.Command, err error) {
	c.sequence, c.users, c.groups = sequence, nil, nil
	for after := (&event.Cursor{}); after != nil; {
		var groups []*event.Object[group.Group]
		if groups, after, err = group.Kind.List(ctx, c.reader,
			event.Query{Group: group.GivingRole(id), After: *after, Limit: 500}); err != nil {
			return needs, err
		}
		for _, g := range groups {
			c.groups = append(c.groups, group.Kind.Ref(g.ID))
		}
	}
	users, err := role.Holders(ctx, c.reader, id)
	if err != nil {
		return needs, err
	}
	for _, u := range users {
		c.users = append(c.users, user.Kind.Ref(u.ID))
	}
	needs.Write = slices.Concat(c.groups, c.users)
	if c.permit.Org() == access.Installation {
		needs.Write = append(needs.Write, installation.Ref)
	}
	return needs, nil
}

func tellGroup(tx *event.Tx, id string, now access.Role) error {
	g, err := group.Kind.Get(tx, id)
	if err != nil || g == nil {
		return err
	}
	roles, gives := access.Replaced(g.Data.Roles, now)
	if !gives {
		return nil
	}
	members := g.Data.Members
	if len(roles) == 0 { // nobody counts any more
		members = 0
	}
	return g.Append(group.RolesSet{Roles: roles, Members: members})
}

// named is how many holders a refusal names.
const named = 10

// covers refuses who may not give roles to all of the holders: some hold something in the scope that the caller does
// not. Who may read the members is told which.
func (c *change) covers(scope string, users []*event.Object[user.User]) error {
	var greater []string
	for _, u := range users {
		if c.permit.Covers(access.Memberships{scope: u.Data.Memberships[scope]}) != nil {
			greater = append(greater, u.Data.ShownName())
		}
	}
	if len(greater) == 0 {
		return nil
	}
	slices.Sort(greater)
	read := access.MemberRead
	if scope == access.Installation {
		read = access.SystemRead
	}
	who := fmt.Sprintf("%d of its holders have", len(greater))
	if c.permit.Holds(read, scope) {
		more := ""
		if len(greater) > named {
			more = fmt.Sprintf(" and %d more", len(greater)-named)
		}
		who = "these of its holders have: " + strings.Join(greater[:min(len(greater), named)], ", ") + more
	}
	return errs.New(errs.PermissionDenied, HoldersHoldMore,
		"changing a role takes all permissions of its holders, and you lack some that "+who+
			". Ask somebody who has all of them")
}
