package oidc

import (
	"errors"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
)

// The grant types. Those that applications can be registered for are in package app.
const (
	authorizationCode = string(app.AuthorizationCode)
	refreshToken      = string(app.RefreshToken)
	deviceCode        = string(app.DeviceCode)
	clientCredentials = "client_credentials"
	jwtBearer         = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	tokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// grantTypes are those that there are.
var grantTypes = []string{authorizationCode, refreshToken, clientCredentials, jwtBearer, deviceCode}

// tokenAnswer is the answer of RFC 6749, section 5.1.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	RefreshToken string `json:"refresh_token,omitempty"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	IDToken      string `json:"id_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
}

// token serves the token endpoint.
func (p *Provider) token(r *endpointRequest) (any, error) {
	if err := r.need("grant_type"); err != nil {
		return nil, err
	}
	grantType := r.param("grant_type")
	// Token exchange is known, but nobody can be registered for it.
	if grantType != tokenExchange && !slices.Contains(grantTypes, grantType) {
		return nil, errs.New(errs.InvalidArgument, UnsupportedGrantType,
			"this grant_type is not supported: use one of "+strings.Join(grantTypes, ", "))
	}
	var c *oauth.Client
	if grantType != jwtBearer { // there the assertion tells who asks
		if err := p.nonceFirst(r); err != nil {
			return nil, err
		}
		var err error
		if c, err = p.client(r); err != nil {
			return nil, err
		}
	}
	key, err := p.proveKey(r, c)
	if err != nil {
		return nil, err
	}
	t, err := p.issue(r, c, key, grantType)
	if err != nil {
		return nil, err
	}
	return &tokenAnswer{
		AccessToken:  t.Access,
		TokenType:    oauth.TokenType(t.Key),
		RefreshToken: t.Refresh,
		ExpiresIn:    int64(t.Life.Seconds()),
		IDToken:      t.IDToken,
		Scope:        strings.Join(t.Scopes, " "),
	}, nil
}

// nonceFirst refuses a proof that needs another nonce before an assertion is used up: the client comes again with both.
func (p *Provider) nonceFirst(r *endpointRequest) error {
	if r.param("client_assertion") == "" || len(r.proven().Proofs) == 0 {
		return nil
	}
	if _, err := p.proveKey(r, nil); errors.Is(err, oauth.ErrNonceNeeded) {
		return err
	}
	return nil
}

// proveKey notes which key a request proves to have, and says what goes into the next proof.
func (p *Provider) proveKey(r *endpointRequest, c *oauth.Client) (*oauth.Key, error) {
	proven := r.proven()
	if len(proven.Proofs) > 0 {
		r.answer.Set(nonceHeader, p.grants.Nonce())
	}
	key, err := p.grants.ProveKey(c, proven)
	if c != nil {
		c.Key = key
	}
	return key, err
}

// issue gives a client the tokens of a grant. An assertion tells who asks by itself, so only then the key stands alone.
func (p *Provider) issue(r *endpointRequest, c *oauth.Client, key *oauth.Key, grantType string) (*oauth.Tokens, error) {
	ctx := r.Context()
	switch grantType {
	case authorizationCode:
		if err := r.need("code", "redirect_uri"); err != nil {
			return nil, err
		}
		return p.grants.Exchange(ctx, c,
			oauth.Code{Text: r.param("code"), RedirectURI: r.param("redirect_uri"), Verifier: r.param("code_verifier")})
	case refreshToken:
		if err := r.need("refresh_token"); err != nil {
			return nil, err
		}
		return p.grants.Refresh(ctx, c, r.param("refresh_token"), r.scopes())
	case clientCredentials:
		return p.grants.ClientCredentials(ctx, c, r.scopes())
	case jwtBearer:
		if err := r.need("assertion"); err != nil {
			return nil, err
		}
		return p.grants.ByAssertion(ctx, r.param("client_id"), r.param("assertion"), r.scopes(), key)
	case deviceCode:
		if err := r.need("device_code"); err != nil {
			return nil, err
		}
		return p.grants.DeviceTokens(ctx, c, r.param("device_code"))
	}
	return nil, oauth.ErrUnauthorizedClient
}

// deviceAnswer is the answer of RFC 8628, section 3.2.
type deviceAnswer struct {
	DeviceCode  string `json:"device_code"`
	UserCode    string `json:"user_code"`
	Page        string `json:"verification_uri"`
	PageForCode string `json:"verification_uri_complete"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
	Interval    int64  `json:"interval"`   // seconds
}

// deviceAuthorization serves the endpoint where a device begins.
func (p *Provider) deviceAuthorization(r *endpointRequest) (any, error) {
	c, err := p.client(r)
	if err != nil {
		return nil, err
	}
	d, err := p.grants.BeginDevice(r.Context(), c, r.scopes())
	if err != nil {
		return nil, err
	}
	page := p.issuer + devicePage
	return &deviceAnswer{
		DeviceCode:  d.DeviceCode,
		UserCode:    d.UserCode,
		Page:        page,
		PageForCode: page + "?user_code=" + d.UserCode,
		ExpiresIn:   int64(d.Life.Seconds()),
		Interval:    int64(d.Interval.Seconds()),
	}, nil
}

// pushAnswer is the answer of RFC 9126, section 2.2.
type pushAnswer struct {
	RequestURI string `json:"request_uri"`
	ExpiresIn  int64  `json:"expires_in"` // seconds
}

// push serves the endpoint that authorization requests are pushed to.
func (p *Provider) push(r *endpointRequest) (any, error) {
	if err := p.nonceFirst(r); err != nil {
		return nil, err
	}
	c, err := p.client(r)
	if err != nil {
		return nil, err
	}
	ask, err := p.ask(r.Context(), c.ID(), r.param)
	if err != nil {
		return nil, err
	}
	if len(r.proven().Proofs) > 0 { // instead of dpop_jkt; only tokens need a proof
		if _, err := p.proveKey(r, c); err != nil {
			return nil, err
		}
	}
	pushed, err := p.grants.Push(r.Context(), c, ask)
	if err != nil {
		return nil, err
	}
	return &pushAnswer{RequestURI: pushed.URI, ExpiresIn: int64(pushed.Life.Seconds())}, nil
}

// revoke serves the revocation endpoint. Its answer has no body.
func (p *Provider) revoke(r *endpointRequest) (any, error) {
	c, err := p.client(r)
	if err != nil {
		return nil, err
	}
	if err := r.need("token"); err != nil {
		return nil, err
	}
	return nil, p.grants.Revoke(r.Context(), c, r.param("token"))
}
