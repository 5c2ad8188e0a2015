package installation

import (
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/policy"
)

// PolicySet records what changed about the policy of the installation.
type PolicySet struct{ policy.Change }

// EventType implements event.Fact.
func (PolicySet) EventType() event.Type { return "installation.policy_set.v1" }

// Apply implements event.Fact.
func (e PolicySet) Apply(i *Installation) {
	e.Change.Apply(&i.Policy)
	i.SecondFactorRequired = i.Policy.SecondFactorRequired // every request looks at it there
}

// Get reads the installation, which the permit must be for. Errors: access.ErrDenied.
func Get(ctx context.Context, r event.Reader, permit access.Permit) (*event.Object[Installation], error) {
	if !permit.Reaches(access.Installation) {
		return nil, access.ErrDenied
	}
	i, err := Read(ctx, r)
	if err == nil && i == nil {
		return nil, errNone
	}
	return i, err
}

// SetPolicy replaces the policy of the installation, which the permit must be for. Errors: access.ErrDenied; Aborted when match
// does not hold.
func SetPolicy(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch, p policy.Policy) (event.Details, error) {
	if !permit.Reaches(access.Installation) {
		return event.Details{}, access.ErrDenied
	}
	var details event.Details
	err := s.Do(ctx, event.Command{
		Origin: permit.Origin(),
		Write:  []event.Ref{Ref},
		Decide: func(tx *event.Tx) error {
			i, err := Kind.Get(tx, ID)
			if err != nil {
				return err
			}
			if i == nil {
				return errNone
			}
			if err := match.Check(i.Sequence); err != nil {
				return err
			}
			err = i.Append(PolicySet{i.State.Policy.ChangeTo(p)})
			details = i.Details()
			return err
		},
	})
	return details, err
}

// errNone: nobody gets a permit before the first start.
var errNone = errors.New("installation: there is none yet")

// ReadPolicy reads the policy of the installation. Before the first start there is none.
func ReadPolicy(ctx context.Context, r event.Reader) (policy.Policy, error) {
	i, err := Read(ctx, r)
	if err != nil || i == nil {
		return policy.Policy{}, err
	}
	return i.State.Policy, nil
}
