package project

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// spot says where roles of a project are given in an organization: in the project itself, or in the access that the
// organization has to it. The zero value is nowhere.
type spot struct{ org, project, access string }

// locate finds the spot of a project in an organization; nowhere where the organization neither has the project nor
// access to it.
func locate(ctx context.Context, r event.Reader, orgID, projectID string) (spot, error) {
	p, err := Kind.Read(ctx, r, projectID)
	switch {
	case err != nil:
		return spot{}, err
	case p == nil || p.Data.State != Active:
		return spot{}, nil
	case p.Org == orgID:
		return spot{org: orgID, project: projectID}, nil
	}
	holder, err := r.Holder(ctx, AccessClaim(projectID, orgID))
	if err != nil || holder == "" {
		return spot{}, err
	}
	return spot{org: orgID, project: projectID, access: holder}, nil
}

// spotOf is where roles say that they were given.
func spotOf(r user.AppRoles) spot {
	if strings.HasPrefix(r.Place, AccessKind.Prefix()+"_") {
		return spot{org: r.Org, project: r.Project, access: r.Place}
	}
	return spot{org: r.Org, project: r.Place}
}

// ref points at the object that knows what is given there.
func (s spot) ref() event.Ref {
	if s.access != "" {
		return AccessKind.Ref(s.access)
	}
	return Kind.Ref(s.project)
}

// place is a spot as it stands.
type place struct {
	spot
	from  *event.Object[Project]
	given *event.Object[Access] // nil in the project's own organization
}

// counts tells whether anything that was given there counts.
func (p place) counts() bool {
	if p.access != "" && p.given == nil {
		return false
	}
	return counts(p.from, p.given, p.org)
}

// counts tells whether roles that an organization gives count: those of its own project, if a is nil, or those that it
// was granted by an access. Administration and tokens ask the same.
func counts(p *event.Object[Project], a *event.Object[Access], organization string) bool {
	if p == nil || p.Data.State != Active {
		return false
	}
	if a == nil {
		return p.Org == organization
	}
	return a.Data.State == Active && a.Org == organization && a.Data.Project == p.ID && a.Data.Owner == p.Org
}

// open reads a place.
func (s spot) open(ctx context.Context, r event.Reader) (p place, err error) {
	p.spot = s
	if s == (spot{}) {
		return p, nil
	}
	if p.from, err = Kind.Read(ctx, r, s.project); err == nil && s.access != "" {
		p.given, err = AccessKind.Read(ctx, r, s.access)
	}
	return p, err
}

// placeNeeds is what a command declares before it asks placeIn.
func placeNeeds(orgID, projectID string) event.Command {
	return event.Command{Read: []event.Ref{org.Kind.Ref(orgID), Kind.Ref(projectID)},
		Claims: []event.Claim{AccessClaim(projectID, orgID)}}
}

// placeIn gives the place of a project in an organization, inside a command that is run by event.Do. Errors:
// ErrNotFound; org.ErrNotFound.
func placeIn(tx *event.Tx, orgID, projectID string) (p place, err error) {
	p.spot = spot{org: orgID, project: projectID}
	if p.from, err = Kind.Get(tx, projectID); err != nil {
		return p, err
	}
	if p.from == nil || p.from.Org != orgID {
		if p.access, err = tx.Holder(AccessClaim(projectID, orgID)); err != nil {
			return p, err
		}
		if p.access == "" {
			return p, ErrNotFound
		}
		if p.given, err = AccessKind.Follow(tx, p.access); err != nil {
			return p, err
		}
	}
	if !p.counts() {
		return p, ErrNotFound
	}
	_, err = org.In(tx, orgID)
	return p, err
}

// id names the place in what was given there.
func (s spot) id() string {
	if s.access != "" {
		return s.access
	}
	return s.project
}

// roles are those that can be given there, and as what they are recorded.
func (p place) roles() (roles []Role, as []user.AppRole) {
	if !p.counts() {
		return nil, nil
	}
	for _, r := range p.from.Data.Roles {
		if recorded, ok := recordedAs(r, p.given); ok {
			roles, as = append(roles, r), append(as, recorded)
		}
	}
	return roles, as
}

// recordedAs is what is recorded of somebody who has a role that a project declares: the role itself, or what an access
// was granted of it. It is not ok if the access was not granted the role as it is declared now.
func recordedAs(r Role, a *event.Object[Access]) (as user.AppRole, ok bool) {
	if a == nil {
		return user.AppRole{Key: r.Key, Epoch: r.Epoch}, true
	}
	i := slices.IndexFunc(a.Data.Roles, func(g GrantedRole) bool { return g.Key == r.Key && g.Of == r.Epoch })
	if i < 0 {
		return user.AppRole{}, false
	}
	return user.AppRole{Key: r.Key, Epoch: a.Data.Roles[i].Epoch}, true
}

// isDeclared tells whether a recorded role counts: the project declares it, and the access, if any, was granted it.
func isDeclared(p *event.Object[Project], a *event.Object[Access], recorded user.AppRole) bool {
	i := slices.IndexFunc(p.Data.Roles, func(r Role) bool { return r.Key == recorded.Key })
	if i < 0 {
		return false
	}
	as, ok := recordedAs(p.Data.Roles[i], a)
	return ok && as == recorded
}

// resolve gives what is recorded of roles of these keys, each once. Errors: ErrRoleNotFound.
func (p place) resolve(keys []string) (resolved []user.AppRole, err error) {
	_, as := p.roles()
	for _, key := range unique(keys) {
		i := slices.IndexFunc(as, func(r user.AppRole) bool { return r.Key == key })
		if i < 0 {
			return nil, ErrRoleNotFound
		}
		resolved = append(resolved, as[i])
	}
	return resolved, nil
}

// counting gives those of the recorded roles that count, in the order in which the project declares them.
func (p place) counting(recorded []user.AppRole) (counting []Role) {
	roles, as := p.roles()
	for i := range roles {
		if slices.Contains(recorded, as[i]) {
			counting = append(counting, roles[i])
		}
	}
	return counting
}

// groups are those with roles there.
func (p place) groups() []GroupRoles {
	switch {
	case !p.counts():
		return nil
	case p.given != nil:
		return p.given.Data.GroupRoles
	}
	return p.from.Data.GroupRoles
}

// setGroup records which roles a group gives there.
func (p place) setGroup(group string, roles []user.AppRole) error {
	if p.given != nil {
		return p.given.Append(AccessGroupRolesSet{Group: group, Roles: roles})
	}
	return p.from.Append(GroupRolesSet{Group: group, Roles: roles})
}

// belongs tells whether a user can have roles in an organization: as one of its own or as a guest.
func belongs(u *event.Object[user.User], org string) bool {
	_, guest := u.Data.Memberships[org]
	return u.Org == org || guest
}

// ended are those of the roles of somebody whose place is gone for good, inside a command that is run by event.Do.
func ended(tx *event.Tx, all []user.AppRoles) (gone []user.AppRoles, err error) {
	var needs event.Command
	for _, given := range all {
		at := spotOf(given)
		if needs.Read = append(needs.Read, Kind.Ref(at.project)); at.access != "" {
			needs.Read = append(needs.Read, AccessKind.Ref(at.access))
		}
	}
	if err := tx.Require(needs); err != nil {
		return nil, err
	}
	for _, given := range all {
		p := place{spot: spotOf(given)}
		if p.from, err = Kind.Get(tx, p.project); err == nil && p.access != "" {
			p.given, err = AccessKind.Get(tx, p.access)
		}
		if err != nil {
			return nil, err
		}
		if !p.counts() {
			gone = append(gone, user.AppRoles{Place: given.Place, Project: given.Project, Org: given.Org})
		}
	}
	return gone, nil
}
