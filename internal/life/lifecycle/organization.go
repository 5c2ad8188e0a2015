package lifecycle

import (
	"context"
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
func DeactivateOrganization(ctx context.Context, s event.Store, permit access.Permit,
	match event.IfMatch) (event.Details, error) {
	return orgStep{[]org.State{org.Active}, "deactivated", org.Deactivated{}, true}.do(ctx, s, permit, match)
}

// ReactivateOrganization lets its users sign in again.
func ReactivateOrganization(ctx context.Context, s event.Store, permit access.Permit,
	match event.IfMatch) (event.Details, error) {
	return orgStep{[]org.State{org.Inactive}, "reactivated", org.Reactivated{}, false}.do(ctx, s, permit, match)
}

// RemoveOrganization ends the organization for good, at once. What belonged to it is left to the Cleaner.
func RemoveOrganization(ctx context.Context, s event.Store, permit access.Permit,
	match event.IfMatch) (event.Details, error) {
	return orgStep{[]org.State{org.Active, org.Inactive}, "removed", org.WasRemoved{}, true}.do(ctx, s, permit, match)
}

func (step orgStep) do(ctx context.Context, s event.Store, permit access.Permit,
	match event.IfMatch) (event.Details, error) {
	if !permit.Reaches(permit.Org()) {
		return event.Details{}, access.ErrDenied
	}
	ended := affectedBy(s, permit.Org())
	return org.Of(permit).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[org.Org]) error {
		if !step.ends {
			return step.append(o)
		}
		if err := ended.coveredBy(tx, permit); err != nil {
			return err
		}
		wasActive := o.Data.State == org.Active
		if err := step.append(o); err != nil {
			return err
		}
		if ended.hasOwner {
			if err := ended.owners.Remain(tx); err != nil {
				return err
			}
		}
		if !wasActive {
			return nil // the others were without those owners before
		}
		return ended.elsewhere.TellLost(tx, o.ID)
	})
}

// append records the step, unless it does not start from the organization's state.
func (step orgStep) append(o *event.Object[org.Org]) error {
	if !slices.Contains(step.from, o.Data.State) {
		return errs.New(errs.FailedPrecondition, OrganizationWrongState,
			wrongState("organization", string(o.Data.State), string(step.from[0]), step.to))
	}
	return o.Append(step.fact)
}

// affected is what the end of an organization would touch beyond it: what its users hold in the installation, and the
// organizations that they own. Those do not keep it from ending; they are told if no owner is left who can act.
type affected struct {
	reader    event.Reader
	org       string
	sequence  uint64 // of the installation when its members were listed: it changes with all that they are given
	held      []access.Memberships
	hasOwner  bool           // of the installation
	owners    *member.Owners // of the installation, who belong to other organizations
	elsewhere member.OrgOwners
}

func affectedBy(r event.Reader, id string) *affected {
	return &affected{reader: r, org: id,
		owners: member.OwnersBut(r, func(u *event.Object[user.User]) bool { return u.Org == id })}
}

// look lists the users of the organization who hold something elsewhere.
func (a *affected) look(ctx context.Context) error {
	a.held, a.hasOwner, a.elsewhere = nil, false, member.OrgOwners{}
	err := each(ctx, a.reader, user.MembersOf(access.Installation), func(u *event.Object[user.User]) {
		if u.Org == a.org {
			a.held = append(a.held, access.Memberships{access.Installation: u.Data.Memberships[access.Installation]})
			a.hasOwner = a.hasOwner || member.IsOwner(&u.Data)
		}
	})
	if err != nil {
		return err
	}
	return each(ctx, a.reader, user.OwnersFrom(a.org), func(u *event.Object[user.User]) {
		for _, owned := range member.Owned(u.Data.Memberships) {
			if owned != a.org && u.Data.State == user.Active {
				a.elsewhere[owned] = member.OwnersOfButThose(a.reader, owned,
					func(o *event.Object[user.User]) bool { return o.Org == a.org })
			}
		}
	})
}

// each reads all users of a group.
func each(ctx context.Context, r event.Reader, group string, do func(*event.Object[user.User])) error {
	const page = 500
	for after := (&event.Cursor{}); after != nil; {
		var users []*event.Object[user.User]
		var err error
		if users, after, err = user.Kind.List(ctx, r,
			event.Query{Group: group, After: *after, Limit: page}); err != nil {
			return err
		}
		for _, u := range users {
			do(u)
		}
	}
	return nil
}

// coveredBy refuses where a user of the organization holds more in the installation than the caller does, and where the
// organization is the default one. It looks for those users first.
func (a *affected) coveredBy(tx *event.Tx, permit access.Permit) error {
	i, err := installation.Kind.Follow(tx, installation.ID)
	if err != nil {
		return err
	}
	sequence := uint64(0)
	if i != nil {
		sequence = i.Sequence
	}
	if a.elsewhere == nil || a.sequence != sequence {
		return event.Look(func(ctx context.Context) (event.Command, error) {
			a.sequence = sequence
			return event.Command{}, a.look(ctx)
		})
	}
	for _, held := range a.held {
		if err := permit.Covers(held); err != nil {
			return err
		}
	}
	if i != nil && i.Data.DefaultOrg == a.org {
		return ErrDefaultOrganization
	}
	return nil
}
