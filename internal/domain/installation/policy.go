package installation

import (
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// PolicySet records what changed about the policy of the installation.
type PolicySet struct{ policy.Diff }

// EventType implements event.Fact.
func (PolicySet) EventType() event.Type { return "installation.policy_set.v1" }

// Apply implements event.Fact.
func (e PolicySet) Apply(i *Installation) {
	e.Diff.Apply(&i.Policy)
	i.SecondFactorRequired = i.Policy.SecondFactorRequired // every request looks at it there
}

// of is the installation, which the permit must be for. Errors: access.ErrDenied.
func of(permit access.Permit) event.Target[Installation] {
	return event.Target[Installation]{
		Kind:   Kind,
		ID:     ID,
		Origin: permit.Origin(),
		Reach: func(i *event.Object[Installation]) error {
			switch {
			case !permit.Reaches(access.Installation):
				return access.ErrDenied
			case i == nil:
				return errNone
			}
			return nil
		},
	}
}

// Get reads the installation, which the permit must be for. Errors: access.ErrDenied.
func Get(ctx context.Context, r event.Reader, permit access.Permit) (*event.Object[Installation], error) {
	return of(permit).Read(ctx, r)
}

// SetPolicy replaces the policy of the installation, which the permit must be for. Errors: InvalidArgument;
// access.ErrDenied; Aborted when match does not hold.
func SetPolicy(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	p policy.Policy) (event.Details, error) {
	if err := p.InstallationViolations("policy.").Err(); err != nil {
		return event.Details{}, err
	}
	return of(permit).Change(ctx, s, match, func(_ *event.Tx, i *event.Object[Installation]) error {
		return i.Append(PolicySet{i.Data.Policy.DiffTo(p)})
	})
}

// errNone: nobody gets a permit before the first start.
var errNone = errors.New("installation: there is none yet")

// ReadPolicy reads the policy of the installation. Before the first start there is none.
func ReadPolicy(ctx context.Context, r event.Reader) (policy.Policy, error) {
	i, err := Read(ctx, r)
	if err != nil || i == nil {
		return policy.Policy{}, err
	}
	return i.Data.Policy, nil
}
