package mail

import (
	"context"
	"net/url"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/user"
)

// left tells an address that it was replaced. Where the person of the account did that, or somebody who has taken it over, the mail
// has a link that undoes it.
func (m *Mailer) left(ctx context.Context, e *event.Event) error {
	d, err := user.LeftAddress(ctx, m.Store, m.Master, e.ObjectID, e.Sequence)
	if err != nil {
		return unless(err, user.ErrNothingBefore)
	}
	// A mail with a link is not counted: whoever changes the address again and again must not keep it back.
	if d.Text == "" {
		if allowed, err := m.allowed(ctx, user.CountMails(m.Master, "address left", d.UserID, d.Address).For(e.Time)); err != nil || !allowed {
			return err
		}
	}
	kind, c := EmailReplaced, content{When: moment(event.Time(e.Time))}
	if d.Text != "" {
		kind, c.Link = EmailChanged, m.ExternalURL+RestorePath+"?"+url.Values{"user": {d.UserID}, "code": {d.Text}}.Encode()
	}
	return m.send(ctx, kind, d.UserID, d.Address, d.Name, d.Language, c)
}

// restored tells both addresses that the one from before is the user's again.
func (m *Mailer) restored(ctx context.Context, e *event.Event) error {
	c := content{When: moment(event.Time(e.Time))}
	u, err := user.Kind.Read(ctx, m.Store, e.ObjectID)
	if err != nil || u == nil || u.State.Human == nil {
		return err
	}
	h := u.State.Human
	if err := m.send(ctx, EmailRestored, u.ID, h.Email.Address, h.Profile.DisplayName, h.Profile.PreferredLanguage, c); err != nil {
		return err
	}
	d, err := user.LeftAddress(ctx, m.Store, m.Master, e.ObjectID, e.Sequence)
	if err != nil {
		return unless(err, user.ErrNothingBefore)
	}
	return m.send(ctx, EmailRestored, d.UserID, d.Address, d.Name, d.Language, c)
}
