package user

import (
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// acceptanceVersion is the version of facts from which on nodes know that roles in another organization may wait.
const acceptanceVersion = 5

// Acceptance is what a user has agreed to in another organization.
type Acceptance struct {
	Roles   []access.Role `json:"roles,omitempty"`   // all that bring nothing beyond what was shown, sorted
	Assumed bool          `json:"assumed,omitempty"` // nobody was asked: it is what the user held before anybody was
	// that were shown, if a custom role was: of custom roles, these count
	Permissions []access.Permission `json:"permissions,omitempty"`
}

// counting is what of a role counts for somebody who has agreed to no more: a fixed role as a whole or not at all.
func (a Acceptance) counting(r access.Role) (access.Role, bool) {
	if r.IsCustom() {
		return r.Only(a.Permissions)
	}
	return r, slices.Contains(a.Roles, r)
}

// Covers tells whether the whole of a role counts without asking.
func (a Acceptance) Covers(r access.Role) bool {
	counting, some := a.counting(r)
	return some && counting == r
}

// RolesAccepted records which roles count from now on for a user in another organization, in place of those before. The
// roles are recorded, not recomputed: a later version may know others, or others that hold more.
type RolesAccepted struct {
	Scope       string              `json:"scope"`
	Roles       []access.Role       `json:"roles,omitempty"`
	Permissions []access.Permission `json:"permissions,omitempty"` // what these roles brought when they were shown
	Offer       string              `json:"offer,omitempty"`       // the offer that was accepted
	Assumed     bool                `json:"assumed,omitempty"`     // it was held before anybody was asked
	// an owner of the installation gave it to somebody of the default organization
	Unasked bool `json:"unasked,omitempty"`
	Custom  bool `json:"custom,omitempty"` // a custom role was among it: of such roles, the permissions count
}

// EventType implements event.Fact.
func (RolesAccepted) EventType() event.Type { return "user.roles_accepted.v1" }

// Since implements event.Gated: a node of before would count roles that wait.
func (RolesAccepted) Since() int { return acceptanceVersion }

// Apply implements event.Fact.
func (e RolesAccepted) Apply(u *User) {
	direct, all := u.Direct(), maps.Clone(u.Accepted)
	if all == nil {
		all = map[string]Acceptance{}
	}
	accepted := Acceptance{Roles: e.Roles, Assumed: e.Assumed}
	if e.Custom {
		accepted.Permissions = e.Permissions
	}
	all[e.Scope] = accepted
	u.Accepted = all
	u.settle(direct)
}

// forgetAcceptance forgets what the user has agreed to in an organization that the user is in no longer.
func (u *User) forgetAcceptance(org string) {
	if _, there := u.Accepted[org]; !there {
		return
	}
	u.Accepted = maps.Clone(u.Accepted)
	if delete(u.Accepted, org); len(u.Accepted) == 0 {
		u.Accepted = nil
	}
}

// Counting are those of the roles that count for the user in an organization, and of custom ones the part that does.
func (u *User) Counting(org string, roles []access.Role) []access.Role {
	accepted, asked := u.Accepted[org]
	if !asked {
		return roles
	}
	counting := []access.Role{}
	for _, r := range roles {
		if counts, some := accepted.counting(r); some {
			counting = append(counting, counts)
		}
	}
	return counting
}

// Waiting are the roles that the user was given in an organization and has not accepted yet, sorted.
func (u *User) Waiting(org string) (waiting []access.Role) {
	for _, r := range u.given(org, "") {
		if !slices.Contains(u.Memberships[org], r) {
			waiting = append(waiting, r)
		}
	}
	slices.Sort(waiting)
	return slices.Compact(waiting)
}

// Within is what counts for somebody in another organization without asking: what was accepted there, or what is held
// where nobody was asked yet.
func (u *User) Within(org string) Acceptance {
	if accepted, asked := u.Accepted[org]; asked {
		return accepted
	}
	held := u.Memberships[org]
	return Acceptance{Roles: access.RolesWithin(held), Permissions: access.PermissionsOf(org, held)}
}

// Unaccepted tells whether a user is in another organization without ever having agreed to it.
func Unaccepted(u *event.Object[User], org string) bool {
	accepted, asked := u.Data.Accepted[org]
	return IsGuest(u, org) && (!asked || accepted.Assumed)
}

// MaxGuest is in how many other organizations a user can be: what is done about the user's credentials is told to each
// of them in one command.
const MaxGuest = 1000

// TooManyOrganizations is the reason of ErrTooManyOrganizations.
const TooManyOrganizations errs.Reason = "TOO_MANY_ORGANIZATIONS"

// ErrTooManyOrganizations is the refusal of one more organization.
var ErrTooManyOrganizations = errs.New(errs.FailedPrecondition, TooManyOrganizations,
	"a user can be in at most 1000 other organizations: leave another one first")

// guestIn is in how many other organizations a user is.
func guestIn(u *event.Object[User]) (n int) {
	for scope := range u.Data.Memberships {
		if IsGuest(u, scope) {
			n++
		}
	}
	return n
}

// Accept records that the user agrees to roles in another organization, besides those that count there. how says what
// else is recorded. Errors: ErrTooManyOrganizations.
func Accept(u *event.Object[User], org string, roles []access.Role, how RolesAccepted) error {
	if !IsGuest(u, org) && guestIn(u) >= MaxGuest {
		return ErrTooManyOrganizations
	}
	within := u.Data.Within(org)
	how.Scope, how.Permissions = org, slices.Concat(within.Permissions,
		access.PermissionsOf(org, slices.Concat(within.Roles, roles)))
	slices.Sort(how.Permissions)
	how.Permissions = slices.Compact(how.Permissions)
	how.Roles = access.RolesFrom(how.Permissions)
	how.Custom = len(u.Data.Accepted[org].Permissions) > 0 ||
		slices.ContainsFunc(slices.Concat(u.Data.Memberships[org], roles), access.Role.IsCustom)
	return u.Append(how)
}

// Ask sees to it, before a group gives roles to somebody, that more than the user has accepted in another organization
// waits: what was held before anybody was asked is recorded as that.
func Ask(u *event.Object[User], org string, roles []access.Role) error {
	if _, asked := u.Data.Accepted[org]; asked || u.Org == org {
		return nil
	}
	within := u.Data.Within(org)
	if !slices.ContainsFunc(roles, func(r access.Role) bool { return !within.Covers(r) }) {
		return nil
	}
	return u.Append(RolesAccepted{Scope: org, Roles: within.Roles, Permissions: within.Permissions, Assumed: true,
		Custom: slices.ContainsFunc(u.Data.Memberships[org], access.Role.IsCustom)})
}

// PasswordGiven is the reason of ErrPasswordGiven.
const PasswordGiven errs.Reason = "PASSWORD_SET_BY_ANOTHER"

// ErrPasswordGiven keeps a password that somebody else knows from becoming one that counts in another organization.
var ErrPasswordGiven = errs.New(errs.FailedPrecondition, PasswordGiven,
	"somebody else has set your password and may know it: change it first, then accept roles in another organization")

// MayAccept refuses somebody whose password somebody else has set, where there are roles to accept. Errors:
// ErrPasswordGiven.
func (u *User) MayAccept(roles []access.Role) error {
	if len(roles) > 0 && u.Password.Given {
		return ErrPasswordGiven
	}
	return nil
}

// DeclinedRow is where it is kept which offers a user has declined. It is no fact: the organization that made an offer
// must not read in its log what became of it.
func DeclinedRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/declined_offers"}
}
