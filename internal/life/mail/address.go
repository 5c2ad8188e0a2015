package mail

import (
	"context"
	"errors"
	"net/url"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// left tells an address that it was replaced. Where the person of the account did that, or somebody who has taken it
// over, the mail has a link that undoes it.
func (m *Mailer) left(ctx context.Context, e *event.Event) error {
	d, err := user.LeftAddress(ctx, m.Store, m.Master, e.ObjectID, e.Sequence)
	if err != nil {
		return unless(err, user.ErrNothingBefore)
	}
	// A mail with a link is not counted: an attacker who changes the address again and again must not hold it back.
	if d.Text == "" {
		if allowed, err := m.allowed(ctx,
			mailcount.Of(m.Master, "address left", d.UserID, d.Address).For(e.Time)); err != nil || !allowed {
			return err
		}
	}
	kind, c := EmailReplaced, content{At: event.Time(e.Time)}
	if d.Text != "" {
		kind, c.Link = EmailChanged,
			m.ExternalURL+RestorePath+"?"+url.Values{"user": {d.UserID}, "code": {d.Text}}.Encode()
	}
	return m.send(ctx, kind, d.UserID, d.Address, d.Name, d.Language, c)
}

// restored tells both addresses that the one from before is the user's again.
func (m *Mailer) restored(ctx context.Context, e *event.Event) error {
	u, err := user.Kind.Read(ctx, m.Store, e.ObjectID)
	if err != nil || u == nil || u.Data.Human == nil {
		return err
	}
	to := []string{u.Data.Human.Email.Address}
	switch d, err := user.LeftAddress(ctx, m.Store, m.Master, e.ObjectID, e.Sequence); {
	case err == nil:
		to = append(to, d.Address)
	case !errors.Is(err, user.ErrNothingBefore):
		return err
	}
	return m.sendAll(ctx, e, EmailRestored, u, to, content{})
}
