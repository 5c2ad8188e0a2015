package api_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	notLockedBySupport = refused(codes.FailedPrecondition, "NOT_LOCKED_BY_SUPPORT")
	emailNotVerified   = refused(codes.FailedPrecondition, "EMAIL_NOT_VERIFIED")
	clearedTooOften    = refused(codes.ResourceExhausted, "THROTTLE_CLEARED_TOO_OFTEN")
)

// opens are the operations that narrow permissions open. Whoever adds to it has looked at what the operation does for
// who holds no more than this.
var opens = map[string][]string{
	"user.support": {"ClearSignInThrottle", "CountObjects", "EndUserSession", "EndUserSessions", "GetInvitation", "GetUser",
		"ListEvents", "ListInvitations", "ListUserFactors", "ListUserLinks", "ListUserRememberedDevices",
		"ListUserSessions", "ListUsers", "LockUser", "RequestUserFactorRemoval", "ResendInvitation", "SearchUsers",
		"SendEmailVerification", "SendPasswordReset", "UnlockUser"},
	"sign_in.read": {"ListEvents"},
	// each of these opens the number of what it lets list
	"app.read": {"CountObjects"}, "group.read": {"CountObjects"}, "idp.read": {"CountObjects"},
	"invitation.read": {"CountObjects"},
	"audit.read":      {"GetOrganizationPolicy", "ListEvents", "ListOrganizationMembers", "StreamEvents"},
}

// narrowOperations compares the list with the definition, and tries everything else as somebody who holds no more.
func narrowOperations(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	s := w.newScene(t)
	found := map[string][]string{}
	for _, op := range operations {
		for _, permission := range op.rule.GetNarrower() {
			found[permission] = append(found[permission], op.name())
		}
	}
	for permission, names := range found {
		slices.Sort(names)
		if !slices.Equal(names, opens[permission]) {
			t.Errorf("%s opens %q, and the list has %q", permission, names, opens[permission])
		}
	}
	agent, viewer, theirOwner := w.signedIn(t, w.newScene(t).holder(t, support)), s.holder(t, iamViewer), *s
	theirOwner.user = s.owner
	self := *s
	self.user = agent
	for _, op := range operations {
		if op.rule.GetPermission() == "" {
			continue
		}
		if !slices.Contains(opens["audit.read"], op.name()) && op.rule.GetScope() != signetv1.Scope_SCOPE_TARGET {
			c.refused(t, permissionDenied, s.holder(t, auditor), s.sample(op), header(orgID, s.org), op.header())
		}
		if op.rule.GetPermission() == "org.read" {
			continue
		}
		if op.rule.GetScope() == signetv1.Scope_SCOPE_TARGET {
			c.refused(t, permissionDenied, agent, s.sample(op))
			continue
		}
		own := header(orgID, agent.OrgID)
		for _, x := range []*scene{s, &theirOwner, &self} {
			h := merge([]Header{header(orgID, x.org), op.header()})
			if x == &self && !op.has("orgId") && op.rule.GetScope() != signetv1.Scope_SCOPE_SELF {
				h = merge([]Header{own, op.header()})
			}
			if op.rule.GetScope() == signetv1.Scope_SCOPE_SELF {
				h = op.header()
			}
			if !slices.Contains(opens["user.support"], op.name()) {
				c.refused(t, permissionDenied, agent, x.sample(op), h)
			}
		}
		// What is open to support does nothing to people of the installation: not to others, and not to oneself.
		if op.target() != "userId" || op.verb == "GET" || !slices.Contains(opens["user.support"], op.name()) {
			continue
		}
		c.refused(t, targetHoldsMore, agent, self.sample(op), own, op.header())
		c.refused(t, targetHoldsMore, agent, with(s.sample(op), "userId", viewer.UserID), header(orgID, s.org), op.header())
	}
	for _, a := range []*Actor{viewer, agent} { // nor are their sign-ins read
		c.refused(t, targetHoldsMore, agent, &signetv1.ListEventsRequest{UserId: a.UserID}, header(orgID, a.OrgID))
	}
}

// supportStory: support finds a person of another organization and helps.
func supportStory(t *testing.T, c *Client) {
	w := c.w
	s, home := w.newScene(t), w.newScene(t)
	agent := home.holder(t, support)
	there := header(orgID, s.org)
	found := done[*signetv1.SearchUsersResponse](t, c, agent, &signetv1.SearchUsersRequest{
		Query: strings.Split(s.user.LoginName, "@")[0], AllOrganizations: true}).GetResults()
	if len(found) != 1 || found[0].GetUser().GetUserId() != s.user.UserID {
		t.Fatalf("found %v", found)
	}
	// So does one who may read the people at home anyway.
	also := w.addUser(t, person{Org: home.org, Roles: []access.Role{userManager},
		Elsewhere: map[string][]access.Role{access.Installation: {support}}})
	same(t, "found by a manager of users who is support", len(c.search(t, also, &signetv1.SearchUsersRequest{
		Query: strings.Split(s.user.LoginName, "@")[0], AllOrganizations: true})), 1)
	c.refused(t, permissionDenied, home.holder(t, userManager),
		&signetv1.SearchUsersRequest{Query: "somebody", AllOrganizations: true})
	in := c.session(t, s.user)
	same(t, "state", c.user(t, agent, s.user.UserID, there).GetState(), signetv1.User_STATE_ACTIVE)
	sessions := done[*signetv1.ListUserSessionsResponse](t, c, agent,
		&signetv1.ListUserSessionsRequest{UserId: s.user.UserID}, there).GetSessions()
	same(t, "sessions", len(sessions), 1)

	// It reads sign-ins, and nothing else of the log.
	for _, e := range c.listEvents(t, agent, &signetv1.ListEventsRequest{UserId: s.user.UserID}, there) {
		if e.GetObjectType() != "sign_in" {
			t.Errorf("support reads %v", e)
		}
	}
	c.refused(t, permissionDenied, agent, &signetv1.ListEventsRequest{}, there)
	c.refused(t, permissionDenied, agent, &signetv1.ListEventsRequest{ObjectId: s.user.UserID}, there)
	c.refused(t, permissionDenied, agent,
		&signetv1.ListEventsRequest{UserId: s.user.UserID, AllOrganizations: true}, there)

	// What it may do is told.
	told := done[*signetv1.GetMyAccessResponse](t, c, agent, &signetv1.GetMyAccessRequest{UserId: s.owner.UserID})
	same(t, "over an owner", told.GetOverUser(), false)
	same(t, "over an owner at home", told.GetOverUserAtHome(), true)
	same(t, "over somebody of the installation", done[*signetv1.GetMyAccessResponse](t, c, agent,
		&signetv1.GetMyAccessRequest{UserId: w.root.UserID}).GetOverUserAtHome(), false)

	// That somebody was opened is in the organization's log: once an hour, however much was read.
	c.user(t, agent, s.owner.UserID, there)
	opened := &signetv1.ListEventsRequest{Actor: agent.UserID, Order: signetv1.EventOrder_EVENT_ORDER_OLDEST_FIRST}
	testkit.Await(t, "both openings are recorded", func() bool { return len(c.listEvents(t, s.owner, opened)) == 2 })
	openings := c.listEvents(t, s.owner, opened)
	sameTypes(t, "what support has opened", openings, "sign_in.opened_by_support.v1", "sign_in.opened_by_support.v1")
	if openings[0].GetOrgId() != s.org || openings[0].GetRequestId() == "" ||
		!strings.HasSuffix(openings[1].GetObjectId(), strings.TrimPrefix(s.owner.UserID, "usr")) {
		t.Errorf("%v", openings)
	}
	c.user(t, s.holder(t, userManager), s.user.UserID) // nobody else's reads are recorded
	c.user(t, w.root, s.user.UserID, there)

	c.carryOut(t, agent, &signetv1.EndUserSessionsRequest{UserId: s.user.UserID}, there)
	c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})

	// Support unlocks whom support has locked, until an administrator locks them.
	lock, unlock := &signetv1.LockUserRequest{UserId: s.user.UserID}, &signetv1.UnlockUserRequest{UserId: s.user.UserID}
	c.carryOut(t, agent, lock, there)
	c.refused(t, signInFailed, nil, signIn(s.user.LoginName, w.password))
	c.refused(t, wrongUserState, agent, lock, there)
	c.carryOut(t, home.holder(t, support), unlock, there)
	c.carryOut(t, agent, lock, there)
	c.carryOut(t, s.owner, lock)
	c.refused(t, notLockedBySupport, agent, unlock, there)
	c.carryOut(t, s.owner, unlock)
	c.carryOut(t, s.owner, lock)
	c.refused(t, notLockedBySupport, agent, unlock, there)
	c.carryOut(t, s.owner, unlock)

	// The last owner is not locked by support, another one is.
	other := s.holder(t, orgOwner)
	for _, o := range c.members(t, s.owner, s.org) {
		if slices.Contains(o.GetRoles(), orgOwner) && o.GetUserId() != other.UserID && o.GetUserId() != s.owner.UserID {
			c.carryOut(t, s.owner, removeMember(s.org, o.GetUserId()))
		}
	}
	c.carryOut(t, agent, &signetv1.LockUserRequest{UserId: other.UserID}, there)
	c.refused(t, refused(codes.FailedPrecondition, "LAST_ORGANIZATION_OWNER"), agent,
		&signetv1.LockUserRequest{UserId: s.owner.UserID}, there)

	// A throttle is cleared three times a day.
	clear := &signetv1.ClearSignInThrottleRequest{UserId: s.user.UserID}
	for range 3 {
		untilThrottled(t, w, c.wire, nil, signIn(s.user.LoginName, "wrong"), signInFailed)
		c.carryOut(t, agent, clear, there)
	}
	c.session(t, s.user)
	c.refused(t, clearedTooOften, agent, clear, there)
	c.refused(t, clearedTooOften, s.owner, clear)

	// All of it is in the organization's own log.
	acts := c.listEvents(t, s.owner, &signetv1.ListEventsRequest{Actor: agent.UserID, Types: []string{"user.*"},
		Order: signetv1.EventOrder_EVENT_ORDER_OLDEST_FIRST})
	sameTypes(t, "acts of support", acts, "user.sessions_ended.v1", "user.locked.v1", "user.locked.v1",
		"user.locked.v1", "user.throttle_cleared.v1", "user.throttle_cleared.v1", "user.throttle_cleared.v1")
	same(t, "openings", len(c.listEvents(t, s.owner,
		&signetv1.ListEventsRequest{Types: []string{"sign_in.opened_by_support.v1"}})), 2)

	// An application does what its scopes allow of it.
	bound := func(scopes ...string) *Actor {
		a := *agent
		a.Token = w.accessToken(t, agent, w.server.URL(), scopes...)
		return &a
	}
	c.user(t, bound("signet.read"), s.user.UserID, there)
	c.refused(t, scopeRequired, bound("signet.read"), lock, there)
	c.carryOut(t, bound("signet.write"), lock, there)
	c.carryOut(t, bound("signet.write"), unlock, there)
	c.refused(t, scopeRequired, bound("signet.write"), &signetv1.EndUserSessionsRequest{UserId: s.user.UserID}, there)

	// Who manages users somewhere does so there with no more power than before.
	c.refused(t, targetHoldsMore, w.addUser(t, person{Org: s.org, Roles: []access.Role{userManager},
		Elsewhere: map[string][]access.Role{access.Installation: {support}}}),
		&signetv1.DeactivateUserRequest{UserId: other.UserID})
}

// supportSends: what support has sent goes to verified addresses, and to those that were invited.
func supportSends(t *testing.T, w *World) {
	w, sink := withMail(t, w)
	s, agents := w.scene(t), w.elsewhere(t)
	for range 4 {
		sink.Next(t)
	}
	c := &Client{w, w.rest}
	agent := w.addUser(t, person{Org: agents.org, EmailVerified: true,
		Elsewhere: map[string][]access.Role{access.Installation: {support}}})
	sink.Next(t)
	there := header(orgID, s.org)
	ann := w.addUser(t, person{Org: s.org, Domain: s.domain, EmailVerified: true})
	address := sink.Next(t).To
	reset := func(id string) proto.Message { return &signetv1.SendPasswordResetRequest{UserId: id} }
	verify := func(id string) proto.Message { return &signetv1.SendEmailVerificationRequest{UserId: id} }

	c.must(t, agent, reset(ann.UserID), there)
	m := sink.Next(t)
	same(t, "the reset goes to", m.To, address)
	id, code := w.codeIn(t, m, "/reset")
	same(t, "for", id, ann.UserID)
	c.refused(t, mailThrottled, agent, reset(ann.UserID), there)
	c.must(t, nil, &signetv1.ResetPasswordRequest{UserId: id, Code: code, NewPassword: w.secret("reset")})
	sink.Next(t) // about it

	c.must(t, agent, verify(ann.UserID), there)
	m = sink.Next(t)
	same(t, "the code goes to", m.To, address)
	_, code = w.codeIn(t, m, "/verify")
	c.refused(t, mailThrottled, agent, verify(ann.UserID), there)
	c.must(t, w.signedIn(t, ann), &signetv1.VerifyMyEmailRequest{Code: code})

	for _, req := range []proto.Message{reset(s.user.UserID), verify(s.user.UserID)} {
		c.refused(t, emailNotVerified, agent, req, there)
	}
	for _, req := range []proto.Message{reset(s.robot().UserID), verify(s.robot().UserID)} {
		c.refused(t, notHuman, agent, req, there)
	}
	c.carryOut(t, s.owner, &signetv1.DeactivateUserRequest{UserId: ann.UserID})
	c.refused(t, refused(codes.FailedPrecondition, "RESET_NOT_POSSIBLE"), agent, reset(ann.UserID), there)

	// An invitation is mailed once more, and its inviter still answers for it.
	email := unique("invited") + "@mail.example"
	made := done[*signetv1.CreateInvitationResponse](t, c, s.owner,
		&signetv1.CreateInvitationRequest{OrgId: s.org, Email: email, Roles: []string{orgOwner}})
	first := tokenIn(t, linkIn.FindString(sink.Next(t).Text))
	w.hide(first)
	resend := &signetv1.ResendInvitationRequest{OrgId: s.org, InvitationId: made.GetInvitationId()}
	c.refused(t, invalid("lifetimeSeconds"), agent, with(resend, "lifetimeSeconds", int64(7200)))
	c.refused(t, mailThrottled, agent, resend)
	same(t, "inviter", c.invitation(t, agent, s.org, made.GetInvitationId()).GetInviterId(), s.owner.UserID)
	sink.None(t)
	w.noneIn(t)
}

// auditorStory: an auditor reads what has happened, and nothing personal.
func auditorStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	as := s.holder(t, auditor)
	c.session(t, s.user)
	c.refused(t, signInFailed, nil, signIn(s.user.LoginName, "wrong"))
	done[*signetv1.UpdateMyProfileResponse](t, c, s.user, profile())
	all := &signetv1.ListEventsRequest{Order: signetv1.EventOrder_EVENT_ORDER_OLDEST_FIRST}
	seen, full := c.listEvents(t, as, all), c.listEvents(t, s.owner, all)
	same(t, "events", len(seen), len(full))
	personal := 0
	for i := range min(len(seen), len(full)) {
		if full[i].GetPersonal() != nil {
			personal++
		}
		full[i].Personal = nil
		sameMessage(t, "an event without what is personal", seen[i], full[i])
	}
	if personal < 5 {
		t.Errorf("only %d events have something personal", personal)
	}
	radio := c.tune(t, as, &signetv1.StreamEventsRequest{From: full[0].GetTime()})
	for i := 0; i < len(seen); {
		m, ended := radio.next()
		if ended != nil {
			t.Fatal(ended.summary())
		}
		if m.GetEvent() == nil {
			continue // a sign of life
		}
		sameMessage(t, "the same as a stream", m.GetEvent(), seen[i])
		i++
	}
	radio.stop()
	c.refused(t, permissionDenied, as, with(all, "allOrganizations", true))

	// Who manages users as well reads as much: their sign-ins whole, and the rest as an auditor.
	both := s.holder(t, nothing)
	c.carryOut(t, s.owner, setMember(s.org, both.UserID, auditor, userManager))
	ofOne := &signetv1.ListEventsRequest{UserId: s.user.UserID}
	for _, e := range c.listEvents(t, both, all) {
		if e.GetPersonal() != nil {
			t.Errorf("an auditor who manages users sees %v", e)
		}
	}
	if signIns := c.listEvents(t, both, ofOne); signIns[0].GetPersonal() == nil {
		t.Errorf("a manager of users who is an auditor sees %v", signIns[0])
	}
	for _, e := range c.listEvents(t, both, &signetv1.ListEventsRequest{UserId: s.owner.UserID}) {
		if e.GetPersonal() != nil {
			t.Errorf("an auditor who manages users sees of an owner %v", e)
		}
	}

	for _, m := range c.members(t, as, s.org) {
		if m.GetUserName() != "" || m.GetDisplayName() == "" || len(m.GetRoles()) == 0 {
			t.Errorf("an auditor sees %v", m)
		}
	}
	done[*signetv1.GetOrganizationPolicyResponse](t, c, as, &signetv1.GetOrganizationPolicyRequest{OrgId: s.org})
	same(t, "names of others", len(done[*signetv1.LookUpNamesResponse](t, c, as,
		&signetv1.LookUpNamesRequest{Ids: []string{s.user.UserID, s.app}}).GetNames()), 0)
}

// managedSignInsStory: who manages users reads their sign-ins, and nobody else's.
func managedSignInsStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.newScene(t)
	manager := s.holder(t, userManager)
	c.session(t, s.user)
	read := c.listEvents(t, manager, &signetv1.ListEventsRequest{UserId: s.user.UserID})
	sameTypes(t, "sign-ins of a user", read, "sign_in.succeeded.v1", "sign_in.token_issued.v1")
	if read[0].GetPersonal() == nil {
		t.Error("where the user signed in is not told")
	}
	c.refused(t, permissionDenied, manager, &signetv1.ListEventsRequest{ObjectId: read[0].GetObjectId()})
	sameTypes(t, "of one type", c.listEvents(t, manager,
		&signetv1.ListEventsRequest{UserId: s.user.UserID, Types: []string{"user.*"}}))
	for name, x := range map[string]struct {
		req  *signetv1.ListEventsRequest
		h    Header
		want Want
	}{
		"the whole log":           {&signetv1.ListEventsRequest{}, nil, permissionDenied},
		"an object":               {&signetv1.ListEventsRequest{ObjectId: s.user.UserID}, nil, permissionDenied},
		"everything":              {&signetv1.ListEventsRequest{UserId: s.user.UserID, AllOrganizations: true}, nil, permissionDenied},
		"an owner":                {&signetv1.ListEventsRequest{UserId: s.owner.UserID}, nil, targetHoldsMore},
		"somebody elsewhere":      {&signetv1.ListEventsRequest{UserId: other.user.UserID}, nil, noUser},
		"another organization":    {&signetv1.ListEventsRequest{UserId: other.user.UserID}, header(orgID, other.org), permissionDenied},
		"somebody unknown":        {&signetv1.ListEventsRequest{UserId: "usr_x"}, nil, noUser},
		"the companion of a user": {&signetv1.ListEventsRequest{UserId: read[0].GetObjectId()}, nil, noUser},
	} {
		t.Run(name, func(t *testing.T) { c.refused(t, x.want, manager, x.req, x.h) })
	}
	c.refused(t, permissionDenied, manager, &signetv1.StreamEventsRequest{})
	c.refused(t, permissionDenied, manager, &signetv1.CountSignInsRequest{})
}

// lostFactorStory: support asks for the removal of a lost factor, and somebody who may remove it does. The only owner of
// an organization is helped by the installation.
func lostFactorStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	agent, there := c.w.newScene(t).holder(t, support), header(orgID, s.org)
	other := s.holder(t, orgOwner)
	for _, lost := range []struct {
		user      *Actor
		mayNot    *Actor
		removes   *Actor
		alsoOwner bool
	}{
		{s.user, agent, s.holder(t, userManager), false},
		{other, s.holder(t, userManager), s.owner, true},
		{s.owner, s.holder(t, userManager), c.w.root, true},
	} {
		id := lost.user.UserID
		factor := "fac_" + strings.TrimPrefix(id, "usr_")
		c.w.changeUser(t, id, user.TOTPAdded{FactorID: factor, Created: 1, Personal: user.FactorFacts{Name: "Phone"}})
		ask := &signetv1.RequestUserFactorRemovalRequest{UserId: id, FactorId: factor}
		remove := &signetv1.RemoveUserFactorRequest{UserId: id, FactorId: factor}
		c.refused(t, permissionDenied, agent, remove, there)
		c.refused(t, refused(codes.NotFound, "FACTOR_NOT_FOUND"), agent, with(ask, "factorId", "fac_x"), there)
		c.carryOut(t, agent, ask, there)
		c.refused(t, refused(codes.FailedPrecondition, "FACTOR_REMOVAL_REQUESTED"), agent, ask, there)
		listed := done[*signetv1.ListUserFactorsResponse](t, c, c.w.root,
			&signetv1.ListUserFactorsRequest{UserId: id}, there).GetFactors()
		if len(listed) != 1 || listed[0].GetRemovalRequestedBy() != agent.UserID ||
			listed[0].GetRemovalRequestDate() == nil {
			t.Fatalf("shown is %v", listed) // and it still counts
		}
		c.refused(t, permissionDenied, agent, remove, there)
		if lost.alsoOwner {
			c.refused(t, targetHoldsMore, lost.mayNot, remove)
		}
		c.carryOut(t, lost.removes, remove, there)
		sameTypes(t, "requests in the log", c.listEvents(t, c.w.root, &signetv1.ListEventsRequest{UserId: id,
			Types: []string{"user.factor_removal_requested.v1", "user.factor_removed.v1"}}, there),
			"user.factor_removed.v1", "user.factor_removal_requested.v1")
	}
}
