package api_test

import (
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
)

var (
	linkUsed      = refused(codes.FailedPrecondition, "INVITATION_USED")
	linkWithdrawn = refused(codes.FailedPrecondition, "INVITATION_WITHDRAWN")
	linkReplaced  = refused(codes.FailedPrecondition, "INVITATION_LINK_REPLACED")
	inviterMayNot = refused(codes.FailedPrecondition, "INVITER_MAY_NOT")
	otherAddress  = refused(codes.PermissionDenied, "INVITATION_FOR_ANOTHER_ADDRESS")
	notPending    = refused(codes.FailedPrecondition, "INVITATION_NOT_PENDING")
)

// tokenIn is the token of a link.
func tokenIn(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Query().Get("token") == "" {
		t.Fatalf("the link is %q (%v)", link, err)
	}
	return u.Query().Get("token")
}

// hideLink keeps the token of a link from being found anywhere.
func (w *World) hideLink(link string) {
	if u, err := url.Parse(link); err == nil && u.Query().Get("token") != "" {
		w.hide(u.Query().Get("token"))
	}
}

// invite invites somebody, where no mail is sent.
func (c *Client) invite(t *testing.T, as *Actor, org, email string, roles ...string) (id, token string) {
	t.Helper()
	made := done[*signetv1.CreateInvitationResponse](t, c, as,
		&signetv1.CreateInvitationRequest{OrgId: org, Email: email, Roles: roles, Language: "de"})
	return made.GetInvitationId(), tokenIn(t, made.GetLink())
}

func (c *Client) invitation(t *testing.T, as *Actor, org, id string) *signetv1.Invitation {
	t.Helper()
	return done[*signetv1.GetInvitationResponse](t, c, as,
		&signetv1.GetInvitationRequest{OrgId: org, InvitationId: id}).GetInvitation()
}

func (c *Client) accepting(token string) *signetv1.AcceptInvitationRequest {
	return &signetv1.AcceptInvitationRequest{InvitationToken: token, UserName: unique("new"), FirstName: "Nia",
		LastName: "New", Password: c.w.secret("new")}
}

// invitationStory: somebody is invited, the link is shown, and they join as a new user.
func invitationStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	email := unique("nia") + "@mail.example"
	id, first := c.invite(t, s.owner, s.org, email, orgViewer)
	i := c.invitation(t, s.owner, s.org, id)
	same(t, "state", i.GetState(), signetv1.Invitation_STATE_PENDING)
	same(t, "address", i.GetEmail(), email)
	same(t, "inviter", i.GetInviterId(), s.owner.UserID)
	same(t, "shown", i.GetLinkShown(), true)
	c.refused(t, refused(codes.AlreadyExists, "ALREADY_INVITED"), s.owner,
		&signetv1.CreateInvitationRequest{OrgId: s.org, Email: email})

	token := tokenIn(t, done[*signetv1.ResendInvitationResponse](t, c, s.owner,
		&signetv1.ResendInvitationRequest{OrgId: s.org, InvitationId: id}).GetLink())
	c.refused(t, linkReplaced, nil, c.accepting(first))
	c.refused(t, invalid("userName"), nil, with(c.accepting(token), "userName", email)) // the link proves nothing
	c.refused(t, invalid("userName"), nil, with(c.accepting(token), "userName", ""))
	c.refused(t, invalid("password"), nil, with(c.accepting(token), "password", "short"))
	in := done[*signetv1.AcceptInvitationResponse](t, c, nil, c.accepting(token))
	nia := &Actor{UserID: in.GetUserId(), OrgID: s.org, Token: in.GetToken()}
	me := c.me(t, nia)
	same(t, "name", me.GetHuman().GetProfile().GetFirstName(), "Nia")
	same(t, "language", me.GetHuman().GetProfile().GetPreferredLanguage(), "de")
	same(t, "address", me.GetHuman().GetEmail(), email)
	same(t, "verified", me.GetHuman().GetIsEmailVerified(), false)
	same(t, "may", len(done[*signetv1.ListOrganizationMembersResponse](t, c, nia,
		&signetv1.ListOrganizationMembersRequest{OrgId: s.org}).GetMembers()) > 0, true)
	i = c.invitation(t, s.owner, s.org, id)
	same(t, "state", i.GetState(), signetv1.Invitation_STATE_ACCEPTED)
	same(t, "user", i.GetUserId(), in.GetUserId())
	c.refused(t, linkUsed, nil, c.accepting(token))
	c.refused(t, notPending, s.owner, &signetv1.WithdrawInvitationRequest{OrgId: s.org, InvitationId: id})

	// It can be for an application of theirs, or of all.
	done[*signetv1.ModifyApplicationResponse](t, c, s.owner,
		with(modifyApp(s.app, "initiate_login_uri"), "initiateLoginUri", "https://shop.example/start"))
	named := &signetv1.CreateInvitationRequest{OrgId: s.org, Email: unique("app") + "@mail.example", AppId: s.app,
		TargetLinkUri: "https://shop.example/welcome"}
	for field, value := range map[string]string{"appId": c.w.newScene(t).app, "targetLinkUri": "https://evil.example/"} {
		c.refused(t, invalid(field), s.owner, with(named, field, value))
	}
	for field, most := range map[string]int{"appId": 200, "targetLinkUri": 2000} {
		c.refused(t, invalid(field), s.owner, with(named, field, strings.Repeat("x", most+1)))
	}
	i = c.invitation(t, s.owner, s.org, done[*signetv1.CreateInvitationResponse](t, c, s.owner,
		named).GetInvitationId())
	same(t, "application", i.GetAppId(), s.app)
	same(t, "page", i.GetTargetLinkUri(), named.GetTargetLinkUri())
	done[*signetv1.WithdrawInvitationResponse](t, c, s.owner,
		&signetv1.WithdrawInvitationRequest{OrgId: s.org, InvitationId: i.GetInvitationId()})
	same(t, "page", c.invitation(t, s.owner, s.org, i.GetInvitationId()).GetTargetLinkUri(), "")

	// It can give roles in applications.
	project, foreign := c.newProject(t, s.owner, "reader", "writer"), c.newProject(t, c.w.newScene(t).owner, "reader")
	app := unique("app") + "@mail.example"
	roles := func(project string, keys ...string) *signetv1.CreateInvitationRequest {
		return &signetv1.CreateInvitationRequest{OrgId: s.org, Email: app,
			AppRoles: []*signetv1.InvitedAppRoles{{ProjectId: project, RoleKeys: keys}}}
	}
	giving := roles(project, "writer")
	c.refused(t, permissionDenied, s.holder(t, userManager), giving)
	c.refused(t, invalid("appRoles[0].roleKeys"), s.owner, roles(project))
	c.refused(t, invalid("appRoles[0].roleKeys"), s.owner, roles(project, "other"))
	c.refused(t, invalid("appRoles[0].projectId"), s.owner, roles(foreign, "reader"))
	gives := done[*signetv1.CreateInvitationResponse](t, c, s.owner, giving)
	i = c.invitation(t, s.owner, s.org, gives.GetInvitationId())
	sameMessage(t, "roles in applications", i.GetAppRoles()[0], giving.GetAppRoles()[0])
	given := done[*signetv1.AcceptInvitationResponse](t, c, nil, c.accepting(tokenIn(t, gives.GetLink())))
	same(t, "roles in applications", strings.Join(c.mine(t, &Actor{UserID: given.GetUserId(), OrgID: s.org,
		Token: given.GetToken()}), ","), s.org+" "+project+" writer direct")

	// The address goes with the user.
	done[*signetv1.RemoveUserResponse](t, c, s.owner, &signetv1.RemoveUserRequest{UserId: in.GetUserId()})
	same(t, "address", c.invitation(t, s.owner, s.org, id).GetEmail(), "")

	// It is withdrawn, and the address is gone with it.
	id, token = c.invite(t, s.owner, s.org, unique("two")+"@mail.example")
	done[*signetv1.WithdrawInvitationResponse](t, c, s.owner,
		&signetv1.WithdrawInvitationRequest{OrgId: s.org, InvitationId: id})
	c.refused(t, linkWithdrawn, nil, c.accepting(token))
	i = c.invitation(t, s.owner, s.org, id)
	same(t, "state", i.GetState(), signetv1.Invitation_STATE_WITHDRAWN)
	same(t, "address", i.GetEmail(), "")
	for state, n := range map[signetv1.Invitation_State]int{signetv1.Invitation_STATE_PENDING: 0,
		signetv1.Invitation_STATE_ACCEPTED: 2, signetv1.Invitation_STATE_WITHDRAWN: 2, 0: 4} {
		found := done[*signetv1.ListInvitationsResponse](t, c, s.owner,
			&signetv1.ListInvitationsRequest{OrgId: s.org, State: state}).GetInvitations()
		same(t, state.String(), len(found), n)
	}

	// Who gives what is judged when it is made and when it is accepted.
	manager := s.holder(t, userManager)
	c.refused(t, permissionDenied, manager,
		&signetv1.CreateInvitationRequest{OrgId: s.org, Email: "x@mail.example", Roles: []string{orgViewer}})
	other := s.holder(t, orgOwner)
	_, token = c.invite(t, other, s.org, unique("three")+"@mail.example", orgOwner)
	done[*signetv1.SetOrganizationMemberResponse](t, c, s.owner,
		&signetv1.SetOrganizationMemberRequest{OrgId: s.org, UserId: other.UserID, Roles: []string{userManager}})
	c.refused(t, inviterMayNot, nil, c.accepting(token))
}

// guestInvitationStory: somebody with an account elsewhere joins with it, if the address is theirs.
func guestInvitationStory(t *testing.T, c *Client) {
	s, there := c.w.newScene(t), c.w.newScene(t)
	bea := c.own(t, c.w.addUser(t, person{Org: there.org, Domain: there.domain}))
	email := unique("bea") + "@mail.example"
	set := &signetv1.SetUserEmailRequest{UserId: bea.UserID, Email: email, IsEmailVerified: true}
	done[*signetv1.SetUserEmailResponse](t, c, c.w.root, set, header(orgID, there.org))
	id, token := c.invite(t, s.owner, s.org, email, userManager)
	accept := &signetv1.AcceptMyInvitationRequest{InvitationToken: token}
	c.refused(t, otherAddress, c.w.signedIn(t, s.user), accept)
	c.refused(t, refused(codes.PermissionDenied, "SESSION_REQUIRED"), s.user, accept)
	out := done[*signetv1.AcceptMyInvitationResponse](t, c, bea, accept)
	same(t, "organization", out.GetOrgId(), s.org)
	held := done[*signetv1.ListMyMembershipsResponse](t, c, bea, &signetv1.ListMyMembershipsRequest{}).GetMemberships()
	if len(held) != 1 || held[0].GetOrgId() != s.org || len(held[0].GetRoles()) != 1 {
		t.Errorf("%v", held)
	}
	same(t, "accepted by", c.invitation(t, s.owner, s.org, id).GetUserId(), bea.UserID)
	c.refused(t, linkUsed, bea, accept)
}

// passwordSetupStory: an administrator sends a link by which somebody sets a password. It is worth no more than the
// administrator's own word.
func passwordSetupStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	link := done[*signetv1.SendPasswordSetupResponse](t, c, s.owner,
		&signetv1.SendPasswordSetupRequest{UserId: as.UserID}).GetLink()
	tokenIn(t, link)
	greater := s.holder(t, orgOwner)
	c.refused(t, targetHoldsMore, s.holder(t, userManager), &signetv1.SendPasswordSetupRequest{UserId: greater.UserID})
	c.refused(t, permissionDenied, s.holder(t, settingsManager), &signetv1.SendPasswordSetupRequest{UserId: as.UserID})
	c.refused(t, notHuman, s.owner, &signetv1.SendPasswordSetupRequest{UserId: s.robot().UserID})
}

// mailedInvitations: the mail proves the address, and the inviter sees no link.
func mailedInvitations(t *testing.T, w *World) {
	w, sink := withMail(t, w)
	c := &Client{w, w.rest}
	s := w.scene(t)
	owner := w.addUser(t, person{Org: s.org, Domain: s.domain, Roles: []access.Role{access.OrgOwner}})
	email := unique("nia") + "@mail.example"
	made := done[*signetv1.CreateInvitationResponse](t, c, owner,
		&signetv1.CreateInvitationRequest{OrgId: s.org, Email: email, Language: "fr"})
	same(t, "link", made.GetLink(), "")
	c.refused(t, mailThrottled, owner,
		&signetv1.ResendInvitationRequest{OrgId: s.org, InvitationId: made.GetInvitationId()})
	var m mailtest.Message
	for m = sink.Next(t); m.To != email; m = sink.Next(t) { // others are sent mails, too
	}
	token := tokenIn(t, linkIn.FindString(m.Text))
	w.hide(token)
	in := done[*signetv1.AcceptInvitationResponse](t, c, nil, with(c.accepting(token), "userName", ""))
	me := c.me(t, &Actor{UserID: in.GetUserId(), OrgID: s.org, Token: in.GetToken()})
	same(t, "name", me.GetUserName(), email)
	same(t, "verified", me.GetHuman().GetIsEmailVerified(), true)
}
