package member

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// IsOwner tells whether a user owns the installation.
func IsOwner(u *user.User) bool {
	return slices.Contains(u.Memberships[access.Installation], access.IAMOwner)
}

// Owners is the guard of the last owner of the installation, or of an organization: some of the owners who could act at
// the moment it was made. A command that ends an owner's rights, or an owner, declares what Reads gives and asks
// Remain. It rests on one owner who stays, so two commands that end each other's cannot both succeed, wherever they
// run.
type Owners struct {
	able []*event.Object[user.User]
	owns func(*user.User) bool
	none *errs.Error // what Remain refuses with where nobody is left
}

// enough owners to rest on: should one of them move meanwhile, another will do.
const enough = 3

// OwnersBut looks for owners who can act, other than those leaving.
func OwnersBut(ctx context.Context, r event.Reader, leaving func(*event.Object[user.User]) bool) (*Owners, error) {
	owners := &Owners{owns: IsOwner, none: ErrLastOwner}
	i, err := installation.Read(ctx, r)
	if err != nil || i == nil {
		return owners, err
	}
	for _, id := range i.Data.Owners {
		u, err := user.Kind.Read(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if u == nil || leaving(u) {
			continue
		}
		if err := owners.add(ctx, r, u); err != nil {
			return nil, err
		}
		if len(owners.able) == enough {
			break
		}
	}
	return owners, nil
}

// add remembers an owner who can act.
func (o *Owners) add(ctx context.Context, r event.Reader, u *event.Object[user.User]) error {
	home, err := org.Kind.Read(ctx, r, u.Org)
	if err == nil && o.canAct(u, home) {
		o.able = append(o.able, u)
	}
	return err
}

func (o *Owners) canAct(u *event.Object[user.User], home *event.Object[org.Org]) bool {
	return u != nil && o.owns(&u.Data) && u.Data.State == user.Active && home != nil && home.Data.State == org.Active
}

// OwnersOfBut looks for owners of an organization who can act, other than one who leaves.
func OwnersOfBut(ctx context.Context, r event.Reader, orgID, leaving string) (*Owners, error) {
	return OwnersOfButThose(ctx, r, orgID, func(u *event.Object[user.User]) bool { return u.ID == leaving })
}

// OwnersOfButThose looks for owners of an organization who can act, other than those leaving.
func OwnersOfButThose(ctx context.Context, r event.Reader, orgID string, leaving func(*event.Object[user.User]) bool) (*Owners, error) {
	return orgOwners(ctx, r, orgID, leaving, func(u *user.User) bool { return slices.Contains(u.Memberships[orgID], access.OrgOwner) })
}

// OwnersWithout looks for owners of an organization who can act, and are owners also without one of its groups.
func OwnersWithout(ctx context.Context, r event.Reader, orgID, group string) (*Owners, error) {
	return orgOwners(ctx, r, orgID, func(*event.Object[user.User]) bool { return false }, func(u *user.User) bool { return slices.Contains(u.Without(orgID, group), access.OrgOwner) })
}

func orgOwners(ctx context.Context, r event.Reader, orgID string, leaving func(*event.Object[user.User]) bool, owns func(*user.User) bool) (*Owners, error) {
	owners := &Owners{none: ErrLastOrgOwner, owns: owns}
	const page = 10
	for after := (&event.Cursor{}); after != nil && len(owners.able) < enough; {
		var users []*event.Object[user.User]
		var err error
		if users, after, err = user.Kind.List(ctx, r, event.Query{Group: user.OwnersOf(orgID), After: *after, Limit: page}); err != nil {
			return nil, err
		}
		for _, u := range users {
			if leaving(u) {
				continue
			}
			if err := owners.add(ctx, r, u); err != nil {
				return nil, err
			}
		}
	}
	return owners, nil
}

// Owned are the organizations that somebody with these roles owns, sorted.
func Owned(held access.Memberships) (ids []string) {
	for scope, roles := range held {
		if slices.Contains(roles, access.OrgOwner) {
			ids = append(ids, scope)
		}
	}
	slices.Sort(ids)
	return ids
}

// OrgOwners are the guards of all organizations that somebody owns who is about to end, by their ids.
type OrgOwners map[string]*Owners

// OrgOwnersBut looks for the other owners of a user's organizations.
func OrgOwnersBut(ctx context.Context, r event.Reader, u *event.Object[user.User]) (OrgOwners, error) {
	all := OrgOwners{}
	for _, id := range Owned(u.Data.Memberships) {
		owners, err := OwnersOfBut(ctx, r, id, u.ID)
		if err != nil {
			return nil, err
		}
		all[id] = owners
	}
	return all, nil
}

// Reads are the objects a command has to declare before it asks Remain.
func (all OrgOwners) Reads() (refs []event.Ref) {
	for _, o := range all {
		refs = append(refs, o.Reads()...)
	}
	return refs
}

// Settle looks at the organizations of a user who is about to end. Those that are left without an owner who can act are
// told so. The own organization keeps its last one: ErrLastOrgOwner, unless the caller may leave it so. What others
// have given never keeps the own organization from ending its people. Errors also: ErrMoved, as Owners.Remain.
func (all OrgOwners) Settle(tx *event.Tx, u *event.Object[user.User], mayLeave bool) error {
	var lost []string
	for _, id := range Owned(u.Data.Memberships) {
		switch err := all[id].Remain(tx); {
		case err == nil:
		case !errors.Is(err, ErrLastOrgOwner), id == u.Org && !mayLeave:
			return err
		case u.Data.State == user.Active: // else it was so before
			lost = append(lost, id)
		}
	}
	return TellOwnerLost(tx, u.ID, u.Org, lost...)
}

// TellOwnerLost records with organizations that they have lost their last owner who could act: a user, or all users, of
// the organization home. The mails about it follow from that. The command is run by event.Do.
func TellOwnerLost(tx *event.Tx, userID, home string, orgIDs ...string) error {
	var all event.Command
	for _, id := range orgIDs {
		all.Write = append(all.Write, org.Kind.Ref(id))
	}
	if err := tx.Require(all); err != nil {
		return err
	}
	for _, id := range orgIDs {
		by := ""
		if id != home { // it learns that it was the other one, not who there
			by = home
		}
		if err := tellOwnerLost(tx, id, org.OwnerLost{UserID: userID, Org: home}, by); err != nil {
			return err
		}
	}
	return nil
}

// tellOwnerLost names by in place of the actor, unless it is empty.
func tellOwnerLost(tx *event.Tx, orgID string, lost org.OwnerLost, by string) error {
	if err := tx.Require(event.Command{Write: []event.Ref{org.Kind.Ref(orgID)}}); err != nil {
		return err
	}
	o, err := org.Kind.Get(tx, orgID)
	if err != nil || o == nil || o.Data.State == org.Removed {
		return err
	}
	if by != "" {
		o.ActedBy(by)
	}
	return o.Append(lost)
}

// Stop settles that users stop to own an organization by what is done there. Where nobody is left who can act it
// refuses with ErrLastOrgOwner, unless the caller may leave the organization so: then it is told. Errors also:
// ErrMoved, as Remain. The command is run by event.Do.
func (o *Owners) Stop(tx *event.Tx, orgID string, mayLeave bool, users ...*event.Object[user.User]) error {
	if err := o.Remain(tx); !errors.Is(err, ErrLastOrgOwner) || !mayLeave {
		return err
	}
	able := slices.DeleteFunc(slices.Clone(users), func(u *event.Object[user.User]) bool { return u.Data.State != user.Active })
	switch len(able) {
	case 0: // it was so before
		return nil
	case 1:
		return tellOwnerLost(tx, orgID, org.OwnerLost{UserID: able[0].ID, Org: able[0].Org}, "")
	}
	return tellOwnerLost(tx, orgID, org.OwnerLost{Org: orgID}, "")
}

// Ownerless gives those of the organizations that somebody with these roles owns, or owned, in which no owner can act.
func Ownerless(ctx context.Context, r event.Reader, held access.Memberships) (ids []string, err error) {
	for _, id := range Owned(held) {
		owners, err := OwnersOfBut(ctx, r, id, "")
		if err != nil {
			return nil, err
		}
		if len(owners.able) == 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Reads are the objects a command has to declare before it asks Remain.
func (o *Owners) Reads() []event.Ref {
	var refs []event.Ref
	for _, u := range o.able {
		refs = append(refs, user.Kind.Ref(u.ID), org.Kind.Ref(u.Org))
	}
	return refs
}

// Remain refuses with ErrLastOwner, or ErrLastOrgOwner, where no other owner can act, and with ErrMoved where none of
// those known can any more, or nobody has looked: the guard is nil.
func (o *Owners) Remain(tx *event.Tx) error {
	if o == nil {
		return ErrMoved
	}
	for _, known := range o.able {
		u, err := user.Kind.Get(tx, known.ID)
		if err != nil {
			return err
		}
		home, err := org.Kind.Get(tx, known.Org)
		if err != nil {
			return err
		}
		if o.canAct(u, home) {
			return nil
		}
	}
	if len(o.able) > 0 {
		return ErrMoved
	}
	return o.none
}

// ErrMoved is what Decide refuses with when the command was made from something that is different by now. It never
// leaves Settle.
var ErrMoved = errors.New("member: what the command rests on has changed")

var errContention = errs.New(errs.Aborted, event.Contention, "others are changing the owners or members at the same time: try again")

// maxTries of a command that has to be made anew. Each time somebody else has got something done.
const maxTries = 8

// Settle looks, makes a command and runs it, and does so again while what it saw has changed before it could decide.
func Settle(try func() error) error {
	for range maxTries {
		if err := try(); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return errContention
}
