// Package server makes a running Signet out of its parts: it opens the data, does the first start, mounts the API,
// listens, and stops gracefully.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/gen/openapi"
	"github.com/signet-idm/signet/internal/api"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/tracing/otlp"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/life/registration"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/oidc"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/ops/backups"
	"github.com/signet-idm/signet/internal/ops/verification"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/rpc"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/account"
	"github.com/signet-idm/signet/internal/ui/console"
	"github.com/signet-idm/signet/internal/ui/login"
	built "github.com/signet-idm/signet/web/console"
)

// Limits of a connection. A request has 30 s (package rpc); these are for clients that are slow on purpose.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 35 * time.Second
	writeTimeout      = 40 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	maxStreams        = 250
	stopTimeout       = 15 * time.Second

	// To one host, where many organizations may have what is called. No fewer than can be on their way at once, which
	// organizations share: an organization that stalls there must not keep others from it.
	webhookConns  = 640
	outboundConns = 256
)

// Server is Signet, opened and ready to serve.
type Server struct {
	config     *settled
	log        *slog.Logger
	dir        *datadir.Dir
	store      *store.Store
	given      secret.MasterKey // by the operator, to check backups with
	handler    http.Handler
	front      *web.Front // is handler
	stopping   atomic.Bool
	grants     *oauth.Grants
	federation *upstream.Federation
	logouts    *oidc.BackChannel
	metrics    *prometheus.Registry
	gauges     *gauges
	traces     *otlp.Exporter // nil: nothing is traced

	renewals session.Renewals
	outbound *outbound.Client  // the one way to addresses that others have chosen
	calls    *fairqueue.Places // of it and of DNS that are waited for at once
	webhooks *webhook.Webhooks
	keys     *signing.Keys
	backups  *backups.Schedule // nil: none are scheduled

	verification *verification.Schedule // nil: none is scheduled

	stopWork   []func() // ends what runs beside the requests
	endStreams func()

	listener        net.Listener
	metricsListener net.Listener // nil: no metrics

	// FirstAdmin is set when this was the first start.
	FirstAdmin     *datadir.FirstAdmin
	FirstAdminPath string
	invitations    invitation.Invitations
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
	s := &Server{config: config, log: log, metrics: prometheus.NewRegistry(), gauges: newGauges(config.Clock)}
	go rpc.ReadAhead("signet.v1")
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.dir, err = datadir.Open(c.DataDir, true); err != nil {
		return nil, err
	}
	if err := s.dir.Lock(); err != nil {
		return nil, err
	}
	if err := s.checkBackups(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	if config.traces != nil {
		if s.traces, err = otlp.Start(config.traces, config.Version, log, s.metrics); err != nil {
			return nil, err
		}
	}
	master, err := s.openStore(ctx, true, false)
	if err != nil {
		return nil, err
	}
	bulk := rpc.NewBulk()
	hasher := s.gauges.timed(config.Hasher).Before(bulk, rpc.BulkPerProcessor) // each takes one processor
	setUp := setup.Setup{Store: s.store, Hasher: hasher, DomainSuffix: config.DomainSuffix}
	defaultOrg, err := s.firstStart(ctx, setUp)
	if err != nil {
		return nil, err
	}
	s.outbound, s.calls = outbound.New(outbound.Config{Allow: config.outbound, ConnsPerHost: outboundConns}), outbound.NewCalls()
	s.webhooks = &webhook.Webhooks{Store: s.store, Root: master, Clock: config.Clock, Calls: s.calls,
		Outbound: outbound.New(outbound.Config{Allow: config.outbound, Timeout: webhook.SendTime, MaxRedirects: -1, ConnsPerHost: webhookConns})}
	s.keys = signing.New(s.store, master, config.Clock)
	if err := s.keys.Tend(ctx); err != nil { // tried again in the background
		log.Warn("updating the signing keys", "error", err)
	}
	counted := tally.New(s.store, config.Clock, session.SignInThrottled)
	keySets := outbound.NewKeySets(s.outbound, config.Clock, s.calls)
	s.federation = upstream.New(upstream.Config{Client: s.outbound, Keys: keySets, Calls: s.calls, Master: master, Store: s.store, Clock: config.Clock,
		ExternalURL: config.ExternalURL, Signing: s.keys, Failed: func(org string) { counted.Failed(org, tally.Provider) }, Failing: func(err error) { log.Warn("recording a failed sign-in through an identity provider", "error", err) }})
	factors, err := factor.New(master, config.ExternalURL)
	if err != nil {
		return nil, err
	}
	sessions := &session.Sessions{Store: s.store, Factors: factors, Hasher: hasher, Master: master, Clock: config.Clock, DefaultOrg: defaultOrg, EmailsPerOrganization: config.EmailsPerOrganization,
		Standings: &session.Standings{}, Renewals: &s.renewals, Tally: counted, Audience: config.ExternalURL, NetworkLimiter: &ratelimit.NetworkLimiter{PerMinute: config.StartsPerMinute, Clock: config.Clock}}
	s.invitations = invitation.Invitations{Store: s.store, Master: master, DefaultOrg: defaultOrg, ExternalURL: config.ExternalURL, Mail: s.sender() != nil}
	registering := registration.New(sessions, s.registrationMailer(master))
	cleaner := lifecycle.NewCleaner(s.store, log)
	s.grants = &oauth.Grants{Store: s.store, Sessions: sessions, Master: master, Clock: config.Clock, Signer: s.keys, KeySets: keySets, Issuer: config.ExternalURL}
	var alias *rpc.Alias
	if config.ZitadelV1 {
		alias = zitadelV1
	}
	counts, err := webhook.NewMetrics(s.metrics)
	if err != nil {
		return nil, err
	}
	handler, err := rpc.New(rpc.Config{
		Alias: alias,
		Services: []rpc.Service{
			{Name: "signet.v1.UserService", Impl: api.Users{Store: s.store, Hasher: hasher, Sessions: sessions, Master: master, Clock: config.Clock, Mail: s.sender() != nil, Deliver: s.deliver()}},
			{Name: "signet.v1.OrganizationService", Impl: api.Organizations{Setup: setUp, Master: master, Clock: config.Clock, Resolver: sharedResolver{config.Resolver, s.calls}, Cleaner: cleaner}},
			{Name: "signet.v1.IdentityProviderService", Impl: api.IdentityProviders{Store: s.store, Master: master, Clock: config.Clock, Checker: s.federation}},
			{Name: "signet.v1.SessionService", Impl: api.Sessions{Sessions: sessions, Master: master, OwnPages: s.ownPages(sessions)}},
			{Name: "signet.v1.MemberService", Impl: api.Members{Store: s.store, Master: master, Clock: config.Clock}},
			{Name: "signet.v1.GroupService", Impl: api.Groups{Store: s.store, Master: master, Clock: config.Clock}},
			{Name: "signet.v1.NameService", Impl: api.Names{Store: s.store, Clock: config.Clock}},
			{Name: "signet.v1.PolicyService", Impl: api.Policies{Store: s.store, Sessions: federated.Sessions{Sessions: sessions}, Mail: s.sender() != nil}},
			{Name: "signet.v1.CredentialService", Impl: api.Credentials{Store: s.store, Sessions: sessions, Master: master}},
			{Name: "signet.v1.ApplicationService", Impl: api.Applications{Store: s.store, Master: master, Clock: config.Clock}},
			{Name: "signet.v1.WebhookService", Impl: api.Webhooks{Webhooks: s.webhooks}},
			{Name: "signet.v1.SigningKeyService", Impl: api.SigningKeys{Keys: s.keys, Clock: config.Clock}},
			{Name: "signet.v1.FactorService", Impl: api.Factors{Store: s.store, Sessions: sessions}},
			{Name: "signet.v1.RememberedDeviceService", Impl: api.RememberedDevices{Sessions: sessions, Master: master}},
			{Name: "signet.v1.LinkService", Impl: api.Links{Store: s.store, Sessions: federated.Sessions{Sessions: sessions}}},
			{Name: "signet.v1.ProjectService", Impl: api.Projects{Store: s.store, Master: master, Clock: config.Clock, Cleaner: cleaner}},
			{Name: "signet.v1.MetadataService", Impl: api.Metadata{Store: s.store}},
			{Name: "signet.v1.InvitationService", Impl: api.Invitations{Invitations: s.invitations, Newcomers: newcomer.Newcomers{Sessions: sessions}, Clock: config.Clock}},
			{Name: "signet.v1.RegistrationService", Impl: api.Registrations{Registrations: registering}},
			{Name: "signet.v1.AccessService", Impl: api.NewAccess(s.store, config.Clock, defaultOrg)},
			{Name: "signet.v1.StatusService", Impl: s.status(counts)},
			{Name: "signet.v1.SignInTrialService", Impl: api.SignInTrials{Grants: s.grants}},
			{Name: "signet.v1.SignInCountService", Impl: api.SignInCounts{Tally: counted}},
			{Name: "signet.v1.EventService", Impl: api.Events{Journal: journal.New(s.store, master), Master: master}},
		},
		Authenticate: console.Tokens{Sessions: sessions}.Authenticate,
		Proven:       sessions.Proven,
		Ahead:        s.store.Ahead,
		Organization: func(ctx context.Context, caller *access.Caller, id string, p access.Permission) error {
			return org.Enter(ctx, s.store, caller, id, p, config.Clock())
		},
		Check:       api.Checker{Clock: config.Clock}.Check,
		CORSOrigins: config.CORSOrigins,
		Bulk:        bulk,
		Log:         log,
		OpenAPI:     openapi.Document,
		Ready:       s.ready,
		Details:     s.details,
	})
	if err != nil {
		return nil, err
	}
	s.endStreams = handler.EndStreams
	if err := s.mount(handler, sessions, registering, master); err != nil {
		return nil, err
	}
	if err := s.registerMetrics(hasher, counted, handler.Places(), &s.front.Budget); err != nil {
		return nil, err
	}
	if err := s.scheduleBackups(defaultOrg); err != nil {
		return nil, err
	}
	followers, err := s.followers(ctx, master)
	if err != nil {
		return nil, err
	}
	dispatcher := &webhook.Dispatcher{Webhooks: s.webhooks, Log: log, Metrics: counts, Meters: s.gauges.followers, Lease: config.WebhookLease, FirstPause: config.WebhookRetry}
	s.stopWork = append(s.stopWork, handler.EndStreams, background(s.traced(dispatcher.Run)), background(cleaner.Run), background(s.traced(followers.Run)), s.logouts.Stop,
		background(func(ctx context.Context) { s.keys.Run(ctx, log) }), background(func(ctx context.Context) { sessions.AnswerResets(ctx, log) }),
		background(func(ctx context.Context) {
			s.invitations.Run(ctx, config.Clock, func(err error) {
				log.Warn("ending expired invitations failed: the server retries in a minute", "error", err)
			})
		}),
		background(func(ctx context.Context) { registering.Run(ctx, log) }), background(func(ctx context.Context) { counted.Run(ctx, log) }))
	return s, s.beginSchedules()
}

// status tells how the node and the installation are doing.
func (s *Server) status(webhooks *webhook.Metrics) api.Status {
	out := api.Status{Version: s.config.Version, Engine: "SQLite", Started: s.config.Clock(), Clock: s.config.Clock, Log: s.store, Followers: []string{oidc.FollowerName},
		Webhooks: webhooks, Mail: s.sender() != nil, Keys: s.keys}
	if s.config.Database != "" {
		out.Engine = "PostgreSQL"
	}
	if out.Mail {
		out.Followers = append(out.Followers, mail.FollowerName)
	}
	return out
}

// ownPages signs people in for applications with pages of their own.
func (s *Server) ownPages(sessions *session.Sessions) ownpage.Pages {
	return ownpage.Pages{Sessions: federated.Sessions{Sessions: sessions}, ExternalURL: s.config.ExternalURL}
}

// mount puts the OpenID Connect provider and the hosted pages beside the API.
func (s *Server) mount(api *rpc.Handler, sessions *session.Sessions, registering *registration.Registrations, master secret.MasterKey) error {
	metrics, err := web.NewMetrics(s.metrics)
	if err != nil {
		return err
	}
	site, err := web.New(web.Config{API: api, TrustedProxies: s.config.proxies, Log: s.log, Metrics: metrics, Tracer: s.tracer(),
		Limits: ratelimit.NewLimits(s.config.caller, s.config.organization, s.config.network, s.config.public, s.config.Clock)})
	if err != nil {
		return err
	}
	s.front = &web.Front{Next: site, TrustedProxies: s.config.proxies, Log: s.log}
	s.handler = s.front
	shown, err := pages.New(pages.Config{ExternalURL: s.config.external, Log: s.log})
	if err != nil {
		return err
	}
	provider, err := oidc.New(oidc.Config{Grants: s.grants, Keys: s.keys, ErrorPage: login.ErrorPage(shown),
		PostBack: func(w http.ResponseWriter, r *http.Request, locales string, answer request.Answer) error {
			return login.PostBack(shown, w, r, pages.Frame{Locales: locales}, answer)
		}})
	if err != nil {
		return err
	}
	s.logouts = &oidc.BackChannel{Provider: provider, Outbound: s.outbound}
	for path, handler := range provider.Handlers() {
		site.Handle(path, handler)
	}
	browsers := login.Browsers{Sessions: sessions, Clock: s.config.Clock}
	joining := login.InvitationPages{Store: s.store, Invitations: s.invitations, Newcomers: newcomer.Newcomers{Sessions: sessions}, Pages: shown, Browsers: browsers, Providers: s.federation != nil}
	for path, handler := range joining.Handlers() {
		site.Handle(path, handler)
	}
	(&login.Login{Invited: joining.Through, Store: s.store, Sessions: sessions, Grants: s.grants, Pages: shown, Browsers: browsers, Clock: s.config.Clock, Master: master, Mail: s.sender() != nil,
		Federation: s.federation, Federated: federated.Sessions{Sessions: sessions}, OwnPages: s.ownPages(sessions), Registrations: registering, Console: *s.config.Console}).Mount(site)
	if *s.config.Console {
		(&console.Console{Files: built.Files(), Pages: shown, Browsers: browsers, Tokens: console.Tokens{Sessions: sessions},
			Limiter: &ratelimit.NetworkLimiter{PerMinute: s.config.StartsPerMinute, Clock: s.config.Clock}}).Mount(site)
	}
	(&login.RegistrationPages{Store: s.store, Registrations: registering, Grants: s.grants, Shown: shown, Browsers: browsers}).Mount(site)
	site.HandleLost(login.Lost(shown), api.Owns)
	own := &account.Account{Store: s.store, Sessions: sessions, Grants: s.grants, Pages: shown, Browsers: browsers, Clock: s.config.Clock,
		Master: master, Mail: s.sender() != nil, Deliver: s.deliver(), Federated: federated.Sessions{Sessions: sessions}}
	for path, handler := range own.Handlers() {
		site.Handle(path, handler)
	}
	return nil
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

func (s *Server) listen() (err error) {
	s.listener, s.metricsListener = s.config.Listener, s.config.MetricsListener
	if s.listener == nil {
		if s.listener, err = net.Listen("tcp", s.config.Listen); err != nil {
			return fmt.Errorf("--listen %s: %w", s.config.Listen, explainListen(err))
		}
	}
	s.config.listening(s.listener.Addr())
	if s.metricsListener != nil || s.config.MetricsListen == "" {
		return nil
	}
	if s.metricsListener, err = net.Listen("tcp", s.config.MetricsListen); err != nil {
		return fmt.Errorf("--metrics-listen %s: %w", s.config.MetricsListen, explainListen(err))
	}
	return nil
}

// explainListen says what to do about an address that cannot be had.
func explainListen(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return errors.New("another program uses this address: stop it, or choose another address")
	}
	return err
}

// openStore finds the master key and opens the database with it, and gives the root key. Only a start may find the
// database empty.
func (s *Server) openStore(ctx context.Context, starting, readOnly bool) (secret.MasterKey, error) {
	var none secret.MasterKey
	database := s.config.Database
	if database == "" {
		path, err := s.dir.Database()
		if err != nil {
			return none, err
		}
		database = path
		if readOnly {
			err = s.dir.Whole()
		} else {
			err = s.dir.Mend(ctx)
		}
		if err != nil {
			return none, err
		}
	}
	options := store.Options{Database: database, Kinds: model.Kinds, Log: s.log, ReadOnly: readOnly, Clock: s.config.Clock, Traced: s.traces != nil}
	handedOver := starting && s.handedOver() // before the look: another node's first start writes it only after the database is filled
	look, err := s.lookAt(ctx, options, starting)
	if err != nil {
		return none, err
	}
	defer look.Close()
	filled := look.Filled
	if !filled && !starting {
		return none, ErrNoInstallation
	}
	if look.MovedTo != "" && !readOnly {
		return none, goneTo(look.MovedTo)
	}
	if !filled {
		if err := s.besideOthers(handedOver); err != nil {
			return none, err
		}
	}
	options.Look = look
	if starting {
		s.rememberLog(&options, filled)
		options.Stats = s.gauges.store
	}
	if options.Master, err = s.masterKey(ctx, database, filled); err != nil {
		return none, err
	}
	if s.store, _, err = store.Open(ctx, options); err != nil {
		return none, err
	}
	s.given = options.Master
	return s.store.RootKey(), nil
}

// firstStart creates the installation where there is none, and gives the default organization.
func (s *Server) firstStart(ctx context.Context, setUp setup.Setup) (defaultOrg string, err error) {
	path := s.dir.FirstAdminPath(s.config.FirstAdminFile)
	handedOver := s.handedOver()
	inst, err := installation.Read(ctx, s.store)
	if err != nil {
		return "", err
	}
	if inst == nil {
		if err := s.besideOthers(handedOver); err != nil { // a start that was cut off has left an empty database
			return "", err
		}
		var file datadir.FirstAdmin
		_, err := setUp.First(ctx, func(f setup.FirstAdmin) error {
			file = datadir.FirstAdmin{URL: s.config.ExternalURL, OrgID: f.OrgID, UserID: f.UserID, LoginName: f.LoginName,
				Password: f.Password, ServiceUserID: f.ServiceUserID, Token: f.Token}
			return datadir.PrepareFirstAdmin(path, file)
		})
		switch {
		case errors.Is(err, setup.ErrAlreadySetUp): // another node was faster, and has the file
		case err != nil:
			return "", fmt.Errorf("first start: %w", err)
		default:
			s.FirstAdmin, s.FirstAdminPath = &file, path
		}
		if inst, err = installation.Read(ctx, s.store); err != nil {
			return "", err
		}
	}
	return inst.Data.DefaultOrg, datadir.PublishFirstAdmin(path, inst.Data.DefaultOrg)
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
	if s.outbound != nil {
		s.outbound.Close()
		s.webhooks.Outbound.Close()
	}
	s.renewals.Stop()
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
func (s *Server) Handler() http.Handler { return s.handler }

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

// Serve answers requests until ctx ends, then stops, see stop. ready is called once, when a request would
// be answered.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	main := NewHTTPServer(s.handler, s.log)
	servers := []*http.Server{main}
	failed := make(chan error, 2)
	listening := newLastCalls(s.listener)
	if s.config.certificate != nil {
		main.TLSConfig.Certificates = []tls.Certificate{*s.config.certificate}
		go func() { failed <- main.ServeTLS(&accepting{Listener: listening, log: s.log}, "", "") }()
	} else {
		go func() { failed <- main.Serve(readingAhead{&accepting{Listener: listening, log: s.log}}) }()
	}
	if s.metricsListener != nil {
		side := NewHTTPServer(&web.Front{Next: s.metricsHandler(), Log: s.log}, s.log)
		servers = append(servers, side)
		go func() { failed <- side.Serve(&accepting{Listener: s.metricsListener, log: s.log}) }()
	}
	if ready != nil {
		ready()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.stop(servers, listening)
	return nil
}

// NewHTTPServer makes a server with our limits for HTTP/1.1 and HTTP/2, with and without TLS.
func NewHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols: &http.Protocols{}, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ConnContext: web.ConnContext,
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server
}
