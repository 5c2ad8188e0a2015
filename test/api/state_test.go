package api_test

import (
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
)

// disabledUserStory: who leaves ACTIVE loses all sessions and tokens at once, and for good.
func disabledUserStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	for _, x := range []struct {
		off, on event.Fact[user.User]
		state   signetv1.User_State
	}{
		{user.Deactivated{}, user.Reactivated{}, signetv1.User_STATE_INACTIVE},
		{user.WasLocked{}, user.Unlocked{}, signetv1.User_STATE_LOCKED},
		{user.WasRemoved{}, nil, 0},
	} {
		as := c.w.addUser(t, person{Org: s.org, Domain: s.domain, Roles: []access.Role{access.OrgOwner}})
		in := c.session(t, as)
		c.me(t, in)
		c.me(t, as)
		c.w.changeUser(t, as.UserID, x.off)
		for _, op := range operations { // no operation is left over
			if !op.rule.GetPublic() {
				c.refused(t, unauthenticated, in, s.sample(op))
				c.refused(t, unauthenticated, as, s.sample(op))
			}
		}
		c.refused(t, signInFailed, nil, signIn(as.LoginName, as.Password))
		if x.on == nil {
			continue
		}
		same(t, "state", c.user(t, s.owner, as.UserID).GetState(), x.state)
		c.w.changeUser(t, as.UserID, x.on)
		c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
		c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{})
		c.me(t, c.session(t, as))
	}
}

// disabledOrgStory: the same for all users of an organization; whoever may from outside still does.
func disabledOrgStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.elsewhere(t)
	guest := c.w.addUser(t, person{Org: other.org, Elsewhere: map[string][]access.Role{s.org: {access.OrgOwner}}})
	resident := c.w.addUser(t, person{Org: s.org, Domain: s.domain, Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwner}}})
	in := c.session(t, resident)
	c.me(t, in)
	c.w.changeOrg(t, s.org, org.Deactivated{})
	for _, dead := range []*Actor{in, resident, s.owner, s.user} {
		c.refused(t, unauthenticated, dead, &signetv1.GetMyUserRequest{})
	}
	c.refused(t, unauthenticated, resident, setup("x"))
	c.refused(t, signInFailed, nil, signIn(resident.LoginName, resident.Password))

	same(t, "state", c.org(t, guest, s.org).GetState(), signetv1.Organization_STATE_INACTIVE)
	in2 := header(orgID, s.org)
	done[*signetv1.UpdateIdentityProviderResponse](t, c, guest, general(s.idp))
	done[*signetv1.UpdateJWTIdentityProviderResponse](t, c, c.w.root, jwtConfig(s.idp), in2)
	done[*signetv1.AddJWTIdentityProviderResponse](t, c, guest, addJWT(), in2)
	c.user(t, guest, s.user.UserID, in2)
	s.user.Password = c.w.secret("inactive")
	done[*signetv1.SetUserPasswordResponse](t, c, guest, with(setPassword(s.user.UserID, s.user.Password), "noChangeRequired", true), in2)

	c.w.changeOrg(t, s.org, org.Reactivated{})
	for _, dead := range []*Actor{in, resident, s.owner} {
		c.refused(t, unauthenticated, dead, &signetv1.GetMyUserRequest{})
	}
	c.me(t, c.session(t, resident))
	c.me(t, c.session(t, s.user))

	c.w.changeOrg(t, s.org, org.WasRemoved{})
	c.refused(t, noOrg, c.w.root, &signetv1.GetOrganizationRequest{OrgId: s.org})
	c.refused(t, noOrg, c.w.root, addJWT(), in2)
	c.refused(t, signInFailed, nil, signIn(resident.LoginName, resident.Password))
	c.refused(t, permissionDenied, other.owner, &signetv1.GetOrganizationRequest{OrgId: s.org})
}
