package api_test

import (
	"fmt"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// What an organization has a lot of is changed and removed. Whichever operation writes all of it at once says so in its
// rule: the store sees it, and a World fails if one does not.
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
			project = done[*signetv1.AddProjectResponse](t, c, s.owner,
				&signetv1.AddProjectRequest{Name: fmt.Sprint("Shop ", i)}).GetProjectId()
			done[*signetv1.SetProjectRoleResponse](t, c, s.owner,
				&signetv1.SetProjectRoleRequest{ProjectId: project, Key: "admin", Name: "Admin"})
			done[*signetv1.SetGroupAppRolesResponse](t, c, s.owner,
				&signetv1.SetGroupAppRolesRequest{GroupId: places, ProjectId: project, RoleKeys: []string{"admin"}})
		}
		done[*signetv1.RemoveProjectRoleResponse](t, c, s.owner,
			&signetv1.RemoveProjectRoleRequest{ProjectId: project, Key: "admin"})
		done[*signetv1.RemoveProjectResponse](t, c, s.owner, &signetv1.RemoveProjectRequest{ProjectId: project})
		done[*signetv1.RemoveGroupResponse](t, c, s.owner, &signetv1.RemoveGroupRequest{GroupId: places})

		var users []*signetv1.ImportUsersRequest_User
		for i := range many {
			users = append(users, &signetv1.ImportUsersRequest_User{
				UserName: fmt.Sprint("imported", i),
				Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Jo", LastName: "Doe"},
				Email:    &signetv1.ImportUsersRequest_User_Email{Address: fmt.Sprint("u", i, "@mail.example")},
			})
		}
		done[*signetv1.ImportUsersResponse](t, c, s.owner, &signetv1.ImportUsersRequest{Users: users})
		done[*signetv1.DeactivateOrganizationResponse](t, c, w.root,
			&signetv1.DeactivateOrganizationRequest{OrgId: s.org})
		w.removeOrg(t, s)
		if w.log.Has(store.Unmarked) {
			t.Error("one does not")
		}
	})
}

// A user has roles in very many organizations, and owns them alone. Every operation on this user that tells them is
// carried out, and tells all of them. It is long and waits for the place of its organization, which its definition
// cannot say.
func TestOperationsOnAUserOfManyOrganizationsAreLong(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := openWorld(t, db)
		c, s := &Client{w, w.rest}, w.newScene(t)
		const many = event.MaxObjects + 1
		guest, robot := w.addUser(t, person{Org: s.org, Domain: s.domain}),
			w.addUser(t, person{Org: s.org, Domain: s.domain, Service: true})
		var facts []event.Fact[user.User]
		for range many {
			host := w.bareOrg(t)
			facts = append(facts, user.RolesAccepted{Scope: host, Roles: []access.Role{access.OrgOwner}},
				user.MembershipSet{Scope: host, Roles: []access.Role{access.OrgOwner}})
		}
		told := func(what string, user string, do func(id string)) {
			t.Helper()
			w.changeUser(t, user, facts...)
			before, err := w.server.Store().Position(t.Context())
			testkit.Must(t, err)
			do(user)
			after, err := w.server.Store().Position(t.Context())
			testkit.Must(t, err)
			if after-before < many+1 {
				t.Errorf("%s: %d events", what, after-before)
			}
		}
		told("a password", guest.UserID, func(id string) {
			done[*signetv1.SetUserPasswordResponse](t, c, s.owner, setPassword(id, w.secret("another")))
		})
		told("a user name", guest.UserID, func(id string) {
			done[*signetv1.SetUserNameResponse](t, c, s.owner,
				&signetv1.SetUserNameRequest{UserId: id, UserName: unique("other")})
		})
		told("a token", robot.UserID, func(id string) {
			done[*signetv1.CreateUserTokenResponse](t, c, s.owner, &signetv1.CreateUserTokenRequest{UserId: id})
		})
		told("a link", guest.UserID, func(id string) {
			done[*signetv1.SendPasswordSetupResponse](t, c, s.owner, &signetv1.SendPasswordSetupRequest{UserId: id})
		})
		w.removeUser(t, s, robot.UserID) // or they have another owner
		told("a lock", guest.UserID, func(id string) {
			done[*signetv1.LockUserResponse](t, c, s.owner, &signetv1.LockUserRequest{UserId: id})
		})
		told("an unlock", guest.UserID, func(id string) {
			done[*signetv1.UnlockUserResponse](t, c, s.owner, &signetv1.UnlockUserRequest{UserId: id})
		})
		told("a deactivation", guest.UserID, func(id string) {
			done[*signetv1.DeactivateUserResponse](t, c, s.owner, &signetv1.DeactivateUserRequest{UserId: id})
		})
		told("a reactivation", guest.UserID, func(id string) {
			done[*signetv1.ReactivateUserResponse](t, c, s.owner, &signetv1.ReactivateUserRequest{UserId: id})
		})
		told("a removal", guest.UserID, func(id string) { w.removeUser(t, s, id) })
		told("the end of home", s.user.UserID, func(string) {
			done[*signetv1.DeactivateOrganizationResponse](t, c, w.root,
				&signetv1.DeactivateOrganizationRequest{OrgId: s.org})
		})
	})
}

func (w *World) removeUser(t *testing.T, s *scene, id string) {
	t.Helper()
	done[*signetv1.RemoveUserResponse](t, &Client{w, w.rest}, s.owner, &signetv1.RemoveUserRequest{UserId: id})
}
