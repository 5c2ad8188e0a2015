package access

import (
	"slices"
	"strings"
)

// APIScopes is a set of scopes of Signet's own API: what an access token may be used for there, of all that its user
// may. Which operations and fields need which of them stands in the definition of the API.
type APIScopes uint32

// The scopes. The first three are for what opens no way in; each of the others is for one group of things that do.
const (
	SelfScope             APIScopes = 1 << iota // what people do about themselves
	ReadScope                                   // what they may read
	WriteScope                                  // what they may change; it brings ReadScope with it
	PasswordsScope                              // passwords of others, and hashes of passwords
	ContactsScope                               // by which names and addresses others sign in and are reached
	RolesScope                                  // who holds which roles
	CredentialsScope                            // tokens, keys, secrets, factors and sessions of others
	AppCredentialsScope                         // secrets and keys of applications, and what their tokens are like
	RedirectsScope                              // where applications are sent people, codes and tokens
	APIAccessScope                              // which of these scopes an application may ask for
	AllOrganizationsScope                       // what counts for all organizations
	ApprovalsScope                              // what others would otherwise be asked for
	DomainsScope                                //
	WebhooksScope                               //
	ProvidersScope                              // identity providers
	PoliciesScope                               //
	SigningKeysScope                            //
	GroupsScope                                 // groups, and who is in them
	AppRolesScope                               // projects: which roles applications know, and who has them
	InvitationsScope                            // who is invited
	MetadataScope                               // what programs keep about objects

	GeneralScopes = SelfScope | ReadScope | WriteScope
)

// APIScopeNames are the scopes as tokens carry them, in the order of the constants.
var APIScopeNames = []string{"signet.self", "signet.read", "signet.write", "signet.passwords", "signet.contacts",
	"signet.roles", "signet.credentials",
	"signet.app_credentials", "signet.redirects", "signet.api_access", "signet.all_organizations", "signet.approvals",
	"signet.domains", "signet.webhooks",
	"signet.providers", "signet.policies", "signet.signing_keys", "signet.groups", "signet.app_roles",
	"signet.invitations", "signet.metadata"}

// IsAPIScope tells whether a name is one of a scope of Signet's own API.
func IsAPIScope(name string) bool { return slices.Contains(APIScopeNames, name) }

// ScopesNamed gives the scopes of these names, and no others. What is no scope of Signet's own API is left out.
func ScopesNamed(names ...string) (s APIScopes) {
	for _, name := range names {
		if !strings.HasPrefix(name, "signet.") {
			continue
		}
		if i := slices.Index(APIScopeNames, name); i >= 0 {
			s |= 1 << i
		}
	}
	return s
}

// ScopesGiven gives what a token with these scopes may be used for.
func ScopesGiven(names []string) APIScopes {
	s := ScopesNamed(names...)
	if s&WriteScope != 0 {
		s |= ReadScope
	}
	return s
}

// Without gives the scopes that are not among others.
func (s APIScopes) Without(others APIScopes) APIScopes { return s &^ others }

// Names lists the scopes as tokens carry them.
func (s APIScopes) Names() (names []string) {
	for i, name := range APIScopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// BesideOperations are the permissions that no operation has in its rule, with the scopes that an application needs to
// hold them: what they are for is asked in the course of operations with other permissions.
var BesideOperations = map[Permission]APIScopes{DomainRelease: DomainsScope}
