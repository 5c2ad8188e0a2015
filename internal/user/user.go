// Package user holds the rules of users: people and services, their profile, what they hold, and when their
// credentials count.
//
// A user's state carries two epochs. Every session is bound to one of them and every personal access token to the
// other; raising an epoch ends all of them at once, and they stay dead whatever happens later.
package user

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
)

// State of a user.
type State string

// ACTIVE <-> INACTIVE, ACTIVE <-> LOCKED, any -> REMOVED.
const (
	Active   State = "active"
	Inactive State = "inactive"
	Locked   State = "locked"
	Removed  State = "removed"
)

// User is the state of a user. Exactly one of Human and Service is set.
type User struct {
	Standing
	UserName    string   `json:"userName,omitempty"`
	UserNameKey string   `json:"userNameKey,omitempty"`
	Human       *Human   `json:"human,omitempty"`
	Service     *Service `json:"service,omitempty"`
}

// Standing is the part of a user's state that decides about credentials. Every request reads it, and nothing else.
type Standing struct {
	State        State              `json:"state"`
	Memberships  access.Memberships `json:"memberships,omitempty"`
	Password     Password           `json:"password,omitzero"`
	SessionEpoch int64              `json:"sessionEpoch,omitempty"`
	TokenEpoch   int64              `json:"tokenEpoch,omitempty"`
}

// Human is what only people have.
type Human struct {
	Profile Profile `json:"profile"`
	Email   Email   `json:"email"`
	Phone   *Phone  `json:"phone,omitempty"`
}

// Email is an address as sent, and in the form it is looked up by.
type Email struct {
	Address  string `json:"address"`
	Key      string `json:"key"`
	Verified bool   `json:"verified,omitempty"`
}

// Phone is a number as sent, and as +digits.
type Phone struct {
	Number   string `json:"number"`
	Normal   string `json:"normal"`
	Verified bool   `json:"verified,omitempty"`
}

// Service is what only service users have.
type Service struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Password says what is known about a password besides its hash, which is a secret and lives elsewhere.
type Password struct {
	Version        int64 `json:"version,omitempty"` // counts the passwords; 0: none
	ChangeRequired bool  `json:"changeRequired,omitempty"`
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[User]{
	Name: "user", Table: "users", Prefix: "usr", Shape: 1,
	Facts: []event.Fact[User]{
		HumanAdded{}, ServiceAdded{}, ProfileChanged{}, PasswordSet{}, PasswordChanged{}, MembershipSet{},
		Deactivated{}, Reactivated{}, WasLocked{}, Unlocked{}, WasRemoved{},
	},
	Columns: []string{event.Standing, "verified_email"},
	Lookup: func(o *event.Object[User]) []string {
		email := ""
		if h := o.State.Human; h != nil && h.Email.Verified {
			email = EmailDigest(h.Email.Key)
		}
		return []string{event.StandingOf(&o.State.Standing), email}
	},
	Claims: func(o *event.Object[User]) []event.Claim {
		if o.State.State == Removed {
			return nil
		}
		return []event.Claim{NameClaim(o.Org, o.State.UserNameKey)}
	},
	Copy: (*User).clone,
})

// clone copies what facts alter in place. Memberships are replaced, never altered.
func (u *User) clone() User {
	c := *u
	if u.Human != nil {
		human := *u.Human
		if human.Phone != nil {
			phone := *human.Phone
			human.Phone = &phone
		}
		c.Human = &human
	}
	if u.Service != nil {
		service := *u.Service
		c.Service = &service
	}
	return c
}

// NameClaim is the claim of the user with this name (in its comparison form) in an organization.
func NameClaim(org, nameKey string) event.Claim {
	return event.Claim{Space: "user_name/" + org, Key: nameKey}
}

// EmailDigest is what the lookup column holds of a verified e-mail address: of one size, however long it is.
func EmailDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Reasons of this package.
const (
	NotFound      errs.Reason = "USER_NOT_FOUND"
	NotHuman      errs.Reason = "NOT_A_HUMAN_USER"
	UserNameTaken errs.Reason = "USER_NAME_TAKEN"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound      = errs.New(errs.NotFound, NotFound, "there is no user with this identifier in that organization")
	ErrNotHuman      = errs.New(errs.FailedPrecondition, NotHuman, "this is a service user: it has no profile and no password")
	ErrUserNameTaken = errs.New(errs.AlreadyExists, UserNameTaken, "the user name is taken in this organization: choose another one")
)

// Reachable gives o if it is a user the permit reaches. Errors: ErrNotFound.
func Reachable(o *event.Object[User], permit access.Permit) (*event.Object[User], error) {
	if o == nil || o.State.State == Removed || !permit.Reaches(o.Org) {
		return nil, ErrNotFound
	}
	return o, nil
}

// Get reads a user within the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[User], error) {
	o, err := Kind.Read(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return Reachable(o, permit)
}

// Self reads the caller's own user. Errors: ErrNotFound when it was removed meanwhile.
func Self(ctx context.Context, r event.Reader, caller *access.Caller) (*event.Object[User], error) {
	return present(Kind.Read(ctx, r, caller.UserID))
}

func present(o *event.Object[User], err error) (*event.Object[User], error) {
	if err == nil && (o == nil || o.State.State == Removed) {
		return nil, ErrNotFound
	}
	return o, err
}
