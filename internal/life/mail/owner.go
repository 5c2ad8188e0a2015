package mail

import (
	"cmp"
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// maxTold is how many members of an organization get a mail that it has no owner any more. More would not make anybody
// act sooner.
const maxTold = 100

// ownerLost tells the owners of the installation, and the members with roles who remain, that no owner of an
// organization can act any more. If one can again by now, it is no news. Each of them gets it once, also when others
// have to be tried again.
func (m *Mailer) ownerLost(ctx context.Context, e *event.Event) error {
	o, err := org.Kind.Read(ctx, m.Store, e.ObjectID)
	if err != nil || o == nil || o.Data.State == org.Removed {
		return err
	}
	without, err := member.Ownerless(ctx, m.Store, access.Memberships{o.ID: {access.OrgOwner}})
	if err != nil || len(without) == 0 {
		return err
	}
	people, err := m.concerned(ctx, o.ID)
	if err != nil {
		return err
	}
	var refused *notify.Refusal
	for _, u := range people {
		err := m.tellOwnerLost(ctx, e, u, o)
		refusal, ok := errors.AsType[*notify.Refusal](err)
		switch {
		case err != nil && !ok:
			return err
		case err != nil && (refused == nil || refused.ForGood):
			refused = refusal
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}

func (m *Mailer) tellOwnerLost(ctx context.Context, e *event.Event, u *event.Object[user.User],
	o *event.Object[org.Org]) error {
	address := u.Data.Human.Email.Address
	row := m.sentRow(e, address)
	if sent, err := m.Store.Row(ctx, row); err != nil || sent != nil {
		return err
	}
	if allowed, err := m.allowed(ctx,
		mailcount.Of(m.Master, string(OwnerLost), u.ID).For(e.Time)); err != nil || !allowed {
		return err
	}
	profile := u.Data.Human.Profile
	if err := m.send(ctx, OwnerLost, u.ID, address, profile.DisplayName, profile.PreferredLanguage,
		content{At: event.Time(e.Time), OrgOrSite: cmp.Or(greetable(o.Data.Name), o.ID)}); err != nil {
		return err
	}
	return m.markSent(ctx, row)
}

// concerned are the people with a verified address who own the installation, or have roles in an organization.
func (m *Mailer) concerned(ctx context.Context, orgID string) (people []*event.Object[user.User], err error) {
	known := map[string]bool{}
	add := func(u *event.Object[user.User]) {
		if u != nil && !known[u.ID] && u.Data.State == user.Active && u.Data.Human != nil &&
			u.Data.Human.Email.Verified {
			known[u.ID] = true
			people = append(people, u)
		}
	}
	i, err := installation.Read(ctx, m.Store)
	if err != nil {
		return nil, err
	}
	if i != nil {
		for _, id := range i.Data.Owners {
			u, err := user.Kind.Read(ctx, m.Store, id)
			if err != nil {
				return nil, err
			}
			add(u)
		}
	}
	for after := (&event.Cursor{}); after != nil && len(people) < maxTold; {
		var members []*event.Object[user.User]
		if members, after, err = user.Kind.List(ctx, m.Store,
			event.Query{Group: user.MembersOf(orgID), After: *after, Limit: maxTold}); err != nil {
			return nil, err
		}
		for _, u := range members {
			if len(u.Data.Memberships[orgID]) > 0 {
				add(u)
			}
		}
	}
	return people, nil
}
