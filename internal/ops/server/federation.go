package server

import (
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/signin/tally"
	"github.com/signet-idm/signet/internal/signin/upstream"
)

// newFederation talks to identity providers.
func newFederation(b *base, out *outgoing, keys *signing.Keys, counted *tally.Tally) *upstream.Federation {
	return upstream.New(upstream.Config{
		Client: out.client, Keys: out.keySets, Calls: out.calls, Master: b.master, Store: b.store,
		Clock:       b.config.Clock,
		ExternalURL: b.config.ExternalURL, Signing: keys,
		Failed: func(org string) { counted.Failed(org, tally.Provider) },
		Failing: func(err error) {
			b.log.Warn("recording a failed sign-in through an identity provider", "error", err)
		},
	})
}
