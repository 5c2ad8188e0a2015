package api

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// permit is that of an owner of the installation.
func permit(t *testing.T, org string) access.Permit {
	t.Helper()
	caller := &access.Caller{UserID: "usr_iam", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	p, err := caller.In(org, access.OrgRead)
	must(t, err)
	return p
}

func TestDetailsOfAChangeHaveNoCreationDate(t *testing.T) {
	created, moved := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), time.Date(2026, 2, 2, 3, 4, 5, 7000, time.UTC)
	d := event.Details{Sequence: 1<<63 + 5, Created: created, Changed: moved, Org: "org_a"}
	c := changed(d)
	if c.CreationDate != nil || c.Sequence != 1<<63+5 || !c.ChangeDate.AsTime().Equal(moved) ||
		c.ResourceOwner != "org_a" {
		t.Errorf("changed: %v", c)
	}
	f := complete(d)
	if !f.CreationDate.AsTime().Equal(created) || f.Sequence != c.Sequence || !f.ChangeDate.AsTime().Equal(moved) ||
		f.ResourceOwner != "org_a" {
		t.Errorf("complete: %v", f)
	}
}

// checkEnum wants every number of the API to have a word of its own and back, except zero, which stands for the empty
// word.
func checkEnum[N interface {
	comparable
	protoreflect.Enum
}, W ~string](t *testing.T, name string, e enum[N, W], numbers protoreflect.EnumValueDescriptors,
	of func(protoreflect.EnumNumber) N) {
	t.Run(name, func(t *testing.T) {
		seen := map[W]bool{}
		for i := range numbers.Len() {
			n := of(numbers.Get(i).Number())
			w := e.name(n)
			if n.Number() == 0 {
				if w != "" {
					t.Errorf("%v is called %q", n, w)
				}
				continue
			}
			if w == "" || seen[w] {
				t.Errorf("%v is called %q", n, w)
			}
			seen[w] = true
			if back := e.number(w); back != n {
				t.Errorf("%v is %q is %v", n, w, back)
			}
		}
		if len(e) != len(seen) {
			t.Errorf("the table has %d entries, the API %d values", len(e), len(seen))
		}
		for _, w := range []W{"", "removed", "unknown"} {
			if got := e.number(w); got.Number() != 0 {
				t.Errorf("%q is %v", w, got)
			}
		}
		if got := e.name(of(99)); got != "" {
			t.Errorf("99 is called %q", got)
		}
	})
}

func TestEveryEnumOfTheAPIHasItsWords(t *testing.T) {
	checkEnum(t, "gender", genders, signetv1.Gender(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.Gender { return signetv1.Gender(n) })
	checkEnum(t, "state of users", userStates, signetv1.User_State(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.User_State { return signetv1.User_State(n) })
	checkEnum(t, "type of users", userTypes, signetv1.UserType(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.UserType { return signetv1.UserType(n) })
	checkEnum(t, "state of organizations", orgStates, signetv1.Organization_State(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.Organization_State { return signetv1.Organization_State(n) })
	checkEnum(t, "state of applications", appStates, signetv1.Application_State(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.Application_State {
			return signetv1.Application_State(n)
		})
	checkEnum(t, "type of applications", appTypes, signetv1.ApplicationType(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.ApplicationType {
			return signetv1.ApplicationType(n)
		})
	checkEnum(t, "method of applications", authMethods, signetv1.AuthMethod(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.AuthMethod { return signetv1.AuthMethod(n) })
	checkEnum(t, "grant type", grantTypes, signetv1.GrantType(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.GrantType { return signetv1.GrantType(n) })
	checkEnum(t, "token format", tokenFormats, signetv1.TokenFormat(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.TokenFormat { return signetv1.TokenFormat(n) })
	checkEnum(t, "claims of ID tokens", idTokenClaims, signetv1.IDTokenClaims(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.IDTokenClaims {
			return signetv1.IDTokenClaims(n)
		})
	checkEnum(t, "signing algorithm", signingAlgorithms, signetv1.SigningAlgorithm(0).Descriptor().Values(),
		func(n protoreflect.EnumNumber) signetv1.SigningAlgorithm {
			return signetv1.SigningAlgorithm(n)
		})
}

func setupRequest(change ...func(*signetv1.SetupOrganizationRequest)) *signetv1.SetupOrganizationRequest {
	r := &signetv1.SetupOrganizationRequest{
		Org: &signetv1.SetupOrganizationRequest_Org{Name: "Acme"},
		Human: &signetv1.SetupOrganizationRequest_Human{UserName: "jo", Password: "correct horse",
			Profile: &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Jo", LastName: "Doe", NickName: "J",
				PreferredLanguage: "de", Gender: signetv1.Gender_GENDER_DIVERSE},
			Email: &signetv1.SetupOrganizationRequest_Human_Email{Email: "jo@example.org", IsEmailVerified: true},
			Phone: &signetv1.SetupOrganizationRequest_Human_Phone{Phone: "+41-44-5550123", IsPhoneVerified: true}},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func TestCheckNamesWhatTheFieldRulesCannot(t *testing.T) {
	for _, c := range []struct {
		name string
		req  proto.Message
		want []string
	}{
		{"nothing is wrong", setupRequest(), nil},
		{"an address with a display name",
			setupRequest(func(r *signetv1.SetupOrganizationRequest) { r.Human.Email.Email = "Jo <jo@example.org>" }),
			[]string{"human.email.email"}},
		{"a number with spaces",
			setupRequest(func(r *signetv1.SetupOrganizationRequest) { r.Human.Phone.Phone = "+41 44" }),
			[]string{"human.phone.phone"}},
		{"a domain with a port", setupRequest(func(r *signetv1.SetupOrganizationRequest) { r.Org.Domain = "a:80" }),
			[]string{"org.domain"}},
		{"a role of the installation",
			setupRequest(func(r *signetv1.SetupOrganizationRequest) { r.Roles = []string{"ORG_OWNER", "IAM_OWNER"} }),
			[]string{"roles[1]"}},
		{"all of it at once", setupRequest(func(r *signetv1.SetupOrganizationRequest) {
			r.Org.Domain, r.Human.Email.Email, r.Human.Phone.Phone, r.Roles = "@", "x", "1", []string{"?"}
		}), []string{"org.domain", "human.email.email", "human.phone.phone", "roles[0]"}},
		{"what is missing", &signetv1.SetupOrganizationRequest{},
			[]string{"org.name", "human.userName", "human.profile.firstName", "human.profile.lastName",
				"human.email.email"}},
		{"a new person's addresses", &signetv1.AddHumanUserRequest{
			UserName: "u",
			Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "F", LastName: "L"},
			Email:    &signetv1.SetupOrganizationRequest_Human_Email{Email: "x"},
			Phone:    &signetv1.SetupOrganizationRequest_Human_Phone{Phone: "1"},
		}, []string{"email.email", "phone.phone"}},
		{"an e-mail address", &signetv1.SetUserEmailRequest{Email: "x"}, []string{"email"}},
		{"my e-mail address", &signetv1.SetMyEmailRequest{Email: "x"}, []string{"email"}},
		{"a phone number", &signetv1.SetUserPhoneRequest{Phone: "1"}, []string{"phone"}},
		{"my phone number", &signetv1.SetMyPhoneRequest{Phone: "1"}, []string{"phone"}},
		{"an address that is missing", &signetv1.SetMyEmailRequest{}, nil},
		{"one beginning", &signetv1.ListUsersRequest{Email: "a"}, nil},
		{"two beginnings", &signetv1.ListUsersRequest{Name: "a", Email: "b"}, []string{"email"}},
		{"three beginnings", &signetv1.ListUsersRequest{UserName: "a", Name: "b", Email: "c"},
			[]string{"name", "email"}},
		{"other requests have nothing to check", &signetv1.SetUserPasswordRequest{}, nil},
		{"no request", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range (Checker{Clock: time.Now}).check(c.req) {
				got = append(got, v.Field)
				if v.Message == "" {
					t.Errorf("%s says nothing", v.Field)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestASetupRequestLosesNothingOnItsWay(t *testing.T) {
	got := organizationOf(setupRequest(func(r *signetv1.SetupOrganizationRequest) {
		r.Org.Domain, r.Human.Profile.DisplayName, r.Roles = "acme.test", "D", []string{"ORG_OWNER"}
	}))
	want := setup.Organization{
		Name:     "Acme",
		Domain:   "acme.test",
		Password: "correct horse",
		Roles:    []string{"ORG_OWNER"},
		Human: user.NewHuman{
			UserName: "jo", Email: "jo@example.org", EmailVerified: true, Phone: "+41-44-5550123", PhoneVerified: true,
			Profile: user.Profile{FirstName: "Jo", LastName: "Doe", NickName: "J", DisplayName: "D",
				PreferredLanguage: "de", Gender: user.Diverse}},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestTheIdempotencyKeyBelongsToCallerMethodAndRequest(t *testing.T) {
	master := secret.NewMasterKey()
	now := eventtest.Start
	base := call.Info{Caller: &access.Caller{UserID: "usr_a"},
		Procedure: "signet.v1.OrganizationService/SetupOrganization", IdempotencyKey: "k1", OrgHeader: ""}
	make := func(t *testing.T, info call.Info, req proto.Message) event.Once {
		t.Helper()
		o, err := onceFor(call.With(t.Context(), &info), master, now, req)
		must(t, err)
		return o
	}
	first := make(t, base, setupRequest())
	if first.Expires != event.Micros(now.Add(24*time.Hour)) {
		t.Errorf("kept until %d", first.Expires)
	}
	for _, c := range []struct {
		name             string
		change           func(*call.Info)
		req              proto.Message
		sameKey, sameReq bool
	}{
		{"again", func(*call.Info) {}, setupRequest(), true, true},
		{"another caller", func(i *call.Info) { i.Caller = &access.Caller{UserID: "usr_b"} },
			setupRequest(), false, false},
		{"another method", func(i *call.Info) { i.Procedure = "x" }, setupRequest(), false, false},
		{"another key", func(i *call.Info) { i.IdempotencyKey = "k2" }, setupRequest(), false, true},
		{"another password", func(*call.Info) {},
			setupRequest(func(r *signetv1.SetupOrganizationRequest) { r.Human.Password = "x" }), true, false},
		{"another organization", func(i *call.Info) { i.Permit = permit(t, "org_b") }, setupRequest(), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := base
			c.change(&info)
			got := make(t, info, c.req)
			if (got.Key == first.Key) != c.sameKey || (string(got.Request) == string(first.Request)) != c.sameReq {
				t.Errorf("same key: %t, same request: %t", got.Key == first.Key,
					string(got.Request) == string(first.Request))
			}
		})
	}
	t.Run("none was sent", func(t *testing.T) {
		info := base
		info.IdempotencyKey = ""
		if got := make(t, info, setupRequest()); got.Key != "" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestTheOperationsAnswer goes through every operation once, from a message to a message, to see that each field of a
// request arrives where it belongs. The rules themselves are tested next to them.
func TestTheOperationsAnswer(t *testing.T) {
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, idp.Kind, session.Kind)
	hasher := secret.NewCheapHasher()
	set := setup.Setup{Store: s, Hasher: hasher, DomainSuffix: "id.test"}
	sessions := &session.Sessions{Store: s, Hasher: hasher, Master: s.Master, Clock: s.Now,
		Standings: &session.Standings{}}
	orgs := Organizations{Setup: set, Master: s.Master, Clock: s.Now}
	users := Users{Store: s, Hasher: hasher, Sessions: sessions}
	idps := IdentityProviders{Store: s, Master: s.Master, Clock: s.Now}
	ctx := t.Context()
	in := func(info call.Info) *call.Info {
		info.RequestID, info.Peer = "req_1", netip.MustParseAddr("192.0.2.1")
		return &info
	}
	iam := &access.Caller{UserID: "usr_iam", OrgID: "org_iam",
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	system, err := iam.In(access.Installation, access.OrgSetup)
	must(t, err)

	setupInfo := in(call.Info{Caller: iam, Permit: system, Procedure: "setup", IdempotencyKey: "k"})
	made, err := orgs.SetupOrganization(call.With(ctx, setupInfo), setupRequest())
	must(t, err)
	if made.GetDetails().GetSequence() != 2 || made.GetDetails().GetCreationDate() == nil ||
		made.GetDetails().GetResourceOwner() != made.GetOrgId() {
		t.Errorf("set up: %v", made)
	}
	again, err := orgs.SetupOrganization(call.With(ctx, setupInfo), setupRequest())
	must(t, err)
	if !proto.Equal(made, again) {
		t.Errorf("the same again: %v, first: %v", again, made)
	}
	_, err = orgs.SetupOrganization(call.With(ctx, setupInfo),
		setupRequest(func(r *signetv1.SetupOrganizationRequest) { r.Org.Name = "Other" }))
	eventtest.Refused(t, err, errs.InvalidArgument, event.IdempotencyKeyReused, "idempotency-key")

	permit, err := iam.In(made.GetOrgId(), access.OrgWrite)
	must(t, err)
	permitted := call.With(ctx, in(call.Info{Caller: iam, Permit: permit}))
	o, err := orgs.GetOrganization(permitted, &signetv1.GetOrganizationRequest{OrgId: made.GetOrgId()})
	must(t, err)
	if g := o.GetOrg(); g.GetName() != "Acme" || g.GetPrimaryDomain() != "acme.id.test" ||
		g.GetState() != signetv1.Organization_STATE_ACTIVE || g.GetDetails().GetCreationDate() == nil {
		t.Errorf("organization %v", g)
	}

	public := call.With(ctx, in(call.Info{UserAgent: "browser"}))
	entered, err := Sessions{Sessions: sessions}.CreateSession(public,
		&signetv1.CreateSessionRequest{LoginName: "jo", Password: "correct horse", OrgId: made.GetOrgId()})
	must(t, err)
	if entered.GetUserId() != made.GetUserId() || entered.GetToken() == "" || entered.GetPasswordChangeRequired() ||
		!entered.GetExpirationDate().AsTime().Equal(s.Now().Add(12*time.Hour)) {
		t.Errorf("session of %s until %v", entered.GetUserId(), entered.GetExpirationDate().AsTime())
	}
	jo, err := sessions.Authenticate(ctx, entered.GetToken())
	must(t, err)
	self := call.With(ctx, in(call.Info{Caller: jo}))

	updated, err := users.UpdateMyProfile(self,
		&signetv1.UpdateMyProfileRequest{FirstName: "A", LastName: "B", NickName: proto.String("C"), DisplayName: "D",
			PreferredLanguage: "en", Gender: signetv1.Gender_GENDER_FEMALE})
	must(t, err)
	if updated.GetDetails().GetCreationDate() != nil || updated.GetDetails().GetSequence() != 4 {
		t.Errorf("profile: %v", updated)
	}
	// A request reads what came with its credential, so the next one sees the change.
	jo, err = sessions.Authenticate(ctx, entered.GetToken())
	must(t, err)
	self = call.With(ctx, in(call.Info{Caller: jo}))
	mine, err := users.GetMyUser(self, &signetv1.GetMyUserRequest{})
	must(t, err)
	theirs, err := users.GetUser(permitted, &signetv1.GetUserRequest{UserId: made.GetUserId()})
	must(t, err)
	want := &signetv1.User{
		UserId:     made.GetUserId(),
		State:      signetv1.User_STATE_ACTIVE,
		UserName:   "jo",
		LoginNames: []string{"jo@acme.id.test"},
		Details:    mine.GetUser().GetDetails(),
		Type: &signetv1.User_Human_{
			Human: &signetv1.User_Human{
				Email:           "jo@example.org",
				IsEmailVerified: true,
				Phone:           "+41-44-5550123",
				IsPhoneVerified: true,
				Profile: &signetv1.User_Profile{FirstName: "A", LastName: "B", NickName: "C", DisplayName: "D",
					PreferredLanguage: "en", Gender: signetv1.Gender_GENDER_FEMALE},
			},
		},
	}
	if !proto.Equal(mine.GetUser(), want) || !proto.Equal(theirs.GetUser(), want) ||
		mine.GetUser().GetDetails().GetCreationDate() == nil {
		t.Errorf("mine %v\ntheirs %v\nwant %v", mine, theirs, want)
	}

	_, err = users.ChangeMyPassword(self,
		&signetv1.ChangeMyPasswordRequest{CurrentPassword: "correct horse", NewPassword: "battery staple"})
	must(t, err)
	if _, err := sessions.Authenticate(ctx, entered.GetToken()); err != nil {
		t.Errorf("the session that changed the password: %v", err)
	}
	set1, err := users.SetUserPassword(permitted,
		&signetv1.SetUserPasswordRequest{UserId: made.GetUserId(), Password: "x"})
	must(t, err)
	if !eventtest.State(t, s, user.Kind, made.GetUserId()).Data.Password.ChangeRequired {
		t.Error("by default the password has to be changed")
	}
	info := in(call.Info{Caller: iam, Permit: permit,
		IfMatch: event.IfMatch{Set: true, Sequence: set1.GetDetails().GetSequence()}})
	_, err = users.SetUserPassword(call.With(ctx, info),
		&signetv1.SetUserPasswordRequest{UserId: made.GetUserId(), Password: "y", NoChangeRequired: true})
	must(t, err)
	if eventtest.State(t, s, user.Kind, made.GetUserId()).Data.Password.ChangeRequired {
		t.Error("noChangeRequired was lost")
	}
	_, err = users.SetUserPassword(call.With(ctx, info),
		&signetv1.SetUserPasswordRequest{UserId: made.GetUserId(), Password: "z"})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)

	added, err := idps.AddJWTIdentityProvider(permitted, &signetv1.AddJWTIdentityProviderRequest{
		Name:         "N",
		StylingType:  signetv1.StylingType_STYLING_TYPE_GOOGLE,
		AutoRegister: true,
		JwtEndpoint:  "e",
		Issuer:       "i",
		KeysEndpoint: "k",
		HeaderName:   "h",
	})
	must(t, err)
	got, err := idps.GetIdentityProvider(permitted, &signetv1.GetIdentityProviderRequest{IdpId: added.GetIdpId()})
	must(t, err)
	provider := &signetv1.IdentityProvider{
		IdpId:        added.GetIdpId(),
		Details:      added.GetDetails(),
		State:        signetv1.IdentityProvider_STATE_ACTIVE,
		Name:         "N",
		StylingType:  signetv1.StylingType_STYLING_TYPE_GOOGLE,
		AutoRegister: true,
		VouchedBy:    "usr_iam",
		Offered:      true,
		Config: &signetv1.IdentityProvider_Jwt{Jwt: &signetv1.IdentityProvider_JWT{JwtEndpoint: "e", Issuer: "i",
			KeysEndpoint: "k", HeaderName: "h"}},
	}
	if !proto.Equal(got.GetIdp(), provider) {
		t.Errorf("got %v, want %v", got.GetIdp(), provider)
	}
	_, err = idps.UpdateJWTIdentityProvider(permitted,
		&signetv1.UpdateJWTIdentityProviderRequest{IdpId: added.GetIdpId(), JwtEndpoint: "e2", Issuer: "i2",
			KeysEndpoint: "k2"})
	must(t, err)
	last, err := idps.UpdateIdentityProvider(call.With(ctx, in(call.Info{Caller: iam})),
		&signetv1.UpdateIdentityProviderRequest{IdpId: added.GetIdpId(), Name: "N2"})
	must(t, err)
	got, err = idps.GetIdentityProvider(permitted, &signetv1.GetIdentityProviderRequest{IdpId: added.GetIdpId()})
	must(t, err)
	if g := got.GetIdp(); g.GetName() != "N2" || g.GetStylingType() != 0 || g.GetAutoRegister() ||
		g.GetJwt().GetJwtEndpoint() != "e2" || g.GetJwt().GetIssuer() != "i2" ||
		g.GetJwt().GetKeysEndpoint() != "k2" || g.GetJwt().GetHeaderName() != "" ||
		g.GetDetails().GetSequence() != last.GetDetails().GetSequence() {
		t.Errorf("after both updates: %v", g)
	}
	_, err = idps.UpdateIdentityProvider(call.With(ctx, in(call.Info{Caller: iam, OrgHeader: "org_other"})),
		&signetv1.UpdateIdentityProviderRequest{IdpId: added.GetIdpId(), Name: "N3"})
	eventtest.As(t, err, idp.ErrNotFound)

	// All sessions ended with the password; a new one can be ended by its owner.
	entered, err = Sessions{Sessions: sessions}.CreateSession(public,
		&signetv1.CreateSessionRequest{LoginName: "jo@acme.id.test", Password: "y"})
	must(t, err)
	_, err = Sessions{Sessions: sessions}.EndSession(self,
		&signetv1.EndSessionRequest{SessionId: entered.GetSessionId()})
	must(t, err)
	_, err = sessions.Authenticate(ctx, entered.GetToken())
	eventtest.As(t, err, access.ErrUnauthenticated)
}

func TestAServiceUserIsShownAsOne(t *testing.T) {
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, session.Kind)
	first, err := setup.Setup{Store: s, Hasher: secret.NewCheapHasher(), DomainSuffix: "id.test"}.First(t.Context(),
		func(setup.FirstAdmin) error { return nil })
	must(t, err)
	ctx := call.With(t.Context(), &call.Info{Permit: permit(t, first.OrgID)})
	got, err := Users{Store: s}.GetUser(ctx, &signetv1.GetUserRequest{UserId: first.ServiceUserID})
	must(t, err)
	if got.GetUser().GetService().GetName() == "" || got.GetUser().GetHuman() != nil {
		t.Errorf("got %v", got)
	}
}

func TestARefusalIsAnsweredAsItIs(t *testing.T) {
	s := eventtest.New(t, org.Kind, user.Kind, idp.Kind)
	ctx := call.With(t.Context(),
		&call.Info{Caller: &access.Caller{UserID: "usr_x", OrgID: "org_x"}, Permit: permit(t, "org_x")})
	users := Users{Store: s, Hasher: secret.NewHasher(1, 1)}
	idps := IdentityProviders{Store: s, Master: s.Master, Clock: s.Now}
	for name, c := range map[string]struct {
		err  func() error
		want *errs.Error
	}{
		"get user": {func() error { _, err := users.GetUser(ctx, &signetv1.GetUserRequest{}); return err },
			user.ErrNotFound},
		"get my user": {func() error { _, err := users.GetMyUser(ctx, nil); return err }, user.ErrNotFound},
		"update my profile": {func() error {
			_, err := users.UpdateMyProfile(ctx,
				&signetv1.UpdateMyProfileRequest{FirstName: "F", LastName: "L", DisplayName: "D"})
			return err
		}, user.ErrNotFound},
		"set password": {func() error { _, err := users.SetUserPassword(ctx, nil); return err }, user.ErrNotFound},
		"get provider": {func() error { _, err := idps.GetIdentityProvider(ctx, nil); return err }, idp.ErrNotFound},
		"update provider": {func() error { _, err := idps.UpdateIdentityProvider(ctx, nil); return err },
			access.ErrDenied},
		"update JWT": {func() error {
			_, err := idps.UpdateJWTIdentityProvider(ctx,
				&signetv1.UpdateJWTIdentityProviderRequest{JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k"})
			return err
		}, idp.ErrNotFound},
		"add a JWT provider": {func() error {
			_, err := idps.AddJWTIdentityProvider(ctx,
				&signetv1.AddJWTIdentityProviderRequest{Name: "N", JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k"})
			return err
		}, org.ErrNotFound},
		"get organization": {func() error {
			_, err := Organizations{Setup: setup.Setup{Store: s}, Clock: s.Now}.GetOrganization(ctx, nil)
			return err
		}, org.ErrNotFound},
		"set up": {func() error {
			_, err := Organizations{Setup: setup.Setup{Store: s, Hasher: secret.NewHasher(1, 1)},
				Clock: s.Now}.SetupOrganization(ctx, nil)
			return err
		}, access.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) { eventtest.As(t, c.err(), c.want) })
	}
}

// problems are what a check finds.
type problems []idp.Problem

func (p problems) Check(context.Context, *event.Object[idp.Provider]) []idp.Problem { return p }

func TestACheckAnswersEveryProblem(t *testing.T) {
	s := eventtest.New(t, org.Kind, idp.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "A"})
	eventtest.Given(t, s, idp.Kind, "idp_a", "org_a", nil, idp.JWTAdded{General: idp.General{Name: "P"}})
	caller := &access.Caller{UserID: "usr_iam", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	permit, err := caller.In("org_a", access.IDPWrite)
	must(t, err)
	ctx := call.With(t.Context(), &call.Info{Caller: caller, Permit: permit})
	ask := func(found idp.Checker) (*signetv1.CheckIdentityProviderResponse, error) {
		return IdentityProviders{Store: s, Master: s.Master, Clock: s.Now, Checker: found}.CheckIdentityProvider(ctx,
			&signetv1.CheckIdentityProviderRequest{IdpId: "idp_a"})
	}
	_, err = ask(nil)
	eventtest.As(t, err, idp.ErrNoChecker)
	got, err := ask(problems{{Check: "issuer", Message: "m", Hint: "h"},
		{Check: "clock", Message: "n", Hint: "i", Warning: true}})
	must(t, err)
	want := &signetv1.CheckIdentityProviderResponse{
		Details: got.GetDetails(),
		Problems: []*signetv1.CheckIdentityProviderResponse_Problem{
			{Check: "issuer", Message: "m", Hint: "h"}, {Check: "clock", Message: "n", Hint: "i", Warning: true}},
	}
	if !proto.Equal(got, want) || got.GetDetails().GetSequence() != 1 {
		t.Errorf("got %v", got)
	}
	got, err = ask(problems{{Check: "clock", Warning: true}})
	must(t, err)
	if !got.GetOk() || got.GetDetails().GetSequence() != 2 ||
		eventtest.State(t, s, idp.Kind, "idp_a").Data.Changer == nil {
		t.Errorf("got %v", got)
	}
}
