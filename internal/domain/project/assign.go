package project

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// holder is a user of the permit's organization or one of its guests. Errors: user.ErrNotFound.
func holder(permit access.Permit, id string) event.Target[user.User] {
	return event.Target[user.User]{
		Kind:   user.Kind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(u *event.Object[user.User]) error {
			if u == nil || u.Data.State == user.Removed || !permit.Reaches(permit.Org()) || !belongs(u, permit.Org()) {
				return user.ErrNotFound
			}
			return nil
		},
	}
}

// SetUserRoles sets which roles of a project a user has in the permit's organization, in place of those before; none
// ends them. The organization has the project, or access to it. Errors: InvalidArgument on roleKeys; user.ErrNotFound;
// ErrNotFound; ErrRoleNotFound; ErrTooManyPlaces; Aborted when match does not hold.
func SetUserRoles(ctx context.Context, s event.Store, permit access.Permit, userID, projectID string,
	match event.IfMatch, keys []string) (event.Details, error) {
	if err := RoleKeyViolations(keys).Err(); err != nil {
		return event.Details{}, err
	}
	target := holder(permit, userID).Needs(placeNeeds(permit.Org(), projectID))
	return target.Change(ctx, s, match, func(tx *event.Tx, u *event.Object[user.User]) error {
		p, err := placeIn(tx, permit.Org(), projectID)
		if err != nil {
			return err
		}
		changes, err := p.changes(tx, u.Data.AppRoles, keys)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if err := u.Append(user.AppRolesSet(c)); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetGroupRoles sets which roles of a project the members of a group have through it in the permit's organization, in
// place of those before; none ends them. Errors: InvalidArgument on roleKeys; group.ErrNotFound; ErrNotFound;
// ErrRoleNotFound; ErrTooManyGroups; ErrTooManyPlaces; Aborted when match does not hold.
func SetGroupRoles(ctx context.Context, s event.Store, permit access.Permit, groupID, projectID string,
	match event.IfMatch, keys []string) (event.Details, error) {
	if err := RoleKeyViolations(keys).Err(); err != nil {
		return event.Details{}, err
	}
	target := group.Within(permit, groupID).Needs(placeNeeds(permit.Org(), projectID))
	return target.Change(ctx, s, match, func(tx *event.Tx, g *event.Object[group.Group]) error {
		p, err := placeIn(tx, permit.Org(), projectID)
		if err != nil {
			return err
		}
		changes, err := p.changes(tx, g.Data.AppRoles, keys)
		if err != nil || len(changes) == 0 {
			return err
		}
		for _, c := range changes {
			if err := g.Append(group.AppRolesSet(c)); err != nil {
				return err
			}
		}
		if err := tx.Require(event.Command{Write: []event.Ref{p.ref()}}); err != nil {
			return err
		}
		if err := p.dropGoneGroups(tx, groupID); err != nil {
			return err
		}
		return p.setGroup(groupID, changes[len(changes)-1].Roles)
	})
}

// changes are what is recorded of somebody who has the roles all and gets those of these keys here, in place of those
// before: roles in places that are gone, where there is no room otherwise, and the new ones last. Nothing where nothing
// changes. Errors: ErrRoleNotFound; ErrTooManyPlaces.
func (p place) changes(tx *event.Tx, all []user.AppRoles, keys []string) ([]user.AppRoles, error) {
	roles, err := p.resolve(keys)
	if err != nil {
		return nil, err
	}
	next := user.AppRoles{Place: p.id(), Project: p.project, Org: p.org, Roles: roles}
	if same(all, next) {
		return nil, nil
	}
	all = givenIn(all, next.Org)
	has := slices.ContainsFunc(all, func(r user.AppRoles) bool { return r.Place == next.Place })
	if has || len(all) < user.MaxAppRoles {
		return []user.AppRoles{next}, nil
	}
	gone, err := ended(tx, all)
	if err == nil && len(gone) == 0 {
		err = ErrTooManyPlaces
	}
	return append(gone, next), err
}

// same tells whether somebody has exactly these roles already.
func same(all []user.AppRoles, next user.AppRoles) bool {
	i := slices.IndexFunc(all, func(r user.AppRoles) bool { return r.Place == next.Place })
	if i < 0 {
		return len(next.Roles) == 0
	}
	return slices.Equal(all[i].Roles, next.Roles)
}

// givenIn are those of the roles that an organization has given.
func givenIn(all []user.AppRoles, orgID string) (given []user.AppRoles) {
	for _, r := range all {
		if r.Org == orgID {
			given = append(given, r)
		}
	}
	return given
}

// dropGoneGroups takes groups that are gone out of a full place. Errors: ErrTooManyGroups where there is no room for
// another group.
func (p place) dropGoneGroups(tx *event.Tx, next string) error {
	all := slices.Clone(p.groups())
	has := slices.ContainsFunc(all, func(g GroupRoles) bool { return g.Group == next })
	if has || len(all) < MaxGroupRoles {
		return nil
	}
	var needs event.Command
	for _, g := range all {
		needs.Read = append(needs.Read, group.Kind.Ref(g.Group))
	}
	if err := tx.Require(needs); err != nil {
		return err
	}
	for _, g := range all {
		o, err := group.Kind.Get(tx, g.Group)
		if err != nil {
			return err
		}
		if o != nil && o.Data.State != group.Removed {
			continue
		}
		if err := p.setGroup(g.Group, nil); err != nil {
			return err
		}
	}
	if len(p.groups()) >= MaxGroupRoles {
		return ErrTooManyGroups
	}
	return nil
}
