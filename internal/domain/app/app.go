// Package app holds the rules of applications: programs that people sign in to, and programs that check tokens. An
// application belongs to one organization. Its identifier is its client id.
package app

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of an application.
type State string

// ACTIVE <-> INACTIVE, any -> REMOVED.
const (
	Active   State = "active"
	Inactive State = "inactive"
	Removed  State = "removed"
)

// Type of an application says where it runs, and so whether it can keep a secret.
type Type string

// The types.
const (
	Web    Type = "web"    // on a server: keeps a secret
	SPA    Type = "spa"    // in a browser: keeps none
	Native Type = "native" // on a phone, a desktop or a television: keeps none
	API    Type = "api"    // checks tokens, signs nobody in
)

// AuthMethod is how an application proves who it is, in the words of OAuth.
type AuthMethod string

// The methods.
const (
	NoAuth        AuthMethod = "none"
	SecretBasic   AuthMethod = "client_secret_basic"
	SecretPost    AuthMethod = "client_secret_post"
	PrivateKeyJWT AuthMethod = "private_key_jwt"
)

// IDTokenClaims says which claims about a person are in ID tokens.
type IDTokenClaims string

// Which claims there are, besides those about the organization and the roles.
const (
	// those that a request names; also of applications from before there was a choice
	MinimalClaims IDTokenClaims = "minimal"
	ScopeClaims   IDTokenClaims = "scopes" // all of the scopes that were granted
)

// TokenFormat of access tokens.
type TokenFormat string

// The formats.
const (
	Opaque TokenFormat = "opaque"
	JWT    TokenFormat = "jwt" // RFC 9068
)

// GrantType is a way to tokens, in the words of OAuth.
type GrantType string

// The grant types an application can have.
const (
	AuthorizationCode GrantType = "authorization_code"
	RefreshToken      GrantType = "refresh_token"
	DeviceCode        GrantType = "urn:ietf:params:oauth:grant-type:device_code"
)

// App is the state of an application.
type App struct {
	Standing
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	Type    Type   `json:"type"`
	Settings
	HasSecret bool `json:"hasSecret,omitempty"`
	// when the secret before it stops working; 0: there is none
	OldSecretUntil int64 `json:"oldSecretUntil,omitempty"`
	// An owner of the installation made the secret, and the one before it, see FirstParty.
	SecretByOwner    bool  `json:"secretByOwner,omitempty"`
	OldSecretByOwner bool  `json:"oldSecretByOwner,omitempty"`
	Keys             []Key `json:"keys,omitempty"` // for PrivateKeyJWT, the oldest first
	// of Signet's own API, allowed by an owner of the installation
	APIScopes []string `json:"apiScopes,omitempty"`
	// Approvals are the clients of other organizations that may have tokens for this application, the oldest first.
	Approvals []Approval `json:"approvals,omitempty"`
	// OwnSignIn: it has pages of its own through which people of its organization sign in at identity providers. An
	// owner of the installation allows that.
	OwnSignIn bool `json:"ownSignIn,omitempty"`
	// Changer is who last changed OwnSignIn, or the secret, the method or the redirect URIs while it is set; nil: it is
	// not set.
	Changer *Changer `json:"changer,omitempty"`

	// FirstParty: it is the operator's own; nil: it is not.
	FirstParty *FirstParty `json:"firstParty,omitempty"`

	Metadata map[string]string `json:"metadata,omitempty"` // what programs keep about it

	ClaimMappings []ClaimMapping `json:"claimMappings,omitempty"` // claims that it declares
}

// FirstParty says that an owner of the installation answers for an application as the operator's own: people of every
// organization that may use it are not asked for consent to what is usual. Only the installation changes what codes,
// tokens or data of it reach, and a secret or key counts only if an owner of the installation made it.
type FirstParty struct {
	By string `json:"by"` // the user who marked it
	At int64  `json:"at"`
}

// RoleSettings say which project an application belongs to, and what it is told about what people have there.
type RoleSettings struct {
	Project  string   `json:"project,omitempty"`  // empty: none
	Roles    bool     `json:"roles,omitempty"`    // tokens, user info and introspection carry the roles of the project
	Groups   bool     `json:"groups,omitempty"`   // and the groups
	Required bool     `json:"required,omitempty"` // only people with a role of the project may use it
	Metadata []string `json:"metadata,omitempty"` // keys of users' metadata that they carry, sorted
}

// Equal tells whether two are the same.
func (s RoleSettings) Equal(o RoleSettings) bool {
	return s.Project == o.Project && s.Roles == o.Roles && s.Groups == o.Groups && s.Required == o.Required &&
		slices.Equal(s.Metadata, o.Metadata)
}

// Changer is somebody who changed an application, with the roles of that moment. It matters because a person who has
// the application's secret, or gets what is sent to it, could sign in as the people who use its pages.
type Changer struct {
	UserID string             `json:"userId"`
	Roles  access.Memberships `json:"roles,omitempty"`

	// Fields are what they answer for; none: all but those of Earlier.
	Fields []string `json:"fields,omitempty"`
	// Earlier are those who changed something else before, which nobody has confirmed since, the oldest first.
	Earlier []access.Answer `json:"earlier,omitempty"`
}

func (c *Changer) answers() []access.Answer {
	if c == nil {
		return nil
	}
	return append(slices.Clip(c.Earlier), access.Answer{UserID: c.UserID, Roles: c.Roles, Fields: c.Fields})
}

// All tells whether something holds for the roles of everybody who answers for a part of the application.
func (c *Changer) All(holds func(access.Memberships) bool) bool {
	return !slices.ContainsFunc(c.answers(), func(a access.Answer) bool { return !holds(a.Roles) })
}

// Standing is the part of an application's state that decides about its tokens. Every request with such a token reads
// it.
type Standing struct {
	State State `json:"state"`
	Epoch int64 `json:"epoch,omitempty"` // tokens of an older epoch are dead
	// APIEpoch: tokens and consents with scopes of Signet's API of another one are dead, see Append.
	APIEpoch int64 `json:"apiEpoch,omitempty"`

	RoleSettings RoleSettings `json:"roleSettings,omitzero"`
	// Open is AllOrganizations of an application with a project. Only the column has it: applications from before there
	// were projects do not tell it there.
	Open bool `json:"open,omitempty"`
	// Mapped is Maps of an application. Only the column has it.
	Mapped Mapped `json:"mapped,omitzero"`
}

func (a *App) standing() Standing {
	s := a.Standing
	s.Open = a.AllOrganizations && s.RoleSettings.Project != ""
	s.Mapped = a.Maps()
	return s
}

// Settings are what an application's administrators choose.
type Settings struct {
	AuthMethod           AuthMethod  `json:"authMethod"`
	GrantTypes           []GrantType `json:"grantTypes,omitempty"`
	RedirectURIs         []string    `json:"redirectUris,omitempty"`
	PostLogoutURIs       []string    `json:"postLogoutUris,omitempty"`
	BackChannelLogoutURI string      `json:"backChannelLogoutUri,omitempty"`
	InitiateLoginURI     string      `json:"initiateLoginUri,omitempty"` // where others have people begin to sign in
	KeySetURI            string      `json:"keySetUri,omitempty"`        // where its public keys are, for PrivateKeyJWT
	TokenFormat          TokenFormat `json:"tokenFormat"`
	SigningAlgorithm     string      `json:"signingAlgorithm"`          // of its tokens: ES256 or RS256
	AccessTokenSeconds   int64       `json:"accessTokenSeconds"`        // life of an access token
	RefreshTokenSeconds  int64       `json:"refreshTokenSeconds"`       // life of an unused refresh token
	ConsentRequired      bool        `json:"consentRequired,omitempty"` // people are asked what it may see
	// people of other organizations may sign in, too
	AllOrganizations bool `json:"allOrganizations,omitempty"`
	// a secret has to be sent as AuthMethod says, see Accepts
	ExactAuthMethod bool `json:"exactAuthMethod,omitempty"`

	IDTokenClaims IDTokenClaims `json:"idTokenClaims,omitempty"`

	// its authorization requests have to be pushed (RFC 9126)
	PushedRequired bool `json:"pushedRequired,omitempty"`
	// it gets access tokens only for a key that it proves to have (RFC 9449)
	DPoPRequired bool `json:"dpopRequired,omitempty"`
}

// OnlyOwnPeople tells whether nobody can use the application but people of its organization: guests need a project.
func (a *App) OnlyOwnPeople() bool { return !a.AllOrganizations && a.RoleSettings.Project == "" }

// Key is a public key of an application.
type Key struct {
	ID      string `json:"id"`
	Public  string `json:"public"` // PEM, as for service users
	Created int64  `json:"created"`
	Expires int64  `json:"expires,omitempty"` // 0: never
	ByOwner bool   `json:"byOwner,omitempty"` // an owner of the installation added it, see FirstParty
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[App]{
	Name: "app", Table: "apps", Prefix: "app", Shape: 5,
	Facts: []event.Fact[App]{Added{}, SettingsChanged{}, SecretSet{}, SecretRemoved{}, KeyAdded{}, KeyRemoved{},
		APIAccessSet{}, APIConsentsEnded{},
		AudienceApproved{}, AudienceWithdrawn{}, OwnSignInSet{}, Vouched{}, FirstPartySet{}, RoleSettingsSet{},
		MetadataSet{}, ClaimMappingsSet{},
		Deactivated{}, Reactivated{}, WasRemoved{}},
	Token:   event.TokenApp,
	Columns: []string{event.Standing, event.State, "type", "name"},
	Lookup: func(o *event.Object[App]) []string {
		a := &o.Data
		return []string{event.StandingOf(a.standing()), string(a.State), string(a.Type),
			event.LookupText(cmp.Or(a.NameKey, syntax.PlainKey(a.Name)))}
	},
	Groups: groups,
	Copy: func(a *App) App {
		c := *a
		c.GrantTypes, c.RedirectURIs, c.PostLogoutURIs = copied(a.GrantTypes), copied(a.RedirectURIs),
			copied(a.PostLogoutURIs)
		c.RoleSettings.Metadata = copied(a.RoleSettings.Metadata)
		c.Keys, c.APIScopes, c.Approvals = copied(a.Keys), copied(a.APIScopes), copied(a.Approvals)
		c.Metadata = maps.Clone(a.Metadata)
		c.ClaimMappings = copiedMappings(a.ClaimMappings)
		if a.FirstParty != nil {
			c.FirstParty = new(*a.FirstParty)
		}
		if a.Changer != nil {
			by := *a.Changer
			by.Roles, by.Fields, by.Earlier = copiedRoles(by.Roles), copied(by.Fields), copied(by.Earlier)
			for i, e := range by.Earlier {
				by.Earlier[i].Roles, by.Earlier[i].Fields = copiedRoles(e.Roles), copied(e.Fields)
			}
			c.Changer = &by
		}
		return c
	},
})

func copiedRoles(m access.Memberships) access.Memberships {
	c := access.Memberships{}
	for scope, roles := range m {
		c[scope] = copied(roles)
	}
	return c
}

// copied is a list as reading it again would give it: an empty one is none.
func copied[T any](list []T) []T { return append([]T(nil), list...) }

// Reasons of this package.
const (
	NotFound       errs.Reason = "APPLICATION_NOT_FOUND"
	WrongState     errs.Reason = "APPLICATION_WRONG_STATE"
	KeepsNoSecret  errs.Reason = "APPLICATION_KEEPS_NO_SECRET"
	NeedsSecret    errs.Reason = "APPLICATION_NEEDS_SECRET"
	SecretNotFound errs.Reason = "APPLICATION_SECRET_NOT_FOUND"
	KeyNotFound    errs.Reason = "APPLICATION_KEY_NOT_FOUND"
	KeyExists      errs.Reason = "APPLICATION_KEY_EXISTS"
	TooManyKeys    errs.Reason = "APPLICATION_HAS_TOO_MANY_KEYS"

	ClientNotFound    errs.Reason = "CLIENT_NOT_FOUND"
	ApprovalNotFound  errs.Reason = "AUDIENCE_APPROVAL_NOT_FOUND"
	ApprovalExists    errs.Reason = "AUDIENCE_APPROVAL_EXISTS"
	ApprovalNotNeeded errs.Reason = "AUDIENCE_APPROVAL_NOT_NEEDED"
	TooManyApprovals  errs.Reason = "APPLICATION_HAS_TOO_MANY_APPROVALS"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no application with this identifier in that organization: if it belongs to another one, name that one in x-service-orgid")
	ErrNotActive   = errs.New(errs.FailedPrecondition, WrongState, "the application is already inactive")
	ErrNotInactive = errs.New(errs.FailedPrecondition, WrongState, "the application is already active")

	ErrKeepsNoSecret = errs.New(errs.FailedPrecondition, KeepsNoSecret,
		"an application in a browser or on a device cannot have a secret or a key: anybody could read it")
	ErrNeedsSecret = errs.New(errs.FailedPrecondition, NeedsSecret,
		"only an application that authenticates with a secret can have a sign-in page of its own: choose CLIENT_SECRET_BASIC or CLIENT_SECRET_POST and generate a secret first")
	ErrSecretNotFound = errs.New(errs.NotFound, SecretNotFound, "this application has no secret")
	ErrKeyNotFound    = errs.New(errs.NotFound, KeyNotFound, "this application has no key with this identifier")
	ErrKeyExists      = errs.New(errs.AlreadyExists, KeyExists,
		"this application already has this key: to change its expiry, remove it first")
	ErrTooManyKeys = errs.New(errs.FailedPrecondition, TooManyKeys,
		"this application already has 20 keys: remove one that is no longer needed")

	ErrInstallationDecides = errs.New(errs.PermissionDenied, access.PermissionDenied,
		"only an owner of the installation (IAM_OWNER) can open an application to all organizations: ask one, or leave allOrganizations out")
	ErrOpensWaysIn = errs.New(errs.PermissionDenied, access.PermissionDenied,
		"this application may use scopes of this API (apiScopes), and this change would let others use them: ask an owner of the installation (IAM_OWNER) to make it, or to remove those scopes first")
	ErrIsFirstParty = errs.New(errs.PermissionDenied, access.PermissionDenied,
		"this application is marked as the operator's own (firstParty), and this change would let others have what people give it: ask an owner of the installation (IAM_OWNER) to make it, or to remove the mark first")
	ErrClientNotFound = errs.New(errs.NotFound, ClientNotFound,
		"there is no application or service user with this client id")
	ErrApprovalNotFound = errs.New(errs.NotFound, ApprovalNotFound, "this client is not approved for this application")
	ErrApprovalExists   = errs.New(errs.AlreadyExists, ApprovalExists,
		"this client is already approved for this application")
	ErrApprovalNotNeeded = errs.New(errs.FailedPrecondition, ApprovalNotNeeded,
		"this client belongs to the organization of the application: it needs no approval")
	ErrTooManyApprovals = errs.New(errs.FailedPrecondition, TooManyApprovals,
		"this application already has 100 approved clients: withdraw one that is no longer needed")
)

// Within is an application the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[App] {
	return event.Target[App]{Kind: Kind, ID: id, Origin: permit.Origin(), Reach: func(a *event.Object[App]) error {
		if a == nil || a.Data.State == Removed || !permit.Reaches(a.Org) {
			return ErrNotFound
		}
		return nil
	}}
}

// Get reads an application of the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[App], error) {
	return Within(permit, id).Read(ctx, r)
}

// InUse reads an application that people can sign in to now: an active one of an active organization. Errors:
// ErrNotFound.
func InUse(ctx context.Context, r event.Reader, id string) (*event.Object[App], error) {
	a, err := Kind.Read(ctx, r, id)
	if err != nil {
		return nil, err
	}
	if a == nil || a.Data.State != Active {
		return nil, ErrNotFound
	}
	o, err := org.Kind.Read(ctx, r, a.Org)
	if err != nil {
		return nil, err
	}
	if o == nil || o.Data.State != org.Active {
		return nil, ErrNotFound
	}
	return a, nil
}

// Filter says which applications to list; empty fields do not restrict.
type Filter struct {
	Name  string // what the name begins with, whatever its case
	State State
	Type  Type
}

// List reads a page of the applications of the permit's organization: the oldest first, or in the order of names where
// a beginning is given.
func List(ctx context.Context, r event.Reader, permit access.Permit, f Filter, after event.Cursor,
	limit int) ([]*event.Object[App], *event.Cursor, error) {
	if permit.Org() == "" {
		return nil, nil, access.ErrDenied // no organization would mean all of them
	}
	q := event.Query{Org: permit.Org(), After: after, Limit: limit,
		Where: event.Where(event.State, string(f.State), "type", string(f.Type))}
	return Kind.List(ctx, r, q.Beginning("name", syntax.NameKey(f.Name)))
}
