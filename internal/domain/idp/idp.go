// Package idp holds the rules of identity providers: other systems that an organization lets its users sign in with.
//
// Addresses of providers are stored as sent. They are checked each time that they are used, not when they are written.
package idp

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of an identity provider.
type State string

// DRAFT -> ACTIVE <-> INACTIVE, any -> REMOVED.
const (
	Draft    State = "draft" // not offered until a check passes or somebody says so
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

	// LinkByEmail links somebody who signs in for the first time to the user with the same address, without a sign-in
	// of that user, where much else holds too. It decides how people sign in, so a caller needs the permission to set
	// policies to change it.
	LinkByEmail bool `json:"linkByEmail,omitempty"`
}

// JWT is the configuration of a provider that hands over signed tokens.
type JWT struct {
	Endpoint     string `json:"endpoint"`
	Issuer       string `json:"issuer"`
	KeysEndpoint string `json:"keysEndpoint"`
	HeaderName   string `json:"headerName,omitempty"` // empty means authorization
	Audience     string `json:"audience,omitempty"`   // empty means the provider's identifier
}

// OIDC is the configuration of an OpenID Connect provider. The secret itself is in a side table.
type OIDC struct {
	Issuer          string   `json:"issuer"`
	ClientID        string   `json:"clientId"`
	HasClientSecret bool     `json:"hasClientSecret,omitempty"`
	Scopes          []string `json:"scopes,omitempty"` // besides openid; none means profile and email

	Preset     Preset     `json:"preset,omitempty"`
	ClientAuth ClientAuth `json:"clientAuth,omitempty"`
	FormPost   bool       `json:"formPost,omitempty"` // the provider answers by a form that the browser posts
	Parameters Parameters `json:"parameters,omitempty"`
	Claims     Claims     `json:"claims,omitzero"`

	// Tenants are the values of the claim by which a provider shared by many companies tells them apart: hd of Google,
	// tid of Microsoft. Nobody of another one signs in. Empty: it does not matter.
	Tenants []string `json:"tenants,omitempty"`

	// Of Apple, whose client secret is a token that is signed with a key of its own. The key is the client secret of
	// the side table.
	TeamID string `json:"teamId,omitempty"`
	KeyID  string `json:"keyId,omitempty"`
}

// OAuth is the configuration of a provider that speaks OAuth 2.0 and not OpenID Connect: who has signed in is told by
// an endpoint of its own. The secret itself is in a side table.
type OAuth struct {
	AuthorizationEndpoint string   `json:"authorizationEndpoint"`
	TokenEndpoint         string   `json:"tokenEndpoint"`
	UserEndpoint          string   `json:"userEndpoint"`
	EmailsEndpoint        string   `json:"emailsEndpoint,omitempty"` // answers a list of {email, primary, verified}
	ClientID              string   `json:"clientId"`
	HasClientSecret       bool     `json:"hasClientSecret,omitempty"`
	Scopes                []string `json:"scopes,omitempty"`

	Preset     Preset     `json:"preset,omitempty"`
	ClientAuth ClientAuth `json:"clientAuth,omitempty"`
	Parameters Parameters `json:"parameters,omitempty"`
	// the field of the answer that never changes for a person; empty means id
	Subject string `json:"subject,omitempty"`
	Claims  Claims `json:"claims,omitzero"`
}

// Preset names a provider that much is known of.
type Preset string

// The presets.
const (
	GooglePreset    Preset = "google"
	MicrosoftPreset Preset = "microsoft"
	ApplePreset     Preset = "apple"
	GitLabPreset    Preset = "gitlab"
	GitHubPreset    Preset = "github" // OAuth 2.0
)

// ClientAuth is how Signet proves to a provider that it is the client.
type ClientAuth string

// The ways. The empty one sends the secret in the header where there is one.
const (
	SecretInHeader ClientAuth = ""
	SecretInBody   ClientAuth = "client_secret_post"
	PrivateKeyJWT  ClientAuth = "private_key_jwt" // with the signing key of this installation, which is in its key set
)

// Parameters are added to the address that people are sent to.
type Parameters map[string]string

// Claims says under which names a provider tells what a new user is registered with. Empty ones have the names of
// OpenID Connect.
type Claims struct {
	UserName  string `json:"userName,omitempty"`
	FirstName string `json:"firstName,omitempty"`
	LastName  string `json:"lastName,omitempty"`
	NickName  string `json:"nickName,omitempty"`
	Email     string `json:"email,omitempty"`
	Language  string `json:"language,omitempty"`
}

// Provider is the state of an identity provider. Exactly one configuration besides the general one is set.
type Provider struct {
	Standing
	General General `json:"general"`
	JWT     *JWT    `json:"jwt,omitempty"`
	OIDC    *OIDC   `json:"oidc,omitempty"`
	OAuth   *OAuth  `json:"oauth,omitempty"`

	// Changer is who last changed what decides who signs in through the provider; nil: nobody since that is recorded,
	// and nobody signs in.
	Changer *Changer `json:"changer,omitempty"`
}

// Standing is the part of a provider's state that decides about the sessions that came through it.
type Standing struct {
	State State `json:"state"`
	Epoch int64 `json:"epoch,omitempty"` // sessions of an older epoch have ended
}

// Changer is somebody who changed a provider, with the roles of that moment. It matters because a person who changes
// the source of a provider's answers could sign in as any user who is linked there.
type Changer struct {
	UserID  string             `json:"userId"`
	Roles   access.Memberships `json:"roles,omitempty"`
	Version int64              `json:"version"` // counts the changes

	// Fields are the settings that they answer for; none: all but those of Earlier.
	Fields []string `json:"fields,omitempty"`
	// Earlier are those who changed other settings before, which nobody has confirmed since, the oldest first.
	Earlier []access.Answer `json:"earlier,omitempty"`
}

func (c *Changer) last() access.Answer {
	return access.Answer{UserID: c.UserID, Roles: c.Roles, Fields: c.Fields}
}

// answers are all who answer for a setting; nil: nobody does.
func (c *Changer) answers() []access.Answer {
	if c == nil {
		return nil
	}
	return append(slices.Clip(c.Earlier), c.last())
}

// All tells whether something holds for the roles of everybody who answers for a setting: the provider's word is worth
// what the least of them is.
func (c *Changer) All(holds func(access.Memberships) bool) bool {
	for _, a := range c.Earlier {
		if !holds(a.Roles) {
			return false
		}
	}
	return holds(c.Roles)
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Provider]{
	Name: "idp", Table: "idps", Prefix: "idp", Shape: 5, Token: event.TokenProvider,
	Facts: []event.Fact[Provider]{JWTAdded{}, OIDCAdded{}, OAuthAdded{}, Changed{}, JWTChanged{}, OIDCChanged{},
		OAuthChanged{}, ClientSecretSet{},
		ClientSecretRemoved{}, Vouched{}, Deactivated{}, Reactivated{}, WasRemoved{}},
	Columns: []string{event.Standing, event.State, "type", "name"},
	Lookup: func(o *event.Object[Provider]) []string {
		return []string{event.StandingOf(&o.Data.Standing), string(o.Data.State), string(o.Data.Type()),
			event.LookupText(o.Data.nameKey())}
	},
	Copy: (*Provider).clone,
})

// clone copies what facts alter in place. They replace lists, and who answers for the provider.
func (p *Provider) clone() Provider {
	c := *p
	c.JWT, c.OIDC, c.OAuth = copied(p.JWT), copied(p.OIDC), copied(p.OAuth)
	return c
}

func copied[T any](of *T) *T {
	if of == nil {
		return nil
	}
	c := *of
	return &c
}

// Type of a provider, as lists are filtered by it.
type Type string

// The types.
const (
	IsJWT   Type = "jwt"
	IsOIDC  Type = "oidc"
	IsOAuth Type = "oauth"
)

// Type of the provider.
func (p *Provider) Type() Type {
	switch {
	case p.JWT != nil:
		return IsJWT
	case p.OIDC != nil:
		return IsOIDC
	case p.OAuth != nil:
		return IsOAuth
	}
	return ""
}

// Offered tells whether people can sign in through the provider: it is active, and somebody answers for its
// configuration.
func (p *Provider) Offered() bool { return p.State == Active && p.Changer != nil }

// Reasons of this package.
const (
	NotFound   errs.Reason = "IDENTITY_PROVIDER_NOT_FOUND"
	NotJWT     errs.Reason = "NOT_A_JWT_IDENTITY_PROVIDER"
	NotOIDC    errs.Reason = "NOT_AN_OIDC_IDENTITY_PROVIDER"
	NotOAuth   errs.Reason = "NOT_AN_OAUTH_IDENTITY_PROVIDER"
	WrongState errs.Reason = "IDENTITY_PROVIDER_WRONG_STATE"
	NoChecker  errs.Reason = "IDENTITY_PROVIDER_CHECK_UNAVAILABLE"
	Unseen     errs.Reason = "IDENTITY_PROVIDER_UNSEEN"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no identity provider with this identifier in that organization: if it belongs to another one, name that one in x-service-orgid")
	ErrNotJWT = errs.New(errs.FailedPrecondition, NotJWT,
		"this identity provider has another type and no JWT configuration")
	ErrNotOIDC = errs.New(errs.FailedPrecondition, NotOIDC,
		"this identity provider has another type and no OpenID Connect configuration")
	ErrNotOAuth = errs.New(errs.FailedPrecondition, NotOAuth,
		"this identity provider has another type and no OAuth 2.0 configuration")

	ErrNotActive = errs.New(errs.FailedPrecondition, WrongState, "the identity provider is already inactive")
	ErrDraft     = errs.New(errs.FailedPrecondition, WrongState,
		"the identity provider is a draft and offered to nobody yet: there is nothing to deactivate")
	ErrNotInactive = errs.New(errs.FailedPrecondition, WrongState, "the identity provider is already active")

	ErrLinkByEmail = errs.New(errs.PermissionDenied, access.PermissionDenied,
		"switching linkByEmail on or off needs the permission policy.write, too: ask an owner of the organization (ORG_OWNER)")
	ErrUnseen = errs.New(errs.FailedPrecondition, Unseen,
		"others answer for this identity provider: look at it, and send the sequence of what you looked at as if-match to answer for it yourself")
	ErrNoChecker = &errs.Error{Kind: errs.Unavailable, Reason: NoChecker, RetryAfter: 10 * time.Second,
		Message: "this server cannot check identity providers: update it, or try again on another node"}
)

// within is a provider the permit reaches. Errors: ErrNotFound.
func within(permit access.Permit, id string) event.Target[Provider] {
	return event.Target[Provider]{
		Kind:   Kind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(p *event.Object[Provider]) error {
			if p == nil || p.Data.State == Removed || !permit.Reaches(p.Org) {
				return ErrNotFound
			}
			return nil
		},
	}
}

// Get reads a provider of the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[Provider], error) {
	return within(permit, id).Read(ctx, r)
}

// PermitByOwner finds the provider first and checks the permission at its owner: the contract gives this update no
// organization. named is the organization the caller named all the same; empty: none. Errors: access.ErrDenied;
// ErrNotFound for those who may change providers somewhere; those of org.Admits.
func PermitByOwner(ctx context.Context, r event.Reader, caller *access.Caller, id, named string,
	now time.Time) (access.Permit, error) {
	p, owner, err := existing(ctx, r, caller, id)
	if err != nil {
		return access.Permit{}, err
	}
	if p == nil {
		if _, err := caller.In(caller.OrgID, access.IDPWrite); err != nil {
			return access.Permit{}, err
		}
		return access.Permit{}, ErrNotFound
	}
	permit, err := caller.In(p.Org, access.IDPWrite)
	if err == nil && named != "" && named != p.Org {
		return access.Permit{}, ErrNotFound
	}
	if err == nil {
		err = org.Admits(owner, caller, access.IDPWrite, now)
	}
	if err != nil {
		return access.Permit{}, err
	}
	return permit, nil
}

// existing reads a provider and its organization; nil where there is none, also when its organization took it along.
func existing(ctx context.Context, r event.Reader, caller *access.Caller,
	id string) (*event.Object[Provider], *event.Object[org.Org], error) {
	p, err := Kind.Read(ctx, r, id)
	if err != nil || p == nil || p.Data.State == Removed {
		return nil, nil, err
	}
	o, err := org.Owning(ctx, r, caller, p.Org)
	if err != nil || o == nil || o.Data.State == org.Removed {
		return nil, nil, err
	}
	return p, o, nil
}

// Filter says which providers to list; empty fields do not restrict.
type Filter struct {
	Name  string // what the name begins with, whatever its case
	State State
	Type  Type
}

// List reads a page of the providers of the permit's organization: the oldest first, or in the order of names where a
// beginning is given.
func List(ctx context.Context, r event.Reader, permit access.Permit, f Filter, after event.Cursor,
	limit int) ([]*event.Object[Provider], *event.Cursor, error) {
	if permit.Org() == "" {
		return nil, nil, access.ErrDenied // no organization would mean all of them
	}
	q := event.Query{Org: permit.Org(), After: after, Limit: limit,
		Where: event.Where(event.State, string(f.State), "type", string(f.Type))}
	return Kind.List(ctx, r, q.Beginning("name", syntax.NameKey(f.Name)))
}
