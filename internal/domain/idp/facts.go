package idp

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Drafted is part of the facts that create a provider.
type Drafted struct {
	Draft bool `json:"draft,omitempty"` // it is not offered before Reactivated
}

func (d Drafted) standing() Standing {
	if d.Draft {
		return Standing{State: Draft}
	}
	return Standing{State: Active}
}

// JWTAdded records a new provider with a JWT configuration.
type JWTAdded struct {
	General General `json:"general"`
	JWT     JWT     `json:"jwt"`
	Drafted
}

// EventType implements event.Fact.
func (JWTAdded) EventType() event.Type { return "idp.jwt_added.v1" }

// Apply implements event.Fact.
func (e JWTAdded) Apply(p *Provider) {
	*p = Provider{Standing: e.standing(), General: e.General, JWT: &e.JWT}
}

// OIDCAdded records a new provider that speaks OpenID Connect.
type OIDCAdded struct {
	General General `json:"general"`
	OIDC    OIDC    `json:"oidc"`
	Drafted
}

// EventType implements event.Fact.
func (OIDCAdded) EventType() event.Type { return "idp.oidc_added.v1" }

// Apply implements event.Fact.
func (e OIDCAdded) Apply(p *Provider) {
	*p = Provider{Standing: e.standing(), General: e.General, OIDC: &e.OIDC}
}

// OAuthAdded records a new provider that speaks OAuth 2.0 only.
type OAuthAdded struct {
	General General `json:"general"`
	OAuth   OAuth   `json:"oauth"`
	Drafted
}

// EventType implements event.Fact.
func (OAuthAdded) EventType() event.Type { return "idp.oauth_added.v1" }

// Apply implements event.Fact.
func (e OAuthAdded) Apply(p *Provider) {
	*p = Provider{Standing: e.standing(), General: e.General, OAuth: &e.OAuth}
}

// Changed records what is different in the general configuration.
type Changed struct {
	Name         *string  `json:"name,omitempty"`
	NameKey      *string  `json:"nameKey,omitempty"`
	Styling      *Styling `json:"styling,omitempty"`
	AutoRegister *bool    `json:"autoRegister,omitempty"`
	LinkByEmail  *bool    `json:"linkByEmail,omitempty"`
}

// EventType implements event.Fact.
func (Changed) EventType() event.Type { return "idp.changed.v1" }

// Apply implements event.Fact.
func (e Changed) Apply(p *Provider) {
	event.Set(&p.General.Name, e.Name)
	event.Set(&p.General.NameKey, e.NameKey)
	event.Set(&p.General.Styling, e.Styling)
	event.Set(&p.General.AutoRegister, e.AutoRegister)
	event.Set(&p.General.LinkByEmail, e.LinkByEmail)
}

// from keeps what differs from a configuration.
func (e Changed) from(old *General) Changed {
	return Changed{
		Name:         differing(old.Name, e.Name),
		NameKey:      differing(old.NameKey, e.NameKey),
		Styling:      differing(old.Styling, e.Styling),
		AutoRegister: differing(old.AutoRegister, e.AutoRegister),
		LinkByEmail:  differing(old.LinkByEmail, e.LinkByEmail),
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
		wrong.Add("stylingType", errs.Plain("must be left out, or be STYLING_TYPE_GOOGLE"))
	}
}

// given judges a text where there is one.
func given(text *string, problem func(string) *errs.Problem) *errs.Problem {
	if text == nil {
		return nil
	}
	return problem(*text)
}

// optional judges a text that may be empty.
func optional(s string) *errs.Problem { return syntax.Text(s, syntax.MaxName) }

// JWTChanged records what is different in the JWT configuration.
type JWTChanged struct {
	Endpoint     *string `json:"endpoint,omitempty"`
	Issuer       *string `json:"issuer,omitempty"`
	KeysEndpoint *string `json:"keysEndpoint,omitempty"`
	HeaderName   *string `json:"headerName,omitempty"`
	Audience     *string `json:"audience,omitempty"`
	Answered
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
	e.count(p)
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
	if c := p.client(); c != nil {
		*c.hasSecret = has
	}
}

// Vouched records who answers for the configuration as it is now, if that is new: by a change of what decides who signs
// in, or after a check.
type Vouched struct {
	By     string             `json:"by"`
	Roles  access.Memberships `json:"roles,omitempty"`  // of that moment
	Fields []string           `json:"fields,omitempty"` // for these settings only; none: for all
	// Unchanged: they confirm settings that others made, so the version stays.
	Unchanged bool `json:"unchanged,omitempty"`
}

// EventType implements event.Fact.
func (Vouched) EventType() event.Type { return "idp.vouched.v1" }

// Since implements event.Gated: a node that does not know who answers for a provider would not keep its links to it.
// One that does not know the fields takes the whole configuration as vouched for, as all did before; changing a
// provider does not wait for that.
func (Vouched) Since() int { return 3 }

// Apply implements event.Fact.
func (e Vouched) Apply(p *Provider) {
	last, earlier := access.Answer{UserID: e.By, Roles: e.Roles, Fields: e.Fields}.After(p.Changer.answers())
	next := Changer{UserID: last.UserID, Roles: last.Roles, Fields: last.Fields, Earlier: earlier, Version: 1}
	switch {
	case p.Changer == nil:
		next.Fields = nil // nobody else answers for anything
	case e.Unchanged:
		next.Version = p.Changer.Version
	default:
		next.Version += p.Changer.Version
	}
	p.Changer = &next
}

// Deactivated records that nobody may sign in through the provider. Sessions that came through it have ended for good.
type Deactivated struct{}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "idp.deactivated.v1" }

// Apply implements event.Fact.
func (Deactivated) Apply(p *Provider) { p.State = Inactive; p.Epoch++ }

// Reactivated records that the provider is offered: again, or for the first time after it was a draft.
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
