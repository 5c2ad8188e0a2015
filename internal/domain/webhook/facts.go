package webhook

import (
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Added records a new webhook. Where its messages go is no fact but a secret: such an address may hold a token.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	Address string `json:"address"` // what may be shown of it
	Selection
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "webhook.added.v2" }

// Apply implements event.Fact.
func (e Added) Apply(w *Webhook) {
	w.State, w.Name, w.NameKey, w.Address, w.Selection = Active, e.Name, e.NameKey, e.Address, e.Selection
}

// AddedV1 is what Added was when the address stood in it. Messages go there until another address is set, see urlInLog.
type AddedV1 struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	URL     string `json:"url"`
	Selection
}

// EventType implements event.Fact.
func (AddedV1) EventType() event.Type { return "webhook.added.v1" }

// Apply implements event.Fact.
func (e AddedV1) Apply(w *Webhook) {
	w.State, w.Name, w.NameKey, w.Selection = Active, e.Name, e.NameKey, e.Selection
	w.addressInLog(e.URL)
}

// addressInLog notes an address that stands in the log. It matters where there is something in it that is not shown.
func (w *Webhook) addressInLog(url string) {
	w.Address = syntax.ShownURL(url)
	w.AddressInLog = w.Address != url
}

// SettingsChanged records what is different in the settings.
type SettingsChanged struct {
	Name    *string `json:"name,omitempty"`
	NameKey *string `json:"nameKey,omitempty"` // follows from Name
	// what may be shown of a new address, whether or not it looks like the one before
	Address          *string   `json:"address,omitempty"`
	Types            *[]string `json:"types,omitempty"`
	AllOrganizations *bool     `json:"allOrganizations,omitempty"`
	OrganizationIDs  *[]string `json:"organizationIds,omitempty"`
	PersonalData     *bool     `json:"personalData,omitempty"`
}

// EventType implements event.Fact.
func (SettingsChanged) EventType() event.Type { return "webhook.settings_changed.v2" }

// Apply implements event.Fact.
func (e SettingsChanged) Apply(w *Webhook) {
	if e.Address != nil {
		w.Address, w.AddressInLog = *e.Address, false
	}
	event.Set(&w.Name, e.Name)
	event.Set(&w.NameKey, e.NameKey)
	event.Set(&w.Types, e.Types)
	event.Set(&w.AllOrganizations, e.AllOrganizations)
	event.Set(&w.OrganizationIDs, e.OrganizationIDs)
	event.Set(&w.PersonalData, e.PersonalData)
}

// SettingsChangedV1 is what SettingsChanged was when the address stood in it.
type SettingsChangedV1 struct {
	Name             *string   `json:"name,omitempty"`
	NameKey          *string   `json:"nameKey,omitempty"`
	URL              *string   `json:"url,omitempty"`
	Types            *[]string `json:"types,omitempty"`
	AllOrganizations *bool     `json:"allOrganizations,omitempty"`
	OrganizationIDs  *[]string `json:"organizationIds,omitempty"`
	PersonalData     *bool     `json:"personalData,omitempty"`
}

// EventType implements event.Fact.
func (SettingsChangedV1) EventType() event.Type { return "webhook.settings_changed.v1" }

// Apply implements event.Fact.
func (e SettingsChangedV1) Apply(w *Webhook) {
	SettingsChanged{Name: e.Name, NameKey: e.NameKey, Types: e.Types, AllOrganizations: e.AllOrganizations,
		OrganizationIDs: e.OrganizationIDs, PersonalData: e.PersonalData}.Apply(w)
	if e.URL != nil {
		w.addressInLog(*e.URL)
	}
}

// difference is what leads from one state to another, but for the address.
func difference(old, to *Webhook) SettingsChanged {
	return SettingsChanged{
		Name:             event.Changed(old.Name, to.Name),
		NameKey:          event.Changed(old.NameKey, to.NameKey),
		Types:            event.ChangedList(old.Types, to.Types),
		AllOrganizations: event.Changed(old.AllOrganizations, to.AllOrganizations),
		OrganizationIDs:  event.ChangedList(old.OrganizationIDs, to.OrganizationIDs),
		PersonalData:     event.Changed(old.PersonalData, to.PersonalData),
	}
}

// SecretSet records that messages are signed with a new secret. The secret itself is no fact.
type SecretSet struct {
	OldUntil int64 `json:"oldUntil,omitempty"` // until when the one before it signs, too; 0: it does not
}

// EventType implements event.Fact.
func (SecretSet) EventType() event.Type { return "webhook.secret_set.v1" }

// Apply implements event.Fact.
func (e SecretSet) Apply(w *Webhook) { w.OldSecretUntil = e.OldUntil }

// Deactivated records that nothing is sent any more.
type Deactivated struct {
	Gone bool `json:"gone,omitempty"` // the receiver said that it is gone
}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "webhook.deactivated.v1" }

// Apply implements event.Fact.
func (e Deactivated) Apply(w *Webhook) { w.State, w.Gone = Inactive, e.Gone }

// Reactivated records that events are sent again, from where that stopped.
type Reactivated struct{}

// EventType implements event.Fact.
func (Reactivated) EventType() event.Type { return "webhook.reactivated.v1" }

// Apply implements event.Fact.
func (Reactivated) Apply(w *Webhook) { w.State, w.Gone = Active, false }

// Replayed records that an event that had failed, or all of them, are tried again.
type Replayed struct {
	EventID string `json:"eventId,omitempty"` // empty: all
}

// EventType implements event.Fact.
func (Replayed) EventType() event.Type { return "webhook.replayed.v1" }

// Apply implements event.Fact. What waits is no part of the state.
func (Replayed) Apply(*Webhook) {}

// Skipped records that an event that had failed is not sent, and that those behind it are.
type Skipped struct {
	EventID string `json:"eventId"`
}

// EventType implements event.Fact.
func (Skipped) EventType() event.Type { return "webhook.skipped.v1" }

// Apply implements event.Fact. What waits is no part of the state.
func (Skipped) Apply(*Webhook) {}

// WasRemoved records the end of the webhook.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "webhook.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(w *Webhook) { *w = Webhook{State: Removed} }
