package server

import (
	"context"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/oauth/oidc"
)

// beginJobs begins what runs beside the requests.
func (s *Server) beginJobs(ctx context.Context, provider *oidc.Provider) error {
	logouts := &oidc.BackChannel{Provider: provider, Outbound: s.outgoing.client}
	followers, err := newFollowers(ctx, &s.base, logouts.Follower(), s.mails)
	if err != nil {
		return err
	}
	dispatcher := newDispatcher(&s.base, s.webhooks)
	s.stopWork = append(s.stopWork, s.endStreams,
		background(s.traced(dispatcher.Run)),
		background(s.cleaner.Run),
		background(s.traced(followers.Run)), logouts.Stop,
		background(func(ctx context.Context) { s.keys.Run(ctx, s.log) }),
		background(func(ctx context.Context) { s.sessions.AnswerResets(ctx, s.log) }),
		background(func(ctx context.Context) {
			s.invitations.Run(ctx, s.config.Clock, func(err error) {
				s.log.Warn("ending expired invitations failed: the server retries in a minute", "error", err)
			})
		}),
		background(func(ctx context.Context) { s.registrations.Run(ctx, s.log) }),
		background(func(ctx context.Context) { s.counted.Run(ctx, s.log) }),
		background(s.openings.Run),
		background(func(ctx context.Context) { s.sessions.KeepSayingFailures(ctx, s.log) }),
		background(func(ctx context.Context) { s.federation.KeepSayingFailures(ctx) }))
	return s.beginSchedules()
}

// newFollowers are those who follow the log, with a note of where they begin.
func newFollowers(ctx context.Context, b *base, logouts notify.Follower, m mails) (*notify.Runner, error) {
	r := &notify.Runner{Store: b.store, Log: b.log, Clock: b.config.Clock, Followers: []notify.Follower{logouts},
		Meters: b.gauges.followers}
	if m.sender == nil {
		b.log.Warn("mail is not configured: people cannot get codes or reset passwords by mail. " +
			"Set --smtp-url and --smtp-from")
		return r, r.Begin(ctx)
	}
	if b.config.smtp != nil {
		b.log.Info("mail is configured", "server", b.config.smtp.Server())
	}
	r.Followers = append(r.Followers, m.mailer.Follower())
	return r, r.Begin(ctx)
}

// background runs work beside the requests. What it gives back ends the work and waits for that.
func background(work func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(event.InBackground(context.Background()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
