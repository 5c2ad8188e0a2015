package app

import (
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Added records a new application.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	Type    Type   `json:"type"`
	Settings
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "app.added.v1" }

// Since implements event.Gated: a node that does not know these settings would not demand anything.
func (e Added) Since() int {
	if e.PushedRequired || e.DPoPRequired {
		return 6
	}
	return 0
}

// Apply implements event.Fact. Where nothing is said about the claims of ID tokens there was no choice yet: today's
// default is not for such an application.
func (e Added) Apply(a *App) {
	a.State, a.Name, a.NameKey, a.Type, a.Settings = Active, e.Name, e.NameKey, e.Type, e.Settings
	if a.IDTokenClaims == "" {
		a.IDTokenClaims = MinimalClaims
	}
}

// SettingsChanged records what is different in the settings.
type SettingsChanged struct {
	Name                 *string      `json:"name,omitempty"`
	NameKey              *string      `json:"nameKey,omitempty"` // follows from Name
	AuthMethod           *AuthMethod  `json:"authMethod,omitempty"`
	GrantTypes           *[]GrantType `json:"grantTypes,omitempty"`
	RedirectURIs         *[]string    `json:"redirectUris,omitempty"`
	PostLogoutURIs       *[]string    `json:"postLogoutUris,omitempty"`
	BackChannelLogoutURI *string      `json:"backChannelLogoutUri,omitempty"`
	InitiateLoginURI     *string      `json:"initiateLoginUri,omitempty"`
	KeySetURI            *string      `json:"keySetUri,omitempty"`
	TokenFormat          *TokenFormat `json:"tokenFormat,omitempty"`
	SigningAlgorithm     *string      `json:"signingAlgorithm,omitempty"`
	AccessTokenSeconds   *int64       `json:"accessTokenSeconds,omitempty"`
	RefreshTokenSeconds  *int64       `json:"refreshTokenSeconds,omitempty"`
	ConsentRequired      *bool        `json:"consentRequired,omitempty"`
	AllOrganizations     *bool        `json:"allOrganizations,omitempty"`
	ExactAuthMethod      *bool        `json:"exactAuthMethod,omitempty"`

	IDTokenClaims *IDTokenClaims `json:"idTokenClaims,omitempty"`

	PushedRequired *bool `json:"pushedRequired,omitempty"`
	DPoPRequired   *bool `json:"dpopRequired,omitempty"`
}

// EventType implements event.Fact.
func (SettingsChanged) EventType() event.Type { return "app.settings_changed.v1" }

// Since implements event.Gated, as for Added.
func (e SettingsChanged) Since() int {
	if e.PushedRequired != nil || e.DPoPRequired != nil {
		return 6
	}
	return 0
}

// Apply implements event.Fact. People who may no longer sign in must not keep their tokens either. A token does not
// tell whether its user is one of them, so all tokens end.
func (e SettingsChanged) Apply(a *App) {
	if a.AllOrganizations && e.AllOrganizations != nil && !*e.AllOrganizations {
		a.Epoch++
	}
	event.Set(&a.Name, e.Name)
	event.Set(&a.NameKey, e.NameKey)
	event.Set(&a.AuthMethod, e.AuthMethod)
	event.Set(&a.GrantTypes, e.GrantTypes)
	event.Set(&a.RedirectURIs, e.RedirectURIs)
	event.Set(&a.PostLogoutURIs, e.PostLogoutURIs)
	event.Set(&a.BackChannelLogoutURI, e.BackChannelLogoutURI)
	event.Set(&a.InitiateLoginURI, e.InitiateLoginURI)
	event.Set(&a.KeySetURI, e.KeySetURI)
	event.Set(&a.TokenFormat, e.TokenFormat)
	event.Set(&a.SigningAlgorithm, e.SigningAlgorithm)
	event.Set(&a.AccessTokenSeconds, e.AccessTokenSeconds)
	event.Set(&a.RefreshTokenSeconds, e.RefreshTokenSeconds)
	event.Set(&a.ConsentRequired, e.ConsentRequired)
	event.Set(&a.AllOrganizations, e.AllOrganizations)
	event.Set(&a.ExactAuthMethod, e.ExactAuthMethod)
	event.Set(&a.IDTokenClaims, e.IDTokenClaims)
	event.Set(&a.PushedRequired, e.PushedRequired)
	event.Set(&a.DPoPRequired, e.DPoPRequired)
}

// difference is what leads from one state to another.
func difference(old, to *App) SettingsChanged {
	return SettingsChanged{
		Name:                 event.Changed(old.Name, to.Name),
		NameKey:              event.Changed(old.NameKey, to.NameKey),
		AuthMethod:           event.Changed(old.AuthMethod, to.AuthMethod),
		GrantTypes:           event.ChangedList(old.GrantTypes, to.GrantTypes),
		RedirectURIs:         event.ChangedList(old.RedirectURIs, to.RedirectURIs),
		PostLogoutURIs:       event.ChangedList(old.PostLogoutURIs, to.PostLogoutURIs),
		BackChannelLogoutURI: event.Changed(old.BackChannelLogoutURI, to.BackChannelLogoutURI),
		InitiateLoginURI:     event.Changed(old.InitiateLoginURI, to.InitiateLoginURI),
		KeySetURI:            event.Changed(old.KeySetURI, to.KeySetURI),
		TokenFormat:          event.Changed(old.TokenFormat, to.TokenFormat),
		SigningAlgorithm:     event.Changed(old.SigningAlgorithm, to.SigningAlgorithm),
		AccessTokenSeconds:   event.Changed(old.AccessTokenSeconds, to.AccessTokenSeconds),
		RefreshTokenSeconds:  event.Changed(old.RefreshTokenSeconds, to.RefreshTokenSeconds),
		ConsentRequired:      event.Changed(old.ConsentRequired, to.ConsentRequired),
		AllOrganizations:     event.Changed(old.AllOrganizations, to.AllOrganizations),
		ExactAuthMethod:      event.Changed(old.ExactAuthMethod, to.ExactAuthMethod),
		IDTokenClaims:        event.Changed(old.IDTokenClaims, to.IDTokenClaims),
		PushedRequired:       event.Changed(old.PushedRequired, to.PushedRequired),
		DPoPRequired:         event.Changed(old.DPoPRequired, to.DPoPRequired),
	}
}

// SecretSet records that the application got a new secret. The hash itself is a secret, not a fact.
type SecretSet struct {
	OldUntil int64 `json:"oldUntil,omitempty"` // when the one before it stops working; 0: at once
	ByOwner  bool  `json:"byOwner,omitempty"`  // an owner of the installation made it
}

// EventType implements event.Fact.
func (SecretSet) EventType() event.Type { return "app.secret_set.v1" }

// Apply implements event.Fact.
func (e SecretSet) Apply(a *App) {
	a.OldSecretByOwner = a.SecretByOwner && e.OldUntil != 0
	a.HasSecret, a.OldSecretUntil, a.SecretByOwner = true, e.OldUntil, e.ByOwner
}

// SecretRemoved records that the application has no secret any more.
type SecretRemoved struct{}

// EventType implements event.Fact.
func (SecretRemoved) EventType() event.Type { return "app.secret_removed.v1" }

// Apply implements event.Fact.
func (SecretRemoved) Apply(a *App) {
	a.HasSecret, a.OldSecretUntil, a.SecretByOwner, a.OldSecretByOwner = false, 0, false, false
}

// KeyAdded records a new public key.
type KeyAdded struct {
	KeyID   string `json:"keyId"`
	Public  string `json:"public"`
	Created int64  `json:"created"`
	Expires int64  `json:"expires,omitempty"`
	ByOwner bool   `json:"byOwner,omitempty"` // an owner of the installation added it
}

// EventType implements event.Fact.
func (KeyAdded) EventType() event.Type { return "app.key_added.v1" }

// Apply implements event.Fact.
func (e KeyAdded) Apply(a *App) {
	a.Keys = append(slices.Clip(a.Keys), Key{ID: e.KeyID, Public: e.Public, Created: e.Created, Expires: e.Expires,
		ByOwner: e.ByOwner})
}

// KeyRemoved records that a key does not count any more.
type KeyRemoved struct {
	KeyID string `json:"keyId"`
}

// EventType implements event.Fact.
func (KeyRemoved) EventType() event.Type { return "app.key_removed.v1" }

// Apply implements event.Fact.
func (e KeyRemoved) Apply(a *App) {
	a.Keys = slices.DeleteFunc(slices.Clone(a.Keys), func(k Key) bool { return k.ID == e.KeyID })
}

// APIAccessSet records which scopes of Signet's own API the application may ask for.
type APIAccessSet struct {
	Scopes []string `json:"scopes"` // sorted, each once
}

// EventType implements event.Fact.
func (APIAccessSet) EventType() event.Type { return "app.api_access_set.v1" }

// Apply implements event.Fact. Tokens from before another decision do not outlive it.
func (e APIAccessSet) Apply(a *App) {
	if !slices.Equal(a.APIScopes, e.Scopes) {
		a.Epoch++
	}
	a.APIScopes = e.Scopes
}

// APIConsentsEnded records that the application was changed so that others have more of it than those whom people gave
// scopes of Signet's API. Consents, codes and tokens with such scopes do not count any more.
type APIConsentsEnded struct{}

// EventType implements event.Fact.
func (APIConsentsEnded) EventType() event.Type { return "app.api_consents_ended.v1" }

// Since implements event.Gated: a node that does not know it would go on with the consents.
func (APIConsentsEnded) Since() int { return 5 }

// Apply implements event.Fact.
func (APIConsentsEnded) Apply(a *App) { a.APIEpoch++ }

// AudienceApproved records that a client of another organization may have tokens for the application.
type AudienceApproved struct {
	ClientID  string `json:"clientId"`
	ClientOrg string `json:"clientOrg"`
	At        int64  `json:"at"`
}

// EventType implements event.Fact.
func (AudienceApproved) EventType() event.Type { return "app.audience_approved.v1" }

// Apply implements event.Fact.
func (e AudienceApproved) Apply(a *App) {
	a.Approvals = append(slices.Clip(a.Approvals), Approval{Client: e.ClientID, Org: e.ClientOrg, At: e.At})
}

// AudienceWithdrawn records that a client of another organization may have no more tokens for the application.
type AudienceWithdrawn struct {
	ClientID string `json:"clientId"`
}

// EventType implements event.Fact.
func (AudienceWithdrawn) EventType() event.Type { return "app.audience_withdrawn.v1" }

// Apply implements event.Fact.
func (e AudienceWithdrawn) Apply(a *App) {
	a.Approvals = slices.DeleteFunc(slices.Clone(a.Approvals),
		func(given Approval) bool { return given.Client == e.ClientID })
}

// Deactivated records that nobody may sign in to the application, and that its tokens have ended.
type Deactivated struct{}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "app.deactivated.v1" }

// Apply implements event.Fact.
func (Deactivated) Apply(a *App) { a.State = Inactive; a.Epoch++ }

// Reactivated records that people may sign in to the application again.
type Reactivated struct{}

// EventType implements event.Fact.
func (Reactivated) EventType() event.Type { return "app.reactivated.v1" }

// Apply implements event.Fact.
func (Reactivated) Apply(a *App) { a.State = Active }

// WasRemoved records the end of the application.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "app.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(a *App) {
	*a = App{Standing: Standing{State: Removed, Epoch: a.Epoch + 1, APIEpoch: a.APIEpoch}}
}

// OwnSignInSet records whether the application may have pages of its own through which people sign in at identity
// providers.
type OwnSignInSet struct {
	Allowed bool `json:"allowed"`
}

// EventType implements event.Fact.
func (OwnSignInSet) EventType() event.Type { return "app.own_sign_in_set.v1" }

// Since implements event.Gated: a node that does not know it would not record who changes the application from then on.
func (OwnSignInSet) Since() int { return 3 }

// Apply implements event.Fact.
func (e OwnSignInSet) Apply(a *App) {
	if a.OwnSignIn = e.Allowed; !e.Allowed {
		a.Changer = nil
	}
}

// Vouched records who answers for an application with a sign-in page of its own: the user who changed that setting, its
// secret, its method or its redirect URIs.
type Vouched struct {
	By     string             `json:"by"`
	Roles  access.Memberships `json:"roles,omitempty"`  // of that moment
	Fields []string           `json:"fields,omitempty"` // for these only; none: for all
}

// EventType implements event.Fact.
func (Vouched) EventType() event.Type { return "app.vouched.v1" }

// Since implements event.Gated. A node that does not know the fields takes it as for all, as all nodes did before.
func (Vouched) Since() int { return 3 }

// Apply implements event.Fact.
func (e Vouched) Apply(a *App) {
	last, earlier := access.Answer{UserID: e.By, Roles: e.Roles, Fields: e.Fields}.After(a.Changer.answers())
	a.Changer = &Changer{UserID: last.UserID, Roles: last.Roles, Fields: last.Fields, Earlier: earlier}
}

// FirstPartySet records that an owner of the installation marked the application as the operator's own, or took the mark
// away.
type FirstPartySet struct {
	Marked bool   `json:"marked"`
	By     string `json:"by"`
	At     int64  `json:"at"`

	// What stops counting with the mark, because no owner of the installation made it: the secret with the one before
	// it, the one before it alone, keys.
	EndsSecret    bool     `json:"endsSecret,omitempty"`
	EndsOldSecret bool     `json:"endsOldSecret,omitempty"`
	EndsKeys      []string `json:"endsKeys,omitempty"`
}

// EventType implements event.Fact.
func (FirstPartySet) EventType() event.Type { return "app.first_party_set.v1" }

// Since implements event.Gated: a node that does not know it would let the organization change the application, and end
// tokens that nobody was asked about.
func (FirstPartySet) Since() int { return 6 }

// Apply implements event.Fact. Without the mark people of other organizations are asked. A token does not tell whether
// its user was, so all tokens end.
func (e FirstPartySet) Apply(a *App) {
	if !e.Marked {
		a.FirstParty = nil
		a.Epoch++
		return
	}
	a.FirstParty = &FirstParty{By: e.By, At: e.At}
	if e.EndsSecret {
		SecretRemoved{}.Apply(a)
	}
	if e.EndsOldSecret {
		a.OldSecretUntil, a.OldSecretByOwner = 0, false
	}
	a.Keys = slices.DeleteFunc(slices.Clone(a.Keys), func(k Key) bool { return slices.Contains(e.EndsKeys, k.ID) })
}

// RoleSettingsSet records which project the application belongs to from now on, and what it is told about people there.
type RoleSettingsSet struct {
	RoleSettings
}

// EventType implements event.Fact.
func (RoleSettingsSet) EventType() event.Type { return "app.role_settings_set.v1" }

// Since implements event.Gated: a node that does not know it would let people in who have no role.
func (RoleSettingsSet) Since() int { return 4 }

// Apply implements event.Fact. People who may use the application only because of its project lose that when the
// project changes. A token does not tell whether its user is one of them, so all tokens end.
func (e RoleSettingsSet) Apply(a *App) {
	if was := a.RoleSettings.Project; was != "" && was != e.Project {
		a.Epoch++
	}
	a.RoleSettings = e.RoleSettings
}
