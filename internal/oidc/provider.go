// Package oidc is the OpenID Connect provider: it puts the rules of package grant on the wire.
//
//	/oauth/authorize, /oauth/logout   a browser comes by: redirects to the pages, or an error page (browser.go)
//	/oauth/token and the others       programs: RFC 6749 JSON, errors included (server.go)
//
// Requests of programs are decoded and dispatched by github.com/zitadel/oidc. In front of it stands a gate (gate.go) that
// refuses what the library would take: secrets in a query string, parameters sent twice, other methods and media types. What
// belongs to a browser does not go through the library, which knows only JSON errors.
//
// Errors are those of package grant. A reason that OAuth has a word for is that word in upper case (errors.go).
package oidc

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/signet-idm/signet/internal/grant"
)

// Keys signs tokens, and tells everybody how to check them.
type Keys interface {
	grant.Signer
	// KeySet gives the public keys, and how long they may be kept.
	KeySet(ctx context.Context) (jose.JSONWebKeySet, time.Duration, error)
	// Verify reads the claims of a JWT of a type that was signed here, whether or not it has expired.
	Verify(ctx context.Context, typ, token string, into any) error
}

// Config is what the provider needs. ErrorPage may be left out.
type Config struct {
	Grants *grant.Grants
	Keys   Keys

	// ErrorPage shows a person that something is wrong which no application can be told. Nil: plain text.
	ErrorPage func(w http.ResponseWriter, r *http.Request, status int, err error)
}

// Provider is the OpenID Connect provider.
type Provider struct {
	config Config
	grants *grant.Grants
	issuer string
	lib    http.Handler
}

// The paths of the provider.
const (
	authorizePath  = "/oauth/authorize"
	tokenPath      = "/oauth/token"
	introspectPath = "/oauth/introspect"
	revokePath     = "/oauth/revoke"
	userinfoPath   = "/oauth/userinfo"
	devicePath     = "/oauth/device_authorization"
	logoutPath     = "/oauth/logout"
	keysPath       = "/oauth/keys"
	openIDPath     = "/.well-known/openid-configuration"
	oauthPath      = "/.well-known/oauth-authorization-server"
)

// The pages that the provider sends browsers to.
const (
	loginPage  = "/login"  // ?request= of an authorization request
	logoutPage = "/logout" // ?request= of a wish to be signed out
	devicePage = "/device" // ?user_code=
)

// New makes the provider.
func New(config Config) (*Provider, error) {
	if config.Grants == nil || config.Keys == nil {
		return nil, errors.New("oidc: Config.Grants and Config.Keys have to be set")
	}
	if config.ErrorPage == nil {
		config.ErrorPage = func(w http.ResponseWriter, _ *http.Request, status int, _ error) {
			http.Error(w, http.StatusText(status), status)
		}
	}
	p := &Provider{config: config, grants: config.Grants, issuer: config.Grants.Issuer}
	p.lib = op.RegisterServer(&server{Provider: p}, op.Endpoints{
		Token: op.NewEndpoint(tokenPath), Introspection: op.NewEndpoint(introspectPath), Revocation: op.NewEndpoint(revokePath),
		Userinfo: op.NewEndpoint(userinfoPath), DeviceAuthorization: op.NewEndpoint(devicePath), JwksURI: op.NewEndpoint(keysPath),
	}, op.WithServerCORSOptions(nil))
	return p, nil
}

// Handlers are the provider's paths with what serves them.
func (p *Provider) Handlers() map[string]http.Handler {
	post := []string{http.MethodPost}
	get := []string{http.MethodGet, http.MethodHead}
	discovery := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writeJSON(w, http.StatusOK, p.discovery()) })
	return map[string]http.Handler{
		authorizePath:  http.HandlerFunc(p.authorize),
		logoutPath:     http.HandlerFunc(p.logout),
		tokenPath:      &gate{next: p.lib, methods: post, cors: clientOrigins},
		revokePath:     &gate{next: p.lib, methods: post, cors: clientOrigins},
		introspectPath: &gate{next: p.lib, methods: post},
		devicePath:     &gate{next: p.lib, methods: post},
		userinfoPath:   &gate{next: p.lib, methods: []string{http.MethodGet, http.MethodPost}, cors: clientOrigins},
		keysPath:       &gate{next: p.lib, methods: get, cors: everyOrigin, public: true},
		openIDPath:     &gate{next: discovery, methods: get, cors: everyOrigin, public: true},
		oauthPath:      &gate{next: discovery, methods: get, cors: everyOrigin, public: true},
	}
}
