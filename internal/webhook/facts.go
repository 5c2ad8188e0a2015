package webhook

import "github.com/signet-idm/signet/internal/event"

// Added records a new webhook.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	Settings
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "webhook.added.v1" }

// Apply implements event.Fact.
func (e Added) Apply(w *Webhook) {
	w.State, w.Name, w.NameKey, w.Settings = Active, e.Name, e.NameKey, e.Settings
}

// SettingsChanged records what is different in the settings.
type SettingsChanged struct {
	Name             *string   `json:"name,omitempty"`
	NameKey          *string   `json:"nameKey,omitempty"` // follows from Name
	URL              *string   `json:"url,omitempty"`
	Types            *[]string `json:"types,omitempty"`
	AllOrganizations *bool     `json:"allOrganizations,omitempty"`
	OrganizationIDs  *[]string `json:"organizationIds,omitempty"`
	PersonalData     *bool     `json:"personalData,omitempty"`
}

// EventType implements event.Fact.
func (SettingsChanged) EventType() event.Type { return "webhook.settings_changed.v1" }

// Apply implements event.Fact.
func (e SettingsChanged) Apply(w *Webhook) {
	event.Set(&w.Name, e.Name)
	event.Set(&w.NameKey, e.NameKey)
	event.Set(&w.URL, e.URL)
	event.Set(&w.Types, e.Types)
	event.Set(&w.AllOrganizations, e.AllOrganizations)
	event.Set(&w.OrganizationIDs, e.OrganizationIDs)
	event.Set(&w.PersonalData, e.PersonalData)
}

// difference is what leads from one state to another.
func difference(old, to *Webhook) SettingsChanged {
	return SettingsChanged{
		Name:             event.Changed(old.Name, to.Name),
		NameKey:          event.Changed(old.NameKey, to.NameKey),
		URL:              event.Changed(old.URL, to.URL),
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
