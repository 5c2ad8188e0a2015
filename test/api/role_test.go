package api_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/test/testdb"
)

// newRole makes a custom role of an organization, or of access.Installation.
func (w *World) newRole(t *testing.T, scope string, permissions ...string) string {
	t.Helper()
	if scope == access.Installation {
		return done[*signetv1.AddInstallationRoleResponse](t, &Client{w, w.rest}, w.root,
			&signetv1.AddInstallationRoleRequest{Name: unique("Role"), Permissions: permissions}).GetRoleId()
	}
	return done[*signetv1.AddOrganizationRoleResponse](t, &Client{w, w.rest}, w.root,
		&signetv1.AddOrganizationRoleRequest{OrgId: scope, Name: unique("Role"), Permissions: permissions}).GetRoleId()
}

// holdsCustom makes somebody of a scene who holds a custom role there, or in the installation.
func (s *scene) holdsCustom(t *testing.T, scope, id string) *Actor {
	t.Helper()
	a := s.holder(t, nothing)
	c := &Client{s.w, s.w.rest}
	if scope == access.Installation {
		c.carryOut(t, s.w.root, &signetv1.SetInstallationMemberRequest{UserId: a.UserID, Roles: []string{id}})
	} else {
		c.carryOut(t, s.w.root, &signetv1.SetOrganizationMemberRequest{OrgId: scope, UserId: a.UserID,
			Roles: []string{id}})
	}
	return a
}

// generatedParties hold custom roles with permissions that nobody chose: always the same ones, so that a failure comes
// again.
func generatedParties(t *testing.T, w *World, mine *scene) (all []*party) {
	random := rand.New(rand.NewPCG(30, 79))
	for i := range 4 {
		home, scope, most := mine, mine.org, access.PermissionsOf(mine.org, []access.Role{access.OrgOwner})
		if i == 3 {
			home, scope, most = w.newScene(t), access.Installation, access.Permissions()
		}
		var permissions []string
		for _, p := range most {
			if p != access.WebhookWrite && random.IntN(2) == 0 {
				permissions = append(permissions, string(p))
			}
		}
		if slices.Contains(permissions, "event.read") && slices.Contains(permissions, "user.read") {
			permissions = append(permissions, string(access.WebhookWrite)) // it needs both
		}
		id := w.newRole(t, scope, permissions...)
		all = append(all, &party{Actor: home.holdsCustom(t, scope, id), name: fmt.Sprint("generated ", i, permissions),
			home: home, roles: map[string]string{}, custom: map[string][]string{scope: permissions}})
	}
	return all
}

// customRoleStory: a role is made, given, changed between two requests, and removed.
func customRoleStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.newScene(t)
	add := &signetv1.AddOrganizationRoleRequest{OrgId: s.org, Name: "Helpdesk", Description: "Helps people",
		Permissions: []string{"user.write", "user.read", "user.read"}}
	id := done[*signetv1.AddOrganizationRoleResponse](t, c, s.owner, add).GetRoleId()
	c.refused(t, refused(codes.AlreadyExists, "ROLE_NAME_TAKEN"), s.owner, with(add, "name", "HELPDESK"))
	c.refused(t, invalid("permissions[0]"), s.owner, with(add, "permissions", []string{"user.reed"}))
	c.refused(t, invalid("permissions[0]"), s.owner, with(add, "permissions", []string{"signing.write"}))
	c.refused(t, invalid("permissions[0]"), s.owner, with(add, "permissions", []string{"webhook.write"}))
	get := &signetv1.GetOrganizationRoleRequest{OrgId: s.org, RoleId: id}
	role := done[*signetv1.GetOrganizationRoleResponse](t, c, s.owner, get).GetRole()
	if role.GetName() != "Helpdesk" || role.GetDescription() != "Helps people" ||
		!slices.Equal(role.GetPermissions(), []string{"user.read", "user.write"}) {
		t.Errorf("read as %v", role)
	}
	c.refused(t, noCustomRole, other.owner, with(get, "orgId", other.org))
	listed := done[*signetv1.ListOrganizationRolesResponse](t, c, s.owner,
		&signetv1.ListOrganizationRolesRequest{OrgId: s.org}).GetRoles()
	if len(listed) != 2 || listed[0].GetRoleId() != s.role || listed[1].GetRoleId() != id {
		t.Errorf("listed: %v", listed)
	}
	seen := func(as *Actor) bool {
		return slices.ContainsFunc(done[*signetv1.ListRolesResponse](t, c, as, &signetv1.ListRolesRequest{}).GetRoles(),
			func(r *signetv1.Role) bool {
				return r.GetName() == id && r.GetDisplayName() == "Helpdesk" && r.GetOrgId() == s.org
			})
	}
	if !seen(s.owner) || seen(s.user) || seen(other.owner) {
		t.Error("others see the role than may")
	}

	read := &signetv1.GetUserRequest{UserId: s.owner.UserID}
	groups := &signetv1.ListGroupsRequest{}
	c.refused(t, permissionDenied, s.user, read)
	c.carryOut(t, s.owner, setMember(s.org, s.user.UserID, id))
	c.user(t, s.user, s.owner.UserID)
	if !seen(s.user) {
		t.Error("a holder does not see the role")
	}
	same(t, "roles of the member", fmt.Sprint(c.memberships(t, s.user)[0].GetRoles()), fmt.Sprint([]string{id}))
	c.refused(t, invalid("roles[0]"), other.owner, setMember(other.org, other.user.UserID, id))
	c.refused(t, invalid("roles[0]"), s.w.root, &signetv1.SetInstallationMemberRequest{UserId: s.user.UserID,
		Roles: []string{id}})

	update := &signetv1.UpdateOrganizationRoleRequest{OrgId: s.org, RoleId: id, Name: "Helpdesk",
		Permissions: []string{"user.read", "group.read"}}
	c.refused(t, permissionDenied, s.user, groups)
	c.carryOut(t, s.owner, update)
	done[*signetv1.ListGroupsResponse](t, c, s.user, groups)
	c.carryOut(t, s.owner, with(update, "permissions", []string{"group.read"}))
	c.refused(t, permissionDenied, s.user, read)

	// somebody with less changes neither the role nor what its holders may do
	lesser := s.holdsCustom(t, s.org, s.w.newRole(t, s.org, "member.write", "member.read", "group.read", "user.read"))
	c.refused(t, roleHoldsMore, lesser, with(update, "permissions", []string{"group.read", "org.write"}))
	c.carryOut(t, s.owner, setMember(s.org, s.user.UserID, id, settingsManager))
	c.refused(t, refused(codes.PermissionDenied, "ROLE_HOLDERS_HOLD_MORE"), lesser, update)
	c.refused(t, refused(codes.PermissionDenied, "ROLE_HOLDERS_HOLD_MORE"), lesser,
		&signetv1.RemoveOrganizationRoleRequest{OrgId: s.org, RoleId: id})
	c.carryOut(t, s.owner, setMember(s.org, s.user.UserID, id))
	c.carryOut(t, lesser, update)
	c.user(t, s.user, s.owner.UserID)

	// groups give it, too
	group := s.newGroup(t)
	c.carryOut(t, s.owner, setRoles(group, id))
	c.carryOut(t, s.owner, addToGroup(group, lesser.UserID))
	c.carryOut(t, s.owner, &signetv1.RemoveOrganizationRoleRequest{OrgId: s.org, RoleId: id})
	c.refused(t, permissionDenied, s.user, read)
	c.refused(t, noCustomRole, s.owner, get)
	c.refused(t, invalid("roles[0]"), s.owner, setMember(s.org, s.user.UserID, id))
	given := done[*signetv1.GetGroupResponse](t, c, s.owner, &signetv1.GetGroupRequest{GroupId: group}).GetGroup()
	if len(given.GetRoles()) != 0 || given.GetName() == "" {
		t.Errorf("the group still gives %v", given)
	}

	// Setup Organization takes the fixed roles only
	wide := c.w.newRole(t, access.Installation, "user.read")
	for who, names := range map[*Actor]int{c.w.root: 1, s.holder(t, "IAM_ORG_MANAGER"): 0, s.owner: 0} {
		same(t, "names of roles of the installation", len(done[*signetv1.LookUpNamesResponse](t, c, who,
			&signetv1.LookUpNamesRequest{Ids: []string{wide}}).GetNames()), names)
	}
	setUp := setup(c.w.secret("first"))
	setUp.Roles = []string{wide}
	c.refused(t, invalid("roles[0]"), c.w.root, setUp)
	c.carryOut(t, c.w.root, &signetv1.SetInstallationMemberRequest{UserId: s.user.UserID, Roles: []string{wide}})
	c.user(t, s.user, s.owner.UserID)
	c.carryOut(t, c.w.root, &signetv1.RemoveInstallationRoleRequest{RoleId: wide})
	c.refused(t, permissionDenied, s.user, read)
}

// rolesOnEveryNode: what a custom role gets or loses on one node counts on all of them with the next request.
func rolesOnEveryNode(t *testing.T, w *World) {
	nodes := []wire{w.rest}
	if w.db.Engine == testdb.Postgres {
		nodes = append(nodes, w.secondNode(t))
	}
	s := w.newScene(t)
	read := &signetv1.GetUserRequest{UserId: s.owner.UserID}
	for i := range 2 * len(nodes) {
		here, there := &Client{w, nodes[i%len(nodes)]}, &Client{w, nodes[(i+1)%len(nodes)]}
		id := w.newRole(t, s.org, "org.read")
		update := func(permissions ...string) *signetv1.UpdateOrganizationRoleRequest {
			return &signetv1.UpdateOrganizationRoleRequest{OrgId: s.org, RoleId: id, Name: unique("Role"),
				Permissions: permissions}
		}
		for _, step := range []struct {
			change proto.Message
			may    bool
		}{
			{setMember(s.org, s.user.UserID, id), false}, {update("user.read"), true}, {update("org.read"), false},
			{update("user.read", "org.read"), true},
			{&signetv1.RemoveOrganizationRoleRequest{OrgId: s.org, RoleId: id}, false},
		} {
			here.carryOut(t, s.owner, step.change)
			for _, c := range []*Client{there, here} {
				if step.may {
					c.user(t, s.user, s.owner.UserID)
				} else {
					c.refused(t, permissionDenied, s.user, read)
				}
			}
		}
	}
}
