package session

import (
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

func roles(in string, roles ...access.Role) access.Memberships {
	return access.Memberships{in: roles}
}

func provider(change ...func(*idp.Provider)) *event.Object[idp.Provider] {
	p := idp.Provider{Standing: idp.Standing{State: idp.Active}, OIDC: &idp.OIDC{Issuer: "https://login.corp.test"},
		Changer: &idp.Changer{UserID: "usr_admin", Version: 3, Roles: roles("org_a", access.OrgOwner)}}
	for _, c := range change {
		c(&p)
	}
	return &event.Object[idp.Provider]{ID: "idp_a", Org: "org_a", Data: p}
}

func TestWhichLinksCount(t *testing.T) {
	changed := func(m access.Memberships) func(*idp.Provider) { return func(p *idp.Provider) { p.Changer.Roles = m } }
	earlier := func(m access.Memberships) func(*idp.Provider) {
		return func(p *idp.Provider) {
			p.Changer.Earlier = append(p.Changer.Earlier,
				access.Answer{UserID: "usr_before", Roles: m, Fields: []string{"oidc.issuer"}})
		}
	}
	own := func(version int64, m access.Memberships) user.Confirmation {
		return user.Confirmation{Version: version, By: "usr_jo", At: 1, Roles: m}
	}
	owner, manager, settings := roles("org_a", access.OrgOwner), roles("org_a", access.OrgUserManager),
		roles("org_a", access.OrgSettingsManager)
	everything := roles(access.Installation, access.IAMOwner)
	for _, c := range []struct {
		name      string
		provider  *event.Object[idp.Provider]
		user      access.Memberships
		org       string
		confirmed user.Confirmation
		counts    bool
	}{
		{"an owner changed it, and the user holds nothing", provider(), nil, "org_a", user.Confirmation{}, true},
		{"an owner changed it, and the user is one", provider(), owner, "org_a", user.Confirmation{}, true},
		{"the user was promoted after the provider was changed", provider(), everything, "org_a",
			user.Confirmation{}, false},
		{"the user got a role elsewhere after the provider was changed", provider(), roles("org_b", access.OrgOwner),
			"org_a", user.Confirmation{}, true},
		{"an owner of everything changed it, and the user has a role elsewhere", provider(changed(everything)),
			roles("org_b", access.OrgOwner), "org_a", user.Confirmation{}, true},
		{"no owner changed it, and the user has a role elsewhere", provider(changed(manager)),
			roles("org_b", access.OrgOwnerViewer), "org_a", user.Confirmation{}, false},
		{"no owner changed it, and the user is a guest without roles elsewhere", provider(changed(manager)),
			roles("org_b"), "org_a", user.Confirmation{}, true},
		{"the owner of the organization that gives the role changed it",
			provider(changed(roles("org_b", access.OrgOwner))), roles("org_b", access.OrgOwner), "org_a",
			user.Confirmation{}, false},
		{"a confirmation before the user got a role elsewhere", provider(changed(settings)),
			roles("org_b", access.OrgOwner), "org_a", own(3, nil), true},
		{"the changer held too little to set passwords", provider(changed(settings)), nil, "org_a",
			user.Confirmation{}, false},
		{"the changer could set passwords, but held less than the user", provider(changed(manager)), owner, "org_a",
			user.Confirmation{}, false},
		{"the changer could set passwords of those who hold nothing", provider(changed(manager)), nil, "org_a",
			user.Confirmation{}, true},
		{"the changer held nothing", provider(changed(nil)), nil, "org_a", user.Confirmation{}, false},
		{"the changer could set passwords elsewhere only", provider(changed(roles("org_b", access.OrgOwner))), nil,
			"org_a", user.Confirmation{}, false},
		{"an owner of the provider's organization, for a user of another one", provider(), nil, "org_b",
			user.Confirmation{}, false},
		{"an owner of everything, for a user of another organization", provider(changed(everything)), nil, "org_b",
			user.Confirmation{}, true},
		{"a role that is not known any more", provider(changed(roles("org_a", "ORG_GREAT"))), nil, "org_a",
			user.Confirmation{}, false},
		{"an owner changed it after somebody with less, who answers for other settings", provider(earlier(settings)),
			nil, "org_a", user.Confirmation{}, false},
		{"an owner of everything changed it after one of the organization",
			provider(changed(everything), earlier(owner)), everything, "org_a", user.Confirmation{}, false},
		{"all who changed it could be the user", provider(changed(everything), earlier(owner), earlier(manager)), nil,
			"org_a", user.Confirmation{}, true},
		{"somebody with less changed it before, and the user confirmed it", provider(earlier(settings)), owner, "org_a",
			own(3, owner), true},
		{"confirmed by the user", provider(changed(settings)), nil, "org_a", own(3, nil), true},
		{"confirmed by a user who is an owner", provider(changed(settings)), owner, "org_a", own(3, owner), true},
		{"confirmed, in another organization", provider(changed(settings)), nil, "org_b", own(3, nil), true},
		{"a confirmation of an older version", provider(changed(settings)), nil, "org_a", own(2, nil), false},
		{"a confirmation of a later version", provider(changed(settings)), nil, "org_a", own(4, nil), false},
		{"a confirmation before the user was promoted", provider(changed(settings)), owner, "org_a",
			own(3, nil), false},
		{"a confirmation before the user got one role more", provider(changed(settings)), owner, "org_a",
			own(3, manager), false},
		{"a confirmation of who held more then", provider(changed(settings)), manager, "org_a", own(3, owner), true},
		{"a confirmation by nobody", provider(changed(settings)), nil, "org_a", user.Confirmation{Version: 3}, false},
		{"nobody answers for the provider", provider(func(p *idp.Provider) { p.Changer = nil }), nil, "org_a",
			own(0, nil), false},
		{"an inactive provider", provider(func(p *idp.Provider) { p.State = idp.Inactive }), nil, "org_a",
			own(3, nil), false},
		{"a removed provider", provider(func(p *idp.Provider) { p.State = idp.Removed }), nil, "org_a",
			own(3, nil), false},
		{"no provider", nil, nil, "org_a", own(3, nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := user.Link{ID: "lnk_1", Provider: "idp_a", Confirmed: c.confirmed}
			u := &event.Object[user.User]{ID: "usr_jo", Org: c.org,
				Data: user.User{Standing: user.Standing{Memberships: c.user},
					Human: &user.Human{Links: []user.Link{l}}}}
			if got := LinkCounts(c.provider, u, l); got != c.counts {
				t.Errorf("counts: %t", got)
			}
			if other := (user.Link{ID: "lnk_2", Provider: "idp_a",
				Confirmed: c.confirmed}); LinkCounts(c.provider, u, other) {
				t.Error("a link that the user does not have counts")
			}
			l.Provider = "idp_b"
			u.Data.Human.Links[0] = l
			if LinkCounts(c.provider, u, l) {
				t.Error("a link to another provider counts")
			}
		})
	}
}

func TestWhomAProviderIsFor(t *testing.T) {
	p := provider()
	for _, c := range []struct {
		org, def string
		reaches  bool
	}{{"org_a", "org_def", true}, {"org_b", "org_def", false}, {"org_b", "org_a", true}, {"org_a", "org_a", true}} {
		if ProviderReaches(p, c.org, c.def) != c.reaches {
			t.Errorf("%+v", c)
		}
	}
	if ProviderReaches(nil, "org_a", "org_a") {
		t.Error("none is for somebody")
	}
}

func TestWhoIsLinkedByAnAddress(t *testing.T) {
	match := func() EmailMatch {
		p := provider(func(p *idp.Provider) { p.General.LinkByEmail = true })
		u := &event.Object[user.User]{
			ID:  "usr_jo",
			Org: "org_a",
			Data: user.User{Standing: user.Standing{State: user.Active}, Human: &user.Human{
				Email: user.Email{Address: "Jo@corp.test", Key: "jo@corp.test", Verified: true,
					Verification: user.Verification{By: user.VerifiedByOwner, At: 1}}}},
		}
		return EmailMatch{
			Provider: p,
			Owner: &event.Object[org.Org]{ID: "org_a", Data: org.Org{Standing: org.Standing{State: org.Active},
				Domains: []org.Domain{{Name: "corp.test", Verified: true, Proven: true},
					{Name: "word.test", Verified: true}}}},
			Who:  idp.Identity{Provider: "idp_a", Org: "org_a", Email: "JO@corp.test", EmailVerified: true},
			Same: []*event.Object[user.User]{u},
		}
	}
	if u := match().ByEmail(); u == nil || u.ID != "usr_jo" {
		t.Fatal("nobody is linked by an address")
	}
	human := func(m *EmailMatch) *user.Human { return m.Same[0].Data.Human }
	google := func(tenants ...string) *idp.OIDC {
		return &idp.OIDC{Issuer: "https://accounts.google.com", Preset: idp.GooglePreset, Tenants: tenants}
	}
	for name, change := range map[string]func(*EmailMatch){
		"it is not switched on": func(m *EmailMatch) {
			m.Provider.Data.General.LinkByEmail = false
		},
		"the provider is inactive":                      func(m *EmailMatch) { m.Provider.Data.State = idp.Inactive },
		"nobody answers for the provider":               func(m *EmailMatch) { m.Provider.Data.Changer = nil },
		"the organization is inactive":                  func(m *EmailMatch) { m.Owner.Data.State = org.Inactive },
		"the organization is another one":               func(m *EmailMatch) { m.Owner.ID = "org_b" },
		"there is no organization":                      func(m *EmailMatch) { m.Owner = nil },
		"the identity is another provider's":            func(m *EmailMatch) { m.Who.Provider = "idp_b" },
		"the provider does not say that it is verified": func(m *EmailMatch) { m.Who.EmailVerified = false },
		"there is no address":                           func(m *EmailMatch) { m.Who.Email = "" },
		"it is no address":                              func(m *EmailMatch) { m.Who.Email = "jo" },
		"the address is another one":                    func(m *EmailMatch) { m.Who.Email = "jo2@corp.test" },
		"the domain is not the organization's": func(m *EmailMatch) {
			m.Who.Email, human(m).Email.Key = "jo@else.test", "jo@else.test"
		},
		"somebody vouches for the domain": func(m *EmailMatch) {
			m.Who.Email, human(m).Email.Key = "jo@word.test", "jo@word.test"
		},
		"the domain is below a proven one": func(m *EmailMatch) {
			m.Who.Email, human(m).Email.Key = "jo@x.corp.test", "jo@x.corp.test"
		},
		"the user is of another organization": func(m *EmailMatch) { m.Same[0].Org = "org_b" },
		"the user is inactive":                func(m *EmailMatch) { m.Same[0].Data.State = user.Inactive },
		"it is a service user":                func(m *EmailMatch) { m.Same[0].Data.Human = nil },
		"nobody has the address":              func(m *EmailMatch) { m.Same = nil },
		"two have the address":                func(m *EmailMatch) { m.Same = append(m.Same, m.Same[0]) },
		"the address is not verified":         func(m *EmailMatch) { human(m).Email.Verified = false },
		"an administrator vouches for the address": func(m *EmailMatch) {
			human(m).Email.Verification.By = user.VerifiedByAdministrator
		},
		"the installation vouches for the address": func(m *EmailMatch) {
			human(m).Email.Verification.By = user.VerifiedByInstallation
		},
		"a provider vouches for the address": func(m *EmailMatch) {
			human(m).Email.Verification.By = user.VerifiedByProvider
		},
		"it is not recorded who confirmed it": func(m *EmailMatch) {
			human(m).Email.Verification.Assumed = true
		},
		"the user is linked there already": func(m *EmailMatch) {
			human(m).Links = []user.Link{{ID: "lnk_1", Provider: "idp_a"}}
		},
		"the user holds more than the changer": func(m *EmailMatch) {
			m.Same[0].Data.Memberships = roles(access.Installation, access.IAMOwnerViewer)
		},
		"the changer may not set passwords": func(m *EmailMatch) {
			m.Provider.Data.Changer.Roles = roles("org_a", access.OrgSettingsManager)
		},
		"many companies share it": func(m *EmailMatch) {
			m.Provider.Data.OIDC = google()
			m.Who.Tenant = "corp.test"
		},
		"many companies share it, of another tenant": func(m *EmailMatch) {
			m.Provider.Data.OIDC = google("corp.test")
			m.Who.Tenant = "else.test"
		},
		"many companies share it, of no tenant": func(m *EmailMatch) {
			m.Provider.Data.OIDC = google("corp.test")
		},
		"an empty tenant": func(m *EmailMatch) { m.Provider.Data.OIDC = google("") },
		"many companies share it, without a preset": func(m *EmailMatch) {
			m.Provider.Data.OIDC = &idp.OIDC{Issuer: "https://login.microsoftonline.com/common/v2.0"}
		},
		"a preset with another issuer": func(m *EmailMatch) {
			m.Provider.Data.OIDC.Preset = idp.MicrosoftPreset
		},
		"another tenant of a provider of its own": func(m *EmailMatch) { m.Provider.Data.OIDC.Tenants = []string{"t"} },
		"a shared one that knows no tenants": func(m *EmailMatch) {
			m.Provider.Data.OIDC, m.Provider.Data.OAuth = nil, &idp.OAuth{Preset: idp.GitHubPreset}
		},
		"tokens of a shared one": func(m *EmailMatch) {
			m.Provider.Data.OIDC, m.Provider.Data.JWT = nil, &idp.JWT{Issuer: "https://accounts.google.com"}
		},
	} {
		m := match()
		change(&m)
		if u := m.ByEmail(); u != nil {
			t.Errorf("%s, and somebody is linked", name)
		}
	}
	for name, change := range map[string]func(*EmailMatch){
		"of the right tenant": func(m *EmailMatch) {
			m.Provider.Data.OIDC = google("else.test", "corp.test")
			m.Who.Tenant = "corp.test"
		},
		"linked to another one": func(m *EmailMatch) { human(m).Links = []user.Link{{ID: "lnk_1", Provider: "idp_b"}} },
		"who holds no more":     func(m *EmailMatch) { m.Same[0].Data.Memberships = roles("org_a", access.OrgOwner) },
		"a GitLab of its own":   func(m *EmailMatch) { m.Provider.Data.OIDC.Preset = idp.GitLabPreset },
		"a portal that signs tokens": func(m *EmailMatch) {
			m.Provider.Data.OIDC, m.Provider.Data.JWT = nil, &idp.JWT{Issuer: "https://corp.test"}
		},
	} {
		m := match()
		change(&m)
		if m.ByEmail() == nil {
			t.Errorf("%s, and nobody is linked", name)
		}
	}
}

func TestWhatOfAProviderCountsAsASecondFactor(t *testing.T) {
	for _, c := range []struct {
		name   string
		amr    []string
		counts bool
	}{
		{"nothing", nil, false},
		{"a password", []string{"pwd"}, false},
		{"a code alone", []string{"otp"}, false},
		{"a key alone", []string{"hwk"}, false},
		{"two things that are known", []string{"pwd", "pin"}, false},
		{"two things that are had", []string{"otp", "sms"}, false},
		{"the word itself", []string{"mfa"}, true},
		{"the word with others", []string{"pwd", "mfa"}, true},
		{"a password and a code", []string{"pwd", "otp"}, true},
		{"a key and a fingerprint", []string{"hwk", "fpt"}, true},
		{"what nobody knows", []string{"pwd", "magic"}, false},
		{"in other letters", []string{"MFA"}, false},
		{"somebody was there", []string{"pwd", "user"}, false},
	} {
		if got := ProviderSecondFactor(c.amr); got != c.counts {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
