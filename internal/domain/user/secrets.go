package user

import "github.com/signet-idm/signet/internal/eventlog/event"

// SecretRow is where the hash of a service user's secret lives.
func SecretRow(id string) event.RowKey { return event.SecretOf(id) }

// SignInSourcesRow is where it is kept from where a user has signed in, as MACs.
func SignInSourcesRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/sign_in_places"}
}

// SecretRows are all rows that may hold a secret of a user: they go when the user goes.
func SecretRows(id string) []event.RowKey {
	return []event.RowKey{PasswordRow(id), SecretRow(id), CodeRow(id, ByEmail), CodeRow(id, ByPhone), ResetRow(id),
		SignInSourcesRow(id), FactorsRow(id), BeforeRow(id), SetupRow(id), DeclinedRow(id)}
}

// SecretSet records that a service user got a new secret. The hash itself is a secret, not a fact.
type SecretSet struct{}

// EventType implements event.Fact.
func (SecretSet) EventType() event.Type { return "user.secret_set.v1" }

// Apply implements event.Fact.
func (SecretSet) Apply(u *User) {
	if u.Service != nil {
		u.Service.HasSecret = true
	}
}

// SecretRemoved records that a service user has no secret any more.
type SecretRemoved struct{}

// EventType implements event.Fact.
func (SecretRemoved) EventType() event.Type { return "user.secret_removed.v1" }

// Apply implements event.Fact.
func (SecretRemoved) Apply(u *User) {
	if u.Service != nil {
		u.Service.HasSecret = false
	}
}
