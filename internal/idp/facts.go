package idp

import (
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/syntax"
)

// JWTAdded records a new provider with a JWT configuration.
type JWTAdded struct {
	General General `json:"general"`
	JWT     JWT     `json:"jwt"`
}

// EventType implements event.Fact.
func (JWTAdded) EventType() event.Type { return "idp.jwt_added.v1" }

// Apply implements event.Fact.
func (e JWTAdded) Apply(p *Provider) {
	*p = Provider{Standing: Standing{State: Active}, General: e.General, JWT: &e.JWT}
}

// OIDCAdded records a new provider that speaks OpenID Connect.
type OIDCAdded struct {
	General General `json:"general"`
	OIDC    OIDC    `json:"oidc"`
}

// EventType implements event.Fact.
func (OIDCAdded) EventType() event.Type { return "idp.oidc_added.v1" }

// Apply implements event.Fact.
func (e OIDCAdded) Apply(p *Provider) {
	*p = Provider{Standing: Standing{State: Active}, General: e.General, OIDC: &e.OIDC}
}

// Changed records what is different in the general configuration.
type Changed struct {
	Name         *string  `json:"name,omitempty"`
	NameKey      *string  `json:"nameKey,omitempty"`
	Styling      *Styling `json:"styling,omitempty"`
	AutoRegister *bool    `json:"autoRegister,omitempty"`
}

// EventType implements event.Fact.
func (Changed) EventType() event.Type { return "idp.changed.v1" }

// Apply implements event.Fact.
func (e Changed) Apply(p *Provider) {
	event.Set(&p.General.Name, e.Name)
	event.Set(&p.General.NameKey, e.NameKey)
	event.Set(&p.General.Styling, e.Styling)
	event.Set(&p.General.AutoRegister, e.AutoRegister)
}

// from keeps what differs from a configuration.
func (e Changed) from(old *General) Changed {
	return Changed{
		Name:         differing(old.Name, e.Name),
		NameKey:      differing(old.NameKey, e.NameKey),
		Styling:      differing(old.Styling, e.Styling),
		AutoRegister: differing(old.AutoRegister, e.AutoRegister),
	}
}

// differing gives the new value where there is one and it is another.
func differing[T comparable](old T, value *T) *T {
	if value == nil {
		return nil
	}
	return event.Changed(old, *value)
}

func (e Changed) violations(wrong *errs.Violations) {
	wrong.Add("name", given(e.Name, syntax.Name))
	if e.Styling != nil && *e.Styling != "" && *e.Styling != Google {
		wrong.Add("stylingType", "must be left out, or be STYLING_TYPE_GOOGLE")
	}
}

// given judges a text where there is one.
func given(text *string, problem func(string) string) string {
	if text == nil {
		return ""
	}
	return problem(*text)
}

// optional judges a text that may be empty.
func optional(s string) string { return syntax.Text(s, syntax.MaxName) }

// JWTChanged records what is different in the JWT configuration.
type JWTChanged struct {
	Endpoint     *string `json:"endpoint,omitempty"`
	Issuer       *string `json:"issuer,omitempty"`
	KeysEndpoint *string `json:"keysEndpoint,omitempty"`
	HeaderName   *string `json:"headerName,omitempty"`
	Audience     *string `json:"audience,omitempty"`
}

// EventType implements event.Fact.
func (JWTChanged) EventType() event.Type { return "idp.jwt_changed.v1" }

// Apply implements event.Fact.
func (e JWTChanged) Apply(p *Provider) {
	if p.JWT == nil {
		return
	}
	event.Set(&p.JWT.Endpoint, e.Endpoint)
	event.Set(&p.JWT.Issuer, e.Issuer)
	event.Set(&p.JWT.KeysEndpoint, e.KeysEndpoint)
	event.Set(&p.JWT.HeaderName, e.HeaderName)
	event.Set(&p.JWT.Audience, e.Audience)
}

// from keeps what differs from a configuration.
func (e JWTChanged) from(old *JWT) JWTChanged {
	return JWTChanged{
		Endpoint:     differing(old.Endpoint, e.Endpoint),
		Issuer:       differing(old.Issuer, e.Issuer),
		KeysEndpoint: differing(old.KeysEndpoint, e.KeysEndpoint),
		HeaderName:   differing(old.HeaderName, e.HeaderName),
		Audience:     differing(old.Audience, e.Audience),
	}
}

// violations lists what is wrong with it, in the names of the API, under a prefix.
func (e JWTChanged) violations(prefix string, wrong *errs.Violations) {
	wrong.Add(prefix+"jwtEndpoint", given(e.Endpoint, syntax.Name))
	wrong.Add(prefix+"issuer", given(e.Issuer, syntax.Name))
	wrong.Add(prefix+"keysEndpoint", given(e.KeysEndpoint, syntax.Name))
	wrong.Add(prefix+"headerName", given(e.HeaderName, optional))
	wrong.Add(prefix+"audience", given(e.Audience, optional))
}

// OIDCChanged records what is different in the OpenID Connect configuration, but for its secret.
type OIDCChanged struct {
	Issuer   *string   `json:"issuer,omitempty"`
	ClientID *string   `json:"clientId,omitempty"`
	Scopes   *[]string `json:"scopes,omitempty"`
}

// violations lists what is wrong with it and with a secret, in the names of the API, under a prefix.
func (e OIDCChanged) violations(prefix string, secret *string, wrong *errs.Violations) {
	wrong.Add(prefix+"issuer", given(e.Issuer, syntax.Name))
	wrong.Add(prefix+"clientId", given(e.ClientID, syntax.Name))
	wrong.Add(prefix+"clientSecret", given(secret, optional))
	if e.Scopes == nil {
		return
	}
	if len(*e.Scopes) > syntax.MaxScopes {
		wrong.Add(prefix+"scopes", syntax.TooMany(syntax.MaxScopes, "elements"))
	}
	for i, scope := range *e.Scopes {
		problem := syntax.Text(scope, syntax.MaxScope)
		if scope == "" {
			problem = syntax.Empty
		}
		wrong.Add(fmt.Sprintf("%sscopes[%d]", prefix, i), problem)
	}
}

// EventType implements event.Fact.
func (OIDCChanged) EventType() event.Type { return "idp.oidc_changed.v1" }

// Apply implements event.Fact.
func (e OIDCChanged) Apply(p *Provider) {
	if p.OIDC == nil {
		return
	}
	event.Set(&p.OIDC.Issuer, e.Issuer)
	event.Set(&p.OIDC.ClientID, e.ClientID)
	event.Set(&p.OIDC.Scopes, e.Scopes)
}

// from keeps what differs from a configuration.
func (e OIDCChanged) from(old *OIDC) OIDCChanged {
	changed := OIDCChanged{Issuer: differing(old.Issuer, e.Issuer), ClientID: differing(old.ClientID, e.ClientID)}
	if e.Scopes != nil && !slices.Equal(old.Scopes, *e.Scopes) {
		scopes := append([]string{}, *e.Scopes...) // none is an empty list: null would read as no change
		changed.Scopes = &scopes
	}
	return changed
}

// ClientSecretSet records that there is a secret, another one than before. The secret itself is no fact.
type ClientSecretSet struct{}

// EventType implements event.Fact.
func (ClientSecretSet) EventType() event.Type { return "idp.client_secret_set.v1" }

// Apply implements event.Fact.
func (ClientSecretSet) Apply(p *Provider) { p.hasClientSecret(true) }

// ClientSecretRemoved records that there is no secret any more.
type ClientSecretRemoved struct{}

// EventType implements event.Fact.
func (ClientSecretRemoved) EventType() event.Type { return "idp.client_secret_removed.v1" }

// Apply implements event.Fact.
func (ClientSecretRemoved) Apply(p *Provider) { p.hasClientSecret(false) }

func (p *Provider) hasClientSecret(has bool) {
	if p.OIDC != nil {
		p.OIDC.HasClientSecret = has
	}
}

// Deactivated records that nobody may sign in through the provider. Sessions that came through it have ended for good.
type Deactivated struct{}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "idp.deactivated.v1" }

// Apply implements event.Fact.
func (Deactivated) Apply(p *Provider) { p.State = Inactive; p.Epoch++ }

// Reactivated records that the provider is offered again.
type Reactivated struct{}

// EventType implements event.Fact.
func (Reactivated) EventType() event.Type { return "idp.reactivated.v1" }

// Apply implements event.Fact.
func (Reactivated) Apply(p *Provider) { p.State = Active }

// WasRemoved records the end of the provider.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "idp.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(p *Provider) {
	*p = Provider{Standing: Standing{State: Removed, Epoch: p.Epoch + 1}}
}
