// Package idp holds the rules of identity providers: other systems that an organization lets its users sign in with.
//
// Addresses are stored as sent. Whether one can be trusted is judged each time it is used, not when it is written.
package idp

import (
	"cmp"
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/syntax"
)

// State of an identity provider.
type State string

// ACTIVE <-> INACTIVE, any -> REMOVED.
const (
	Active   State = "active"
	Inactive State = "inactive"
	Removed  State = "removed"
)

// Styling of the button on the sign-in page; the empty one is plain.
type Styling string

// Google is the styling that provider asks for.
const Google Styling = "google"

// General is the configuration every provider has.
type General struct {
	Name         string  `json:"name"`
	NameKey      string  `json:"nameKey,omitempty"` // follows from Name; missing in the first events
	Styling      Styling `json:"styling,omitempty"`
	AutoRegister bool    `json:"autoRegister,omitempty"`
}

// JWT is the configuration of a provider that hands over signed tokens.
type JWT struct {
	Endpoint     string `json:"endpoint"`
	Issuer       string `json:"issuer"`
	KeysEndpoint string `json:"keysEndpoint"`
	HeaderName   string `json:"headerName,omitempty"` // empty means authorization
}

// Provider is the state of an identity provider. Exactly one configuration besides the general one is set.
type Provider struct {
	State   State   `json:"state"`
	General General `json:"general"`
	JWT     *JWT    `json:"jwt,omitempty"`
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Provider]{
	Name: "idp", Table: "idps", Prefix: "idp", Shape: 2,
	Facts:   []event.Fact[Provider]{JWTAdded{}, Changed{}, JWTChanged{}, Deactivated{}, Reactivated{}, WasRemoved{}},
	Columns: []string{event.State, "type", "name"},
	Lookup: func(o *event.Object[Provider]) []string {
		g := &o.State.General
		return []string{string(o.State.State), string(o.State.Type()), event.LookupText(cmp.Or(g.NameKey, syntax.PlainKey(g.Name)))}
	},
})

// Type of a provider, as lists are filtered by it.
type Type string

// The types.
const (
	IsJWT Type = "jwt"
)

// Type of the provider.
func (p *Provider) Type() Type {
	if p.JWT != nil {
		return IsJWT
	}
	return ""
}

// JWTAdded records a new provider with a JWT configuration.
type JWTAdded struct {
	General General `json:"general"`
	JWT     JWT     `json:"jwt"`
}

// EventType implements event.Fact.
func (JWTAdded) EventType() event.Type { return "idp.jwt_added.v1" }

// Apply implements event.Fact.
func (e JWTAdded) Apply(p *Provider) { *p = Provider{State: Active, General: e.General, JWT: &e.JWT} }

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

// JWTChanged records what is different in the JWT configuration.
type JWTChanged struct {
	Endpoint     *string `json:"endpoint,omitempty"`
	Issuer       *string `json:"issuer,omitempty"`
	KeysEndpoint *string `json:"keysEndpoint,omitempty"`
	HeaderName   *string `json:"headerName,omitempty"`
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
}

// Deactivated records that nobody may sign in through the provider.
type Deactivated struct{}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "idp.deactivated.v1" }

// Apply implements event.Fact.
func (Deactivated) Apply(p *Provider) { p.State = Inactive }

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
func (WasRemoved) Apply(p *Provider) { *p = Provider{State: Removed} }

// Reasons of this package.
const (
	NotFound errs.Reason = "IDENTITY_PROVIDER_NOT_FOUND"
	NotJWT   errs.Reason = "NOT_A_JWT_IDENTITY_PROVIDER"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound, "there is no identity provider with this identifier in that organization")
	ErrNotJWT   = errs.New(errs.FailedPrecondition, NotJWT, "this identity provider is of another type: it has no JWT configuration")
)

func reachable(p *event.Object[Provider], permit access.Permit) (*event.Object[Provider], error) {
	if p == nil || p.State.State == Removed || !permit.Reaches(p.Org) {
		return nil, ErrNotFound
	}
	return p, nil
}

// Get reads a provider of the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[Provider], error) {
	p, err := Kind.Read(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return reachable(p, permit)
}

// Added is what AddJWT answers.
type Added struct {
	ID      string
	Details event.Details
}

// AddJWT creates a JWT provider in the permit's organization. Errors: org.ErrNotFound; those of once.
func AddJWT(ctx context.Context, s event.Store, permit access.Permit, once event.Once, general General, jwt JWT) (Added, error) {
	id, owner := Kind.NewID(), permit.Org()
	general.NameKey = syntax.NameKey(general.Name)
	var added Added
	err := s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(),
		Write:  []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Get(tx, owner)
			if err != nil {
				return err
			}
			if o == nil || o.State.State == org.Removed {
				return org.ErrNotFound
			}
			p, err := Kind.Create(tx, id, owner, JWTAdded{General: general, JWT: jwt})
			if err != nil {
				return err
			}
			added = Added{ID: id, Details: p.Details()}
			return nil
		},
	}, &added))
	return added, err
}

// PermitByOwner finds the provider first and checks the permission at its owner: the contract gives this update no
// organization. named is the organization the caller named all the same; empty: none. Errors: access.ErrDenied;
// ErrNotFound for those who may change providers somewhere.
func PermitByOwner(ctx context.Context, r event.Reader, caller *access.Caller, id, named string) (access.Permit, error) {
	p, err := Kind.Read(ctx, r, id)
	if err != nil {
		return access.Permit{}, err
	}
	if p == nil || p.State.State == Removed {
		if _, err := caller.In(caller.OrgID, access.IDPWrite); err != nil {
			return access.Permit{}, err
		}
		return access.Permit{}, ErrNotFound
	}
	permit, err := caller.In(p.Org, access.IDPWrite)
	if err == nil && named != "" && named != p.Org {
		return access.Permit{}, ErrNotFound
	}
	return permit, err
}

// Replace replaces the general configuration. Errors: ErrNotFound; Aborted when match does not hold.
func Replace(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, g General) (event.Details, error) {
	return change(ctx, s, permit, id, match, func(p *event.Object[Provider]) (event.Fact[Provider], error) {
		old := p.State.General
		return Changed{
			Name:         event.Changed(old.Name, g.Name),
			NameKey:      event.Changed(old.NameKey, syntax.NameKey(g.Name)),
			Styling:      event.Changed(old.Styling, g.Styling),
			AutoRegister: event.Changed(old.AutoRegister, g.AutoRegister),
		}, nil
	})
}

// ReplaceJWT replaces the JWT configuration. Errors: ErrNotFound; ErrNotJWT; Aborted when match does not hold.
func ReplaceJWT(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, jwt JWT) (event.Details, error) {
	return change(ctx, s, permit, id, match, func(p *event.Object[Provider]) (event.Fact[Provider], error) {
		old := p.State.JWT
		if old == nil {
			return nil, ErrNotJWT
		}
		return JWTChanged{
			Endpoint:     event.Changed(old.Endpoint, jwt.Endpoint),
			Issuer:       event.Changed(old.Issuer, jwt.Issuer),
			KeysEndpoint: event.Changed(old.KeysEndpoint, jwt.KeysEndpoint),
			HeaderName:   event.Changed(old.HeaderName, jwt.HeaderName),
		}, nil
	})
}

// change records one fact about a provider the permit reaches.
func change(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	decide func(*event.Object[Provider]) (event.Fact[Provider], error)) (event.Details, error) {
	var details event.Details
	err := s.Do(ctx, event.Command{
		Origin: permit.Origin(),
		Write:  []event.Ref{Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			p, err := Kind.Get(tx, id)
			if err != nil {
				return err
			}
			if p, err = reachable(p, permit); err != nil {
				return err
			}
			fact, err := decide(p)
			if err != nil {
				return err
			}
			if err := match.Check(p.Sequence); err != nil {
				return err
			}
			err = p.Append(fact)
			details = p.Details()
			return err
		},
	})
	return details, err
}
