package api_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
)

// Home answers for its people: every operation on a user, by everybody who could want it, on users who hold something
// elsewhere. What must come back follows from the class of the operation, and from nothing the server uses for that. An
// operation that is new gives access until it is listed here.

// takesAway are the operations that only take something away from a user.
var takesAway = map[string]bool{
	"DeactivateUser": true, "LockUser": true, "RemoveUser": true, "EndUserSession": true, "EndUserSessions": true,
	"RevokeUserToken":         true,
	"EndUserRememberedDevice": true, "RemoveUserLink": true, "RemoveServiceKey": true, "RemoveServiceSecret": true,
	"RemoveServiceWorkloadRule": true,
	// what these send goes to a verified address, or is sent to everybody who asks
	"SendPasswordReset": true, "SendEmailVerification": true, "ClearSignInThrottle": true,
	"RequestUserFactorRemoval": true, // others decide
}

// class of an operation on a user.
type class int

const (
	plain class = iota // reads, and what nobody becomes that user by
	taking
	giving
)

func (op *operation) class() class {
	switch p := op.rule.GetPermission(); {
	case p != "user.write" && p != "user.credential.write", givesNoAccess[op.name()]:
		return plain
	case takesAway[op.name()]:
		return taking
	}
	return giving
}

// givesNoAccess are the changes of a user that nobody becomes that user by.
var givesNoAccess = map[string]bool{"UpdateUserProfile": true, "UpdateServiceUser": true}

// unlessListed is in the names of cases that a new operation may fail without a fault of its own.
const unlessListed = ", unless it belongs to givesNoAccess"

// protects tells whether a user who holds more is protected from the operation.
func (op *operation) protects() bool { return op.class() != plain && op.has("userId") }

// gives has an organization give somebody of another one roles there, who has accepted them.
func (s *scene) gives(t *testing.T, to *Actor, roles ...access.Role) {
	t.Helper()
	s.w.changeUser(t, to.UserID, user.RolesAccepted{Scope: s.org, Roles: roles},
		user.MembershipSet{Scope: s.org, Roles: roles, Stays: len(roles) == 0})
}

// homeTargets are the scene with other users in it, by what those hold.
func homeTargets(t *testing.T, home, host *scene) map[string]*scene {
	w := home.w
	targets := map[string]*scene{}
	add := func(name string, prepare func(*Actor, person)) {
		s := *home
		p := person{Org: home.org, Domain: home.domain, Email: unique("target") + "@mail.example"}
		s.user = w.addUser(t, p)
		prepare(s.user, p)
		p.Service = true
		robot := w.addUser(t, p)
		prepare(robot, p)
		s.robot = func() *Actor { return robot }
		targets[name] = &s
	}
	add("a guest without roles", func(a *Actor, _ person) { host.gives(t, a) })
	add("somebody who is invited", func(_ *Actor, p person) {
		if !p.Service {
			done[*signetv1.CreateInvitationResponse](t, &Client{w, w.rest}, host.owner,
				&signetv1.CreateInvitationRequest{OrgId: host.org, Email: p.Email, Roles: []string{orgOwner}})
		}
	})
	add("somebody who is offered roles",
		func(a *Actor, _ person) { (&Client{w, w.rest}).offerRoles(t, w.root, host.org, a.UserID, orgOwner) })
	add("somebody with roles elsewhere", func(a *Actor, _ person) { host.gives(t, a, access.OrgOwner) })
	add("somebody with a role in the installation", func(a *Actor, _ person) {
		w.changeUser(t, a.UserID,
			user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwnerViewer}})
	})
	return targets
}

func homeCases(t *testing.T, w *World) (cases []Case) {
	home, host, far := w.newScene(t), w.newScene(t), w.newScene(t)
	in := func(scope, role string) map[string]string { return map[string]string{scope: role} }
	parties := []*party{
		{Actor: home.owner, name: "home's owner", roles: in(home.org, orgOwner)},
		{Actor: home.holder(t, userManager), name: "home's user manager", roles: in(home.org, userManager)},
		{Actor: host.owner, name: "the host's owner", roles: in(host.org, orgOwner)},
		{Actor: far.holder(t, iamOrgManager), name: iamOrgManager, roles: in(access.Installation, iamOrgManager)},
		{Actor: far.holder(t, iamViewer), name: iamViewer, roles: in(access.Installation, iamViewer)},
		{Actor: far.holder(t, iamOwner), name: iamOwner, roles: in(access.Installation, iamOwner)},
		{Actor: far.holder(t, support), name: support, roles: in(access.Installation, support)},
	}
	targets := homeTargets(t, home, host)
	seen := map[string]bool{}
	for _, op := range operations {
		if op.target() != "userId" || op.rule.GetScope() != signetv1.Scope_SCOPE_CONTEXT {
			continue // about oneself, or an organization's own members
		}
		seen[op.name()] = true
		for _, p := range parties {
			for name, s := range targets {
				fresh := func() proto.Message { return s.sample(op) }
				c := Case{Name: op.name() + "/" + p.name + "/" + name, As: p.Actor, Req: fresh(),
					Header: merge([]Header{op.header(), header(orgID, home.org)}), Want: passed(op), Sparse: true}
				isOwner := p.roles[home.org] == orgOwner || p.roles[access.Installation] == iamOwner
				switch class := op.class(); {
				case !p.mayCall(op, home.org):
					c.Want = permissionDenied
				case class != plain && name == "somebody with a role in the installation" &&
					p.roles[access.Installation] != iamOwner,
					class == giving && name == "somebody with roles elsewhere" && !isOwner && p.name != support:
					c.Want = targetHoldsMore
				}
				if op.rule.GetCreates() {
					c.Fresh = fresh
				}
				cases = append(cases, c)
			}
		}
	}
	for name := range takesAway {
		if !seen[name] {
			t.Errorf("there is no operation %s on a user", name)
		}
	}
	return cases
}

// homeStory: whose people they are, what home may, and what the host reads of it.
func homeStory(t *testing.T, c *Client) {
	home, host := c.w.newScene(t), c.w.newScene(t)
	vera := c.w.addUser(t, person{Org: home.org, Domain: home.domain})
	host.gives(t, vera, access.OrgOwner)
	manager := home.holder(t, userManager)

	// Whose people they are.
	members := done[*signetv1.ListOrganizationMembersResponse](t, c, host.owner,
		&signetv1.ListOrganizationMembersRequest{OrgId: host.org}).GetMembers()
	found := false
	for _, m := range members {
		if m.GetUserId() != vera.UserID {
			same(t, "the home of the own", m.GetHome() == nil, true)
			continue
		}
		found = true
		same(t, "home", m.GetHome().GetOrgId(), home.org)
		same(t, "its name", m.GetHome().GetName(), c.org(t, home.owner, home.org).GetName())
		same(t, "its domain", m.GetHome().GetPrimaryDomain(), home.domain)
	}
	same(t, "listed", found, true)

	// What would be refused is told.
	over := func(as *Actor) *signetv1.GetMyAccessResponse {
		return done[*signetv1.GetMyAccessResponse](t, c, as, &signetv1.GetMyAccessRequest{UserId: vera.UserID})
	}
	same(t, "the owner over her", over(home.owner).GetOverUser() && over(home.owner).GetOverUserAtHome(), true)
	same(t, "a manager over her", over(manager).GetOverUser(), false)
	same(t, "a manager over her at home", over(manager).GetOverUserAtHome(), true)

	// A credential that home sets is read in the host's log, without who set it.
	c.carryOut(t, home.owner, &signetv1.SetUserPasswordRequest{UserId: vera.UserID, Password: c.w.secret("vera"),
		NoChangeRequired: true})
	events := done[*signetv1.ListEventsResponse](t, c, host.owner,
		&signetv1.ListEventsRequest{Types: []string{"org.guest_credential_set.v1"}},
		header(orgID, host.org)).GetEvents()
	if len(events) != 1 || events[0].GetActor() != home.org ||
		events[0].GetPayload().GetFields()["userId"].GetStringValue() != vera.UserID ||
		events[0].GetPayload().GetFields()["event"].GetStringValue() != "user.password_set.v1" {
		t.Errorf("the host reads %v", events)
	}

	// A manager takes away, also from the last owner of another organization, which reads it.
	c.carryOut(t, c.w.root, &signetv1.RemoveUserRequest{UserId: host.owner.UserID}, header(orgID, host.org))
	auditor := c.w.addUser(t, person{Org: host.org, Domain: host.domain, Roles: []access.Role{access.OrgOwnerViewer}})
	for _, u := range done[*signetv1.ListOrganizationMembersResponse](t, c, auditor,
		&signetv1.ListOrganizationMembersRequest{OrgId: host.org}).GetMembers() {
		if u.GetUserId() != vera.UserID && u.GetUserId() != auditor.UserID { // the founder
			c.carryOut(t, c.w.root, &signetv1.RemoveUserRequest{UserId: u.GetUserId()}, header(orgID, host.org))
		}
	}
	c.carryOut(t, manager, &signetv1.LockUserRequest{UserId: vera.UserID})
	events = done[*signetv1.ListEventsResponse](t, c, auditor,
		&signetv1.ListEventsRequest{Types: []string{"org.owner_lost.v1"}}, header(orgID, host.org)).GetEvents()
	if len(events) != 1 || events[0].GetActor() != home.org ||
		events[0].GetPayload().GetFields()["userId"].GetStringValue() != vera.UserID {
		t.Errorf("the host reads %v", events)
	}
	// Reactivating gives access.
	same(t, "a manager unlocks", c.send(t, manager, &signetv1.UnlockUserRequest{UserId: vera.UserID}).reason(),
		"TARGET_HOLDS_MORE")
	c.carryOut(t, home.owner, &signetv1.UnlockUserRequest{UserId: vera.UserID})
	// She leaves, although she is the last owner there.
	c.carryOut(t, c.w.signedIn(t, vera), &signetv1.LeaveOrganizationRequest{OrgId: host.org})
	events = done[*signetv1.ListEventsResponse](t, c, auditor,
		&signetv1.ListEventsRequest{Types: []string{"org.owner_lost.v1"}}, header(orgID, host.org)).GetEvents()
	same(t, "told again", len(events), 2)
	// So it is if the installation takes the role of the last owner; then the host reads who did it.
	host.gives(t, vera, access.OrgOwner)
	left := done[*signetv1.RemoveOrganizationMemberResponse](t, c, c.w.root,
		&signetv1.RemoveOrganizationMemberRequest{OrgId: host.org, UserId: vera.UserID}).GetOrgsWithoutOwner()
	same(t, "without an owner", slices.Equal(left, []string{host.org}), true)
	events = done[*signetv1.ListEventsResponse](t, c, auditor,
		&signetv1.ListEventsRequest{Types: []string{"org.owner_lost.v1"}}, header(orgID, host.org)).GetEvents()
	if len(events) != 3 || events[0].GetActor() != c.w.root.UserID ||
		events[0].GetPayload().GetFields()["userId"].GetStringValue() != vera.UserID {
		t.Errorf("the host reads %v", events)
	}
}
