package member

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	// OfferLife is how long an offer can be accepted.
	OfferLife = 30 * 24 * time.Hour
	// MaxOffers is how many offers a person is shown, the oldest first. Others wait until there is room, or expire.
	MaxOffers = 20
)

// OfferState is what became of an offer.
type OfferState string

// OPEN -> ACCEPTED, WITHDRAWN, REPLACED or REMOVED. Whether it has expired is judged when somebody looks. That it was
// declined is not a state of it: its organization is not told.
const (
	OfferOpen      OfferState = "open"
	OfferAccepted  OfferState = "accepted"
	OfferWithdrawn OfferState = "withdrawn"
	OfferReplaced  OfferState = "replaced"
	OfferExpired   OfferState = "expired" // only as StateAt tells
	OfferRemoved   OfferState = "removed" // with its organization
)

// Offer is the state of an offer: roles in an organization, or to be a guest there, for somebody who belongs to another
// one. It is an object of the organization that makes it, and nothing of it counts before the person has accepted it.
type Offer struct {
	State   OfferState    `json:"state"`
	UserID  string        `json:"userId,omitempty"`
	Roles   []access.Role `json:"roles,omitempty"` // sorted; none: a guest
	Giver   string        `json:"giver,omitempty"` // who answers for it
	Expires int64         `json:"expires,omitempty"`
}

// OfferKind is the kind of offers.
var OfferKind = event.Define(event.Schema[Offer]{
	Name: "offer", Table: "offers", Prefix: "ofr", Shape: 1,
	Facts: []event.Fact[Offer]{OfferMade{}, OfferWasAccepted{}, OfferWasWithdrawn{}, OfferWasReplaced{},
		OfferWasRemoved{}},
	Columns: []string{event.State},
	Lookup:  func(o *event.Object[Offer]) []string { return []string{string(o.Data.State)} },
	Claims: func(o *event.Object[Offer]) []event.Claim {
		if o.Data.State != OfferOpen {
			return nil
		}
		return []event.Claim{OfferClaim(o.Org, o.Data.UserID)}
	},
	Groups: func(o *event.Object[Offer]) []string {
		if o.Data.State != OfferOpen {
			return nil
		}
		return []string{OffersFor(o.Data.UserID)}
	},
	Copy: func(o *Offer) Offer { return *o }, // roles are replaced, never altered
})

// OfferClaim is the claim of the one open offer of an organization to a user.
func OfferClaim(org, userID string) event.Claim {
	return event.Claim{Space: "offer/" + org, Key: userID}
}

// OffersFor is the group of the open offers to a user.
func OffersFor(userID string) string { return "offers/" + userID }

// offerVersion is the version of facts from which on nodes know offers.
const offerVersion = 5

// OfferMade records a new offer.
type OfferMade struct {
	UserID  string        `json:"userId"`
	Roles   []access.Role `json:"roles,omitempty"`
	Giver   string        `json:"giver"`
	Expires int64         `json:"expires"`
}

// EventType implements event.Fact.
func (OfferMade) EventType() event.Type { return "offer.made.v1" }

// Since implements event.Gated.
func (e OfferMade) Since() int { return max(offerVersion, access.RolesSince(e.Roles)) }

// Apply implements event.Fact.
func (e OfferMade) Apply(o *Offer) {
	*o = Offer{State: OfferOpen, UserID: e.UserID, Roles: e.Roles, Giver: e.Giver, Expires: e.Expires}
}

// OfferWasAccepted records that the person has accepted it.
type OfferWasAccepted struct{}

// EventType implements event.Fact.
func (OfferWasAccepted) EventType() event.Type { return "offer.accepted.v1" }

// Apply implements event.Fact.
func (OfferWasAccepted) Apply(o *Offer) { o.State = OfferAccepted }

// OfferWasWithdrawn records that its organization has taken it back.
type OfferWasWithdrawn struct{}

// EventType implements event.Fact.
func (OfferWasWithdrawn) EventType() event.Type { return "offer.withdrawn.v1" }

// Apply implements event.Fact.
func (OfferWasWithdrawn) Apply(o *Offer) { o.State = OfferWithdrawn }

// OfferWasReplaced records that its organization has decided anew about the person's roles.
type OfferWasReplaced struct{}

// EventType implements event.Fact.
func (OfferWasReplaced) EventType() event.Type { return "offer.replaced.v1" }

// Apply implements event.Fact.
func (OfferWasReplaced) Apply(o *Offer) { o.State = OfferReplaced }

// OfferWasRemoved records that it went with its organization.
type OfferWasRemoved struct{}

// EventType implements event.Fact.
func (OfferWasRemoved) EventType() event.Type { return "offer.removed.v1" }

// Apply implements event.Fact.
func (OfferWasRemoved) Apply(o *Offer) { *o = Offer{State: OfferRemoved} }

// StateAt is the state at a moment, as its organization is told: one that was declined looks like an open one until it
// expires.
func (o *Offer) StateAt(now time.Time) OfferState {
	if o.State == OfferOpen && event.Micros(now) >= o.Expires {
		return OfferExpired
	}
	return o.State
}

// Reasons about offers.
const (
	OfferNotFound errs.Reason = "OFFER_NOT_FOUND"
	OfferNotOpen  errs.Reason = "OFFER_NOT_OPEN"
	GiverMayNot   errs.Reason = "OFFER_GIVER_MAY_NOT"
	RolesChanged  errs.Reason = "OFFERED_ROLES_CHANGED"
)

// Errors about offers.
var (
	ErrOfferNotFound = errs.New(errs.NotFound, OfferNotFound,
		"there is no offer with this identifier, or it is not for you to see")
	ErrOfferNotOpen = errs.New(errs.FailedPrecondition, OfferNotOpen,
		"this offer is no longer open: it was accepted, declined or withdrawn, has expired, or a newer one has replaced it. Ask the organization for a new one")
	ErrGiverMayNot = errs.New(errs.FailedPrecondition, GiverMayNot,
		"whoever made this offer may no longer give these roles: ask the organization for a new one")
	ErrRolesChanged = errs.New(errs.FailedPrecondition, RolesChanged,
		"these are not the roles that you have and were given there: read them again, and accept exactly those")
)

// Unasked gives the default organization to an owner of the installation: nobody asks its people then. Others get none.
func Unasked(ctx context.Context, r event.Reader, permit access.Permit) (string, error) {
	if !slices.Contains(permit.Roles()[access.Installation], access.IAMOwner) {
		return "", nil
	}
	i, err := installation.Read(ctx, r)
	if err != nil || i == nil {
		return "", err
	}
	return i.Data.DefaultOrg, nil
}

// Give sees to it, before a group gives roles in an organization to somebody, that those wait which the person has not
// accepted. unasked is what Unasked gives.
func Give(u *event.Object[user.User], orgID string, roles []access.Role, unasked string) error {
	if unasked == "" || u.Org != unasked || u.Org == orgID {
		return user.Ask(u, orgID, roles)
	}
	return acceptUnasked(u, orgID, roles)
}

// acceptUnasked records that roles count for somebody who is not asked, unless they do already.
func acceptUnasked(u *event.Object[user.User], orgID string, roles []access.Role) error {
	if exceeds(&u.Data, orgID, roles) || !user.IsGuest(u, orgID) {
		return user.Accept(u, orgID, roles, user.RolesAccepted{Unasked: true})
	}
	return nil
}

// exceeds tells whether some of the roles are not within what counts for the user in another organization.
func exceeds(u *user.User, orgID string, roles []access.Role) bool {
	within := u.Within(orgID)
	return slices.ContainsFunc(roles, func(r access.Role) bool { return !within.Covers(r) })
}

// endOffer ends the open offer, if there is one: its organization has decided anew.
func (c roleChange) endOffer(tx *event.Tx) error {
	open, err := tx.Holder(OfferClaim(c.permit.Org(), c.userID))
	if err != nil || open == "" {
		return err
	}
	o, err := OfferKind.FollowToWrite(tx, open)
	if err != nil {
		return err
	}
	if c.removes {
		return o.Append(OfferWasWithdrawn{})
	}
	return o.Append(OfferWasReplaced{})
}

// atOnce are those of the new roles that are given without asking. A custom role that the user has stays: what of it
// was not accepted waits.
func (c roleChange) atOnce(u *event.Object[user.User]) []access.Role {
	if !c.isAsked(u) {
		return c.roles
	}
	within, direct := u.Data.Within(c.permit.Org()), u.Data.Direct()[c.permit.Org()]
	return slices.DeleteFunc(slices.Clone(c.roles),
		func(r access.Role) bool { return !within.Covers(r) && !slices.Contains(direct, r) })
}

// ask offers the roles to somebody of another organization. What takes away, or stays within what the person has
// accepted, is done at once. It gives the offer, nil where nothing is left to ask.
func (c roleChange) ask(tx *event.Tx, u *event.Object[user.User]) (*event.Object[Offer], error) {
	scope := c.permit.Org()
	direct, isMember := u.Data.Direct()[scope]
	now := c.atOnce(u)
	if isMember && !slices.Equal(now, direct) {
		if err := role.GiveTo(tx, c.store, u, scope, now); err != nil {
			return nil, err
		}
		if err := u.Append(user.MembershipSet{Scope: scope, Roles: now, Stays: len(now) == 0}); err != nil {
			return nil, err
		}
	}
	if isMember && len(now) == len(c.roles) {
		return nil, nil
	}
	return OfferKind.Create(tx, c.offer, scope, OfferMade{UserID: u.ID, Roles: c.roles, Giver: c.permit.Origin().Actor,
		Expires: tx.Now() + OfferLife.Microseconds()})
}

// Shown is an offer as the person sees it.
type Shown struct {
	Offer *event.Object[Offer]
	Org   *event.Object[org.Org]
}

// OffersTo lists the offers that a user can accept or decline at a moment, the oldest first. Those of organizations
// that are not active wait.
func OffersTo(ctx context.Context, s event.Store, userID string, now time.Time) (all []Shown, err error) {
	declined, err := readDeclined(s.Row(ctx, user.DeclinedRow(userID)))
	if err != nil {
		return nil, err
	}
	for after := (&event.Cursor{}); after != nil; {
		var page []*event.Object[Offer]
		if page, after, err = OfferKind.List(ctx, s,
			event.Query{Group: OffersFor(userID), After: *after, Limit: 100}); err != nil {
			return nil, err
		}
		for _, o := range page {
			if o.Data.StateAt(now) != OfferOpen || declined[o.ID] != 0 {
				continue
			}
			by, err := org.Kind.Read(ctx, s, o.Org)
			if err != nil {
				return nil, err
			}
			if by == nil || by.Data.State != org.Active {
				continue
			}
			if all = append(all, Shown{o, by}); len(all) == MaxOffers {
				return all, nil
			}
		}
	}
	return all, nil
}

// OffersToService is OffersTo for a service user whose keys the caller may make. Errors: user.ErrNotFound;
// user.ErrNotService; access.ErrTargetHoldsMore.
func OffersToService(ctx context.Context, s event.Store, permit access.Permit, userID string,
	now time.Time) ([]Shown, error) {
	if _, err := service(permit, userID).Read(ctx, s); err != nil {
		return nil, err
	}
	return OffersTo(ctx, s, userID, now)
}

// service is a service user whose keys the caller may make, and for whom the caller answers.
func service(permit access.Permit, userID string) event.Target[user.User] {
	return user.Within(permit, userID).And(func(u *user.User) error {
		return permit.MayGiveAccess(userID, u.Memberships, permit.Org())
	}).And(user.MustBeService)
}

// readDeclined reads the offers that a user has declined, and until when they are remembered.
func readDeclined(row *event.Row, err error) (map[string]int64, error) {
	declined := map[string]int64{}
	if err != nil || row == nil {
		return declined, err
	}
	return declined, json.Unmarshal(row.Value, &declined)
}

// AcceptOffer accepts an offer that was made to the caller. Errors: ErrOfferNotFound; ErrOfferNotOpen; ErrGiverMayNot;
// user.ErrPasswordGiven; Aborted when match does not hold, which is about the user.
func AcceptOffer(ctx context.Context, s event.Store, caller *access.Caller, id string,
	match event.IfMatch) (event.Details, error) {
	return accept(ctx, s, user.Mine(caller), id, match)
}

// AcceptOfferFor accepts an offer that was made to a service user. Errors: as AcceptOffer; user.ErrNotFound;
// user.ErrNotService; access.ErrTargetHoldsMore.
func AcceptOfferFor(ctx context.Context, s event.Store, permit access.Permit, userID, id string,
	match event.IfMatch) (event.Details, error) {
	return accept(ctx, s, service(permit, userID), id, match)
}

func accept(ctx context.Context, s event.Store, target event.Target[user.User], id string,
	match event.IfMatch) (event.Details, error) {
	needs := event.Command{Write: []event.Ref{OfferKind.Ref(id)}, Rows: []event.RowKey{user.DeclinedRow(target.ID)}}
	return target.Needs(needs).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[user.User]) error {
		o, err := open(tx, target.ID, id)
		if err != nil {
			return err
		}
		if u.Data.State != user.Active {
			return access.ErrUnauthenticated
		}
		given, err := mayStillGive(tx, o)
		if err != nil {
			return err
		}
		if err := u.Data.MayAccept(o.Data.Roles); err != nil {
			return err
		}
		if err := role.GiveTo(tx, s, u, o.Org, given); err != nil {
			return err
		}
		// with exactly what was shown: what custom roles have got since waits
		if err := user.Accept(u, o.Org, o.Data.Roles, user.RolesAccepted{Offer: o.ID}); err != nil {
			return err
		}
		// what was taken away has gone when the offer was made
		roles := slices.Concat(u.Data.Direct()[o.Org], given)
		slices.Sort(roles)
		roles = slices.Compact(roles)
		if err := u.Append(user.MembershipSet{Scope: o.Org, Roles: roles, Stays: len(roles) == 0}); err != nil {
			return err
		}
		return o.Append(OfferWasAccepted{})
	})
}

// open gives an offer to a user that can be accepted or declined, inside a command that declared it and the row of those
// declined. Errors: ErrOfferNotFound; ErrOfferNotOpen.
func open(tx *event.Tx, userID, id string) (*event.Object[Offer], error) {
	o, err := OfferKind.Get(tx, id)
	if err != nil {
		return nil, err
	}
	if o == nil || o.Data.UserID != userID || o.Data.State == OfferRemoved {
		return nil, ErrOfferNotFound
	}
	declined, err := readDeclined(tx.Row(user.DeclinedRow(userID)))
	if err != nil {
		return nil, err
	}
	if err := tx.Require(event.Command{Read: []event.Ref{org.Kind.Ref(o.Org),
		user.Kind.Ref(o.Data.Giver)}}); err != nil {
		return nil, err
	}
	by, err := org.Kind.Get(tx, o.Org)
	if err != nil {
		return nil, err
	}
	if o.Data.State != OfferOpen || tx.Now() >= o.Data.Expires || declined[id] != 0 || by == nil ||
		by.Data.State != org.Active {
		return nil, ErrOfferNotOpen
	}
	return o, nil
}

// mayStillGive judges who made an offer as somebody who makes it at this moment, and gives its roles as they are now.
// Errors: ErrGiverMayNot, also where a custom role is there no longer.
func mayStillGive(tx *event.Tx, o *event.Object[Offer]) ([]access.Role, error) {
	giver, err := user.Kind.Follow(tx, o.Data.Giver)
	if err != nil {
		return nil, err
	}
	if giver == nil {
		return nil, ErrGiverMayNot
	}
	home, err := org.Kind.Follow(tx, giver.Org)
	if err != nil {
		return nil, err
	}
	roles, all, err := role.Current(o.Org, o.Data.Roles,
		func(id string) (*event.Object[role.Role], error) { return role.Kind.Follow(tx, id) })
	if err != nil {
		return nil, err
	}
	if giver.Data.State != user.Active || home == nil || home.Data.State != org.Active || !all ||
		!giver.Data.Memberships.Hold(access.MemberWrite, o.Org) ||
		!giver.Data.Memberships.Cover(access.Memberships{o.Org: roles}) {
		return nil, ErrGiverMayNot
	}
	return roles, nil
}

// DeclineOffer declines an offer that was made to the caller. The organization is not told. Errors: ErrOfferNotFound;
// ErrOfferNotOpen.
func DeclineOffer(ctx context.Context, s event.Store, caller *access.Caller, id string) error {
	return decline(ctx, s, user.Mine(caller), id)
}

// DeclineOfferFor declines an offer that was made to a service user. Errors: as DeclineOffer; user.ErrNotFound;
// user.ErrNotService; access.ErrTargetHoldsMore.
func DeclineOfferFor(ctx context.Context, s event.Store, permit access.Permit, userID, id string) error {
	return decline(ctx, s, service(permit, userID), id)
}

func decline(ctx context.Context, s event.Store, target event.Target[user.User], id string) error {
	row := user.DeclinedRow(target.ID)
	return event.Do(ctx, s, event.Command{
		Origin: target.Origin,
		Read:   []event.Ref{user.Kind.Ref(target.ID), OfferKind.Ref(id)},
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			if _, err := target.Get(tx); err != nil {
				return err
			}
			o, err := open(tx, target.ID, id)
			if err != nil {
				return err
			}
			declined, err := readDeclined(tx.Row(row))
			if err != nil {
				return err
			}
			for old, until := range declined {
				if tx.Now() >= until {
					delete(declined, old)
				}
			}
			declined[id] = o.Data.Expires
			value, err := json.Marshal(declined)
			if err == nil {
				tx.PutRow(event.Row{RowKey: row, Value: value})
			}
			return err
		},
	})
}

// AcceptRoles accepts the roles that the caller was given in another organization: those that a group gives and that
// wait, and those from before anybody was asked. They must be exactly those that the caller has or was given there, and
// with a custom role among them so must their permissions: it may have got more since it was shown.
// Errors: errNotThere; ErrOwnOrganization; ErrRolesChanged; user.ErrPasswordGiven; Aborted when match does not hold.
func AcceptRoles(ctx context.Context, s event.Store, caller *access.Caller, orgID string, match event.IfMatch,
	names, permissions []string) (event.Details, error) {
	return elsewhere(user.Mine(caller), orgID).Change(ctx, s, match,
		func(_ *event.Tx, u *event.Object[user.User]) error {
			roles := slices.Concat(u.Data.Memberships[orgID], u.Data.Waiting(orgID))
			if !sameRoles(orgID, roles, names, permissions) {
				return ErrRolesChanged
			}
			if err := u.Data.MayAccept(roles); err != nil {
				return err
			}
			if accepted, asked := u.Data.Accepted[orgID]; asked && !accepted.Assumed &&
				!exceeds(&u.Data, orgID, roles) {
				return nil
			}
			return user.Accept(u, orgID, roles, user.RolesAccepted{})
		})
}

// sameRoles tells whether these are the names of roles and, if some are custom or any are given, the permissions that
// the roles bring.
func sameRoles(orgID string, roles []access.Role, names, permissions []string) bool {
	if !slices.Equal(slices.Compact(slices.Sorted(slices.Values(names))), access.Names(roles)) {
		return false
	}
	if len(permissions) == 0 && !slices.ContainsFunc(roles, access.Role.IsCustom) {
		return true
	}
	var shown []access.Permission
	for _, p := range permissions {
		shown = append(shown, access.Permission(p))
	}
	slices.Sort(shown)
	return slices.Equal(slices.Compact(shown), access.PermissionsOf(orgID, roles))
}

// OfferWithin is an offer that the permit reaches. Errors: ErrOfferNotFound.
func OfferWithin(permit access.Permit, id string) event.Target[Offer] {
	return event.Target[Offer]{
		Kind:   OfferKind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(o *event.Object[Offer]) error {
			if o == nil || o.Data.State == OfferRemoved || !permit.Reaches(o.Org) {
				return ErrOfferNotFound
			}
			return nil
		},
	}
}

// Offers reads a page of the offers of the permit's organization that are in a state at a moment, the oldest first. An
// empty state: those in any.
func Offers(ctx context.Context, r event.Reader, permit access.Permit, state OfferState, now time.Time,
	after event.Cursor, limit int) ([]*event.Object[Offer], *event.Cursor, error) {
	if !permit.Reaches(permit.Org()) {
		return nil, nil, org.ErrNotFound
	}
	stored := state
	if state == OfferExpired {
		stored = OfferOpen
	}
	found, next, err := OfferKind.List(ctx, r,
		event.Query{Org: permit.Org(), Where: event.Where(event.State, string(stored)), After: after, Limit: limit})
	if state != "" {
		found = slices.DeleteFunc(found, func(o *event.Object[Offer]) bool { return o.Data.StateAt(now) != state })
	}
	return found, next, err
}

// Withdraw takes an offer back. Errors: ErrOfferNotFound; ErrOfferNotOpen; Aborted when match does not hold.
func Withdraw(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return OfferWithin(permit, id).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[Offer]) error {
		if o.Data.State != OfferOpen || tx.Now() >= o.Data.Expires {
			return ErrOfferNotOpen
		}
		return o.Append(OfferWasWithdrawn{})
	})
}

// EndOfferWithOrganization ends an offer whose organization is gone. The command declared it for writing.
func EndOfferWithOrganization(_ *event.Tx, o *event.Object[Offer]) error {
	if o.Data.State == OfferRemoved {
		return nil
	}
	return o.Append(OfferWasRemoved{})
}
