package idp

import (
	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
)

// Vouched records who answers for the configuration as it is now: by a change of what decides who signs in, or after a check.
type Vouched struct {
	By    string             `json:"by"`
	Roles access.Memberships `json:"roles,omitempty"` // of that moment
}

// EventType implements event.Fact.
func (Vouched) EventType() event.Type { return "idp.vouched.v1" }

// Since implements event.Gated: a node that does not know who answers for a provider would not keep its links to it.
func (Vouched) Since() int { return 3 }

// Apply implements event.Fact.
func (e Vouched) Apply(p *Provider) {
	next := Changer{UserID: e.By, Roles: e.Roles, Version: 1}
	if p.Changer != nil {
		next.Version += p.Changer.Version
	}
	p.Changer = &next
}
