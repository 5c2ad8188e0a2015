package api_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// audienceStory: an organization approves a client of another one, both see it, and it is withdrawn.
func audienceStory(t *testing.T, c *Client) {
	api, client := c.w.newScene(t), c.w.newScene(t)
	approve := &signetv1.ApproveAudienceRequest{AppId: api.app, ClientId: client.app}
	withdraw := &signetv1.WithdrawAudienceRequest{AppId: api.app, ClientId: client.app}
	list := func(as *Actor, received bool) string {
		t.Helper()
		var all []string
		for _, a := range done[*signetv1.ListAudienceApprovalsResponse](t, c, as,
			&signetv1.ListAudienceApprovalsRequest{Received: received}).GetApprovals() {
			for _, approved := range a.GetClients() {
				if a.GetName() == "" || approved.GetApprovalDate() == nil {
					t.Errorf("got %v", a)
				}
				all = append(all, a.GetOrgId()+"/"+a.GetAppId()+" for "+approved.GetOrgId()+"/"+approved.GetClientId())
			}
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	// Whoever has the client cannot approve it, nor can anybody for an application that is not theirs.
	c.refused(t, noApp, client.owner, approve)
	c.refused(t, permissionDenied, client.owner, approve, header(orgID, api.org))
	c.refused(t, refused(codes.NotFound, "CLIENT_NOT_FOUND"), api.owner, with(approve, "clientId", "app_nobody"))
	c.refused(t, refused(codes.NotFound, "CLIENT_NOT_FOUND"), api.owner, with(approve, "clientId", client.user.UserID))
	c.refused(t, refused(codes.FailedPrecondition, "AUDIENCE_APPROVAL_NOT_NEEDED"), api.owner,
		with(approve, "clientId", api.robot().UserID))
	c.refused(t, sequenceMismatch, api.owner, approve, stale)

	before := c.app(t, api.owner, api.app).GetDetails().GetSequence()
	d := done[*signetv1.ApproveAudienceResponse](t, c, api.owner, approve).GetDetails()
	same(t, "sequence", d.GetSequence(), before+1)
	c.refused(t, refused(codes.AlreadyExists, "AUDIENCE_APPROVAL_EXISTS"), api.owner, approve)
	done[*signetv1.ApproveAudienceResponse](t, c, api.owner, with(approve, "clientId", client.robot().UserID))
	both := []string{api.org + "/" + api.app + " for " + client.org + "/" + client.app,
		api.org + "/" + api.app + " for " + client.org + "/" + client.robot().UserID}
	slices.Sort(both)
	same(t, "what was given", list(api.owner, false), strings.Join(both, ", "))
	same(t, "what was got", list(client.owner, true), strings.Join(both, ", "))
	same(t, "the other way round", list(client.owner, false)+list(api.owner, true), "")

	c.refused(t, noApp, client.owner, withdraw)
	done[*signetv1.WithdrawAudienceResponse](t, c, api.owner, withdraw)
	c.refused(t, refused(codes.NotFound, "AUDIENCE_APPROVAL_NOT_FOUND"), api.owner, withdraw)
	left := api.org + "/" + api.app + " for " + client.org + "/" + client.robot().UserID
	same(t, "what is left", list(api.owner, false)+", "+list(client.owner, true), left+", "+left)
	done[*signetv1.RemoveApplicationResponse](t, c, api.owner, &signetv1.RemoveApplicationRequest{AppId: api.app})
	same(t, "of an application that is gone", list(api.owner, false)+list(client.owner, true), "")
}
