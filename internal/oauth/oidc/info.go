package oidc

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/dpop"
	"github.com/signet-idm/signet/internal/signin/session"
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
	token, scheme := r.accessToken()
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
	if b.Given.Key != "" || scheme != bearerChallenge { // behind the origin: pages read the nonce of a refusal
		if err := p.proveToken(r, b, token, scheme); err != nil {
			return nil, err
		}
	}
	if !has(b.Given.Scopes, claimset.OpenID) {
		return nil, r.refuseToken(errTokenScope)
	}
	claims, err := p.grants.ClaimsOf(r.Context(), b, nil)
	return claims.Values, err
}

// proveToken judges the proof that comes with an access token, if the token is bound to a key. Errors: those of an
// access token that is sent in a wrong way, for a 401.
func (p *Provider) proveToken(r *endpointRequest, b *session.Bearer, token, scheme string) error {
	switch {
	case b.Given.Key == "":
		return r.refuseToken(errs.New(errs.Unauthenticated, InvalidToken, access.ErrNotBound.Message))
	case scheme != dpopChallenge:
		return r.refuseFor(dpopChallenge, errs.New(errs.Unauthenticated, InvalidToken, access.ErrBound.Message))
	}
	r.answer.Set(nonceHeader, p.grants.Nonce())
	err := p.grants.ProveToken(r.Context(), r.proven(), token, b.Given.Key, true)
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.Unauthenticated {
		return r.refuseFor(dpopChallenge, e.WithStatus(http.StatusUnauthorized))
	}
	return err
}

// accessToken gives the access token with the scheme that it came by, from the header or else from the form; empty for
// none.
func (r *endpointRequest) accessToken() (token, scheme string) {
	h := r.Header.Get("Authorization")
	for _, scheme := range []string{bearerChallenge, dpopChallenge} {
		if name, token, found := strings.Cut(h, " "); found && strings.EqualFold(name, scheme) {
			return token, scheme
		}
	}
	return r.param("access_token"), bearerChallenge
}

// refuseToken refuses an access token in the way of RFC 6750: the header says why.
func (r *endpointRequest) refuseToken(err *errs.Error) error {
	return r.refuseFor(bearerChallenge, err)
}

// refuseFor is refuseToken for a scheme. That of bound tokens names its algorithms (RFC 9449, section 7.1).
func (r *endpointRequest) refuseFor(scheme string, err *errs.Error) error {
	answer := refusalOf(err)
	challenge := scheme + ` error="` + answer.Error + `", error_description="` + answer.Description + `"`
	if scheme == dpopChallenge {
		challenge += `, algs="` + strings.Join(proofAlgorithms(), " ") + `"`
	}
	r.answer.Set("Www-Authenticate", challenge)
	return err
}

// proofAlgorithms are those of proofs, by their names.
func proofAlgorithms() (names []string) {
	for _, a := range dpop.Algorithms {
		names = append(names, string(a))
	}
	return names
}
