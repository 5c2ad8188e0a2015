// Package member holds the rules of memberships: which roles users hold in organizations and in the installation, who
// may give and take them, and that the installation always has an owner who can act.
//
// A membership is a fact about the user (docs/decisions/0001); lists of members come from groups of users.
package member

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Reasons of this package.
const (
	NotFound   errs.Reason = "MEMBER_NOT_FOUND"
	GrantsMore errs.Reason = "GRANTS_MORE"
	LastOwner  errs.Reason = "LAST_OWNER"

	LastOrgOwner errs.Reason = "LAST_ORGANIZATION_OWNER"

	OwnOrganization errs.Reason = "OWN_ORGANIZATION"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"the user is not a guest there and has no roles there that were given directly")
	ErrGrantsMore = errs.New(errs.PermissionDenied, GrantsMore,
		"you cannot grant a role with permissions that you do not have")
	ErrLastOwner = errs.New(errs.FailedPrecondition, LastOwner,
		"the installation would have no active owner: grant IAM_OWNER to another active user first")
	ErrLastOrgOwner = errs.New(errs.FailedPrecondition, LastOrgOwner,
		"the organization would have no active owner: grant ORG_OWNER to another active user first, or ask an administrator of the installation")
)

// ErrOwnOrganization refuses to let a user leave the organization that they belong to: only guests can leave.
var ErrOwnOrganization = errs.New(errs.FailedPrecondition, OwnOrganization,
	"this is your own organization, which you cannot leave: ask one of its owners to remove your account if you do not need it any more")

// errNobody is user.ErrNotFound where no header could name the user's organization.
var errNobody = errs.New(errs.NotFound, user.NotFound,
	"there is no user with this identifier, or you may not see this user")

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

// List reads a page of the users who hold roles there, or are guests there, wherever they belong.
func (m Members) List(ctx context.Context, r event.Reader, after event.Cursor,
	limit int) ([]*event.Object[user.User], *event.Cursor, error) {
	return user.Kind.List(ctx, r, event.Query{Group: user.MembersOf(m.permit.Org()), After: after, Limit: limit})
}

// Set is what Members.Set did.
type Set struct {
	event.Details        // of the user, or of the offer where one was made
	Offer         string // id of the offer that was made; empty: the roles count at once
	Home          string // the organization that the user belongs to
}

// Set gives a user roles there, in place of those given directly before; what groups give stays. No roles make a user
// of another organization a guest. Somebody of another organization is offered what goes beyond what the person has
// accepted there: nobody's roles elsewhere grow without their word. Errors: InvalidArgument for unknown roles, and for
// none where the user would be no guest; ErrGrantsMore; user.ErrNotFound, also for a user of another organization whom
// the caller may not see; access.ErrTargetHoldsMore; org.ErrNotFound; ErrLastOwner; ErrLastOrgOwner; Aborted when match
// does not hold.
func (m Members) Set(ctx context.Context, s event.Store, userID string, match event.IfMatch,
	names []string) (Set, error) {
	if wrong := access.GivenViolations(m.permit.Org(), names); len(wrong) > 0 {
		return Set{}, errs.Invalid(wrong...)
	}
	c := roleChange{permit: m.permit, userID: userID, match: match, names: names}
	if c.inInstallation() && len(names) == 0 {
		return Set{}, errs.Wrong("roles", errs.Plain("must have at least one role: the installation has no guests"))
	}
	for _, name := range names { // what custom roles bring is known in the command only
		if err := c.mayGive(access.Role(name)); err != nil {
			return Set{}, err
		}
	}
	return c.do(ctx, s)
}

// Remove takes away all roles that a user was given there directly. A user of another organization leaves it, with its
// groups and roles of applications. Errors: ErrNotFound; access.ErrTargetHoldsMore; org.ErrNotFound; ErrLastOwner;
// ErrLastOrgOwner; Aborted when match does not hold.
func (m Members) Remove(ctx context.Context, s event.Store, userID string, match event.IfMatch) (event.Details, error) {
	set, err := roleChange{permit: m.permit, userID: userID, match: match, removes: true}.do(ctx, s)
	return set.Details, err
}

// Leave takes the caller out of an organization that is not the caller's own. Who is the last owner there may leave,
// too: the organization is told so. Errors: ErrOwnOrganization; ErrNotFound; Aborted when match does not hold.
func Leave(ctx context.Context, s event.Store, caller *access.Caller, orgID string,
	match event.IfMatch) (event.Details, error) {
	owners := OwnersOfBut(s, orgID, caller.UserID)
	return elsewhere(user.Mine(caller), orgID).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[user.User]) error {
			if slices.Contains(u.Data.Memberships[orgID], access.OrgOwner) {
				err := owners.Remain(tx)
				if errors.Is(err, ErrLastOrgOwner) {
					err = TellOwnerLost(tx, u.ID, u.Org, orgID)
				}
				if err != nil {
					return err
				}
			}
			return End(u, orgID)
		})
}

// elsewhere is a user who is in an organization other than the own one. Errors: ErrOwnOrganization; errNotThere.
func elsewhere(target event.Target[user.User], orgID string) event.Target[user.User] {
	reach := target.Reach
	target.Reach = func(u *event.Object[user.User]) error {
		switch err := reach(u); {
		case err != nil:
			return err
		case u.Org == orgID:
			return ErrOwnOrganization
		case !user.IsGuest(u, orgID):
			return errNotThere
		}
		return nil
	}
	return target
}

var errNotThere = errs.New(errs.NotFound, NotFound, "you are not a guest or member there")

// End takes a user out of an organization that is not the user's own, inside a command that declared the user for
// writing.
func End(u *event.Object[user.User], orgID string) error {
	hasRoles := slices.ContainsFunc(u.Data.AppRoles, func(r user.AppRoles) bool { return r.Org == orgID })
	if len(u.Data.Direct()[orgID]) > 0 && len(u.Data.Groups[orgID]) == 0 && !hasRoles {
		return u.Append(user.MembershipSet{Scope: orgID}) // nodes of before know it
	}
	return u.Append(user.OrgLeft{Org: orgID})
}

// roleChange is a new set of roles for a user in the permit's scope.
type roleChange struct {
	permit  access.Permit
	userID  string
	names   []string // of the roles
	removes bool     // the membership ends
	match   event.IfMatch

	owners  *Owners
	unasked string // the organization whose people are not asked, see Unasked
	offer   string // id of the offer to be made to somebody who is asked

	store event.Store
	roles []access.Role // as they are in the command, sorted
}

// mayGive refuses a role with permissions that the caller does not hold.
func (c roleChange) mayGive(roles ...access.Role) error {
	if c.permit.Covers(access.Memberships{c.permit.Org(): roles}) != nil {
		return ErrGrantsMore
	}
	return nil
}

func (c roleChange) do(ctx context.Context, s event.Store) (set Set, err error) {
	scope := c.permit.Org()
	c.store = s
	needs := event.Command{Write: []event.Ref{installation.Ref}}
	if c.inInstallation() {
		c.owners = OwnersBut(s, func(u *event.Object[user.User]) bool { return u.ID == c.userID })
	} else {
		if c.unasked, err = Unasked(ctx, s, c.permit); err != nil {
			return Set{}, err
		}
		c.owners, c.offer = OwnersOfBut(s, scope, c.userID), OfferKind.NewID()
		needs = event.Command{Create: []event.Ref{OfferKind.Ref(c.offer)}, Read: []event.Ref{org.Kind.Ref(scope)},
			Claims: []event.Claim{OfferClaim(scope, c.userID)}}
	}
	target := event.Target[user.User]{Kind: user.Kind, ID: c.userID, Origin: c.permit.Origin(), Reach: c.reach}
	details, err := target.Needs(needs).Change(ctx, s, c.match, func(tx *event.Tx, u *event.Object[user.User]) error {
		c := c // a command may be decided more than once
		var err error
		if c.roles, err = role.Resolve(tx, scope, c.names); err != nil {
			return err
		}
		if err := c.mayGive(c.roles...); err != nil {
			return err
		}
		offer, err := c.decide(tx, u)
		if set = (Set{Home: u.Org}); err == nil && offer != nil {
			set.Details, set.Offer = offer.Details(), offer.ID
		}
		return err
	})
	if err != nil {
		return Set{}, err
	}
	if set.Offer == "" {
		set.Details = details
	}
	return set, nil
}

func (c roleChange) decide(tx *event.Tx, u *event.Object[user.User]) (*event.Object[Offer], error) {
	if there, err := present(tx, u.Org); err != nil || !there {
		return nil, orElse(err, c.nobody())
	}
	scope := c.permit.Org()
	if c.inInstallation() {
		if err := c.tellInstallation(tx, &u.Data); err != nil {
			return nil, err
		}
	} else if there, err := present(tx, scope); err != nil || !there {
		return nil, orElse(err, org.ErrNotFound)
	} else if c.endsOrgOwner(u) {
		if err := c.owners.Stop(tx, scope, c.permit.ForInstallation(access.MemberWrite), u); err != nil {
			return nil, err
		}
	}
	foreign := c.isForeign(u)
	if foreign {
		if err := c.endOffer(tx); err != nil {
			return nil, err
		}
	}
	switch {
	case c.removes && foreign:
		return nil, End(u, scope)
	case !c.removes && len(c.roles) == 0 && u.Org == scope:
		return nil, errs.Wrong("roles", errs.Plain("must have at least one role: this user belongs to the "+
			"organization and cannot be a guest in it. To take the roles away, remove the member"))
	case !c.removes && c.isAsked(u):
		return c.ask(tx, u)
	case !c.removes && foreign:
		if err := acceptUnasked(u, scope, c.roles); err != nil {
			return nil, err
		}
	}
	if err := role.GiveTo(tx, c.store, u, scope, c.roles); err != nil {
		return nil, err
	}
	return nil, u.Append(user.MembershipSet{Scope: scope, Roles: c.roles,
		Stays: foreign && !c.removes && len(c.roles) == 0})
}

// isForeign tells whether the user belongs to another organization than the one that gives the roles.
func (c roleChange) isForeign(u *event.Object[user.User]) bool {
	return !c.inInstallation() && u.Org != c.permit.Org()
}

// isAsked tells whether new roles wait until the user has accepted them.
func (c roleChange) isAsked(u *event.Object[user.User]) bool {
	return c.isForeign(u) && u.Org != c.unasked
}

func (c roleChange) inInstallation() bool { return c.permit.Org() == access.Installation }

// nobody is the refusal where there is no such user. Who takes roles away learns only about members.
func (c roleChange) nobody() error {
	if c.removes {
		return ErrNotFound
	}
	return errNobody
}

// reach refuses a user of whom the caller may not change what the user holds in the scope.
func (c roleChange) reach(u *event.Object[user.User]) error {
	if u == nil || u.Data.State == user.Removed {
		return c.nobody()
	}
	scope := c.permit.Org()
	_, isMember := u.Data.Direct()[scope]
	isOurs := u.Org == scope
	isSeen := c.permit.Holds(access.UserRead, u.Org) || c.permit.Holds(access.MemberRead, u.Org)
	if !isMember && (c.removes || !isOurs && !isSeen) {
		return c.nobody()
	}
	return c.permit.Covers(access.Memberships{scope: u.Data.Memberships[scope]})
}

func (c roleChange) endsOwner(u *user.User) bool {
	return IsOwner(u) && !slices.Contains(c.roles, access.IAMOwner)
}

// endsOrgOwner tells whether the change ends somebody's ownership of the organization. A caller with a role in the
// installation may leave the organization without an owner; then the organization records that.
func (c roleChange) endsOrgOwner(u *event.Object[user.User]) bool {
	return !c.inInstallation() && slices.Contains(u.Data.Memberships[c.permit.Org()], access.OrgOwner) &&
		!slices.Contains(c.after(u), access.OrgOwner)
}

// after are the roles that the user has there afterwards: a guest who is removed leaves the groups, too.
func (c roleChange) after(u *event.Object[user.User]) []access.Role {
	roles, scope := slices.Clone(c.atOnce(u)), c.permit.Org()
	if c.removes && u.Org != scope {
		return roles
	}
	for _, g := range u.Data.Groups[scope] {
		roles = append(roles, u.Data.Counting(scope, g.Roles)...)
	}
	return roles
}

// tellInstallation keeps the installation's list of owners in step, and never lets the last one go.
func (c roleChange) tellInstallation(tx *event.Tx, u *user.User) error {
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil {
		return err
	}
	switch {
	case c.endsOwner(u):
		if err := c.owners.Remain(tx); err != nil {
			return err
		}
		return i.Append(installation.OwnerRemoved{UserID: c.userID})
	case !IsOwner(u) && slices.Contains(c.roles, access.IAMOwner):
		return i.Append(installation.OwnerAdded{UserID: c.userID})
	}
	return i.Append(installation.MembersChanged{UserID: c.userID})
}

// present tells whether an organization is there.
func present(tx *event.Tx, id string) (bool, error) {
	o, err := org.Kind.Follow(tx, id)
	return err == nil && o != nil && o.Data.State != org.Removed, err
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
