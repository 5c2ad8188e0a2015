package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
)

const (
	cleanInterval = time.Minute // how often to look for what another node has left
	cleanStep     = 100         // objects in one transaction: others wait for it
)

// Cleaner clears away what belonged to removed organizations: invitations, offers, users, applications, identity
// providers, webhooks, groups, projects, what was granted to them, and what guests had in them; and the grants of
// removed projects. It goes on where it was stopped, and several nodes may run one each: what is gone already is
// skipped.
type Cleaner struct {
	store event.Store
	log   *slog.Logger
	wake  chan struct{}
}

// NewCleaner makes one; Run starts it.
func NewCleaner(s event.Store, log *slog.Logger) *Cleaner {
	return &Cleaner{store: s, log: log, wake: make(chan struct{}, 1)}
}

// Wake makes it look at once. A nil one sleeps on.
func (c *Cleaner) Wake() {
	if c == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// Run cleans at the start, whenever it is woken, and every now and then, until ctx ends.
func (c *Cleaner) Run(ctx context.Context) {
	ticker := time.NewTicker(cleanInterval)
	defer ticker.Stop()
	for {
		if err := c.Clean(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("removing the objects of removed organizations failed: the server retries in a minute", "error", err)
		}
		select {
		case <-c.wake:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Clean clears away everything there is to clear away now. One organization that cannot be emptied does not keep it
// from the others.
func (c *Cleaner) Clean(ctx context.Context) error {
	ctx = event.WritesMany(ctx) // in steps
	var problems []error
	for after := (&event.Cursor{}); after != nil; {
		orgs, next, err := org.Kind.List(ctx, c.store,
			event.Query{Group: org.Removing, After: *after, Limit: cleanStep})
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
		for _, o := range orgs {
			if err := c.empty(ctx, o.ID); err != nil {
				problems = append(problems, fmt.Errorf("organization %s: %w", o.ID, err))
			}
		}
		after = next
	}
	return errors.Join(append(problems, c.cleanProjects(ctx))...)
}

// empty takes everything out of one removed organization. Nothing new can get into it: whatever is created in an
// organization reads it in the same transaction.
func (c *Cleaner) empty(ctx context.Context, id string) error {
	for _, step := range []func(ctx context.Context, id string) (left bool, err error){c.invitations, c.offers, c.users,
		c.applications, c.providers, c.webhooks, c.groups, c.members, c.roles,
		c.projects, c.granted} {
		for left := true; left; {
			var err error
			if left, err = step(ctx, id); err != nil {
				return err
			}
		}
	}
	return c.command(ctx, id, []event.Ref{org.Kind.Ref(id)}, func(_ *event.Tx, o *event.Object[org.Org]) error {
		if o.Data.Empty {
			return nil
		}
		return o.Append(org.Emptied{})
	})
}

// users removes some of the organization's users. An owner of the installation among them is not the last one, or the
// organization could not have been removed.
func (c *Cleaner) users(ctx context.Context, id string) (left bool, err error) {
	users, _, err := user.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	var also []event.Ref
	accepted := map[string][]event.Ref{}
	for _, u := range users {
		if accepted[u.ID], err = invitation.OfUser(ctx, c.store, u.ID); err != nil {
			return false, err
		}
		also = append(also, accepted[u.ID]...)
		also = append(also, companions(u.ID)...)
		if member.IsOwner(&u.Data) && !slices.Contains(also, installation.Ref) {
			also = append(also, installation.Ref)
		}
	}
	return discard(ctx, c, id, user.Kind, users, also, func(tx *event.Tx, u *event.Object[user.User]) error {
		if u.Data.State == user.Removed {
			return nil
		}
		return end(tx, u, accepted[u.ID])
	})
}

// invitations removes some of the organization's invitations.
func (c *Cleaner) invitations(ctx context.Context, id string) (left bool, err error) {
	found, _, err := invitation.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, invitation.Kind, found, nil, invitation.EndWithOrganization)
}

// offers removes some of the organization's offers.
func (c *Cleaner) offers(ctx context.Context, id string) (left bool, err error) {
	found, _, err := member.OfferKind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, member.OfferKind, found, nil, member.EndOfferWithOrganization)
}

// roles removes some of the organization's custom roles. Those who held them are removed or have left it.
func (c *Cleaner) roles(ctx context.Context, id string) (left bool, err error) {
	found, _, err := role.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, role.Kind, found, nil, role.End)
}

// applications removes some of the organization's applications.
func (c *Cleaner) applications(ctx context.Context, id string) (left bool, err error) {
	apps, _, err := app.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, app.Kind, apps, nil, func(tx *event.Tx, a *event.Object[app.App]) error {
		if a.Data.State == app.Removed {
			return nil
		}
		tx.DropRow(app.SecretRow(a.ID))
		return a.Append(app.WasRemoved{})
	})
}

// providers removes some of the organization's identity providers.
func (c *Cleaner) providers(ctx context.Context, id string) (left bool, err error) {
	providers, _, err := idp.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, idp.Kind, providers, nil, func(tx *event.Tx, p *event.Object[idp.Provider]) error {
		if p.Data.State == idp.Removed {
			return nil
		}
		tx.DropRow(idp.SecretRow(p.ID))
		return p.Append(idp.WasRemoved{})
	})
}

// webhooks removes some of the organization's webhooks.
func (c *Cleaner) webhooks(ctx context.Context, id string) (left bool, err error) {
	hooks, _, err := webhook.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	if left, err = discard(ctx, c, id, webhook.Kind, hooks, nil, webhook.End); err != nil {
		return false, err
	}
	for _, h := range hooks {
		if err := webhook.Clear(ctx, c.store, h.ID); err != nil {
			return false, err
		}
	}
	return left, nil
}

// groups removes some of the organization's groups. Those who are in them are removed or leave the organization.
func (c *Cleaner) groups(ctx context.Context, id string) (left bool, err error) {
	groups, _, err := group.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, group.Kind, groups, nil, func(_ *event.Tx, g *event.Object[group.Group]) error {
		if g.Data.State == group.Removed {
			return nil
		}
		return g.Append(group.WasRemoved{})
	})
}

// members takes some of the guests out of the organization, with the roles, groups and roles of applications that they
// have there.
func (c *Cleaner) members(ctx context.Context, id string) (left bool, err error) {
	users, _, err := user.Kind.List(ctx, c.store, event.Query{Group: user.MembersOf(id), Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, user.Kind, users, nil, func(_ *event.Tx, u *event.Object[user.User]) error {
		if _, in := u.Data.Memberships[id]; !in {
			return nil
		}
		return member.End(u, id)
	})
}

// discard ends the objects that were listed, in one command that may write something else along. What another node has
// ended meanwhile is for end to skip. It tells whether there may be more.
func discard[S any](ctx context.Context, c *Cleaner, id string, kind *event.Objects[S], listed []*event.Object[S],
	also []event.Ref,
	end func(*event.Tx, *event.Object[S]) error) (left bool, err error) {
	if len(listed) == 0 {
		return false, nil
	}
	writes := also
	for _, o := range listed {
		writes = append(writes, kind.Ref(o.ID))
	}
	return true, c.command(ctx, id, writes, func(tx *event.Tx, _ *event.Object[org.Org]) error {
		for _, l := range listed {
			o, err := kind.Get(tx, l.ID)
			if err != nil {
				return err
			}
			if err := end(tx, o); err != nil {
				return err
			}
		}
		return nil
	})
}

// command runs one step, after a last look at whether the organization is really removed.
func (c *Cleaner) command(ctx context.Context, id string, writes []event.Ref,
	decide func(*event.Tx, *event.Object[org.Org]) error) error {
	return c.store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System}, Write: writes, Read: []event.Ref{org.Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Get(tx, id)
			if err != nil {
				return err
			}
			if o == nil || o.Data.State != org.Removed {
				return errors.New("lifecycle: it is not removed")
			}
			return decide(tx, o)
		},
	})
}
