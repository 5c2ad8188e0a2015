// Package app holds the rules of applications: the programs that people sign in to, and those that check the tokens of
// others. An application belongs to one organization. Its identifier is its client id.
package app

import (
	"cmp"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/syntax"
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
	HasSecret bool     `json:"hasSecret,omitempty"`
	Keys      []Key    `json:"keys,omitempty"`      // for PrivateKeyJWT, the oldest first
	APIScopes []string `json:"apiScopes,omitempty"` // of Signet's own API, allowed by an owner of the installation
}

// Standing is the part of an application's state that decides about its tokens. Every request with such a token reads it.
type Standing struct {
	State State `json:"state"`
	Epoch int64 `json:"epoch,omitempty"` // tokens of an older epoch are dead
}

// Settings are what an application's administrators choose.
type Settings struct {
	AuthMethod           AuthMethod  `json:"authMethod"`
	GrantTypes           []GrantType `json:"grantTypes,omitempty"`
	RedirectURIs         []string    `json:"redirectUris,omitempty"`
	PostLogoutURIs       []string    `json:"postLogoutUris,omitempty"`
	BackChannelLogoutURI string      `json:"backChannelLogoutUri,omitempty"`
	KeySetURI            string      `json:"keySetUri,omitempty"` // where its public keys are, for PrivateKeyJWT
	TokenFormat          TokenFormat `json:"tokenFormat"`
	SigningAlgorithm     string      `json:"signingAlgorithm"`           // of its tokens: ES256 or RS256
	AccessTokenSeconds   int64       `json:"accessTokenSeconds"`         // life of an access token
	RefreshTokenSeconds  int64       `json:"refreshTokenSeconds"`        // life of an unused refresh token
	ConsentRequired      bool        `json:"consentRequired,omitempty"`  // people are asked what it may see
	AllOrganizations     bool        `json:"allOrganizations,omitempty"` // people of other organizations may sign in, too
}

// Key is a public key of an application.
type Key struct {
	ID      string `json:"id"`
	Public  string `json:"public"` // PEM, as for service users
	Expires int64  `json:"expires,omitempty"`
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[App]{
	Name: "app", Table: "apps", Prefix: "app", Shape: 1,
	Facts:   []event.Fact[App]{Added{}},
	Columns: []string{event.Standing, event.State, "type", "name"},
	Lookup: func(o *event.Object[App]) []string {
		a := &o.State
		return []string{event.StandingOf(&a.Standing), string(a.State), string(a.Type), event.LookupText(cmp.Or(a.NameKey, syntax.PlainKey(a.Name)))}
	},
})

// Added records a new application.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	Type    Type   `json:"type"`
	Settings
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "app.added.v1" }

// Apply implements event.Fact.
func (e Added) Apply(a *App) {
	a.State, a.Name, a.NameKey, a.Type, a.Settings = Active, e.Name, e.NameKey, e.Type, e.Settings
}

// SecretRow is where the hash of an application's secret lives.
func SecretRow(id string) event.RowKey {
	return event.RowKey{Shelf: event.Secrets, Key: id + "/secret"}
}
