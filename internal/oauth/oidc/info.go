package oidc

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/transport/web"
)

// keys serves the public keys.
func (p *Provider) keys(r *endpointRequest) (any, error) {
	set, life, err := p.config.Keys.KeySet(r.Context())
	if err != nil {
		return nil, err
	}
	r.answer.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(life.Seconds())))
	return set, nil
}

// introspect serves the introspection endpoint, for clients that prove who they are.
func (p *Provider) introspect(r *endpointRequest) (any, error) {
	if r.Header.Get("Authorization") == "" && r.param("client_secret") == "" && r.param("client_assertion") == "" {
		return nil, oauth.ErrInvalidClient
	}
	said, err := r.credentials()
	if err != nil {
		return nil, err
	}
	if said.Secret == "" && said.Assertion == "" {
		return nil, badClient("client must be authenticated")
	}
	if err := r.need("token"); err != nil {
		return nil, err
	}
	var asking *oauth.Client
	b, err := p.grants.Introspect(r.Context(), r.param("token"), func() (_ *oauth.Client, err error) {
		asking, err = p.authenticate(r, said)
		return asking, err
	})
	if err != nil {
		return nil, err
	}
	if b == nil {
		return map[string]any{"active": false}, nil
	}
	about, err := p.grants.ClaimsOf(r.Context(), b, asking)
	if err != nil {
		return nil, err
	}
	return p.grants.Introspection(b, about).Values, nil
}

var (
	errNoToken    = invalid("the request has no access token: send it as a Bearer token in the header authorization").WithStatus(http.StatusUnauthorized)
	errToken      = errs.New(errs.Unauthenticated, InvalidToken, "the access token is not valid any more")
	errTokenScope = errs.New(errs.PermissionDenied, InsufficientScope,
		"the access token does not have the scope openid")
)

// userInfo serves the user info endpoint.
func (p *Provider) userInfo(r *endpointRequest) (any, error) {
	token := r.bearerToken()
	if token == "" {
		return nil, errNoToken
	}
	b, err := p.grants.Bearer(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, r.refuseToken(errToken)
	}
	if err := web.CountCaller(r.Context(), b.Caller.UserID, b.Caller.OrgID); err != nil {
		return nil, err
	}
	if r.origin != "" {
		if a, err := app.Kind.Read(r.Context(), p.grants.Store, b.Token.Client); err == nil && a != nil {
			r.allowOrigin(&oauth.Client{App: a})
		}
	}
	if !has(b.Given.Scopes, claimset.OpenID) {
		return nil, r.refuseToken(errTokenScope)
	}
	claims, err := p.grants.ClaimsOf(r.Context(), b, nil)
	return claims.Values, err
}

// bearerToken gives the access token, from the header or else from the form; empty for none.
func (r *endpointRequest) bearerToken() string {
	const scheme = "Bearer "
	if h := r.Header.Get("Authorization"); len(h) >= len(scheme) && strings.EqualFold(h[:len(scheme)], scheme) {
		return h[len(scheme):]
	}
	return r.param("access_token")
}

// refuseToken refuses an access token in the way of RFC 6750: the header says why.
func (r *endpointRequest) refuseToken(err *errs.Error) error {
	answer := refusalOf(err)
	r.answer.Set("Www-Authenticate",
		bearerChallenge+` error="`+answer.Error+`", error_description="`+answer.Description+`"`)
	return err
}
