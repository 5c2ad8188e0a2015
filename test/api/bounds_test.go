package api_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// bounds are the lengths of the contract, in characters. least 0: may be empty or left out.
var bounds = []struct {
	op, field   string
	least, most int
}{
	{"UpdateMyProfile", "firstName", 1, 200},
	{"UpdateMyProfile", "lastName", 1, 200},
	{"UpdateMyProfile", "nickName", 1, 200},
	{"UpdateMyProfile", "displayName", 1, 200},
	{"UpdateMyProfile", "preferredLanguage", 0, 10},
	{"UpdateJWTIdentityProvider", "jwtEndpoint", 1, 200},
	{"UpdateJWTIdentityProvider", "issuer", 1, 200},
	{"UpdateJWTIdentityProvider", "keysEndpoint", 1, 200},
	{"UpdateJWTIdentityProvider", "headerName", 0, 200},
	{"UpdateIdentityProvider", "name", 1, 200},
	{"AddJWTIdentityProvider", "name", 1, 200},
	{"AddJWTIdentityProvider", "jwtEndpoint", 1, 200},
	{"AddJWTIdentityProvider", "issuer", 1, 200},
	{"AddJWTIdentityProvider", "keysEndpoint", 1, 200},
	{"AddJWTIdentityProvider", "headerName", 0, 200},
	{"AddApplication", "name", 1, 200},
	{"ModifyApplication", "name", 1, 200},
	{"SetupOrganization", "org.name", 1, 200},
	{"SetupOrganization", "org.domain", 0, 200},
	{"SetupOrganization", "human.userName", 1, 200},
	{"SetupOrganization", "human.profile.firstName", 1, 200},
	{"SetupOrganization", "human.profile.lastName", 1, 200},
	{"SetupOrganization", "human.profile.nickName", 0, 200},
	{"SetupOrganization", "human.profile.displayName", 0, 200},
	{"SetupOrganization", "human.profile.preferredLanguage", 0, 10},
	{"SetupOrganization", "human.phone.phone", 1, 50},
	{"SetupInvitedOrganization", "org.name", 1, 200},
	{"SetupInvitedOrganization", "org.domain", 0, 200},
	{"SetupInvitedOrganization", "language", 0, 10},
	{"SetUserPassword", "password", 1, 72},
	{"ChangeMyPassword", "newPassword", 1, 72},
}

// boundCases send every bounded field at its edges. All fields of an operation are at their edge in one request (a
// password costs a hash); one past it, each is alone.
func boundCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	longest, shortest := map[string]proto.Message{}, map[string]proto.Message{}
	for _, b := range bounds {
		base := s.sample(operationNamed(t, b.op))
		if longest[b.op] == nil {
			longest[b.op], shortest[b.op] = base, base
		}
		longest[b.op] = with(longest[b.op], b.field, textFor(b.field, b.most))
		shortest[b.op] = with(shortest[b.op], b.field, textFor(b.field, b.least))
		cases = append(cases, Case{Name: b.op + "/" + b.field + " one too long", As: s.caller(b.op),
			Req: with(base, b.field, textFor(b.field, b.most+1)), Want: invalid(b.field)})
		if b.least == 1 {
			cases = append(cases, Case{Name: b.op + "/" + b.field + " empty", As: s.caller(b.op),
				Req: with(base, b.field, ""), Want: invalid(b.field)})
		}
	}
	for op := range longest {
		if op == "ChangeMyPassword" || op == "SetUserPassword" ||
			op == "SetupOrganization" || op == "SetupInvitedOrganization" {
			continue // each needs a state of its own: in longPasswordStory, setupStory and setupInvitedStory
		}
		cases = append(cases,
			Case{Name: op + "/all at the most", As: s.caller(op), Req: longest[op], Want: ok},
			Case{Name: op + "/all at the least", As: s.caller(op), Req: shortest[op], Want: ok})
	}
	setPasswordTo := s.sample(operationNamed(t, "SetUserPassword"))
	return append(cases,
		Case{Name: "SetUserPassword/at the most", As: s.owner,
			Req: with(setPasswordTo, "password", wide(72)), Want: ok},
		Case{Name: "SetUserPassword/at the least", As: s.owner, Req: with(setPasswordTo, "password", "x"), Want: ok},
		Case{Name: "CreateSession/loginName empty", Req: signIn("", "x"), Want: invalid("loginName")},
		Case{Name: "CreateSession/password empty", Req: signIn("x", ""), Want: invalid("password")},
		Case{Name: "ChangeMyPassword/currentPassword empty", As: s.owner, Req: changePassword("", "x"),
			Want: invalid("currentPassword")},
		Case{Name: "SetupOrganization/human.password empty", As: w.root, Req: setup(""),
			Want: invalid("human.password")},
		Case{Name: "SetupOrganization/human.email.email empty", As: w.root,
			Req: with(setup("x"), "human.email.email", ""), Want: invalid("human.email.email")},
	)
}

// textFor makes a value of n characters that breaks no other rule of the field.
func textFor(field string, n int) string {
	switch {
	case strings.HasSuffix(field, "phone.phone") && n > 0:
		return "+" + strings.Repeat("1", n-1)
	case strings.HasSuffix(field, "domain") && n > 0:
		return strings.ToLower(unique("d") + strings.Repeat("x", n))[:n]
	default:
		return wide(n)
	}
}

// caller is who may call an operation in the scene.
func (s *scene) caller(op string) *Actor {
	if op == "SetupOrganization" || op == "SetupInvitedOrganization" {
		return s.w.root
	}
	return s.owner
}

// presenceCases are about what is there and what is not.
func presenceCases(t *testing.T, w *World) []Case {
	s := w.scene(t)
	minimal := &signetv1.UpdateMyProfileRequest{FirstName: "A", LastName: "B", DisplayName: "C"}
	return []Case{
		{Name: "profile/only what is required", As: s.user, Req: minimal, Want: ok},
		{Name: "profile/nothing", As: s.user, Req: &signetv1.UpdateMyProfileRequest{},
			Want: invalid("firstName", "lastName", "displayName")},
		{Name: "profile/empty nickname", As: s.user, Req: with(minimal, "nickName", ""), Want: invalid("nickName")},
		{Name: "profile/nickname of a space", As: s.user, Req: with(minimal, "nickName", " "), Want: ok},
		{Name: "JWT/nothing", As: s.owner, Req: &signetv1.UpdateJWTIdentityProviderRequest{IdpId: s.idp},
			Want: invalid("jwtEndpoint", "issuer", "keysEndpoint")},
		{Name: "JWT/no header name", As: s.owner, Req: with(jwtConfig(s.idp), "headerName", nil), Want: ok},
		{Name: "provider/nothing", As: s.owner, Req: &signetv1.UpdateIdentityProviderRequest{IdpId: s.idp},
			Want: invalid("name")},
		{Name: "provider/only a name", As: s.owner,
			Req: &signetv1.UpdateIdentityProviderRequest{IdpId: s.idp, Name: "n"}, Want: ok},
		{Name: "new provider/nothing", As: s.owner, Req: &signetv1.AddJWTIdentityProviderRequest{},
			Want: invalid("name", "jwtEndpoint", "issuer", "keysEndpoint")},
		{Name: "password/nothing", As: s.owner, Req: &signetv1.SetUserPasswordRequest{UserId: s.user.UserID},
			Want: invalid("password")},
		{Name: "own password/nothing", As: s.user, Req: &signetv1.ChangeMyPasswordRequest{},
			Want: invalid("currentPassword", "newPassword")},
		{Name: "sign-in/nothing", Req: &signetv1.CreateSessionRequest{}, Want: invalid("loginName", "password")},
		{Name: "set-up/nothing", As: w.root, Req: &signetv1.SetupOrganizationRequest{}, Want: invalid("org", "human")},
		{Name: "set-up/empty objects", As: w.root, Req: &signetv1.SetupOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{}, Human: &signetv1.SetupOrganizationRequest_Human{}},
			Want: invalid("org.name", "human.userName", "human.profile", "human.email", "human.password")},
		{Name: "set-up/no organization", As: w.root, Req: with(setup("x"), "org", nil), Want: invalid("org")},
		{Name: "set-up/no organization name", As: w.root, Req: with(setup("x"), "org.name", nil),
			Want: invalid("org.name")},
		{Name: "set-up/no human", As: w.root, Req: with(setup("x"), "human", nil), Want: invalid("human")},
		{Name: "set-up/no user name", As: w.root, Req: with(setup("x"), "human.userName", nil),
			Want: invalid("human.userName")},
		{Name: "set-up/no profile", As: w.root, Req: with(setup("x"), "human.profile", nil),
			Want: invalid("human.profile")},
		{Name: "set-up/no first name", As: w.root, Req: with(setup("x"), "human.profile.firstName", nil),
			Want: invalid("human.profile.firstName")},
		{Name: "set-up/no last name", As: w.root, Req: with(setup("x"), "human.profile.lastName", nil),
			Want: invalid("human.profile.lastName")},
		{Name: "set-up/no e-mail", As: w.root, Req: with(setup("x"), "human.email", nil), Want: invalid("human.email")},
		{
			Name: "set-up/no e-mail address",
			As:   w.root,
			Req:  with(with(setup("x"), "human.email.isEmailVerified", true), "human.email.email", nil),
			Want: invalid("human.email.email"),
		},
		{Name: "set-up/phone without number", As: w.root, Req: with(setup("x"), "human.phone.isPhoneVerified", true),
			Want: invalid("human.phone.phone")},
		{Name: "set-up/no password", As: w.root, Req: with(setup("x"), "human.password", nil),
			Want: invalid("human.password")},
		{Name: "set-up/everything wrong is said at once", As: w.root,
			Req: with(with(with(with(setup(""), "org.domain", "a b"), "human.email.email", "nobody"),
				"human.phone.phone", "12"), "roles", []string{"NO"}),
			Want: invalid("org.domain", "human.email.email", "human.phone.phone", "roles[0]", "human.password")},
	}
}

// enumCases send numbers that the definition does not have.
func enumCases(t *testing.T, w *World) []Case {
	s := w.scene(t)
	set := setup("x")
	var cases []Case
	for _, number := range []int{4, 99, -1} {
		cases = append(cases,
			Case{Name: "gender", As: s.user, Req: with(profile(), "gender", number), Want: invalid("gender")},
			Case{Name: "gender at set-up", As: w.root, Req: with(set, "human.profile.gender", number),
				Want: invalid("human.profile.gender")},
			Case{Name: "styling", As: s.owner, Req: with(general(s.idp), "stylingType", number),
				Want: invalid("stylingType")},
			Case{Name: "styling of a new one", As: s.owner, Req: with(addJWT(), "stylingType", number),
				Want: invalid("stylingType")})
	}
	for number := range signetv1.Gender_name {
		cases = append(cases, Case{Name: "gender that exists", As: s.user,
			Req: with(profile(), "gender", int(number)), Want: ok})
	}
	return cases
}

// badTextCases send a NUL to every text field there is, in all operations.
func badTextCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	for _, op := range operations {
		for _, path := range textFields(op) {
			if strings.Contains(op.path, "{") && isParameter(op, path) {
				continue // a malformed identifier is an unknown one, see unknownTargetCases
			}
			req := s.sample(op)
			if op.name() == "ListEvents" { // its sample has a user, and both cannot be given
				req = &signetv1.ListEventsRequest{}
			}
			cases = append(cases, Case{Name: "NUL/" + op.name() + "/" + path, As: s.caller(op.name()),
				Req: with(req, path, "a\x00b"), Want: invalid(path)})
		}
	}
	return append(cases,
		Case{Name: "NUL/roles", As: w.root, Req: with(setup("x"), "roles", []string{"ORG_OWNER", "\x00"}),
			Want: invalid("roles[1]")})
}
