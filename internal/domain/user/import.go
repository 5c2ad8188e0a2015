package user

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Imported is a person who comes from another system, perhaps with the hash of a password.
type Imported struct {
	NewHuman
	PasswordHash   string // empty: none
	ChangeRequired bool   // whether the first sign-in has to replace the password
}

// Violations lists what is wrong with it, under the names that fields have in an import.
func (p *Imported) Violations() errs.Violations {
	wrong := p.violations("", "email.address", "phone.number")
	if p.PasswordHash != "" {
		wrong.Add("passwordHash", errs.Plain(secret.HashProblem(p.PasswordHash)))
	}
	return wrong
}

// HumanImported records a person who came from another system. The person is told nothing about it. The hash of the
// password is a secret, not a fact.
type HumanImported struct {
	EmailVerified  bool          `json:"emailVerified,omitempty"`
	Verification   *Verification `json:"verification,omitempty"` // as in HumanAdded
	PhoneVerified  bool          `json:"phoneVerified,omitempty"`
	Password       bool          `json:"password,omitempty"` // the hash of one came along
	ChangeRequired bool          `json:"changeRequired,omitempty"`
	Personal       HumanFacts    `json:"-"`
}

// EventType implements event.Fact.
func (HumanImported) EventType() event.Type { return "user.human_imported.v1" }

// Apply implements event.Fact.
func (e HumanImported) Apply(u *User) {
	HumanAdded{EmailVerified: e.EmailVerified, Verification: e.Verification, PhoneVerified: e.PhoneVerified,
		Personal: e.Personal}.Apply(u)
	if e.Password {
		u.Password = Password{Version: 1, ChangeRequired: e.ChangeRequired}
	}
}

// ApplyAt implements event.EventAware.
func (e HumanImported) ApplyAt(u *User, at *event.Event) {
	if e.Apply(u); e.Verification == nil {
		u.Human.Email.assume(VerifiedByAdministrator, at)
	}
}

// Ahead encodes what is recorded of the person ahead of the command that records it.
func (e HumanImported) Ahead() (*event.Ahead[User], error) {
	e.Personal = e.Personal.short()
	return Kind.Ahead(e)
}

// Recorded is the fact as a command records it, with what was encoded ahead if every node reads that.
func (e HumanImported) Recorded(tx *event.Tx, ahead *event.Ahead[User]) event.Fact[User] {
	if tx.Every(shortVersion) {
		return ahead.Of(e)
	}
	return e
}

// Fact is what is recorded of the person.
func (p *Imported) Fact() HumanImported {
	hash := p.PasswordHash != ""
	return HumanImported{EmailVerified: p.EmailVerified, PhoneVerified: p.PhoneVerified && p.Phone != "",
		Password: hash, ChangeRequired: hash && p.ChangeRequired, Personal: p.facts()}
}
