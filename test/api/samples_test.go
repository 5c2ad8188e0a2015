package api_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// operation is an RPC as its descriptor tells it.
type operation struct {
	md            protoreflect.MethodDescriptor
	rule          *signetv1.Rule
	verb, path    string
	input, output protoreflect.MessageType
}

func (op *operation) name() string { return string(op.md.Name()) }

func (op *operation) procedure() string {
	return string(op.md.Parent().FullName()) + "/" + string(op.md.Name())
}

func (op *operation) deprecated() bool {
	return op.md.Options().(*descriptorpb.MethodOptions).GetDeprecated()
}

// operations are all of the API, from the compiled descriptors.
var operations = func() (all []*operation) {
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				all = append(all, newOperation(methods.Get(j)))
			}
		}
		return true
	})
	return all
}()

func newOperation(md protoreflect.MethodDescriptor) *operation {
	op := &operation{md: md, rule: proto.GetExtension(md.Options(), signetv1.E_Rule).(*signetv1.Rule)}
	var err error
	if op.input, err = protoregistry.GlobalTypes.FindMessageByName(md.Input().FullName()); err != nil {
		panic(err)
	}
	if op.output, err = protoregistry.GlobalTypes.FindMessageByName(md.Output().FullName()); err != nil {
		panic(err)
	}
	binding := proto.GetExtension(md.Options(), annotations.E_Http).(*annotations.HttpRule)
	switch p := binding.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		op.verb, op.path = "GET", p.Get
	case *annotations.HttpRule_Put:
		op.verb, op.path = "PUT", p.Put
	case *annotations.HttpRule_Post:
		op.verb, op.path = "POST", p.Post
	case *annotations.HttpRule_Delete:
		op.verb, op.path = "DELETE", p.Delete
	case *annotations.HttpRule_Patch:
		op.verb, op.path = "PATCH", p.Patch
	}
	return op
}

// operationFor finds the operation that takes a message.
func operationFor(req proto.Message) *operation {
	for _, op := range operations {
		if op.md.Input().FullName() == req.ProtoReflect().Descriptor().FullName() {
			return op
		}
	}
	return nil
}

func operationNamed(t *testing.T, name string) *operation {
	for _, op := range operations {
		if op.name() == name {
			return op
		}
	}
	t.Fatalf("there is no operation %s", name)
	return nil
}

// samples are valid requests for the operations for which scene.sample cannot make one.
var samples = map[string]func(s *scene) proto.Message{
	"UpdateMyProfile": func(*scene) proto.Message { return profile() },
	"LookUpNames": func(s *scene) proto.Message {
		return &signetv1.LookUpNamesRequest{Ids: []string{s.user.UserID}}
	},
	"ListEvents":  func(s *scene) proto.Message { return &signetv1.ListEventsRequest{UserId: s.user.UserID} },
	"SearchUsers": func(*scene) proto.Message { return &signetv1.SearchUsersRequest{Query: "test"} },
	"ChangeMyPassword": func(s *scene) proto.Message {
		return changePassword(s.w.password, s.w.secret("sample"))
	},
	"SetupInvitedOrganization": func(*scene) proto.Message { return setupInvited("grace@example.org") },
	"CreateSession":            func(s *scene) proto.Message { return signIn(s.user.LoginName, s.w.password) },
	"AddOIDCIdentityProvider":  func(s *scene) proto.Message { return addOIDC("Sample", s.w.secret("sample")) },
	"AddOAuthIdentityProvider": func(s *scene) proto.Message { return addOAuth("Sample", s.w.secret("sample")) },
	"AddApplication":           func(*scene) proto.Message { return addApp("Sample") },
	"CreateSessionWithPasskey": func(s *scene) proto.Message {
		return &signetv1.CreateSessionWithPasskeyRequest{Assertion: s.assertion()}
	},
	"StartProviderSignIn": func(s *scene) proto.Message {
		id, secret := s.ownPage()
		return &signetv1.StartProviderSignInRequest{IdpId: s.idp, ClientId: id, ClientSecret: secret,
			ReturnAddress: addApp("").GetRedirectUris()[0]}
	},
	"CreateSessionThroughProvider": func(s *scene) proto.Message {
		id, secret := s.ownPage()
		return &signetv1.CreateSessionThroughProviderRequest{ClientId: id, ClientSecret: secret, AttemptToken: "sample",
			Code: "sample"}
	},
	"StartRegistration": func(s *scene) proto.Message { return startRegistration(s.org, "sample@sample.example") },
	"FinishRegistration": func(s *scene) proto.Message {
		return finishRegistration("sample", s.w.secret("sample"))
	},
	// How people sign in is for organizations to say; federated/policy_test.go tells which providers they can name.
	"SetInstallationPolicy": func(*scene) proto.Message {
		return &signetv1.SetInstallationPolicyRequest{
			Policy: &signetv1.Policy{
				SecondFactorRequired:           true,
				PasswordMinLength:              10,
				CommonPasswordsRefused:         true,
				NetworkAttempts:                5,
				NetworkWaitSeconds:             60,
				AccountAttempts:                50,
				AccountWaitSeconds:             10,
				SessionSeconds:                 300,
				SessionIdleSeconds:             60,
				PasswordRulesForAdministrators: true,
			},
		}
	},
	"SetApplicationClaimMappings": func(s *scene) proto.Message {
		return &signetv1.SetApplicationClaimMappingsRequest{AppId: s.app, Mappings: []*signetv1.ClaimMapping{{
			Source: signetv1.ClaimMapping_SOURCE_GROUP_NAMES, Claim: unique("sample"),
			Targets: []signetv1.ClaimMapping_Target{signetv1.ClaimMapping_TARGET_ID_TOKEN}}}}
	},
	// Without roles it is for guests alone.
	"SetOrganizationMember": func(s *scene) proto.Message { return setMember(s.org, s.user.UserID, userManager) },
	"SetGroupRoles": func(s *scene) proto.Message {
		return &signetv1.SetGroupRolesRequest{GroupId: s.group(), Roles: []string{userManager}}
	},
	"AddOrganizationRole": func(s *scene) proto.Message {
		return &signetv1.AddOrganizationRoleRequest{OrgId: s.org, Name: unique("Role"), Permissions: sampleRole}
	},
	"UpdateOrganizationRole": func(s *scene) proto.Message {
		return &signetv1.UpdateOrganizationRoleRequest{OrgId: s.org, RoleId: s.role, Name: unique("Role"),
			Permissions: sampleRole}
	},
	"AddInstallationRole": func(*scene) proto.Message {
		return &signetv1.AddInstallationRoleRequest{Name: unique("Role"), Permissions: sampleRole}
	},
	"UpdateInstallationRole": func(s *scene) proto.Message {
		return &signetv1.UpdateInstallationRoleRequest{RoleId: s.w.role, Name: unique("Role"),
			Permissions: sampleRole}
	},
	"AddGroup": func(*scene) proto.Message { return addGroup() }, // names are used once
	"UpdateGroup": func(s *scene) proto.Message {
		return &signetv1.UpdateGroupRequest{GroupId: s.group(), Name: unique("Group"),
			Description: "Builds other things"}
	},
	// It can look into other organizations or not; who may is told in webhook_test.go.
	"AddWebhook":        func(*scene) proto.Message { return addWebhook("Sample", "signing.*") },
	"ProveSecondFactor": func(*scene) proto.Message { return &signetv1.ProveSecondFactorRequest{TotpCode: "000000"} },
}

// sampleRole are the permissions of the custom roles in samples.
var sampleRole = []string{"member.read"}

func profile() *signetv1.UpdateMyProfileRequest {
	return &signetv1.UpdateMyProfileRequest{FirstName: "Ada", LastName: "Lovelace", NickName: proto.String("Countess"),
		DisplayName: "Ada L.", PreferredLanguage: "en-GB", Gender: signetv1.Gender_GENDER_FEMALE}
}

func jwtConfig(idp string) *signetv1.UpdateJWTIdentityProviderRequest {
	return &signetv1.UpdateJWTIdentityProviderRequest{
		IdpId:        idp,
		JwtEndpoint:  "https://jwt.example/t",
		Issuer:       "https://issuer.example",
		KeysEndpoint: "https://jwt.example/keys",
		HeaderName:   "x-token",
	}
}

func general(idp string) *signetv1.UpdateIdentityProviderRequest {
	return &signetv1.UpdateIdentityProviderRequest{IdpId: idp, Name: "Renamed",
		StylingType: signetv1.StylingType_STYLING_TYPE_GOOGLE, AutoRegister: true}
}

func addJWT() *signetv1.AddJWTIdentityProviderRequest {
	return &signetv1.AddJWTIdentityProviderRequest{
		Name:         "Partner",
		StylingType:  signetv1.StylingType_STYLING_TYPE_GOOGLE,
		AutoRegister: true,
		JwtEndpoint:  "https://jwt.example/first",
		Issuer:       "first",
		KeysEndpoint: "https://jwt.example/first/keys",
		HeaderName:   "x-first",
	}
}

func setPassword(user, password string) *signetv1.SetUserPasswordRequest {
	return &signetv1.SetUserPasswordRequest{UserId: user, Password: password}
}

func changePassword(current, next string) *signetv1.ChangeMyPasswordRequest {
	return &signetv1.ChangeMyPasswordRequest{CurrentPassword: current, NewPassword: next}
}

func signIn(loginName, password string) *signetv1.CreateSessionRequest {
	return &signetv1.CreateSessionRequest{LoginName: loginName, Password: password}
}

func setup(password string) *signetv1.SetupOrganizationRequest {
	return &signetv1.SetupOrganizationRequest{
		Org: &signetv1.SetupOrganizationRequest_Org{Name: "Sample"},
		Human: &signetv1.SetupOrganizationRequest_Human{
			UserName: "founder",
			Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Grace", LastName: "Hopper"},
			Email:    &signetv1.SetupOrganizationRequest_Human_Email{Email: "grace@example.org"},
			Password: password,
		},
	}
}

func setupInvited(email string) *signetv1.SetupInvitedOrganizationRequest {
	return &signetv1.SetupInvitedOrganizationRequest{Org: &signetv1.SetupOrganizationRequest_Org{Name: "Sample"},
		Email: email}
}

// with gives a copy of a request in which the field at a path of JSON names has another value; nil takes it away.
// Plain numbers are for enums.
func with[M proto.Message](m M, path string, value any) M {
	out := proto.Clone(m).(M)
	at := out.ProtoReflect()
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		at = at.Mutable(field(at, name)).Message()
	}
	fd := field(at, names[len(names)-1])
	switch v := value.(type) {
	case nil:
		at.Clear(fd)
	case int:
		at.Set(fd, protoreflect.ValueOfEnum(protoreflect.EnumNumber(v)))
	case []string:
		list := at.NewField(fd).List()
		for _, s := range v {
			list.Append(protoreflect.ValueOfString(s))
		}
		at.Set(fd, protoreflect.ValueOfList(list))
	default:
		at.Set(fd, protoreflect.ValueOf(v))
	}
	return out
}

func field(m protoreflect.Message, name string) protoreflect.FieldDescriptor {
	fd := m.Descriptor().Fields().ByJSONName(name)
	if fd == nil {
		panic(fmt.Sprintf("%s has no field %s", m.Descriptor().FullName(), name))
	}
	return fd
}
