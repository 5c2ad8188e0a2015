package user

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// PasswordSet records that somebody else's word replaced the password. The hash itself is a secret, not a fact.
type PasswordSet struct {
	ChangeRequired bool `json:"changeRequired,omitempty"`
}

// EventType implements event.Fact.
func (PasswordSet) EventType() event.Type { return "user.password_set.v1" }

// Apply implements event.Fact.
func (e PasswordSet) Apply(u *User) {
	u.Password = Password{Version: u.Password.Version + 1, ChangeRequired: e.ChangeRequired, Given: true}
	u.endAll()
}

// PasswordChanged records that the person chose a new password. It ends sessions, and tokens where the person wanted
// that.
type PasswordChanged struct {
	EndTokens bool `json:"endTokens,omitempty"`
}

// EventType implements event.Fact.
func (PasswordChanged) EventType() event.Type { return "user.password_changed.v1" }

// Apply implements event.Fact.
func (e PasswordChanged) Apply(u *User) {
	u.Password = Password{Version: u.Password.Version + 1}
	u.SessionEpoch++
	if e.EndTokens {
		u.TokenEpoch++
	}
}

// PasswordSetupSent records that an administrator wants the person to set a password, by a link that is a secret and no
// fact. It ends the one before.
type PasswordSetupSent struct {
	Shown   bool  `json:"shown,omitempty"` // to the administrator; else it goes to the address by mail
	Expires int64 `json:"expires"`
}

// EventType implements event.Fact.
func (PasswordSetupSent) EventType() event.Type { return "user.password_setup_sent.v1" }

// Apply implements event.Fact.
func (PasswordSetupSent) Apply(*User) {}

// SetupRow is where the pending link lives by which a user sets a password.
func SetupRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/password_setup"}
}

// PasswordRow is where the hash of a user's password lives.
func PasswordRow(id string) event.RowKey {
	return event.PasswordOf(id)
}

// PutPassword records a password for a user inside a command: the fact in the log, the hash beside it.
func PutPassword(tx *event.Tx, u *event.Object[User], hash []byte, fact event.Fact[User]) error {
	tx.PutRow(event.Row{RowKey: PasswordRow(u.ID), Value: hash})
	return u.Append(fact)
}

// NewPassword is a new password for somebody, on the word of an administrator.
type NewPassword struct {
	Password       string
	ChangeRequired bool
}

// SetPassword sets the password of a user in the permit's organization and ends all its sessions and tokens. Errors:
// ErrNotFound; access.ErrTargetHoldsMore; ErrNotHuman; InvalidArgument when the policy does not allow the password;
// Aborted when match does not hold; Unavailable when too many passwords are being hashed; those of permit.Renew when
// the caller may no longer once the password is hashed.
func SetPassword(ctx context.Context, s event.Store, hasher *secret.Hasher, permit access.Permit, id string,
	match event.IfMatch, p NewPassword) (event.Details, error) {
	// Hashing is expensive, so it is only done for those who may; what holds is decided again in the command.
	u, err := GivesAccess(permit, id).And(MustBeHuman).Read(ctx, s)
	if err != nil {
		return event.Details{}, err
	}
	rules, err := org.Settings(ctx, s, permit.Org())
	if err != nil {
		return event.Details{}, err
	}
	if wrong := rules.Given().Violations("password", p.Password); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	if err := match.Check(u.Sequence); err != nil {
		return event.Details{}, err
	}
	hash, err := hasher.Hash(ctx, p.Password)
	if err != nil {
		return event.Details{}, err
	}
	if permit, err = permit.Renew(ctx); err != nil { // the queue for hashing may have been long
		return event.Details{}, err
	}
	return GivesAccess(permit, id).And(MustBeHuman).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[User]) error {
			return PutPassword(tx, u, hash, PasswordSet{ChangeRequired: p.ChangeRequired})
		})
}
