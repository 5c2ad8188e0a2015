package api_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
)

// profileStory: an update replaces the whole profile and nothing else.
func profileStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.user
	before := c.me(t, as)
	full := profile()
	done[*signetv1.UpdateMyProfileResponse](t, c, as, full)
	after := c.me(t, as)
	sameMessage(t, "full profile", after.GetHuman().GetProfile(), &signetv1.User_Profile{
		FirstName:         "Ada",
		LastName:          "Lovelace",
		NickName:          "Countess",
		DisplayName:       "Ada L.",
		PreferredLanguage: "en-GB",
		Gender:            signetv1.Gender_GENDER_FEMALE,
	})

	done[*signetv1.UpdateMyProfileResponse](t, c, as,
		&signetv1.UpdateMyProfileRequest{FirstName: "A", LastName: "B", DisplayName: "C"})
	after = c.me(t, as)
	sameMessage(t, "what is left out is empty afterwards", after.GetHuman().GetProfile(),
		&signetv1.User_Profile{FirstName: "A", LastName: "B", DisplayName: "C"})
	after.GetHuman().Profile, after.Details = before.GetHuman().GetProfile(), before.GetDetails()
	sameMessage(t, "all else", after, before)
	same(t, "who looks sees the same", c.user(t, s.owner, as.UserID).GetHuman().GetProfile().GetFirstName(), "A")

	// Nothing of a refused update stays.
	c.refused(t, invalid("lastName"), as, with(full, "lastName", ""))
	c.refused(t, sequenceMismatch, as, full, stale)
	same(t, "first name", c.me(t, as).GetHuman().GetProfile().GetFirstName(), "A")
}

// providerStory: both updates replace their half of a provider, and leave the other half alone.
func providerStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	read := func() *signetv1.IdentityProvider { return c.idp(t, s.owner, s.idp) }
	first := read()
	sameMessage(t, "as added", first, &signetv1.IdentityProvider{
		IdpId:        s.idp,
		Details:      first.GetDetails(),
		State:        signetv1.IdentityProvider_STATE_ACTIVE,
		Name:         "Partner",
		StylingType:  signetv1.StylingType_STYLING_TYPE_GOOGLE,
		AutoRegister: true,
		VouchedBy:    s.owner.UserID,
		Offered:      true,
		Config: &signetv1.IdentityProvider_Jwt{
			Jwt: &signetv1.IdentityProvider_JWT{JwtEndpoint: "https://jwt.example/first", Issuer: "first",
				KeysEndpoint: "https://jwt.example/first/keys", HeaderName: "x-first"}},
	})
	same(t, "owner", first.GetDetails().GetResourceOwner(), s.org)
	same(t, "prefix", s.idp[:4], "idp_")

	done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner,
		&signetv1.UpdateIdentityProviderRequest{IdpId: s.idp, Name: "n"})
	got := read()
	same(t, "name", got.GetName(), "n")
	same(t, "styling goes back", got.GetStylingType(), signetv1.StylingType_STYLING_TYPE_UNSPECIFIED)
	same(t, "registration goes back", got.GetAutoRegister(), false)
	sameMessage(t, "the JWT half", got.GetJwt(), first.GetJwt())

	done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner, general(s.idp))
	general := read()
	for _, config := range []*signetv1.UpdateJWTIdentityProviderRequest{jwtConfig(s.idp),
		with(jwtConfig(s.idp), "headerName", nil)} {
		done[*signetv1.UpdateJWTIdentityProviderResponse](t, c, s.owner, config)
		got = read()
		sameMessage(t, "JWT configuration", got.GetJwt(), &signetv1.IdentityProvider_JWT{
			JwtEndpoint:  config.GetJwtEndpoint(),
			Issuer:       config.GetIssuer(),
			KeysEndpoint: config.GetKeysEndpoint(),
			HeaderName:   config.GetHeaderName(),
		})
		got.Config, got.Details = general.GetConfig(), general.GetDetails()
		sameMessage(t, "the general half", got, general)
	}
}

// providerStateStory: updates work on a switched-off provider, and on a removed one nothing does.
func providerStateStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	c.w.changeIDP(t, s.idp, idp.Deactivated{})
	done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner, general(s.idp))
	done[*signetv1.UpdateJWTIdentityProviderResponse](t, c, s.owner, jwtConfig(s.idp))
	same(t, "state", c.idp(t, s.owner, s.idp).GetState(), signetv1.IdentityProvider_STATE_INACTIVE)
	c.w.changeIDP(t, s.idp, idp.WasRemoved{})
	c.refused(t, noIDP, s.owner, general(s.idp))
	c.refused(t, noIDP, s.owner, jwtConfig(s.idp))
	c.refused(t, noIDP, s.owner, &signetv1.GetIdentityProviderRequest{IdpId: s.idp})
	c.refused(t, noIDP, c.w.root, general(s.idp))
	c.refused(t, permissionDenied, s.user, general(s.idp))
}

// detailsStory follows the sequence of each object through its updates, with if-match along the way.
func detailsStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	readUser := func() *signetv1.Details { return c.user(t, s.owner, s.user.UserID).GetDetails() }
	readIDP := func() *signetv1.Details { return c.idp(t, s.owner, s.idp).GetDetails() }
	updates := []struct {
		name string
		as   *Actor
		req  proto.Message
		read func() *signetv1.Details
	}{
		{"profile", s.user, profile(), readUser},
		{"general", s.owner, general(s.idp), readIDP},
		{"JWT", s.owner, jwtConfig(s.idp), readIDP},
		{"password", s.owner, setPassword(s.user.UserID, c.w.secret("details")), readUser},
	}
	for _, u := range updates {
		before := u.read()
		seen := before.GetSequence()
		quoted, bare := `"`+strconv.FormatUint(seen, 10)+`"`, ""
		a := c.send(t, u.as, u.req, header("if-match", quoted))
		if a.status != nil {
			t.Fatalf("%s: %s", u.name, a.summary())
		}
		d := a.message.(interface{ GetDetails() *signetv1.Details }).GetDetails()
		after := u.read()
		same(t, u.name+": one event", d.GetSequence(), seen+1)
		sameMessage(t, u.name+": the read agrees", after, &signetv1.Details{
			Sequence:      d.GetSequence(),
			CreationDate:  before.GetCreationDate(),
			ChangeDate:    d.GetChangeDate(),
			ResourceOwner: d.GetResourceOwner(),
		})
		same(t, u.name+": owner", d.GetResourceOwner(), s.org)
		recent(t, u.name, d.GetChangeDate())
		if d.GetChangeDate().AsTime().Before(before.GetChangeDate().AsTime()) {
			t.Errorf("%s: time goes backwards", u.name)
		}
		c.refused(t, sequenceMismatch, u.as, u.req, header("if-match", quoted))
		same(t, u.name+": nothing is written", u.read().GetSequence(), seen+1)
		if u.name == "password" {
			break // it ended the user's token, and costs
		}
		// The same again differs in nothing, and is an event all the same.
		for _, match := range []string{strconv.FormatUint(seen+1, 10), "*", ""} {
			h := header("if-match", match)
			if match == bare {
				h = nil
			}
			a := c.send(t, u.as, u.req, h)
			a.mustBe(t, ok)
		}
		same(t, u.name+": three more", u.read().GetSequence(), seen+4)
	}

	// A sign-in, failed or not, and the end of a session do not move the user.
	login := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	before := c.user(t, s.owner, login.UserID)
	in := c.session(t, login)
	c.refused(t, signInFailed, nil, signIn(login.LoginName, "wrong"))
	done[*signetv1.EndSessionResponse](t, c, in, &signetv1.EndSessionRequest{SessionId: in.SessionID})
	sameMessage(t, "user after signing in", c.user(t, s.owner, login.UserID), before)

	// Creations.
	added := done[*signetv1.AddJWTIdentityProviderResponse](t, c, s.owner, addJWT())
	same(t, "first sequence of a provider, and of who answers for it", added.GetDetails().GetSequence(), 2)
	sameMessage(t, "details of a creation are those of a read", c.idp(t, s.owner, added.GetIdpId()).GetDetails(),
		added.GetDetails())
	recent(t, "creation", added.GetDetails().GetCreationDate())
}

func recent(t *testing.T, what string, at *timestamppb.Timestamp) {
	t.Helper()
	if age := time.Since(at.AsTime()); age < -time.Minute || age > 10*time.Minute {
		t.Errorf("%s is said to have been at %v", what, at.AsTime())
	}
}

// oddTexts must come back as they were sent.
var oddTexts = []string{
	" ", "  padded  ", "\t\n", "'; DROP TABLE users; --", `"quoted" \back\`, "%s%n%00", "${jndi:x}", "{{.}}",
	"<script>alert(1)</script>", "a\x01\x1f\x7fb",
	"e\u0301 é", "\u202eRTL\u202c עברית العربية", "👩‍👩‍👧‍👦🏳️‍🌈", "\ufeffBOM", "\u0085\u2028\u2029",
	"\ufffd\uffff\U0010ffff", "ŁÓDŹ İıẞß", "null", "true", "0", `\u0000`, "NaN",
	"a\u200bb", "ﬀ①Ⅷ", "𝕊𝕚𝕘𝕟𝕖𝕥", "\u0301leading mark", "\r\n", "line\nbreak",
}

// textStory stores odd texts everywhere and reads them back.
func textStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	for _, x := range oddTexts {
		done[*signetv1.UpdateMyProfileResponse](t, c, s.user,
			&signetv1.UpdateMyProfileRequest{FirstName: x, LastName: x, NickName: &x, DisplayName: x})
		sameMessage(t, "profile", c.me(t, s.user).GetHuman().GetProfile(),
			&signetv1.User_Profile{FirstName: x, LastName: x, NickName: x, DisplayName: x})
		done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner,
			&signetv1.UpdateIdentityProviderRequest{IdpId: s.idp, Name: x})
		done[*signetv1.UpdateJWTIdentityProviderResponse](t, c, s.owner,
			&signetv1.UpdateJWTIdentityProviderRequest{IdpId: s.idp, JwtEndpoint: x, Issuer: x, KeysEndpoint: x,
				HeaderName: x})
		got := c.idp(t, s.owner, s.idp)
		same(t, "name", got.GetName(), x)
		sameMessage(t, "JWT", got.GetJwt(),
			&signetv1.IdentityProvider_JWT{JwtEndpoint: x, Issuer: x, KeysEndpoint: x, HeaderName: x})
	}
	// An organization with an odd name, and a user with an odd user name, who can sign in with it.
	odd := oddTexts[3] + oddTexts[10] + oddTexts[11] + oddTexts[12] + "  "
	req := setup(c.w.secret("odd"))
	req.Org.Name, req.Human.UserName = odd, odd
	made := done[*signetv1.SetupOrganizationResponse](t, c, c.w.root, req)
	same(t, "name", c.org(t, c.w.root, made.GetOrgId()).GetName(), odd)
	u := c.user(t, c.w.root, made.GetUserId(), header(orgID, made.GetOrgId()))
	same(t, "user name", u.GetUserName(), odd)
	in := done[*signetv1.CreateSessionResponse](t, c, nil, signIn(u.GetLoginNames()[0], req.Human.Password))
	same(t, "who signed in", in.GetUserId(), made.GetUserId())
}

// protectedStory: an update of oneself reaches nothing but the profile, whatever a message carries besides.
func protectedStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	before := c.me(t, s.user)
	req := profile()
	// Numbers that the message does not have, but a user has: verified, roles, state.
	req.ProtoReflect().SetUnknown([]byte{0x38, 0x01, 0x40, 0x03, 0x4a, 0x09, 'O', 'R', 'G', '_', 'O', 'W',
		'N', 'E', 'R'})
	done[*signetv1.UpdateMyProfileResponse](t, c, s.user, req)
	after := c.me(t, s.user)
	after.GetHuman().Profile, after.Details = before.GetHuman().GetProfile(), before.GetDetails()
	sameMessage(t, "user", after, before)
	c.refused(t, permissionDenied, s.user, general(s.idp))
	for _, body := range []string{`"isEmailVerified":true`, `"email":"x@y"`, `"roles":["IAM_OWNER"]`,
		`"state":"STATE_ACTIVE"`, `"userName":"root"`, `"userId":"` + s.owner.UserID + `"`,
		`"details":{}`, `"resourceOwner":"x"`, `"password":"x"`, `"human":{}`} {
		field := strings.Split(body, `"`)[1]
		a := c.w.raw(t, "PUT", "/v1/users/me/profile", s.user, nil,
			`{"firstName":"a","lastName":"b","displayName":"c",`+body+`}`)
		a.mustBe(t, invalid(field))
	}
	// A membership needs more than being a member.
	elsewhere := c.w.addUser(t,
		person{Org: s.org, Elsewhere: map[string][]access.Role{c.w.root.OrgID: {access.OrgOwner}}})
	c.refused(t, permissionDenied, elsewhere, &signetv1.GetUserRequest{UserId: s.user.UserID})
}
