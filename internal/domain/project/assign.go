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
	return event.Target[user.User]{Kind: user.Kind, ID: id, Origin: permit.Origin(), Reach: func(u *event.Object[user.User]) error {
		if u == nil || u.Data.State == user.Removed || !permit.Reaches(permit.Org()) || !belongs(u, permit.Org()) {
			return user.ErrNotFound
		}
		return nil
	}}
}

// SetUserRoles sets which roles of a project a user has in the permit's organization, in place of those before; none
// ends them. The organization has the project, or access to it. Errors: InvalidArgument on roleKeys; user.ErrNotFound;
// ErrNotFound; ErrRoleNotFound; ErrTooManyPlaces; Aborted when match does not hold.
func SetUserRoles(ctx context.Context, s event.Store, permit access.Permit, userID, projectID string, match event.IfMatch, keys []string) (details event.Details, err error) {
	if err := RoleKeyViolations(keys).Err(); err != nil {
		return event.Details{}, err
	}
	target := holder(permit, userID)
	err = settle(func() error {
		seen, err := target.Read(ctx, s)
		if err != nil {
			return err
		}
		at, err := locate(ctx, s, permit.Org(), projectID)
		if err != nil {
			return err
		}
		room, err := makeRoom(ctx, s, seen.Data.AppRoles, at.org)
		if err != nil {
			return err
		}
		details, err = target.Needs(event.Command{Read: at.refs()}).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[user.User]) error {
			p, err := at.in(tx)
			if err != nil {
				return err
			}
			roles, err := p.resolve(keys)
			if err != nil {
				return err
			}
			next := user.AppRoles{Place: at.id(), Project: projectID, Org: at.org, Roles: roles}
			if same(u.Data.AppRoles, next) {
				return nil
			}
			gone, err := room.give(u.Data.AppRoles, next)
			if err != nil {
				return err
			}
			for _, g := range append(gone, next) {
				if err := u.Append(user.AppRolesSet(g)); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	return details, err
}

// SetGroupRoles sets which roles of a project the members of a group have through it in the permit's organization, in
// place of those before; none ends them. Errors: InvalidArgument on roleKeys; group.ErrNotFound; ErrNotFound;
// ErrRoleNotFound; ErrTooManyGroups; ErrTooManyPlaces; Aborted when match does not hold.
func SetGroupRoles(ctx context.Context, s event.Store, permit access.Permit, groupID, projectID string, match event.IfMatch, keys []string) (details event.Details, err error) {
	if err := RoleKeyViolations(keys).Err(); err != nil {
		return event.Details{}, err
	}
	target := group.Within(permit, groupID)
	err = settle(func() error {
		seen, err := target.Read(ctx, s)
		if err != nil {
			return err
		}
		at, err := locate(ctx, s, permit.Org(), projectID)
		if err != nil {
			return err
		}
		room, err := makeRoom(ctx, s, seen.Data.AppRoles, at.org)
		if err != nil {
			return err
		}
		lost, err := lostGroups(ctx, s, at)
		if err != nil {
			return err
		}
		needs := event.Command{Read: at.refs()}
		if i := slices.Index(needs.Read, at.ref()); i >= 0 {
			needs.Read, needs.Write = slices.Delete(needs.Read, i, i+1), []event.Ref{at.ref()}
		}
		details, err = target.Needs(needs).Change(ctx, s, match, func(tx *event.Tx, g *event.Object[group.Group]) error {
			p, err := at.in(tx)
			if err != nil {
				return err
			}
			roles, err := p.resolve(keys)
			if err != nil {
				return err
			}
			next := user.AppRoles{Place: at.id(), Project: projectID, Org: at.org, Roles: roles}
			if same(g.Data.AppRoles, next) {
				return nil
			}
			gone, err := room.give(g.Data.AppRoles, next)
			if err != nil {
				return err
			}
			for _, r := range append(gone, next) {
				if err := g.Append(group.AppRolesSet(r)); err != nil {
					return err
				}
			}
			if err := p.freeSlots(lost, groupID); err != nil {
				return err
			}
			return p.setGroup(groupID, roles)
		})
		return err
	})
	return details, err
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

// room is what can go where somebody has roles in as many places as an organization may give: those in places that are
// gone.
type room struct {
	full bool
	gone []user.AppRoles
}

func makeRoom(ctx context.Context, r event.Reader, all []user.AppRoles, orgID string) (made room, err error) {
	all = givenIn(all, orgID)
	if made.full = len(all) >= user.MaxAppRoles; made.full {
		made.gone, err = ended(ctx, r, all)
	}
	return made, err
}

// give says what has to go for next. Errors: ErrTooManyPlaces; errStale where the bound was reached only since.
func (r room) give(all []user.AppRoles, next user.AppRoles) (gone []user.AppRoles, err error) {
	all = givenIn(all, next.Org)
	in := func(place string) bool {
		return slices.ContainsFunc(all, func(r user.AppRoles) bool { return r.Place == place })
	}
	if len(all) < user.MaxAppRoles || in(next.Place) {
		return nil, nil
	}
	if !r.full {
		return nil, errStale
	}
	for _, g := range r.gone {
		if in(g.Place) {
			gone = append(gone, g)
		}
	}
	if len(gone) == 0 {
		return nil, ErrTooManyPlaces
	}
	return gone, nil
}

// lostGroups are the groups that are gone and still stand in a place; they are looked for only where it is full.
func lostGroups(ctx context.Context, r event.Reader, at spot) (lost []string, err error) {
	p, err := at.open(ctx, r)
	if err != nil || len(p.groups()) < MaxGroupRoles {
		return nil, err
	}
	for _, g := range p.groups() {
		o, err := group.Kind.Read(ctx, r, g.Group)
		if err != nil {
			return nil, err
		}
		if o == nil || o.Data.State == group.Removed {
			lost = append(lost, g.Group)
		}
	}
	return lost, nil
}

// freeSlots takes groups that are gone out of a full place. Errors: ErrTooManyGroups where there is no room for another
// group.
func (p place) freeSlots(lost []string, next string) error {
	has := func(id string) bool {
		return slices.ContainsFunc(p.groups(), func(g GroupRoles) bool { return g.Group == id })
	}
	if len(p.groups()) < MaxGroupRoles || has(next) {
		return nil
	}
	for _, id := range lost {
		if has(id) {
			if err := p.setGroup(id, nil); err != nil {
				return err
			}
		}
	}
	if len(p.groups()) >= MaxGroupRoles {
		return ErrTooManyGroups
	}
	return nil
}
