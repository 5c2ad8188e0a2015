// This file decides how far Signet trusts an identity provider: which links count, which users are linked by an e-mail
// address, and whether the provider has checked a second factor. It reads and writes nothing.
//
// An administrator who changes where a provider's statements come from could sign in as every user who is linked there.
// So a link counts only if the administrator who last changed the provider could have signed in as the user anyway, by
// setting a password, or if the user wants the link with the provider as it is now.

package session

import (
	"net/url"
	"slices"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ProviderUsable tells whether a provider signs anybody in: it is active, and somebody answers for it.
func ProviderUsable(p *event.Object[idp.Provider]) bool {
	return p != nil && p.Data.Offered()
}

// ProviderReaches tells whether a provider is for users of an organization: its own, and those of all organizations
// where it is the default one's.
func ProviderReaches(p *event.Object[idp.Provider], orgID, defaultOrg string) bool {
	return p != nil && (p.Org == orgID || p.Org == defaultOrg)
}

// LinkCounts tells whether a link of a user counts now. One that does not is suspended until it is confirmed. A
// confirmation is worth what the user held in the own organization and in the installation: a role that another
// organization gives never suspends it.
func LinkCounts(p *event.Object[idp.Provider], u *event.Object[user.User], l user.Link) bool {
	if !ProviderUsable(p) || l.Provider != p.ID {
		return false
	}
	if _, there := u.Data.Human.Link(l.ID); !there {
		return false
	}
	return answeredFor(p, u) ||
		l.Confirmed.By != "" && l.Confirmed.Version == p.Data.Changer.Version &&
			l.Confirmed.Roles.Cover(u.Data.Memberships.At(u.Org))
}

// answeredFor: everybody who answers for a setting of the provider could have signed in as the user by setting a
// password. The roles are those of that time, and what they hold is what roles of that name hold today.
func answeredFor(p *event.Object[idp.Provider], u *event.Object[user.User]) bool {
	return p.Data.Changer.All(func(roles access.Memberships) bool { return CouldLink(roles, u) })
}

// CouldLink tells whether somebody with these roles could sign in as a user anyway, by setting a password:
// user.GivesAccess asks the same of a caller.
func CouldLink(roles access.Memberships, u *event.Object[user.User]) bool {
	return roles.Hold(access.CredentialWrite, u.Org) && roles.Cover(u.Data.Memberships.Worth(u.Org))
}

// EmailMatch is somebody who may be linked by an e-mail address.
type EmailMatch struct {
	Provider *event.Object[idp.Provider]
	Owner    *event.Object[org.Org] // of the provider
	Who      idp.Identity
	// Same are the users of that organization who have the address, whether or not it is verified.
	Same []*event.Object[user.User]
}

// ByEmail gives the user whom an address stands for; nil where it stands for nobody. It does only if nobody else could
// be meant, and nobody gains anything by it: see docs/security.md.
func (m EmailMatch) ByEmail() *event.Object[user.User] {
	if !ProviderUsable(m.Provider) || !m.Provider.Data.General.LinkByEmail || m.Owner == nil ||
		m.Owner.ID != m.Provider.Org || m.Owner.Data.State != org.Active {
		return nil
	}
	key, problem := syntax.Email(m.Who.Email)
	if problem != nil || !m.Who.EmailVerified || m.Who.Provider != m.Provider.ID || !provenDomain(m.Owner, key) ||
		!ownTenant(&m.Provider.Data, m.Who.Tenant) {
		return nil
	}
	if len(m.Same) != 1 {
		return nil
	}
	u := m.Same[0]
	if u.Org != m.Provider.Org || u.Data.State != user.Active || u.Data.Human == nil {
		return nil
	}
	email := u.Data.Human.Email
	if email.Key != key || !email.Verified || email.Verification.By != user.VerifiedByOwner ||
		email.Verification.Assumed {
		return nil
	}
	// Somebody who is linked there already is meant by that link: an address may be given to somebody else.
	if slices.ContainsFunc(u.Data.Human.Links, func(l user.Link) bool { return l.Provider == m.Provider.ID }) ||
		!answeredFor(m.Provider, u) {
		return nil
	}
	return u
}

// provenDomain tells whether an organization has proven the domain of an address by DNS. That somebody vouches for it
// does not do.
func provenDomain(o *event.Object[org.Org], email string) bool {
	domain := org.DomainOf(email)
	return domain != "" && slices.ContainsFunc(o.Data.Domains,
		func(d org.Domain) bool { return d.Name == domain && d.Proven })
}

// sharedIssuers are the hosts of providers that many companies use.
var sharedIssuers = []string{"accounts.google.com", "login.microsoftonline.com", "sts.windows.net", "appleid.apple.com",
	"gitlab.com", "github.com"}

// ownTenant tells whether a provider that many companies share says that the person belongs to a tenant of the
// organization. Where a provider tells no tenants apart, its users are nobody's.
func ownTenant(p *idp.Provider, tenant string) bool {
	preset, addresses := idp.Preset(""), []string(nil)
	var tenants []string
	switch {
	case p.OIDC != nil:
		preset, addresses, tenants = p.OIDC.Preset, []string{p.OIDC.Issuer}, p.OIDC.Tenants
	case p.OAuth != nil:
		preset, addresses = p.OAuth.Preset,
			[]string{p.OAuth.AuthorizationEndpoint, p.OAuth.TokenEndpoint, p.OAuth.UserEndpoint}
	case p.JWT != nil:
		addresses = []string{p.JWT.Issuer, p.JWT.KeysEndpoint}
	}
	common := slices.Contains([]idp.Preset{idp.GooglePreset, idp.MicrosoftPreset, idp.ApplePreset,
		idp.GitHubPreset}, preset)
	for _, address := range addresses {
		u, err := url.Parse(address)
		common = common || err != nil || slices.Contains(sharedIssuers, u.Hostname())
	}
	if !common && len(tenants) == 0 {
		return true
	}
	return tenant != "" && slices.Contains(tenants, tenant)
}

// secondFactorMethods are the kinds of proof behind the values of RFC 8176: what somebody knows, has, or is.
var secondFactorMethods = map[string]string{
	"pwd": "knows", "pin": "knows", "kba": "knows",
	"otp": "has", "sms": "has", "tel": "has", "hwk": "has", "swk": "has", "sc": "has", "pop": "has",
	"fpt": "is", "face": "is", "iris": "is", "retina": "is", "vbm": "is",
}

// ProviderSecondFactor tells whether a provider says that it has checked two factors: in these words, or by naming
// methods of two kinds. A code by itself is one factor like any other.
func ProviderSecondFactor(amr []string) bool {
	kinds := map[string]bool{}
	for _, m := range amr {
		if m == "mfa" {
			return true
		}
		if kind := secondFactorMethods[m]; kind != "" {
			kinds[kind] = true
		}
	}
	return len(kinds) > 1
}
