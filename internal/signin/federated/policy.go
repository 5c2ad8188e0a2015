package federated

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
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

// Concerned are the people of an organization whom a policy concerns.
type Concerned struct {
	Users     int
	UserNames []string // of some of them
}

// Noticed is what should be seen to about a policy.
type Noticed struct {
	LockedOut     Concerned // it leaves them no way in that works
	FactorMissing Concerned // it is the first to require a second factor of them, and they have none
	Incomplete    bool      // not all users were looked at
	// Unrouted: it leads people to a provider by the domain of the name that they type, and no domain does.
	Unrouted bool
}

// SetPolicy replaces what the permit's organization asks for, and tells whom it concerns: those who cannot sign in any
// more can be linked, or get a passkey. Errors: org.ErrNotFound; InvalidArgument on a provider that the organization
// may not use; Aborted when match does not hold.
func (s Sessions) SetPolicy(ctx context.Context, permit access.Permit, match event.IfMatch,
	p policy.Policy) (details event.Details, _ Noticed, _ error) {
	noticed, err := s.judged(ctx, permit, p, func() (err error) {
		details, err = org.SetPolicy(ctx, s.Store, permit, match, p)
		return err
	})
	return details, noticed, err
}

// TryPolicy tells what SetPolicy would, and changes nothing. Errors: as SetPolicy.
func (s Sessions) TryPolicy(ctx context.Context, permit access.Permit, match event.IfMatch,
	p policy.Policy) (Noticed, error) {
	return s.judged(ctx, permit, p, func() error { return org.TryPolicy(ctx, s.Store, permit, match, p) })
}

// judged refuses a policy or lets change go on with it, and tells what is to be noticed about it.
func (s Sessions) judged(ctx context.Context, permit access.Permit, p policy.Policy,
	change func() error) (Noticed, error) {
	before, err := org.Get(ctx, s.Store, permit)
	if err != nil {
		return Noticed{}, err
	}
	if err := s.usable(ctx, permit.Org(), p.SignIn); err != nil {
		return Noticed{}, err
	}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return Noticed{}, err
	}
	if err := change(); err != nil {
		return Noticed{}, err
	}
	noticed := Noticed{Unrouted: leadsByDomain(p.SignIn) && !before.Data.Routes()}
	old := before.Data.Policy
	ways := old.DiffTo(p).SignInDiff != (policy.SignInDiff{})
	factor := p.SecondFactorRequired && !old.SecondFactorRequired && !everywhere.SecondFactorRequired
	if !ways && !factor {
		return noticed, nil
	}
	err = s.tryOn(ctx, permit.Org(), old.SignIn, p.SignIn, &noticed)
	if !factor {
		noticed.FactorMissing = Concerned{}
	}
	return noticed, err
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

// tryOn tries a policy on the users of an organization: it finds those who had a way in before and have none now, and
// those who have a way in and no second factor.
func (s Sessions) tryOn(ctx context.Context, orgID string, before, now policy.SignIn, noticed *Noticed) error {
	var names, unproven []string
	var owners []string // who keep the password if no owner has a way in
	ownerEnters := false
	q := event.Query{Org: orgID, Limit: triedPage}
	for tried := 0; ; {
		page, next, err := user.Kind.List(ctx, s.Store, q)
		if err != nil {
			return err
		}
		for _, u := range page {
			had, err := s.WaysIn(ctx, orgID, before, u)
			if err != nil {
				return err
			}
			has, err := s.WaysIn(ctx, orgID, now, u)
			if err != nil {
				return err
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
			if !u.Data.SecondFactor && (len(has) > 0 || owner && len(had) > 0) {
				unproven = append(unproven, u.Data.UserName)
			}
		}
		if tried += len(page); next == nil || tried >= mostTried {
			noticed.Incomplete = next != nil
			break
		}
		q.After = *next
	}
	if ownerEnters {
		names = append(owners, names...)
	}
	noticed.LockedOut, noticed.FactorMissing = concerned(names), concerned(unproven)
	return nil
}

func concerned(names []string) Concerned {
	return Concerned{Users: len(names), UserNames: names[:min(len(names), mostNamed)]}
}
