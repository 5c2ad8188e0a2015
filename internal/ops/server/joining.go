package server

import (
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/registration"
	"github.com/signet-idm/signet/internal/signin/session"
)

// joining is how people become users.
type joining struct {
	invitations   invitation.Invitations
	registrations *registration.Registrations
}

func newJoining(b *base, sessions *session.Sessions, m mails) joining {
	var mailer registration.Mailer // nil: there is no mail
	if m.sender != nil {
		mailer = m.mailer
	}
	return joining{
		invitations: invitation.Invitations{Store: b.store, Master: b.master, DefaultOrg: b.defaultOrg,
			ExternalURL: b.config.ExternalURL, Mail: m.sender != nil},
		registrations: registration.New(sessions, mailer),
	}
}
