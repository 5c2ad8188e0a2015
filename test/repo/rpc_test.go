package repo

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/api"
	"github.com/signet-idm/signet/internal/domain/access"
)

// handlers implement the services of the API.
var handlers = map[protoreflect.FullName]any{
	"signet.v1.UserService":             api.Users{},
	"signet.v1.OrganizationService":     api.Organizations{},
	"signet.v1.IdentityProviderService": api.IdentityProviders{},
	"signet.v1.SessionService":          api.Sessions{},
	"signet.v1.MemberService":           api.Members{},
	"signet.v1.CredentialService":       api.Credentials{},
	"signet.v1.PolicyService":           api.Policies{},
	"signet.v1.ApplicationService":      api.Applications{},
	"signet.v1.WebhookService":          api.Webhooks{},
	"signet.v1.SigningKeyService":       api.SigningKeys{},
	"signet.v1.FactorService":           api.Factors{},
	"signet.v1.EventService":            api.Events{},
	"signet.v1.LinkService":             api.Links{},
	"signet.v1.GroupService":            api.Groups{},
	"signet.v1.RoleService":             api.Roles{},
	"signet.v1.NameService":             api.Names{},
	"signet.v1.ProjectService":          api.Projects{},
	"signet.v1.MetadataService":         api.Metadata{},
	"signet.v1.InvitationService":       api.Invitations{},
	"signet.v1.RegistrationService":     api.Registrations{},
	"signet.v1.RememberedDeviceService": api.RememberedDevices{},
	"signet.v1.AccessService":           api.Access{},
	"signet.v1.StatusService":           api.Status{},
	"signet.v1.SignInTrialService":      api.SignInTrials{},
	"signet.v1.SignInCountService":      api.SignInCounts{},
}

// methods calls check for every RPC of the API.
func methods(t *testing.T, check func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule)) {
	t.Helper()
	found := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				found++
				m := s.Methods().Get(j)
				rule, _ := proto.GetExtension(m.Options(), signetv1.E_Rule).(*signetv1.Rule)
				t.Run(string(m.FullName()), func(t *testing.T) { check(t, m, rule) })
			}
		}
		return true
	})
	if found < 13 {
		t.Errorf("only %d RPCs found", found)
	}
}

func TestEveryRPCSaysWhoMayCallIt(t *testing.T) {
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		if rule == nil {
			t.Fatal("it has no rule: add option (rule) to the RPC")
		}
		switch who := rule.GetWho().(type) {
		case *signetv1.Rule_Permission:
			if !access.IsPermission(access.Permission(who.Permission)) {
				t.Errorf("%q is no permission that package access knows", who.Permission)
			}
		case *signetv1.Rule_Authenticated:
			if !who.Authenticated {
				t.Error("authenticated: false lets nobody in and says nothing")
			}
		case *signetv1.Rule_Public:
			if !who.Public {
				t.Error("public: false lets nobody in and says nothing")
			}
		default:
			t.Error("its rule does not say who: set permission, authenticated or public")
		}
		if _, known := signetv1.Scope_name[int32(rule.GetScope())]; !known ||
			rule.GetScope() == signetv1.Scope_SCOPE_UNSPECIFIED {
			t.Error("its rule does not say in which organization: set scope")
		}
		orgID := m.Input().Fields().ByName("org_id")
		switch rule.GetScope() {
		case signetv1.Scope_SCOPE_PATH, signetv1.Scope_SCOPE_REQUEST:
			if orgID == nil || orgID.Kind() != protoreflect.StringKind {
				t.Error("its scope takes the organization from the field org_id, which its request does not have")
			}
		}
		if rule.GetPublic() && (rule.GetCreates() || rule.GetRestrictedSession()) {
			t.Error("a public RPC has no caller whose key or session could count")
		}
		if rule.GetUpdates() && rule.GetCreates() {
			t.Error("it either changes an object or creates one")
		}
		if since := rule.GetDeprecatedSince() != 0; since != m.Options().(*descriptorpb.MethodOptions).GetDeprecated() {
			t.Error("deprecated and deprecated_since belong together")
		}
	})
}

var pathParameter = regexp.MustCompile(`\{([^}]*)\}`)

func TestEveryRPCHasARESTPathOfItsOwn(t *testing.T) {
	taken := map[string]protoreflect.FullName{}
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		http, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
		if http == nil {
			t.Fatal("it has no path: add option (google.api.http) to the RPC")
		}
		var verb, path string
		switch p := http.GetPattern().(type) {
		case *annotations.HttpRule_Get:
			verb, path = "GET", p.Get
		case *annotations.HttpRule_Put:
			verb, path = "PUT", p.Put
		case *annotations.HttpRule_Post:
			verb, path = "POST", p.Post
		case *annotations.HttpRule_Delete:
			verb, path = "DELETE", p.Delete
		case *annotations.HttpRule_Patch:
			verb, path = "PATCH", p.Patch
		}
		if !strings.HasPrefix(path, "/v1/") {
			t.Errorf("its path is %q: the version belongs in front", path)
		}
		if wantsBody := verb == "PUT" || verb == "POST" || verb == "PATCH"; wantsBody != (http.GetBody() == "*") {
			t.Errorf("%s with the body %q", verb, http.GetBody())
		}
		key := verb + " " + pathParameter.ReplaceAllString(path, "{}")
		if other := taken[key]; other != "" {
			t.Errorf("%s belongs to %s", key, other)
		}
		taken[key] = m.FullName()
		for _, p := range pathParameter.FindAllStringSubmatch(path, -1) {
			if f := m.Input().Fields().ByName(protoreflect.Name(p[1])); f == nil ||
				f.Kind() != protoreflect.StringKind {
				t.Errorf("its path names {%s}, which is no text field of %s", p[1], m.Input().Name())
			}
		}
		if rule.GetCreates() && verb != "POST" {
			t.Errorf("it creates by %s", verb)
		}
		if verb == "GET" && (rule.GetUpdates() || rule.GetCreates()) {
			t.Error("a read changes nothing")
		}
	})
}

func TestEveryRPCHasAHandler(t *testing.T) {
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, _ *signetv1.Rule) {
		handler := handlers[m.Parent().FullName()]
		if handler == nil {
			t.Fatal("its service is not in the table of this test: add what implements it")
		}
		method, ok := reflect.TypeOf(handler).MethodByName(string(m.Name()))
		if !ok {
			t.Fatalf("%T does not implement it", handler)
		}
		request, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
		if err != nil {
			t.Fatal(err)
		}
		if in := method.Type.In(2); in != reflect.TypeOf(request.Zero().Interface()) {
			t.Errorf("the handler takes %v", in)
		}
	})
}
