package idp

import (
	"context"

	"github.com/signet-idm/signet/internal/event"
)

// maxOffered bounds how many providers of an organization are offered at a sign-in.
const maxOffered = 20

// OfferedTo reads the providers that people of an organization can sign in through, as far as their policy allows: its own, and those of the default
// organization, the oldest first.
func OfferedTo(ctx context.Context, r event.Reader, org, defaultOrg string) (offered []*event.Object[Provider], err error) {
	owners := []string{org}
	if org != defaultOrg {
		owners = append(owners, defaultOrg)
	}
	for _, owner := range owners {
		if owner == "" {
			continue // which would mean all of them
		}
		found, _, err := Kind.List(ctx, r, event.Query{Org: owner, Limit: maxOffered, Where: event.Where(event.State, string(Active))})
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if p.Data.Offered() {
				offered = append(offered, p)
			}
		}
	}
	return offered, nil
}
