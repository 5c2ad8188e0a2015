// Package offer tells which identity providers an organization offers to people who sign in there.
package offer

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/policy"
)

// Offer is what an organization offers to whoever signs in there.
type Offer struct {
	Providers []*event.Object[idp.Provider]
	Methods   policy.Policy
}

// At reads what the place of a sign-in offers: its own providers, and those of the default organization.
func At(ctx context.Context, s event.Store, place, defaultOrg string) (Offer, error) {
	asked, _, err := org.ReadPolicy(ctx, s, place)
	if err != nil {
		return Offer{}, err
	}
	o := Offer{Methods: asked}
	if !asked.Allows(policy.WithProvider) {
		return o, nil
	}
	found, err := idp.OfferedTo(ctx, s, place, defaultOrg)
	if err != nil {
		return Offer{}, err
	}
	for _, p := range found {
		if asked.AllowsProvider(p.ID) {
			o.Providers = append(o.Providers, p)
		}
	}
	return o, nil
}

// Only is the one provider that people of the organization can sign in with; nil where there are other ways.
func (o Offer) Only() *event.Object[idp.Provider] {
	if len(o.Providers) != 1 || o.Methods.Allows(policy.WithPassword) || o.Methods.Allows(policy.WithPasskey) {
		return nil
	}
	return o.Providers[0]
}

// Find gives one of the providers; nil where it is not offered.
func (o Offer) Find(id string) *event.Object[idp.Provider] {
	if i := slices.IndexFunc(o.Providers, func(p *event.Object[idp.Provider]) bool { return p.ID == id }); i >= 0 {
		return o.Providers[i]
	}
	return nil
}
