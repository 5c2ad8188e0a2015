package lifecycle

import (
	"context"
	"strings"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// RemoveGroup ends a group of the permit's organization. If it gives roles of this API, all its members lose them in
// the same moment. Projects in which it gives roles forget it. Errors: group.ErrNotFound; access.ErrDenied;
// access.ErrTargetHoldsMore; member.ErrLastOrgOwner; Aborted when match does not hold.
func RemoveGroup(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	all := group.AllOf(s, permit, id)
	return group.Giving(permit, id).Change(ctx, s, match, func(tx *event.Tx, g *event.Object[group.Group]) error {
		if len(g.Data.Roles) > 0 {
			members, err := all.In(tx, g, nil)
			if err != nil {
				return err
			}
			for _, u := range members {
				if err := u.Append(user.GroupLeft{Org: g.Org, Group: g.ID}); err != nil {
					return err
				}
			}
		}
		var places event.Command
		for _, r := range g.Data.AppRoles {
			places.Write = append(places.Write, placeRef(r.Place))
		}
		if err := tx.Require(places); err != nil {
			return err
		}
		for _, r := range g.Data.AppRoles {
			if err := forget(tx, r.Place, g.ID); err != nil {
				return err
			}
		}
		return g.Append(group.WasRemoved{})
	})
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
