// Package oidc is the OpenID Connect provider: it serves the rules of package oauth as HTTP endpoints.
//
//	/oauth/authorize, /oauth/logout   a browser comes by: redirects to the pages, or an error page (browser.go)
//	/oauth/token and the others       programs: RFC 6749 JSON, errors included (token.go, info.go, discovery.go)
//
// Every endpoint for programs is a function from a request to a body or an error. What the endpoints have in common is
// in endpoint.go: it reads the form, refuses secrets in a query string, repeated parameters, and other methods and
// media types, and writes the answer.
//
// Errors are those of package oauth. A reason that OAuth defines is that OAuth error code in upper case (errors.go).
package oidc

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Keys signs tokens, and tells everybody how to check them.
type Keys interface {
	oauth.Signer
	// KeySet gives the public keys, and how long they may be kept.
	KeySet(ctx context.Context) (jose.JSONWebKeySet, time.Duration, error)
	// Verify reads the claims of a JWT of a type that was signed here, whether or not it has expired.
	Verify(ctx context.Context, typ, token string, into any) error
}

// Config is what the provider needs. ErrorPage and PostBack may be left out.
type Config struct {
	Grants *oauth.Grants
	Keys   Keys

	// ErrorPage shows a person that something is wrong which no application can be told. Nil: plain text.
	ErrorPage func(w http.ResponseWriter, r *http.Request, err error)

	// PostBack shows the page that posts an answer to an application (form_post). Nil: there is none, and a person is
	// told.
	PostBack func(w http.ResponseWriter, r *http.Request, locales string, answer request.Answer) error
}

var errNoPage = errs.Invalid(errs.Violation{Message: "this server has no pages: use another response_mode"})

// Provider is the OpenID Connect provider.
type Provider struct {
	config Config
	grants *oauth.Grants
	issuer string
}

// The paths of the provider.
const (
	authorizePath  = "/oauth/authorize"
	tokenPath      = "/oauth/token"
	introspectPath = "/oauth/introspect"
	revokePath     = "/oauth/revoke"
	userinfoPath   = "/oauth/userinfo"
	devicePath     = "/oauth/device_authorization"
	pushPath       = "/oauth/par"
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
		config.ErrorPage = func(w http.ResponseWriter, _ *http.Request, err error) {
			status := web.AnswerTo(err).Page.Status
			http.Error(w, http.StatusText(status), status)
		}
	}
	if config.PostBack == nil {
		config.PostBack = func(http.ResponseWriter, *http.Request, string, request.Answer) error { return errNoPage }
	}
	return &Provider{config: config, grants: config.Grants, issuer: config.Grants.Issuer}, nil
}

// Handlers are the provider's paths with what serves them.
func (p *Provider) Handlers() map[string]http.Handler {
	post := []string{http.MethodPost}
	get := []string{http.MethodGet, http.MethodHead}
	program := func(counted web.Counted, e *endpoint) http.Handler {
		e.refusals = p.grants.Refusals
		return web.Entry{Handler: e, Counted: counted, Refuse: e.refuseEarly}
	}
	discovery := program(web.AsStatic, &endpoint{handle: p.discovery, methods: get, cors: everyOrigin, public: true})
	return map[string]http.Handler{
		authorizePath: http.HandlerFunc(p.authorize),
		logoutPath:    http.HandlerFunc(p.logout),
		tokenPath: program(web.AsProgram,
			&endpoint{handle: p.token, methods: post, cors: clientOrigins, challenge: basicChallenge}),
		revokePath: program(web.AsProgram,
			&endpoint{handle: p.revoke, methods: post, cors: clientOrigins, challenge: basicChallenge}),
		introspectPath: program(web.AsProgram,
			&endpoint{handle: p.introspect, methods: post, challenge: basicChallenge}),
		devicePath: program(web.AsProgram,
			&endpoint{handle: p.deviceAuthorization, methods: post, challenge: basicChallenge}),
		pushPath: program(web.AsProgram,
			&endpoint{handle: p.push, methods: post, cors: clientOrigins, challenge: basicChallenge, creates: true}),
		userinfoPath: program(web.WithToken,
			&endpoint{handle: p.userInfo, methods: []string{http.MethodGet, http.MethodPost}, cors: clientOrigins,
				challenge: bearerChallenge}),
		keysPath: program(web.AsStatic, &endpoint{handle: p.keys, methods: get, cors: everyOrigin, public: true}),

		openIDPath: discovery, openIDPath + "/": discovery,
		oauthPath: discovery, oauthPath + "/": discovery,
	}
}
