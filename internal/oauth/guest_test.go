package oauth_test

import (
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
)

// Where somebody is a guest without roles is not told, and roles by groups are told like others.
func TestTheRolesOfGuestsAndOfGroupsInClaims(t *testing.T) {
	u := &event.Object[user.User]{ID: "usr_a", Org: "org_a"}
	for _, f := range []event.Fact[user.User]{user.MembershipSet{Scope: "org_b", Stays: true},
		user.GroupJoined{Org: "org_a", Group: "grp_g", Roles: []access.Role{access.OrgOwner}}} {
		f.Apply(&u.Data)
	}
	claims := claimset.New(false)
	claims.AddOrganization(u, &event.Object[org.Org]{ID: "org_a"}, []string{claimset.RolesScope})
	if want := map[string][]string{"org_a": {"ORG_OWNER"}}; !reflect.DeepEqual(claims.Values[claimset.RolesScope], want) {
		t.Errorf("told %v", claims)
	}
}
