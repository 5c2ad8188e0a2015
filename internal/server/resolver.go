package server

import (
	"context"

	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/share"
)

// sharedResolver asks DNS, which may take its time, for as much of it at once as is the share of the organization that wants to know.
type sharedResolver struct {
	org.Resolver
	calls *share.Places
}

// LookupTXT implements org.Resolver.
func (r sharedResolver) LookupTXT(ctx context.Context, name string) (found []string, err error) {
	err = r.calls.Do(ctx, share.Claim{Org: call.From(ctx).Org()}, func() (err error) {
		found, err = r.Resolver.LookupTXT(ctx, name)
		return err
	})
	return found, err
}
