package api_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
)

func setRoles(id string, roles ...string) *signetv1.SetGroupRolesRequest {
	return &signetv1.SetGroupRolesRequest{GroupId: id, Roles: roles}
}

func addToGroup(id, user string) *signetv1.AddGroupMemberRequest {
	return &signetv1.AddGroupMemberRequest{GroupId: id, UserId: user}
}

func removeFromGroup(id, user string) *signetv1.RemoveGroupMemberRequest {
	return &signetv1.RemoveGroupMemberRequest{GroupId: id, UserId: user}
}

var (
	noGroupMember   = refused(codes.NotFound, "GROUP_MEMBER_NOT_FOUND")
	groupNameTaken  = refused(codes.AlreadyExists, "GROUP_NAME_TAKEN")
	ownOrganization = refused(codes.FailedPrecondition, "OWN_ORGANIZATION")
)

// groupStory: from its creation to its removal, and what its members hold meanwhile.
func groupStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.elsewhere(t)
	req := addGroup()
	made := done[*signetv1.AddGroupResponse](t, c, s.owner, req, header("idempotency-key", "g1"))
	again := done[*signetv1.AddGroupResponse](t, c, s.owner, req, header("idempotency-key", "g1"))
	sameMessage(t, "created again", again, made)
	c.refused(t, groupNameTaken, s.owner, req)
	id := made.GetGroupId()
	get := func() *signetv1.Group {
		t.Helper()
		return done[*signetv1.GetGroupResponse](t, c, s.owner, &signetv1.GetGroupRequest{GroupId: id}).GetGroup()
	}
	sameMessage(t, "group", get(),
		&signetv1.Group{GroupId: id, Details: made.GetDetails(), Name: req.GetName(),
			Description: req.GetDescription()})
	d := c.carryOut(t, s.owner, &signetv1.UpdateGroupRequest{GroupId: id, Name: "Night shift"}, header("if-match", "1"))
	same(t, "sequence", d.GetSequence(), uint64(2))
	if g := get(); g.GetName() != "Night shift" || g.GetDescription() != "" {
		t.Errorf("changed to %v", g)
	}
	found := done[*signetv1.ListGroupsResponse](t, c, s.owner, &signetv1.ListGroupsRequest{Name: "NIGHT"}).GetGroups()
	if len(found) != 1 || found[0].GetGroupId() != id {
		t.Errorf("found %v", found)
	}
	c.refused(t, noGroup, other.owner, &signetv1.GetGroupRequest{GroupId: id})

	// Roles come with the group, at once.
	read := &signetv1.GetUserRequest{UserId: s.owner.UserID}
	before := c.user(t, s.owner, s.user.UserID).GetDetails().GetSequence()
	d = c.carryOut(t, s.owner, addToGroup(id, s.user.UserID), header("if-match", strconv.FormatUint(before, 10)))
	same(t, "sequence of the user", d.GetSequence(), before+1)
	c.refused(t, permissionDenied, s.user, read)
	c.refused(t, noUser, s.owner, addToGroup(id, other.user.UserID))
	c.carryOut(t, s.owner, setRoles(id, "ORG_USER_MANAGER"))
	c.user(t, s.user, s.owner.UserID)
	m := c.memberships(t, s.user)[0]
	sameMessage(t, "own memberships", m, &signetv1.Membership{
		OrgId:       s.org,
		OrgName:     m.GetOrgName(),
		Roles:       []string{"ORG_USER_MANAGER"},
		GroupIds:    []string{id},
		Sources:     []*signetv1.RoleSource{{Role: "ORG_USER_MANAGER", GroupIds: []string{id}}},
		Permissions: slices.Sorted(slices.Values(permissionsOf[userManager])),
	})
	mine := done[*signetv1.ListMyGroupsResponse](t, c, s.user, &signetv1.ListMyGroupsRequest{}).GetGroups()
	if len(mine) != 1 || mine[0].GetName() != "Night shift" ||
		!slices.Equal(mine[0].GetRoles(), []string{"ORG_USER_MANAGER"}) {
		t.Errorf("own groups: %v", mine)
	}
	listed := done[*signetv1.ListGroupMembersResponse](t, c, s.owner,
		&signetv1.ListGroupMembersRequest{GroupId: id}).GetMembers()
	if len(listed) != 1 || listed[0].GetUserId() != s.user.UserID || listed[0].GetGuest() {
		t.Errorf("members: %v", listed)
	}
	shown := c.members(t, s.owner, s.org)
	at := slices.IndexFunc(shown, func(m *signetv1.Member) bool { return m.GetUserId() == s.user.UserID })
	if at < 0 || !slices.Equal(shown[at].GetRoles(), []string{"ORG_USER_MANAGER"}) ||
		len(shown[at].GetDirectRoles()) != 0 {
		t.Errorf("shown as %v", shown)
	}
	c.refused(t, noMember, s.owner, removeMember(s.org, s.user.UserID)) // nothing was given directly

	// And go with it.
	c.carryOut(t, s.owner, removeFromGroup(id, s.user.UserID))
	c.refused(t, permissionDenied, s.user, read)
	c.refused(t, noGroupMember, s.owner, removeFromGroup(id, s.user.UserID))
	c.carryOut(t, s.owner, addToGroup(id, s.user.UserID))
	c.user(t, s.user, s.owner.UserID)
	c.carryOut(t, s.owner, &signetv1.RemoveGroupRequest{GroupId: id})
	c.refused(t, permissionDenied, s.user, read)
	c.refused(t, noGroup, s.owner, addToGroup(id, s.user.UserID))
	same(t, "groups left", len(done[*signetv1.ListUserGroupsResponse](t, c, s.owner,
		&signetv1.ListUserGroupsRequest{UserId: s.user.UserID}).GetGroups()), 0)
}

// groupPowerCases: nobody becomes more by a group than somebody has who may give it.
func groupPowerCases(t *testing.T, w *World) []Case {
	s := w.newScene(t)
	manager, settings := s.holder(t, userManager), s.holder(t, settingsManager)
	rest := &Client{w, w.rest}
	owners := s.newGroup(t)
	rest.carryOut(t, s.owner, setRoles(owners, orgOwner))
	throughGroup := w.addUser(t, person{Org: s.org, Domain: s.domain})
	rest.carryOut(t, s.owner, addToGroup(owners, throughGroup.UserID))
	theirs := w.elsewhere(t)
	cases := []Case{
		{Name: "a user manager adds nobody to a group of owners", As: manager, Req: addToGroup(owners, s.user.UserID),
			Want: permissionDenied},
		{Name: "nor itself", As: manager, Req: addToGroup(owners, manager.UserID), Want: permissionDenied},
		{Name: "nor removes anybody", As: manager, Req: removeFromGroup(owners, throughGroup.UserID),
			Want: permissionDenied},
		{Name: "nor removes the group", As: manager, Req: &signetv1.RemoveGroupRequest{GroupId: owners},
			Want: permissionDenied},
		{Name: "nor gives a group roles", As: manager, Req: setRoles(s.group(), userManager), Want: permissionDenied},
		{Name: "a settings manager gives a group no roles", As: settings, Req: setRoles(s.group(), settingsManager),
			Want: permissionDenied},
		{Name: "nor adds anybody", As: settings, Req: addToGroup(s.group(), s.user.UserID), Want: permissionDenied},
		{Name: "a group of another organization", As: s.owner, Req: addToGroup(theirs.group(), s.user.UserID),
			Want: noGroup},
		{Name: "roles of a group of another organization", As: s.owner, Req: setRoles(theirs.group(), orgOwner),
			Want: noGroup},
		{Name: "members of a group of another organization", As: s.owner,
			Req: &signetv1.ListGroupMembersRequest{GroupId: theirs.group()}, Want: noGroup},
		{Name: "groups of a user of another organization", As: s.owner,
			Req: &signetv1.ListUserGroupsRequest{UserId: theirs.user.UserID}, Want: noUser},
		{Name: "no roles of the installation", As: w.root, Req: setRoles(s.group(), iamOwner),
			Header: header(orgID, s.org), Want: invalid("roles[0]")},
	}
	// An owner through a group is protected from a user manager as any other.
	for _, op := range operations {
		if op.protects() && !op.aboutServices() {
			as := *s
			as.user = throughGroup
			cases = append(cases,
				Case{Name: "protected/" + op.name() + unlessListed, As: manager, Req: as.sample(op),
					Header: op.header(), Want: targetHoldsMore, Sparse: true})
		}
	}
	return cases
}

// guestStory: somebody of another organization who is in it, at first without a role.
func guestStory(t *testing.T, c *Client) {
	s, home := c.w.newScene(t), c.w.newScene(t)
	guest := home.user
	c.refused(t, noUser, s.owner, setMember(s.org, guest.UserID)) // whoever does not see the user
	session := c.giveAndAccept(t, c.w.root, s.org, guest)
	c.refused(t, invalid("roles"), s.owner, setMember(s.org, s.user.UserID))

	members := c.members(t, s.owner, s.org)
	at := slices.IndexFunc(members, func(m *signetv1.Member) bool { return m.GetUserId() == guest.UserID })
	if at < 0 || !members[at].GetGuest() || len(members[at].GetRoles()) != 0 {
		t.Errorf("shown as %v", members)
	}
	mine := c.memberships(t, guest)
	if len(mine) != 1 || mine[0].GetOrgId() != s.org || !mine[0].GetGuest() || len(mine[0].GetRoles()) != 0 ||
		mine[0].GetOrgName() != c.org(t, s.owner, s.org).GetName() {
		t.Errorf("own memberships: %v", mine)
	}
	c.guestMayNothing(t, s, guest)

	// In a group the guest holds what it gives.
	id := s.newGroup(t)
	c.carryOut(t, s.owner, setRoles(id, orgViewer))
	c.carryOut(t, s.owner, addToGroup(id, guest.UserID))
	c.guestMayNothing(t, s, guest) // not before the guest accepts it
	c.carryOut(t, session, &signetv1.AcceptMyRolesRequest{OrgId: s.org, Roles: []string{orgViewer}})
	c.user(t, guest, s.user.UserID, header(orgID, s.org))
	c.refused(t, sessionRequired, guest, &signetv1.LeaveOrganizationRequest{OrgId: s.org})
	c.refused(t, ownOrganization, session, &signetv1.LeaveOrganizationRequest{OrgId: home.org})
	c.refused(t, noMember, session, &signetv1.LeaveOrganizationRequest{OrgId: unknownOrg})
	c.refused(t, sequenceMismatch, session, &signetv1.LeaveOrganizationRequest{OrgId: s.org}, stale)
	c.carryOut(t, session, &signetv1.LeaveOrganizationRequest{OrgId: s.org})
	c.guestMayNothing(t, s, guest)
	same(t, "own memberships", len(c.memberships(t, guest)), 0)
	same(t, "own groups", len(done[*signetv1.ListMyGroupsResponse](t, c, guest,
		&signetv1.ListMyGroupsRequest{}).GetGroups()), 0)
	c.refused(t, noMember, s.owner, removeMember(s.org, guest.UserID))

	// The last owner leaves, too.
	alone := c.w.newScene(t)
	session = c.giveAndAccept(t, c.w.root, alone.org, guest, orgOwner)
	for _, m := range c.members(t, alone.owner, alone.org) {
		if m.GetUserId() != guest.UserID {
			c.carryOut(t, c.w.root, removeMember(alone.org, m.GetUserId()))
		}
	}
	c.carryOut(t, session, &signetv1.LeaveOrganizationRequest{OrgId: alone.org})
}

// guestMayNothing sends every operation that takes a permission in an organization.
func (c *Client) guestMayNothing(t *testing.T, s *scene, guest *Actor) {
	t.Helper()
	for _, op := range operations {
		scope := op.rule.GetScope()
		if op.rule.GetPermission() == "" || scope == signetv1.Scope_SCOPE_SELF ||
			scope == signetv1.Scope_SCOPE_REQUEST {
			continue
		}
		c.refused(t, permissionDenied, guest, s.sample(op), header(orgID, s.org))
	}
}

// guestPolicyStory: how a guest signs in is decided at home; the other organization says whether that is enough.
func guestPolicyStory(t *testing.T, c *Client) {
	s, home := c.w.newScene(t), c.w.newScene(t)
	guest := c.w.addUser(t, person{Org: home.org, Domain: home.domain,
		Elsewhere: map[string][]access.Role{s.org: {access.OrgOwner}}})
	session, old := c.w.signedIn(t, guest), c.w.oldSession(t, guest)
	read := &signetv1.GetUserRequest{UserId: s.user.UserID}
	there := header(orgID, s.org)
	inside := c.w.oldSession(t, s.owner)
	policies := func(p *signetv1.Policy) {
		t.Helper()
		c.carryOut(t, s.owner, setPolicy(s.org, p))
	}
	c.user(t, old, s.user.UserID, there)
	policies(&signetv1.Policy{GuestProofSeconds: 60})
	c.user(t, session, s.user.UserID, there)
	c.refused(t, notRecent, old, read, there)
	c.refused(t, notRecent, old, &signetv1.GetOrganizationRequest{OrgId: s.org})
	c.refused(t, notRecent, old, with(general(s.idp), "name", "Mine")) // found by its identifier alone
	c.me(t, old)                                                       // at home nothing has changed
	c.user(t, guest, s.user.UserID, there)                             // nobody signs in for a personal access token
	c.user(t, inside, s.user.UserID)                                   // it is for guests
	c.user(t, c.w.oldSession(t, home.holder(t, iamOwner)), s.user.UserID, there)
	done[*signetv1.ReauthenticateResponse](t, c, old, &signetv1.ReauthenticateRequest{Password: guest.Password})
	c.user(t, old, s.user.UserID, there)
	sameMessage(t, "what counts",
		done[*signetv1.GetOrganizationPolicyResponse](t, c, s.owner,
			&signetv1.GetOrganizationPolicyRequest{OrgId: s.org}).GetPolicy(), &signetv1.Policy{GuestProofSeconds: 60})

	policies(&signetv1.Policy{SecondFactorRequired: true})
	c.refused(t, secondFactorRequired, session, read, there)
	c.refused(t, secondFactorRequired, session, general(s.idp))
	c.refused(t, secondFactorRequired, c.w.appToken(t, home, guest, false, 0), read, there)
	c.user(t, c.w.appToken(t, home, guest, true, time.Hour), s.user.UserID, there)
	c.me(t, session)
	c.user(t, guest, s.user.UserID, there)
	c.withApp(t, session) // proves it in this session
	c.user(t, session, s.user.UserID, there)
	policies(&signetv1.Policy{})

	c.refused(t, invalid("policy.guestProofSeconds"), c.w.root,
		setInstallationPolicy(&signetv1.Policy{GuestProofSeconds: 60}))
	c.refused(t, invalid("policy.guestProofSeconds"), s.owner,
		setPolicy(s.org, &signetv1.Policy{GuestProofSeconds: 59}))
}

// appToken gives an application a token of somebody, which comes from a sign-in that has shown something so long ago.
func (w *World) appToken(t *testing.T, home *scene, a *Actor, factor bool, age time.Duration) *Actor {
	t.Helper()
	text, hash := secret.NewToken(secret.Access)
	w.hide(text)
	w.command(t, event.Command{
		Read: []event.Ref{user.Kind.Ref(a.UserID), app.Kind.Ref(home.app)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, a.UserID)
			if err != nil {
				return err
			}
			client, err := app.Kind.Get(tx, home.app)
			if err != nil {
				return err
			}
			tx.PutToken(event.Token{
				ID:      event.NewID("oat"),
				Hash:    hash,
				Kind:    string(secret.Access),
				UserID:  u.ID,
				Epoch:   u.Data.TokenEpoch,
				Client:  home.app,
				Created: tx.Now(),
				Expires: tx.Now() + time.Hour.Microseconds(),
				Data: session.Given{
					Scopes:      []string{"signet.read"},
					Audience:    []string{w.server.URL()},
					ClientEpoch: client.Data.Epoch,
					Proof: session.Proof{Methods: []session.Method{session.ByPassword}, SecondFactor: factor,
						At: tx.Now() - age.Microseconds()},
				}.Text(),
			})
			return nil
		},
	})
	return &Actor{UserID: a.UserID, OrgID: a.OrgID, Token: text}
}

// groupsOnEveryNode: what a user holds by a group follows at once on every node.
func groupsOnEveryNode(t *testing.T, w *World) {
	nodes := []wire{w.rest}
	if w.db.Engine == testdb.Postgres {
		nodes = append(nodes, w.secondNode(t))
	}
	s := w.newScene(t)
	id := s.newGroup(t)
	read := &signetv1.GetUserRequest{UserId: s.owner.UserID}
	for range 3 {
		for i := range nodes {
			here, there := &Client{w, nodes[i]}, &Client{w, nodes[(i+1)%len(nodes)]}
			steps := []struct {
				change proto.Message
				may    bool
			}{
				{addToGroup(id, s.user.UserID), false}, {setRoles(id, "ORG_USER_MANAGER"), true},
				{removeFromGroup(id, s.user.UserID), false},
				{addToGroup(id, s.user.UserID), true}, {setRoles(id), false},
				{removeFromGroup(id, s.user.UserID), false},
			}
			for _, step := range steps {
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
	if u, err := user.Kind.Read(t.Context(), w.server.Store(), s.user.UserID); err != nil || u.Data.Groups != nil ||
		u.Data.Given != nil {
		t.Errorf("left behind: %+v, %v", u.Data, err)
	}
}
