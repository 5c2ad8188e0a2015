package claimset

import (
	"slices"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// The scopes of OpenID Connect, and those that claims about people come from.
const (
	OpenID        = "openid"
	OfflineAccess = "offline_access"

	ProfileScope = "profile" // names, language
	EmailScope   = "email"
	PhoneScope   = "phone"
	OrgScope     = "urn:signet:org"
	RolesScope   = "urn:signet:roles"
)

// How sure Signet is of who signed in, as the claim acr tells it.
const (
	SingleFactor = "urn:signet:acr:single"
	MultiFactor  = "urn:signet:acr:multi"
)

// People are the claims that tell about a person, as the scopes allow.
var People = []string{"name", "given_name", "family_name", "nickname", "preferred_username", "gender", "locale",
	"updated_at", "email", "email_verified",
	"phone_number", "phone_number_verified", OrgScope, RolesScope}

// profile are those of the scope profile.
var profile = People[:8]

// AddProof adds the claims about how somebody signed in.
func (s Set) AddProof(p session.Proof) {
	if len(p.Methods) == 0 {
		return // a service user
	}
	methods := []string{}
	for _, m := range p.Methods {
		if !slices.Contains(methods, string(m)) {
			methods = append(methods, string(m))
		}
	}
	known, acr := p.Known(), SingleFactor
	if known.Factor {
		acr = MultiFactor
		methods = append(methods, "mfa")
	}
	s.Put("acr", acr, Why{Source: SignIn})
	s.Put("amr", methods, Why{Source: SignIn})
	if at := known.At(); at != 0 { // nobody says what nobody knows
		s.Put("auth_time", event.Time(at).Unix(), Why{Source: SignIn})
	} else {
		s.Lacks(Missing{Lack: NoValue}, "auth_time")
	}
}

// AddOrganization adds the claims about a user's organization and roles, as far as the scopes allow. Who reads them in
// another organization is told of the roles in that organization and in the user's: who looks after the installation,
// or a third organization, is not its business. Where several read the same claims they are told what each of them may
// know.
func (s Set) AddOrganization(u *event.Object[user.User], o *event.Object[org.Org], scopes []string, readers ...string) {
	if slices.Contains(scopes, OrgScope) {
		of := map[string]any{"id": o.ID, "name": o.Data.Name}
		if len(o.Data.Domains) > 0 {
			of["primary_domain"] = o.Data.Domains[0].Name
		}
		s.Put(OrgScope, of, Why{Source: Scope, Of: OrgScope})
	} else {
		s.Lacks(Missing{NoScope, OrgScope}, OrgScope)
	}
	if slices.Contains(scopes, RolesScope) {
		roles := map[string][]string{}
		for scope, held := range u.Data.Memberships {
			// guests may hold none
			if len(held) > 0 &&
				!slices.ContainsFunc(readers,
					func(reader string) bool { return reader != o.ID && scope != o.ID && scope != reader }) {
				roles[scope] = access.Names(held)
			}
		}
		s.Put(RolesScope, roles, Why{Source: Scope, Of: RolesScope})
	} else {
		s.Lacks(Missing{NoScope, RolesScope}, RolesScope)
	}
}

// AddPerson adds the claims about a user, as far as the scopes allow.
func (s Set) AddPerson(u *event.Object[user.User], o *event.Object[org.Org], scopes []string, readers ...string) {
	s.Put("sub", u.ID, Why{Source: Always})
	s.AddOrganization(u, o, scopes, readers...)
	s.addProfile(u, scopes)
	human := u.Data.Human
	switch {
	case !slices.Contains(scopes, EmailScope):
		s.Lacks(Missing{NoScope, EmailScope}, "email", "email_verified")
	case human == nil || human.Email.Address == "":
		s.Lacks(Missing{NoValue, EmailScope}, "email", "email_verified")
	default:
		s.Put("email", human.Email.Address, Why{Source: Scope, Of: EmailScope})
		s.Put("email_verified", human.Email.Verified, Why{Source: Scope, Of: EmailScope})
	}
	switch {
	case !slices.Contains(scopes, PhoneScope):
		s.Lacks(Missing{NoScope, PhoneScope}, "phone_number", "phone_number_verified")
	case human == nil || human.Phone == nil:
		s.Lacks(Missing{NoValue, PhoneScope}, "phone_number", "phone_number_verified")
	default:
		s.Put("phone_number", human.Phone.Normal, Why{Source: Scope, Of: PhoneScope})
		s.Put("phone_number_verified", human.Phone.Verified, Why{Source: Scope, Of: PhoneScope})
	}
}

func (s Set) addProfile(u *event.Object[user.User], scopes []string) {
	if !slices.Contains(scopes, ProfileScope) {
		s.Lacks(Missing{NoScope, ProfileScope}, profile...)
		return
	}
	set := func(name, value string) {
		if value != "" {
			s.Put(name, value, Why{Source: Scope, Of: ProfileScope})
		}
	}
	set("preferred_username", u.Data.UserName)
	s.Put("updated_at", u.Changed.Unix(), Why{Source: Scope, Of: ProfileScope})
	if human := u.Data.Human; human != nil {
		p := human.Profile
		set("name", p.DisplayName)
		set("given_name", p.FirstName)
		set("family_name", p.LastName)
		set("nickname", p.NickName)
		set("gender", string(p.Gender))
		if tag, ok := syntax.Language(p.PreferredLanguage); ok {
			set("locale", tag.String())
		}
	} else if u.Data.Service != nil {
		set("name", u.Data.Service.Name)
	}
	s.Lacks(Missing{NoValue, ProfileScope}, profile...) // those that are not there
}
