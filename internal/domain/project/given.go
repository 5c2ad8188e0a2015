package project

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Given are the roles of one project that somebody has in one organization: only those that count.
type Given struct {
	Project, ProjectName string
	Org                  string
	Roles                []GivenRole
}

// GivenRole is a role with where it comes from.
type GivenRole struct {
	Role
	Direct bool
	Groups []string // that give it
}

// RolesOfUser lists what a user has in the permit's organization. Errors: user.ErrNotFound.
func RolesOfUser(ctx context.Context, r event.Reader, permit access.Permit, userID string) ([]Given, error) {
	u, err := holder(permit, userID).Read(ctx, r)
	if err != nil {
		return nil, err
	}
	return rolesOf(ctx, r, u, permit.Org())
}

// MyRoles lists what the caller has in all organizations. Errors: user.ErrNotFound.
func MyRoles(ctx context.Context, r event.Reader, caller *access.Caller) ([]Given, error) {
	u, err := user.Self(ctx, r, caller)
	if err != nil {
		return nil, err
	}
	return rolesOf(ctx, r, u, "")
}

// rolesOf lists what a user has in an organization, or in all.
func rolesOf(ctx context.Context, r event.Reader, u *event.Object[user.User], only string) ([]Given, error) {
	g := gathering{ctx: ctx, r: r, in: map[spot]*gathered{}}
	for _, given := range u.Data.AppRoles {
		if (only == "" || given.Org == only) && belongs(u, given.Org) {
			if err := g.add(given, ""); err != nil {
				return nil, err
			}
		}
	}
	for _, in := range slices.Sorted(maps.Keys(u.Data.Groups)) {
		if only != "" && in != only || !belongs(u, in) {
			continue
		}
		for _, member := range u.Data.Groups[in] {
			o, err := group.Kind.Read(ctx, r, member.ID)
			if err != nil {
				return nil, err
			}
			if o == nil || o.Data.State == group.Removed || o.Org != in {
				continue // users may still name groups that are gone
			}
			for _, given := range o.Data.AppRoles {
				if err := g.add(given, o.ID); err != nil {
					return nil, err
				}
			}
		}
	}
	return g.result(), nil
}

// RolesOfGroup lists what the members of a group of the permit's organization have through it. Errors:
// group.ErrNotFound.
func RolesOfGroup(ctx context.Context, r event.Reader, permit access.Permit, groupID string) ([]Given, error) {
	o, err := group.Within(permit, groupID).Read(ctx, r)
	if err != nil {
		return nil, err
	}
	g := gathering{ctx: ctx, r: r, in: map[spot]*gathered{}}
	for _, given := range o.Data.AppRoles {
		if err := g.add(given, o.ID); err != nil {
			return nil, err
		}
	}
	return g.result(), nil
}

// gathering puts together what somebody has in each place.
type gathering struct {
	ctx context.Context
	r   event.Reader
	in  map[spot]*gathered
}

type gathered struct {
	place
	roles map[string]*GivenRole // by key
}

// add adds what was given in one place, directly or through a group.
func (g *gathering) add(given user.AppRoles, groupID string) error {
	at := spotOf(given)
	have := g.in[at]
	if have == nil {
		p, err := at.open(g.ctx, g.r)
		if err != nil {
			return err
		}
		have = &gathered{place: p, roles: map[string]*GivenRole{}}
		g.in[at] = have
	}
	for _, role := range have.counting(given.Roles) {
		if have.roles[role.Key] == nil {
			have.roles[role.Key] = &GivenRole{Role: role}
		}
		if groupID == "" {
			have.roles[role.Key].Direct = true
		} else {
			have.roles[role.Key].Groups = append(have.roles[role.Key].Groups, groupID)
		}
	}
	return nil
}

// result is sorted by organization and project.
func (g *gathering) result() (all []Given) {
	for _, have := range g.in {
		if len(have.roles) == 0 {
			continue
		}
		given := Given{Project: have.project, ProjectName: have.from.Data.Name, Org: have.org}
		for _, key := range slices.Sorted(maps.Keys(have.roles)) {
			slices.Sort(have.roles[key].Groups)
			given.Roles = append(given.Roles, *have.roles[key])
		}
		all = append(all, given)
	}
	slices.SortFunc(all, func(a, b Given) int {
		return cmp.Or(cmp.Compare(a.Org, b.Org), cmp.Compare(a.Project, b.Project))
	})
	return all
}

// UserWithRoles is a user who has roles in a place without groups.
type UserWithRoles struct {
	User  *event.Object[user.User]
	Roles []Role
}

// ListUsers reads a page of the users who have roles of a project in the permit's organization without groups. Errors:
// ErrNotFound.
func ListUsers(ctx context.Context, r event.Reader, permit access.Permit, projectID string, after event.Cursor,
	limit int) ([]UserWithRoles, *event.Cursor, error) {
	p, err := here(ctx, r, permit, projectID)
	if err != nil {
		return nil, nil, err
	}
	users, next, err := user.Kind.List(ctx, r, event.Query{Group: user.AppRolesIn(p.id()), After: after, Limit: limit})
	if err != nil {
		return nil, nil, err
	}
	var found []UserWithRoles
	for _, u := range users {
		i := slices.IndexFunc(u.Data.AppRoles, func(r user.AppRoles) bool { return r.Place == p.id() })
		if i < 0 || u.Data.State == user.Removed || !belongs(u, p.org) {
			continue
		}
		if roles := p.counting(u.Data.AppRoles[i].Roles); len(roles) > 0 {
			found = append(found, UserWithRoles{User: u, Roles: roles})
		}
	}
	return found, next, nil
}

// GroupWithRoles is a group whose members have roles in a place.
type GroupWithRoles struct {
	Group *event.Object[group.Group]
	Roles []Role
}

// ListGroups lists the groups whose members have roles of a project in the permit's organization, at most
// MaxGroupRoles. Errors: ErrNotFound.
func ListGroups(ctx context.Context, r event.Reader, permit access.Permit, projectID string) ([]GroupWithRoles, error) {
	p, err := here(ctx, r, permit, projectID)
	if err != nil {
		return nil, err
	}
	var found []GroupWithRoles
	for _, given := range p.groups() {
		g, err := group.Kind.Read(ctx, r, given.Group)
		if err != nil {
			return nil, err
		}
		if g == nil || g.Data.State == group.Removed || !permit.Reaches(g.Org) {
			continue
		}
		if roles := p.counting(given.Roles); len(roles) > 0 {
			found = append(found, GroupWithRoles{Group: g, Roles: roles})
		}
	}
	return found, nil
}

// here reads the place of a project in the permit's organization. Errors: ErrNotFound.
func here(ctx context.Context, r event.Reader, permit access.Permit, projectID string) (place, error) {
	if permit.Org() == "" {
		return place{}, access.ErrDenied
	}
	at, err := locate(ctx, r, permit.Org(), projectID)
	if err != nil {
		return place{}, err
	}
	p, err := at.open(ctx, r)
	if err == nil && !p.counts() {
		err = ErrNotFound
	}
	return p, err
}
