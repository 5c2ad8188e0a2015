// Package member holds the rules of memberships: which roles users hold in organizations and in the installation, who
// may give and take them, and that the installation always has an owner who can act.
//
// A membership is a fact about the user (docs/decisions/0001); lists of members come from groups of users.
package member

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
)

// Reasons of this package.
const (
	NotFound   errs.Reason = "MEMBER_NOT_FOUND"
	GrantsMore errs.Reason = "GRANTS_MORE"
	LastOwner  errs.Reason = "LAST_OWNER"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound   = errs.New(errs.NotFound, NotFound, "the user holds no roles there")
	ErrGrantsMore = errs.New(errs.PermissionDenied, GrantsMore, "you cannot give a role that holds more than you do")
	ErrLastOwner  = errs.New(errs.FailedPrecondition, LastOwner,
		"nobody else could act as an owner of the installation afterwards: give IAM_OWNER to another active user first")
)

// errNobody is user.ErrNotFound where no header could name the user's organization.
var errNobody = errs.New(errs.NotFound, user.NotFound, "there is no user with this identifier, or it is one that you may not see")

// Members are those of an organization or of the installation, in the hands of somebody who may see or change them.
type Members struct{ permit access.Permit }

// OfOrganization are the members of the permit's organization. A permit for the installation is none for its members:
// other permissions decide about those. Errors: org.ErrNotFound.
func OfOrganization(permit access.Permit) (Members, error) {
	if permit.Reaches(access.Installation) || !permit.Reaches(permit.Org()) {
		return Members{}, org.ErrNotFound
	}
	return Members{permit}, nil
}

// OfInstallation are the members of the installation. Errors: access.ErrDenied where the permit is for something else.
func OfInstallation(permit access.Permit) (Members, error) {
	if !permit.Reaches(access.Installation) {
		return Members{}, access.ErrDenied
	}
	return Members{permit}, nil
}

// List reads a page of the users who hold roles there, wherever they belong.
func (m Members) List(ctx context.Context, r event.Reader, after event.Cursor, limit int) ([]*event.Object[user.User], *event.Cursor, error) {
	return user.Kind.List(ctx, r, event.Query{Group: user.MembersOf(m.permit.Org()), After: after, Limit: limit})
}

// Set gives a user roles there, in place of those held before. Errors: InvalidArgument for unknown roles; org.ErrNotFound;
// user.ErrNotFound, also for a user of another organization whom the caller may not see; access.ErrTargetHoldsMore;
// ErrGrantsMore; ErrLastOwner; Aborted when match does not hold.
func (m Members) Set(ctx context.Context, s event.Store, userID string, names []string, match event.IfMatch) (event.Details, error) {
	if wrong := access.RoleViolations(m.permit.Org(), names); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	c := change{permit: m.permit, userID: userID, match: match}
	for _, name := range names {
		c.roles = append(c.roles, access.Role(name))
	}
	slices.Sort(c.roles)
	c.roles = slices.Compact(c.roles)
	return c.do(ctx, s)
}

// Remove takes away all roles a user holds there. Errors: ErrNotFound; access.ErrTargetHoldsMore; ErrLastOwner; Aborted when
// match does not hold.
func (m Members) Remove(ctx context.Context, s event.Store, userID string, match event.IfMatch) (event.Details, error) {
	return change{permit: m.permit, userID: userID, match: match}.do(ctx, s)
}

// change is a new set of roles for a user in the permit's scope.
type change struct {
	permit access.Permit
	userID string
	roles  []access.Role // none: the membership ends
	match  event.IfMatch
}

func (c change) do(ctx context.Context, s event.Store) (event.Details, error) {
	var details event.Details
	err := Settle(func() error {
		u, err := user.Kind.Read(ctx, s, c.userID)
		if err != nil {
			return err
		}
		if u == nil {
			return c.nobody()
		}
		command := event.Command{
			Origin: c.permit.Origin(),
			Write:  []event.Ref{user.Kind.Ref(c.userID)},
			Read:   []event.Ref{org.Kind.Ref(u.Org)},
		}
		var owners *Owners
		if c.inInstallation() {
			command.Write = append(command.Write, installation.Ref)
			if c.endsOwner(&u.State) {
				if owners, err = OwnersBut(ctx, s, func(o *event.Object[user.User]) bool { return o.ID == c.userID }); err != nil {
					return err
				}
				command.Read = append(command.Read, owners.Reads()...)
			}
		} else {
			command.Read = append(command.Read, org.Kind.Ref(c.permit.Org()))
		}
		command.Decide = func(tx *event.Tx) error {
			now, err := c.target(tx, u.Org)
			if err != nil {
				return err
			}
			if c.inInstallation() {
				if err := c.tellInstallation(tx, &now.State, owners); err != nil {
					return err
				}
			}
			if err := c.match.Check(now.Sequence); err != nil {
				return err
			}
			err = now.Append(user.MembershipSet{Scope: c.permit.Org(), Roles: c.roles})
			details = now.Details()
			return err
		}
		return s.Do(ctx, command)
	})
	return details, err
}

func (c change) inInstallation() bool { return c.permit.Org() == access.Installation }

// nobody is the refusal where there is no such user. Who takes roles away learns only about members.
func (c change) nobody() error {
	if len(c.roles) == 0 {
		return ErrNotFound
	}
	return errNobody
}

// target gives the user, if the caller may change what the user holds in the scope.
func (c change) target(tx *event.Tx, home string) (*event.Object[user.User], error) {
	scope := c.permit.Org()
	if !c.inInstallation() {
		if there, err := present(tx, scope); err != nil || !there {
			return nil, orElse(err, org.ErrNotFound)
		}
	}
	u, err := user.Kind.Get(tx, c.userID)
	if err != nil {
		return nil, err
	}
	if there, err := present(tx, home); err != nil || !there || u == nil || u.State.State == user.Removed {
		return nil, orElse(err, c.nobody())
	}
	held := u.State.Memberships[scope]
	isMember, isOurs := len(held) > 0, u.Org == scope
	isSeen := c.permit.Holds(access.UserRead, u.Org) || c.permit.Holds(access.MemberRead, u.Org)
	if !isMember && (len(c.roles) == 0 || !isOurs && !isSeen) {
		return nil, c.nobody()
	}
	if err := c.permit.Covers(access.Memberships{scope: held}); err != nil {
		return nil, err
	}
	if c.permit.Covers(access.Memberships{scope: c.roles}) != nil {
		return nil, ErrGrantsMore
	}
	return u, nil
}

func (c change) endsOwner(u *user.User) bool {
	return IsOwner(u) && !slices.Contains(c.roles, access.IAMOwner)
}

// tellInstallation keeps the installation's list of owners in step, and never lets the last one go.
func (c change) tellInstallation(tx *event.Tx, u *user.User, owners *Owners) error {
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil {
		return err
	}
	switch {
	case c.endsOwner(u):
		if err := owners.Remain(tx); err != nil {
			return err
		}
		return i.Append(installation.OwnerRemoved{UserID: c.userID})
	case !IsOwner(u) && slices.Contains(c.roles, access.IAMOwner):
		return i.Append(installation.OwnerAdded{UserID: c.userID})
	}
	return i.Append(installation.MembersChanged{UserID: c.userID})
}

// present tells whether an organization that the command declared is there.
func present(tx *event.Tx, id string) (bool, error) {
	o, err := org.Kind.Get(tx, id)
	return err == nil && o != nil && o.State.State != org.Removed, err
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
