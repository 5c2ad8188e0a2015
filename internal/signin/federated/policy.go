package federated

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// How far a policy is tried on people.
const (
	mostTried = 500
	triedPage = 100
	mostNamed = 10
)

// LockedOut are the people whom a policy leaves no way in that works.
type LockedOut struct {
	Users      int
	UserNames  []string // of some of them
	Incomplete bool     // not all users were looked at
}

// Noticed is what should be seen to about a policy that was set.
type Noticed struct {
	LockedOut LockedOut
	// Unrouted: it leads people to a provider by the domain of the name that they type, and no domain does.
	Unrouted bool
}

// SetPolicy replaces what the permit's organization asks for, and tells who cannot sign in any more with it: they can
// be linked, or get a passkey. Errors: org.ErrNotFound; InvalidArgument on a provider that the organization may not
// use; Aborted when match does not hold.
func (s Sessions) SetPolicy(ctx context.Context, permit access.Permit, match event.IfMatch,
	p policy.Policy) (event.Details, Noticed, error) {
	before, err := org.Get(ctx, s.Store, permit)
	if err != nil {
		return event.Details{}, Noticed{}, err
	}
	if err := s.usable(ctx, permit.Org(), p.SignIn); err != nil {
		return event.Details{}, Noticed{}, err
	}
	details, err := org.SetPolicy(ctx, s.Store, permit, match, p)
	if err != nil {
		return event.Details{}, Noticed{}, err
	}
	noticed := Noticed{Unrouted: leadsByDomain(p.SignIn) && !before.Data.Routes()}
	noticed.LockedOut, err = s.lockedOut(ctx, permit.Org(), before.Data.Policy.SignIn, p.SignIn)
	return details, noticed, err
}

// leadsByDomain tells whether a policy wants people led to a provider by the domain of their names.
func leadsByDomain(p policy.SignIn) bool {
	return p.DefaultProvider != "" || !p.Allows(policy.WithPassword) && !p.Allows(policy.WithPasskey)
}

// usable refuses a policy that names providers which the organization may not use. Errors: InvalidArgument.
func (s Sessions) usable(ctx context.Context, orgID string, p policy.SignIn) error {
	var wrong errs.Violations
	known := map[string]bool{}
	check := func(field, id string) error {
		ok, asked := known[id]
		if !asked {
			provider, err := idp.Kind.Read(ctx, s.Store, id)
			if err != nil {
				return err
			}
			ok = session.ProviderReaches(provider, orgID, s.DefaultOrg) && provider.Data.State != idp.Removed
			known[id] = ok
		}
		if !ok {
			wrong.Add(field, errs.Plain(fmt.Sprintf(
				"%q is not an identity provider of this organization or of the default one", id)))
		}
		return nil
	}
	for i, id := range p.Providers {
		if err := check(fmt.Sprintf("policy.idpIds[%d]", i), id); err != nil {
			return err
		}
	}
	for i, id := range p.SecondFactorProviders {
		if err := check(fmt.Sprintf("policy.secondFactorIdpIds[%d]", i), id); err != nil {
			return err
		}
	}
	if p.DefaultProvider != "" {
		if err := check("policy.defaultIdpId", p.DefaultProvider); err != nil {
			return err
		}
	}
	return wrong.Err()
}

// lockedOut tries a policy on the users of an organization, and finds those who had a way in before and have none now.
func (s Sessions) lockedOut(ctx context.Context, orgID string, before, now policy.SignIn) (out LockedOut, err error) {
	if len(now.SignInMethods) == 0 && len(now.Providers) == 0 {
		return out, nil
	}
	var names []string
	var owners []string // who keep the password if no owner has a way in
	ownerEnters := false
	q := event.Query{Org: orgID, Limit: triedPage}
	for tried := 0; ; {
		page, next, err := user.Kind.List(ctx, s.Store, q)
		if err != nil {
			return LockedOut{}, err
		}
		for _, u := range page {
			had, err := s.WaysIn(ctx, orgID, before, u)
			if err != nil {
				return LockedOut{}, err
			}
			has, err := s.WaysIn(ctx, orgID, now, u)
			if err != nil {
				return LockedOut{}, err
			}
			owner := slices.Contains(u.Data.Memberships[orgID], access.OrgOwner)
			switch {
			case owner && len(has) > 0:
				ownerEnters = true
			case owner && len(had) > 0:
				owners = append(owners, u.Data.UserName)
			case len(had) > 0 && len(has) == 0:
				names = append(names, u.Data.UserName)
			}
		}
		if tried += len(page); next == nil || tried >= mostTried {
			out.Incomplete = next != nil
			break
		}
		q.After = *next
	}
	if ownerEnters {
		names = append(owners, names...)
	}
	out.Users, out.UserNames = len(names), names[:min(len(names), mostNamed)]
	return out, nil
}
