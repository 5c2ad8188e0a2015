package lifecycle

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/member"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
)

// ErrDefaultOrganization: the default organization is always there.
var ErrDefaultOrganization = errs.New(errs.FailedPrecondition, DefaultOrganization,
	"this is the default organization of the installation: it cannot be deactivated or removed")

// orgStep is one step in an organization's life.
type orgStep struct {
	from []org.State
	to   string
	fact event.Fact[org.Org]
	ends bool // its users cannot act afterwards
}

// DeactivateOrganization switches off the permit's organization: its users can no longer sign in, and their sessions and
// tokens end for good. Errors, here and below: org.ErrNotFound; access.ErrTargetHoldsMore; ErrDefaultOrganization;
// FailedPrecondition in the wrong state; member.ErrLastOwner; Aborted when match does not hold.
func DeactivateOrganization(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch) (event.Details, error) {
	return orgStep{[]org.State{org.Active}, "deactivated", org.Deactivated{}, true}.do(ctx, s, permit, match)
}

// ReactivateOrganization lets its users sign in again.
func ReactivateOrganization(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch) (event.Details, error) {
	return orgStep{[]org.State{org.Inactive}, "reactivated", org.Reactivated{}, false}.do(ctx, s, permit, match)
}

// RemoveOrganization ends the organization for good, at once. What belonged to it is left to the Cleaner.
func RemoveOrganization(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch) (event.Details, error) {
	return orgStep{[]org.State{org.Active, org.Inactive}, "removed", org.WasRemoved{}, true}.do(ctx, s, permit, match)
}

func (step orgStep) do(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch) (details event.Details, err error) {
	id := permit.Org()
	if !permit.Reaches(id) {
		return event.Details{}, access.ErrDenied
	}
	err = member.Settle(func() error {
		var needs event.Command
		var through *affected
		if step.ends {
			if through, err = affectedBy(ctx, s, id); err != nil {
				return err
			}
			needs.Read = through.reads()
		}
		details, err = org.Of(permit).Needs(needs).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[org.Org]) error {
			return step.decide(tx, o, through, permit)
		})
		return err
	})
	return details, err
}

func (step orgStep) decide(tx *event.Tx, o *event.Object[org.Org], through *affected, permit access.Permit) error {
	if through != nil {
		if err := through.coveredBy(tx, permit); err != nil {
			return err
		}
	}
	if !slices.Contains(step.from, o.Data.State) {
		return errs.New(errs.FailedPrecondition, OrganizationWrongState,
			wrongState("organization", string(o.Data.State), string(step.from[0]), step.to))
	}
	if through != nil && through.owners != nil {
		if err := through.owners.Remain(tx); err != nil {
			return err
		}
	}
	return o.Append(step.fact)
}

// affected is what the end of an organization would touch beyond it: what its users hold in the installation.
type affected struct {
	org          string
	installation *event.Object[installation.Installation] // before the rest was looked at; it moves with every grant
	held         []access.Memberships
	owners       *member.Owners // those of other organizations; nil where no owner is affected
}

func affectedBy(ctx context.Context, r event.Reader, id string) (*affected, error) {
	a := &affected{org: id}
	var err error
	if a.installation, err = installation.Read(ctx, r); err != nil || a.installation == nil {
		return a, err
	}
	isOwner := false
	const page = 500
	for after := (&event.Cursor{}); after != nil; {
		var users []*event.Object[user.User]
		if users, after, err = user.Kind.List(ctx, r, event.Query{Group: user.MembersOf(access.Installation), After: *after, Limit: page}); err != nil {
			return nil, err
		}
		for _, u := range users {
			if u.Org == id {
				a.held = append(a.held, access.Memberships{access.Installation: u.Data.Memberships[access.Installation]})
				isOwner = isOwner || member.IsOwner(&u.Data)
			}
		}
	}
	if isOwner {
		a.owners, err = member.OwnersBut(ctx, r, func(u *event.Object[user.User]) bool { return u.Org == id })
	}
	return a, err
}

func (a *affected) reads() []event.Ref {
	refs := []event.Ref{installation.Ref}
	if a.owners != nil {
		refs = append(refs, a.owners.Reads()...)
	}
	return refs
}

// coveredBy refuses where a user of the organization holds more in the installation than the caller does, and where the
// organization is the default one.
func (a *affected) coveredBy(tx *event.Tx, permit access.Permit) error {
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil {
		return err
	}
	if i == nil || a.installation == nil {
		return nil
	}
	if i.Sequence != a.installation.Sequence {
		return member.ErrMoved
	}
	for _, held := range a.held {
		if err := permit.Covers(held); err != nil {
			return err
		}
	}
	if i.Data.DefaultOrg == a.org {
		return ErrDefaultOrganization
	}
	return nil
}
