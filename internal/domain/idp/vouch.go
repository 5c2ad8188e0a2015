package idp

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// adopted is the fact that the caller answers for the whole configuration.
func adopted(permit access.Permit) Vouched {
	return Vouched{By: permit.Origin().Actor, Roles: permit.Roles()}
}

// vouch is what a caller answers for by facts that change a provider, who sent all of these, some as they were; none
// where it is nothing.
func (p *Provider) vouch(permit access.Permit, facts, sent []event.Fact[Provider]) []event.Fact[Provider] {
	if p.Changer == nil {
		return []event.Fact[Provider]{adopted(permit)}
	}
	changed := settings(facts...)
	by := access.Answer{UserID: permit.Origin().Actor, Roles: permit.Roles()}
	// Mostly they are who answers for everything already, and nobody has to look at the rest.
	if p.Changer.alone(by) && (len(changed) == 0 || markAnswered(facts)) {
		return nil
	}
	a, any := access.Vouch(p.Changer.answers(), by, changed, settings(sent...), p.with(facts).settings())
	if !any || p.Changer.stays(a) && markAnswered(facts) {
		return nil
	}
	return []event.Fact[Provider]{Vouched{By: a.UserID, Roles: a.Roles, Fields: a.Fields, Unchanged: len(changed) == 0}}
}

// Answered is part of the facts that change a configuration.
type Answered struct {
	// SameAnswer means that the person who made this change already answers for the provider. No Vouched follows, so
	// the change itself counts as a version.
	SameAnswer bool `json:"sameAnswer,omitempty"`
}

func (a Answered) count(p *Provider) {
	if !a.SameAnswer || p.Changer == nil {
		return
	}
	next := *p.Changer // others may hold the one of before
	next.Version++
	p.Changer = &next
}

// markAnswered sets SameAnswer in facts; false: none of them has it.
func markAnswered(facts []event.Fact[Provider]) bool {
	for i, f := range facts {
		switch f := f.(type) {
		case JWTChanged:
			f.SameAnswer = true
			facts[i] = f
		case OIDCChanged:
			f.SameAnswer = true
			facts[i] = f
		case OAuthChanged:
			f.SameAnswer = true
			facts[i] = f
		default:
			continue
		}
		return true
	}
	return false
}

// alone tells whether somebody answers for everything, with the same roles, and nobody else for anything.
func (c *Changer) alone(by access.Answer) bool {
	return c.Fields == nil && len(c.Earlier) == 0 && c.last().Same(by)
}

// stays tells whether an answer says nothing new.
func (c *Changer) stays(a access.Answer) bool {
	last, earlier := a.After(c.answers())
	return last.Equal(c.last()) && slices.EqualFunc(earlier, c.Earlier, access.Answer.Equal)
}

const linkByEmail, clientSecret = "linkByEmail", "clientSecret"

// settings are those that facts set and that decide about who signs in, in the names of the API.
func settings(facts ...event.Fact[Provider]) (names []string) {
	for _, f := range facts {
		switch f := f.(type) {
		case Changed:
			if f.LinkByEmail != nil {
				names = append(names, linkByEmail)
			}
		case JWTChanged:
			names = append(names, named("jwt.", reflect.ValueOf(f))...)
		case OIDCChanged:
			names = append(names, named("oidc.", reflect.ValueOf(f))...)
		case OAuthChanged:
			names = append(names, named("oauth.", reflect.ValueOf(f))...)
		case ClientSecretSet, ClientSecretRemoved:
			names = append(names, clientSecret)
		}
	}
	return names
}

// named are the fields of a struct that are not empty, in the names of the API.
func named(prefix string, v reflect.Value) (names []string) {
	fields, known := settingsOf.Load(v.Type())
	if !known {
		fields, _ = settingsOf.LoadOrStore(v.Type(), settingFields(prefix, v.Type()))
	}
	for _, f := range fields.([]settingField) {
		if !v.FieldByIndex(f.index).IsZero() {
			names = append(names, f.name)
		}
	}
	return names
}

// settingsOf are the fields of the structs that were looked at, by type: each type has one prefix.
var settingsOf sync.Map

type settingField struct {
	name  string
	index []int
}

func settingFields(prefix string, of reflect.Type, within ...int) (fields []settingField) {
	for i := range of.NumField() {
		f, index := of.Field(i), append(slices.Clip(within), i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Type == reflect.TypeFor[Answered](): // no setting
		case f.Anonymous:
			fields = append(fields, settingFields(prefix, f.Type, index...)...)
		case prefix == "jwt." && name == "endpoint":
			fields = append(fields, settingField{prefix + "jwtEndpoint", index})
		case name == "hasClientSecret":
			fields = append(fields, settingField{clientSecret, index})
		default:
			fields = append(fields, settingField{prefix + name, index})
		}
	}
	return fields
}

// settings are those that somebody has to answer for: all that are set. Who may sign in through a provider that many
// companies share depends on its tenants also if there are none.
func (p *Provider) settings() (names []string) {
	switch {
	case p.JWT != nil:
		names = named("jwt.", reflect.ValueOf(*p.JWT))
	case p.OIDC != nil:
		if names = named("oidc.", reflect.ValueOf(*p.OIDC)); len(p.OIDC.Tenants) == 0 {
			names = append(names, "oidc.tenants")
		}
	case p.OAuth != nil:
		names = named("oauth.", reflect.ValueOf(*p.OAuth))
	}
	if p.General.LinkByEmail {
		names = append(names, linkByEmail)
	}
	return names
}

// Unconfirmed are the settings whose last change came from somebody who holds less than the last person who changed the
// provider, and that nobody with as much has confirmed, the oldest first.
func (p *Provider) Unconfirmed() (list []access.Answer) {
	all := p.Changer.answers()
	for _, a := range all {
		if a.Roles.Cover(p.Changer.Roles) {
			continue
		}
		left := access.Answer{UserID: a.UserID, Roles: a.Roles}
		for _, field := range p.settings() {
			if access.Whose(all, field).Same(a) {
				left.Fields = append(left.Fields, field)
			}
		}
		if slices.Sort(left.Fields); left.Fields != nil {
			list = append(list, left)
		}
	}
	return list
}
