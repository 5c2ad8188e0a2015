package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// How much is told about people whose login names end.
const (
	maxCounted = 1000
	maxNamed   = 20
)

// Losing says whose login names end with a domain.
type Losing struct {
	People int      // at most 1000, which stands for more, too
	Names  []string // the login names of the first of them; none where the caller may not read users there
}

// RemoveDomain takes a domain from the permit's organization, and tells whose login names end with it; nobody's where
// it was not verified. Errors: those of org.RemoveDomain, org.ErrReleaseDenied with the number of people.
func RemoveDomain(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	domain string) (Losing, event.Details, error) {
	losing, err := losingWith(ctx, s, permit, domain)
	if err != nil {
		return Losing{}, event.Details{}, err
	}
	details, err := org.RemoveDomain(ctx, s, permit, match, domain)
	if errors.Is(err, org.ErrReleaseDenied) {
		err = errs.New(org.ErrReleaseDenied.Kind, org.ErrReleaseDenied.Reason,
			org.ErrReleaseDenied.Message+losing.count())
	}
	if err != nil {
		return Losing{}, event.Details{}, err
	}
	return losing, details, nil
}

// count is the end of a sentence about them; empty where there is nobody.
func (l Losing) count() string {
	switch {
	case l.People == 0:
		return ""
	case l.People == 1:
		return "; the login name of 1 person would stop working"
	case l.People >= maxCounted:
		return fmt.Sprintf("; the login names of %d or more people would stop working", maxCounted)
	}
	return fmt.Sprintf("; the login names of %d people would stop working", l.People)
}

func losingWith(ctx context.Context, r event.Reader, permit access.Permit, text string) (Losing, error) {
	o, err := org.Get(ctx, r, permit)
	if err != nil {
		return Losing{}, err
	}
	var losing Losing
	domain := o.Data.VerifiedDomain(text)
	if domain == "" {
		return losing, nil
	}
	named := permit.Holds(access.UserRead, permit.Org())
	for after := (&event.Cursor{}); after != nil && losing.People < maxCounted; {
		var people []*event.Object[user.User]
		if people, after, err = user.List(ctx, r, permit, user.Filter{Type: user.IsHuman}, *after,
			maxCounted-losing.People); err != nil {
			return Losing{}, err
		}
		for _, p := range people {
			if losing.People++; named && len(losing.Names) < maxNamed {
				losing.Names = append(losing.Names, p.Data.UserName+"@"+domain)
			}
		}
	}
	return losing, nil
}
