package api_test

import (
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// countObjectsStory counts what an organization has, before and after changes, for who may list some of it.
func countObjectsStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	count := func(as *Actor, h ...Header) *signetv1.CountObjectsResponse {
		t.Helper()
		return done[*signetv1.CountObjectsResponse](t, c, as, &signetv1.CountObjectsRequest{OrgId: s.org}, h...)
	}
	before := count(s.owner)
	same(t, "people", before.GetPeople(), 3) // who set it up, too
	same(t, "applications", before.GetApplications(), 1)
	same(t, "providers", before.GetIdentityProviders(), 1)
	same(t, "groups", before.GetGroups(), 0)
	s.group()
	robot := s.robot()
	done[*signetv1.CreateInvitationResponse](t, c, s.owner,
		&signetv1.CreateInvitationRequest{OrgId: s.org, Email: unique("invited") + "@example.org"})
	after := count(s.owner)
	same(t, "people after", after.GetPeople(), before.GetPeople())
	same(t, "service users after", after.GetServiceUsers(), before.GetServiceUsers()+1)
	same(t, "groups after", after.GetGroups(), 1)
	same(t, "invitations after", after.GetOpenInvitations(), before.GetOpenInvitations()+1)
	done[*signetv1.RemoveUserResponse](t, c, s.owner, &signetv1.RemoveUserRequest{UserId: robot.UserID})
	same(t, "removed users", count(s.owner).GetServiceUsers(), before.GetServiceUsers())

	// Nobody learns a number of what they may not list.
	settings := count(s.holder(t, settingsManager))
	if settings.People != nil || settings.ServiceUsers != nil || settings.Groups != nil || settings.OpenInvitations != nil {
		t.Errorf("a settings manager is told %v", settings)
	}
	same(t, "applications for them", settings.GetApplications(), 1)
	same(t, "providers for them", settings.GetIdentityProviders(), 1)
	manager := count(s.holder(t, userManager))
	if manager.People == nil || manager.Groups == nil || manager.Applications != nil || manager.IdentityProviders != nil {
		t.Errorf("a user manager is told %v", manager)
	}
	for _, as := range []*Actor{s.user, s.holder(t, auditor), c.w.newScene(t).owner} {
		c.refused(t, permissionDenied, as, &signetv1.CountObjectsRequest{OrgId: s.org})
	}
}
