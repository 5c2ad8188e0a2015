package idp

import (
	"context"

	"github.com/signet-idm/signet/internal/event"
)

// maxOffered bounds how many providers of an organization are offered at a sign-in.
const maxOffered = 20

// OfferedBy reads the providers that an organization offers at sign-in, in the order of their names.
func OfferedBy(ctx context.Context, r event.Reader, org string) ([]*event.Object[Provider], error) {
	if org == "" {
		return nil, nil // which would mean all of them
	}
	found, _, err := Kind.List(ctx, r, event.Query{Org: org, Limit: maxOffered, Where: event.Where(event.State, string(Active))})
	if err != nil {
		return nil, err
	}
	offered := found[:0]
	for _, p := range found {
		if p.Data.Offered() {
			offered = append(offered, p)
		}
	}
	return offered, nil
}
