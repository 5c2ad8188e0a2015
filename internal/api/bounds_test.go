package api

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/transport/rpc/fieldrules"
	"github.com/signet-idm/signet/test/costtest"
)

// outside are variants of a request with one text or list out of the bounds that the definition gives it. What may be
// left out and is sent empty is the same to a rule.
func outside(m protoreflect.Message) (variants []proto.Message) {
	var walk func(at protoreflect.Message, needed bool, copied func() (root, at protoreflect.Message))
	walk = func(at protoreflect.Message, needed bool, copied func() (protoreflect.Message, protoreflect.Message)) {
		vary := func(change func(protoreflect.Message)) {
			root, at := copied()
			change(at)
			variants = append(variants, root.Interface())
		}
		for i := range at.Descriptor().Fields().Len() {
			fd := at.Descriptor().Fields().Get(i)
			rules, _ := proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
			switch {
			case fd.Message() != nil && !fd.IsList() && at.Has(fd):
				walk(at.Get(fd).Message(), rules.GetRequired(), func() (protoreflect.Message, protoreflect.Message) {
					root, at := copied()
					return root, at.Mutable(fd).Message()
				})
			case fd.IsList() && fd.Kind() == protoreflect.StringKind && at.Get(fd).List().Len() > 0:
				element := at.Get(fd).List().Get(0)
				if most := rules.GetRepeated().GetMaxItems(); most > 0 {
					vary(func(at protoreflect.Message) {
						for range most {
							at.Mutable(fd).List().Append(element)
						}
					})
				}
				if most := rules.GetRepeated().GetItems().GetString().GetMaxLen(); most > 0 {
					vary(func(at protoreflect.Message) {
						at.Mutable(fd).List().Append(protoreflect.ValueOfString(strings.Repeat("é", int(most)+1)))
					})
				}
			case fd.Kind() == protoreflect.StringKind && !fd.IsList():
				if rules.GetString().GetMinLen() > 0 && needed && !fd.HasOptionalKeyword() {
					vary(func(at protoreflect.Message) { at.Set(fd, protoreflect.ValueOfString("")) })
				}
				if most := rules.GetString().GetMaxLen(); most > 0 {
					vary(func(at protoreflect.Message) {
						at.Set(fd, protoreflect.ValueOfString(strings.Repeat("é", int(most)+1)))
					})
				}
			}
		}
	}
	walk(m, true, func() (protoreflect.Message, protoreflect.Message) {
		root := proto.Clone(m.Interface()).ProtoReflect()
		return root, root
	})
	return variants
}

// TestTheRulesRefuseWhatTheDefinitionRefuses calls operations past the chain that judges requests by the definition:
// the rules behind them say the same of every text and list that is out of bounds.
func TestTheRulesRefuseWhatTheDefinitionRefuses(t *testing.T) {
	s := eventtest.New(t, model.Kinds...)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"})
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "A"})
	eventtest.Given(t, s, user.Kind, "usr_me", "org_a", []event.Claim{user.NameClaim("org_a", "me")},
		user.HumanAdded{Personal: user.HumanFacts{UserNameKey: "me"}})
	eventtest.Given(t, s, user.Kind, "usr_robot", "org_a", []event.Claim{user.NameClaim("org_a", "robot")},
		user.ServiceAdded{Personal: user.ServiceFacts{UserNameKey: "robot"}})
	eventtest.Given(t, s, idp.Kind, "idp_jwt", "org_a", nil, idp.JWTAdded{General: idp.General{Name: "P"}})
	eventtest.Given(t, s, idp.Kind, "idp_oidc", "org_a", nil, idp.OIDCAdded{General: idp.General{Name: "P"}})
	eventtest.Given(t, s, idp.Kind, "idp_oauth", "org_a", nil, idp.OAuthAdded{General: idp.General{Name: "P"}})
	eventtest.Given(t, s, app.Kind, "app_1", "org_a", nil, app.Added{
		Name: "App",
		Type: app.Web,
		Settings: app.Settings{AuthMethod: app.SecretBasic,
			GrantTypes: []app.GrantType{app.AuthorizationCode}, RedirectURIs: []string{"https://app.example/"}},
	})
	eventtest.Given(t, s, webhook.Kind, "whk_1", "org_a", nil, webhook.Added{Name: "Hook"})

	hasher := secret.NewHasher(1, 1)
	users := Users{Store: s, Hasher: hasher, Master: s.Master, Clock: s.Now}
	providers := IdentityProviders{Store: s, Master: s.Master, Clock: s.Now}
	organizations := Organizations{Setup: setup.Setup{Store: s, Hasher: hasher}, Master: s.Master, Clock: s.Now}
	hooks := Webhooks{&webhook.Webhooks{Store: s, Root: s.Master, Clock: s.Now}}
	shared := Projects{Store: s, Master: s.Master, Clock: s.Now}
	everything := &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "F", LastName: "L", NickName: "N",
		DisplayName: "D", PreferredLanguage: "de"}
	email, phone := &signetv1.SetupOrganizationRequest_Human_Email{Email: "a@b"},
		&signetv1.SetupOrganizationRequest_Human_Phone{Phone: "+1"}
	unlisted := bounded()
	masked := func(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }
	for _, c := range []struct {
		service any
		req     proto.Message
	}{
		{users, &signetv1.UpdateMyProfileRequest{FirstName: "F", LastName: "L", NickName: proto.String("N"),
			DisplayName: "D"}},
		{users, &signetv1.UpdateUserProfileRequest{UserId: "usr_me", FirstName: "F", LastName: "L",
			NickName: proto.String("N"), DisplayName: "D"}},
		{users, &signetv1.AddHumanUserRequest{UserName: "u", Profile: everything, Email: email, Phone: phone}},
		{users, &signetv1.AddServiceUserRequest{UserName: "u", Name: "N"}},
		{users, &signetv1.UpdateServiceUserRequest{UserId: "usr_robot", Name: "N"}},
		{users, &signetv1.SetUserNameRequest{UserId: "usr_me", UserName: "u"}},
		{users, &signetv1.SetUserPhoneRequest{UserId: "usr_me", Phone: "+1"}},
		{users, &signetv1.SetMyPhoneRequest{Phone: "+1"}},
		{users, &signetv1.SetUserPasswordRequest{UserId: "usr_me", Password: "p"}},
		{organizations, &signetv1.SetupOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{Name: "N", Domain: "a.example"},
			Human: &signetv1.SetupOrganizationRequest_Human{UserName: "u", Profile: everything, Email: email,
				Phone: phone, Password: "p"},
		}},
		{organizations, &signetv1.SetupInvitedOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{Name: "N", Domain: "a.example"}, Email: "a@b", Language: "de",
		}},
		{organizations, &signetv1.UpdateOrganizationRequest{OrgId: "org_a", Name: "N"}},
		{organizations, &signetv1.AddDomainRequest{OrgId: "org_a", Domain: "a.example"}},
		{providers, &signetv1.AddJWTIdentityProviderRequest{Name: "N", JwtEndpoint: "e", Issuer: "i",
			KeysEndpoint: "k"}},
		{providers, &signetv1.UpdateJWTIdentityProviderRequest{IdpId: "idp_jwt", JwtEndpoint: "e", Issuer: "i",
			KeysEndpoint: "k"}},
		{providers, &signetv1.UpdateIdentityProviderRequest{IdpId: "idp_jwt", Name: "N"}},
		{providers, &signetv1.AddOIDCIdentityProviderRequest{
			Name:     "N",
			Issuer:   "i",
			ClientId: "c",
			Scopes:   []string{"s"},
			Preset:   signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GOOGLE,
			Tenants:  []string{"t"},
			Claims:   &signetv1.IdentityProviderClaims{Email: "e"},
		}},
		{providers, &signetv1.AddOAuthIdentityProviderRequest{Name: "N", AuthorizationEndpoint: "a", TokenEndpoint: "t",
			UserEndpoint: "u", ClientId: "c", Scopes: []string{"s"},
			Claims: &signetv1.IdentityProviderClaims{Email: "e"}}},
		{providers, &signetv1.ModifyIdentityProviderRequest{
			IdpId:      "idp_jwt",
			Name:       "N",
			Jwt:        &signetv1.ModifyIdentityProviderRequest_JWT{JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k"},
			UpdateMask: masked("name", "jwt"),
		}},
		{providers, &signetv1.ModifyIdentityProviderRequest{
			IdpId:      "idp_oidc",
			Oidc:       &signetv1.ModifyIdentityProviderRequest_OIDC{Issuer: "i", ClientId: "c", Scopes: []string{"s"}},
			UpdateMask: masked("name", "oidc", "oidc.client_secret"),
		}},
		{providers, &signetv1.ModifyIdentityProviderRequest{
			IdpId: "idp_oauth",
			Oauth: &signetv1.ModifyIdentityProviderRequest_OAuth{
				AuthorizationEndpoint: "a",
				TokenEndpoint:         "t",
				UserEndpoint:          "u",
				ClientId:              "c",
				Scopes:                []string{"s"},
				Claims:                &signetv1.IdentityProviderClaims{Email: "e"},
			},
			UpdateMask: masked("name", "oauth", "oauth.client_secret"),
		}},
		{Applications{Store: s, Master: s.Master, Clock: s.Now}, &signetv1.AddApplicationRequest{
			Name:           "N",
			Type:           signetv1.ApplicationType_APPLICATION_TYPE_WEB,
			RedirectUris:   []string{"https://a.example/"},
			PostLogoutUris: []string{"https://a.example/"},
		}},
		{Applications{Store: s, Master: s.Master, Clock: s.Now}, &signetv1.ModifyApplicationRequest{
			AppId:          "app_1",
			Name:           "N",
			RedirectUris:   []string{"https://a.example/"},
			PostLogoutUris: []string{"https://a.example/"},
			UpdateMask: masked("name", "redirect_uris", "post_logout_uris", "back_channel_logout_uri",
				"initiate_login_uri", "key_set_uri"),
		}},
		{Applications{Store: s, Master: s.Master, Clock: s.Now},
			&signetv1.SetApplicationRoleSettingsRequest{AppId: "app_1", MetadataKeys: []string{"k"}}},
		{shared, &signetv1.AddProjectRequest{Name: "N"}},
		{shared, &signetv1.RenameProjectRequest{ProjectId: "prj_1", Name: "N"}},
		{shared, &signetv1.SetProjectRoleRequest{ProjectId: "prj_1", Key: "k"}},
		{shared, &signetv1.AddProjectGrantRequest{ProjectId: "prj_1", GrantedOrgId: "org_b", RoleKeys: []string{"k"}}},
		{shared, &signetv1.SetProjectGrantRolesRequest{ProjectId: "prj_1", GrantId: "pgr_1", RoleKeys: []string{"k"}}},
		{shared, &signetv1.SetUserAppRolesRequest{UserId: "usr_me", ProjectId: "prj_1", RoleKeys: []string{"k"}}},
		{shared, &signetv1.SetGroupAppRolesRequest{GroupId: "grp_1", ProjectId: "prj_1", RoleKeys: []string{"k"}}},
		{hooks, &signetv1.AddWebhookRequest{Name: "N", Url: "https://a.example/", Types: []string{"user.*"},
			OrganizationIds: []string{"org_a"}}},
		{hooks, &signetv1.ModifyWebhookRequest{WebhookId: "whk_1", Name: "N", Types: []string{"user.*"},
			UpdateMask: masked("name", "url", "types")}},
		{Groups{Store: s, Master: s.Master, Clock: s.Now}, &signetv1.AddGroupRequest{Name: "N", Description: "D"}},
		{Groups{Store: s, Master: s.Master, Clock: s.Now},
			&signetv1.UpdateGroupRequest{GroupId: "grp_1", Name: "N", Description: "D"}},
		{Roles{Store: s, Master: s.Master, Clock: s.Now},
			&signetv1.AddOrganizationRoleRequest{OrgId: "org_a", Name: "N", Description: "D", Permissions: []string{"user.read"}}},
		{Roles{Store: s, Master: s.Master, Clock: s.Now}, &signetv1.UpdateOrganizationRoleRequest{OrgId: "org_a",
			RoleId: "role_1", Name: "N", Description: "D", Permissions: []string{"user.read"}}},
		{Roles{Store: s, Master: s.Master, Clock: s.Now},
			&signetv1.AddInstallationRoleRequest{Name: "N", Description: "D", Permissions: []string{"user.read"}}},
		{Roles{Store: s, Master: s.Master, Clock: s.Now}, &signetv1.UpdateInstallationRoleRequest{RoleId: "role_1",
			Name: "N", Description: "D", Permissions: []string{"user.read"}}},
		{Credentials{Store: s}, &signetv1.AddServiceWorkloadRuleRequest{UserId: "usr_robot", Issuer: "https://i.example",
			Claims: []*signetv1.WorkloadClaim{{Name: "sub", Value: "v"}}}},
		{Factors{Store: s}, &signetv1.RenameMyFactorRequest{FactorId: "fac_1", Name: "N"}},
		{Metadata{Store: s}, &signetv1.SetUserMetadataRequest{UserId: "usr_me", Remove: []string{"k"}}},
		{Metadata{Store: s}, &signetv1.SetOrganizationMetadataRequest{OrgId: "org_a", Remove: []string{"k"}}},
		{Metadata{Store: s}, &signetv1.SetApplicationMetadataRequest{AppId: "app_1", Remove: []string{"k"}}},
		{Metadata{Store: s}, &signetv1.SetProjectMetadataRequest{ProjectId: "prj_1", Remove: []string{"k"}}},
	} {
		name := strings.TrimSuffix(string(c.req.ProtoReflect().Descriptor().Name()), "Request")
		delete(unlisted, name)
		t.Run(name, func(t *testing.T) { sameViolations(t, c.service, name, c.req) })
	}
	for name, fields := range unlisted {
		t.Errorf("%s has bounds for %v: add a request to the list, or a reason to boundedElsewhere", name, fields)
	}
}

// boundedElsewhere are operations whose texts and lists are not compared here, by what else refuses them.
var boundedElsewhere = map[string]string{
	"AcceptInvitation":             "the rules of AddHumanUser",
	"FinishRegistration":           "the rules of AddHumanUser",
	"ImportUsers":                  "the rules of AddHumanUser",
	"StartRegistration":            "the rules of AddHumanUser",
	"CreateInvitation":             "the rules of AddHumanUser, roles and groups that there are",
	"AcceptMyRoles":                "roles that there are",
	"SetGroupRoles":                "roles that there are",
	"SetInstallationMember":        "roles that there are",
	"SetOrganizationMember":        "roles that there are",
	"SetApplicationAPIAccess":      "scopes that there are",
	"SetApplicationClaimMappings":  "TestClaimMappingsHaveTheBoundsOfTheDefinition",
	"SetInstallationPolicy":        "the rules of a policy",
	"SetOrganizationPolicy":        "the rules of a policy",
	"PreviewOrganizationPolicy":    "the rules of a policy",
	"AddApplicationKey":            "the reader of keys",
	"AddServiceKey":                "the reader of keys",
	"AcceptMyInvitation":           "what is compared with it",
	"CreateSessionThroughProvider": "what is compared with it",
	"CreateSessionWithPasskey":     "what is compared with it",
	"ProveSecondFactor":            "what is compared with it",
	"VerifyMyEmail":                "what is compared with it",
	"VerifyMyPhone":                "what is compared with it",
	"StartProviderSignIn":          "the provider",
	"StartSignInTrial":             "the reader of OAuth requests",
	"ChangeMyPassword":             "TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition",
	"ConfirmMyPasskey":             "TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition",
	"ConfirmMyTOTP":                "TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition",
	"CreateMyToken":                "TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition",
	"CreateUserToken":              "TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition",
	"ResetPassword":                "TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition",
}

// bounded gives the texts and lists with bounds in the requests of operations that change something, but for those of
// boundedElsewhere and for identifiers.
func bounded() map[string][]string {
	found := map[string][]string{}
	for _, o := range costtest.Operations() {
		name := string(o.Method.Name())
		rest := proto.GetExtension(o.Method.Options(), annotations.E_Http).(*annotations.HttpRule)
		if rest.GetGet() != "" || boundedElsewhere[name] != "" {
			continue
		}
		for _, f := range costtest.Fields(o.Method.Input()) {
			rules, _ := proto.GetExtension(f.Last().Options(), validate.E_Field).(*validate.FieldRules)
			if f.Last().Kind() == protoreflect.StringKind && !strings.HasSuffix(f.String(), "Id") &&
				(rules.GetString().GetMaxLen() > 0 || rules.GetRepeated().GetMaxItems() > 0) {
				found[name] = append(found[name], f.String())
			}
		}
	}
	return found
}

func sameViolations(t *testing.T, service any, name string, req proto.Message) {
	var rules fieldrules.Rules
	caller := &access.Caller{UserID: "usr_me", OrgID: "org_a",
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	scope := "org_a"
	if name == "SetupOrganization" || name == "SetupInvitedOrganization" {
		scope = access.Installation
	}
	permit, err := caller.In(scope, access.UserWrite)
	if err != nil {
		t.Fatal(err)
	}
	ctx := call.With(t.Context(), &call.Info{Caller: caller, Permit: permit})
	variants := outside(req.ProtoReflect())
	if len(variants) == 0 {
		t.Fatal("nothing is bounded")
	}
	for _, v := range variants {
		want, _, err := rules.Check(v)
		if err != nil || len(want) != 1 && !strings.HasSuffix(want[0].Field, "]") {
			t.Fatalf("%v: %v, %v", v, want, err)
		}
		got := invoke(ctx, service, name, v)
		same := func(v errs.Violation) bool { return v.Field == want[0].Field && v.Message == want[0].Message }
		if !slices.ContainsFunc(got, same) {
			t.Errorf("the definition says %q, the rule %q", want[0], got)
		}
	}
}

// invoke calls an operation and gives what it finds wrong with the request.
func invoke(ctx context.Context, service any, name string, req proto.Message) []errs.Violation {
	out := reflect.ValueOf(service).MethodByName(name).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(req)})
	err, _ := out[1].Interface().(error)
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.InvalidArgument {
		return e.Fields
	}
	return []errs.Violation{{Message: "nothing is wrong: " + errorText(err)}}
}

func errorText(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

func TestNamesOfTokensAndPasswordsHaveTheBoundsOfTheDefinition(t *testing.T) {
	for _, c := range []struct {
		req   proto.Message
		field string
		most  int
	}{
		{&signetv1.CreateMyTokenRequest{}, "name", syntax.MaxName},
		{&signetv1.CreateUserTokenRequest{}, "name", syntax.MaxName},
		{&signetv1.ConfirmMyPasskeyRequest{}, "name", syntax.MaxName},
		{&signetv1.ConfirmMyTOTPRequest{}, "name", syntax.MaxName},
		{&signetv1.ChangeMyPasswordRequest{}, "newPassword", syntax.MaxPassword},
		{&signetv1.ResetPasswordRequest{}, "newPassword", syntax.MaxPassword},
		{&signetv1.AddHumanUserRequest{}, "password", syntax.MaxPassword},
	} {
		fd := c.req.ProtoReflect().Descriptor().Fields().ByJSONName(c.field)
		rules := proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
		if got := int(rules.GetString().GetMaxLen()); got != c.most {
			t.Errorf("%s: %d, not %d", fd.FullName(), got, c.most)
		}
	}
}
