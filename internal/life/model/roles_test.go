package model

import (
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
)

// To a node of the version before, the roles of helpers are worth nothing: it would let anybody take over an account
// with them. So whatever gives them waits for every node, and what gives others does not wait for them.
func TestRolesThatNodesOfBeforeDoNotKnowWaitForThem(t *testing.T) {
	for _, c := range []struct {
		roles []access.Role
		waits bool
	}{
		{[]access.Role{access.IAMSupport}, true},
		{[]access.Role{access.OrgUserManager, access.OrgAuditor}, true},
		{[]access.Role{access.OrgOwner, access.OrgUserManager}, false},
		{nil, false},
	} {
		for name, fact := range map[string]event.Gated{
			"a membership":  user.MembershipSet{Scope: "org_1", Roles: c.roles},
			"a group":       group.RolesSet{Roles: c.roles},
			"an invitation": invitation.Added{Roles: c.roles},
			"an offer":      member.OfferMade{Roles: c.roles},
		} {
			if got := fact.Since() >= 6; got != c.waits {
				t.Errorf("%s with %q waits for version %d", name, c.roles, fact.Since())
			}
		}
	}
}
