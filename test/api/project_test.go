package api_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// furnishProjects says how a scene comes to what has to do with projects.
func (w *World) furnishProjects(t *testing.T, s *scene) {
	s.another = func() string { return w.bareOrg(t) }
	s.project = sync.OnceValue(func() string { return (&Client{w, w.rest}).newProject(t, s.owner, "sample") })
	s.grant = sync.OnceValue(func() string {
		return done[*signetv1.AddProjectGrantResponse](t, &Client{w, w.rest}, s.owner,
			&signetv1.AddProjectGrantRequest{ProjectId: s.project(), GrantedOrgId: w.bareOrg(t)}).GetGrantId()
	})
	s.granted = sync.OnceValue(func() string { return w.grantTo(t, w.bareOrg(t), s.org) })
}

// bareOrg is an organization without anybody in it. It costs no hash.
func (w *World) bareOrg(t *testing.T) string {
	t.Helper()
	id := org.Kind.NewID()
	w.command(t, event.Command{Create: []event.Ref{org.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		_, err := org.Kind.Create(tx, id, id, org.Added{Name: "Bare", NameKey: "bare"})
		return err
	}})
	return id
}

// grantTo makes a project of one organization and a grant of it to another one.
func (w *World) grantTo(t *testing.T, from, to string) string {
	t.Helper()
	id, grant := project.Kind.NewID(), project.GrantKind.NewID()
	w.command(t, event.Command{
		Create: []event.Ref{project.Kind.Ref(id), project.GrantKind.Ref(grant)},
		Claims: []event.Claim{project.GrantClaim(id, to)},
		Decide: func(tx *event.Tx) error {
			if _, err := project.Kind.Create(tx, id, from, project.Added{Name: "Offered", NameKey: "offered"},
				project.RoleSet{Key: "sample"}); err != nil {
				return err
			}
			_, err := project.GrantKind.Create(tx, grant, from,
				project.GrantAdded{Project: id, To: to, Roles: []user.AppRole{{Key: "sample", Epoch: 1}}})
			return err
		},
	})
	return grant
}

// newGroup makes a group with these members.
func (w *World) newGroup(t *testing.T, orgID string, members ...*Actor) string {
	t.Helper()
	id, name := group.Kind.NewID(), unique("group")
	w.command(t, event.Command{
		Create: []event.Ref{group.Kind.Ref(id)},
		Claims: []event.Claim{group.NameClaim(orgID, name)},
		Decide: func(tx *event.Tx) error {
			_, err := group.Kind.Create(tx, id, orgID, group.Added{Name: name, NameKey: name})
			return err
		},
	})
	for _, m := range members {
		w.changeUser(t, m.UserID, user.GroupJoined{Org: orgID, Group: id})
	}
	return id
}

// projects makes lists about projects have more than one entry.
func (l *library) projects(t *testing.T) {
	c := &Client{l.w, l.w.rest}
	l.project2 = c.newProject(t, l.owner)
	l.grant()
	done[*signetv1.AddProjectGrantResponse](t, c, l.owner,
		&signetv1.AddProjectGrantRequest{ProjectId: l.project(), GrantedOrgId: l.another()})
	l.granted()
	l.w.grantTo(t, l.w.bareOrg(t), l.org)
	for _, u := range []*Actor{l.owner, l.user} {
		c.give(t, l.owner, u, l.project(), "sample")
	}
}

// newProject makes a project with roles.
func (c *Client) newProject(t *testing.T, as *Actor, roles ...string) string {
	t.Helper()
	id := done[*signetv1.AddProjectResponse](t, c, as, &signetv1.AddProjectRequest{Name: "Shop"}).GetProjectId()
	for _, key := range roles {
		c.declare(t, as, id, key)
	}
	return id
}

func (c *Client) declare(t *testing.T, as *Actor, id, key string) {
	t.Helper()
	done[*signetv1.SetProjectRoleResponse](t, c, as,
		&signetv1.SetProjectRoleRequest{ProjectId: id, Key: key, Name: strings.ToUpper(key)})
}

func (c *Client) give(t *testing.T, as, to *Actor, id string, keys ...string) {
	t.Helper()
	done[*signetv1.SetUserAppRolesResponse](t, c, as, give(to, id, keys...))
}

func give(to *Actor, id string, keys ...string) *signetv1.SetUserAppRolesRequest {
	return &signetv1.SetUserAppRolesRequest{UserId: to.UserID, ProjectId: id, RoleKeys: keys}
}

func giveGroup(to, id string, keys ...string) *signetv1.SetGroupAppRolesRequest {
	return &signetv1.SetGroupAppRolesRequest{GroupId: to, ProjectId: id, RoleKeys: keys}
}

// mine lists what somebody has, as "organization project key" with the origins behind it.
func (c *Client) mine(t *testing.T, as *Actor) []string {
	t.Helper()
	return flat(done[*signetv1.ListMyAppRolesResponse](t, c, as, &signetv1.ListMyAppRolesRequest{}).GetAppRoles())
}

func flat(all []*signetv1.AppRoles) (lines []string) {
	for _, given := range all {
		for _, r := range given.GetRoles() {
			line := given.GetOrgId() + " " + given.GetProjectId() + " " + r.GetKey()
			if r.GetDirect() {
				line += " direct"
			}
			lines = append(lines, strings.Join(append([]string{line}, r.GetGroupIds()...), " "))
		}
	}
	return lines
}

// vendor and customer are two organizations with a project between them.
type deal struct {
	vendor, customer *scene
	project, grant   string
}

// newDeal has the customer accept a grant of these roles, of a project with admin, reader and writer.
func (c *Client) newDeal(t *testing.T, keys ...string) *deal {
	t.Helper()
	d := &deal{vendor: c.w.newScene(t), customer: c.w.newScene(t)}
	d.project = c.newProject(t, d.vendor.owner, "admin", "reader", "writer")
	d.grant = c.offer(t, d, keys...)
	c.accept(t, d)
	return d
}

func (c *Client) offer(t *testing.T, d *deal, keys ...string) string {
	t.Helper()
	return done[*signetv1.AddProjectGrantResponse](t, c, d.vendor.owner,
		&signetv1.AddProjectGrantRequest{ProjectId: d.project, GrantedOrgId: d.customer.org,
			RoleKeys: keys}).GetGrantId()
}

func (c *Client) accept(t *testing.T, d *deal) {
	t.Helper()
	done[*signetv1.AcceptGrantedProjectResponse](t, c, d.customer.owner,
		&signetv1.AcceptGrantedProjectRequest{GrantId: d.grant})
}

func (d *deal) withdraw() *signetv1.WithdrawProjectGrantRequest {
	return &signetv1.WithdrawProjectGrantRequest{ProjectId: d.project, GrantId: d.grant}
}

func (d *deal) narrow(keys ...string) *signetv1.SetProjectGrantRolesRequest {
	return &signetv1.SetProjectGrantRolesRequest{ProjectId: d.project, GrantId: d.grant, RoleKeys: keys}
}

// projectStory: a project with its roles, from its beginning to its end.
func projectStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	id := c.newProject(t, s.owner, "admin", "reader")
	read := func() *signetv1.Project {
		return done[*signetv1.GetProjectResponse](t, c, s.owner,
			&signetv1.GetProjectRequest{ProjectId: id}).GetProject()
	}
	p := read()
	same(t, "owner", p.GetDetails().GetResourceOwner(), s.org)
	if p.GetName() != "Shop" || len(p.GetRoles()) != 2 || p.GetRoles()[0].GetKey() != "admin" ||
		p.GetRoles()[0].GetName() != "ADMIN" {
		t.Errorf("read back: %v", p)
	}
	done[*signetv1.RenameProjectResponse](t, c, s.owner, &signetv1.RenameProjectRequest{ProjectId: id, Name: "Ünique"})
	done[*signetv1.SetProjectRoleResponse](t, c, s.owner,
		&signetv1.SetProjectRoleRequest{ProjectId: id, Key: "admin", Name: "Boss", Description: "all"})
	if p = read(); p.GetName() != "Ünique" || p.GetRoles()[0].GetName() != "Boss" ||
		p.GetRoles()[0].GetDescription() != "all" || len(p.GetRoles()) != 2 {
		t.Errorf("changed: %v", p)
	}
	// The same again changes nothing.
	done[*signetv1.SetProjectRoleResponse](t, c, s.owner,
		&signetv1.SetProjectRoleRequest{ProjectId: id, Key: "admin", Name: "Boss", Description: "all"})
	same(t, "sequence", read().GetDetails().GetSequence(), p.GetDetails().GetSequence())
	found := done[*signetv1.ListProjectsResponse](t, c, s.owner,
		&signetv1.ListProjectsRequest{Name: "ÜNI"}).GetProjects()
	if len(found) != 1 || found[0].GetProjectId() != id {
		t.Errorf("found by name: %v", found)
	}
	for _, key := range []string{"..", "a b", "a/b", "é", strings.Repeat("x", 101)} {
		want := invalid("key")
		if key == ".." && c.wire.name() == c.w.rest.name() {
			continue // no address has it
		}
		c.refused(t, want, s.owner, &signetv1.SetProjectRoleRequest{ProjectId: id, Key: key})
	}
	for i := range project.MaxRoles - 2 {
		change(t, c.w, project.Kind, id, project.RoleSet{Key: "r" + strings.Repeat("x", i)})
	}
	c.refused(t, refused(codes.FailedPrecondition, "PROJECT_HAS_TOO_MANY_ROLES"), s.owner,
		&signetv1.SetProjectRoleRequest{ProjectId: id, Key: "more"})
	c.declare(t, s.owner, id, "reader") // it has this one
	done[*signetv1.RemoveProjectRoleResponse](t, c, s.owner,
		&signetv1.RemoveProjectRoleRequest{ProjectId: id, Key: "rx"})
	c.refused(t, noRole, s.owner, &signetv1.RemoveProjectRoleRequest{ProjectId: id, Key: "rx"})
	// Whoever changes settings manages projects and roles, and gives them to nobody.
	settings := s.holder(t, settingsManager)
	own := c.newProject(t, settings, "admin")
	c.refused(t, permissionDenied, settings, give(s.user, own, "admin"))
	c.refused(t, permissionDenied, settings,
		&signetv1.AddProjectGrantRequest{ProjectId: own, GrantedOrgId: c.w.there.org})
	c.give(t, s.owner, s.user, id, "admin")
	// Who may not read users is told whom it is about by identifiers only.
	users := done[*signetv1.ListProjectUsersResponse](t, c, settings,
		&signetv1.ListProjectUsersRequest{ProjectId: id}).GetUsers()
	if len(users) != 1 || users[0].GetUserId() != s.user.UserID || users[0].GetUserName() != "" ||
		users[0].GetDisplayName() != "" {
		t.Errorf("somebody who may not read users sees %v", users)
	}
	done[*signetv1.RemoveProjectResponse](t, c, s.owner, &signetv1.RemoveProjectRequest{ProjectId: id})
	c.refused(t, noProject, s.owner, &signetv1.GetProjectRequest{ProjectId: id})
	c.refused(t, noProject, s.owner, give(s.user, id, "admin"))
	if left := c.mine(t, s.user); left != nil {
		t.Errorf("roles of a removed project: %q", left)
	}
}

// grantStory: a vendor and two customers. Security list 5: neither side learns more of the other than the contract of
// the two.
func grantStory(t *testing.T, c *Client) {
	d := c.newDeal(t, "reader", "writer")
	second := c.w.newScene(t)
	offered := &deal{vendor: d.vendor, customer: second, project: d.project}
	offered.grant = c.offer(t, offered, "admin")
	done[*signetv1.SetApplicationRoleSettingsResponse](t, c, d.vendor.owner,
		&signetv1.SetApplicationRoleSettingsRequest{AppId: d.vendor.app, ProjectId: d.project})
	list := func(as *Actor) []*signetv1.GrantedProject {
		return done[*signetv1.ListGrantedProjectsResponse](t, c, as,
			&signetv1.ListGrantedProjectsRequest{}).GetProjects()
	}
	// Each customer sees its own.
	own, others := list(d.customer.owner), list(second.owner)
	if len(own) != 1 || own[0].GetGrantId() != d.grant || own[0].GetState() != signetv1.ProjectGrant_STATE_ACTIVE ||
		own[0].GetProjectName() != "Shop" || own[0].GetOwnerName() != "Sample" ||
		len(own[0].GetRoles()) != 2 || own[0].GetRoles()[0].GetName() != "READER" ||
		len(own[0].GetApps()) != 1 || own[0].GetApps()[0].GetAppId() != d.vendor.app || own[0].GetApps()[0].GetName() == "" {
		t.Errorf("customer 1 sees %v", own)
	}
	if len(others) != 1 || others[0].GetGrantId() != offered.grant ||
		others[0].GetState() != signetv1.ProjectGrant_STATE_PENDING || others[0].GetApps() != nil {
		t.Errorf("customer 2 sees %v", others)
	}
	c.refused(t, noProject, d.customer.owner, &signetv1.ListProjectGrantsRequest{ProjectId: d.project})
	c.refused(t, noProject, d.customer.owner, &signetv1.GetProjectRequest{ProjectId: d.project})
	if c.wire.name() == c.w.rest.name() {
		many := c.w.newScene(t)
		for range 51 {
			one := &deal{vendor: d.vendor, customer: many, project: c.newProject(t, d.vendor.owner)}
			one.grant = c.offer(t, one)
			c.accept(t, one)
		}
		page := done[*signetv1.ListGrantedProjectsResponse](t, c, many.owner,
			&signetv1.ListGrantedProjectsRequest{PageSize: 500})
		if len(page.GetProjects()) != 50 || page.GetNextPageToken() == "" {
			t.Errorf("%d granted projects on a page of 500", len(page.GetProjects()))
		}
	}
	for _, as := range []*Actor{d.customer.owner, d.vendor.owner} { // nobody accepts or declines for somebody else
		c.refused(t, noGrant, as, &signetv1.AcceptGrantedProjectRequest{GrantId: offered.grant})
		c.refused(t, noGrant, as, &signetv1.DeclineGrantedProjectRequest{GrantId: offered.grant})
	}
	c.refused(t, noGrant, second.owner, offered.withdraw())
	c.refused(t, permissionDenied, second.holder(t, settingsManager),
		&signetv1.AcceptGrantedProjectRequest{GrantId: offered.grant})
	// Before it is accepted, nothing can be given there.
	c.refused(t, noProject, second.owner, give(second.user, d.project, "admin"))

	// A customer's owner hands out what was granted, to the own people, and no more.
	c.give(t, d.customer.owner, d.customer.user, d.project, "reader")
	for _, key := range []string{"admin", "unheard-of"} {
		c.refused(t, noRole, d.customer.owner, give(d.customer.user, d.project, key))
		c.refused(t, noRole, d.customer.owner, giveGroup(d.customer.group(), d.project, key))
	}
	c.refused(t, noUser, d.customer.owner, give(d.vendor.user, d.project, "reader"))
	c.refused(t, noGroup, d.customer.owner, giveGroup(d.vendor.group(), d.project, "reader"))
	same(t, "what the customer's user has", strings.Join(c.mine(t, d.customer.user), ","),
		d.customer.org+" "+d.project+" reader direct")
	members := c.w.newGroup(t, d.customer.org, d.customer.user)
	done[*signetv1.SetGroupAppRolesResponse](t, c, d.customer.owner, giveGroup(members, d.project, "writer"))

	// The vendor sees that it was accepted, and neither users nor groups of the customer: in no list, and in no event.
	grants := done[*signetv1.ListProjectGrantsResponse](t, c, d.vendor.owner,
		&signetv1.ListProjectGrantsRequest{ProjectId: d.project}).GetGrants()
	if len(grants) != 2 || grants[0].GetState() != signetv1.ProjectGrant_STATE_ACTIVE ||
		grants[0].GetGrantedOrgId() != d.customer.org || grants[1].GetState() != signetv1.ProjectGrant_STATE_PENDING {
		t.Errorf("the vendor sees %v", grants)
	}
	if users := done[*signetv1.ListProjectUsersResponse](t, c, d.vendor.owner,
		&signetv1.ListProjectUsersRequest{ProjectId: d.project}).GetUsers(); len(users) != 0 {
		t.Errorf("the vendor sees users of the customer: %v", users)
	}
	if groups := done[*signetv1.ListProjectGroupsResponse](t, c, d.vendor.owner,
		&signetv1.ListProjectGroupsRequest{ProjectId: d.project}).GetGroups(); len(groups) != 0 {
		t.Errorf("the vendor sees groups of the customer: %v", groups)
	}
	c.refused(t, noUser, d.vendor.owner, &signetv1.ListUserAppRolesRequest{UserId: d.customer.user.UserID})
	c.refused(t, noGroup, d.vendor.owner, &signetv1.ListGroupAppRolesRequest{GroupId: members})
	done[*signetv1.SetProjectGrantRolesResponse](t, c, d.vendor.owner, d.narrow("reader"))
	users := done[*signetv1.ListProjectUsersResponse](t, c, d.customer.owner,
		&signetv1.ListProjectUsersRequest{ProjectId: d.project}).GetUsers()
	if len(users) != 1 || users[0].GetUserId() != d.customer.user.UserID ||
		!slices.Equal(users[0].GetRoleKeys(), []string{"reader"}) || users[0].GetUserName() == "" {
		t.Errorf("the customer sees %v", users)
	}
	done[*signetv1.DeclineGrantedProjectResponse](t, c, second.owner,
		&signetv1.DeclineGrantedProjectRequest{GrantId: offered.grant})
	done[*signetv1.DeclineGrantedProjectResponse](t, c, d.customer.owner,
		&signetv1.DeclineGrantedProjectRequest{GrantId: d.grant})
	if left := c.mine(t, d.customer.user); left != nil {
		t.Errorf("after it was given back: %q", left)
	}
	for _, side := range []struct{ reads, hidden *scene }{{d.vendor, d.customer}, {d.customer, d.vendor},
		{d.vendor, second}} {
		seen := 0
		for _, e := range c.eventsOf(t, side.reads.owner) {
			seen++
			text := e.String()
			for name, id := range map[string]string{"owner": side.hidden.owner.UserID, "user": side.hidden.user.UserID,
				"group": members} {
				if strings.Contains(text, id) && !(name == "group" && side.reads == d.customer) {
					t.Errorf("an event tells the %s of the other organization: %s", name, text)
				}
			}
		}
		if seen < 3 {
			t.Errorf("only %d events", seen)
		}
	}

	// Nobody learns which organizations there are, but for those who see all of them.
	add := func(to string) proto.Message {
		return &signetv1.AddProjectGrantRequest{ProjectId: d.project, GrantedOrgId: to}
	}
	for _, to := range []string{unknownOrg, "org_no_such", d.customer.org} {
		first := done[*signetv1.AddProjectGrantResponse](t, c, d.vendor.owner, add(to))
		same(t, "sequence", first.GetDetails().GetSequence(), 1)
		c.refused(t, refused(codes.AlreadyExists, "PROJECT_GRANT_EXISTS"), d.vendor.owner, add(to))
	}
	c.refused(t, noOrg, c.w.root, add("org_no_such_either"), header(orgID, d.vendor.org))
	c.refused(t, invalid("grantedOrgId"), d.vendor.owner, add(d.vendor.org))
	c.refused(t, invalid("grantedOrgId"), d.vendor.owner, add(""))
	c.refused(t, noRole, d.vendor.owner, with(add(second.org), "roleKeys", []string{"unheard-of"}))
}

// eventsOf lists the events of projects, grants and accesses that somebody sees.
func (c *Client) eventsOf(t *testing.T, as *Actor) (all []*signetv1.Event) {
	t.Helper()
	for token, more := "", true; more; more = token != "" {
		answer := done[*signetv1.ListEventsResponse](t, c, as,
			&signetv1.ListEventsRequest{Types: []string{"project.*", "project_grant.*", "project_access.*"},
				PageToken: token})
		all, token = append(all, answer.GetEvents()...), answer.GetNextPageToken()
	}
	return all
}

// appRoleStory: roles given to users, guests and groups.
func appRoleStory(t *testing.T, c *Client) {
	s, away := c.w.newScene(t), c.w.elsewhere(t)
	id := c.newProject(t, s.owner, "admin", "reader", "writer")
	guest := c.w.addUser(t, person{Org: away.org, Elsewhere: map[string][]access.Role{s.org: {access.OrgOwnerViewer}}})
	c.give(t, s.owner, s.user, id, "reader", "admin", "reader")
	c.give(t, s.owner, guest, id, "reader")
	c.refused(t, noUser, s.owner, give(away.user, id, "reader"))
	members := c.w.newGroup(t, s.org, s.user, guest)
	done[*signetv1.SetGroupAppRolesResponse](t, c, s.owner, giveGroup(members, id, "writer", "reader"))
	at := s.org + " " + id + " "
	want := []string{at + "admin direct", at + "reader direct " + members, at + "writer " + members}
	if got := c.mine(t, s.user); !slices.Equal(got, want) {
		t.Errorf("the user has %q, not %q", got, want)
	}
	listed := flat(done[*signetv1.ListUserAppRolesResponse](t, c, s.owner,
		&signetv1.ListUserAppRolesRequest{UserId: s.user.UserID}).GetAppRoles())
	if !slices.Equal(listed, want) {
		t.Errorf("the administrator sees %q", listed)
	}
	// What somebody has here is nothing to those who administer them elsewhere.
	if listed := done[*signetv1.ListUserAppRolesResponse](t, c, away.owner,
		&signetv1.ListUserAppRolesRequest{UserId: guest.UserID}).GetAppRoles(); listed != nil {
		t.Errorf("the guest's own organization sees %v", listed)
	}
	groups := done[*signetv1.ListProjectGroupsResponse](t, c, s.owner,
		&signetv1.ListProjectGroupsRequest{ProjectId: id}).GetGroups()
	if len(groups) != 1 || groups[0].GetGroupId() != members || groups[0].GetName() == "" ||
		!slices.Equal(groups[0].GetRoleKeys(), []string{"reader", "writer"}) {
		t.Errorf("groups: %v", groups)
	}
	given := flat(done[*signetv1.ListGroupAppRolesResponse](t, c, s.owner,
		&signetv1.ListGroupAppRolesRequest{GroupId: members}).GetAppRoles())
	if !slices.Equal(given, []string{at + "reader " + members, at + "writer " + members}) {
		t.Errorf("of the group: %q", given)
	}
	c.refused(t, invalid("roleKeys[1]"), s.owner, give(s.user, id, "reader", "a b"))
	// A group that is gone gives nothing, and is in no list, though users and the project still know it.
	change(t, c.w, group.Kind, members, group.WasRemoved{})
	if got := c.mine(t, s.user); !slices.Equal(got, []string{at + "admin direct", at + "reader direct"}) {
		t.Errorf("after the group was removed: %q", got)
	}
	if groups := done[*signetv1.ListProjectGroupsResponse](t, c, s.owner,
		&signetv1.ListProjectGroupsRequest{ProjectId: id}).GetGroups(); len(groups) != 0 {
		t.Errorf("groups that are gone: %v", groups)
	}
	// A guest who is gone has nothing there any more, in whatever way the membership ended.
	c.w.changeUser(t, guest.UserID, user.MembershipSet{Scope: s.org})
	if got := c.mine(t, guest); got != nil {
		t.Errorf("a guest who left has %q", got)
	}
	if users := done[*signetv1.ListProjectUsersResponse](t, c, s.owner,
		&signetv1.ListProjectUsersRequest{ProjectId: id}).GetUsers(); len(users) != 1 {
		t.Errorf("users: %v", users)
	}
	c.give(t, s.owner, s.user, id)
	if got := c.mine(t, s.user); got != nil {
		t.Errorf("after all were taken: %q", got)
	}
}

// revivalStory is security list 13: what has ended does not come back with its name.
func revivalStory(t *testing.T, c *Client) {
	for name, again := range map[string]func(t *testing.T, d *deal){
		"withdrawn and granted again": func(t *testing.T, d *deal) {
			done[*signetv1.WithdrawProjectGrantResponse](t, c, d.vendor.owner, d.withdraw())
			d.grant = c.offer(t, d, "reader")
			c.accept(t, d)
		},
		"given back and granted again": func(t *testing.T, d *deal) {
			done[*signetv1.DeclineGrantedProjectResponse](t, c, d.customer.owner,
				&signetv1.DeclineGrantedProjectRequest{GrantId: d.grant})
			d.grant = c.offer(t, d, "reader")
			c.accept(t, d)
		},
		"narrowed and widened": func(t *testing.T, d *deal) {
			done[*signetv1.SetProjectGrantRolesResponse](t, c, d.vendor.owner, d.narrow("writer"))
			done[*signetv1.SetProjectGrantRolesResponse](t, c, d.vendor.owner, d.narrow("reader"))
		},
		"removed and declared again": func(t *testing.T, d *deal) {
			done[*signetv1.RemoveProjectRoleResponse](t, c, d.vendor.owner,
				&signetv1.RemoveProjectRoleRequest{ProjectId: d.project, Key: "reader"})
			c.declare(t, d.vendor.owner, d.project, "reader")
			// Not even the grant has it before it is granted again.
			c.refused(t, noRole, d.customer.owner, give(d.customer.user, d.project, "reader"))
			done[*signetv1.SetProjectGrantRolesResponse](t, c, d.vendor.owner, d.narrow("reader"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.newDeal(t, "reader")
			c.give(t, d.customer.owner, d.customer.user, d.project, "reader")
			members := c.w.newGroup(t, d.customer.org, d.customer.user)
			done[*signetv1.SetGroupAppRolesResponse](t, c, d.customer.owner, giveGroup(members, d.project, "reader"))
			before := []string{d.customer.org + " " + d.project + " reader direct " + members}
			if got := c.mine(t, d.customer.user); !slices.Equal(got, before) {
				t.Fatalf("at first: %q", got)
			}
			again(t, d)
			if got := c.mine(t, d.customer.user); got != nil {
				t.Errorf("revived: %q", got)
			}
			if users := done[*signetv1.ListProjectUsersResponse](t, c, d.customer.owner,
				&signetv1.ListProjectUsersRequest{ProjectId: d.project}).GetUsers(); len(users) != 0 {
				t.Errorf("revived in the list of users: %v", users)
			}
			if groups := done[*signetv1.ListProjectGroupsResponse](t, c, d.customer.owner,
				&signetv1.ListProjectGroupsRequest{ProjectId: d.project}).GetGroups(); len(groups) != 0 {
				t.Errorf("revived in the list of groups: %v", groups)
			}
			// It can be given again.
			c.give(t, d.customer.owner, d.customer.user, d.project, "reader")
			if got := c.mine(t, d.customer.user); len(got) != 1 {
				t.Errorf("given again: %q", got)
			}
		})
	}
}

// roleSettingsStory: which project an application belongs to.
func roleSettingsStory(t *testing.T, c *Client) {
	s, away := c.w.newScene(t), c.w.elsewhere(t)
	set := func(change func(*signetv1.SetApplicationRoleSettingsRequest)) *signetv1.SetApplicationRoleSettingsRequest {
		r := &signetv1.SetApplicationRoleSettingsRequest{AppId: s.app, ProjectId: s.project(), RolesInTokens: true,
			RoleRequired: true, MetadataKeys: []string{"b", "a.B_c-1", "b"}}
		if change != nil {
			change(r)
		}
		return r
	}
	if got := c.app(t, s.owner, s.app).GetRoleSettings(); got != nil {
		t.Errorf("at first: %v", got)
	}
	done[*signetv1.SetApplicationRoleSettingsResponse](t, c, s.owner, set(nil))
	want := &signetv1.ApplicationRoleSettings{ProjectId: s.project(), RolesInTokens: true, RoleRequired: true,
		MetadataKeys: []string{"a.B_c-1", "b"}}
	sameMessage(t, "read back", c.app(t, s.owner, s.app).GetRoleSettings(), want)
	for name, x := range map[string]struct {
		req  *signetv1.SetApplicationRoleSettingsRequest
		want Want
	}{
		"a project of another organization": {set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.ProjectId = away.project()
		}), noProject},
		"no such project": {set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.ProjectId = "prj_none"
		}), noProject},
		"an application of another one": {set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.AppId = away.app
		}), noApp},
		"roles of no project": {set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.ProjectId = ""
		}), invalid("projectId")},
		"keys that are none": {set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.MetadataKeys = []string{"ok", "a b", ""}
		}), invalid("metadataKeys[1]", "metadataKeys[2]")},
		"too many keys": {set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.MetadataKeys = make([]string, 21)
		}),
			invalid("metadataKeys")},
	} {
		t.Run(name, func(t *testing.T) { c.refused(t, x.want, s.owner, x.req) })
	}
	// Whoever may not read metadata does not have it sent to an application, and changes everything else.
	settings := s.holder(t, settingsManager)
	c.refused(t, permissionDenied, settings,
		set(func(r *signetv1.SetApplicationRoleSettingsRequest) { r.MetadataKeys = []string{"b", "c"} }))
	done[*signetv1.SetApplicationRoleSettingsResponse](t, c, settings,
		set(func(r *signetv1.SetApplicationRoleSettingsRequest) {
			r.GroupsInTokens, r.MetadataKeys = true, []string{"b"}
		}))
	done[*signetv1.RemoveProjectResponse](t, c, s.owner, &signetv1.RemoveProjectRequest{ProjectId: s.project()})
	c.refused(t, noProject, s.owner, set(nil))
	if got := c.app(t, s.owner, s.app).GetRoleSettings(); !got.GetRoleRequired() {
		t.Errorf("the end of the project has opened the application: %v", got)
	}
	done[*signetv1.SetApplicationRoleSettingsResponse](t, c, s.owner,
		&signetv1.SetApplicationRoleSettingsRequest{AppId: s.app})
	if got := c.app(t, s.owner, s.app).GetRoleSettings(); got != nil {
		t.Errorf("in the end: %v", got)
	}
}

// claimMappingsStory: which claims an application declares.
func claimMappingsStory(t *testing.T, c *Client) {
	s, away := c.w.newScene(t), c.w.elsewhere(t)
	groups := &signetv1.ClaimMapping{Source: signetv1.ClaimMapping_SOURCE_GROUP_NAMES, Claim: "groups",
		Targets: []signetv1.ClaimMapping_Target{signetv1.ClaimMapping_TARGET_ID_TOKEN}}
	with := func(change func(*signetv1.ClaimMapping)) *signetv1.SetApplicationClaimMappingsRequest {
		m := proto.CloneOf(groups)
		if change != nil {
			change(m)
		}
		return &signetv1.SetApplicationClaimMappingsRequest{AppId: s.app, Mappings: []*signetv1.ClaimMapping{m}}
	}
	set := func(want int) {
		t.Helper()
		a := done[*signetv1.SetApplicationClaimMappingsResponse](t, c, s.owner, with(nil))
		shown := c.app(t, s.owner, s.app)
		if len(a.GetWarnings()) != want || len(shown.GetClaimMappingWarnings()) != want {
			t.Errorf("it warns %v, and shows %v", a.GetWarnings(), shown.GetClaimMappingWarnings())
		}
		stands := proto.CloneOf(groups)
		stands.Shape = signetv1.ClaimMapping_SHAPE_ARRAY
		if len(shown.GetClaimMappings()) != 1 {
			t.Fatalf("it shows %v", shown.GetClaimMappings())
		}
		sameMessage(t, "read back", shown.GetClaimMappings()[0], stands)
	}
	set(0)
	// Guests may use it from now on.
	done[*signetv1.SetApplicationRoleSettingsResponse](t, c, s.owner,
		&signetv1.SetApplicationRoleSettingsRequest{AppId: s.app, ProjectId: s.project()})
	set(1)
	for name, x := range map[string]struct {
		req  *signetv1.SetApplicationClaimMappingsRequest
		want Want
	}{
		"an application of another one": {&signetv1.SetApplicationClaimMappingsRequest{AppId: away.app}, noApp},
		"a reserved claim": {with(func(m *signetv1.ClaimMapping) { m.Claim = "Sub" }),
			invalid("mappings[0].claim")},
		"no source": {with(func(m *signetv1.ClaimMapping) { m.Source = 0 }), invalid("mappings[0].source")},
		"no target": {with(func(m *signetv1.ClaimMapping) { m.Targets = nil }), invalid("mappings[0].targets")},
		"too many of them": {&signetv1.SetApplicationClaimMappingsRequest{AppId: s.app,
			Mappings: slices.Repeat([]*signetv1.ClaimMapping{groups}, 41)}, invalid("mappings")},
	} {
		t.Run(name, func(t *testing.T) { c.refused(t, x.want, s.owner, x.req) })
	}
	c.refused(t, permissionDenied, s.holder(t, settingsManager), with(func(m *signetv1.ClaimMapping) {
		m.Source, m.MetadataKey = signetv1.ClaimMapping_SOURCE_METADATA, "team"
	}))
	done[*signetv1.SetApplicationClaimMappingsResponse](t, c, s.owner,
		&signetv1.SetApplicationClaimMappingsRequest{AppId: s.app})
	if got := c.app(t, s.owner, s.app).GetClaimMappings(); got != nil {
		t.Errorf("in the end: %v", got)
	}
}

// grantRace has the customer accept while the vendor withdraws: whichever comes first, nothing is left of it.
func grantRace(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	d := &deal{vendor: w.newScene(t), customer: w.newScene(t)}
	d.project = c.newProject(t, d.vendor.owner, "reader")
	for range 4 {
		d.grant = c.offer(t, d, "reader")
		var wait sync.WaitGroup
		var mu sync.Mutex
		count := map[string]int{}
		for i := range 64 {
			wait.Go(func() {
				as, req := d.customer.owner, proto.Message(&signetv1.AcceptGrantedProjectRequest{GrantId: d.grant})
				if i%2 == 1 {
					as, req = d.vendor.owner, d.withdraw()
				}
				a := w.send(t, w.wires[i%len(w.wires)], as, req, nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case a.status == nil:
					count[operationFor(req).name()]++
				case a.reason() != "PROJECT_GRANT_NOT_FOUND" && a.reason() != "PROJECT_GRANT_WRONG_STATE" &&
					a.reason() != "CONTENTION":
					t.Errorf("%s: %s", operationFor(req).name(), a.summary())
				}
			})
		}
		wait.Wait()
		if count["WithdrawProjectGrant"] != 1 || count["AcceptGrantedProject"] > 1 {
			t.Errorf("they were carried out: %v", count)
		}
		c.refused(t, noProject, d.customer.owner, give(d.customer.user, d.project, "reader"))
		holder, err := w.server.Store().Holder(t.Context(), project.AccessClaim(d.project, d.customer.org))
		if err != nil || holder != "" {
			t.Errorf("the access %q is left (%v)", holder, err)
		}
	}
}

// grantsBounded: strangers do not fill the list of an organization, and what refuses them does not tell whether there
// is one.
func grantsBounded(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	full := refused(codes.FailedPrecondition, "TOO_MANY_PENDING_GRANTS")
	for _, to := range []string{w.newScene(t).org, unknownOrg + "x"} {
		s := w.scene(t)
		var ids []string
		offer := func() *signetv1.AddProjectGrantRequest {
			ids = append(ids, c.newProject(t, s.owner))
			return &signetv1.AddProjectGrantRequest{ProjectId: ids[len(ids)-1], GrantedOrgId: to}
		}
		for range project.MaxWaitingFrom {
			done[*signetv1.AddProjectGrantResponse](t, c, s.owner, offer())
		}
		c.refused(t, full, s.owner, offer())
		// The grants of a project that is gone wait for nobody.
		done[*signetv1.RemoveProjectResponse](t, c, s.owner, &signetv1.RemoveProjectRequest{ProjectId: ids[0]})
		done[*signetv1.AddProjectGrantResponse](t, c, s.owner, offer())
		c.refused(t, full, s.owner, offer())
		// One organization does not keep another one out; all together have a bound, too.
		other := w.elsewhere(t)
		offer1 := &signetv1.AddProjectGrantRequest{ProjectId: other.project(), GrantedOrgId: to}
		for range project.MaxWaiting - project.MaxWaitingFrom {
			w.grantTo(t, w.bareOrg(t), to)
		}
		c.refused(t, full, other.owner, offer1)
		granted := w.grantTo(t, w.bareOrg(t), to)
		change(t, w, project.GrantKind, granted, project.GrantRemoved{})
	}
}
