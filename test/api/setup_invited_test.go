package api_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// setupInvitedStory: somebody who may set up organizations invites the administrator of a new one, where no mail is
// sent. Nobody owns it before that; what ends unaccepted can be made again by an owner of the installation.
func setupInvitedStory(t *testing.T, c *Client) {
	w := c.w
	manager := w.addUser(t, person{Org: w.here.org,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOrgManager}}})
	domain, email := unique("invited")+".example", unique("nia")+"@mail.example"
	req := with(with(setupInvited(email), "org.domain", domain), "language", "de")
	k := unique("key")
	made := done[*signetv1.SetupInvitedOrganizationResponse](t, c, manager, req, key(k))
	org, token := made.GetOrgId(), tokenIn(t, made.GetLink())
	same(t, "prefixes", org[:4]+made.GetInvitationId()[:4], "org_inv_")
	same(t, "an organization owns itself", made.GetDetails().GetResourceOwner(), org)
	sameMessage(t, "details", made.GetDetails(), c.org(t, w.root, org).GetDetails())
	same(t, "domain", c.org(t, w.root, org).GetPrimaryDomain(), domain)
	i := c.invitation(t, w.root, org, made.GetInvitationId())
	same(t, "state", i.GetState(), signetv1.Invitation_STATE_PENDING)
	same(t, "address", i.GetEmail(), email)
	same(t, "inviter", i.GetInviterId(), manager.UserID)
	same(t, "expires", i.GetExpirationDate().AsTime(), made.GetExpirationDate().AsTime())
	same(t, "one role", len(i.GetRoles()), 1)
	same(t, "role", i.GetRoles()[0], orgOwner)
	members := func() int {
		return len(done[*signetv1.ListOrganizationMembersResponse](t, c, w.root,
			&signetv1.ListOrganizationMembersRequest{OrgId: org}).GetMembers())
	}
	same(t, "owners before", members(), 0)

	// A repetition makes nothing, and shows no link.
	again := done[*signetv1.SetupInvitedOrganizationResponse](t, c, manager, req, key(k))
	same(t, "the link again", again.GetLink(), "")
	made.Link = ""
	sameMessage(t, "the answer again", again, made)
	c.refused(t, keyReused, manager, with(req, "email", "other@mail.example"), key(k))
	c.refused(t, domainTaken, manager, req)

	// The one who set it up need not be able to invite there; an owner of the installation can.
	resend := &signetv1.ResendInvitationRequest{OrgId: org, InvitationId: made.GetInvitationId()}
	c.refused(t, permissionDenied, manager, resend)
	in := done[*signetv1.AcceptInvitationResponse](t, c, nil, c.accepting(token))
	nia := &Actor{UserID: in.GetUserId(), OrgID: org, Token: in.GetToken()}
	same(t, "owners after", members(), 1)
	done[*signetv1.UpdateOrganizationResponse](t, c, nia, &signetv1.UpdateOrganizationRequest{OrgId: org, Name: "Mine"})
	same(t, "language", c.me(t, nia).GetHuman().GetProfile().GetPreferredLanguage(), "de")
	c.refused(t, refused(codes.FailedPrecondition, "INVITATION_NOT_PENDING"), w.root, resend)

	// All fields at their most, and at their least.
	longest := with(with(with(setupInvited(email), "org.name", wide(200)), "org.domain", textFor("domain", 200)),
		"language", wide(10))
	longest.Email, longest.LifetimeSeconds = (unique("l") + "@" + strings.Repeat("x", 200))[:200], 30*24*3600
	made = done[*signetv1.SetupInvitedOrganizationResponse](t, c, manager, longest)
	same(t, "name", c.org(t, w.root, made.GetOrgId()).GetName(), wide(200))
	same(t, "address", c.invitation(t, w.root, made.GetOrgId(), made.GetInvitationId()).GetEmail(), longest.Email)
	shortest := with(setupInvited("a@b"), "org.name", "x")
	shortest.LifetimeSeconds = 3600
	done[*signetv1.SetupInvitedOrganizationResponse](t, c, manager, shortest)

	// Sent again, withdrawn, and another administrator invited.
	made = done[*signetv1.SetupInvitedOrganizationResponse](t, c, manager, setupInvited(unique("two")+"@mail.example"))
	org, token = made.GetOrgId(), tokenIn(t, made.GetLink())
	resend = &signetv1.ResendInvitationRequest{OrgId: org, InvitationId: made.GetInvitationId()}
	second := tokenIn(t, done[*signetv1.ResendInvitationResponse](t, c, w.root, resend).GetLink())
	c.refused(t, linkReplaced, nil, c.accepting(token))
	done[*signetv1.WithdrawInvitationResponse](t, c, w.root,
		&signetv1.WithdrawInvitationRequest{OrgId: org, InvitationId: made.GetInvitationId()})
	c.refused(t, linkWithdrawn, nil, c.accepting(second))
	_, third := c.invite(t, w.root, org, unique("three")+"@mail.example", orgOwner)
	done[*signetv1.AcceptInvitationResponse](t, c, nil, c.accepting(third))
	same(t, "owners in the end", members(), 1)

	// Who may no longer set up organizations has invited nobody.
	made = done[*signetv1.SetupInvitedOrganizationResponse](t, c, manager, setupInvited(unique("four")+"@mail.example"))
	done[*signetv1.RemoveInstallationMemberResponse](t, c, w.root,
		&signetv1.RemoveInstallationMemberRequest{UserId: manager.UserID})
	c.refused(t, inviterMayNot, nil, c.accepting(tokenIn(t, made.GetLink())))
	c.refused(t, permissionDenied, manager, setupInvited("five@mail.example"))
}
