package server

import (
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// signingIn is how people and programs say who they are.
type signingIn struct {
	sessions  *session.Sessions
	federated federated.Sessions // those that began at an identity provider
	newcomers newcomer.Newcomers
	ownPages  ownpage.Pages // of applications
	counted   *tally.Tally
	openings  *session.Openings // of people, by support
}

func newSignIn(b *base, hasher *secret.Hasher) (s signingIn, err error) {
	c := b.config
	factors, err := factor.New(b.master, c.ExternalURL)
	if err != nil {
		return s, err
	}
	s.counted = tally.New(b.store, c.Clock, session.SignInThrottled)
	s.openings = session.NewOpenings(b.store, c.Clock, b.log)
	s.sessions = &session.Sessions{
		Store: b.store, Factors: factors, Hasher: hasher, Master: b.master, Clock: c.Clock, DefaultOrg: b.defaultOrg,
		EmailsPerOrganization: c.EmailsPerOrganization, Standings: &session.Standings{}, Renewals: &session.Renewals{},
		Tally: s.counted, Unsaid: &session.Unsaid{}, Audience: c.ExternalURL, NetworkLimiter: newStarts(b),
	}
	s.federated = federated.Sessions{Sessions: s.sessions}
	s.newcomers = newcomer.Newcomers{Sessions: s.sessions}
	s.ownPages = ownpage.Pages{Sessions: s.federated, ExternalURL: c.ExternalURL}
	return s, nil
}
