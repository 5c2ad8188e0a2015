package access

import "github.com/signet-idm/signet/internal/event"

// Caller is who sends a request, as the credential proved.
type Caller struct {
	UserID      string
	OrgID       string // the caller's own organization
	Memberships Memberships
	TokenID     string // the credential used
	TokenKind   string
	RequestID   string

	// MustChangePassword restricts a session to changing the password and ending itself.
	MustChangePassword bool
}

// Origin is what the log records about who did it.
func (c *Caller) Origin() event.Origin { return event.Origin{Actor: c.UserID, RequestID: c.RequestID} }

// In checks that the caller holds a permission in an organization (or Installation), and hands out the proof.
func (c *Caller) In(scope string, p Permission) (Permit, error) {
	if !c.Memberships.Hold(p, scope) {
		return Permit{}, ErrDenied
	}
	return Permit{origin: c.Origin(), scope: scope, holds: c.Memberships}, nil
}

// Permit proves that a permission was checked in a scope. The zero value proves nothing and reaches nothing.
type Permit struct {
	origin event.Origin
	scope  string
	holds  Memberships
}

// SystemPermit is for what the program does by itself: the first start, an operator at the command line.
func SystemPermit(scope string) Permit {
	return Permit{origin: event.Origin{Actor: event.System}, scope: scope, holds: Memberships{Installation: {IAMOwner}}}
}

// Reaches tells whether an object of this owner is inside the permit's scope.
func (p Permit) Reaches(owner string) bool { return p.scope != "" && p.scope == owner }

// Org is the organization the permit was given for.
func (p Permit) Org() string { return p.scope }

// Origin is what the log records about who did it.
func (p Permit) Origin() event.Origin { return p.origin }

// Covers refuses when the target holds a permission that the caller does not.
func (p Permit) Covers(target Memberships) error {
	if p.holds.Cover(target) {
		return nil
	}
	return ErrTargetHoldsMore
}
