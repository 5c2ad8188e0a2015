package project

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// IsGranted tells whether an organization has access to a project of another one that counts.
func IsGranted(ctx context.Context, r event.Reader, orgID, projectID string) (bool, error) {
	at, err := locate(ctx, r, orgID, projectID)
	if err != nil || at.access == "" {
		return false, err
	}
	p, err := at.open(ctx, r)
	return p.counts(), err
}

// PromiseNeeds is what a command declares before it calls Promise or Keep.
func PromiseNeeds(orgID, projectID string) event.Command { return placeNeeds(orgID, projectID) }

// Promise gives what is recorded now of roles that somebody is to get later in an organization, inside a command that
// is run by event.Do. Errors: ErrNotFound; ErrRoleNotFound; org.ErrNotFound.
func Promise(tx *event.Tx, orgID, projectID string, keys []string) (user.AppRoles, error) {
	p, err := placeIn(tx, orgID, projectID)
	if err != nil {
		return user.AppRoles{}, err
	}
	roles, err := p.resolve(keys)
	return user.AppRoles{Place: p.id(), Project: projectID, Org: orgID, Roles: roles}, err
}

// Keep gives somebody the roles that were promised, besides those there are, as far as they still are the same roles:
// one that was removed since is not given, even if there is another one of its key by now. The command is run by
// event.Do. Errors: ErrTooManyPlaces.
func Keep(tx *event.Tx, u *event.Object[user.User], promised user.AppRoles) error {
	p, err := placeIn(tx, promised.Org, promised.Project)
	if err == ErrNotFound || err == nil && p.id() != promised.Place {
		return nil
	}
	if err != nil {
		return err
	}
	var keys []string
	for _, has := range u.Data.AppRoles {
		if has.Place == promised.Place {
			promised.Roles = slices.Concat(has.Roles, promised.Roles)
		}
	}
	for _, r := range p.counting(promised.Roles) {
		keys = append(keys, r.Key)
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
}
