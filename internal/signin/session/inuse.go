package session

import (
	"context"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
)

// inUse refuses an access token of somebody who may not use the application any more: an organization lost its access,
// or the person the last role. It reads nothing where neither decides. Errors: access.ErrUnauthenticated.
func (s *Sessions) inUse(ctx context.Context, b *Bearer) (*Bearer, error) {
	bound := b.Given.BoundTo(b.Given.Scopes, b.Caller.OrgID)
	if !b.Client.Decides(project.Person{Org: b.Caller.OrgID, Memberships: b.Caller.Memberships}, bound) {
		return b, nil
	}
	u, err := user.Self(ctx, s.Store, b.Caller)
	if err != nil {
		return nil, err
	}
	w := project.PersonOf(u)
	b.Person = u
	if b.Places, err = project.Look(ctx, s.Store, b.Client, w, bound); err != nil {
		return nil, err
	}
	if !b.Given.Holds(b.Places.Judge(w, b.Given.Place)) {
		return nil, access.ErrUnauthenticated
	}
	return b, nil
}
