package lifecycle

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
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

// DeactivateOrganization switches off the permit's organization: its users can no longer sign in, and their sessions
// and tokens end for good. Errors, here and below: org.ErrNotFound; access.ErrTargetHoldsMore; ErrDefaultOrganization;
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
			if through.elsewhere, err = ownedFrom(ctx, s, id); err != nil {
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
	if through != nil && o.Data.State == org.Active { // else they were without those owners before
		if err := through.tell(tx, o.ID); err != nil {
			return err
		}
	}
	return o.Append(step.fact)
}

// affected is what the end of an organization would touch beyond it: what its users hold in the installation, and the
// organizations that they own. Those do not keep it from ending; they are told if no owner is left who can act.
type affected struct {
	org          string
	installation *event.Object[installation.Installation] // before the rest was looked at; it moves with every grant
	held         []access.Memberships
	owners       *member.Owners // those of other organizations; nil where no owner is affected
	elsewhere    member.OrgOwners
}

// ownedFrom looks for the owners who remain of all other organizations that users of an organization own.
func ownedFrom(ctx context.Context, r event.Reader, id string) (member.OrgOwners, error) {
	all := member.OrgOwners{}
	const page = 500
	for after := (&event.Cursor{}); after != nil; {
		var users []*event.Object[user.User]
		var err error
		if users, after, err = user.Kind.List(ctx, r, event.Query{Group: user.OwnersFrom(id), After: *after, Limit: page}); err != nil {
			return nil, err
		}
		for _, u := range users {
			for _, owned := range member.Owned(u.Data.Memberships) {
				if _, known := all[owned]; known || owned == id || u.Data.State != user.Active {
					continue
				}
				if all[owned], err = member.OwnersOfButThose(ctx, r, owned, func(o *event.Object[user.User]) bool { return o.Org == id }); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// tell tells the organizations that have no owner any more who can act.
func (a *affected) tell(tx *event.Tx, id string) error {
	var lost []string
	for _, owned := range slices.Sorted(maps.Keys(a.elsewhere)) {
		switch err := a.elsewhere[owned].Remain(tx); {
		case errors.Is(err, member.ErrLastOrgOwner):
			lost = append(lost, owned)
		case err != nil:
			return err
		}
	}
	return member.TellOwnerLost(tx, "", id, lost...)
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
	return append(refs, a.elsewhere.Reads()...)
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
