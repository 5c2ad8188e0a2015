package org

import (
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// PolicySet records what changed about the policy of an organization.
type PolicySet struct{ policy.Diff }

// EventType implements event.Fact.
func (PolicySet) EventType() event.Type { return "org.policy_set.v1" }

// Apply implements event.Fact.
func (e PolicySet) Apply(o *Org) {
	e.Diff.Apply(&o.Policy)
	o.SecondFactorRequired = o.Policy.SecondFactorRequired // every request looks at it there
}

// SetPolicy replaces what the permit's organization asks for. Errors: InvalidArgument; ErrNotFound; Aborted when match
// does not hold.
func SetPolicy(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	p policy.Policy) (event.Details, error) {
	return changePolicy(ctx, s, permit, match, p, func(uint64) error { return nil })
}

// errTried keeps a policy from being set that would have been.
var errTried = errors.New("org: the policy was only tried")

// TryPolicy finds out what SetPolicy would refuse, and changes nothing. Errors: as SetPolicy.
func TryPolicy(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch, p policy.Policy) error {
	_, err := changePolicy(ctx, s, permit, match, p, func(sequence uint64) error {
		if err := match.Check(sequence); err != nil {
			return err
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// changePolicy asks last whether to carry it out, with the sequence that the organization has before.
func changePolicy(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch, p policy.Policy,
	last func(sequence uint64) error) (event.Details, error) {
	if err := p.RegisteringViolations("policy.").Err(); err != nil {
		return event.Details{}, err
	}
	return Of(permit).Change(ctx, s, match, func(_ *event.Tx, o *event.Object[Org]) error {
		sequence := o.Details().Sequence
		if err := o.Append(PolicySet{o.Data.Policy.DiffTo(p)}); err != nil {
			return err
		}
		return last(sequence)
	})
}

// Settings reads what counts in an organization; in one that is not there, what counts everywhere.
func Settings(ctx context.Context, r event.Reader, id string) (policy.Settings, error) {
	everywhere, err := installation.ReadPolicy(ctx, r)
	if err != nil {
		return policy.Settings{}, err
	}
	here, _, err := ReadPolicy(ctx, r, id)
	if err != nil {
		return policy.Settings{}, err
	}
	return policy.Effective(everywhere, here), nil
}

// ReadPolicy reads what an organization asks for, and gives its id. One that is not there asks for nothing and has no
// id.
func ReadPolicy(ctx context.Context, r event.Reader, id string) (asked policy.Policy, of string, err error) {
	o, err := Kind.Read(ctx, r, id)
	if err != nil || o == nil {
		return policy.Policy{}, "", err
	}
	return o.Data.Policy, o.ID, nil
}
