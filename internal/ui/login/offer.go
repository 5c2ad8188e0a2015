package login

import (
	"context"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Offer holds the ways to sign in that an organization offers.
type Offer struct {
	Methods   policy.Policy
	providers idp.SignInProviders
	store     event.Store
}

// offerAt reads how people of an organization may sign in. Providers are read when they are asked for: there may be
// many.
func offerAt(ctx context.Context, s event.Store, orgID, defaultOrg string) (Offer, error) {
	asked, _, err := org.ReadPolicy(ctx, s, orgID)
	return Offer{Methods: asked,
		providers: idp.SignInProviders{Org: orgID, DefaultOrg: defaultOrg, Ways: asked.SignIn}, store: s}, err
}

// Part reads a part of the providers.
func (o Offer) Part(ctx context.Context, part idp.Part) (idp.Offers, error) {
	return o.providers.Part(ctx, o.store, part)
}

// Without tells whether people of the organization sign in through providers and in no other way.
func (o Offer) Without() bool {
	return !o.Methods.Allows(policy.WithPassword) && !o.Methods.Allows(policy.WithPasskey)
}

// Only is the one provider that people of the organization can sign in with; nil where there are other ways.
func (o Offer) Only(ctx context.Context) (*event.Object[idp.Provider], error) {
	if !o.Without() {
		return nil, nil
	}
	all, err := o.Part(ctx, idp.Part{})
	if err != nil || len(all.Providers) != 1 || all.More != "" {
		return nil, err
	}
	return all.Providers[0], nil
}

// Find gives one of the providers, wherever it is in the list; nil where it is not offered.
func (o Offer) Find(ctx context.Context, id string) (*event.Object[idp.Provider], error) {
	return o.providers.Offered(ctx, o.store, id)
}
