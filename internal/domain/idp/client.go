package idp

import (
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// client is what the configurations of OpenID Connect and of OAuth 2.0 have in common: Signet as the provider's client.
type client struct {
	id         *string
	hasSecret  *bool
	scopes     *[]string
	preset     *Preset
	auth       *ClientAuth
	parameters *Parameters
	claims     *Claims
}

func (o *OIDC) client() *client {
	return &client{&o.ClientID, &o.HasClientSecret, &o.Scopes, &o.Preset, &o.ClientAuth, &o.Parameters, &o.Claims}
}

func (o *OAuth) client() *client {
	return &client{&o.ClientID, &o.HasClientSecret, &o.Scopes, &o.Preset, &o.ClientAuth, &o.Parameters, &o.Claims}
}

// client of the provider; nil for a type that has none.
func (p *Provider) client() *client {
	switch {
	case p.OIDC != nil:
		return p.OIDC.client()
	case p.OAuth != nil:
		return p.OAuth.client()
	}
	return nil
}

// unfinished tells whether the provider lacks a secret that it most likely wants.
func (c *client) unfinished() bool { return !*c.hasSecret && *c.auth != PrivateKeyJWT }

// ClientChanged is what is different in what both configurations have, but for the secret.
type ClientChanged struct {
	ClientID   *string        `json:"clientId,omitempty"`
	Scopes     *[]string      `json:"scopes,omitempty"`
	Preset     *Preset        `json:"preset,omitempty"`
	ClientAuth *ClientAuth    `json:"clientAuth,omitempty"`
	Parameters *Parameters    `json:"parameters,omitempty"`
	Claims     *ClaimsChanged `json:"claims,omitempty"`
}

// all names every field.
func (c *client) all() ClientChanged {
	return ClientChanged{ClientID: c.id, Scopes: c.scopes, Preset: c.preset, ClientAuth: c.auth,
		Parameters: c.parameters, Claims: c.claims.all()}
}

func (e ClientChanged) set(c *client) {
	event.Set(c.id, e.ClientID)
	event.Set(c.scopes, e.Scopes)
	event.Set(c.preset, e.Preset)
	event.Set(c.auth, e.ClientAuth)
	event.Set(c.parameters, e.Parameters)
	if e.Claims != nil {
		e.Claims.set(c.claims)
	}
}

// from keeps what differs from a configuration.
func (e ClientChanged) from(old *client) ClientChanged {
	changed := ClientChanged{
		ClientID:   differing(*old.id, e.ClientID),
		Scopes:     differingList(*old.scopes, e.Scopes),
		Preset:     differing(*old.preset, e.Preset),
		ClientAuth: differing(*old.auth, e.ClientAuth),
	}
	if e.Parameters != nil && !maps.Equal(*old.parameters, *e.Parameters) {
		parameters := Parameters{} // none is an empty object: null would read as no change
		maps.Copy(parameters, *e.Parameters)
		changed.Parameters = &parameters
	}
	if e.Claims != nil {
		if c := e.Claims.from(old.claims); c != (ClaimsChanged{}) {
			changed.Claims = &c
		}
	}
	return changed
}

// differingList gives the new list where there is one and it is another.
func differingList(old []string, value *[]string) *[]string {
	if value == nil || slices.Equal(old, *value) {
		return nil
	}
	list := append([]string{}, *value...) // none is an empty list: null would read as no change
	return &list
}

// ClaimsChanged is what is different in a mapping of claims.
type ClaimsChanged struct {
	UserName  *string `json:"userName,omitempty"`
	FirstName *string `json:"firstName,omitempty"`
	LastName  *string `json:"lastName,omitempty"`
	NickName  *string `json:"nickName,omitempty"`
	Email     *string `json:"email,omitempty"`
	Language  *string `json:"language,omitempty"`
}

// all names every field.
func (c *Claims) all() *ClaimsChanged {
	return &ClaimsChanged{UserName: &c.UserName, FirstName: &c.FirstName, LastName: &c.LastName, NickName: &c.NickName,
		Email: &c.Email, Language: &c.Language}
}

func (e *ClaimsChanged) set(c *Claims) {
	event.Set(&c.UserName, e.UserName)
	event.Set(&c.FirstName, e.FirstName)
	event.Set(&c.LastName, e.LastName)
	event.Set(&c.NickName, e.NickName)
	event.Set(&c.Email, e.Email)
	event.Set(&c.Language, e.Language)
}

// from keeps what differs from a mapping.
func (e *ClaimsChanged) from(old *Claims) ClaimsChanged {
	return ClaimsChanged{
		UserName:  differing(old.UserName, e.UserName),
		FirstName: differing(old.FirstName, e.FirstName),
		LastName:  differing(old.LastName, e.LastName),
		NickName:  differing(old.NickName, e.NickName),
		Email:     differing(old.Email, e.Email),
		Language:  differing(old.Language, e.Language),
	}
}

// OIDCChanged records what is different in the OpenID Connect configuration, but for its secret.
type OIDCChanged struct {
	Issuer *string `json:"issuer,omitempty"`
	ClientChanged
	FormPost *bool     `json:"formPost,omitempty"`
	Tenants  *[]string `json:"tenants,omitempty"`
	TeamID   *string   `json:"teamId,omitempty"`
	KeyID    *string   `json:"keyId,omitempty"`
	Answered
}

// EventType implements event.Fact.
func (OIDCChanged) EventType() event.Type { return "idp.oidc_changed.v1" }

// Apply implements event.Fact.
func (e OIDCChanged) Apply(p *Provider) {
	if p.OIDC == nil {
		return
	}
	event.Set(&p.OIDC.Issuer, e.Issuer)
	e.ClientChanged.set(p.OIDC.client())
	event.Set(&p.OIDC.FormPost, e.FormPost)
	event.Set(&p.OIDC.Tenants, e.Tenants)
	event.Set(&p.OIDC.TeamID, e.TeamID)
	event.Set(&p.OIDC.KeyID, e.KeyID)
	e.count(p)
}

// all names every field.
func (o *OIDC) all() OIDCChanged {
	return OIDCChanged{Issuer: &o.Issuer, ClientChanged: o.client().all(), FormPost: &o.FormPost, Tenants: &o.Tenants,
		TeamID: &o.TeamID, KeyID: &o.KeyID}
}

// from keeps what differs from a configuration.
func (e OIDCChanged) from(old *OIDC) OIDCChanged {
	return OIDCChanged{
		Issuer:        differing(old.Issuer, e.Issuer),
		ClientChanged: e.ClientChanged.from(old.client()),
		FormPost:      differing(old.FormPost, e.FormPost),
		Tenants:       differingList(old.Tenants, e.Tenants),
		TeamID:        differing(old.TeamID, e.TeamID),
		KeyID:         differing(old.KeyID, e.KeyID),
	}
}

// OAuthChanged records what is different in the OAuth 2.0 configuration, but for its secret.
type OAuthChanged struct {
	AuthorizationEndpoint *string `json:"authorizationEndpoint,omitempty"`
	TokenEndpoint         *string `json:"tokenEndpoint,omitempty"`
	UserEndpoint          *string `json:"userEndpoint,omitempty"`
	EmailsEndpoint        *string `json:"emailsEndpoint,omitempty"`
	ClientChanged
	Subject *string `json:"subject,omitempty"`
	Answered
}

// EventType implements event.Fact.
func (OAuthChanged) EventType() event.Type { return "idp.oauth_changed.v1" }

// Apply implements event.Fact.
func (e OAuthChanged) Apply(p *Provider) {
	if p.OAuth == nil {
		return
	}
	event.Set(&p.OAuth.AuthorizationEndpoint, e.AuthorizationEndpoint)
	event.Set(&p.OAuth.TokenEndpoint, e.TokenEndpoint)
	event.Set(&p.OAuth.UserEndpoint, e.UserEndpoint)
	event.Set(&p.OAuth.EmailsEndpoint, e.EmailsEndpoint)
	e.ClientChanged.set(p.OAuth.client())
	event.Set(&p.OAuth.Subject, e.Subject)
	e.count(p)
}

// all names every field.
func (o *OAuth) all() OAuthChanged {
	return OAuthChanged{
		AuthorizationEndpoint: &o.AuthorizationEndpoint,
		TokenEndpoint:         &o.TokenEndpoint,
		UserEndpoint:          &o.UserEndpoint,
		EmailsEndpoint:        &o.EmailsEndpoint,
		ClientChanged:         o.client().all(),
		Subject:               &o.Subject,
	}
}

// from keeps what differs from a configuration.
func (e OAuthChanged) from(old *OAuth) OAuthChanged {
	return OAuthChanged{
		AuthorizationEndpoint: differing(old.AuthorizationEndpoint, e.AuthorizationEndpoint),
		TokenEndpoint:         differing(old.TokenEndpoint, e.TokenEndpoint),
		UserEndpoint:          differing(old.UserEndpoint, e.UserEndpoint),
		EmailsEndpoint:        differing(old.EmailsEndpoint, e.EmailsEndpoint),
		ClientChanged:         e.ClientChanged.from(old.client()),
		Subject:               differing(old.Subject, e.Subject),
	}
}
