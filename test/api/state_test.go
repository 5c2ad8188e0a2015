package api_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/test/testkit"
)

// carryOut sends a change that must succeed, and gives the details in its answer.
func (c *Client) carryOut(t *testing.T, as *Actor, req proto.Message, h ...Header) *signetv1.Details {
	t.Helper()
	a := c.send(t, as, req, h...)
	if a.status != nil {
		t.Fatalf("%s: %s", a.wire, a.summary())
	}
	return a.message.(interface{ GetDetails() *signetv1.Details }).GetDetails()
}

// disabledUserStory: who leaves ACTIVE loses all sessions and tokens at once, and for good.
func disabledUserStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	for _, x := range []struct {
		off, on proto.Message
		state   signetv1.User_State
	}{
		{&signetv1.DeactivateUserRequest{}, &signetv1.ReactivateUserRequest{}, signetv1.User_STATE_INACTIVE},
		{&signetv1.LockUserRequest{}, &signetv1.UnlockUserRequest{}, signetv1.User_STATE_LOCKED},
		{&signetv1.RemoveUserRequest{}, nil, 0},
	} {
		as := c.w.addUser(t, person{Org: s.org, Domain: s.domain, Roles: []access.Role{access.OrgOwner}})
		in := c.session(t, as)
		c.me(t, in)
		c.me(t, as)
		before := c.user(t, s.owner, as.UserID).GetDetails()
		d := c.carryOut(t, s.owner, with(x.off, "userId", as.UserID))
		same(t, "sequence", d.GetSequence(), before.GetSequence()+1)
		same(t, "owner", d.GetResourceOwner(), s.org)
		for _, op := range operations { // no operation is left over
			if !op.rule.GetPublic() {
				c.refused(t, unauthenticated, in, s.sample(op))
				c.refused(t, unauthenticated, as, s.sample(op))
			}
		}
		c.refused(t, signInFailed, nil, signIn(as.LoginName, as.Password))
		if x.on == nil {
			c.refused(t, noUser, s.owner, &signetv1.GetUserRequest{UserId: as.UserID})
			c.refused(t, noUser, s.owner, with(x.off, "userId", as.UserID))
			continue
		}
		c.refused(t, wrongUserState, s.owner, with(x.off, "userId", as.UserID))
		same(t, "state", c.user(t, s.owner, as.UserID).GetState(), x.state)
		c.carryOut(t, s.owner, with(x.on, "userId", as.UserID))
		c.refused(t, wrongUserState, s.owner, with(x.on, "userId", as.UserID))
		c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
		c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{})
		c.me(t, c.session(t, as))
	}
}

// disabledOrgStory: the same for all users of an organization; whoever may from outside still does.
func disabledOrgStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.elsewhere(t)
	guest := c.w.addUser(t, person{Org: other.org, Elsewhere: map[string][]access.Role{s.org: {access.OrgOwner}}})
	resident := c.w.addUser(t,
		person{Org: s.org, Domain: s.domain,
			Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwner}}})
	in := c.session(t, resident)
	c.me(t, in)
	c.refused(t, targetHoldsMore, guest, &signetv1.DeactivateOrganizationRequest{OrgId: s.org})
	c.refused(t, targetHoldsMore, s.owner, &signetv1.RemoveOrganizationRequest{OrgId: s.org})
	c.carryOut(t, c.w.root, &signetv1.DeactivateOrganizationRequest{OrgId: s.org})
	c.refused(t, wrongOrgState, c.w.root, &signetv1.DeactivateOrganizationRequest{OrgId: s.org})
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
	done[*signetv1.SetUserPasswordResponse](t, c, guest,
		with(setPassword(s.user.UserID, s.user.Password), "noChangeRequired", true), in2)

	c.carryOut(t, guest, &signetv1.ReactivateOrganizationRequest{OrgId: s.org})
	c.refused(t, wrongOrgState, guest, &signetv1.ReactivateOrganizationRequest{OrgId: s.org})
	for _, dead := range []*Actor{in, resident, s.owner} {
		c.refused(t, unauthenticated, dead, &signetv1.GetMyUserRequest{})
	}
	c.me(t, c.session(t, resident))
	in = c.session(t, s.user)
	c.me(t, in)

	c.carryOut(t, c.w.root, &signetv1.RemoveOrganizationRequest{OrgId: s.org})
	c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
	c.refused(t, noOrg, c.w.root, &signetv1.GetOrganizationRequest{OrgId: s.org})
	c.refused(t, noOrg, c.w.root, addJWT(), in2)
	c.refused(t, signInFailed, nil, signIn(resident.LoginName, resident.Password))
	c.refused(t, permissionDenied, other.owner, &signetv1.GetOrganizationRequest{OrgId: s.org})
	c.refused(t, permissionDenied, guest, &signetv1.GetOrganizationRequest{OrgId: s.org})
	c.refused(t, noOrg, c.w.root, &signetv1.RemoveOrganizationRequest{OrgId: s.org})

	// Its domain is free at once, and what was in it goes soon, with what others held there.
	done[*signetv1.SetupOrganizationResponse](t, c, c.w.root, with(setup(c.w.secret("heir")), "org.domain", s.domain))
	testkit.Await(t, "the guest holds nothing any more", func() bool {
		return len(done[*signetv1.ListMyMembershipsResponse](t, c, guest,
			&signetv1.ListMyMembershipsRequest{}).GetMemberships()) == 0
	})
}

var (
	wrongUserState = refused(codes.FailedPrecondition, "USER_WRONG_STATE")
	wrongOrgState  = refused(codes.FailedPrecondition, "ORGANIZATION_WRONG_STATE")
	lastOwner      = refused(codes.FailedPrecondition, "LAST_OWNER")
	noMember       = refused(codes.NotFound, "MEMBER_NOT_FOUND")
	grantsMore     = refused(codes.PermissionDenied, "GRANTS_MORE")
)
