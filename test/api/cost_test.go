package api_test

import (
	"fmt"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store"
	"github.com/signet-idm/signet/test/testdb"
)

// What an organization has a lot of is changed and removed. Whichever operation writes all of it at once says so in its rule: the store sees it, and a World fails if one does
// not.
func TestOperationsOnALotOfObjectsSaySo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := openWorld(t, db)
		c, s := &Client{w, w.rest}, w.newScene(t)
		const many = event.MaxObjects + 1
		group := s.newGroup(t)
		var first string
		for i := range many {
			u := w.addUser(t, person{Org: s.org, Domain: s.domain})
			if done[*signetv1.AddGroupMemberResponse](t, c, s.owner, addToGroup(group, u.UserID)); i == 0 {
				first = u.UserID
			}
		}
		done[*signetv1.SetGroupRolesResponse](t, c, s.owner, setRoles(group, "ORG_USER_MANAGER"))
		done[*signetv1.RemoveGroupMemberResponse](t, c, s.owner, removeFromGroup(group, first))
		done[*signetv1.RemoveUserResponse](t, c, s.owner, &signetv1.RemoveUserRequest{UserId: first})
		done[*signetv1.RemoveGroupResponse](t, c, s.owner, &signetv1.RemoveGroupRequest{GroupId: group})

		places := s.newGroup(t)
		var project string
		for i := range many {
			project = done[*signetv1.AddProjectResponse](t, c, s.owner, &signetv1.AddProjectRequest{Name: fmt.Sprint("Shop ", i)}).GetProjectId()
			done[*signetv1.SetProjectRoleResponse](t, c, s.owner, &signetv1.SetProjectRoleRequest{ProjectId: project, Key: "admin", Name: "Admin"})
			done[*signetv1.SetGroupAppRolesResponse](t, c, s.owner, &signetv1.SetGroupAppRolesRequest{GroupId: places, ProjectId: project, RoleKeys: []string{"admin"}})
		}
		done[*signetv1.RemoveProjectRoleResponse](t, c, s.owner, &signetv1.RemoveProjectRoleRequest{ProjectId: project, Key: "admin"})
		done[*signetv1.RemoveProjectResponse](t, c, s.owner, &signetv1.RemoveProjectRequest{ProjectId: project})
		done[*signetv1.RemoveGroupResponse](t, c, s.owner, &signetv1.RemoveGroupRequest{GroupId: places})

		var users []*signetv1.ImportUsersRequest_User
		for i := range many {
			users = append(users, &signetv1.ImportUsersRequest_User{UserName: fmt.Sprint("imported", i), Profile: &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Jo", LastName: "Doe"},
				Email: &signetv1.ImportUsersRequest_User_Email{Address: fmt.Sprint("u", i, "@mail.example")}})
		}
		done[*signetv1.ImportUsersResponse](t, c, s.owner, &signetv1.ImportUsersRequest{Users: users})
		done[*signetv1.DeactivateOrganizationResponse](t, c, w.root, &signetv1.DeactivateOrganizationRequest{OrgId: s.org})
		w.removeOrg(t, s)
		if w.log.Has(store.Unmarked) {
			t.Error("one does not")
		}
	})
}
