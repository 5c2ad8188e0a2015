// Package server builds a running Signet from its parts: it opens the data, does the first start, mounts the API,
// listens, and stops gracefully.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/tracing/otlp"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/ops/backups"
	"github.com/signet-idm/signet/internal/ops/verification"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/rpc"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Server is Signet, opened and ready to serve.
type Server struct {
	base
	areas
	dir      *datadir.Dir
	given    secret.MasterKey // by the operator, to check backups with
	front    *web.Front
	stopping atomic.Bool
	traces   *otlp.Exporter // nil: nothing is traced

	backups      *backups.Schedule      // nil: none are scheduled
	verification *verification.Schedule // nil: none is scheduled

	stopWork   []func() // ends what runs beside the requests
	endStreams func()

	listener        net.Listener
	metricsListener net.Listener // nil: no metrics

	// FirstAdmin is set when this was the first start.
	FirstAdmin     *datadir.FirstAdmin
	FirstAdminPath string
}

// base is what every area of a server is made on.
type base struct {
	config     *settled
	log        *slog.Logger
	metrics    *prometheus.Registry
	gauges     *gauges
	store      *store.Store
	master     secret.MasterKey // the root key of the store
	defaultOrg string
}

// areas are what the API, the pages and the jobs work with. Each has its constructor in a file of its name.
type areas struct {
	limits limits
	setup  setup.Setup
	signingIn
	joining
	outgoing   *outgoing
	keys       *signing.Keys
	mails      mails
	webhooks   webhooks
	federation *upstream.Federation
	grants     *oauth.Grants
	cleaner    *lifecycle.Cleaner
}

// Open opens the data, does the first start where there is nothing yet, and builds the API. Close it in the end.
//
// Everything that can fail without touching the data comes first, the ports included: an installation whose first
// administrator is told a URL that somebody else serves must not come to be.
func Open(ctx context.Context, c Config, log *slog.Logger) (_ *Server, err error) {
	config, err := c.settle()
	if err != nil {
		return nil, err
	}
	s := &Server{base: base{config: config, log: log, metrics: prometheus.NewRegistry()}}
	b := &s.base
	b.gauges = newGauges(config.Clock)
	go rpc.ReadAhead("signet.v1")
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.openDirectory(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	if s.traces, err = newTraces(b); err != nil {
		return nil, err
	}
	if s.master, err = s.openStore(ctx, true, false); err != nil {
		return nil, err
	}
	s.limits = newLimits(b)
	s.setup = setup.Setup{Store: s.store, Hasher: s.limits.hasher, DomainSuffix: config.DomainSuffix}
	if s.defaultOrg, err = s.firstStart(ctx, s.setup); err != nil {
		return nil, err
	}
	s.outgoing = newOutgoing(b)
	s.keys = newKeys(ctx, b)
	s.mails = newMails(b)
	if s.webhooks, err = newWebhooks(b, s.outgoing); err != nil {
		return nil, err
	}
	if s.signingIn, err = newSignIn(b, s.limits.hasher); err != nil {
		return nil, err
	}
	s.federation = newFederation(b, s.outgoing, s.keys, s.counted)
	s.joining = newJoining(b, s.sessions, s.mails)
	s.grants = newGrants(b, s.sessions, s.keys, s.outgoing.keySets, s.federation)
	s.cleaner = lifecycle.NewCleaner(s.store, log)
	api, err := newAPI(b, &s.areas, s.ready, s.details)
	if err != nil {
		return nil, err
	}
	s.endStreams = api.EndStreams
	site, provider, err := newSite(b, &s.areas, api, s.tracer())
	if err != nil {
		return nil, err
	}
	s.front = &web.Front{Next: site, TrustedProxies: config.proxies, Log: log}
	if err := s.registerMetrics(api.Slots()); err != nil {
		return nil, err
	}
	if err := s.scheduleBackups(); err != nil {
		return nil, err
	}
	return s, s.beginJobs(ctx, provider)
}

// Close closes the database and gives the ports and the data directory back.
func (s *Server) Close() error {
	for _, l := range []net.Listener{s.listener, s.metricsListener} {
		if l != nil {
			_ = l.Close() // Serve has closed it already
		}
	}
	for _, stop := range s.stopWork {
		stop()
	}
	if s.outgoing != nil {
		s.outgoing.close()
	}
	if s.sessions != nil {
		s.sessions.Renewals.Stop()
	}
	var err error
	if s.backups != nil {
		err = s.backups.Close()
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	s.traces.Stop()
	if s.dir != nil {
		err = errors.Join(err, s.dir.Close())
	}
	return err
}

// Grants is what the hosted pages ask for.
func (s *Server) Grants() *oauth.Grants { return s.grants }

// Handler serves the API and the OpenID Connect provider.
func (s *Server) Handler() http.Handler { return s.front }

// Store is where the data is, for tests that need a state no operation leads to.
func (s *Server) Store() *store.Store { return s.store }

// URL under which the world reaches the server.
func (s *Server) URL() string { return s.config.ExternalURL }

// ConsoleURL is where people run the installation in a browser; empty where the console is off.
func (s *Server) ConsoleURL() string {
	if !*s.config.Console {
		return ""
	}
	return s.config.ExternalURL + pages.PathConsole
}

// Addr is what the server listens on; a port of 0 has become a real one.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// MetricsAddr is where the metrics are; nil where they are off.
func (s *Server) MetricsAddr() net.Addr {
	if s.metricsListener == nil {
		return nil
	}
	return s.metricsListener.Addr()
}
