package oidc

import (
	"net/url"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/transport/web"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// client authenticates the client that asks. A grant_type has to be one that it is registered for.
func (p *Provider) client(r *endpointRequest) (*oauth.Client, error) {
	said, err := r.credentials()
	if err != nil {
		return nil, err
	}
	c, err := p.authenticate(r, said)
	if err != nil {
		return nil, err
	}
	if grantType := r.param("grant_type"); grantType != "" && !registered(c, grantType) {
		return nil, errs.New(errs.PermissionDenied, oauth.UnauthorizedClient,
			"this client must not use this grant_type: add it to the grantTypes of the application")
	}
	return c, nil
}

// registered tells whether a client may use a grant type.
func registered(c *oauth.Client, grantType string) bool {
	if c.App == nil {
		return grantType == clientCredentials
	}
	return slices.Contains(c.App.Data.GrantTypes, app.GrantType(grantType))
}

// authenticate finds out which client asks, and lets the pages read the answer that it runs on.
func (p *Provider) authenticate(r *endpointRequest, said oauth.Credentials) (*oauth.Client, error) {
	c, err := p.grants.Authenticate(r.Context(), said)
	if err != nil {
		return nil, err
	}
	r.allowOrigin(c)
	if said.Method != app.NoAuth { // a name alone proves nothing: others could use up the limit of who has it
		err = web.CountCaller(r.Context(), c.ID(), c.Org())
	}
	return c, err
}

// namesClient tells whether the client says in the body alone who it is. Then a challenge would answer something that
// it did not try (RFC 6749, section 5.2), and libraries would show their users the challenge instead of the error.
func (r *endpointRequest) namesClient() bool {
	return r.Header.Get("Authorization") == "" &&
		(r.param("client_id") != "" || r.param("client_secret") != "" || r.param("client_assertion") != "")
}

// credentials reads what a client says about itself. It may use one method only (RFC 6749, section 2.3). An empty
// secret is none: some libraries send one for clients that have no secret.
func (r *endpointRequest) credentials() (c oauth.Credentials, err error) {
	c = oauth.Credentials{Method: app.NoAuth, ClientID: r.param("client_id"), Secret: r.param("client_secret"),
		Assertion: r.param("client_assertion")}
	typ := r.param("client_assertion_type")
	id, secret, basic := r.BasicAuth()
	asserts, posts := c.Assertion != "" && typ != "", c.Secret != "" && c.ClientID != ""
	if asserts && posts || basic && (asserts || posts) {
		return c, invalid("client authentication must not use more than one method")
	}
	if basic {
		var wrong [2]error
		c.ClientID, wrong[0] = url.QueryUnescape(id)
		c.Secret, wrong[1] = url.QueryUnescape(secret)
		if wrong[0] != nil || wrong[1] != nil {
			return c, badClient("invalid basic auth header")
		}
	}
	switch {
	case c.ClientID == "" && c.Assertion == "":
		return c, invalid("client_id or client_assertion must be provided")
	case c.Assertion != "" && typ != assertionType:
		return c, invalid("invalid client_assertion_type " + typ)
	case c.Assertion != "":
		c.Method = app.PrivateKeyJWT
	case !basic && r.Header.Get("Authorization") != "":
		return c, badClient("the header authorization must be Basic with the client's id and secret, or be left out")
	case basic && c.Secret != "":
		c.Method = app.SecretBasic
	case c.Secret != "":
		c.Method = app.SecretPost
	}
	return c, nil
}
