package member

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
)

// IsOwner tells whether a user owns the installation.
func IsOwner(u *user.User) bool {
	return slices.Contains(u.Memberships[access.Installation], access.IAMOwner)
}

// Owners is the guard of the last owner of the installation: some of the owners who could act at the moment it was made.
// A command that ends an owner's rights, or an owner, declares what Reads gives and asks Remain. It rests on one owner who
// stays, so two commands that end each other's cannot both succeed, wherever they run.
type Owners struct{ able []*event.Object[user.User] }

// enough owners to rest on: should one of them move meanwhile, another will do.
const enough = 3

// OwnersBut looks for owners who can act, other than those leaving.
func OwnersBut(ctx context.Context, r event.Reader, leaving func(*event.Object[user.User]) bool) (*Owners, error) {
	owners := &Owners{}
	i, err := installation.Read(ctx, r)
	if err != nil || i == nil {
		return owners, err
	}
	for _, id := range i.State.Owners {
		u, err := user.Kind.Read(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if u == nil || leaving(u) {
			continue
		}
		o, err := org.Kind.Read(ctx, r, u.Org)
		if err != nil {
			return nil, err
		}
		if canAct(u, o) {
			owners.able = append(owners.able, u)
		}
		if len(owners.able) == enough {
			break
		}
	}
	return owners, nil
}

func canAct(u *event.Object[user.User], o *event.Object[org.Org]) bool {
	return u != nil && IsOwner(&u.State) && u.State.State == user.Active && o != nil && o.State.State == org.Active
}

// Reads are the objects a command has to declare before it asks Remain.
func (o *Owners) Reads() []event.Ref {
	var refs []event.Ref
	for _, u := range o.able {
		refs = append(refs, user.Kind.Ref(u.ID), org.Kind.Ref(u.Org))
	}
	return refs
}

// Remain refuses with ErrLastOwner where no other owner can act, and with ErrMoved where none of those known can any more, or
// nobody has looked: the guard is nil.
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
		if canAct(u, home) {
			return nil
		}
	}
	if len(o.able) > 0 {
		return ErrMoved
	}
	return ErrLastOwner
}

// ErrMoved is what Decide refuses with when the command was made from something that is different by now. It never leaves
// Settle.
var ErrMoved = errors.New("member: what the command rests on has changed")

var errContention = errs.New(errs.Aborted, event.Contention, "others are changing the owners of the installation at the same time: try again")

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
