package member

import (
	"context"
	"errors"
	"maps"
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

// Owners guards the last owner of the installation, or of an organization. A command that ends an owner's rights, or an
// owner, asks Remain, and is run by event.Do. It rests on one owner who stays: of two commands that end each other's, one
// fails, wherever they run.
type Owners struct {
	find   func(ctx context.Context, found func(*event.Object[user.User]) (more bool, err error)) error
	reader event.Reader
	owns   func(*user.User) bool
	none   *errs.Error // what Remain refuses with where no owner is left

	looked bool
	able   []*event.Object[user.User] // some owners who could act when look found them
}

// enough owners to rest on: if one of them changes meanwhile, another will do.
const enough = 3

// OwnersBut guards the installation: owners other than those leaving must remain.
func OwnersBut(r event.Reader, leaving func(*event.Object[user.User]) bool) *Owners {
	return &Owners{
		reader: r,
		owns:   IsOwner,
		none:   ErrLastOwner,
		find: func(ctx context.Context, found func(*event.Object[user.User]) (bool, error)) error {
			i, err := installation.Read(ctx, r)
			if err != nil || i == nil {
				return err
			}
			for _, id := range i.Data.Owners {
				u, err := user.Kind.Read(ctx, r, id)
				if err != nil {
					return err
				}
				if u == nil || leaving(u) {
					continue
				}
				if more, err := found(u); err != nil || !more {
					return err
				}
			}
			return nil
		},
	}
}

// OwnersOfBut guards an organization: owners other than one who leaves must remain.
func OwnersOfBut(r event.Reader, orgID, leaving string) *Owners {
	return OwnersOfButThose(r, orgID, func(u *event.Object[user.User]) bool { return u.ID == leaving })
}

// OwnersOfButThose guards an organization: owners other than those leaving must remain.
func OwnersOfButThose(r event.Reader, orgID string, leaving func(*event.Object[user.User]) bool) *Owners {
	return orgOwners(r, orgID, leaving,
		func(u *user.User) bool { return slices.Contains(u.Memberships[orgID], access.OrgOwner) })
}

// OwnersWithout guards an organization: users must remain who own it also without one of its groups.
func OwnersWithout(r event.Reader, orgID, group string) *Owners {
	return orgOwners(r, orgID, func(*event.Object[user.User]) bool { return false },
		func(u *user.User) bool { return slices.Contains(u.Without(orgID, group), access.OrgOwner) })
}

func orgOwners(r event.Reader, orgID string, leaving func(*event.Object[user.User]) bool,
	owns func(*user.User) bool) *Owners {
	return &Owners{
		reader: r,
		owns:   owns,
		none:   ErrLastOrgOwner,
		find: func(ctx context.Context, found func(*event.Object[user.User]) (bool, error)) error {
			const page = 10
			for after := (&event.Cursor{}); after != nil; {
				var users []*event.Object[user.User]
				var err error
				if users, after, err = user.Kind.List(ctx, r,
					event.Query{Group: user.OwnersOf(orgID), After: *after, Limit: page}); err != nil {
					return err
				}
				for _, u := range users {
					if leaving(u) {
						continue
					}
					if more, err := found(u); err != nil || !more {
						return err
					}
				}
			}
			return nil
		},
	}
}

// look finds some owners who can act, and gives what a command declares to judge them again.
func (o *Owners) look(ctx context.Context) (needs event.Command, err error) {
	o.looked, o.able = true, nil
	err = o.find(ctx, func(u *event.Object[user.User]) (more bool, err error) {
		home, err := org.Kind.Read(ctx, o.reader, u.Org)
		if err == nil && o.canAct(u, home) {
			o.able = append(o.able, u)
			needs.Read = append(needs.Read, user.Kind.Ref(u.ID), org.Kind.Ref(u.Org))
		}
		return len(o.able) < enough, err
	})
	return needs, err
}

func (o *Owners) canAct(u *event.Object[user.User], home *event.Object[org.Org]) bool {
	return u != nil && o.owns(&u.Data) && u.Data.State == user.Active && home != nil && home.Data.State == org.Active
}

// Remain refuses with ErrLastOwner, or ErrLastOrgOwner, where no other owner can act.
func (o *Owners) Remain(tx *event.Tx) error {
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
	if o.looked && len(o.able) == 0 {
		return o.none
	}
	return event.Look(o.look)
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

// OrgOwners guards organizations whose owners are about to end, by their ids.
type OrgOwners map[string]*Owners

// lost gives those of the organizations, sorted, in which no owner remains who can act. It looks for the owners of all
// of them at once.
func (all OrgOwners) lost(tx *event.Tx, ids []string) (lost []string, err error) {
	for _, id := range ids {
		if !all[id].looked {
			return nil, event.Look(all.look)
		}
	}
	for _, id := range ids {
		switch err := all[id].Remain(tx); {
		case errors.Is(err, ErrLastOrgOwner):
			lost = append(lost, id)
		case err != nil:
			return nil, err
		}
	}
	return lost, nil
}

func (all OrgOwners) look(ctx context.Context) (needs event.Command, err error) {
	for _, o := range all {
		found, err := o.look(ctx)
		if err != nil {
			return needs, err
		}
		needs.Read = append(needs.Read, found.Read...)
	}
	return needs, nil
}

// EndOf settles that a user ends. Those of the user's organizations that are left without an owner who can act are told
// so. The own organization keeps its last one: ErrLastOrgOwner, unless the caller may leave it so. What others have
// given never keeps the own organization from ending its people. The command is run by event.Do.
func (all OrgOwners) EndOf(tx *event.Tx, r event.Reader, u *event.Object[user.User], mayLeave bool) error {
	owned := Owned(u.Data.Memberships)
	for _, id := range owned {
		if all[id] == nil {
			all[id] = OwnersOfBut(r, id, u.ID)
		}
	}
	lost, err := all.lost(tx, owned)
	if err != nil {
		return err
	}
	if slices.Contains(lost, u.Org) && !mayLeave {
		return ErrLastOrgOwner
	}
	if u.Data.State != user.Active {
		return nil // it was so before
	}
	return TellOwnerLost(tx, u.ID, u.Org, lost...)
}

// TellLost tells those of the organizations so that are left without an owner who can act, by the end of all users of
// the organization home. The command is run by event.Do.
func (all OrgOwners) TellLost(tx *event.Tx, home string) error {
	lost, err := all.lost(tx, slices.Sorted(maps.Keys(all)))
	if err != nil {
		return err
	}
	return TellOwnerLost(tx, "", home, lost...)
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
	o, err := org.Kind.FollowToWrite(tx, orgID)
	if err != nil || o == nil || o.Data.State == org.Removed {
		return err
	}
	if by != "" {
		o.ActedBy(by)
	}
	return o.Append(lost)
}

// Stop settles that users stop to own an organization by what is done there. Where nobody is left who can act it
// refuses with ErrLastOrgOwner, unless the caller may leave the organization so: then it is told. The
// command is run by event.Do.
func (o *Owners) Stop(tx *event.Tx, orgID string, mayLeave bool, users ...*event.Object[user.User]) error {
	if err := o.Remain(tx); !errors.Is(err, ErrLastOrgOwner) || !mayLeave {
		return err
	}
	able := slices.DeleteFunc(slices.Clone(users),
		func(u *event.Object[user.User]) bool { return u.Data.State != user.Active })
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
		owners := OwnersOfBut(r, id, "")
		if _, err := owners.look(ctx); err != nil {
			return nil, err
		}
		if len(owners.able) == 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
