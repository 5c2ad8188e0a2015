// This file has the claims that applications declare. They tell nothing that the scopes and the consent of the person do
// not cover, and no group, role or name of one organization where it could be taken for one of another.

package claimset

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxMapped is how many bytes of JSON the declared claims can have together in an answer of user info or introspection.
const MaxMapped = 64 << 10

// mappingSetting is what declares these claims, in the words of the API.
const mappingSetting = "claimMappings"

// Subject is whom declared claims are about.
type Subject struct {
	User   *event.Object[user.User]
	Org    *event.Object[org.Org]
	Held   project.ForMapping
	Scopes []string
}

// Mapped is what an application declared for one place: the claims, and why others are missing.
type Mapped struct {
	values  map[string]any
	missing map[string]Missing
}

// Map makes the claims that an application declares for one place.
func Map(mappings []app.ClaimMapping, in app.ClaimTarget, about Subject) (made Mapped) {
	for i := range mappings {
		m := &mappings[i]
		if !slices.Contains(m.Targets, in) {
			continue
		}
		value, missing := about.value(m)
		if missing != nil {
			if made.missing == nil {
				made.missing = map[string]Missing{}
			}
			if _, noted := made.missing[m.Claim]; !noted {
				made.missing[m.Claim] = *missing
			}
			continue
		}
		if made.values == nil {
			made.values = map[string]any{}
		}
		if m.Member == "" {
			made.values[m.Claim] = value
			continue
		}
		object, ok := made.values[m.Claim].(map[string]any)
		if !ok {
			object = map[string]any{}
			made.values[m.Claim] = object
		}
		object[m.Member] = value
	}
	return made
}

// Shared are the mappings that applications of the same project learn from: each has its own list of metadata.
func Shared(mappings []app.ClaimMapping) []app.ClaimMapping {
	return slices.DeleteFunc(slices.Clone(mappings),
		func(m app.ClaimMapping) bool { return m.Source == app.FromMetadata })
}

// Withheld is Map where others read the claims who may not: nothing is told.
func Withheld(mappings []app.ClaimMapping, in app.ClaimTarget) (made Mapped) {
	for _, m := range mappings {
		if slices.Contains(m.Targets, in) {
			if made.missing == nil {
				made.missing = map[string]Missing{}
			}
			made.missing[m.Claim] = Missing{Lack: OtherAudience}
		}
	}
	return made
}

// addMapped adds the claims as they are.
func (s Set) addMapped(m Mapped) {
	for name, value := range m.values {
		s.Put(name, value, Why{Source: Setting, Of: mappingSetting})
	}
	for name, why := range m.missing {
		s.Lacks(why, name)
	}
}

// AddMapped adds the claims to an answer, if they fit: otherwise it says which are missing.
func (s Set) AddMapped(m Mapped) {
	if len(m.values) > 0 && sizeOf(m.values) > MaxMapped {
		s.overflow(slices.Collect(maps.Keys(m.values)))
		m.values = nil
	}
	s.addMapped(m)
}

// overflow says which claims are too large.
func (s Set) overflow(names []string) {
	slices.Sort(names)
	s.Put(Overflow, names, Why{Source: Size})
	s.Lacks(Missing{Lack: TooLarge}, names...)
}

// sizeOf is how many bytes of JSON the values of claims have.
func sizeOf(claims map[string]any) (size int) {
	for _, value := range claims {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // plain strings
		}
		size += len(text)
	}
	return size
}

// scopeOf is the scope that covers what a source tells; empty: everybody is told.
func scopeOf(from app.ClaimSource) string {
	switch from {
	case app.FromLoginName, app.FromUserName, app.FromDisplayName, app.FromFirstName, app.FromLastName, app.FromNickName,
		app.FromLanguage, app.FromGender:
		return ProfileScope
	case app.FromEmail:
		return EmailScope
	case app.FromPhone:
		return PhoneScope
	case app.FromOrgID, app.FromOrgName, app.FromPrimaryDomain:
		return OrgScope
	}
	return ""
}

// value makes the value of a mapping, or says why there is none.
func (a Subject) value(m *app.ClaimMapping) (any, *Missing) {
	if scope := scopeOf(m.Source); scope != "" && !slices.Contains(a.Scopes, scope) {
		return nil, &Missing{NoScope, scope}
	}
	if m.Listed() {
		return a.list(m)
	}
	if (m.Source == app.FromUserName || m.Source == app.FromMetadata) && !a.Held.Own {
		return nil, &Missing{Lack: OtherOrganization}
	}
	text := a.text(m)
	if text == "" {
		return nil, &Missing{Lack: NoValue}
	}
	switch m.Shape {
	case app.AsBoolean:
		return text == "true", nil
	case app.AsArray:
		return []string{m.Prefix + text}, nil
	}
	return m.Prefix + text, nil
}

// text is the value of a source that has one; empty for none.
func (a Subject) text(m *app.ClaimMapping) string {
	switch m.Source {
	case app.FromUserID:
		return a.User.ID
	case app.FromLoginName:
		return a.Org.Data.LoginName(a.User.Data.UserName)
	case app.FromUserName:
		return a.User.Data.UserName
	case app.FromMetadata:
		return a.User.Data.Metadata[m.Key]
	case app.FromOrgID:
		return a.Org.ID
	case app.FromOrgName:
		return a.Org.Data.Name
	case app.FromPrimaryDomain:
		if len(a.Org.Data.Domains) > 0 {
			return a.Org.Data.Domains[0].Name
		}
	case app.FromConstant:
		return m.Constant
	default:
		if a.User.Data.Human != nil {
			return personal(a.User.Data.Human, m.Source)
		}
	}
	return ""
}

// personal is a value of a person; empty for none.
func personal(h *user.Human, from app.ClaimSource) string {
	switch from {
	case app.FromDisplayName:
		return h.Profile.DisplayName
	case app.FromFirstName:
		return h.Profile.FirstName
	case app.FromLastName:
		return h.Profile.LastName
	case app.FromNickName:
		return h.Profile.NickName
	case app.FromGender:
		return string(h.Profile.Gender)
	case app.FromLanguage:
		if tag, ok := syntax.Language(h.Profile.PreferredLanguage); ok {
			return tag.String()
		}
	// Under another name no email_verified stands beside it: who only claims to have an address must not pass for its
	// owner.
	case app.FromEmail:
		if h.Email.Verified {
			return h.Email.Address
		}
	case app.FromPhone:
		if h.Phone != nil && h.Phone.Verified {
			return h.Phone.Normal
		}
	}
	return ""
}

// list makes the value of a mapping of groups or roles.
func (a Subject) list(m *app.ClaimMapping) (any, *Missing) {
	all := a.lists(m)
	if all == nil {
		return nil, &Missing{Lack: NoValue}
	}
	told := []string{}
	add := func(of, prefix string) {
		values := slices.DeleteFunc(all[of], func(value string) bool { return !m.Keeps(value) })
		slices.Sort(values)
		for _, value := range values {
			told = append(told, prefix+value)
		}
	}
	if m.NamesOrg() {
		for _, of := range slices.Sorted(maps.Keys(all)) {
			add(of, strings.Replace(m.Prefix, app.OrgPlaceholder, of, 1))
		}
	} else {
		if !a.Held.AtHome {
			return nil, &Missing{Lack: OtherOrganization}
		}
		add(a.Held.Org, m.Prefix)
	}
	switch m.Shape {
	case app.AsBoolean:
		return len(told) > 0, nil
	case app.AsJoined:
		// Who may name a group must not be able to make two of one, whatever a reader takes for a space or a line.
		told = slices.DeleteFunc(told, func(value string) bool {
			return strings.Contains(value, m.Separator) || strings.ContainsFunc(value, unicode.IsControl) ||
				m.Separator == " " && strings.ContainsFunc(value, unicode.IsSpace)
		})
		if len(told) == 0 {
			return nil, &Missing{Lack: NoValue}
		}
		return strings.Join(told, m.Separator), nil
	}
	return told, nil
}

// lists are the values of a source that has many, by organization; nil: it is not told.
func (a Subject) lists(m *app.ClaimMapping) map[string][]string {
	all := map[string][]string{}
	if m.Source == app.FromAppRoles {
		if a.Held.Roles == nil {
			return nil
		}
		for of, roles := range a.Held.Roles {
			all[of] = slices.Clone(roles)
		}
		return all
	}
	if a.Held.Groups == nil {
		return nil
	}
	for of, groups := range a.Held.Groups {
		for _, g := range groups {
			value := g.Name
			if m.Source == app.FromGroupIDs {
				value = g.ID
			}
			all[of] = append(all[of], value)
		}
	}
	return all
}
