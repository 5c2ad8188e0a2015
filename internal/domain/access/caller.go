package access

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Caller is who sends a request, as the credential proved.
type Caller struct {
	UserID      string
	OrgID       string // the caller's own organization
	Memberships Memberships
	TokenID     string // the credential used
	TokenKind   string
	RequestID   string

	// User and Org are the caller's own, as they were when the credential was checked, so that a request about them
	// need not read them again. Nil where they were not at hand.
	User, Org *event.Record

	// SessionEpoch is that of the user's sessions when the credential was checked: another one by now means that they
	// were ended since.
	SessionEpoch int64

	// MustChangePassword restricts a session to changing the password and ending itself.
	MustChangePassword bool

	// MustProveSecondFactor restricts a session to proving a second factor, enrolling the first one, and ending itself.
	MustProveSecondFactor bool

	// Session is the token of the session used, nil for other credentials: it tells how the person was recognised.
	// SecondFactor says that the person has a second factor, which a new proof has to be of.
	Session      *event.Token
	SecondFactor bool

	// Shown tells what the person has shown in the sign-in that the credential comes from. Nil where nobody signed in
	// for it: a personal access token, or a service user.
	Shown func() (Shown, error)

	// Client is the application that acts for the user, with the scopes it was given; empty where the user acts. Scopes
	// that are not nil bind a service user's own access token, too.
	Client string
	Scopes []string

	// Key is the thumbprint of the key that the access token is bound to; empty: it is bound to none. Then nothing may
	// be done with it before the caller has proven to have the key.
	Key string

	// Needs are the scopes that a token needs before a permission counts. It is used only if there are Scopes. No scope
	// gives a permission that is missing here.
	Needs map[Permission]APIScopes

	// Used is to be called once the request has been carried out: the credential lives on by being used. A request that
	// was refused is no use of it. Nil where nothing is to be done.
	Used func()
}

// Shown is what a person has shown in a sign-in.
type Shown struct {
	SecondFactor bool
	At           int64 // when the person proved last to be there, in microseconds; 0: nobody knows
}

// Origin is what the log records about who did it.
func (c *Caller) Origin() event.Origin { return event.Origin{Actor: c.UserID, RequestID: c.RequestID} }

// In checks that the caller's user holds the permission of an operation in an organization (or Installation), and hands
// out the proof. That the caller's scopes allow the operation has been checked before.
func (c *Caller) In(scope string, p Permission) (Permit, error) {
	switch {
	case c.Memberships.Hold(p, scope):
	case scope == Installation:
		return Permit{}, ErrDeniedInstallation
	default:
		return Permit{}, ErrDenied
	}
	return Permit{origin: c.Origin(), scope: scope, uses: p, holds: c.holdings()}, nil
}

// InBy is In for the first of several permissions that the caller's user holds.
func (c *Caller) InBy(scope string, permissions []Permission) (Permit, error) {
	held := slices.IndexFunc(permissions, func(p Permission) bool { return c.Memberships.Hold(p, scope) })
	return c.In(scope, permissions[max(held, 0)])
}

// Over tells what Permit.MayGiveAccess and Permit.MayTakeAway would say about a user with these roles, of the
// organization home. It is for showing what would be refused: it permits nothing.
func (c *Caller) Over(userID string, held Memberships, home string) (giveAccess, takeAway bool) {
	p := Permit{origin: c.Origin(), holds: c.holdings()}
	return p.MayGiveAccess(userID, held, home) == nil, p.MayTakeAway(held, home) == nil
}

func (c *Caller) holdings() holdings {
	return holdings{memberships: c.Memberships, bound: c.Scopes != nil, scopes: ScopesGiven(c.Scopes), needs: c.Needs}
}

// holdings is what a caller can do: what the user may, and of this what the scopes of the token allow, if it is bound
// by any.
type holdings struct {
	memberships Memberships
	bound       bool
	scopes      APIScopes
	needs       map[Permission]APIScopes
}

// hold tells whether all that a permission allows can be done.
func (h holdings) hold(p Permission, scope string) bool {
	if h.bound {
		if needs, known := h.needs[p]; !known || needs.Without(h.scopes) != 0 {
			return false
		}
	}
	return h.memberships.Hold(p, scope)
}

// have tells whether the token may be used for all of these scopes.
func (h holdings) have(scopes APIScopes) bool { return !h.bound || scopes.Without(h.scopes) == 0 }

// Permit proves that a permission was checked in a scope. The zero value proves nothing and reaches nothing.
type Permit struct {
	origin event.Origin
	scope  string
	uses   Permission // that was checked
	holds  holdings
	renew  func(context.Context) (Permit, error)
}

// Renewing gives a copy of the permit that check renews: it looks at the credential and at the permission again.
func (p Permit) Renewing(check func(context.Context) (Permit, error)) Permit {
	p.renew = check
	return p
}

// Renew checks again whether the caller may. An operation calls it after work that took long, before it changes
// anything: meanwhile the credential may have ended, or the roles may have been taken away. A permit that was not made
// for a request renews to itself.
func (p Permit) Renew(ctx context.Context) (Permit, error) {
	if p.renew == nil {
		return p, nil
	}
	renewed, err := p.renew(ctx)
	if err != nil {
		return Permit{}, err
	}
	return renewed.Renewing(p.renew), nil
}

// Reaches tells whether an object of this owner is inside the permit's scope.
func (p Permit) Reaches(owner string) bool { return p.scope != "" && p.scope == owner }

// Uses is the permission by which the caller may: where an operation is open to narrower ones, the code of the operation
// does less for those.
func (p Permit) Uses() Permission { return p.uses }

// Supports tells whether the caller helps people of an organization that is perhaps not the caller's: by UserSupport,
// and not by a permission for those people.
func (p Permit) Supports() bool { return p.uses == UserSupport }

// Holds tells whether the caller also holds another permission, in an organization or in Installation. An application
// holds it if its scopes allow all that can be done with it.
func (p Permit) Holds(permission Permission, scope string) bool {
	return p.holds.hold(permission, scope)
}

// HoldsFor is Holds for that part of a permission that an application needs no more than these scopes for.
func (p Permit) HoldsFor(scopes APIScopes, permission Permission, scope string) bool {
	return p.holds.have(scopes) && p.holds.memberships.Hold(permission, scope)
}

// ForInstallation tells whether the caller uses a permission in the permit's scope by a role in the installation. A
// caller without such a role acts for organizations only, and so does one who only supports people, or whose role is a
// custom one without the permission. An application needs scopes for all that can be done with the permission.
func (p Permit) ForInstallation(permission Permission) bool {
	speaks := func(r Role) bool {
		if r.IsCustom() {
			return Memberships{Installation: {r}}.Hold(permission, Installation)
		}
		return r != IAMSupport
	}
	return slices.ContainsFunc(p.holds.memberships[Installation], speaks) && p.holds.hold(permission, p.scope)
}

// CoversScopes refuses an application that was not given all of these scopes itself, where it could use them through
// others.
func (p Permit) CoversScopes(scopes APIScopes) error {
	if p.holds.have(scopes) {
		return nil
	}
	return ErrMoreScopes
}

// Org is the organization the permit was given for.
func (p Permit) Org() string { return p.scope }

// Origin is what the log records about who did it.
func (p Permit) Origin() event.Origin { return p.origin }

// Covers refuses when the target holds a permission that the caller does not hold, or not with the scopes of its token.
func (p Permit) Covers(target Memberships) error {
	if target.heldBy(p.holds.hold) {
		return nil
	}
	return ErrTargetHoldsMore
}

// MayGiveAccess refuses who could become more by having access to the account of a user with these roles, of the
// organization home. Who has that access gives it to nobody.
func (p Permit) MayGiveAccess(userID string, held Memberships, home string) error {
	if p.Supports() {
		return ErrDenied
	}
	if p.origin.Actor == userID {
		return p.Covers(held)
	}
	if p.Covers(held.Worth(home)) == nil {
		return nil
	}
	if held.Elsewhere(home) && p.Covers(held.At(home)) == nil {
		return ErrHasRolesElsewhere
	}
	return ErrTargetHoldsMore
}

// MayTakeAway refuses to take something away from who holds more in the own organization, home, or in the installation.
// What somebody holds in other organizations is no protection from the own one. Who supports people needs to hold
// nothing that they hold, but reaches nobody with a role in the installation.
func (p Permit) MayTakeAway(held Memberships, home string) error {
	if !p.Supports() {
		return p.Covers(held.At(home))
	}
	if len(held[Installation]) > 0 {
		return ErrNotForSupport
	}
	return nil
}

// Roles are those of the caller, as they are recorded of somebody who answers for something. Where scopes bind the
// token, a role is among them only if the scopes allow all that can be done with it. They must not be altered.
func (p Permit) Roles() Memberships {
	held := p.holds.memberships
	if !p.holds.bound && !held.someEmpty() {
		return held
	}
	out := Memberships{}
	for scope, roles := range held {
		if p.holds.bound {
			roles = slices.DeleteFunc(slices.Clone(roles), func(role Role) bool {
				return !role.heldBy(p.holds.hold, scope)
			})
		}
		if len(roles) > 0 {
			out[scope] = roles
		}
	}
	return out
}
