package lifecycle

import (
	"context"
	"strings"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// RemoveGroup ends a group of the permit's organization. If it gives roles of this API, all its members lose them in
// the same moment. Projects in which it gives roles forget it. Errors: group.ErrNotFound; access.ErrDenied;
// access.ErrTargetHoldsMore; member.ErrLastOrgOwner; Aborted when match does not hold.
func RemoveGroup(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (details event.Details, err error) {
	target := group.Giving(permit, id)
	err = member.Settle(func() error {
		g, err := target.Read(ctx, s)
		if err != nil {
			return err
		}
		var needs event.Command
		var all *group.All // nil: nobody loses a role of this API by it
		if len(g.Data.Roles) > 0 {
			if all, err = group.AllOf(ctx, s, g, permit, nil); err != nil {
				return err
			}
			needs = all.Needs()
		}
		for _, r := range g.Data.AppRoles {
			needs.Write = append(needs.Write, placeRef(r.Place))
		}
		sequence := g.Sequence
		details, err = target.Needs(needs).Change(ctx, s, match, func(tx *event.Tx, g *event.Object[group.Group]) error {
			if g.Sequence != sequence {
				return member.ErrMoved
			}
			if all != nil {
				members, err := all.Settled(tx, g)
				if err != nil {
					return err
				}
				for _, u := range members {
					if err := u.Append(user.GroupLeft{Org: g.Org, Group: g.ID}); err != nil {
						return err
					}
				}
			}
			for _, r := range g.Data.AppRoles {
				if err := forget(tx, r.Place, g.ID); err != nil {
					return err
				}
			}
			return g.Append(group.WasRemoved{})
		})
		return err
	})
	if err != nil {
		return event.Details{}, err
	}
	return details, nil
}

// isAccess tells whether roles of a project are given in an access to it, rather than in its own organization.
func isAccess(place string) bool { return strings.HasPrefix(place, project.AccessKind.Prefix()+"_") }

func placeRef(place string) event.Ref {
	if isAccess(place) {
		return project.AccessKind.Ref(place)
	}
	return project.Kind.Ref(place)
}

// forget ends the roles that a group gives in a place.
func forget(tx *event.Tx, place, id string) error {
	if isAccess(place) {
		a, err := project.AccessKind.Get(tx, place)
		if err != nil || a == nil || a.Data.State == project.Removed {
			return err
		}
		return a.Append(project.AccessGroupRolesSet{Group: id})
	}
	p, err := project.Kind.Get(tx, place)
	if err != nil || p == nil || p.Data.State == project.Removed {
		return err
	}
	return p.Append(project.GroupRolesSet{Group: id})
}
