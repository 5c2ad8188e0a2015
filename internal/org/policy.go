package org

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/policy"
)

// PolicySet records what changed about the policy of an organization.
type PolicySet struct{ policy.Change }

// EventType implements event.Fact.
func (PolicySet) EventType() event.Type { return "org.policy_set.v1" }

// Apply implements event.Fact.
func (e PolicySet) Apply(o *Org) {
	e.Change.Apply(&o.Policy)
	o.SecondFactorRequired = o.Policy.SecondFactorRequired // every request looks at it there
}

// SetPolicy replaces what the permit's organization asks for. Errors: ErrNotFound; Aborted when match does not hold.
func SetPolicy(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch, p policy.Policy) (event.Details, error) {
	return change(ctx, s, permit, nil, func(_ *event.Tx, o *event.Object[Org]) (event.Fact[Org], error) {
		return PolicySet{o.State.Policy.ChangeTo(p)}, match.Check(o.Sequence)
	})
}

// Settings reads what counts in an organization; in one that is not there, what counts everywhere.
func Settings(ctx context.Context, r event.Reader, id string) (policy.Settings, error) {
	everywhere, err := installation.ReadPolicy(ctx, r)
	if err != nil {
		return policy.Settings{}, err
	}
	here, err := ReadPolicy(ctx, r, id)
	if err != nil {
		return policy.Settings{}, err
	}
	return policy.Effective(everywhere, here), nil
}

// ReadPolicy reads what an organization asks for. One that is not there asks for nothing.
func ReadPolicy(ctx context.Context, r event.Reader, id string) (policy.Policy, error) {
	o, err := Kind.Read(ctx, r, id)
	if err != nil || o == nil {
		return policy.Policy{}, err
	}
	return o.State.Policy, nil
}

// LeadsTo reads the policy of the organization that a login name leads to, and tells whose share of hashing an attempt counts against.
// Organizations that do not exist have one share together: whoever makes them up would have as many as they like. Only the turn in a line
// follows from it.
func LeadsTo(ctx context.Context, r event.Reader, id string) (there policy.Policy, shareOf string, err error) {
	o, err := Kind.Read(ctx, r, id)
	if err != nil || o == nil {
		return policy.Policy{}, "", err
	}
	return o.State.Policy, o.ID, nil
}
