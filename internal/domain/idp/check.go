package idp

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Problem is something about a provider that keeps people from signing in, or that may do so (Warning).
type Problem struct {
	Check   string // a name that stays, such as issuer
	Message string // what is wrong
	Hint    string // what to do
	Warning bool
}

// Checker fetches what a configuration names and judges it.
type Checker interface {
	Check(ctx context.Context, p *event.Object[Provider]) []Problem
}

// Checked is what a check found. Passed: there are no problems but warnings.
type Checked struct {
	Problems []Problem
	Passed   bool
	Details  event.Details
}

// errChangedMeanwhile keeps somebody from answering for a configuration that was not checked.
var errChangedMeanwhile = errs.New(errs.Aborted, event.SequenceMismatch,
	"the identity provider was changed while it was checked: check it again")

// Check judges a provider's configuration. If it passes, a draft is offered from now on; and if nobody answers for the
// configuration yet, the caller does, with adopt also in place of everybody else, for the configuration that match
// names. Errors: ErrNotFound; ErrUnseen for adopt without match where others answer for it; ErrNoChecker where checker
// is nil; Aborted when match does not hold, or when the provider was changed meanwhile.
func Check(ctx context.Context, s event.Store, checker Checker, permit access.Permit, id string, match event.IfMatch,
	adopt bool) (Checked, error) {
	p, err := Get(ctx, s, permit, id)
	if err != nil {
		return Checked{}, err
	}
	if adopt && !match.Set && slices.ContainsFunc(p.Data.Changer.answers(),
		func(a access.Answer) bool { return a.UserID != permit.Origin().Actor }) {
		return Checked{}, ErrUnseen
	}
	if checker == nil {
		return Checked{}, ErrNoChecker
	}
	if err := match.Check(p.Sequence); err != nil { // before others are called
		return Checked{}, err
	}
	out := Checked{Problems: checker.Check(ctx, p), Details: p.Details()}
	out.Passed = !slices.ContainsFunc(out.Problems, func(problem Problem) bool { return !problem.Warning })
	var facts []event.Fact[Provider]
	if p.Data.Changer == nil || adopt {
		facts = append(facts, adopted(permit))
	}
	if p.Data.State == Draft {
		facts = append(facts, Reactivated{})
	}
	if !out.Passed || facts == nil {
		return out, nil
	}
	if permit, err = permit.Renew(ctx); err != nil { // it took its time
		return Checked{}, err
	}
	out.Details, err = within(permit, id).Change(ctx, s, event.IfMatch{},
		func(_ *event.Tx, now *event.Object[Provider]) error {
			if now.Sequence != p.Sequence {
				return errChangedMeanwhile
			}
			return now.Append(facts...)
		})
	if err != nil {
		return Checked{}, err
	}
	return out, nil
}
