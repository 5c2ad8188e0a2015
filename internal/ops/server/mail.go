package server

import (
	"context"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/life/registration"
)

// sender gives the way that mails go to people; nil where there is none. Developers without a mail server find codes in
// the log of their own machine.
func (s *Server) sender() mail.Sender {
	switch {
	case s.config.smtp != nil:
		return countedSender{s.config.smtp, s.gauges.mails}
	case s.config.Development:
		return countedSender{mail.Log{Log: s.log}, s.gauges.mails}
	}
	return nil
}

func (s *Server) mailer(master secret.MasterKey) *mail.Mailer {
	return &mail.Mailer{Store: s.store, Master: master, Clock: s.config.Clock, Sender: s.sender(), ExternalURL: s.config.ExternalURL}
}

// registrationMailer writes to people who register; nil where there is no mail.
func (s *Server) registrationMailer(master secret.MasterKey) registration.Mailer {
	if s.sender() == nil {
		return nil
	}
	return s.mailer(master)
}

// followers gives those who follow the log, with a note of where they begin.
func (s *Server) followers(ctx context.Context, master secret.MasterKey) (*notify.Runner, error) {
	r := &notify.Runner{Store: s.store, Log: s.log, Clock: s.config.Clock, Followers: []notify.Follower{s.logouts.Follower()}, Meters: s.gauges.followers}
	switch sender := s.sender(); {
	case sender == nil:
		s.log.Warn("mail is not configured: people cannot get codes or reset passwords by mail. Set --smtp-url and --smtp-from")
	default:
		if s.config.smtp != nil {
			s.log.Info("mail is configured", "server", s.config.smtp.Server())
		}
		r.Followers = append(r.Followers, s.mailer(master).Follower())
	}
	return r, r.Begin(ctx)
}

// deliver gives the way that codes go to phones; nil where there is none. Developers find them in the log.
func (s *Server) deliver() func(context.Context, user.Delivery) error {
	if !s.config.Development {
		return nil
	}
	return func(ctx context.Context, d user.Delivery) error {
		s.log.InfoContext(ctx, "development: verification code", "user", d.UserID, "by", string(d.By), "to", d.Address, "code", d.Text)
		return nil
	}
}
