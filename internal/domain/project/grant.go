package project

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Bounds of the grants that wait for an organization: strangers must not fill the list that its owners look at, and
// none of them alone must keep others from it. They are looked at before the command: of grants at the same moment a
// few more may get in.
const (
	MaxWaiting     = 100 // of all
	MaxWaitingFrom = 10  // of one organization
)

// MaxOrgID is how long the identifier of an organization can be that a grant names.
const MaxOrgID = 100

// GrantViolations lists what is wrong with a grant to make.
func GrantViolations(to string, keys []string) (wrong errs.Violations) {
	if to == "" {
		wrong.Add("grantedOrgId", syntax.Empty)
	}
	wrong.Add("grantedOrgId", syntax.Text(to, MaxOrgID))
	return append(wrong, RoleKeyViolations(keys)...)
}

// AddGrant offers roles of a project to another organization. Nobody learns by it whether there is one with this
// identifier, but for those who see all organizations anyway. Errors: InvalidArgument with GrantViolations, or where it
// is the own organization; ErrNotFound; ErrRoleNotFound; org.ErrNotFound; ErrGrantExists; ErrTooManyWaiting; those of
// once.
func AddGrant(ctx context.Context, s event.Store, permit access.Permit, once event.Once, projectID, to string,
	keys []string) (Created, error) {
	wrong := GrantViolations(to, keys)
	if to == permit.Org() {
		wrong.Add("grantedOrgId", errs.Plain("must not be the organization of the project: give roles to its users "+
			"and groups instead"))
	}
	if err := wrong.Err(); err != nil {
		return Created{}, err
	}
	full, err := tooManyWaiting(ctx, s, permit.Org(), to)
	if err != nil {
		return Created{}, err
	}
	needs := []event.Ref{Kind.Ref(projectID), org.Kind.Ref(permit.Org())}
	seesAll := permit.HoldsFor(access.ReadScope, access.OrgRead, access.Installation)
	if seesAll {
		needs = append(needs, org.Kind.Ref(to))
	}
	created, id := Created{}, GrantKind.NewID()
	err = s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(), Create: []event.Ref{GrantKind.Ref(id)}, Read: needs,
		Claims: []event.Claim{GrantClaim(projectID, to)},
		Decide: func(tx *event.Tx) error {
			p, err := Within(permit, projectID).Get(tx)
			if err != nil {
				return err
			}
			if _, err := org.In(tx, p.Org); err != nil {
				return err
			}
			roles, err := p.Data.resolve(keys)
			if err != nil {
				return err
			}
			if seesAll {
				if _, err := org.In(tx, to); err != nil {
					return err
				}
			}
			if holder, err := tx.Holder(GrantClaim(projectID, to)); err != nil || holder != "" {
				return orElse(err, ErrGrantExists)
			}
			if full {
				return ErrTooManyWaiting
			}
			g, err := GrantKind.Create(tx, id, p.Org, GrantAdded{Project: projectID, To: to, Roles: roles})
			if err != nil {
				return err
			}
			created = Created{ID: id, Details: g.Details()}
			return nil
		},
	}, &created))
	if err != nil {
		return Created{}, err
	}
	return created, nil
}

// tooManyWaiting tells whether no further grant of one organization may wait for another one. Those of removed projects
// do not count.
func tooManyWaiting(ctx context.Context, r event.Reader, from, to string) (bool, error) {
	all, own := 0, 0
	for after := (&event.Cursor{}); after != nil; {
		grants, next, err := GrantKind.List(ctx, r,
			event.Query{Group: GrantsWaitingFor(to), After: *after, Limit: MaxWaiting})
		if err != nil {
			return false, err
		}
		for _, g := range grants {
			p, err := Kind.Read(ctx, r, g.Data.Project)
			if err != nil {
				return false, err
			}
			if p == nil || p.Data.State != Active {
				continue
			}
			if all++; g.Org == from {
				own++
			}
			if all >= MaxWaiting || own >= MaxWaitingFrom {
				return true, nil
			}
		}
		after = next
	}
	return false, nil
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// resolve gives the roles of these keys as they are declared now, each once. Errors: ErrRoleNotFound.
func (p *Project) resolve(keys []string) (roles []user.AppRole, err error) {
	for _, key := range unique(keys) {
		r, has := p.role(key)
		if !has {
			return nil, ErrRoleNotFound
		}
		roles = append(roles, user.AppRole{Key: key, Epoch: r.Epoch})
	}
	return roles, nil
}

// unique gives every key once, sorted.
func unique(keys []string) []string { return slices.Compact(slices.Sorted(slices.Values(keys))) }

// given is a grant of a project that the permit reaches. Errors: ErrGrantNotFound.
func given(permit access.Permit, projectID, id string) event.Target[Grant] {
	return event.Target[Grant]{
		Kind:   GrantKind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(g *event.Object[Grant]) error {
			if g == nil || g.Data.State == Removed || !permit.Reaches(g.Org) || g.Data.Project != projectID {
				return ErrGrantNotFound
			}
			return nil
		},
	}
}

// received is a grant to the permit's organization. Errors: ErrGrantNotFound.
func received(permit access.Permit, id string) event.Target[Grant] {
	return event.Target[Grant]{
		Kind:   GrantKind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(g *event.Object[Grant]) error {
			if g == nil || g.Data.State == Removed || !permit.Reaches(g.Data.To) {
				return ErrGrantNotFound
			}
			return nil
		},
	}
}

// changeGrant has decide judge a grant together with its project and, once it is accepted, its access. actor is who the
// events of the grant and of the access name: the one of the other organization names the organization alone. Errors:
// those of the target; those of decide; Aborted when match does not hold.
func changeGrant(ctx context.Context, s event.Store, t event.Target[Grant], match event.IfMatch,
	decide func(tx *event.Tx, g *event.Object[Grant], p *event.Object[Project],
		a *event.Object[Access]) error) (event.Details, error) {
	return t.Change(ctx, s, match, func(tx *event.Tx, g *event.Object[Grant]) error {
		needs := event.Command{Read: []event.Ref{Kind.Ref(g.Data.Project)}}
		if g.Data.Access != "" {
			needs.Write = []event.Ref{AccessKind.Ref(g.Data.Access)}
		}
		if err := tx.Require(needs); err != nil {
			return err
		}
		p, err := Kind.Get(tx, g.Data.Project)
		if err != nil {
			return err
		}
		var a *event.Object[Access]
		if g.Data.Access != "" {
			if a, err = AccessKind.Get(tx, g.Data.Access); err != nil {
				return err
			}
		}
		return decide(tx, g, p, a)
	})
}

// SetGrantRoles changes which roles an organization may give. What was given of a role that it may not give any more
// ends, and does not come back with the role. Errors: InvalidArgument on roleKeys; ErrGrantNotFound; ErrNotFound;
// ErrRoleNotFound; Aborted when match does not hold.
func SetGrantRoles(ctx context.Context, s event.Store, permit access.Permit, projectID, id string, match event.IfMatch,
	keys []string) (event.Details, error) {
	if err := RoleKeyViolations(keys).Err(); err != nil {
		return event.Details{}, err
	}
	return changeGrant(ctx, s, given(permit, projectID, id), match,
		func(_ *event.Tx, g *event.Object[Grant], p *event.Object[Project], a *event.Object[Access]) error {
			if p == nil || p.Data.State != Active {
				return ErrNotFound
			}
			roles, err := p.Data.resolve(keys)
			if err != nil {
				return err
			}
			if slices.Equal(roles, g.Data.Roles) {
				return nil
			}
			if a != nil {
				a.ActedBy(g.Org)
				if err := a.Append(AccessRolesSet{Roles: roles}); err != nil {
					return err
				}
			}
			return g.Append(GrantRolesSet{Roles: roles})
		})
}

// WithdrawGrant ends a grant, and everything that was derived from it. Errors: ErrGrantNotFound; Aborted when match
// does not hold.
func WithdrawGrant(ctx context.Context, s event.Store, permit access.Permit, projectID, id string,
	match event.IfMatch) (event.Details, error) {
	return changeGrant(ctx, s, given(permit, projectID, id), match,
		func(_ *event.Tx, g *event.Object[Grant], _ *event.Object[Project], a *event.Object[Access]) error {
			if a != nil {
				a.ActedBy(g.Org)
			}
			return endGrant(g, a)
		})
}

// AcceptGrant gives the permit's organization access to a project that was granted to it. Errors: ErrGrantNotFound;
// org.ErrNotFound; ErrGrantWrongState; Aborted when match does not hold.
func AcceptGrant(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	t := received(permit, id)
	seen, err := t.Read(ctx, s)
	if err != nil {
		return event.Details{}, err
	}
	// a grant is of one project to one organization for good
	project, to, accessID := seen.Data.Project, permit.Org(), AccessKind.NewID()
	needs := event.Command{
		Create: []event.Ref{AccessKind.Ref(accessID)},
		Read:   []event.Ref{Kind.Ref(project), org.Kind.Ref(to)},
		Claims: []event.Claim{AccessClaim(project, to)},
	}
	return t.Needs(needs).Change(ctx, s, match, func(tx *event.Tx, g *event.Object[Grant]) error {
		p, err := Kind.Get(tx, project)
		if err != nil {
			return err
		}
		if p == nil || p.Data.State != Active {
			return ErrGrantNotFound
		}
		if _, err := org.In(tx, to); err != nil {
			return err
		}
		if g.Data.State != Pending {
			return ErrGrantWrongState
		}
		if _, err := AccessKind.Create(tx, accessID, to,
			AccessAdded{Project: project, Owner: g.Org, Grant: g.ID, Roles: p.Data.live(g.Data.Roles)}); err != nil {
			return err
		}
		g.ActedBy(to)
		return g.Append(GrantAccepted{Access: accessID})
	})
}

// DeclineGrant refuses a grant that waits for the permit's organization, or gives back one that it has accepted, with
// everything that was derived from it. Errors: ErrGrantNotFound; Aborted when match does not hold.
func DeclineGrant(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return changeGrant(ctx, s, received(permit, id), match,
		func(_ *event.Tx, g *event.Object[Grant], p *event.Object[Project], a *event.Object[Access]) error {
			if p == nil || p.Data.State != Active {
				return ErrGrantNotFound
			}
			g.ActedBy(g.Data.To)
			return endGrant(g, a)
		})
}

// endGrant ends a grant with its access; nil where it has none.
func endGrant(g *event.Object[Grant], a *event.Object[Access]) error {
	if a != nil && a.Data.State != Removed {
		if err := a.Append(AccessRemoved{}); err != nil {
			return err
		}
	}
	return g.Append(GrantRemoved{})
}

// live keeps the roles that the project has as they were declared then.
func (p *Project) live(roles []user.AppRole) (kept []user.AppRole) {
	for _, r := range roles {
		if has, ok := p.role(r.Key); ok && has.Epoch == r.Epoch {
			kept = append(kept, r)
		}
	}
	return kept
}

// Granted is a grant with what those on either side may see of the project.
type Granted struct {
	*event.Object[Grant]
	ProjectName string
	OwnerName   string // of the organization that granted it
	Roles       []Role // that count now
}

// rolesOf are the roles of a project that a grant has.
func (p *Project) rolesOf(granted []user.AppRole) (roles []Role) {
	for _, r := range p.live(granted) {
		role, _ := p.role(r.Key)
		roles = append(roles, role)
	}
	return roles
}

// ListGrants reads a page of the grants of a project of the permit's organization, the oldest first. Errors:
// ErrNotFound.
func ListGrants(ctx context.Context, r event.Reader, permit access.Permit, projectID string, after event.Cursor,
	limit int) ([]Granted, *event.Cursor, error) {
	p, err := Get(ctx, r, permit, projectID)
	if err != nil {
		return nil, nil, err
	}
	grants, next, err := GrantKind.List(ctx, r, event.Query{Group: GrantsOf(projectID), After: after, Limit: limit})
	if err != nil {
		return nil, nil, err
	}
	var found []Granted
	for _, g := range grants {
		if permit.Reaches(g.Org) && g.Data.State != Removed {
			found = append(found, Granted{Object: g, ProjectName: p.Data.Name, Roles: p.Data.rolesOf(g.Data.Roles)})
		}
	}
	return found, next, nil
}

// ListGranted reads a page of the grants to the permit's organization, those that wait and those that were accepted,
// the oldest first. Those of projects that are gone are left out.
func ListGranted(ctx context.Context, r event.Reader, permit access.Permit, after event.Cursor,
	limit int) ([]Granted, *event.Cursor, error) {
	grants, next, err := GrantKind.List(ctx, r, event.Query{Group: GrantsTo(permit.Org()), After: after, Limit: limit})
	if err != nil {
		return nil, nil, err
	}
	var found []Granted
	for _, g := range grants {
		p, err := Kind.Read(ctx, r, g.Data.Project)
		if err != nil {
			return nil, nil, err
		}
		if p == nil || p.Data.State != Active || !permit.Reaches(g.Data.To) || g.Data.State == Removed {
			continue
		}
		owner, err := org.Kind.Read(ctx, r, g.Org)
		if err != nil {
			return nil, nil, err
		}
		if owner == nil || owner.Data.State == org.Removed {
			continue
		}
		found = append(found, Granted{Object: g, ProjectName: p.Data.Name, OwnerName: owner.Data.Name,
			Roles: p.Data.rolesOf(g.Data.Roles)})
	}
	return found, next, nil
}

// EndGrants ends some of the grants of a group, with their accesses: those of a removed project, or to a removed
// organization. It tells whether there may be more.
func EndGrants(ctx context.Context, s event.Store, group string, limit int) (left bool, err error) {
	grants, _, err := GrantKind.List(ctx, s, event.Query{Group: group, Limit: limit})
	if err != nil || len(grants) == 0 {
		return false, err
	}
	c := event.Command{Origin: event.Origin{Actor: event.System}}
	for _, g := range grants {
		if c.Write = append(c.Write, GrantKind.Ref(g.ID)); g.Data.Access != "" {
			c.Write = append(c.Write, AccessKind.Ref(g.Data.Access))
		}
	}
	c.Decide = func(tx *event.Tx) error {
		for _, seen := range grants {
			g, err := GrantKind.Get(tx, seen.ID)
			if err != nil {
				return err
			}
			if g.Data.State == Removed {
				continue // another node was here
			}
			var a *event.Object[Access]
			if g.Data.Access != "" { // it may have been accepted since it was listed
				if a, err = AccessKind.FollowToWrite(tx, g.Data.Access); err != nil {
					return err
				}
			}
			if err := endGrant(g, a); err != nil {
				return err
			}
		}
		return nil
	}
	return true, event.Do(ctx, s, c)
}
