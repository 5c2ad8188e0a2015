package session

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Reasons of those who sign in in another way than a password.
const (
	MethodNotAllowed errs.Reason = "SIGN_IN_METHOD_NOT_ALLOWED"
	NotLinked        errs.Reason = "ACCOUNT_NOT_LINKED"
	LinkSuspended    errs.Reason = "LINK_SUSPENDED"
)

// Errors that they are refused with.
var (
	ErrMethodNotAllowed = errs.New(errs.PermissionDenied, MethodNotAllowed,
		"your organization does not allow this way to sign in: use another one")
	ErrNotLinked = errs.New(errs.FailedPrecondition, NotLinked,
		"no user is linked to this account of the identity provider: sign in in another way first and link it")
	ErrLinkSuspended = errs.New(errs.FailedPrecondition, LinkSuspended,
		"the identity provider was changed, or you got more roles, since you linked your account: sign in in another way and confirm the link")
)

// mostOwners of an organization are looked at for one who can sign in.
const mostOwners = 100

// keepsPassword tells whether somebody may sign in with a password though the organization does not allow it: its
// owners do while none of them has an allowed way that works, so that nobody locks the last of them out.
func (s *Sessions) keepsPassword(ctx context.Context, u *event.Object[user.User]) (bool, error) {
	o, err := org.Kind.Read(ctx, s.Store, u.Org)
	if err != nil || o == nil || o.Data.Policy.Allows(policy.WithPassword) ||
		!slices.Contains(u.Data.Memberships[u.Org], access.OrgOwner) {
		return false, err
	}
	owners, _, err := user.Kind.List(ctx, s.Store, event.Query{Group: user.OwnersOf(o.ID), Limit: mostOwners})
	if err != nil {
		return false, err
	}
	for _, owner := range owners {
		ways, err := s.WaysIn(ctx, o.ID, o.Data.Policy.SignIn, owner)
		if err != nil || owner.Org == o.ID && len(ways) > 0 {
			return false, err
		}
	}
	return true, nil
}

// WaysIn lists the ways in which a user of an organization can sign in now, of those that a policy allows.
func (s *Sessions) WaysIn(ctx context.Context, orgID string, p policy.SignIn,
	u *event.Object[user.User]) (ways []policy.Way, err error) {
	if u.Data.Human == nil || u.Data.State != user.Active {
		return nil, nil
	}
	if p.Allows(policy.WithPassword) && u.Data.Password.Version > 0 {
		ways = append(ways, policy.WithPassword)
	}
	if p.Allows(policy.WithPasskey) && u.Data.Human.Has(user.Passkey) {
		ways = append(ways, policy.WithPasskey)
	}
	for _, l := range u.Data.Human.Links {
		if !p.AllowsProvider(l.Provider) {
			continue
		}
		provider, err := idp.Kind.Read(ctx, s.Store, l.Provider)
		if err != nil {
			return nil, err
		}
		if ProviderReaches(provider, orgID, s.DefaultOrg) && LinkCounts(provider, u, l) {
			return append(ways, policy.WithProvider), nil
		}
	}
	return ways, nil
}

// mayUsePassword refuses a user who may not sign in with a password. Errors: ErrMethodNotAllowed.
func (s *Sessions) mayUsePassword(ctx context.Context, u *event.Object[user.User]) error {
	there, _, err := org.ReadPolicy(ctx, s.Store, u.Org)
	if err != nil || there.Allows(policy.WithPassword) {
		return err
	}
	kept, err := s.keepsPassword(ctx, u)
	if err == nil && !kept {
		err = ErrMethodNotAllowed
	}
	return err
}
