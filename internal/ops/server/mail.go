package server

import (
	"context"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/life/mail"
)

// mails are the ways to people outside the pages.
type mails struct {
	sender  mail.Sender // nil: there is none
	mailer  *mail.Mailer
	deliver func(context.Context, user.Delivery) error // codes to phones; nil: there is no way
}

// newMails finds the ways that the operator has set. Developers find codes in the log of their own machine.
func newMails(b *base) (m mails) {
	switch c := b.config; {
	case c.smtp != nil:
		m.sender = countedSender{c.smtp, b.gauges.mails}
	case c.Development:
		m.sender = countedSender{mail.Log{Log: b.log}, b.gauges.mails}
	}
	m.mailer = &mail.Mailer{Store: b.store, Master: b.master, Clock: b.config.Clock, Sender: m.sender,
		ExternalURL: b.config.ExternalURL}
	if b.config.Development {
		m.deliver = func(ctx context.Context, d user.Delivery) error {
			b.log.InfoContext(ctx, "development: verification code", "user", d.UserID, "by", string(d.By),
				"to", d.Address,
				"code", d.Text)
			return nil
		}
	}
	return m
}
