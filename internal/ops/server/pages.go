package server

import (
	written "github.com/signet-idm/signet/docs"
	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/oauth/oidc"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/rpc"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/account"
	"github.com/signet-idm/signet/internal/ui/console"
	"github.com/signet-idm/signet/internal/ui/docs"
	"github.com/signet-idm/signet/internal/ui/login"
	built "github.com/signet-idm/signet/web/console"
)

// newSite puts the OpenID Connect provider, the hosted pages and the console beside the API.
func newSite(b *base, a *areas, api *rpc.Handler, tracer *tracing.Tracer) (*web.Site, *oidc.Provider, error) {
	metrics, err := web.NewMetrics(b.metrics)
	if err != nil {
		return nil, nil, err
	}
	site, err := web.New(web.Config{API: api, TrustedProxies: b.config.proxies, Log: b.log, Metrics: metrics,
		Tracer: tracer, Limits: a.limits.rates})
	if err != nil {
		return nil, nil, err
	}
	shown, err := pages.New(pages.Config{ExternalURL: b.config.external, Log: b.log})
	if err != nil {
		return nil, nil, err
	}
	provider, err := mountProvider(site, shown, a.grants, a.keys)
	if err != nil {
		return nil, nil, err
	}
	browsers := login.Browsers{Sessions: a.sessions, Clock: b.config.Clock}
	mountSignIn(site, shown, browsers, b, a)
	mountAccount(site, shown, browsers, b, a)
	if *b.config.Console {
		mountConsole(site, shown, browsers, b)
	}
	(&docs.Docs{Files: written.Files(), Pages: shown, Elsewhere: b.config.docs}).Mount(site)
	site.HandleLost(login.Lost(shown), api.Owns)
	return site, provider, nil
}

// mountSignIn serves the pages of signing in, registration and invitations.
func mountSignIn(site *web.Site, shown *pages.Pages, browsers login.Browsers, b *base, a *areas) {
	invited := login.InvitationPages{Store: b.store, Invitations: a.invitations, Newcomers: a.newcomers, Pages: shown,
		Browsers: browsers, Providers: true}
	for path, handler := range invited.Handlers() {
		site.Handle(path, handler)
	}
	(&login.Login{Invitations: a.invitations, Store: b.store, Sessions: a.sessions, Grants: a.grants, Pages: shown,
		Browsers: browsers, Clock: b.config.Clock, Master: b.master, Mail: a.mails.sender != nil,
		Federation: a.federation,
		Federated:  a.federated, OwnPages: a.ownPages, Registrations: a.registrations,
		Console: *b.config.Console}).Mount(site)
	(&login.RegistrationPages{Store: b.store, Registrations: a.registrations, Grants: a.grants, Shown: shown,
		Browsers: browsers}).Mount(site)
}

// mountAccount serves the pages about one's own account.
func mountAccount(site *web.Site, shown *pages.Pages, browsers login.Browsers, b *base, a *areas) {
	own := &account.Account{Store: b.store, Sessions: a.sessions, Grants: a.grants, Pages: shown, Browsers: browsers,
		Clock: b.config.Clock, Master: b.master, Mail: a.mails.sender != nil, Deliver: a.mails.deliver,
		Federated: a.federated, Console: *b.config.Console}
	for path, handler := range own.Handlers() {
		site.Handle(path, handler)
	}
}

// mountConsole serves the web console.
func mountConsole(site *web.Site, shown *pages.Pages, browsers login.Browsers, b *base) {
	(&console.Console{Files: built.Files(), Pages: shown, Browsers: browsers,
		Tokens: console.Tokens{Sessions: browsers.Sessions}, Limiter: newStarts(b)}).Mount(site)
}
