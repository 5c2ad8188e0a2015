package api_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/test/testdb"
)

func (c *Client) members(t *testing.T, as *Actor, org string) []*signetv1.Member {
	t.Helper()
	return done[*signetv1.ListOrganizationMembersResponse](t, c, as,
		&signetv1.ListOrganizationMembersRequest{OrgId: org}).GetMembers()
}

func (c *Client) memberships(t *testing.T, as *Actor) []*signetv1.Membership {
	t.Helper()
	return done[*signetv1.ListMyMembershipsResponse](t, c, as, &signetv1.ListMyMembershipsRequest{}).GetMemberships()
}

func setMember(org, id string, roles ...string) *signetv1.SetOrganizationMemberRequest {
	return &signetv1.SetOrganizationMemberRequest{OrgId: org, UserId: id, Roles: roles}
}

func removeMember(org, id string) *signetv1.RemoveOrganizationMemberRequest {
	return &signetv1.RemoveOrganizationMemberRequest{OrgId: org, UserId: id}
}

// offerRoles gives somebody of another organization roles, and says which offer that made.
func (c *Client) offerRoles(t *testing.T, as *Actor, org, id string, roles ...string) string {
	t.Helper()
	offer := done[*signetv1.SetOrganizationMemberResponse](t, c, as, setMember(org, id, roles...)).GetOfferId()
	if offer == "" {
		t.Fatal("nobody was asked")
	}
	return offer
}

// own signs somebody in who has chosen the own password.
func (c *Client) own(t *testing.T, as *Actor) *Actor {
	t.Helper()
	c.w.changeUser(t, as.UserID, user.PasswordChanged{})
	return c.w.signedIn(t, as)
}

// giveAndAccept gives somebody of another organization roles, who accepts them. It answers the session of that.
func (c *Client) giveAndAccept(t *testing.T, as *Actor, org string, to *Actor, roles ...string) *Actor {
	t.Helper()
	session := c.own(t, to)
	c.carryOut(t, session, &signetv1.AcceptMyOfferRequest{OfferId: c.offerRoles(t, as, org, to.UserID, roles...)})
	return session
}

func (c *Client) myOffers(t *testing.T, as *Actor) []*signetv1.MyOffer {
	t.Helper()
	return done[*signetv1.ListMyOffersResponse](t, c, as, &signetv1.ListMyOffersRequest{}).GetOffers()
}

// offerStory: roles elsewhere count once they are accepted, and the giver learns nothing before.
func offerStory(t *testing.T, c *Client) {
	s, home := c.w.newScene(t), c.w.newScene(t)
	guest, seer := home.user, c.w.addUser(t,
		person{Org: s.org, Domain: s.domain, Roles: []access.Role{access.OrgOwner},
			Elsewhere: map[string][]access.Role{home.org: {access.OrgOwnerViewer}}})
	offers := func() []*signetv1.Offer {
		t.Helper()
		return done[*signetv1.ListOffersResponse](t, c, s.owner, &signetv1.ListOffersRequest{OrgId: s.org}).GetOffers()
	}
	before := c.user(t, home.owner, guest.UserID).GetDetails().GetSequence()
	c.refused(t, noUser, s.owner, setMember(s.org, guest.UserID, orgOwner)) // whoever does not see the user
	a := done[*signetv1.SetOrganizationMemberResponse](t, c, seer, setMember(s.org, guest.UserID, orgOwner))
	same(t, "owner of the offer", a.GetDetails().GetResourceOwner(), s.org)
	same(t, "sequence of the person", c.user(t, home.owner, guest.UserID).GetDetails().GetSequence(), before)
	same(t, "own memberships", len(c.memberships(t, guest)), 0)
	c.refused(t, permissionDenied, guest, &signetv1.GetOrganizationRequest{OrgId: s.org})

	// Only the person accepts, in a session, with a password of the own.
	given := c.w.signedIn(t, guest)
	mine := c.myOffers(t, given)
	if len(mine) != 1 || mine[0].GetOfferId() != a.GetOfferId() || mine[0].GetOrgId() != s.org ||
		mine[0].GetOrgName() != c.org(t, s.owner, s.org).GetName() || mine[0].GetOrgDomain() == "" ||
		!slices.Equal(mine[0].GetRoles(), []string{orgOwner}) ||
		!slices.Contains(mine[0].GetPermissions(), "member.write") {
		t.Errorf("offered %v", mine)
	}
	accept := &signetv1.AcceptMyOfferRequest{OfferId: a.GetOfferId()}
	c.refused(t, sessionRequired, guest, accept)
	c.refused(t, sessionRequired, guest, &signetv1.ListMyOffersRequest{})
	c.refused(t, noOffer, c.w.signedIn(t, s.user), accept)
	c.refused(t, refused(codes.FailedPrecondition, "PASSWORD_SET_BY_ANOTHER"), given, accept)
	session := c.own(t, guest)
	c.refused(t, sequenceMismatch, session, accept, stale)

	// A declined one looks open to the organization.
	done[*signetv1.DeclineMyOfferResponse](t, c, session, &signetv1.DeclineMyOfferRequest{OfferId: a.GetOfferId()})
	same(t, "offers that are shown", len(c.myOffers(t, session)), 0)
	all := offers()
	if len(all) != 1 || all[0].GetState() != signetv1.Offer_STATE_OPEN ||
		all[0].GetDetails().GetSequence() != a.GetDetails().GetSequence() || all[0].GetUserId() != guest.UserID {
		t.Errorf("the organization sees %v", all)
	}
	c.refused(t, offerNotOpen, session, accept)
	accept.OfferId = c.offerRoles(t, seer, s.org, guest.UserID, userManager)
	same(t, "the one before", offers()[0].GetState(), signetv1.Offer_STATE_REPLACED)
	c.carryOut(t, session, accept)
	same(t, "offers in this state",
		len(done[*signetv1.ListOffersResponse](t, c, s.owner,
			&signetv1.ListOffersRequest{OrgId: s.org, State: signetv1.Offer_STATE_OPEN}).GetOffers()), 0)
	same(t, "accepted", offers()[1].GetState(), signetv1.Offer_STATE_ACCEPTED)
	c.user(t, guest, s.user.UserID, header(orgID, s.org))
	if m := c.memberships(t, guest); len(m) != 1 || !m[0].GetAccepted() || len(m[0].GetWaitingRoles()) != 0 {
		t.Errorf("own memberships %v", m)
	}
	same(t, "home is told of what was accepted", len(c.elsewhere(t, home.owner, guest.UserID)), 0)

	// Less is done at once, and so is what was accepted. More waits, by an offer or a group.
	d := c.carryOut(t, s.owner, setMember(s.org, guest.UserID))
	same(t, "owner of the guest", d.GetResourceOwner(), home.org)
	c.carryOut(t, s.owner, setMember(s.org, guest.UserID, userManager))
	c.user(t, guest, s.user.UserID, header(orgID, s.org))
	id := s.newGroup(t)
	c.carryOut(t, s.owner, addToGroup(id, guest.UserID))
	c.carryOut(t, s.owner, setRoles(id, settingsManager))
	readIDP := &signetv1.GetIdentityProviderRequest{IdpId: s.idp}
	c.refused(t, permissionDenied, guest, readIDP, header(orgID, s.org))
	if m := c.elsewhere(t, home.owner, guest.UserID); len(m) != 1 ||
		!slices.Equal(m[0].GetWaitingRoles(), []string{settingsManager}) {
		t.Errorf("home is told %v", m)
	}
	roles := &signetv1.AcceptMyRolesRequest{OrgId: s.org, Roles: []string{settingsManager}}
	c.refused(t, refused(codes.FailedPrecondition, "OFFERED_ROLES_CHANGED"), session, roles)
	roles.Roles = []string{settingsManager, userManager}
	c.refused(t, sessionRequired, guest, roles)
	c.carryOut(t, session, roles)
	c.idp(t, guest, s.idp, header(orgID, s.org))
	last := c.offerRoles(t, s.owner, s.org, guest.UserID, orgOwner)
	c.carryOut(t, s.owner, &signetv1.WithdrawOfferRequest{OrgId: s.org, OfferId: last})
	c.refused(t, offerNotOpen, s.owner, &signetv1.WithdrawOfferRequest{OrgId: s.org, OfferId: last})
	c.refused(t, offerNotOpen, session, &signetv1.AcceptMyOfferRequest{OfferId: last})

	// Somebody at home accepts for a service user.
	robot := home.robot()
	forRobot := c.offerRoles(t, seer, s.org, robot.UserID, orgViewer)
	listed := done[*signetv1.ListServiceUserOffersResponse](t, c, home.owner,
		&signetv1.ListServiceUserOffersRequest{UserId: robot.UserID}).GetOffers()
	same(t, "offers to the service user", len(listed), 1)
	c.refused(t, noUser, s.owner, &signetv1.AcceptServiceUserOfferRequest{UserId: robot.UserID, OfferId: forRobot})
	c.carryOut(t, home.owner, &signetv1.AcceptServiceUserOfferRequest{UserId: robot.UserID, OfferId: forRobot})
	c.user(t, robot, s.user.UserID, header(orgID, s.org))
	forRobot = c.offerRoles(t, seer, s.org, robot.UserID, orgOwner)
	done[*signetv1.DeclineServiceUserOfferResponse](t, c, home.owner,
		&signetv1.DeclineServiceUserOfferRequest{UserId: robot.UserID, OfferId: forRobot})
	c.refused(t, offerNotOpen, home.owner,
		&signetv1.AcceptServiceUserOfferRequest{UserId: robot.UserID, OfferId: forRobot})

	// People of the default organization are not asked by an owner of the installation.
	mate := c.w.addUser(t, person{Org: c.w.root.OrgID})
	same(t, "offer", done[*signetv1.SetOrganizationMemberResponse](t, c, c.w.root,
		setMember(s.org, mate.UserID, orgViewer)).GetOfferId(), "")
	c.user(t, mate, s.user.UserID, header(orgID, s.org))
}

// elsewhere is what the own organization of a user is told of other organizations.
func (c *Client) elsewhere(t *testing.T, as *Actor, id string) []*signetv1.Membership {
	t.Helper()
	all := done[*signetv1.ListUserMembershipsResponse](t, c, as,
		&signetv1.ListUserMembershipsRequest{UserId: id}).GetMemberships()
	return slices.DeleteFunc(all, func(m *signetv1.Membership) bool { return !m.GetGuest() })
}

// memberStory: roles in an organization count from the moment they are given until they are taken away.
func memberStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.elsewhere(t)
	read := &signetv1.GetUserRequest{UserId: s.owner.UserID}
	c.refused(t, permissionDenied, s.user, read)
	before := c.user(t, s.owner, s.user.UserID).GetDetails()
	d := c.carryOut(t, s.owner,
		setMember(s.org, s.user.UserID, "ORG_USER_MANAGER", "ORG_OWNER_VIEWER", "ORG_USER_MANAGER"))
	same(t, "sequence", d.GetSequence(), before.GetSequence()+1)
	same(t, "owner", d.GetResourceOwner(), s.org)
	c.user(t, s.user, s.owner.UserID)
	own := c.memberships(t, s.user)[0]
	if permissions := own.GetPermissions(); !slices.Contains(permissions, "user.write") ||
		!slices.Contains(permissions, "event.read") || slices.Contains(permissions, "event.write") {
		t.Errorf("own permissions: %q", permissions)
	}
	sameMessage(t, "own memberships", own, &signetv1.Membership{
		OrgId:   s.org,
		OrgName: c.org(t, s.owner, s.org).GetName(),
		Roles:   []string{"ORG_OWNER_VIEWER", "ORG_USER_MANAGER"},
		Sources: []*signetv1.RoleSource{{Role: "ORG_OWNER_VIEWER", Direct: true},
			{Role: "ORG_USER_MANAGER", Direct: true}},
		Permissions: own.GetPermissions(),
	})

	// The list: the founder, the owner and the new member, in the order of their identifiers.
	members := c.members(t, s.owner, s.org)
	same(t, "members", len(members), 3)
	if !slices.IsSortedFunc(members,
		func(a, b *signetv1.Member) int { return strings.Compare(a.GetUserId(), b.GetUserId()) }) {
		t.Error("the members are not in order")
	}
	shown := c.user(t, s.owner, s.user.UserID)
	at := slices.IndexFunc(members, func(m *signetv1.Member) bool { return m.GetUserId() == s.user.UserID })
	sameMessage(t, "member", members[at], &signetv1.Member{
		UserId:      s.user.UserID,
		Details:     shown.GetDetails(),
		UserName:    shown.GetUserName(),
		DisplayName: shown.GetHuman().GetProfile().GetDisplayName(),
		Roles:       []string{"ORG_OWNER_VIEWER", "ORG_USER_MANAGER"},
		DirectRoles: []string{"ORG_OWNER_VIEWER", "ORG_USER_MANAGER"},
	})
	page := &signetv1.ListOrganizationMembersRequest{OrgId: s.org, PageSize: 1}
	var ids []string
	for range 5 {
		a := done[*signetv1.ListOrganizationMembersResponse](t, c, s.owner, page)
		for _, m := range a.GetMembers() {
			ids = append(ids, m.GetUserId())
		}
		if page.PageToken = a.GetNextPageToken(); page.PageToken == "" {
			break
		}
		c.refused(t, invalid("pageToken"), other.owner,
			&signetv1.ListOrganizationMembersRequest{OrgId: other.org, PageToken: page.PageToken})
	}
	same(t, "members on pages", len(ids), 3)

	// Replaced, and taken away.
	c.carryOut(t, s.owner, setMember(s.org, s.user.UserID, "ORG_OWNER_VIEWER"))
	c.refused(t, permissionDenied, s.user, setPassword(s.owner.UserID, c.w.secret("never")))
	c.user(t, s.user, s.owner.UserID)
	now := c.user(t, s.owner, s.user.UserID).GetDetails().GetSequence()
	c.refused(t, sequenceMismatch, s.owner, removeMember(s.org, s.user.UserID), header("if-match", "1"))
	d = c.carryOut(t, s.owner, removeMember(s.org, s.user.UserID), header("if-match", strconv.FormatUint(now, 10)))
	same(t, "sequence", d.GetSequence(), now+1)
	c.refused(t, permissionDenied, s.user, read)
	same(t, "own memberships", len(c.memberships(t, s.user)), 0)
	c.refused(t, noMember, s.owner, removeMember(s.org, s.user.UserID))
	c.refused(t, noMember, s.owner, removeMember(s.org, "usr_x"))

	// Somebody from elsewhere.
	c.refused(t, noUser, s.owner, setMember(s.org, other.user.UserID, "ORG_OWNER"))
	c.refused(t, noUser, s.owner, setMember(s.org, "usr_x", "ORG_OWNER"))
	c.giveAndAccept(t, c.w.root, s.org, other.user, "ORG_SETTINGS_MANAGER", "ORG_USER_MANAGER")
	c.idp(t, other.user, s.idp, header(orgID, s.org))
	c.carryOut(t, s.owner, setMember(s.org, other.user.UserID, "ORG_USER_MANAGER"))
	c.refused(t, permissionDenied, other.user, &signetv1.GetIdentityProviderRequest{IdpId: s.idp}, header(orgID, s.org))
	d = c.carryOut(t, s.owner, removeMember(s.org, other.user.UserID))
	same(t, "owner of the guest", d.GetResourceOwner(), other.org)
	c.refused(t, noUser, s.owner, setMember(s.org, other.user.UserID, "ORG_USER_MANAGER"))
	c.carryOut(t, s.owner, &signetv1.RemoveUserRequest{UserId: s.user.UserID})
	c.refused(t, noUser, s.owner, setMember(s.org, s.user.UserID, "ORG_OWNER"))
}

// grantCases: what may be given, and by whom.
func grantCases(t *testing.T, w *World) []Case {
	s, many := w.scene(t), w.scene(t).user
	manager, viewer := s.holder(t, iamOrgManager), s.holder(t, iamViewer)
	set := func(name string, as *Actor, req proto.Message, want Want) Case {
		return Case{Name: name, As: as, Req: req, Want: want}
	}
	here := func(id string, roles ...string) proto.Message { return setMember(s.org, id, roles...) }
	all := func(id string, roles ...string) proto.Message {
		return &signetv1.SetInstallationMemberRequest{UserId: id, Roles: roles}
	}
	return []Case{
		set("no roles", s.owner, here(s.user.UserID), invalid("roles")),
		set("too many", s.owner, here(s.user.UserID, slices.Repeat([]string{"ORG_OWNER"}, 21)...), invalid("roles")),
		set("as many as may be", s.owner, here(many.UserID, slices.Repeat([]string{"ORG_OWNER_VIEWER"}, 20)...), ok),
		set("unknown ones", s.owner, here(s.user.UserID, "ORG_OWNER", "ORG_EMPEROR", "", "IAM_OWNER", "org_owner"),
			invalid("roles[1]", "roles[2]", "roles[3]", "roles[4]")),
		set("of an organization in the installation", w.root, all(s.user.UserID, "IAM_OWNER_VIEWER", "ORG_OWNER"),
			invalid("roles[1]")),
		set("more than one holds", manager, here(s.user.UserID, "ORG_OWNER"), grantsMore),
		// whoever it is for
		set("more than one holds, to who holds more", manager, here(s.owner.UserID, "ORG_OWNER_VIEWER"), grantsMore),
		set("taken from who holds more", manager, removeMember(s.org, s.owner.UserID), targetHoldsMore),
		set("in the installation by an organization's owner", s.owner, all(s.owner.UserID, "IAM_OWNER"),
			permissionDenied),
		set("in the installation by a manager of organizations", manager, all(manager.UserID, "IAM_OWNER"),
			permissionDenied),
		set("in the installation by who sees everything", viewer, all(viewer.UserID, "IAM_OWNER"), permissionDenied),
		set("in the installation through an organization of that name", manager,
			setMember(access.Installation, manager.UserID, "ORG_OWNER"), noOrg),
		set("taken away there through it", manager, removeMember(access.Installation, manager.UserID), noOrg),
		set("listed there through it", manager,
			&signetv1.ListOrganizationMembersRequest{OrgId: access.Installation}, noOrg),
		set("the installation's members by a manager of organizations", manager,
			&signetv1.ListInstallationMembersRequest{}, permissionDenied),
		set("in the installation to nobody", w.root, all("usr_x", "IAM_OWNER"), noUser),
		set("taken from nobody", w.root, &signetv1.RemoveInstallationMemberRequest{UserId: "usr_x"}, noMember),
		set("taken from who holds none", w.root,
			&signetv1.RemoveInstallationMemberRequest{UserId: s.owner.UserID}, noMember),
	}
}

// installationMemberStory: the same for the whole installation.
func installationMemberStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	list := &signetv1.ListInstallationMembersRequest{PageSize: 500}
	find := func() *signetv1.Member {
		t.Helper()
		for _, m := range done[*signetv1.ListInstallationMembersResponse](t, c, c.w.root, list).GetMembers() {
			if m.GetUserId() == s.owner.UserID {
				return m
			}
		}
		return nil
	}
	c.refused(t, permissionDenied, s.owner, list)
	d := c.carryOut(t, c.w.root,
		&signetv1.SetInstallationMemberRequest{UserId: s.owner.UserID, Roles: []string{"IAM_OWNER_VIEWER"}})
	same(t, "owner", d.GetResourceOwner(), s.org)
	done[*signetv1.ListInstallationMembersResponse](t, c, s.owner, list)
	if m := find(); m == nil || !slices.Equal(m.GetRoles(), []string{"IAM_OWNER_VIEWER"}) ||
		m.GetDetails().GetSequence() != d.GetSequence() {
		t.Errorf("shown as %v", m)
	}
	mine := c.memberships(t, s.owner)
	same(t, "memberships", len(mine), 2)
	same(t, "the installation comes first", mine[0].GetOrgId(), "")
	c.carryOut(t, c.w.root, &signetv1.SetInstallationMemberRequest{UserId: s.owner.UserID,
		Roles: []string{"IAM_OWNER"}})
	c.carryOut(t, s.owner, &signetv1.SetInstallationMemberRequest{UserId: s.user.UserID,
		Roles: []string{"IAM_ORG_MANAGER"}})
	c.carryOut(t, s.owner, &signetv1.RemoveInstallationMemberRequest{UserId: s.owner.UserID})
	if m := find(); m != nil {
		t.Errorf("still shown as %v", m)
	}
	c.refused(t, permissionDenied, s.owner, list)
	c.refused(t, noMember, c.w.root, &signetv1.RemoveInstallationMemberRequest{UserId: s.owner.UserID})
}

// lastOwnerStays needs an installation of its own: it takes all its owners but one away.
func lastOwnerStays(t *testing.T, outer *World) {
	w := openWorld(t, testdb.New(t, outer.db.Engine))
	c := &Client{w, w.rest}
	c.carryOut(t, w.root, &signetv1.RemoveUserRequest{UserId: w.first.UserID})
	root := w.root.UserID
	everything := []proto.Message{
		&signetv1.SetInstallationMemberRequest{UserId: root, Roles: []string{"IAM_OWNER_VIEWER"}},
		&signetv1.RemoveInstallationMemberRequest{UserId: root},
		&signetv1.DeactivateUserRequest{UserId: root}, &signetv1.LockUserRequest{UserId: root},
		&signetv1.RemoveUserRequest{UserId: root},
	}
	for _, req := range everything {
		w.run(t, Case{As: w.root, Req: req, Want: lastOwner})
	}
	defaultOrg := refused(codes.FailedPrecondition, "DEFAULT_ORGANIZATION")
	s := w.scene(t)
	c.carryOut(t, w.root, &signetv1.SetInstallationMemberRequest{UserId: s.owner.UserID, Roles: []string{"IAM_OWNER"}})
	for _, req := range []proto.Message{&signetv1.DeactivateOrganizationRequest{OrgId: w.root.OrgID},
		&signetv1.RemoveOrganizationRequest{OrgId: w.root.OrgID}} {
		w.run(t, Case{As: w.root, Req: req, Want: defaultOrg})
	}
	// The other one is the last one as soon as the first is locked, also through its organization.
	c.carryOut(t, s.owner, &signetv1.LockUserRequest{UserId: root}, header(orgID, w.root.OrgID))
	for _, req := range []proto.Message{&signetv1.DeactivateOrganizationRequest{OrgId: s.org},
		&signetv1.RemoveOrganizationRequest{OrgId: s.org},
		&signetv1.LockUserRequest{UserId: s.owner.UserID},
		&signetv1.RemoveInstallationMemberRequest{UserId: s.owner.UserID}} {
		w.run(t, Case{As: s.owner, Req: req, Want: lastOwner})
	}
	c.carryOut(t, s.owner, &signetv1.UnlockUserRequest{UserId: root}, header(orgID, w.root.OrgID))
	c.carryOut(t, s.owner, &signetv1.DeactivateOrganizationRequest{OrgId: s.org})
	c.refused(t, unauthenticated, s.owner, &signetv1.GetMyUserRequest{})
}
