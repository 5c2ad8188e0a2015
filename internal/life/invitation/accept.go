package invitation

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Link is an invitation as somebody comes to it who has a link.
type Link struct {
	Invitation *event.Object[Invitation]
	Org        *event.Object[org.Org]
	Inviter    *event.Object[user.User]

	Flow   string // what the ceremony of a passkey is bound to
	id     string // of its row
	link   int64
	groups []*event.Object[group.Group]
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
// ErrLinkUnknown; ErrLinkReplaced; ErrLinkUsed; ErrLinkWithdrawn; ErrLinkExpired; ErrInviterMayNot; ErrOrgAway.
func (s Invitations) Open(ctx context.Context, token string) (*Link, error) {
	kind, hash, ok := secret.ParseToken(token)
	if !ok || kind != secret.Invitation {
		return nil, ErrLinkUnknown
	}
	id := hex.EncodeToString(hash)
	l := &Link{id: id, Flow: links.Key(id).Key}
	of, err := links.Read(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	if of == nil {
		return nil, ErrLinkUnknown
	}
	l.link = of.Link
	if l.Invitation, err = Kind.Read(ctx, s.Store, of.Invitation); err != nil {
		return nil, err
	}
	if l.Invitation == nil {
		return nil, ErrLinkUnknown
	}
	if l.Org, err = org.Kind.Read(ctx, s.Store, l.Invitation.Org); err != nil {
		return nil, err
	}
	if l.Inviter, err = user.Kind.Read(ctx, s.Store, l.Invitation.Data.Inviter); err != nil {
		return nil, err
	}
	for _, id := range l.Invitation.Data.Groups {
		g, err := group.Kind.Read(ctx, s.Store, id)
		if err != nil {
			return nil, err
		}
		if g != nil {
			l.groups = append(l.groups, g)
		}
	}
	var home *event.Object[org.Org]
	if l.Inviter != nil {
		if home, err = org.Kind.Read(ctx, s.Store, l.Inviter.Org); err != nil {
			return nil, err
		}
	}
	return l, l.judge(facts{now: 0, linked: of, invitation: l.Invitation, org: l.Org, inviter: l.Inviter, home: home, groups: l.groups}, true)
}

// facts is what decides whether a link can be accepted.
type facts struct {
	now        int64   // 0: rows say what has expired
	linked     *linked // nil: the link is not known
	invitation *event.Object[Invitation]
	org        *event.Object[org.Org]
	inviter    *event.Object[user.User]
	home       *event.Object[org.Org] // of the inviter
	groups     []*event.Object[group.Group]
}

// judge refuses a link that leads nowhere. early leaves the time to the command.
func (l *Link) judge(f facts, early bool) error {
	i := f.invitation
	switch {
	case f.linked == nil || i == nil || i.Data.State == Removed:
		return ErrLinkUnknown
	case i.Data.State == Accepted:
		return ErrLinkUsed
	case i.Data.State == Withdrawn:
		return ErrLinkWithdrawn
	case i.Data.State == Expired || !early && f.now >= i.Data.Expires:
		return ErrLinkExpired
	case i.Data.Link != l.link:
		return ErrLinkReplaced
	case f.org == nil || f.org.Data.State != org.Active:
		return ErrOrgAway
	}
	return mayStill(i, f)
}

// mayStill judges the inviter anew: as somebody who makes the invitation at this moment. Errors: ErrInviterMayNot.
func mayStill(i *event.Object[Invitation], f facts) error {
	u := f.inviter
	if u == nil || u.Data.State != user.Active || f.home == nil || f.home.Data.State != org.Active || !u.Data.Memberships.Hold(access.InvitationWrite, i.Org) {
		return ErrInviterMayNot
	}
	g := giver{
		holds:  func(p access.Permission) bool { return u.Data.Memberships.Hold(p, i.Org) },
		covers: func(m access.Memberships) bool { return u.Data.Memberships.Cover(m) },
	}
	if g.mayGive(i.Org, i.Data.Roles) != nil {
		return ErrInviterMayNot
	}
	for _, in := range f.groups {
		if in.Data.State == group.Active && in.Org == i.Org && g.mayAddTo(in) != nil {
			return ErrInviterMayNot
		}
	}
	return nil
}

// needs is what joining reads and writes, besides the person, as far as the link shows it.
func (l *Link) needs() event.Command {
	c := event.Command{Write: []event.Ref{Kind.Ref(l.Invitation.ID)}, Read: []event.Ref{org.Kind.Ref(l.Invitation.Org), user.Kind.Ref(l.Invitation.Data.Inviter)},
		Rows: []event.RowKey{links.Key(l.id), countOf(l.Invitation.Org).Row}}
	if l.Inviter != nil {
		c.Read = append(c.Read, org.Kind.Ref(l.Inviter.Org))
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

// join uses the invitation up for a user, inside a command that declared needs and the user for writing, and that is run
// by event.Do. Errors: those of Open; ErrGroupFull.
func (l *Link) join(tx *event.Tx, u *event.Object[user.User]) error {
	f := facts{now: tx.Now()}
	var err error
	if f.invitation, err = Kind.Get(tx, l.Invitation.ID); err != nil {
		return err
	}
	if f.linked, err = links.Get(tx, l.id); err != nil {
		return err
	}
	if f.org, err = org.Kind.Get(tx, l.Invitation.Org); err != nil {
		return err
	}
	if err := f.follow(tx); err != nil {
		return err
	}
	if err := l.judge(f, false); err != nil {
		return err
	}
	if u.Org != f.invitation.Org { // with exactly what was shown: more waits
		shown := f.invitation.Data.Promised()
		if err := u.Data.MayAccept(shown); err != nil {
			return err
		}
		if err := user.Accept(u, f.invitation.Org, shown, user.RolesAccepted{}); err != nil {
			return err
		}
	}
	if err := addRoles(u, f.invitation); err != nil {
		return err
	}
	for _, g := range f.groups {
		if err := enter(u, g, f.invitation.Org); err != nil {
			return err
		}
	}
	if err := settled(tx, f.invitation); err != nil {
		return err
	}
	return f.invitation.Append(WasAccepted{UserID: u.ID})
}

// follow gives the inviter and the groups of the invitation.
func (f *facts) follow(tx *event.Tx) (err error) {
	if f.invitation == nil {
		return nil
	}
	if f.inviter, err = user.Kind.Follow(tx, f.invitation.Data.Inviter); err != nil {
		return err
	}
	if f.inviter != nil {
		if f.home, err = org.Kind.Follow(tx, f.inviter.Org); err != nil {
			return err
		}
	}
	for _, id := range f.invitation.Data.Groups {
		g, err := group.Kind.Follow(tx, id)
		if err == nil && g != nil && g.Data.Counts() { // who joins changes it
			g, err = group.Kind.FollowToWrite(tx, id)
		}
		if err != nil {
			return err
		}
		if g != nil {
			f.groups = append(f.groups, g)
		}
	}
	return nil
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
func addRoles(u *event.Object[user.User], i *event.Object[Invitation]) error {
	had, isIn := u.Data.Direct()[i.Org]
	if len(i.Data.Roles) == 0 && (u.Org == i.Org || isIn) {
		return nil
	}
	roles := slices.Concat(had, i.Data.Roles)
	slices.Sort(roles)
	roles = slices.Compact(roles)
	return u.Append(user.MembershipSet{Scope: i.Org, Roles: roles, Stays: len(roles) == 0})
}

// enter puts somebody into a group, unless it is gone. Errors: ErrGroupFull.
func enter(u *event.Object[user.User], g *event.Object[group.Group], orgID string) error {
	if g.Data.State != group.Active || g.Org != orgID || u.Data.In(orgID, g.ID) {
		return nil
	}
	if len(u.Data.Groups[orgID]) >= user.MaxGroups || g.Data.Counts() && g.Data.Members >= group.MaxRoleMembers {
		return ErrGroupFull
	}
	if g.Data.Counts() {
		if err := g.Append(group.MemberAdded{UserID: u.ID}); err != nil {
			return err
		}
	}
	return u.Append(user.GroupJoined{Org: orgID, Group: g.ID, Roles: g.Data.Roles})
}

// AcceptNew makes a user of somebody who has a link. OrgID, Email, Verification and the language, where none is set,
// come from the invitation. Errors: those of Open and of newcomer.Newcomers.Create; ErrGroupFull.
func (s Invitations) AcceptNew(ctx context.Context, newcomers newcomer.Newcomers, token string, p newcomer.Person) (session.SignedIn, error) {
	l, err := s.Open(ctx, token)
	if err != nil {
		return session.SignedIn{}, err
	}
	p.OrgID, p.Email, p.Verification = l.Invitation.Org, l.Email(), l.Verification()
	if p.Language == "" {
		p.Language = l.Invitation.Data.Language
	}
	if p.Passkey != nil {
		p.Passkey.Flow = l.Flow
	}
	return newcomers.Create(ctx, p, l.needs(), l.join)
}

// Through adds to the registration of somebody who comes through a provider what an invitation brings. Whatever the
// provider says about an address, the person gets the invited one: it is this one that the organization has asked for,
// and the mail has proven it. Errors: those of Open.
func (s Invitations) Through(ctx context.Context, token string, r *federated.Registration) error {
	l, err := s.Open(ctx, token)
	if err != nil {
		return err
	}
	r.OrgID, r.Email, r.EmailFromProvider, r.Verification = l.Invitation.Org, l.Email(), false, l.Verification()
	if r.Language == "" {
		r.Language = l.Invitation.Data.Language
	}
	r.Invited, r.Needs, r.Also = true, l.needs(), l.join
	return nil
}

// MayAccept tells whether somebody with an account can accept an invitation with it: in the organization itself with
// the verified address, elsewhere if the address is verified on a word that counts in all organizations. Errors:
// ErrOtherAddress.
func (s Invitations) MayAccept(ctx context.Context, l *Link, u *event.Object[user.User]) error {
	prover, err := s.prover(ctx, l.Invitation.Data.EmailKey)
	if err != nil {
		return err
	}
	return s.isFor(l.Invitation, u, prover)
}

// prover is the organization that has proven the domain of an address by DNS; empty where none has.
func (s Invitations) prover(ctx context.Context, emailKey string) (string, error) {
	domain, problem := syntax.Domain(emailKey[strings.LastIndexByte(emailKey, '@')+1:])
	if problem != nil {
		return "", nil
	}
	return s.Store.Holder(ctx, org.ProvenClaim(domain))
}

func (s Invitations) isFor(i *event.Object[Invitation], u *event.Object[user.User], prover string) error {
	if u == nil || u.Data.Human == nil || i.Data.EmailKey == "" {
		return ErrOtherAddress
	}
	email := u.Data.Human.Email
	if email.Verified && email.Key == i.Data.EmailKey && (u.Org == i.Org || user.Trusted(u, s.DefaultOrg, prover)) {
		return nil
	}
	return ErrOtherAddress
}

// AcceptMine accepts an invitation with the caller's account. Errors: those of Open; ErrOtherAddress; ErrGroupFull.
func (s Invitations) AcceptMine(ctx context.Context, caller *access.Caller, token string) (orgID string, details event.Details, err error) {
	l, err := s.Open(ctx, token)
	if err != nil {
		return "", event.Details{}, err
	}
	prover, err := s.prover(ctx, l.Invitation.Data.EmailKey)
	if err != nil {
		return "", event.Details{}, err
	}
	mine := user.Mine(caller).And(user.MustBeHuman).Needs(l.needs())
	details, err = mine.Change(ctx, s.Store, event.IfMatch{}, func(tx *event.Tx, u *event.Object[user.User]) error {
		if u.Data.State != user.Active {
			return access.ErrUnauthenticated
		}
		if err := s.isFor(l.Invitation, u, prover); err != nil {
			return err
		}
		return l.join(tx, u)
	})
	return l.Invitation.Org, details, err
}
