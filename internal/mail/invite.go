package mail

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/invitation"
	"github.com/signet-idm/signet/internal/mailcount"
	"github.com/signet-idm/signet/internal/notify"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
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
	c := content{Link: invitation.Address(m.ExternalURL, d.Token), At: d.Expires, Site: external.Host, Place: external.Host}
	o, err := org.Kind.Read(ctx, m.Store, d.OrgID)
	if err != nil {
		return err
	}
	if o != nil {
		c.Place = cmp.Or(greetable(o.Data.Name), c.Place)
	}
	c.Inviter = c.Place
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

// setUp sends the link by which a person sets a password.
func (m *Mailer) setUp(ctx context.Context, e *event.Event) error {
	d, err := invitation.MailedSetup(ctx, m.Store, m.Master, e)
	if err != nil {
		return later(unless(err, invitation.ErrNothingToSend))
	}
	return m.send(ctx, PasswordSetup, d.UserID, d.Address, d.Name, d.Language, content{Link: invitation.SetupAddress(m.ExternalURL, d.Text), At: d.Expires})
}

// later has a mail tried again that comes too soon after another one.
func later(err error) error {
	if errors.Is(err, mailcount.ErrTooMany) {
		return &notify.Refusal{Cause: err}
	}
	return err
}
