package mail

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// invite sends the link of an invitation to the address that is invited.
func (m *Mailer) invite(ctx context.Context, e *event.Event) error {
	d, err := invitation.Mailed(ctx, m.Store, m.Master, e)
	if err != nil {
		return later(unless(err, invitation.ErrNothingToSend))
	}
	external, err := url.Parse(m.ExternalURL)
	if err != nil {
		return err
	}
	c := content{Link: invitation.Address(m.ExternalURL, d.Token), At: d.Expires, Site: external.Host,
		OrgOrSite: external.Host}
	o, err := org.Kind.Read(ctx, m.Store, d.OrgID)
	if err != nil {
		return err
	}
	if o != nil {
		c.OrgOrSite = cmp.Or(greetable(o.Data.Name), c.OrgOrSite)
	}
	c.Inviter = c.OrgOrSite
	by, err := user.Kind.Read(ctx, m.Store, d.Inviter)
	if err != nil {
		return err
	}
	if by != nil && by.Data.Human != nil {
		c.Inviter = cmp.Or(greetable(by.Data.Human.Profile.DisplayName), c.Inviter)
	}
	out, err := write(Invitation, d.Language, c)
	if err != nil {
		return err
	}
	out.To = d.Email
	return m.Sender.Send(ctx, out)
}

// organizationsPath is the page that shows offers to the person.
const organizationsPath = "/account/organizations"

// offered tells a person of roles in another organization that wait for an answer, if the page shows them. One mail a
// day and organization is enough.
func (m *Mailer) offered(ctx context.Context, e *event.Event) error {
	o, err := member.OfferKind.Read(ctx, m.Store, e.ObjectID)
	if err != nil || o == nil || o.Data.UserID == "" {
		return err
	}
	u, err := user.Kind.Read(ctx, m.Store, o.Data.UserID)
	if err != nil || u == nil || u.Data.Human == nil || !u.Data.Human.Email.Verified {
		return err
	}
	all, err := member.OffersTo(ctx, m.Store, u.ID, m.Clock())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(s member.Shown) bool { return s.Offer.ID == o.ID })
	if i < 0 {
		return nil
	}
	count := mailcount.Daily(m.Master, string(RolesOffered), u.ID, o.Org).For(e.Time)
	if allowed, err := m.allowed(ctx, count); err != nil || !allowed {
		return err
	}
	external, err := url.Parse(m.ExternalURL)
	if err != nil {
		return err
	}
	c := content{Link: m.ExternalURL + organizationsPath, At: event.Time(o.Data.Expires),
		OrgOrSite: cmp.Or(greetable(all[i].Org.Data.Name), external.Host)}
	h := u.Data.Human
	return m.send(ctx, RolesOffered, u.ID, h.Email.Address, h.Profile.DisplayName, h.Profile.PreferredLanguage, c)
}

// setUp sends the link by which a person sets a password.
func (m *Mailer) setUp(ctx context.Context, e *event.Event) error {
	d, err := invitation.MailedSetup(ctx, m.Store, m.Master, e)
	if err != nil {
		return later(unless(err, invitation.ErrNothingToSend))
	}
	return m.send(ctx, PasswordSetup, d.UserID, d.Address, d.Name, d.Language,
		content{Link: invitation.SetupAddress(m.ExternalURL, d.Text), At: d.Expires})
}

// later has a mail tried again that comes too soon after another one.
func later(err error) error {
	if errors.Is(err, mailcount.ErrTooMany) {
		return &notify.Refusal{Cause: err}
	}
	return err
}
