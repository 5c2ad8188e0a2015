package user

import (
	"cmp"
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Gender of a person; the empty one says nothing.
type Gender string

// The genders the API knows.
const (
	Female  Gender = "female"
	Male    Gender = "male"
	Diverse Gender = "diverse"
)

// Profile of a person.
type Profile struct {
	FirstName         string `json:"firstName"`
	LastName          string `json:"lastName"`
	NickName          string `json:"nickName,omitempty"`
	DisplayName       string `json:"displayName,omitempty"`
	PreferredLanguage string `json:"preferredLanguage,omitempty"`
	Gender            Gender `json:"gender,omitempty"`
}

// FullName is the display name of a person who has chosen none. It is empty where no name is known any more.
func FullName(firstName, lastName string) string {
	if firstName == "" && lastName == "" {
		return ""
	}
	return firstName + " " + lastName
}

// short leaves out a display name that full puts back.
func (p Profile) short() Profile {
	if p.DisplayName == FullName(p.FirstName, p.LastName) {
		p.DisplayName = ""
	}
	return p
}

func (p Profile) full() Profile {
	p.DisplayName = cmp.Or(p.DisplayName, FullName(p.FirstName, p.LastName))
	return p
}

// Violations lists what is wrong with it, in the names of the API.
func (p *Profile) Violations() errs.Violations {
	wrong := p.violations("")
	if p.DisplayName == "" {
		wrong.Add("displayName", syntax.Empty)
	}
	return wrong
}

// violations is for a profile whose display name may be left out, each field under the given prefix.
func (p *Profile) violations(prefix string) (wrong errs.Violations) {
	wrong.Add(prefix+"firstName", syntax.Name(p.FirstName))
	wrong.Add(prefix+"lastName", syntax.Name(p.LastName))
	wrong.Add(prefix+"nickName", syntax.Text(p.NickName, syntax.MaxName))
	wrong.Add(prefix+"displayName", syntax.Text(p.DisplayName, syntax.MaxName))
	wrong.Add(prefix+"preferredLanguage", syntax.Text(p.PreferredLanguage, syntax.MaxLanguage))
	if !slices.Contains([]Gender{"", Female, Male, Diverse}, p.Gender) {
		wrong.Add(prefix+"gender", errs.Plain("must be left out, or be one of GENDER_FEMALE, GENDER_MALE, "+
			"GENDER_DIVERSE"))
	}
	return wrong
}

// ProfileChanged records which parts of a profile are different now.
type ProfileChanged struct {
	Personal ProfileFacts `json:"-"`
}

// ProfileFacts holds the new values; nil: as before.
type ProfileFacts struct {
	FirstName         *string `json:"firstName,omitempty"`
	LastName          *string `json:"lastName,omitempty"`
	NickName          *string `json:"nickName,omitempty"`
	DisplayName       *string `json:"displayName,omitempty"`
	NameKey           *string `json:"nameKey,omitempty"` // of the display name
	PreferredLanguage *string `json:"preferredLanguage,omitempty"`
	Gender            *Gender `json:"gender,omitempty"`
}

// EventType implements event.Fact.
func (ProfileChanged) EventType() event.Type { return "user.profile_changed.v1" }

// Apply implements event.Fact.
func (e ProfileChanged) Apply(u *User) {
	if u.Human == nil {
		return
	}
	p, n := &u.Human.Profile, e.Personal
	event.Set(&p.FirstName, n.FirstName)
	event.Set(&p.LastName, n.LastName)
	event.Set(&p.NickName, n.NickName)
	event.Set(&p.DisplayName, n.DisplayName)
	event.Set(&u.Human.NameKey, n.NameKey)
	event.Set(&p.PreferredLanguage, n.PreferredLanguage)
	event.Set(&p.Gender, n.Gender)
}

// ReplaceProfile replaces the caller's whole profile. Errors: InvalidArgument with violations; ErrNotHuman; Aborted
// when match does not hold.
func ReplaceProfile(ctx context.Context, s event.Store, caller *access.Caller, match event.IfMatch,
	p Profile) (event.Details, error) {
	return replaceProfile(ctx, s, Mine(caller), match, p)
}

// ReplaceProfileOf replaces the whole profile of a user the permit reaches. Errors: InvalidArgument with violations;
// ErrNotFound; ErrNotHuman; Aborted when match does not hold.
func ReplaceProfileOf(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	p Profile) (event.Details, error) {
	return replaceProfile(ctx, s, Within(permit, id), match, p)
}

func replaceProfile(ctx context.Context, s event.Store, who event.Target[User], match event.IfMatch,
	p Profile) (event.Details, error) {
	if err := p.Violations().Err(); err != nil {
		return event.Details{}, err
	}
	return who.And(MustBeHuman).Change(ctx, s, match, func(_ *event.Tx, u *event.Object[User]) error {
		return u.Append(changedProfile(u.Data.Human, p))
	})
}

// changedProfile is the fact that makes a person's profile p.
func changedProfile(h *Human, p Profile) ProfileChanged {
	old := h.Profile
	facts := ProfileFacts{
		FirstName:         event.Changed(old.FirstName, p.FirstName),
		LastName:          event.Changed(old.LastName, p.LastName),
		NickName:          event.Changed(old.NickName, p.NickName),
		DisplayName:       event.Changed(old.DisplayName, p.DisplayName),
		PreferredLanguage: event.Changed(old.PreferredLanguage, p.PreferredLanguage),
		Gender:            event.Changed(old.Gender, p.Gender),
	}
	// the first events had no key, and a plain one stands in
	if facts.DisplayName != nil || h.NameKey == syntax.PlainKey(old.DisplayName) {
		facts.NameKey = event.Changed(h.NameKey, syntax.NameKey(p.DisplayName))
	}
	return ProfileChanged{Personal: facts}
}
