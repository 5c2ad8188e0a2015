package user

import "github.com/signet-idm/signet/internal/eventlog/event"

// endAll ends every session and token for good.
func (u *User) endAll() {
	u.SessionEpoch++
	u.TokenEpoch++
}

// SessionsEnded records that the user was signed out everywhere. Personal access tokens stay.
type SessionsEnded struct{}

// EventType implements event.Fact.
func (SessionsEnded) EventType() event.Type { return "user.sessions_ended.v1" }

// Apply implements event.Fact.
func (SessionsEnded) Apply(u *User) { u.SessionEpoch++ }

// Deactivated records that the user may not sign in.
type Deactivated struct{}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "user.deactivated.v1" }

// Apply implements event.Fact.
func (Deactivated) Apply(u *User) { u.State = Inactive; u.endAll() }

// Reactivated records that a deactivated user may sign in again.
type Reactivated struct{}

// EventType implements event.Fact.
func (Reactivated) EventType() event.Type { return "user.reactivated.v1" }

// Apply implements event.Fact.
func (Reactivated) Apply(u *User) { u.State = Active }

// WasLocked records that an administrator locked the user out, or support.
type WasLocked struct {
	BySupport bool `json:"bySupport,omitempty"`
}

// EventType implements event.Fact.
func (WasLocked) EventType() event.Type { return "user.locked.v1" }

// Apply implements event.Fact.
func (e WasLocked) Apply(u *User) {
	u.State, u.LockedBySupport = Locked, e.BySupport
	u.endAll()
}

// Unlocked records that an administrator let the user in again.
type Unlocked struct{}

// EventType implements event.Fact.
func (Unlocked) EventType() event.Type { return "user.unlocked.v1" }

// Apply implements event.Fact.
func (Unlocked) Apply(u *User) { u.State, u.LockedBySupport = Active, false }

// WasRemoved records the end of the user. Nothing personal is left in the state, and the name becomes free.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "user.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(u *User) {
	*u = User{Standing: Standing{State: Removed, SessionEpoch: u.SessionEpoch, TokenEpoch: u.TokenEpoch}}
	u.endAll()
}
