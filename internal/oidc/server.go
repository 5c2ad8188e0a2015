package oidc

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	zitadel "github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/web"
)

// server answers programs, for the library. Whatever it does not implement (token exchange, and what browsers come for)
// the library refuses.
type server struct {
	op.UnimplementedServer
	*Provider
}

// Keys implements op.Server.
func (s *server) Keys(ctx context.Context, _ *op.Request[struct{}]) (*op.Response, error) {
	set, life, err := s.config.Keys.KeySet(ctx)
	if err != nil {
		return nil, failed(ctx, err)
	}
	resp := op.NewResponse(set)
	resp.Header.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(life.Seconds())))
	return resp, nil
}

// VerifyClient implements op.Server.
func (s *server) VerifyClient(ctx context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	c, err := s.authenticate(ctx, r.Header, r.Data)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return client{c}, nil
}

// authenticate tells which client asks, by the one method that it is registered with.
func (s *server) authenticate(ctx context.Context, header http.Header, said *op.ClientCredentials) (*grant.Client, error) {
	c := grant.Credentials{Method: app.NoAuth, ClientID: said.ClientID, Secret: said.ClientSecret, Assertion: said.ClientAssertion}
	switch {
	case said.ClientAssertion != "":
		c.Method = app.PrivateKeyJWT
	case header.Get("Authorization") != "":
		c.Method = app.SecretBasic
	case said.ClientSecret != "":
		c.Method = app.SecretPost
	}
	found, err := s.grants.Authenticate(ctx, c)
	if err != nil {
		return nil, err
	}
	allowOrigin(ctx, found)
	return found, nil
}

// CodeExchange implements op.Server.
func (s *server) CodeExchange(ctx context.Context, r *op.ClientRequest[zitadel.AccessTokenRequest]) (*op.Response, error) {
	c := r.Client.(client).Client
	tokens, err := s.grants.Exchange(ctx, c, grant.Code{Text: r.Data.Code, RedirectURI: r.Data.RedirectURI, Verifier: r.Data.CodeVerifier})
	return s.tokens(ctx, c, tokens, err)
}

// RefreshToken implements op.Server.
func (s *server) RefreshToken(ctx context.Context, r *op.ClientRequest[zitadel.RefreshTokenRequest]) (*op.Response, error) {
	c := r.Client.(client).Client
	tokens, err := s.grants.Refresh(ctx, c, r.Data.RefreshToken, scopes(r.Data.Scopes))
	return s.tokens(ctx, c, tokens, err)
}

// ClientCredentialsExchange implements op.Server.
func (s *server) ClientCredentialsExchange(ctx context.Context, r *op.ClientRequest[zitadel.ClientCredentialsRequest]) (*op.Response, error) {
	c := r.Client.(client).Client
	tokens, err := s.grants.ClientCredentials(ctx, c, scopes(r.Data.Scope))
	return s.tokens(ctx, c, tokens, err)
}

// JWTProfile implements op.Server.
func (s *server) JWTProfile(ctx context.Context, r *op.Request[zitadel.JWTProfileGrantRequest]) (*op.Response, error) {
	tokens, err := s.grants.ByAssertion(ctx, r.Data.Assertion, scopes(r.Data.Scope))
	return s.tokens(ctx, nil, tokens, err)
}

// DeviceToken implements op.Server.
func (s *server) DeviceToken(ctx context.Context, r *op.ClientRequest[zitadel.DeviceAccessTokenRequest]) (*op.Response, error) {
	c := r.Client.(client).Client
	tokens, err := s.grants.DeviceTokens(ctx, c, r.Data.DeviceCode)
	return s.tokens(ctx, c, tokens, err)
}

// scopes drops the empty ones that an empty parameter leads to.
func scopes(sent []string) []string { return strings.Fields(strings.Join(sent, " ")) }

// tokens answers a request for tokens.
func (s *server) tokens(ctx context.Context, c *grant.Client, t *grant.Tokens, err error) (*op.Response, error) {
	if err != nil {
		return nil, failed(ctx, err)
	}
	body := &zitadel.AccessTokenResponse{AccessToken: t.Access, TokenType: zitadel.BearerToken, RefreshToken: t.Refresh,
		ExpiresIn: uint64(t.Life.Seconds()), Scope: t.Scopes}
	if c != nil && c.App != nil {
		if body.IDToken, err = s.idToken(ctx, c.App, t); err != nil {
			return nil, failed(ctx, err)
		}
	}
	return op.NewResponse(body), nil
}

// DeviceAuthorization implements op.Server.
func (s *server) DeviceAuthorization(ctx context.Context, r *op.ClientRequest[zitadel.DeviceAuthorizationRequest]) (*op.Response, error) {
	d, err := s.grants.BeginDevice(ctx, r.Client.(client).Client, scopes(r.Data.Scopes))
	if err != nil {
		return nil, failed(ctx, err)
	}
	page := s.issuer + devicePage
	return op.NewResponse(&zitadel.DeviceAuthorizationResponse{DeviceCode: d.DeviceCode, UserCode: d.UserCode, VerificationURI: page,
		VerificationURIComplete: page + "?user_code=" + d.UserCode, ExpiresIn: int(d.Life.Seconds()), Interval: int(d.Interval.Seconds())}), nil
}

// Introspect implements op.Server. The gate refuses requests without a credential, and a public client has none to send.
func (s *server) Introspect(ctx context.Context, r *op.Request[op.IntrospectionRequest]) (*op.Response, error) {
	var asking *grant.Client
	b, err := s.grants.Introspect(ctx, r.Data.Token, func() (_ *grant.Client, err error) {
		asking, err = s.authenticate(ctx, r.Header, r.Data.ClientCredentials)
		return asking, err
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	if b == nil {
		return op.NewResponse(map[string]any{"active": false}), nil
	}
	claims := map[string]any{"active": true, "token_type": "Bearer", "iss": s.issuer, "sub": b.Token.UserID, "aud": b.Given.Audience, "jti": b.Token.ID,
		"client_id": b.Token.Client, "scope": strings.Join(b.Given.Scopes, " "), "iat": event.Time(b.Token.Created).Unix(), "exp": event.Time(b.Token.Expires).Unix()}
	if b.Token.Client == "" {
		claims["client_id"] = b.Token.UserID // a service user acts for itself
	}
	grant.AddProof(claims, b.Given.Proof)
	about, err := s.grants.ClaimsOf(ctx, b, asking.Org())
	if err != nil {
		return nil, failed(ctx, err)
	}
	for _, name := range []string{grant.OrgScope, grant.RolesScope} {
		if value, told := about[name]; told {
			claims[name] = value
		}
	}
	if name, told := about["preferred_username"]; told {
		claims["username"] = name
	}
	return op.NewResponse(claims), nil
}

// UserInfo implements op.Server.
func (s *server) UserInfo(ctx context.Context, r *op.Request[zitadel.UserInfoRequest]) (*op.Response, error) {
	b, err := s.grants.Bearer(ctx, r.Data.AccessToken)
	if err != nil {
		return nil, failed(ctx, err)
	}
	if b == nil {
		return nil, s.bearerRefused(ctx, "invalid_token", "the access token is not valid any more", http.StatusUnauthorized)
	}
	if fromPage(ctx) {
		if a, err := app.Kind.Read(ctx, s.grants.Store, b.Token.Client); err == nil && a != nil {
			allowOrigin(ctx, &grant.Client{App: a})
		}
	}
	if !has(b.Given.Scopes, grant.OpenID) {
		return nil, s.bearerRefused(ctx, "insufficient_scope", "the access token has not been given the scope openid", http.StatusForbidden)
	}
	claims, err := s.grants.ClaimsOf(ctx, b, b.ClientOrg)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return op.NewResponse(claims), nil
}

// bearerRefused refuses an access token in the way of RFC 6750: the header tells why.
func (s *server) bearerRefused(ctx context.Context, code, description string, status int) error {
	if x, ok := ctx.Value(answerKey{}).(*answer); ok {
		x.Header().Set("Www-Authenticate", `Bearer error="`+code+`", error_description="`+description+`"`)
	}
	web.Failed(ctx, access.ErrUnauthenticated)
	return told(status, code, description)
}

// Revocation implements op.Server.
func (s *server) Revocation(ctx context.Context, r *op.ClientRequest[zitadel.RevocationRequest]) (*op.Response, error) {
	if err := s.grants.Revoke(ctx, r.Client.(client).Client, r.Data.Token); err != nil {
		return nil, failed(ctx, err)
	}
	return op.NewResponse(nil), nil
}
