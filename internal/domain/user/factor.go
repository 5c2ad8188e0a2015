package user

import (
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxFactors is how many second factors a person may have.
const MaxFactors = 20

// FactorKind says how a person proves a second factor.
type FactorKind string

// The kinds. Recovery codes are no factor of their own: they stand in for one that is lost.
const (
	TOTP    FactorKind = "totp"    // a code of an authenticator app
	Passkey FactorKind = "passkey" // a key in a device
)

// Factor is a second factor. What it is checked with is a secret and lives elsewhere, see FactorsRow.
type Factor struct {
	ID      string     `json:"id"`
	Kind    FactorKind `json:"kind"`
	Name    string     `json:"name,omitempty"`
	Created int64      `json:"created"`

	Removal *RemovalRequest `json:"removal,omitempty"` // that somebody has asked for; never altered
}

// RemovalRequest says that somebody wants a factor removed that the person has lost.
type RemovalRequest struct {
	By string `json:"by"`
	At int64  `json:"at"`
}

// removalLife is how long somebody can be asked to remove a factor before they have to be asked again.
const removalLife = 7 * 24 * time.Hour

// RemovalAsked gives the request to remove the factor that counts at a moment; nil: there is none.
func (f *Factor) RemovalAsked(now int64) *RemovalRequest {
	if f.Removal == nil || now >= f.Removal.At+removalLife.Microseconds() {
		return nil
	}
	return f.Removal
}

// FactorRemovalRequested records that somebody who does not remove a second factor wants others to.
type FactorRemovalRequested struct {
	FactorID string `json:"factorId"`
	By       string `json:"by"`
	At       int64  `json:"at"`
}

// EventType implements event.Fact.
func (FactorRemovalRequested) EventType() event.Type { return "user.factor_removal_requested.v1" }

// Apply implements event.Fact.
func (e FactorRemovalRequested) Apply(u *User) {
	if u.Human == nil {
		return
	}
	u.Human.Factors = slices.Clone(u.Human.Factors)
	for i := range u.Human.Factors {
		if u.Human.Factors[i].ID == e.FactorID {
			u.Human.Factors[i].Removal = &RemovalRequest{By: e.By, At: e.At}
		}
	}
}

// FactorsRow is the row with the secrets of all second factors of a user. It is one row, so that a command that uses up
// one of them locks the others, too.
func FactorsRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/factors"}
}

// Factor finds one of the person's second factors.
func (h *Human) Factor(id string) (Factor, bool) {
	if h == nil {
		return Factor{}, false
	}
	i := slices.IndexFunc(h.Factors, func(f Factor) bool { return f.ID == id })
	if i < 0 {
		return Factor{}, false
	}
	return h.Factors[i], true
}

// HadFactor tells whether a second factor is the person's and was added before a moment.
func (h *Human) HadFactor(id string, before int64) bool {
	f, ok := h.Factor(id)
	return ok && f.Created < before
}

// Has tells whether the person has a second factor of a kind.
func (h *Human) Has(kind FactorKind) bool {
	return h != nil && slices.ContainsFunc(h.Factors, func(f Factor) bool { return f.Kind == kind })
}

// FactorFacts is what a person calls a factor.
type FactorFacts struct {
	Name string `json:"name,omitempty"`
}

// TOTPAdded records that the person has an authenticator app from now on.
type TOTPAdded struct {
	FactorID string      `json:"factorId"`
	Created  int64       `json:"created"`
	Personal FactorFacts `json:"-"`
}

// EventType implements event.Fact.
func (TOTPAdded) EventType() event.Type { return "user.totp_added.v1" }

// Apply implements event.Fact.
func (e TOTPAdded) Apply(u *User) {
	u.addFactor(Factor{ID: e.FactorID, Kind: TOTP, Name: e.Personal.Name, Created: e.Created})
}

// PasskeyAdded records that the person has a passkey more.
type PasskeyAdded struct {
	FactorID string      `json:"factorId"`
	Created  int64       `json:"created"`
	Personal FactorFacts `json:"-"`
}

// EventType implements event.Fact.
func (PasskeyAdded) EventType() event.Type { return "user.passkey_added.v1" }

// Apply implements event.Fact.
func (e PasskeyAdded) Apply(u *User) {
	u.addFactor(Factor{ID: e.FactorID, Kind: Passkey, Name: e.Personal.Name, Created: e.Created})
}

func (u *User) addFactor(f Factor) {
	if u.Human != nil {
		u.Human.Factors = append(slices.Clip(u.Human.Factors), f)
		u.SecondFactor = true
	}
}

// FactorRenamed records what the person calls a second factor from now on.
type FactorRenamed struct {
	FactorID string      `json:"factorId"`
	Personal FactorFacts `json:"-"`
}

// EventType implements event.Fact.
func (FactorRenamed) EventType() event.Type { return "user.factor_renamed.v1" }

// Since implements event.Gated.
func (FactorRenamed) Since() int { return 4 }

// Apply implements event.Fact.
func (e FactorRenamed) Apply(u *User) {
	if u.Human == nil {
		return
	}
	u.Human.Factors = slices.Clone(u.Human.Factors)
	for i := range u.Human.Factors {
		if u.Human.Factors[i].ID == e.FactorID {
			u.Human.Factors[i].Name = e.Personal.Name
		}
	}
}

// FactorRemoved records that a second factor does not count any more. With the last one the recovery codes go.
type FactorRemoved struct {
	FactorID string `json:"factorId"`
}

// EventType implements event.Fact.
func (FactorRemoved) EventType() event.Type { return "user.factor_removed.v1" }

// Apply implements event.Fact.
func (e FactorRemoved) Apply(u *User) {
	if u.Human == nil {
		return
	}
	u.Human.Factors = slices.DeleteFunc(slices.Clone(u.Human.Factors),
		func(f Factor) bool { return f.ID == e.FactorID })
	if u.SecondFactor = len(u.Human.Factors) > 0; !u.SecondFactor {
		u.Human.Factors, u.Human.RecoveryCodes = nil, 0
	}
}

// RecoveryCodesMade records that the person got new recovery codes in place of any before.
type RecoveryCodesMade struct {
	Count int `json:"count"`
}

// EventType implements event.Fact.
func (RecoveryCodesMade) EventType() event.Type { return "user.recovery_codes_made.v1" }

// Apply implements event.Fact.
func (e RecoveryCodesMade) Apply(u *User) {
	if u.Human != nil {
		u.Human.RecoveryCodes = e.Count
	}
}

// RecoveryCodeUsed records that one of the codes is spent.
type RecoveryCodeUsed struct{}

// EventType implements event.Fact.
func (RecoveryCodeUsed) EventType() event.Type { return "user.recovery_code_used.v1" }

// Apply implements event.Fact.
func (RecoveryCodeUsed) Apply(u *User) {
	if u.Human != nil && u.Human.RecoveryCodes > 0 {
		u.Human.RecoveryCodes--
	}
}
