package claimset

import (
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/access"
)

// usual are the scopes that applications ask for every day, in the order in which people are asked about them: what an
// application may change, or keeps when they are gone, then what it reads, then who they are.
var usual = slices.Concat(access.WriteScope.Names(), access.SelfScope.Names(), []string{OfflineAccess},
	access.ReadScope.Names(),
	[]string{Roles, Groups, Metadata, RolesScope, OrgScope, PhoneScope, EmailScope, ProfileScope, OpenID})

func weight(scope string) int {
	if strings.HasPrefix(scope, OrgScope+":") {
		scope = OrgScope
	}
	if i := slices.Index(usual, scope); i >= 0 {
		return 2 + i
	}
	if access.IsAPIScope(scope) { // it has to be allowed by name
		return 1
	}
	return 0
}

// SortedScopes gives scopes in the order in which people are asked about them: first what they should not overlook,
// because it is unusual or gives more than others. In the alphabet it would stand below what nearly every application
// asks for.
func SortedScopes(scopes []string) []string {
	return slices.SortedStableFunc(slices.Values(scopes), func(a, b string) int { return weight(a) - weight(b) })
}
