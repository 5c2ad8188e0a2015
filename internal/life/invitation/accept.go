package invitation

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Link is an invitation as one of its links leads to it, with all that decides about it.
type Link struct {
	Invitation *event.Object[Invitation]
	Org        *event.Object[org.Org]
	Inviter    *event.Object[user.User]
	App        *event.Object[app.App] // that the person is invited to use; nil: none, or none that is there for them

	Flow   string // what the ceremony of a passkey is bound to
	of     *linked
	home   *event.Object[org.Org] // of the inviter
	groups []*event.Object[group.Group]
	roles  []access.Role // of the invitation, as they are now
	lacks  bool          // a custom role of the invitation is there no longer
	store  event.Store
}

// Email is the address that is invited.
func (l *Link) Email() string { return l.Invitation.Data.Email }

// Verification is on whose word the address counts for who accepts: the mail's, which only its owner can have read. A
// link that was shown is on nobody's.
func (l *Link) Verification() user.Verification {
	if l.Invitation.Data.Shown {
		return user.Verification{}
	}
	return user.Verification{By: user.VerifiedByOwner}
}

// Open reads what a link leads to. It changes nothing: programs that look at the links in mails do no harm. Errors:
// ErrLinkUnknown; with the link, ErrLinkReplaced; ErrLinkUsed; ErrLinkWithdrawn; ErrLinkExpired; ErrInviterMayNot;
// ErrOrgAway.
func (s Invitations) Open(ctx context.Context, token string) (*Link, error) {
	kind, hash, ok := secret.ParseToken(token)
	if !ok || kind != secret.Invitation {
		return nil, ErrLinkUnknown
	}
	id := hex.EncodeToString(hash)
	of, err := links.Read(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	if of == nil {
		return nil, ErrLinkUnknown
	}
	l, err := source{ctx: ctx, store: s.Store}.link(of)
	if err != nil {
		return nil, err
	}
	l.store = s.Store
	l.Flow = links.Key(id).Key
	if id := l.Invitation.Data.App; id != "" {
		a, err := app.Kind.Read(ctx, s.Store, id)
		if err != nil {
			return nil, err
		}
		granted, err := s.granted(ctx, a, l.Invitation.Org)
		if err != nil {
			return nil, err
		}
		if app.Serves(a, l.Invitation.Org, granted != "") {
			l.App = a
		}
	}
	return l, l.stands(0) // until the sweep, only the command refuses an invitation that has expired
}

// source is where a link finds what decides about it: the store for a page, the command for who accepts.
type source struct {
	ctx   context.Context
	store event.Reader
	tx    *event.Tx // nil: the store
}

func find[S any](from source, k *event.Objects[S], id string) (*event.Object[S], error) {
	if from.tx != nil {
		return k.Follow(from.tx, id)
	}
	return k.Read(from.ctx, from.store, id)
}

// link finds what a link leads to. Errors: ErrLinkUnknown.
func (from source) link(of *linked) (*Link, error) {
	i, err := find(from, Kind, of.Invitation)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return nil, ErrLinkUnknown
	}
	l := &Link{Invitation: i, of: of}
	if l.Org, err = find(from, org.Kind, i.Org); err != nil {
		return nil, err
	}
	if l.Inviter, err = find(from, user.Kind, i.Data.Inviter); err != nil {
		return nil, err
	}
	if l.Inviter != nil {
		if l.home, err = find(from, org.Kind, l.Inviter.Org); err != nil {
			return nil, err
		}
	}
	for _, id := range i.Data.Groups {
		g, err := find(from, group.Kind, id)
		if err != nil {
			return nil, err
		}
		if g != nil {
			l.groups = append(l.groups, g)
		}
	}
	roles, all, err := role.Current(i.Org, i.Data.Roles,
		func(id string) (*event.Object[role.Role], error) { return find(from, role.Kind, id) })
	l.roles, l.lacks = roles, !all
	return l, err
}

// stands refuses a link that leads nowhere at a moment. Errors: those of Open.
func (l *Link) stands(now int64) error {
	i := l.Invitation
	switch {
	case i.Data.State == Removed:
		return ErrLinkUnknown
	case i.Data.State == Accepted:
		return ErrLinkUsed
	case i.Data.State == Withdrawn:
		return ErrLinkWithdrawn
	case i.Data.State == Expired || now >= i.Data.Expires:
		return ErrLinkExpired
	case i.Data.Link != l.of.Link:
		return ErrLinkReplaced
	case l.Org == nil || l.Org.Data.State != org.Active:
		return ErrOrgAway
	}
	return l.inviterMay()
}

// inviterMay judges the inviter anew: as somebody who makes the invitation at this moment. That of a first owner is
// made by who may set up organizations. Errors: ErrInviterMayNot.
func (l *Link) inviterMay() error {
	i, u := l.Invitation, l.Inviter
	if u == nil || u.Data.State != user.Active || l.home == nil || l.home.Data.State != org.Active {
		return ErrInviterMayNot
	}
	if i.Data.Founds && u.Data.Memberships.Hold(access.OrgSetup, access.Installation) {
		return nil
	}
	if !u.Data.Memberships.Hold(access.InvitationWrite, i.Org) {
		return ErrInviterMayNot
	}
	g := giver{
		holds:  func(p access.Permission) bool { return u.Data.Memberships.Hold(p, i.Org) },
		covers: func(m access.Memberships) bool { return u.Data.Memberships.Cover(m) },
	}
	if l.lacks || g.mayGive(i.Org, l.roles) != nil || len(i.Data.AppRoles) > 0 && !g.holds(access.AppRoleWrite) {
		return ErrInviterMayNot
	}
	for _, in := range l.groups {
		if in.Data.State == group.Active && in.Org == i.Org && g.mayAddTo(in) != nil {
			return ErrInviterMayNot
		}
	}
	return nil
}

// isFor judges whether somebody may accept with their account: in the organization itself with the verified address,
// elsewhere if the address is verified on a word that counts in all organizations, and with a password of their own if
// there are roles. prover is the organization that has proven the domain of the address. Errors: ErrOtherAddress;
// user.ErrPasswordGiven.
func (l *Link) isFor(u *event.Object[user.User], defaultOrg, prover string) error {
	i := l.Invitation
	if u.Data.Human == nil || i.Data.EmailKey == "" {
		return ErrOtherAddress
	}
	email := u.Data.Human.Email
	if !email.Verified || email.Key != i.Data.EmailKey || u.Org != i.Org && !user.Trusted(u, defaultOrg, prover) {
		return ErrOtherAddress
	}
	if u.Org == i.Org {
		return nil
	}
	return u.Data.MayAccept(i.Data.Promised())
}

// Start is where the application has somebody begin to sign in who has accepted, by their login name; empty: nowhere.
func (l *Link) Start(issuer, loginName string) string {
	if l.App == nil {
		return ""
	}
	return l.App.Data.Start(issuer, loginName, l.Invitation.Data.Target)
}

// Person is who becomes a user by the link: in the organization that invites, under the address that it has invited.
func (l *Link) Person(p newcomer.Person) newcomer.Person {
	p.OrgID, p.Email, p.Verification = l.Invitation.Org, l.Email(), l.Verification()
	p.Language = cmp.Or(p.Language, l.Invitation.Data.Language)
	return p
}

// Registration is Person for somebody who comes through a provider. Whatever it says about an address, the person gets
// the invited one: it is this one that the organization has asked for, and the mail has proven it.
func (l *Link) Registration(r federated.Registration) federated.Registration {
	r.OrgID, r.Email, r.EmailFromProvider, r.Verification = l.Invitation.Org, l.Email(), false, l.Verification()
	r.Language = cmp.Or(r.Language, l.Invitation.Data.Language)
	return r
}

// needs is what accepting reads and writes, besides the person, as far as the link shows it.
func (l *Link) needs() event.Command {
	c := event.Command{
		Write: []event.Ref{Kind.Ref(l.Invitation.ID)},
		Read:  []event.Ref{org.Kind.Ref(l.Invitation.Org), user.Kind.Ref(l.Invitation.Data.Inviter)},
		Rows:  []event.RowKey{countOf(l.Invitation.Org).Row},
	}
	if l.Inviter != nil {
		c.Read = append(c.Read, org.Kind.Ref(l.Inviter.Org))
	}
	for _, r := range l.Invitation.Data.AppRoles {
		c = project.PromiseNeeds(r.Org, r.Project).With(c)
	}
	for _, r := range l.roles {
		if r.IsCustom() {
			c.Write = append(c.Write, role.Kind.Ref(r.Name()))
		}
	}
	for _, g := range l.groups {
		if g.Data.Counts() { // it counts its members
			c.Write = append(c.Write, group.Kind.Ref(g.ID))
		} else {
			c.Read = append(c.Read, group.Kind.Ref(g.ID))
		}
	}
	return c
}

// within gives the link as it stands inside a command that declared needs and that is run by event.Do. Errors: those of
// Open.
func (l *Link) within(tx *event.Tx) (*Link, error) {
	now, err := source{tx: tx}.link(l.of)
	if err != nil {
		return nil, err
	}
	now.store = l.store
	return now, now.stands(tx.Now())
}

// join has a new user accept, inside a command that declared needs and the user for writing, and that is run by
// event.Do. Errors: those of Open; ErrGroupFull.
func (l *Link) join(tx *event.Tx, u *event.Object[user.User]) error {
	now, err := l.within(tx)
	if err != nil {
		return err
	}
	return now.accept(tx, u)
}

// accept uses the invitation up for a user who may accept it, inside the command that found it. Errors: ErrGroupFull;
// project.ErrTooManyPlaces.
func (l *Link) accept(tx *event.Tx, u *event.Object[user.User]) error {
	i := l.Invitation
	if u.Org != i.Org { // with exactly what was shown: more waits
		if err := user.Accept(u, i.Org, i.Data.Promised(), user.RolesAccepted{}); err != nil {
			return err
		}
	}
	if err := l.addRoles(tx, u); err != nil {
		return err
	}
	for _, g := range l.groups {
		if err := l.enter(tx, u, g, i.Org); err != nil {
			return err
		}
	}
	for _, r := range i.Data.AppRoles {
		if err := project.Keep(tx, u, r); err != nil {
			return err
		}
	}
	if err := settled(tx, i); err != nil {
		return err
	}
	return i.Append(WasAccepted{UserID: u.ID})
}

// Promised are the roles that somebody who accepts the invitation agrees to, sorted: its own, and those that its groups
// gave when it was sent.
func (i *Invitation) Promised() []access.Role {
	all := slices.Concat(i.Roles, i.Shows)
	slices.Sort(all)
	return slices.Compact(all)
}

// addRoles gives the roles of an invitation to somebody, besides those there are. Who belongs elsewhere and gets none
// is a guest.
func (l *Link) addRoles(tx *event.Tx, u *event.Object[user.User]) error {
	i := l.Invitation
	had, isIn := u.Data.Direct()[i.Org]
	if len(l.roles) == 0 && (u.Org == i.Org || isIn) {
		return nil
	}
	if err := role.GiveTo(tx, l.store, u, i.Org, l.roles); err != nil {
		return err
	}
	roles := slices.Concat(had, l.roles)
	slices.Sort(roles)
	roles = slices.Compact(roles)
	return u.Append(user.MembershipSet{Scope: i.Org, Roles: roles, Stays: len(roles) == 0})
}

// enter puts somebody into a group, unless it is gone. Errors: ErrGroupFull.
func (l *Link) enter(tx *event.Tx, u *event.Object[user.User], g *event.Object[group.Group], orgID string) error {
	if g.Data.State != group.Active || g.Org != orgID || u.Data.In(orgID, g.ID) {
		return nil
	}
	if len(u.Data.Groups[orgID]) >= user.MaxGroups || g.Data.Counts() && g.Data.Members >= group.MaxRoleMembers {
		return ErrGroupFull
	}
	if g.Data.Counts() {
		g, err := group.Kind.FollowToWrite(tx, g.ID)
		if err != nil {
			return err
		}
		if err := g.Append(group.MemberAdded{UserID: u.ID}); err != nil {
			return err
		}
	}
	if err := role.GiveTo(tx, l.store, u, orgID, g.Data.Roles); err != nil {
		return err
	}
	return u.Append(user.GroupJoined{Org: orgID, Group: g.ID, Roles: g.Data.Roles})
}

// AcceptNew makes a user of somebody who has a link. Errors: those of Open and of newcomer.Newcomers.Create;
// ErrGroupFull.
func (l *Link) AcceptNew(ctx context.Context, newcomers newcomer.Newcomers,
	p newcomer.Person) (session.SignedIn, error) {
	p = l.Person(p)
	if p.Passkey != nil {
		p.Passkey.Flow = l.Flow
	}
	return newcomers.Create(ctx, p, l.needs(), l.join)
}

// AcceptThrough makes a user of somebody who has a link and comes through a provider. Errors: those of Open and of
// federated.Sessions.RegisterInvited; ErrGroupFull.
func (l *Link) AcceptThrough(ctx context.Context, sessions federated.Sessions, who idp.Identity,
	r federated.Registration) (session.SignedIn, error) {
	return sessions.RegisterInvited(ctx, who, l.Registration(r), l.needs(), l.join)
}

// MayAccept tells whether somebody with an account can accept an invitation with it. Errors: ErrOtherAddress;
// user.ErrPasswordGiven.
func (s Invitations) MayAccept(ctx context.Context, l *Link, u *event.Object[user.User]) error {
	prover, err := s.Store.Holder(ctx, org.ProvenClaimOf(l.Invitation.Data.EmailKey))
	if err != nil {
		return err
	}
	return l.isFor(u, s.DefaultOrg, prover)
}

// AcceptMine accepts an invitation with the caller's account. Errors: those of Open and of MayAccept; ErrGroupFull.
func (s Invitations) AcceptMine(ctx context.Context, caller *access.Caller, l *Link) (event.Details, error) {
	proven := org.ProvenClaimOf(l.Invitation.Data.EmailKey)
	mine := user.Mine(caller).And(user.MustBeHuman).Needs(l.needs().With(event.Command{Claims: []event.Claim{proven}}))
	return mine.Change(ctx, s.Store, event.IfMatch{}, func(tx *event.Tx, u *event.Object[user.User]) error {
		if u.Data.State != user.Active {
			return access.ErrUnauthenticated
		}
		now, err := l.within(tx)
		if err != nil {
			return err
		}
		prover, err := tx.Holder(proven)
		if err != nil {
			return err
		}
		if err := now.isFor(u, s.DefaultOrg, prover); err != nil {
			return err
		}
		return now.accept(tx, u)
	})
}
