package api_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/user"
)

// search walks through all pages of a search and gives the user names in order.
func (c *Client) search(t *testing.T, as *Actor, req *signetv1.SearchUsersRequest, h ...Header) (names []string) {
	t.Helper()
	req = proto.Clone(req).(*signetv1.SearchUsersRequest)
	for range 100 {
		page := done[*signetv1.SearchUsersResponse](t, c, as, req, h...)
		for _, f := range page.GetResults() {
			names = append(names, f.GetUser().GetUserName())
		}
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return names
		}
	}
	t.Fatal("the search has no end")
	return nil
}

// searchUsersStory: users are found by the beginnings of their words, in one organization or in all, at once and until
// they are gone.
func searchUsersStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.newScene(t)
	mark := unique("mark")
	add := func(s *scene, name, first, last, nick, email string) string {
		req := newPerson(name)
		req.Profile = &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: first, LastName: last, NickName: nick}
		req.Email.Email = email
		return done[*signetv1.AddHumanUserResponse](t, c, s.owner, req).GetUserId()
	}
	anna := add(s, "anna", "Anna", "Müller-Lüdenscheidt", "Änni", "a.mueller@dept."+mark+".example")
	add(s, "bert.berg", "Bert", "Berg", "", "bb@"+mark+".example")
	add(other, "carl", "Carl", "Muster", "", "carl@"+mark+".example")
	robot := newService(unique("robot"))
	robot.Name = "Nightly " + mark + " export"
	done[*signetv1.AddServiceUserResponse](t, c, s.owner, robot)
	for _, x := range []struct{ query, want string }{
		{"anna", "[anna]"},
		{"ANN", "[anna]"},
		{"ＡＮＮＡ", "[anna]"},
		{"lüden", "[anna]"},
		{"lu\u0308den mu\u0308l", "[anna]"},
		{"muller", "[]"}, // accents count
		{"änni", "[anna]"},
		{"mueller", "[anna]"},
		{"a.muel", "[anna]"},
		{"@" + mark, "[anna bert.berg " + robot.UserName + "]"}, // it has two terms, so they come by age
		{mark + " ber", "[bert.berg]"},
		{"ber " + mark + " nobody", "[]"},
		{"berg", "[bert.berg]"},
		{"nightly exp", "[" + robot.UserName + "]"},
		{"carl", "[]"},
		{"@", "[]"},
		{"%", "[]"},
		{"' OR 1=1 --", "[]"},
		{strings.Repeat("x", 200), "[]"},
	} {
		for _, size := range []int32{0, 1, 100} {
			got := c.search(t, s.owner, &signetv1.SearchUsersRequest{Query: x.query, PageSize: size})
			same(t, fmt.Sprint(x.query, " by ", size), fmt.Sprint(got), x.want)
		}
	}
	page := done[*signetv1.SearchUsersResponse](t, c, s.owner, &signetv1.SearchUsersRequest{Query: "anna"})
	sameMessage(t, "found", page.GetResults()[0],
		&signetv1.SearchUsersResponse_Found{User: c.user(t, s.owner, anna), OrgId: s.org,
			OrgName: c.org(t, s.owner, s.org).GetName()})

	// Over all organizations, for those who may.
	everywhere := &signetv1.SearchUsersRequest{Query: mark, AllOrganizations: true, PageSize: 2}
	same(t, "everywhere", len(c.search(t, c.w.root, everywhere)), 4)
	c.refused(t, permissionDenied, s.owner, everywhere)
	same(t, "in the other one",
		fmt.Sprint(c.search(t, c.w.root, &signetv1.SearchUsersRequest{Query: mark},
			header(orgID, other.org))), "[carl]")
	c.refused(t, permissionDenied, s.owner, &signetv1.SearchUsersRequest{Query: mark}, header(orgID, other.org))
	for _, f := range done[*signetv1.SearchUsersResponse](t, c, c.w.root,
		with(everywhere, "pageSize", int32(100))).GetResults() {
		same(t, "the organization of "+f.GetUser().GetUserName(), f.GetOrgId(),
			f.GetUser().GetDetails().GetResourceOwner())
	}
	c.refused(t, invalid("query"), s.owner, &signetv1.SearchUsersRequest{Query: "a b c d e f g h i j k"})
	c.refused(t, invalid("query"), s.owner, &signetv1.SearchUsersRequest{})
	c.refused(t, invalid("query", "pageSize"), s.owner,
		&signetv1.SearchUsersRequest{Query: strings.Repeat("x", 201), PageSize: 101})

	// A change counts at once, and somebody who is gone is not found.
	done[*signetv1.UpdateUserProfileResponse](t, c, s.owner,
		&signetv1.UpdateUserProfileRequest{UserId: anna, FirstName: "Zoe", LastName: "Zander", DisplayName: "Zoe Z."})
	same(t, "the name before", fmt.Sprint(c.search(t, s.owner, &signetv1.SearchUsersRequest{Query: "lüden"})), "[]")
	same(t, "the name now", fmt.Sprint(c.search(t, s.owner, &signetv1.SearchUsersRequest{Query: "zand zoe"})), "[anna]")
	c.w.changeUser(t, anna, user.WasRemoved{})
	same(t, "gone", fmt.Sprint(c.search(t, s.owner, &signetv1.SearchUsersRequest{Query: "zand"})), "[]")
}
