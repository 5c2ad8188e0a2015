package server

import (
	"context"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
)

// sharedResolver asks DNS, which may take its time, for as much of it at once as is the share of the organization that
// wants to know.
type sharedResolver struct {
	org.Resolver
	calls *fairqueue.Slots
}

// LookupTXT implements org.Resolver.
func (r sharedResolver) LookupTXT(ctx context.Context, name string) (found []string, err error) {
	err = r.calls.Do(ctx, fairqueue.Claim{Org: call.From(ctx).Org()}, func() (err error) {
		found, err = r.Resolver.LookupTXT(ctx, name)
		return err
	})
	return found, err
}
