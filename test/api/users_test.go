package api_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
)

var (
	userNameTaken = refused(codes.AlreadyExists, "USER_NAME_TAKEN")
)

// newPerson is a valid request without a password, which would cost a hash.
func newPerson(userName string) *signetv1.AddHumanUserRequest {
	return &signetv1.AddHumanUserRequest{UserName: userName,
		Profile: &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Ada", LastName: "Lovelace"},
		Email:   &signetv1.SetupOrganizationRequest_Human_Email{Email: userName + "@mail.example"}}
}

func newService(userName string) *signetv1.AddServiceUserRequest {
	return &signetv1.AddServiceUserRequest{UserName: userName, Name: "Robot", Description: "does things"}
}

func profileOf(id string) *signetv1.UpdateUserProfileRequest {
	return &signetv1.UpdateUserProfileRequest{UserId: id, FirstName: "A", LastName: "B", DisplayName: "C"}
}

func describe(id string) *signetv1.UpdateServiceUserRequest {
	return &signetv1.UpdateServiceUserRequest{UserId: id, Name: "Robot 2", Description: "does more"}
}

func userName(id, name string) *signetv1.SetUserNameRequest {
	return &signetv1.SetUserNameRequest{UserId: id, UserName: name}
}

// newPersonStory: a person is read back as created, and signs in where there is a password.
func newPersonStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, userManager)
	full := newPerson(unique("Ada"))
	full.Profile = &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Ada", LastName: "Lovelace",
		NickName: "Countess", DisplayName: "Ada L.", PreferredLanguage: "en-GB", Gender: signetv1.Gender_GENDER_FEMALE}
	full.Email = &signetv1.SetupOrganizationRequest_Human_Email{Email: unique("Mail") + "@Mail.example",
		IsEmailVerified: true}
	full.Phone = &signetv1.SetupOrganizationRequest_Human_Phone{Phone: "+44-20-1234", IsPhoneVerified: true}
	full.Password = c.w.secret("first")
	made := done[*signetv1.AddHumanUserResponse](t, c, as, full)
	got := c.user(t, as, made.GetUserId())
	sameMessage(t, "as read back", got, &signetv1.User{
		UserId:     made.GetUserId(),
		State:      signetv1.User_STATE_ACTIVE,
		UserName:   full.UserName,
		LoginNames: []string{full.UserName + "@" + s.domain},
		Details:    got.GetDetails(),
		Type: &signetv1.User_Human_{
			Human: &signetv1.User_Human{
				Profile: &signetv1.User_Profile{FirstName: "Ada", LastName: "Lovelace", NickName: "Countess",
					DisplayName: "Ada L.", PreferredLanguage: "en-GB", Gender: signetv1.Gender_GENDER_FEMALE},
				Email: full.Email.Email, IsEmailVerified: true, Phone: "+44-20-1234", IsPhoneVerified: true,
				PasswordChangeRequired: true},
		},
	})
	sameMessage(t, "details", made.GetDetails(), got.GetDetails())
	same(t, "owner", made.GetDetails().GetResourceOwner(), s.org)
	ada := &Actor{UserID: made.GetUserId(), OrgID: s.org, LoginName: full.UserName + "@" + s.domain,
		Password: full.Password}
	same(t, "has to change the password", c.session(t, ada).MustChange, true)

	kept := newPerson(unique("kept"))
	kept.Password, kept.NoChangeRequired = c.w.secret("kept"), true
	id := done[*signetv1.AddHumanUserResponse](t, c, as, kept).GetUserId()
	keeper := &Actor{UserID: id, OrgID: s.org, LoginName: kept.UserName + "@" + s.domain, Password: kept.Password}
	in := c.session(t, keeper)
	same(t, "keeps the password", in.MustChange, false)
	c.refused(t, permissionDenied, in, newPerson(unique("no"))) // holds nothing

	bare := newPerson(unique("bare"))
	id = done[*signetv1.AddHumanUserResponse](t, c, as, bare).GetUserId()
	c.refused(t, signInFailed, nil, signIn(bare.UserName+"@"+s.domain, "x"))
	got = c.user(t, as, id)
	same(t, "display name", got.GetHuman().GetProfile().GetDisplayName(), "Ada Lovelace")
	same(t, "nothing to change", got.GetHuman().GetPasswordChangeRequired(), false)
	same(t, "verified", got.GetHuman().GetIsEmailVerified(), false)
	done[*signetv1.SetUserPasswordResponse](t, c, as, with(setPassword(id, keeper.Password), "noChangeRequired", true))
	c.session(t, &Actor{UserID: id, LoginName: bare.UserName + "@" + s.domain, Password: keeper.Password})

	// The name is taken, for both types, in this organization.
	for _, req := range []proto.Message{newPerson(strings.ToUpper(bare.UserName)), newService(bare.UserName)} {
		c.refused(t, userNameTaken, as, req)
	}
	there := c.w.elsewhere(t)
	done[*signetv1.AddHumanUserResponse](t, c, there.owner, newPerson(bare.UserName))
	c.refused(t, permissionDenied, as, newPerson(unique("no")), header(orgID, there.org))

	// The same key creates once.
	k := key(unique("key"))
	req := newPerson(unique("once"))
	first := done[*signetv1.AddHumanUserResponse](t, c, as, req, k)
	sameMessage(t, "again", done[*signetv1.AddHumanUserResponse](t, c, as, req, k), first)
	c.refused(t, keyReused, as, with(req, "password", "x"), k)
	robot := newService(unique("once"))
	robots := done[*signetv1.AddServiceUserResponse](t, c, as, robot, k)
	sameMessage(t, "service again", done[*signetv1.AddServiceUserResponse](t, c, as, robot, k), robots)

	// What is wrong is named all at once.
	c.refused(t, invalid("email.email", "phone.phone", "password", "userName", "profile.firstName"), as,
		with(with(with(with(with(newPerson("x"), "email.email", "Ada <a@b>"), "phone.phone", "1"), "password",
			wide(73)), "userName", wide(201)), "profile.firstName", ""))
	c.refused(t, invalid("profile", "email"), as, &signetv1.AddHumanUserRequest{UserName: "x"})
}

// goneOrgStory: nobody is created in an organization that is gone or never was.
func goneOrgStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	in := header(orgID, s.org)
	c.w.changeOrg(t, s.org, org.Deactivated{})
	done[*signetv1.AddHumanUserResponse](t, c, c.w.root, newPerson(unique("inactive")), in)
	c.w.changeOrg(t, s.org, org.WasRemoved{})
	for _, h := range []Header{in, header(orgID, "org_x"), header(orgID, access.Installation)} {
		c.refused(t, noOrg, c.w.root, newPerson(unique("no")), h)
		c.refused(t, noOrg, c.w.root, newService(unique("no")), h)
		c.refused(t, noOrg, c.w.root, &signetv1.ListUsersRequest{}, h)
	}
}

// changedUserStory: profiles, descriptions and names are replaced by whoever may.
func changedUserStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, userManager)
	id := done[*signetv1.AddServiceUserResponse](t, c, as, newService(unique("robot"))).GetUserId()
	before := c.user(t, as, id)
	sameMessage(t, "service", before.GetService(), &signetv1.User_Service{Name: "Robot", Description: "does things"})
	done[*signetv1.UpdateServiceUserResponse](t, c, as, describe(id))
	after := c.user(t, as, id)
	sameMessage(t, "service afterwards", after.GetService(),
		&signetv1.User_Service{Name: "Robot 2", Description: "does more"})
	done[*signetv1.UpdateServiceUserResponse](t, c, as, with(describe(id), "description", nil))
	same(t, "left out, it is empty", c.user(t, as, id).GetService().GetDescription(), "")
	c.refused(t, notHuman, as, profileOf(id))
	c.refused(t, notService, as, describe(s.user.UserID))
	c.refused(t, noUser, as, describe("usr_x"))

	d := done[*signetv1.UpdateUserProfileResponse](t, c, as, profileOf(s.user.UserID))
	u := c.user(t, as, s.user.UserID)
	sameMessage(t, "profile", u.GetHuman().GetProfile(),
		&signetv1.User_Profile{FirstName: "A", LastName: "B", DisplayName: "C"})
	same(t, "sequence", d.GetDetails().GetSequence(), u.GetDetails().GetSequence())
	done[*signetv1.UpdateUserProfileResponse](t, c, as, profileOf(s.owner.UserID)) // a profile is not protected
	c.refused(t, invalid("nickName"), as, with(profileOf(s.user.UserID), "nickName", ""))

	// A name moves: the one before is free, the login names follow, and it signs in.
	old := u.GetUserName()
	next := unique("Zoë")
	done[*signetv1.SetUserNameResponse](t, c, as, userName(s.user.UserID, next))
	u = c.user(t, as, s.user.UserID)
	same(t, "login name", fmt.Sprint(u.GetLoginNames()), "["+next+"@"+s.domain+"]")
	c.refused(t, signInFailed, nil, signIn(s.user.LoginName, s.user.Password))
	renamed := *s.user
	renamed.LoginName = strings.ToUpper(next) + "@" + s.domain
	c.session(t, &renamed)
	c.me(t, s.user) // tokens stay
	c.refused(t, userNameTaken, as, userName(id, strings.ToLower(next)))
	done[*signetv1.SetUserNameResponse](t, c, as, userName(id, old))
	done[*signetv1.SetUserNameResponse](t, c, as, userName(id, strings.ToUpper(old)))
	c.refused(t, targetHoldsMore, as, userName(s.owner.UserID, unique("no")))
	c.refused(t, noUser, c.w.elsewhere(t).owner, userName(id, unique("no")))

	// Whatever changes a user looks at the sequence, and at everything else before it.
	for _, req := range []proto.Message{profileOf(s.user.UserID), describe(id), userName(id, unique("no"))} {
		c.refused(t, sequenceMismatch, as, req, stale)
	}
	c.refused(t, notHuman, as, profileOf(id), stale)
	c.refused(t, targetHoldsMore, as, userName(s.owner.UserID, "x"), stale)
	c.refused(t, userNameTaken, as, userName(id, next), stale)
	c.w.changeUser(t, id, user.WasRemoved{})
	c.refused(t, noUser, as, describe(id))
	done[*signetv1.AddServiceUserResponse](t, c, as, newService(old)) // free again
}

// listedUsers walks through all pages of a list and gives the user names in order.
func (c *Client) listedUsers(t *testing.T, as *Actor, req *signetv1.ListUsersRequest, h ...Header) (names []string) {
	t.Helper()
	req = proto.Clone(req).(*signetv1.ListUsersRequest)
	for range 100 {
		page := done[*signetv1.ListUsersResponse](t, c, as, req, h...)
		if len(page.GetUsers()) > int(req.GetPageSize()) && req.GetPageSize() > 0 {
			t.Errorf("%d entries on a page of %d", len(page.GetUsers()), req.GetPageSize())
		}
		for _, u := range page.GetUsers() {
			names = append(names, u.GetUserName())
		}
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return names
		}
	}
	t.Fatal("the list has no end")
	return nil
}

// listUsersStory: lists show the users of one organization, page by page, and nobody else's.
func listUsersStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	make := func(name, display, email string) string {
		req := newPerson(name)
		req.Profile.DisplayName, req.Email.Email = display, email
		return done[*signetv1.AddHumanUserResponse](t, c, s.owner, req).GetUserId()
	}
	make("Zoë", "Émile", "Zoe@Example.org")
	off := make("zora", "emil", "emil@example.org")
	locked := make("adam", "ÉMILE 2", "adam@example.org")
	gone := make("gone", "Émile", "gone@example.org")
	done[*signetv1.AddServiceUserResponse](t, c, s.owner, newService("zobot"))
	c.w.changeUser(t, off, user.Deactivated{})
	c.w.changeUser(t, locked, user.WasLocked{})
	c.w.changeUser(t, gone, user.WasRemoved{})
	all := c.listedUsers(t, s.owner, &signetv1.ListUsersRequest{})
	same(t, "everybody", len(all), 7) // the founder, the owner and the user of the scene as well
	same(t, "the oldest first", fmt.Sprint(all[3:]), "[Zoë zora adam zobot]")
	for _, x := range []struct {
		req  *signetv1.ListUsersRequest
		want string
	}{
		{&signetv1.ListUsersRequest{UserName: "ZO"}, "[zobot zora Zoë]"},
		{&signetv1.ListUsersRequest{UserName: "ZOË"}, "[Zoë]"},
		{&signetv1.ListUsersRequest{UserName: "obot"}, "[]"},
		{&signetv1.ListUsersRequest{UserName: "z%"}, "[]"},
		{&signetv1.ListUsersRequest{UserName: "' OR 1=1 --"}, "[]"},
		{&signetv1.ListUsersRequest{Name: "é"}, "[Zoë adam]"},
		{&signetv1.ListUsersRequest{Name: "rob"}, "[zobot]"},
		{&signetv1.ListUsersRequest{Email: "ZOE@"}, "[Zoë]"},
		{&signetv1.ListUsersRequest{State: signetv1.User_STATE_INACTIVE}, "[zora]"},
		{&signetv1.ListUsersRequest{State: signetv1.User_STATE_LOCKED}, "[adam]"},
		{&signetv1.ListUsersRequest{Type: signetv1.UserType_USER_TYPE_SERVICE}, "[zobot]"},
		{&signetv1.ListUsersRequest{UserName: "z", Type: signetv1.UserType_USER_TYPE_HUMAN,
			State: signetv1.User_STATE_ACTIVE}, "[Zoë]"},
	} {
		for _, size := range []int32{0, 1, 2, 500} {
			x.req.PageSize = size
			same(t, x.req.String(), fmt.Sprint(c.listedUsers(t, s.owner, x.req)), x.want)
		}
	}
	// An entry is the user as a read shows it.
	page := done[*signetv1.ListUsersResponse](t, c, s.owner, &signetv1.ListUsersRequest{UserName: "zo", PageSize: 2})
	for _, u := range page.GetUsers() {
		sameMessage(t, "entry", u, c.user(t, s.owner, u.GetUserId()))
		same(t, "login names", len(u.GetLoginNames()), 1)
	}
	// Page tokens belong to caller, organization and query; the size may change.
	next := page.GetNextPageToken()
	done[*signetv1.ListUsersResponse](t, c, s.owner,
		&signetv1.ListUsersRequest{UserName: "zo", PageSize: 7, PageToken: next})
	badToken := invalid("pageToken")
	c.refused(t, badToken, s.owner, &signetv1.ListUsersRequest{UserName: "z", PageToken: next})
	c.refused(t, badToken, s.owner,
		&signetv1.ListUsersRequest{UserName: "zo", State: signetv1.User_STATE_ACTIVE, PageToken: next})
	c.refused(t, badToken, s.owner, &signetv1.ListUsersRequest{UserName: "zo", PageToken: next[:len(next)-2]})
	c.refused(t, badToken, s.owner, &signetv1.ListUsersRequest{UserName: "zo", PageToken: "zo"})
	c.refused(t, badToken, s.holder(t, orgViewer), &signetv1.ListUsersRequest{UserName: "zo", PageToken: next})
	c.refused(t, badToken, c.w.root, &signetv1.ListUsersRequest{UserName: "zo", PageToken: next},
		header(orgID, c.w.there.org))
	plain, err := base64.RawURLEncoding.DecodeString(next)
	if err != nil {
		t.Error(err)
	}
	for _, u := range page.GetUsers() { // the token names the last one
		if bytes.Contains(plain, []byte(u.GetUserId())) {
			t.Errorf("the token can be read: %q", plain)
		}
	}
	c.refused(t, invalid("name"), s.owner, &signetv1.ListUsersRequest{UserName: "a", Name: "b"})
	c.refused(t, invalid("name", "email"), s.owner, &signetv1.ListUsersRequest{UserName: "a", Name: "b", Email: "c"})
	c.refused(t, invalid("email"), s.owner, &signetv1.ListUsersRequest{Name: "b", Email: "c"})
	c.refused(t, invalid("pageSize"), s.owner, &signetv1.ListUsersRequest{PageSize: 501})
	c.refused(t, invalid("state", "type"), s.owner, &signetv1.ListUsersRequest{State: 9, Type: 9})

	// Another organization's users are in no list of one's own, and a list of theirs takes a permission there.
	c.refused(t, permissionDenied, s.owner, &signetv1.ListUsersRequest{}, header(orgID, c.w.there.org))
	c.refused(t, permissionDenied, s.user, &signetv1.ListUsersRequest{})
	theirs := c.listedUsers(t, c.w.root, &signetv1.ListUsersRequest{UserName: "zo"}, header(orgID, s.org))
	same(t, "for the owner of the installation", fmt.Sprint(theirs), "[zobot zora Zoë]")
	if slices.Contains(c.listedUsers(t, c.w.root, &signetv1.ListUsersRequest{UserName: "zo"}), "Zoë") {
		t.Error("somebody is in the list of another organization")
	}
}

// oneNameForMany: of many who want a name at once, one gets it.
func oneNameForMany(t *testing.T, w *World) {
	s := w.scene(t)
	const many = 24
	name := unique("wanted")
	answers := make([]*Answer, many)
	var wait sync.WaitGroup
	for i := range many {
		var req proto.Message = newPerson(name)
		switch i % 3 {
		case 1:
			req = newService(strings.ToUpper(name))
		case 2:
			req = userName(w.addUser(t, person{Org: s.org}).UserID, name)
		}
		wait.Go(func() { answers[i] = w.send(t, w.wires[i/3%len(w.wires)], s.owner, req, nil) })
	}
	wait.Wait()
	got := 0
	for _, a := range answers {
		if a.status == nil {
			got++
		} else {
			a.mustBe(t, userNameTaken)
		}
	}
	same(t, "got the name", got, 1)
}
