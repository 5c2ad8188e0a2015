// Package user holds the rules of users: people and services, their profile, their roles, and when their credentials
// count.
//
// A user's state carries two epochs. Every session is bound to one of them and every personal access token to the
// other. Raising an epoch ends all sessions or all tokens at once, and no later change makes them valid again.
package user

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
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

	// Given are the roles that the user has without groups; nil where no group gives any: Memberships are the same
	// then.
	Given  access.Memberships   `json:"given,omitzero"`
	Groups map[string][]InGroup `json:"groups,omitempty"` // the groups the user is in, by organization
	// roles in applications that the user has without groups, the oldest first
	AppRoles []AppRoles `json:"appRoles,omitempty"`

	// Accepted is what the user has agreed to in other organizations, by organization. Roles beyond it wait. Who is
	// somewhere without an entry got all roles there before anybody was asked: they count as they are.
	Accepted map[string]Acceptance `json:"accepted,omitempty"`

	Metadata map[string]string `json:"metadata,omitempty"` // what programs keep about the user

	LockedBySupport bool `json:"lockedBySupport,omitempty"` // so support may unlock the user
}

// Standing is the part of a user's state that decides about credentials. Every request reads it, and nothing else.
type Standing struct {
	State        State              `json:"state"`
	Memberships  access.Memberships `json:"memberships,omitempty"` // with the roles that groups give; no roles: a guest
	Password     Password           `json:"password,omitzero"`
	SessionEpoch int64              `json:"sessionEpoch,omitempty"`
	TokenEpoch   int64              `json:"tokenEpoch,omitempty"`
	SecondFactor bool               `json:"secondFactor,omitempty"` // one is enrolled: sessions have to prove it
	// ids of Human.Links: what came by another one has ended
	Links []string `json:"links,omitempty"`
}

// Human is what only people have.
type Human struct {
	Profile Profile `json:"profile"`
	NameKey string  `json:"nameKey,omitempty"` // of the display name
	Email   Email   `json:"email"`
	Phone   *Phone  `json:"phone,omitempty"`

	Factors       []Factor `json:"factors,omitempty"`       // second factors, the oldest first
	RecoveryCodes int      `json:"recoveryCodes,omitempty"` // how many are left

	Links []Link `json:"links,omitempty"` // to accounts at identity providers, the oldest first

	Terms *Terms `json:"terms,omitempty"` // that were accepted last

	emailColumns *emailColumns // as they were worked out last, never altered; nil: never
}

// Email is an address as sent, and in the form it is looked up by.
type Email struct {
	Address  string `json:"address"`
	Key      string `json:"key,omitempty"`
	Verified bool   `json:"verified,omitempty"`

	Verification Verification `json:"verification,omitzero"` // of a verified one
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
	NameKey     string `json:"nameKey,omitempty"`
	Description string `json:"description,omitempty"`
	HasSecret   bool   `json:"hasSecret,omitempty"`
	Keys        []Key  `json:"keys,omitempty"` // the oldest first

	Workloads []WorkloadRule `json:"workloads,omitempty"` // the oldest first
}

// Type of a user, as lists are filtered by it.
type Type string

// The types.
const (
	IsHuman   Type = "human"
	IsService Type = "service"
)

// Type of the user.
func (u *User) Type() Type {
	if u.Service != nil {
		return IsService
	}
	return IsHuman
}

// ShownName is the name of a person or a service user to show to others.
func (u *User) ShownName() string {
	switch {
	case u.Human != nil:
		return u.Human.Profile.DisplayName
	case u.Service != nil:
		return u.Service.Name
	}
	return ""
}

// Password says what is known about a password besides its hash, which is a secret and lives elsewhere.
type Password struct {
	Version        int64 `json:"version,omitempty"` // counts the passwords; 0: none
	ChangeRequired bool  `json:"changeRequired,omitempty"`
	Given          bool  `json:"given,omitempty"`   // somebody else has set it, and may know it
	Cleared        int64 `json:"cleared,omitempty"` // how often the throttle was cleared since
}

// IsID tells whether an identifier has the form of a user's: clients are applications or service users.
func IsID(id string) bool { return strings.HasPrefix(id, Kind.Prefix()+"_") }

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[User]{
	Name: "user", Table: "users", Prefix: "usr", Shape: 8, Since: shortVersion, Short: short, Full: full,
	Form: digestForm,
	Facts: []event.Fact[User]{
		HumanAdded{}, HumanImported{}, ServiceAdded{}, ProfileChanged{}, ServiceChanged{}, UserNameChanged{},
		PasswordSet{}, PasswordChanged{}, MembershipSet{},
		EmailChanged{}, EmailVerified{}, PhoneChanged{}, PhoneVerified{}, PhoneRemoved{},
		Deactivated{}, Reactivated{}, WasLocked{}, Unlocked{}, WasRemoved{},
		EmailCodeRequested{}, EmailRestored{}, PasswordReset{}, PasswordSetupSent{}, SessionsEnded{}, SecretSet{},
		SecretRemoved{}, KeyAdded{}, KeyRemoved{}, WorkloadRuleAdded{}, WorkloadRuleRemoved{},
		TOTPAdded{}, PasskeyAdded{}, FactorRenamed{}, FactorRemoved{}, RecoveryCodesMade{}, RecoveryCodeUsed{},
		LinkAdded{}, LinkConfirmed{}, LinkRemoved{},
		GroupJoined{}, GroupLeft{}, GroupRolesSet{}, OrgLeft{}, AppRolesSet{}, RolesAccepted{}, CustomRoleChanged{},
		TermsAccepted{}, MetadataSet{}, ThrottleCleared{}, FactorRemovalRequested{},
	},
	Token: event.TokenUser,
	Columns: []string{event.Standing, VerifiedEmail, event.State, byType, byUserName, byName, byEmail,
		FirstByEmail, EmailWord},
	Lookup: func(o *event.Object[User]) []string {
		u := &o.Data
		if u.State == Removed {
			return []string{event.StandingOf(&u.Standing), "", event.Removed, "", "", "", "", "", ""}
		}
		email := u.emailColumns(o.Org, o.Short())
		return []string{event.StandingOf(&u.Standing), email.verified, string(u.State), string(u.Type()),
			event.LookupText(u.key(byUserName)), event.LookupText(u.key(byName)), event.LookupText(u.key(byEmail)),
			email.order, email.word}
	},
	Groups: func(o *event.Object[User]) []string {
		var groups []string
		ownsOther := false
		for scope, roles := range o.Data.Memberships {
			if groups = append(groups, MembersOf(scope)); slices.Contains(roles, access.OrgOwner) {
				groups = append(groups, OwnersOf(scope))
				ownsOther = ownsOther || scope != o.Org
			}
		}
		if ownsOther {
			groups = append(groups, OwnersFrom(o.Org))
		}
		for _, in := range o.Data.Groups {
			for _, g := range in {
				groups = append(groups, InGroupOf(g.ID))
			}
		}
		for _, r := range o.Data.AppRoles {
			groups = append(groups, AppRolesIn(r.Place))
		}
		for _, name := range o.Data.customRoles() {
			groups = append(groups, HoldersOf(name))
		}
		return groups
	},
	Words: func(o *event.Object[User]) []string { return o.Data.texts() },
	Claims: func(o *event.Object[User]) []event.Claim {
		if o.Data.State == Removed {
			return nil
		}
		claims := []event.Claim{NameClaim(o.Org, o.Data.UserNameKey)}
		if o.Data.Human != nil {
			for _, l := range o.Data.Human.Links {
				claims = append(claims, LinkClaim(l.Provider, l.Issuer, l.Subject))
			}
		}
		return claims
	},
	Copy: (*User).clone,
})

// Lookup columns that lists are filtered by.
const (
	byUserName = "user_name"
	byName     = "name"
	byEmail    = "email"
	byType     = "type"
)

// key is the text that a user is found by in a lookup column, in full: the column holds the beginning of it.
func (u *User) key(column string) string {
	switch {
	case column == byUserName:
		return u.UserNameKey
	case column == byName && u.Human != nil:
		return cmp.Or(u.Human.NameKey, syntax.PlainKey(u.Human.Profile.DisplayName))
	case column == byName && u.Service != nil:
		return cmp.Or(u.Service.NameKey, syntax.PlainKey(u.Service.Name))
	case column == byEmail && u.Human != nil:
		return u.Human.Email.Key
	}
	return ""
}

// clone copies what facts alter in place. Memberships, acceptances, groups, roles, keys, rules, factors, links, terms and
// metadata are replaced, never altered.
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

// MembersOf is the group of the users who hold roles in an organization, or in access.Installation.
func MembersOf(scope string) string { return "members/" + scope }

// OwnersOf is the group of the users who own an organization.
func OwnersOf(org string) string { return "owners/" + org }

// OwnersFrom is the group of the users of an organization who own another one.
func OwnersFrom(home string) string { return "owners_from/" + home }

// InGroupOf is the group of the users who are in a group of an organization.
func InGroupOf(group string) string { return "group/" + group }

// AppRolesIn is the group of the users who have roles of a project without groups: of the project in its own
// organization, or of the access that another organization has to it.
func AppRolesIn(place string) string { return "app_roles/" + place }

// NameClaim is the claim of the user with this name (in its comparison form) in an organization.
func NameClaim(org, nameKey string) event.Claim {
	return event.Claim{Space: "user_name/" + org, Key: nameKey}
}

// EmailDigest is what the lookup column holds of a verified e-mail address: of one size, however long it is.
func EmailDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// shortVersion is the version of facts since which states are short, see short, and the events about new people.
const shortVersion = 6

// short leaves out what most users' other texts say: keys of plain texts, and the name that is made of first and last
// name. With it, and with digests of half the length, six users take a page of the embedded database, not four.
func short(u User) User {
	u.UserNameKey = unlessPlain(u.UserNameKey, u.UserName)
	if u.Human == nil {
		return u
	}
	h := *u.Human
	h.NameKey = unlessPlain(h.NameKey, h.Profile.DisplayName)
	h.Profile = h.Profile.short()
	h.Email.Key = unlessPlain(h.Email.Key, h.Email.Address)
	u.Human = &h
	return u
}

// unlessPlain leaves out the key of a text that is its plain one.
func unlessPlain(key, text string) string {
	if key == syntax.PlainKey(text) {
		return ""
	}
	return key
}

// full is the state again. Events have always named what it puts back: where it is missing, short has left it out.
func full(u User) User {
	u.UserNameKey = cmp.Or(u.UserNameKey, syntax.PlainKey(u.UserName))
	if u.Human == nil {
		return u
	}
	h := *u.Human
	h.Profile = h.Profile.full()
	h.NameKey = cmp.Or(h.NameKey, syntax.PlainKey(h.Profile.DisplayName))
	h.Email.Key = cmp.Or(h.Email.Key, syntax.PlainKey(h.Email.Address))
	u.Human = &h
	return u
}

// shortDigest is what the columns of verified addresses hold of a digest: 128 bits. Nobody finds a second address with
// those of a first one.
func shortDigest(digest string) string {
	sum, err := hex.DecodeString(digest)
	if err != nil || len(sum) != sha256.Size {
		return digest // none
	}
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// digestForm: objects of the shape before have the whole digest.
func digestForm(column, value string) string {
	if column == VerifiedEmail || column == EmailWord {
		return shortDigest(value)
	}
	return value
}

// Reasons of this package.
const (
	NotFound      errs.Reason = "USER_NOT_FOUND"
	NotHuman      errs.Reason = "NOT_A_HUMAN_USER"
	NotService    errs.Reason = "NOT_A_SERVICE_USER"
	UserNameTaken errs.Reason = "USER_NAME_TAKEN"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no user with this identifier in that organization: if it belongs to another one, name that one in x-service-orgid")
	ErrNotHuman = errs.New(errs.FailedPrecondition, NotHuman,
		"this is a service user: only a person has a profile, an e-mail address, a phone number and a password")
	ErrNotService = errs.New(errs.FailedPrecondition, NotService,
		"this is a person: only a service user has a description, a secret, keys, and tokens that administrators create")
	ErrUserNameTaken = errs.New(errs.AlreadyExists, UserNameTaken,
		"the user name is taken in this organization: choose another one")
)

// Get reads a user within the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[User], error) {
	return Within(permit, id).Read(ctx, r)
}

// Self reads the caller's own user, which may have come with the credential. Errors: ErrNotFound when it was removed
// meanwhile.
func Self(ctx context.Context, r event.Reader, caller *access.Caller) (*event.Object[User], error) {
	if caller.User == nil {
		return Mine(caller).Read(ctx, r)
	}
	o, err := Kind.Open(caller.User)
	if err == nil {
		err = present(o)
	}
	return o, err
}
